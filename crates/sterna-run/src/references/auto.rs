//! `kind = "auto"`, and where no kind is said: what suits the target.

use super::{Ground, Kind, Prior, ReferenceKind, StandardNormal, Tempered};
use crate::config::{Config, Numbers};
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
    /// Of other targets: its mean, one number or one for each coordinate; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Of other targets: its standard deviation, one number or one for each coordinate.
    pub scale: Numbers,
}

impl Default for Auto {
    fn default() -> Self {
        let StandardNormal { mean, scale } = StandardNormal::default();
        Self { temperature: None, mean, scale }
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
        let of_a_molecule = |key, value: &Numbers| {
            let reason = "its reference is the same energy at a higher temperature";
            Err(JobError::combination(key, value, "for a molecule", reason))
        };
        if problem.molecule.is_some() && self.scale != Numbers::One(1.0) {
            return of_a_molecule("reference.scale", &self.scale);
        }
        if let (Some(_), Some(mean)) = (&problem.molecule, &self.mean) {
            return of_a_molecule("reference.mean", mean);
        }
        if problem.prior.is_some() && *self == Self::default() {
            return Ok(Prior {}.into());
        }
        Ok(match problem.molecule {
            Some(_) => Tempered { temperature: self.temperature }.into(),
            None => StandardNormal { mean: self.mean.clone(), scale: self.scale.clone() }.into(),
        })
    }
}
