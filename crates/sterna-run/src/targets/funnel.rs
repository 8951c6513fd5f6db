//! `kind = "funnel"`: Neal's funnel.

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2 or more";

/// Fields of `kind = "funnel"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Funnel {
    /// Dimension, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Funnel {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "Neal's funnel" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("funnel", self.dim, 10, POSSIBLE, |dim| dim >= 2)?;
        Ok(Problem::recorded(sterna::targets::Funnel::new(dim)))
    }
}
