//! `kind = "auto"`, and where no kind is said: what suits the target.

use super::{Ground, Kind, ReferenceKind, StandardNormal, Tempered};
use crate::config::Config;
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Fields of `kind = "auto"`: those of the kinds that it may come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Auto {
    /// Of molecules: its temperature in kelvin, 1200 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Of other targets: its standard deviation in every coordinate.
    pub scale: f64,
}

impl Default for Auto {
    fn default() -> Self {
        Self { temperature: None, scale: StandardNormal::default().scale }
    }
}

impl Kind for Auto {
    fn ground(&self, problem: &Problem, config: &Config) -> Result<Ground, JobError> {
        self.settled(problem)?.ground(problem, config)
    }

    fn settled(&self, problem: &Problem) -> Result<ReferenceKind, JobError> {
        if problem.molecule.is_none() && self.temperature.is_some() {
            return Err(JobError::of_molecules("reference.temperature", problem.kind.kind()));
        }
        if problem.molecule.is_some() && self.scale != 1.0 {
            let reason = "its reference is the same energy at a higher temperature";
            return Err(JobError::combination("reference.scale", self.scale, "for a molecule", reason));
        }
        Ok(match problem.molecule {
            Some(_) => Tempered { temperature: self.temperature }.into(),
            None => StandardNormal { scale: self.scale }.into(),
        })
    }
}
