//! `kind = "tempered"`: of molecules, the same energy at a higher temperature.

use super::{Ground, Hot, Kind, ReferenceKind};
use crate::accelerators::AcceleratorKind;
use crate::config::Config;
use crate::error::JobError;
use crate::job::own_ladders;
use crate::molecules;
use crate::problem::Problem;
use crate::spread::Spread;
use crate::targets::MOST_KELVIN;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::lanes::WIDTH;
use sterna_molecule::{Molecule, MoleculeError, TemperedPath};

/// Kelvin, where the config does not say.
pub const TEMPERATURE: f64 = 1200.0;

/// Fields of `kind = "tempered"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::references::Tempered;
///
/// let tempered = Tempered { temperature: Some(900.0), ..Tempered::default() };
/// let config = Config { reference: tempered.into(), ..Config::default() };
/// assert_eq!(config.reference.kind(), "tempered");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tempered {
    /// Its temperature in kelvin, 1200 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Whether peptide bonds get hot with the rest; if not given, they do unless a flow is trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peptide_bonds: Option<PeptideBonds>,
}

/// What peptide bonds do on chains hotter than the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeptideBonds {
    /// They get hot with the rest, and turn into cis.
    Heated,
    /// Torsion terms about them count as they do at the target.
    Held,
}

impl PeptideBonds {
    /// What holds where nothing was said. A flow learns from what hot chains show it, and cis forms come and go within thousands of
    /// iterations there.
    pub fn usual(config: &Config) -> Self {
        match &config.accelerator {
            AcceleratorKind::Flow(_) => Self::Held,
            _ => Self::Heated,
        }
    }

    /// As a config says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heated => "heated",
            Self::Held => "held",
        }
    }
}

impl Kind for Tempered {
    fn ground(&self, problem: &Problem, config: &Config) -> Result<Ground, JobError> {
        let Some(molecule) = &problem.molecule else {
            return Err(JobError::of_molecules("reference.kind = \"tempered\"", problem.kind.kind()));
        };
        let molecule = molecules::in_run(molecule, &config.explorer);
        let reference = self.temperature.unwrap_or(TEMPERATURE);
        if !(reference > molecule.temperature() && reference <= MOST_KELVIN) {
            let reason = format!(
                "it must be higher than the target's, target.temperature = {} K, and at most {MOST_KELVIN}",
                molecule.temperature()
            );
            return Err(JobError::setting("reference.temperature", reference, reason));
        }
        let moves = config.explorer.torsion_moves();
        if moves > 32 {
            return Err(JobError::setting("explorer.torsion_moves", moves, "at most 32 an iteration"));
        }
        let refused = |error: MoleculeError| JobError::Config(error.to_string());
        let molecule = match self.peptide_bonds.unwrap_or_else(|| PeptideBonds::usual(config)) {
            PeptideBonds::Held => {
                Arc::new(Molecule::clone(&molecule).holding_peptide_bonds().map_err(refused)?)
            }
            PeptideBonds::Heated => molecule,
        };
        let path = TemperedPath::new(molecule.clone(), reference).map_err(refused)?;
        // A molecule works out as many conformations together as there are lanes.
        let shared = Spread::together(molecule.clone(), own_ladders(problem, config), WIDTH);
        let path = path.with_torsion_moves(moves).map_err(refused)?.asking(Arc::new(shared));
        let path = Arc::new(path);
        Ok(Ground::Molecule(Hot { molecule, path }))
    }

    fn settled(&self, _: &Problem, _: &Config) -> Result<ReferenceKind, JobError> {
        Ok(self.clone().into())
    }
}
