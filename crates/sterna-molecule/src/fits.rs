//! Closed-form transports made from a ladder's own samples, for runs. Their record is their parameters.

use crate::{ChainSamples, ConditionalAffine, Molecule, MoleculeError, TemperatureScaling, Temperatures};
use std::sync::Arc;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting};
use sterna::accelerators::FlowAccelerator;
use sterna::transport::Flow;
use sterna::{BadState, Batch, Error, Result, Schedule};

/// Fits a [`TemperatureScaling`].
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna_molecule::{FitScaling, TemperedPath, alanine_dipeptide};
///
/// let molecule = Arc::new(alanine_dipeptide(300.0)?);
/// let path = TemperedPath::new(molecule.clone(), 1200.0)?;
/// let fit = FitScaling { molecule, temperatures: path.temperatures() };
/// let acceleration = Acceleration::Fitted(Arc::new(fit));
/// # let _ = acceleration;
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone)]
pub struct FitScaling {
    /// The molecule, in the coordinates of the run.
    pub molecule: Arc<Molecule>,
    /// The ends of its path.
    pub temperatures: Temperatures,
}

/// Fits a [`ConditionalAffine`].
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna_molecule::{FitConditionalAffine, TemperedPath, alanine_dipeptide};
///
/// let molecule = Arc::new(alanine_dipeptide(300.0)?);
/// let path = TemperedPath::new(molecule.clone(), 1200.0)?;
/// let fit = FitConditionalAffine { molecule, temperatures: path.temperatures() };
/// let acceleration = Acceleration::Fitted(Arc::new(fit));
/// # let _ = acceleration;
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
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

/// Samples that do not determine a transport are too few, which a setting says; anything else is the molecule's.
fn of_samples(error: MoleculeError, collected: &Collected) -> Error {
    let rows = collected.samples.first().map_or(0, Batch::rows);
    match error {
        MoleculeError::Fit(_) => Error::setting(
            "Settings.collect",
            rows,
            "a transport of a molecule is fitted to more samples of each chain, some thousands",
        ),
        error => failed(error),
    }
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
        return Err(BadState::OfFit("a transport of a molecule is a list of 8-byte numbers").into());
    }
    Ok(words.iter().map(|&word| f64::from_le_bytes(word)).collect())
}

impl Fit for FitScaling {
    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let fit = self.clone();
        Ok(OneStep::begin(move || {
            let flow = TemperatureScaling::fit(&fit.molecule, fit.temperatures, &samples(&collected));
            let flow = flow.map_err(|error| of_samples(error, &collected))?;
            let parameters = flow.parameters();
            Ok(fitted(flow, &parameters))
        }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let parameters = parameters(record)?;
        let flow = TemperatureScaling::from_parameters(&self.molecule, self.temperatures, &parameters);
        Ok(fitted(flow.map_err(failed)?, &parameters))
    }

    /// A function of the temperature, fitted at some of them.
    fn rebuild_at(&self, record: &[u8], _: &Schedule) -> Result<Option<Fitted>> {
        self.rebuild(record).map(Some)
    }
}

impl Fit for FitConditionalAffine {
    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let fit = self.clone();
        Ok(OneStep::begin(move || {
            let flow = ConditionalAffine::fit(&fit.molecule, fit.temperatures, &samples(&collected));
            let flow = flow.map_err(|error| of_samples(error, &collected))?;
            let parameters = flow.parameters();
            Ok(fitted(flow, &parameters))
        }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let parameters = parameters(record)?;
        let flow = ConditionalAffine::from_parameters(&self.molecule, self.temperatures, &parameters);
        Ok(fitted(flow.map_err(failed)?, &parameters))
    }

    /// A function of the temperature, fitted at some of them.
    fn rebuild_at(&self, record: &[u8], _: &Schedule) -> Result<Option<Fitted>> {
        self.rebuild(record).map(Some)
    }
}

/// A fit in one step. Nothing of it needs saving: the samples say all, and the step can be made again.
struct OneStep<F> {
    make: F,
    made: Option<Fitted>,
}

impl<F: Fn() -> Result<Fitted> + Send + 'static> OneStep<F> {
    fn begin(make: F) -> Box<dyn Fitting> {
        Box::new(Self { make, made: None })
    }
}

impl<F: Fn() -> Result<Fitted> + Send + 'static> Fitting for OneStep<F> {
    fn progress(&self) -> (u64, u64) {
        (u64::from(self.made.is_some()), 1)
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        if most > 0 && self.made.is_none() {
            self.made = Some((self.make)()?);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        match self.made {
            Some(made) => Ok(made),
            None => (self.make)(),
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _saved: &[u8]) -> Result<()> {
        Ok(())
    }
}
