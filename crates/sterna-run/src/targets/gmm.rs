//! `kind = "gmm"`: a mixture of 40 narrow normals (App. E.1).

use super::{About, Kind, dimension};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

const POSSIBLE: &str = "2 or more";

/// Fields of `kind = "gmm"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::targets::Gmm;
///
/// let config = Config { target: Gmm { dim: Some(50) }.into(), ..Config::default() };
/// assert_eq!(config.problem()?.dim(), 50);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gmm {
    /// Dimension, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Gmm {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "40 Gaussian modes in a plane, padded to any dimension" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let dim = dimension("gmm", self.dim, 10, POSSIBLE, |dim| dim >= 2)?;
        Ok(Problem::recorded(sterna::targets::Gmm::paper(dim)))
    }
}
