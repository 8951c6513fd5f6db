//! `kind = "affine"`: means and covariances of neighbouring chains are matched; on molecules, in internal coordinates.

use super::{Kind, Plan, Planned, fitted_to, steps, under_guard};
use crate::error::JobError;
use crate::references::Ground;
use serde::{Deserialize, Serialize};
use sterna::acceleration::{Acceleration, FitAffine};
use sterna_molecule::FitConditionalAffine;

/// Fields of `kind = "affine"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::{Affine, Covariance};
///
/// let accelerator = Affine { covariance: Covariance::Full, ..Affine::default() };
/// let config = Config { accelerator: accelerator.into(), ..Config::default() };
/// assert_eq!(config, Config::parse("[accelerator]\nkind = \"affine\"\ncovariance = \"full\"", &[])?);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Affine {
    /// K, which is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// What is matched.
    pub covariance: Covariance,
}

/// What an affine map matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// Variances.
    #[default]
    Diagonal,
    /// Covariances.
    Full,
}

impl Affine {
    /// Whether it matches covariances.
    pub fn is_full(&self) -> bool {
        self.covariance == Covariance::Full
    }
}

impl Kind for Affine {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        let steps = steps("affine", self.steps, 1, 1..=1)?;
        let density = match &job.ground {
            Ground::Density(density) => density,
            Ground::Molecule(hot) => {
                let (molecule, temperatures) = (hot.molecule.clone(), hot.path.temperatures());
                let fit = FitConditionalAffine { molecule, temperatures };
                return fitted_to(hot, under_guard(fit, job.config), steps);
            }
        };
        let fit = FitAffine { full: self.is_full() };
        density.plan(Acceleration::Fitted(under_guard(fit, job.config)), steps)
    }

    fn steps(&self) -> Option<usize> {
        self.steps
    }

    fn usual_steps(&self) -> Option<usize> {
        Some(1)
    }
}
