//! `kind = "standard-normal"`: N(0, I), or wider by a factor.

use super::{Density, Ground, Kind, ReferenceKind};
use crate::config::Config;
use crate::error::{JobError, known};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use sterna::paths::Reference;

/// Fields of `kind = "standard-normal"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StandardNormal {
    /// Its standard deviation in every coordinate: 1, or more where the target is wider.
    pub scale: f64,
}

impl Default for StandardNormal {
    fn default() -> Self {
        Self { scale: 1.0 }
    }
}

impl Kind for StandardNormal {
    fn ground(&self, problem: &Problem, _: &Config) -> Result<Ground, JobError> {
        if problem.molecule.is_some() {
            known("reference.kind", "standard-normal", &["tempered"])?;
        }
        let (scale, dim, target) = (self.scale, problem.dim(), problem.target.clone());
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(JobError::setting("reference.scale", scale, "it must be positive"));
        }
        let Some(own) = &problem.reference else {
            let unusual = (scale != 1.0).then(|| ("reference.scale", scale.to_string()));
            let reference = Reference::normal(vec![0.0; dim], vec![scale; dim]);
            return Ok(Ground::Density(Density { target, reference, unusual }));
        };
        let (mean, deviation) = (own.mean.clone(), own.deviation.clone());
        if (mean.len(), deviation.len()) != (dim, dim) {
            let (means, deviations) = (mean.len(), deviation.len());
            return Err(JobError::Config(format!(
                "Problem::reference has {means} means and {deviations} standard deviations, but the target has dimension {dim}"
            )));
        }
        if let Some(bad) = deviation.iter().find(|d| !(**d > 0.0 && d.is_finite())) {
            return Err(JobError::setting("Problem::reference's deviation", bad, "it must be positive"));
        }
        if let Some(bad) = mean.iter().find(|m| !m.is_finite()) {
            return Err(JobError::setting("Problem::reference's mean", bad, "it must be finite"));
        }
        let standard = mean.iter().all(|m| *m == 0.0) && deviation.iter().all(|d| *d == 1.0);
        let unusual = (!standard).then(|| ("Problem::reference", "another normal".to_string()));
        Ok(Ground::Density(Density { target, reference: Reference::normal(mean, deviation), unusual }))
    }

    fn settled(&self, _: &Problem) -> Result<ReferenceKind, JobError> {
        Ok(self.clone().into())
    }
}
