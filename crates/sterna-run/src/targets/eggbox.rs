//! `kind = "eggbox"`: an eggbox of narrow peaks.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2";

/// Fields of `kind = "eggbox"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Eggbox {
    /// Dimension, which is 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Eggbox {
    fn about(&self) -> About {
        About {
            possible: POSSIBLE,
            about: "equal narrow peaks in a regular pattern in a box: the evidence is known",
        }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        dimension("eggbox", self.dim, 2, POSSIBLE, |dim| dim == 2)?;
        Ok(boxed::problem(sterna::targets::Eggbox))
    }
}
