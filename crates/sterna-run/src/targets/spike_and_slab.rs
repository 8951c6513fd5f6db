//! `kind = "spike-slab"`: a spike and a slab in a box.

use super::{About, Kind, boxed, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "1 or more";

/// Fields of `kind = "spike-slab"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpikeAndSlab {
    /// Dimension, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for SpikeAndSlab {
    fn about(&self) -> About {
        About {
            possible: POSSIBLE,
            about: "half of the mass in a mode that no walk finds, in a box: the evidence is known",
        }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("spike-slab", self.dim, 10, POSSIBLE, |dim| dim >= 1)?;
        Ok(boxed::problem(sterna::targets::SpikeAndSlab::new(dim)))
    }
}
