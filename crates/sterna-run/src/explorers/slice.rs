//! `kind = "slice"`: slice sampling of each coordinate in turn, which needs no score.

use super::{Kind, Steps};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::explorer::Explorer;
use sterna::explorers;

/// Fields of `kind = "slice"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::explorers::Slice;
///
/// let config = Config { explorer: Slice { width: 2.0, ..Slice::default() }.into(), ..Config::default() };
/// assert_eq!(config.explorer.kind(), "slice");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// Sweeps over all coordinates an iteration, or "auto".
    pub steps: Steps,
    /// Width of the first interval, until tuning has seen the coordinates' own.
    pub width: f64,
    /// Widths that an interval may grow to.
    pub expansions: usize,
    /// Molecules: how many Metropolis moves of each iteration turn a torsion.
    pub torsion_moves: usize,
}

impl Default for Slice {
    fn default() -> Self {
        let explorers::Slice { sweeps, width, expansions, .. } = explorers::Slice::default();
        Self { steps: sweeps.into(), width, expansions, torsion_moves: 0 }
    }
}

impl Kind for Slice {
    fn moves(&self) -> Arc<dyn Explorer> {
        self.steps.of(|sweeps| explorers::Slice {
            sweeps,
            width: self.width,
            expansions: self.expansions,
            ..explorers::Slice::default()
        })
    }

    fn torsion_moves(&self) -> usize {
        self.torsion_moves
    }
}
