//! `kind = "alanine-dipeptide"`: the molecule of the paper, built in.

use super::molecule::{check_dimension, refused};
use super::{About, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Fields of `kind = "alanine-dipeptide"`.
///
/// ```
/// use sterna_run::targets::{AlanineDipeptide, TargetKind};
///
/// let warm: TargetKind = AlanineDipeptide { temperature: Some(330.0), ..AlanineDipeptide::default() }.into();
/// assert_eq!(warm.problem()?.dim(), 63);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlanineDipeptide {
    /// Dimension, which is 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Kelvin, 300 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl Kind for AlanineDipeptide {
    fn about(&self) -> About {
        let about = "22 atoms in vacuum (amber14), centre of mass removed; temperature = 300.0";
        About { possible: "63", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let temperature = super::molecule::temperature(self.temperature)?;
        let molecule = sterna_molecule::alanine_dipeptide(temperature).map_err(refused)?;
        check_dimension(self.dim, &molecule)?;
        Ok(super::molecule::problem(molecule))
    }

    fn in_force(&self, problem: &Problem) -> Vec<(&'static str, toml::Value)> {
        super::molecule::in_force(problem)
    }
}
