//! `kind = "shells"`: two Gaussian shells in a box.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2 or more";

/// Fields of `kind = "shells"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shells {
    /// Dimension, 2 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Shells {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "two Gaussian shells in a box: the evidence is known" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("shells", self.dim, 2, POSSIBLE, |dim| dim >= 2)?;
        Ok(boxed::problem(sterna::targets::Shells::new(dim)))
    }
}
