//! `kind = "auto"`: Hamiltonian moves that find their step at each point.

use super::{Kind, Steps};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::explorer::Explorer;
use sterna::explorers;

/// Fields of `kind = "auto"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Auto {
    /// Moves an iteration, or "auto".
    pub steps: Steps,
    /// Mean acceptance that base steps adapt to.
    pub acceptance: f64,
    /// Molecules: how many Metropolis moves of each iteration turn a torsion.
    pub torsion_moves: usize,
}

impl Default for Auto {
    fn default() -> Self {
        let explorers::Auto { steps, acceptance, .. } = explorers::Auto::default();
        Self { steps: steps.into(), acceptance, torsion_moves: 0 }
    }
}

impl Kind for Auto {
    fn moves(&self) -> Arc<dyn Explorer> {
        let Self { steps, acceptance, .. } = *self;
        steps.of(|steps| explorers::Auto { steps, acceptance, ..explorers::Auto::default() })
    }

    fn torsion_moves(&self) -> usize {
        self.torsion_moves
    }
}
