//! `kind = "scaling"`: of molecules, displacements of stiff coordinates scaled by √(T′/T).

use super::{Kind, Plan, Planned, fitted_to, steps, under_guard};
use crate::error::JobError;
use crate::references::Ground;
use serde::{Deserialize, Serialize};
use sterna_molecule::FitScaling;

/// Fields of `kind = "scaling"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::Scaling;
/// use sterna_run::targets::AlanineDipeptide;
///
/// let (target, accelerator) = (AlanineDipeptide::default().into(), Scaling::default().into());
/// let config = Config { target, accelerator, ..Config::default() };
/// assert_eq!(config.accelerator.kind(), "scaling");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scaling {
    /// K, which is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
}

impl Kind for Scaling {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        let Ground::Molecule(hot) = &job.ground else {
            return Err(JobError::of_molecules("accelerator.kind = \"scaling\"", job.problem.kind.kind()));
        };
        let steps = steps("scaling", self.steps, 1, 1..=1)?;
        let (molecule, temperatures) = (hot.molecule.clone(), hot.path.temperatures());
        fitted_to(hot, under_guard(FitScaling { molecule, temperatures }, job.config), steps)
    }

    fn steps(&self) -> Option<usize> {
        self.steps
    }

    fn usual_steps(&self) -> Option<usize> {
        Some(1)
    }
}
