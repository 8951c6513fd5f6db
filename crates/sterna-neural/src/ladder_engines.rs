//! Burn-in and sampling of a run on a GPU, where the program was built for one and finds one.

use std::sync::Arc;

use sterna::engine::{Engine, Frozen, Made, MakeEngine};

use crate::compute::{Gpu, open_gpu};
use crate::fit::into_library;
use crate::target::GraphTarget;
use crate::{Compute, Error, Result};

/// Makes engines that carry out iterations on a GPU: on the geometric path from a normal without correlations to a target that
/// is written as operations of a graph, with plain swaps or a trained controlled diffusion.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Gmm};
/// use sterna_neural::{Compute, LadderEngines, Precision};
///
/// let path = Arc::new(Geometric::from_standard_normal(Gmm::paper(4)));
/// let settings = Settings { chains: 4, ensembles: 2, rounds: 2, iterations: 200, ..Settings::default() };
/// let run = Run::new(path, settings).unwrap();
/// // On the CPU where there is no GPU.
/// let compute = Compute::Cuda { precision: Precision::F32, fall_back: true };
/// let engines = LadderEngines::open(compute, Arc::new(Gmm::paper(4)), 0).unwrap().unwrap();
/// let mut run = run.with_engine(Arc::new(engines)).unwrap();
/// run.complete().unwrap();
/// println!("{} round trips; {:?}", run.round_trips(), run.engine_replaced());
/// ```
pub struct LadderEngines {
    target: Arc<dyn GraphTarget>,
    /// A trained transport's file, where the run was given one.
    transport: Option<Arc<[u8]>>,
    /// The GPU, or why there is none.
    gpu: std::result::Result<Gpu, String>,
    fall_back: bool,
}

impl LadderEngines {
    /// Opens the GPU of a number, from 0 and round again where there are fewer, so that what is missing is known before anything is
    /// sampled; none where the CPU is asked for.
    ///
    /// # Errors
    /// If it cannot be had and nothing else is allowed.
    pub fn open(compute: Compute, target: Arc<dyn GraphTarget>, number: usize) -> Result<Option<Self>> {
        let Compute::Cuda { precision, fall_back } = compute else { return Ok(None) };
        let gpu = match open_gpu(number, precision) {
            Err(error) if fall_back => Err(replaced(&error)),
            opened => Ok(opened?),
        };
        Ok(Some(Self { target, transport: None, gpu, fall_back }))
    }

    /// For a run whose swaps are carried by the transport of a file, given as its bytes.
    pub fn carried_by(self, transport: Arc<[u8]>) -> Self {
        Self { transport: Some(transport), ..self }
    }

    /// The bytes of the transport in use.
    fn record<'a>(&'a self, frozen: &'a Frozen) -> Option<&'a [u8]> {
        let fitted = frozen.fitted.map(|fitted| &fitted.record[..]).filter(|record| !record.is_empty());
        fitted.or(self.transport.as_deref()).filter(|_| frozen.sampler.accelerator.steps() > 0)
    }
}

fn replaced(error: &Error) -> String {
    format!("sampling runs on the CPU: {error}")
}

impl MakeEngine for LadderEngines {
    fn make(&self, frozen: &Frozen) -> sterna::Result<Made> {
        let gpu = match &self.gpu {
            Ok(gpu) => gpu,
            Err(reason) => return Ok(Made::Replaced(reason.clone())),
        };
        let record = self.record(frozen);
        if record.is_none() && frozen.sampler.accelerator.steps() > 0 {
            let reason = "a GPU carries swaps by trained controlled diffusions alone";
            return Err(into_library(Error::Config { field: "run.device", value: "cuda".into(), reason }));
        }
        match engine(gpu, self.target.clone(), frozen, record) {
            Ok(engine) => Ok(Made::Engine(engine)),
            Err(error @ Error::Cuda { .. }) if self.fall_back => Ok(Made::Replaced(replaced(&error))),
            Err(error) => Err(into_library(error)),
        }
    }
}

#[cfg(feature = "cuda")]
fn engine(
    gpu: &Gpu,
    target: Arc<dyn GraphTarget>,
    frozen: &Frozen,
    record: Option<&[u8]>,
) -> Result<Box<dyn Engine>> {
    let wrong = |reason| Err(Error::Config { field: "run.device", value: "cuda".into(), reason });
    if frozen.sampler.path.as_spline().is_some() {
        return wrong("a GPU walks straight paths alone (path.kind = \"geometric\")");
    }
    let transport = record.map(crate::train_cmcd::trained).transpose()?;
    let Some(coordinates) = crate::cuda::Coordinates::of(&*frozen.sampler.path) else {
        return wrong(
            "a GPU starts from one normal (reference.kind = \"standard-normal\"), and walks one leg",
        );
    };
    if transport.as_ref().is_some_and(|transport| transport.frame.as_ref() != coordinates.frame()) {
        return wrong("the transport was made for another reference");
    }
    let Some(moves) = frozen.sampler.explorer.as_hmc() else {
        return wrong("a GPU makes Hamiltonian moves alone (explorer.kind = \"hmc\" or \"mala\")");
    };
    let plan = crate::LadderPlan {
        seed: frozen.sampler.streams.seed(),
        ensembles: frozen.ladders.len(),
        first: frozen.ladders.start,
        schedule: frozen.sampler.schedule.clone(),
        sizes: coordinates.sizes(moves.sizes.clone()),
        moves: moves.steps,
        leapfrog_steps: moves.leapfrog_steps,
        jitter: moves.jitter(),
        target: coordinates.target(target),
        transport: transport.map(|trained| {
            crate::LadderTransport::new(trained.network, trained.weights)
                .except(trained.plain)
                .with_steepest(trained.steepest)
        }),
    };
    Ok(Box::new(crate::cuda::LadderEngine::new(gpu, plan, coordinates)?))
}

#[cfg(not(feature = "cuda"))]
fn engine(
    gpu: &Gpu,
    _target: Arc<dyn GraphTarget>,
    _frozen: &Frozen,
    _record: Option<&[u8]>,
) -> Result<Box<dyn Engine>> {
    match *gpu {}
}
