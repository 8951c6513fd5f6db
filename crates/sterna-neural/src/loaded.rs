//! Trained transports used again: from the bytes of `transport.safetensors` to an accelerator.

use std::sync::Arc;

use serde::Deserialize;
use sterna::Schedule;
use sterna::accelerator::Accelerator;

use crate::train_cmcd::CmcdDescription;
use crate::train_flow::FlowDescription;
use crate::weights::{NetworkConfig, Stored, from_bytes};
use crate::{Error, Result};

/// A trained transport and what it was made for.
#[derive(Clone)]
pub struct LoadedTransport {
    /// Carries the proposals of swaps.
    pub accelerator: Arc<dyn Accelerator>,
    /// "flow" or "cmcd".
    pub kind: &'static str,
    /// K; 1 for a flow.
    pub steps: usize,
    /// Length of a point.
    pub dim: usize,
    /// The schedule that it was made for, and works on alone.
    pub schedule: Schedule,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Description {
    Cmcd(CmcdDescription),
    Flow(FlowDescription),
}

/// Reads a trained flow or controlled diffusion; `origin` names the bytes in errors.
///
/// # Errors
/// If they are damaged, or hold anything else.
pub fn load_transport(bytes: Vec<u8>, origin: &str) -> Result<LoadedTransport> {
    let mismatch = |reason: String| Error::Mismatch { origin: origin.to_owned(), reason };
    let stored: Stored<Description> = from_bytes(bytes, origin)?;
    let (kind, steps, network, made): (_, _, &NetworkConfig, _) = match &stored.description {
        Description::Cmcd(d) => ("cmcd", d.steps, &d.drift, d.restore(&stored)),
        Description::Flow(d) => ("flow", 1, &d.network, d.restore(&stored)),
    };
    let (accelerator, dim) = made.map_err(|e| mismatch(e.to_string()))?;
    let betas = network.schedule().ok_or_else(|| mismatch("it knows no schedule".into()))?;
    let schedule = Schedule::new(betas.to_vec()).map_err(|e| mismatch(e.to_string()))?;
    Ok(LoadedTransport { accelerator, kind, steps, dim, schedule })
}
