//! `kind = "correlated-normal"`: a normal with equal correlations in a box.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "1 or more";

/// Fields of `kind = "correlated-normal"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorrelatedNormal {
    /// Dimension, 25 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for CorrelatedNormal {
    fn about(&self) -> About {
        About {
            possible: POSSIBLE,
            about: "a normal with equal correlations in a box: the evidence is known",
        }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("correlated-normal", self.dim, 25, POSSIBLE, |dim| dim >= 1)?;
        Ok(boxed::problem(sterna::targets::CorrelatedNormal::new(dim)))
    }
}
