//! Closed-form transports made from a ladder's own samples, for runs.

use crate::{ChainSamples, ConditionalAffine, Molecule, MoleculeError, TemperatureScaling, Temperatures};
use std::sync::Arc;
use sterna::acceleration::{Collected, Fit};
use sterna::accelerator::Accelerator;
use sterna::accelerators::FlowAccelerator;
use sterna::transport::Flow;

/// Fits a [`TemperatureScaling`].
#[derive(Clone)]
pub struct FitScaling {
    /// The molecule, in the coordinates of the run.
    pub molecule: Arc<Molecule>,
    /// The ends of its path.
    pub temperatures: Temperatures,
}

/// Fits a [`ConditionalAffine`].
#[derive(Clone)]
pub struct FitConditionalAffine {
    /// The molecule, in the coordinates of the run.
    pub molecule: Arc<Molecule>,
    /// The ends of its path.
    pub temperatures: Temperatures,
}

fn samples<'a>(collected: &'a Collected) -> Vec<ChainSamples<'a>> {
    let chains = collected.schedule.betas().iter().zip(collected.samples);
    chains.map(|(&beta, points)| ChainSamples { beta, points }).collect()
}

fn accelerator<F: Flow + 'static>(flow: Result<F, MoleculeError>) -> sterna::Result<Arc<dyn Accelerator>> {
    let flow = flow.map_err(|error| sterna::Error::Target(Box::new(error)))?;
    Ok(Arc::new(FlowAccelerator::new(Arc::new(flow))))
}

impl Fit for FitScaling {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        accelerator(TemperatureScaling::fit(&self.molecule, self.temperatures, &samples(collected)))
    }
}

impl Fit for FitConditionalAffine {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        accelerator(ConditionalAffine::fit(&self.molecule, self.temperatures, &samples(collected)))
    }
}
