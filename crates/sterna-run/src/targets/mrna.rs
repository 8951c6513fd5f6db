//! `kind = "mrna"`: mRNA transfection, two modes that weigh the same.

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::{Constrain, Problem};
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "5";

/// Fields of `kind = "mrna"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mrna {
    /// Dimension, which is 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Mrna {
    fn about(&self) -> About {
        let about = "mRNA transfection, a posterior of log10 rates: two equal modes";
        About { possible: POSSIBLE, about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        dimension("mrna", self.dim, 5, POSSIBLE, |dim| dim == 5)?;
        Ok(Problem::new(sterna::targets::Mrna).with_values(Values, sterna::targets::Mrna::NAMES))
    }
}

struct Values;

impl Constrain for Values {
    fn values(&self) -> usize {
        sterna::targets::Mrna::NAMES.len()
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        values.copy_from_slice(&sterna::targets::Mrna::values(point));
    }
}
