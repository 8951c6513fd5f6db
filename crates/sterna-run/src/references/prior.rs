//! `kind = "prior"`: a model's own prior. The path tempers the likelihood, and log Z is the log evidence.

use super::{Density, Ground, Kind, ReferenceKind};
use crate::config::Config;
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Fields of `kind = "prior"`: none, the problem knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prior {}

impl Kind for Prior {
    fn ground(&self, problem: &Problem, _: &Config) -> Result<Ground, JobError> {
        let Some(prior) = &problem.prior else {
            let kind = format!("for a target of kind \"{}\"", problem.kind.kind());
            let reason = "its likelihood and prior are not known apart; Problem::from_likelihood tells them in a program";
            return Err(JobError::combination("reference.kind", "\"prior\"", kind, reason));
        };
        let is_standard = |(mean, deviation): (&[f64], &[f64])| {
            mean.iter().all(|mean| *mean == 0.0) && deviation.iter().all(|deviation| *deviation == 1.0)
        };
        let unusual = !prior.as_normal().is_some_and(is_standard);
        let unusual = unusual.then(|| ("reference.kind", "\"prior\"".to_string()));
        Ok(Ground::Density(Density {
            target: problem.target.clone(),
            reference: prior.clone(),
            unusual,
            is_anchor: false,
        }))
    }

    fn settled(&self, _: &Problem, _: &Config) -> Result<ReferenceKind, JobError> {
        Ok(self.clone().into())
    }
}
