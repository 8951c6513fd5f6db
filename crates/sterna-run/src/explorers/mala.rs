//! `kind = "mala"`: Langevin moves with an acceptance test, which are HMC of one leapfrog step.

use super::{Adaptation, Kind, Masses, StepSizeConfig, Steps};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::explorer::Explorer;
use sterna::explorers::Hmc;

/// Fields of `kind = "mala"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::explorers::Mala;
///
/// let config = Config { explorer: Mala { steps: 4.into(), ..Mala::default() }.into(), ..Config::default() };
/// assert_eq!(config.explorer.kind(), "mala");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mala {
    /// Proposals an iteration, or "auto".
    pub steps: Steps,
    /// A number, one per chain, or "adapt".
    pub step_size: StepSizeConfig,
    /// Mean acceptance that "adapt" aims at.
    pub acceptance: f64,
    /// How "adapt" adapts: `acceptance`, to the one wanted; or `paper`, by factors of 1.2.
    pub adaptation: Adaptation,
    /// Masses of the moves: `adapt` (one per coordinate and chain), `unit`, or for molecules `atoms`.
    pub masses: Masses,
    /// Molecules: how many Metropolis moves of each iteration turn a torsion.
    pub torsion_moves: usize,
}

impl Default for Mala {
    fn default() -> Self {
        Self {
            steps: 1.into(),
            step_size: StepSizeConfig::Adapt,
            acceptance: 0.92,
            adaptation: Adaptation::Acceptance,
            masses: Masses::Adapt,
            torsion_moves: 0,
        }
    }
}

impl Kind for Mala {
    fn moves(&self) -> Arc<dyn Explorer> {
        self.steps.of(|steps| Hmc {
            steps,
            leapfrog_steps: 1,
            step_size: self.step_size.step_size(self.adaptation, self.acceptance),
            adapt_masses: self.masses == Masses::Adapt,
            ..Hmc::default()
        })
    }

    fn masses(&self) -> Option<Masses> {
        Some(self.masses)
    }

    fn step_sizes(&self) -> Option<&[f64]> {
        self.step_size.each()
    }

    fn torsion_moves(&self) -> usize {
        self.torsion_moves
    }
}
