//! `kind = "monotone"`: each coordinate moves by a monotone map of its own law on either chain.

use super::{Kind, OF_NETWORKS, Plan, Planned, steps, under_guard};
use crate::error::JobError;
use crate::references::Ground;
use serde::{Deserialize, Serialize};
use sterna::acceleration::{Acceleration, FitMonotone};

/// Fields of `kind = "monotone"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::Monotone;
///
/// let config = Config { accelerator: Monotone::default().into(), ..Config::default() };
/// assert_eq!(config, Config::parse("[accelerator]\nkind = \"monotone\"", &[])?);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Monotone {
    /// K, which is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
}

impl Kind for Monotone {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        let steps = steps("monotone", self.steps, 1, 1..=1)?;
        match &job.ground {
            Ground::Density(density) => {
                density.plan(Acceleration::Fitted(under_guard(FitMonotone, job.config)), steps)
            }
            Ground::Molecule(_) => Err(JobError::combination(
                "accelerator.kind",
                "\"monotone\"",
                "for molecules",
                "their torsions have monotone maps with \"affine\"",
            )),
        }
    }

    fn steps(&self) -> Option<usize> {
        self.steps
    }

    fn usual_steps(&self) -> Option<usize> {
        Some(1)
    }

    /// A law has more to it than a mean and a width.
    fn collect(&self, _: bool) -> Option<u64> {
        Some(OF_NETWORKS)
    }
}
