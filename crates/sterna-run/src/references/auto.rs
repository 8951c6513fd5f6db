//! `kind = "auto"`, and where no kind is said: what suits the target.

use super::{
    Anchor, Components, Fitted, Ground, Kind, PeptideBonds, Prior, ReferenceKind, StandardNormal, Tempered,
};
use crate::config::{AcceleratorKind, Config, Device, Numbers, PathShape, TargetKind};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use sterna::fitted::Covariance;

/// Fields of `kind = "auto"`: those of the kinds that it may come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Auto {
    /// Of molecules: its temperature in kelvin, 1200 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Of molecules: whether peptide bonds get hot with the rest; if not given, they do unless a flow is trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peptide_bonds: Option<PeptideBonds>,
    /// Of other targets: its mean, one number or one for each coordinate; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Of other targets: its standard deviation, one number or one for each coordinate.
    pub scale: Numbers,
    /// Of targets whose reference is fitted: the end of the second leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// Of those: what is fitted of covariances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Covariance>,
    /// Of those: normals of the mixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
}

impl Default for Auto {
    fn default() -> Self {
        let StandardNormal { mean, scale } = StandardNormal::default();
        let (temperature, peptide_bonds, anchor) = (None, None, None);
        Self { temperature, peptide_bonds, mean, scale, anchor, covariance: None, components: None }
    }
}

impl Kind for Auto {
    fn ground(&self, problem: &Problem, config: &Config) -> Result<Ground, JobError> {
        self.settled(problem, config)?.ground(problem, config)
    }

    fn settled(&self, problem: &Problem, config: &Config) -> Result<ReferenceKind, JobError> {
        let of_molecules =
            [("temperature", self.temperature.is_some()), ("peptide_bonds", self.peptide_bonds.is_some())];
        if let (None, Some((field, _))) = (&problem.molecule, of_molecules.iter().find(|(_, given)| *given)) {
            return Err(JobError::of_molecules(&format!("reference.{field}"), problem.kind.kind()));
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
            Some(_) => Tempered { temperature: self.temperature, peptide_bonds: self.peptide_bonds }.into(),
            None if wants_fit(problem, config) => {
                let fitted = Fitted {
                    anchor: self.anchor.unwrap_or_default(),
                    mean: self.mean.clone(),
                    scale: self.scale.clone(),
                    covariance: self.covariance,
                    components: self.components.unwrap_or_default(),
                };
                fitted.checked(problem)?.into()
            }
            None => StandardNormal { mean: self.mean.clone(), scale: self.scale.clone() }.into(),
        })
    }
}

/// Posteriors and targets of users are anywhere and of any width. A path over moved knots needs an end that stays, a transport that was made elsewhere belongs to the reference
/// that it was made for, and a step size for each chain to chains whose number is known.
fn wants_fit(problem: &Problem, config: &Config) -> bool {
    let of_a_user = matches!(problem.kind, TargetKind::Own(_) | TargetKind::Stan(_) | TargetKind::Library(_));
    let is_posterior = matches!(problem.kind, TargetKind::Mrna(_) | TargetKind::Galaxies(_));
    use AcceleratorKind::{Affine, Auto, None};
    let needs_no_network = matches!(config.accelerator, None(_) | Affine(_) | Auto(_));
    let follows = needs_no_network || config.accelerator.trains();
    let on_cpu = config.run.device == Device::Cpu;
    let straight = config.schedule.path == PathShape::Geometric;
    (of_a_user || is_posterior) && follows && on_cpu && straight && config.explorer.step_sizes().is_none()
}
