//! Where training, and sampling, run: on the CPU, or on a GPU if the program was built for one and finds one.

use std::sync::Arc;

use crate::Result;
use crate::cpu::Cpu;
use crate::device::Device;

/// How a GPU multiplies matrices of f32 numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// To f32's own precision.
    #[default]
    F32,
    /// Factors rounded to TF32's 11 bits: faster, and enough for training.
    Tf32,
}

/// Where a training runs, or sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// On this machine's cores.
    #[default]
    Cpu,
    /// On an NVIDIA GPU: training on the first.
    Cuda {
        /// Of products.
        precision: Precision,
        /// Whether the CPU may take over where there is no GPU.
        fall_back: bool,
    },
}

/// An opened device.
#[derive(Clone)]
pub struct Opened {
    gpu: Option<Arc<dyn Device<f32>>>,
    threads: usize,
    /// Why the CPU was taken though a GPU was asked for.
    pub note: Option<String>,
}

impl Compute {
    /// Opens the device, so that what is missing is known before anything is sampled.
    ///
    /// # Errors
    /// If it cannot be had and nothing else is allowed.
    pub fn open(self, threads: usize) -> Result<Opened> {
        let Self::Cuda { precision, fall_back } = self else {
            return Ok(Opened { gpu: None, threads, note: None });
        };
        match open_gpu(0, precision) {
            Ok(gpu) => Ok(Opened { gpu: Some(device(gpu)), threads, note: None }),
            Err(error) if fall_back => {
                let note = format!("training runs on the CPU: {error}");
                Ok(Opened { gpu: None, threads, note: Some(note) })
            }
            Err(error) => Err(error),
        }
    }
}

impl Opened {
    /// Whether batches can be drawn where training runs.
    pub fn draws(&self) -> bool {
        self.gpu.is_some()
    }

    /// The device.
    pub fn device(&self) -> Arc<dyn Device<f32>> {
        self.gpu.clone().unwrap_or_else(|| Arc::new(Cpu::new(self.threads)))
    }
}

/// A GPU that was opened.
#[cfg(feature = "cuda")]
pub(crate) type Gpu = crate::Cuda;

/// There is none in programs that were built without.
#[cfg(not(feature = "cuda"))]
#[derive(Clone, Copy)]
pub(crate) enum Gpu {}

#[cfg(feature = "cuda")]
pub(crate) fn open_gpu(number: usize, precision: Precision) -> Result<Gpu> {
    crate::Cuda::numbered(number, precision)
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn open_gpu(_: usize, _: Precision) -> Result<Gpu> {
    Err(crate::Error::Cuda {
        what: "this program was built without it".into(),
        why: "build it with `cargo build --release --features cuda`".into(),
    })
}

#[cfg(feature = "cuda")]
fn device(gpu: Gpu) -> Arc<dyn Device<f32>> {
    Arc::new(gpu)
}

#[cfg(not(feature = "cuda"))]
fn device(gpu: Gpu) -> Arc<dyn Device<f32>> {
    match gpu {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSize, Hidden, TrainFlow, Training};
    use sterna::paths::Geometric;
    use sterna::targets::Normal;

    fn asked(fall_back: bool) -> Compute {
        Compute::Cuda { precision: Precision::Tf32, fall_back }
    }

    #[test]
    fn the_cpu_takes_over_only_if_it_may() {
        let error = match asked(false).open(1) {
            Ok(_) => return println!("skipped: there is a GPU"),
            Err(error) => error.to_string(),
        };
        assert!(error.starts_with("CUDA: "), "{error}");
        let cure = if cfg!(feature = "cuda") { "looked for" } else { "--features cuda" };
        assert!(error.contains(cure), "{error}");
        let opened = asked(true).open(1).unwrap();
        assert!(opened.note.is_some_and(|note| note.contains(&error)));
    }

    #[test]
    fn a_missing_gpu_is_known_before_anything_is_sampled() {
        let target = Normal::isotropic(2, 20.0);
        let path = Arc::new(Geometric::from_standard_normal(target.clone()));
        let size = FlowSize::new(2, Hidden::new(1, 8));
        let training = Training { compute: asked(false), ..Training::default() };
        let made = TrainFlow::new(path, Arc::new(target), size, training);
        if asked(false).open(1).is_err() {
            assert!(made.is_err_and(|e| e.to_string().starts_with("CUDA: ")));
        }
    }
}
