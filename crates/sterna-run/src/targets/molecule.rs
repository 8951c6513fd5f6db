//! `kind = "molecule"`: any small molecule in vacuum, from files.

use super::{About, File, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use sterna_molecule::{Molecule, MoleculeError};

/// Kelvin, where the config does not say.
const TEMPERATURE: f64 = 300.0;

/// Kelvin at most: no force field holds there, and energies are still numbers. At least 1: colder, draws from the reference find nothing.
pub const MOST_KELVIN: f64 = 1e6;

/// Fields of `kind = "molecule"`. Names of files are relative to the config's folder.
///
/// ```
/// use sterna_run::targets::{MoleculeFiles, TargetKind};
///
/// let files = MoleculeFiles { system: Some("system.xml".into()), ..MoleculeFiles::default() };
/// let error = TargetKind::from(files).problem().unwrap_err();
/// assert!(error.to_string().contains("needs target.positions"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoleculeFiles {
    /// Dimension, which follows from the atoms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// Kelvin, 300 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// OpenMM's serialized System (XML).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<PathBuf>,
    /// A file whose first conformation is the start: .pdb, or .json or .csv in nm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<PathBuf>,
}

impl Kind for MoleculeFiles {
    fn about(&self) -> About {
        let about = "any small molecule in vacuum: system = OpenMM's XML, positions, temperature";
        About { possible: "3 atoms - 3", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let file = |field: &str, file: &Option<PathBuf>, what: &str| {
            file.clone().ok_or_else(|| {
                JobError::Config(format!("target.kind = \"molecule\" needs target.{field}: {what}"))
            })
        };
        let system = file("system", &self.system, "the XML that OpenMM's XmlSerializer writes of a System")?;
        let positions = file("positions", &self.positions, "a .pdb, .json or .csv file to start from")?;
        let temperature = temperature(self.temperature)?;
        let molecule = Molecule::read(&system, positions, temperature).map_err(|error| match error {
            MoleculeError::Io { path, source } => {
                let field = if path == system { "system" } else { "positions" };
                JobError::Config(format!("target.{field}: cannot read {}: {source}", path.display()))
            }
            other => refused(other),
        })?;
        check_dimension(self.dim, &molecule)?;
        Ok(problem(molecule))
    }

    fn in_force(&self, problem: &Problem) -> Vec<(&'static str, toml::Value)> {
        in_force(problem)
    }

    fn files(&mut self) -> Vec<File<'_>> {
        let system = self.system.as_mut().map(|path| File { path, kept_as: Some("system") });
        let positions = self.positions.as_mut().map(|path| File { path, kept_as: Some("positions") });
        [system, positions].into_iter().flatten().collect()
    }
}

/// The molecule in coordinates that know no masses.
pub(super) fn problem(molecule: Molecule) -> Problem {
    let molecule = Arc::new(molecule);
    Problem { molecule: Some(molecule.clone()), ..Problem::shared(molecule) }
}

/// What holds of a molecule where the config does not say.
pub(super) fn in_force(problem: &Problem) -> Vec<(&'static str, toml::Value)> {
    vec![("dim", (problem.dim() as i64).into()), ("temperature", TEMPERATURE.into())]
}

/// The temperature given, or the usual one.
pub(super) fn temperature(given: Option<f64>) -> Result<f64, JobError> {
    let kelvin = given.unwrap_or(TEMPERATURE);
    if (1.0..=MOST_KELVIN).contains(&kelvin) {
        return Ok(kelvin);
    }
    let reason = format!("it must be positive, between 1 and {MOST_KELVIN}, in kelvin");
    Err(JobError::setting("target.temperature", kelvin, reason))
}

/// A molecule that cannot be had is wrong input.
pub(super) fn refused(error: MoleculeError) -> JobError {
    match error {
        MoleculeError::Temperature(kelvin) => {
            JobError::setting("target.temperature", kelvin, "it must be positive and finite, in kelvin")
        }
        error => JobError::Config(error.to_string()),
    }
}

pub(super) fn check_dimension(given: Option<usize>, molecule: &Molecule) -> Result<(), JobError> {
    let (atoms, dim) = (molecule.atoms(), 3 * molecule.atoms() - 3);
    match given.filter(|&given| given != dim) {
        Some(given) => {
            let reason = format!("{atoms} atoms without their centre have {dim} coordinates");
            Err(JobError::setting("target.dim", given, reason))
        }
        None => Ok(()),
    }
}
