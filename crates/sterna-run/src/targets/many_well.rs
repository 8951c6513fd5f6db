//! `kind = "many-well"`: independent double wells.

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "even";

/// Fields of `kind = "many-well"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManyWell {
    /// Dimension, 32 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for ManyWell {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "independent double wells: 2^(dim/2) modes" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("many-well", self.dim, 32, POSSIBLE, |dim| dim >= 2 && dim.is_multiple_of(2))?;
        Ok(Problem::recorded(sterna::targets::ManyWell::new(dim)))
    }
}
