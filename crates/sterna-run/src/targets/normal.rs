//! `kind = "normal"`: a normal with diagonal precision.

use super::{About, Kind, dimension};
use crate::config::{MOST, Numbers};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::accelerators::NormalDrift;

const POSSIBLE: &str = "1 or more";
const DIM: usize = 10;
const PRECISION: f64 = 10.0;

/// Fields of `kind = "normal"`.
///
/// ```
/// use sterna_run::config::Numbers;
/// use sterna_run::targets::{Normal, TargetKind};
///
/// let narrow: TargetKind = Normal { precision: Some(Numbers::Each(vec![1.0, 100.0])), ..Normal::default() }.into();
/// assert_eq!(narrow.problem()?.dim(), 2);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Normal {
    /// Dimension, 10 if neither it nor a list is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Precision of each coordinate, or one for all; 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Numbers>,
    /// Mean of each coordinate, or one for all; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
}

impl Kind for Normal {
    fn about(&self) -> About {
        About { possible: POSSIBLE, about: "a normal with diagonal precision (default 10)" }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let normal = self.normal()?;
        let exact_drift = Some(Arc::new(NormalDrift::new(normal.clone())) as _);
        Ok(Problem { exact_drift, ..Problem::recorded(normal) })
    }

    fn in_force(&self, problem: &Problem) -> Vec<(&'static str, toml::Value)> {
        vec![("dim", (problem.dim() as i64).into()), ("precision", PRECISION.into()), ("mean", 0.0.into())]
    }
}

impl Normal {
    /// The normal itself.
    pub fn normal(&self) -> Result<sterna::targets::Normal, JobError> {
        let dim = dimension("normal", self.dim, DIM, POSSIBLE, |dim| dim >= 1)?;
        let precision = each("target.precision", self.precision.as_ref(), PRECISION, self.dim, dim)?;
        if let Some(bad) = precision.iter().find(|p| !(1.0 / MOST..=MOST).contains(*p)) {
            return Err(JobError::setting(
                "target.precision",
                bad,
                "it must be positive, between 1e-100 and 1e100",
            ));
        }
        let mean = each("target.mean", self.mean.as_ref(), 0.0, self.dim, precision.len())?;
        if mean.len() != precision.len() || mean.iter().any(|m| !(-MOST..=MOST).contains(m)) {
            return Err(JobError::Config(format!(
                "target.mean has {} numbers, target.precision {}: give finite numbers up to 1e100, as many of each",
                mean.len(),
                precision.len()
            )));
        }
        Ok(sterna::targets::Normal::new(mean, precision))
    }
}

/// One number repeated, or the list itself, whose length must agree with `target.dim`.
fn each(
    field: &str,
    numbers: Option<&Numbers>,
    default: f64,
    given: Option<usize>,
    dim: usize,
) -> Result<Vec<f64>, JobError> {
    match numbers {
        None => Ok(vec![default; dim]),
        Some(Numbers::One(x)) => Ok(vec![*x; dim]),
        Some(Numbers::Each(all)) if all.is_empty() || given.is_some_and(|d| d != all.len()) => {
            Err(JobError::Config(format!("{field} has {} numbers, but target.dim = {dim}", all.len())))
        }
        Some(Numbers::Each(all)) => Ok(all.clone()),
    }
}
