//! `kind = "rosenbrock"`: curved valleys in a box.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "even";

/// Fields of `kind = "rosenbrock"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rosenbrock {
    /// Dimension, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Rosenbrock {
    fn about(&self) -> About {
        About {
            possible: POSSIBLE,
            about: "curved valleys in pairs of coordinates in a box: the evidence is known",
        }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("rosenbrock", self.dim, 10, POSSIBLE, |dim| dim >= 2 && dim.is_multiple_of(2))?;
        Ok(boxed::problem(sterna::targets::Rosenbrock::new(dim)))
    }
}
