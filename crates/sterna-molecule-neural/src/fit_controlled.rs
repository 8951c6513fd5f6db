//! Fits a controlled diffusion of a molecule (§5.2): its coordinates in closed form, and for each pair how far a step
//! relaxes, chosen on held-out samples. Where even the best is worse than the plain swap, that is used.

use crate::samples::{Samples, chain_samples};
use crate::stopped;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting, PairReport};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Identity, PerPair};
use sterna::path::AnnealingPath;
use sterna_molecule::{ConditionalAffine, ControlledDiffusion, Molecule, Standardised, Temperatures};
use sterna_neural::weights::{from_bytes, to_bytes};
use sterna_neural::{Layout, Parameters, Split, into_library, rejection_rates};

/// Relaxations δ that are tried. Below the first the steps hardly differ from the affine transport; beyond the last they
/// are longer than the molecule is harmonic, and every pair rejects more.
const RELAXATIONS: [f64; 5] = [0.01, 0.02, 0.04, 0.08, 0.16];

/// Fits a [`ControlledDiffusion`].
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna_molecule::{TemperedPath, alanine_dipeptide};
/// use sterna_molecule_neural::FitControlled;
///
/// let molecule = Arc::new(alanine_dipeptide(300.0)?);
/// let path = Arc::new(TemperedPath::new(molecule.clone(), 1200.0)?);
/// let temperatures = path.temperatures();
/// let fit = FitControlled { molecule, temperatures, path, steps: 5, seed: 1, guard: true };
/// let acceleration = Acceleration::Fitted(Arc::new(fit));
/// # let _ = acceleration;
/// # Ok::<(), sterna_molecule::MoleculeError>(())
/// ```
#[derive(Clone)]
pub struct FitControlled {
    /// The molecule, in the coordinates of the run.
    pub molecule: Arc<Molecule>,
    /// The ends of its path.
    pub temperatures: Temperatures,
    /// The path itself, to judge with.
    pub path: Arc<dyn AnnealingPath>,
    /// K.
    pub steps: usize,
    /// Of the noise that judges.
    pub seed: u64,
    /// Whether pairs that the plain swap serves better get it.
    pub guard: bool,
}

/// All that was fitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Description {
    steps: usize,
    /// Parameters of the coordinates.
    affine: Vec<f64>,
    factor: Vec<f64>,
    /// δ of each pair.
    relaxation: Vec<f64>,
    /// Pairs that are swapped plainly.
    plain: Vec<bool>,
}

impl Fit for FitControlled {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let report = earlier.map(|e| e.report.clone()).unwrap_or_default();
        Ok(Box::new(Choice { fit: self.clone(), collected, report, chosen: None }))
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        let stored = from_bytes::<Description>(record.to_vec(), "the controlled diffusion");
        let Description { steps, affine, factor, relaxation, plain } =
            stored.map_err(into_library)?.description;
        let coordinates = Standardised::from_parameters(&self.molecule, self.temperatures, &[affine, factor]);
        let coordinates = Arc::new(coordinates.map_err(stopped)?);
        let accelerator = diffusion(&coordinates, steps, relaxation, plain)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}

fn diffusion(
    coordinates: &Arc<Standardised>,
    steps: usize,
    relaxation: Vec<f64>,
    plain: Vec<bool>,
) -> sterna::Result<Arc<dyn Accelerator>> {
    let inner = Arc::new(ControlledDiffusion::new(coordinates.clone(), steps, relaxation)?);
    Ok(if plain.contains(&true) { Arc::new(PerPair::new(inner, plain)) } else { inner })
}

impl FitControlled {
    fn choose(&self, collected: &Collected, report: &mut FitReport) -> sterna::Result<Fitted> {
        let Samples { collected, split, rows } = Samples::new(collected);
        let chains = chain_samples(collected.schedule.betas(), &rows);
        let affine = ConditionalAffine::fit(&self.molecule, self.temperatures, &chains).map_err(stopped)?;
        let coordinates = Arc::new(Standardised::fit(affine, &chains).map_err(stopped)?);
        let (relaxation, pairs) = self.judge(&coordinates, &split)?;
        let plain: Vec<bool> = pairs.iter().map(|pair| pair.plain).collect();
        // What was said of earlier rounds no longer holds.
        report.alarms.retain(|(code, _)| code != "transport-replaced");
        if plain.contains(&true) {
            let rates = pairs.iter().map(|p| format!("{:.3} against {:.3}", p.rejection, p.plain_rejection));
            let rates = rates.collect::<Vec<_>>().join(", ");
            let message = format!(
                "on held-out samples the pairs reject {rates} by the plain swap, which is used where it is better; more \
                 samples (training.collect) may help"
            );
            report.alarms.push(("transport-replaced".into(), message));
        }
        report.pairs = pairs;
        let accelerator = diffusion(&coordinates, self.steps, relaxation.clone(), plain.clone())?;
        let [affine, factor] = coordinates.parameters();
        let description = Description { steps: self.steps, affine, factor, relaxation, plain };
        let record = to_bytes(&description, &Layout::new(), &Parameters::<f32>::new(vec![]), None);
        let record = record.map_err(into_library)?.into();
        Ok(Fitted { accelerator, path: None, record, report: report.clone() })
    }

    /// The relaxation of each pair that rejects least on held-out samples, and how it compares.
    fn judge(
        &self,
        coordinates: &Arc<Standardised>,
        split: &Split,
    ) -> sterna::Result<(Vec<f64>, Vec<PairReport>)> {
        let judge =
            |accelerator: &dyn Accelerator| rejection_rates(accelerator, &*self.path, split, self.seed);
        let tried = RELAXATIONS.map(|relaxation| {
            let relaxation = vec![relaxation; split.pairs()];
            judge(&ControlledDiffusion::new(coordinates.clone(), self.steps, relaxation)?)
        });
        let tried = tried.into_iter().collect::<sterna::Result<Vec<_>>>()?;
        let plain = judge(&Identity)?;
        let choose = |n: usize| {
            let order = |&i: &usize, &j: &usize| tried[i][n].total_cmp(&tried[j][n]);
            let best = (0..tried.len()).min_by(order).expect("there are some");
            let (rejection, plain_rejection) = (tried[best][n], plain[n]);
            let plain = self.guard && rejection > plain_rejection;
            (RELAXATIONS[best], PairReport { rejection, plain_rejection, plain })
        };
        Ok((0..split.pairs()).map(choose).unzip())
    }
}

/// A fit in one step. Nothing of it needs saving: the samples say all, and the step can be made again.
struct Choice {
    fit: FitControlled,
    collected: Arc<Collected>,
    report: FitReport,
    chosen: Option<Fitted>,
}

impl Fitting for Choice {
    fn progress(&self) -> (u64, u64) {
        (u64::from(self.chosen.is_some()), 1)
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        if most > 0 && self.chosen.is_none() {
            self.chosen = Some(self.fit.choose(&self.collected, &mut self.report)?);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> sterna::Result<Fitted> {
        self.advance(1)?;
        Ok(self.chosen.expect("it has just been made"))
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _saved: &[u8]) -> sterna::Result<()> {
        Ok(())
    }
}
