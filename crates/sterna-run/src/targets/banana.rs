//! `kind = "banana"`: a normal bent along a parabola.

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2 or more";

/// Fields of `kind = "banana"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Banana {
    /// Dimension, 2 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Banana {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "a normal bent along a parabola" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("banana", self.dim, 2, POSSIBLE, |dim| dim >= 2)?;
        Ok(Problem::recorded(sterna::targets::Banana::new(dim)))
    }
}
