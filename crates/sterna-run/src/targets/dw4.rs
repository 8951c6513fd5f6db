//! `kind = "dw4"`: four particles in the plane (App. E.1).

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use sterna_neural::Particles;

const POSSIBLE: &str = "6";

/// Fields of `kind = "dw4"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dw4 {
    /// Dimension, which is 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Dw4 {
    fn about(&self) -> About {
        let about = "4 particles in the plane, double-well pairs, centre of mass removed";
        About { possible: POSSIBLE, about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        dimension("dw4", self.dim, 6, POSSIBLE, |dim| dim == 6)?;
        Ok(Problem { particles: Some(Particles::DW4), ..Problem::recorded(sterna::targets::Dw4) })
    }
}
