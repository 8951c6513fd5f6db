//! Trained transports used again: from the bytes of `transport.safetensors` to what carries swaps.

use std::sync::Arc;

use serde::Deserialize;
use sterna::accelerator::Accelerator;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;
use sterna::{Schedule, Target};

use crate::train_cmcd::CmcdDescription;
use crate::train_diffusion::DiffusionDescription;
use crate::train_flow::FlowDescription;
use crate::weights::{NetworkConfig, Stored, from_bytes};
use crate::{Error, Result};

/// A trained transport and what it was made for.
pub struct LoadedTransport {
    /// "flow", "cmcd" or "diffusion".
    pub kind: &'static str,
    /// Length of a point.
    pub dim: usize,
    /// The coordinates that it travels in: those of the reference that it was made for, where that was not N(0, I).
    pub frame: Option<Frame>,
    /// What it is.
    pub made: Made,
}

/// What a training made.
pub enum Made {
    /// Carries swaps between the chains of one schedule.
    Pairs {
        /// Carries the proposals of swaps.
        accelerator: Arc<dyn Accelerator>,
        /// K; 1 for a flow.
        steps: usize,
        /// The schedule that it was made for, and works on alone.
        schedule: Schedule,
    },
    /// A path of its own, for any K and any number of chains.
    Path(Box<LearnedPath>),
}

/// An energy model that waits for its target.
pub struct LearnedPath {
    stored: Stored<DiffusionDescription>,
}

impl LearnedPath {
    /// The path to `target`, which must be the one that the model was trained on.
    ///
    /// # Errors
    /// If the dimensions differ, or the target fails.
    pub fn to(&self, target: Arc<dyn Target>) -> sterna::Result<Arc<dyn AnnealingPath>> {
        self.stored.description.restore(&self.stored, target)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Description {
    Cmcd(CmcdDescription),
    Diffusion(DiffusionDescription),
    Flow(FlowDescription),
}

/// Reads a trained transport of any kind; `origin` names the bytes in errors.
///
/// # Errors
/// If they are damaged, or hold anything else.
pub fn load_transport(bytes: Vec<u8>, origin: &str) -> Result<LoadedTransport> {
    let mismatch = |reason: String| Error::Mismatch { origin: origin.to_owned(), reason };
    let stored: Stored<Description> = from_bytes(bytes, origin)?;
    let (kind, steps, network, made, frame): (_, _, &NetworkConfig, _, _) = match &stored.description {
        Description::Cmcd(d) => ("cmcd", d.steps, &d.drift, d.restore(&stored), d.frame.clone()),
        Description::Flow(d) => ("flow", 1, &d.network, d.restore(&stored), d.frame.clone()),
        Description::Diffusion(d) if d.plain => {
            return Err(mismatch("its path was found worse than plain swaps when it was learned".into()));
        }
        Description::Diffusion(d) => {
            let (dim, description, frame) = (d.network.dim(), d.clone(), d.frame.clone());
            let path = LearnedPath { stored: stored.with_description(description) };
            return Ok(LoadedTransport { kind: "diffusion", dim, frame, made: Made::Path(Box::new(path)) });
        }
    };
    let (accelerator, dim) = made.map_err(|e| mismatch(e.to_string()))?;
    let betas = network.schedule().ok_or_else(|| mismatch("it knows no schedule".into()))?;
    let schedule = Schedule::new(betas.to_vec()).map_err(|e| mismatch(e.to_string()))?;
    Ok(LoadedTransport { kind, dim, frame, made: Made::Pairs { accelerator, steps, schedule } })
}
