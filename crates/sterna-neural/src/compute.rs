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
    /// On the first NVIDIA GPU.
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
        match open_gpu(precision) {
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
pub(crate) fn open_gpu(precision: Precision) -> Result<Gpu> {
    crate::Cuda::open(precision)
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn open_gpu(_: Precision) -> Result<Gpu> {
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
