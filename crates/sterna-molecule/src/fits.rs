//! Closed-form transports made from a ladder's own samples, for runs. Their record is their parameters.

use crate::{ChainSamples, ConditionalAffine, Molecule, MoleculeError, TemperatureScaling, Temperatures};
use std::sync::Arc;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting};
use sterna::accelerators::FlowAccelerator;
use sterna::transport::Flow;
use sterna::{Error, Result};

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

/// The samples of each chain, with where they were drawn.
fn samples(collected: &Collected) -> Vec<ChainSamples<'_>> {
    let chains = collected.schedule.betas().iter().zip(&collected.samples);
    chains.map(|(&beta, points)| ChainSamples { beta, points }).collect()
}

fn failed(error: MoleculeError) -> Error {
    Error::Target(Box::new(error))
}

fn fitted(flow: impl Flow + 'static, parameters: &[f64]) -> Fitted {
    let record: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
    Fitted {
        accelerator: Arc::new(FlowAccelerator::new(Arc::new(flow))),
        path: None,
        record: record.into(),
        report: FitReport::default(),
    }
}

/// The numbers of a record.
fn parameters(record: &[u8]) -> Result<Vec<f64>> {
    let (words, rest) = record.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::Saved("a transport of a molecule is a list of 8-byte numbers".into()));
    }
    Ok(words.iter().map(|&word| f64::from_le_bytes(word)).collect())
}

impl Fit for FitScaling {
    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let flow = TemperatureScaling::fit(&self.molecule, self.temperatures, &samples(&collected));
        let flow = flow.map_err(failed)?;
        let parameters = flow.parameters();
        Ok(Box::new(Done(fitted(flow, &parameters))))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let parameters = parameters(record)?;
        let flow = TemperatureScaling::from_parameters(&self.molecule, self.temperatures, &parameters);
        Ok(fitted(flow.map_err(failed)?, &parameters))
    }
}

impl Fit for FitConditionalAffine {
    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let flow = ConditionalAffine::fit(&self.molecule, self.temperatures, &samples(&collected));
        let flow = flow.map_err(failed)?;
        let parameters = flow.parameters();
        Ok(Box::new(Done(fitted(flow, &parameters))))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let parameters = parameters(record)?;
        let flow = ConditionalAffine::from_parameters(&self.molecule, self.temperatures, &parameters);
        Ok(fitted(flow.map_err(failed)?, &parameters))
    }
}

/// Was done when it began: the samples say all.
struct Done(Fitted);

impl Fitting for Done {
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }

    fn advance(&mut self, _most: u64) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        Ok(self.0)
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _saved: &[u8]) -> Result<()> {
        Ok(())
    }
}
