//! `kind = "log-gamma"`: four modes with heavy tails in a box.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2 or more";

/// Fields of `kind = "log-gamma"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogGamma {
    /// Dimension, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for LogGamma {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "four modes with heavy tails in a box: the evidence is known" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("log-gamma", self.dim, 10, POSSIBLE, |dim| dim >= 2)?;
        Ok(boxed::problem(sterna::targets::LogGamma::new(dim)))
    }
}
