//! `kind = "none"`: plain swaps, which is parallel tempering.

use super::{GpuCannot, Kind, Plan, Planned, steps};
use crate::config::PathShape;
use crate::error::JobError;
use crate::references::Ground;
use serde::{Deserialize, Serialize};
use sterna::acceleration::Acceleration;

/// Fields of `kind = "none"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoAccelerator {
    /// K, which is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
}

impl Kind for NoAccelerator {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        let steps = steps("none", self.steps, 0, 0..=0)?;
        let acceleration = Acceleration::None;
        match &job.ground {
            Ground::Density(density) if job.config.schedule.path == PathShape::Spline => {
                density.spline_plan()
            }
            Ground::Density(density) => density.plan(acceleration, steps),
            Ground::Molecule(hot) => Ok(Plan::new(hot.path.clone(), acceleration, steps)),
        }
    }

    fn steps(&self) -> Option<usize> {
        self.steps
    }

    fn usual_steps(&self) -> Option<usize> {
        None
    }

    fn collect(&self, _: bool) -> Option<u64> {
        None
    }

    fn on_gpu(&self) -> Result<(), GpuCannot> {
        Ok(())
    }
}
