//! `[explorer]`: local moves, one file for each kind.

mod auto;
mod hmc;
mod mala;
mod slice;
mod step_size;
mod steps;

pub use auto::Auto;
pub use hmc::Hmc;
pub use mala::Mala;
pub use slice::Slice;
pub use step_size::{Adaptation, Masses, StepSizeConfig};
pub use steps::Steps;

use crate::config::kinds::kinds;
use crate::error::JobError;
use crate::problem::Problem;
use std::sync::Arc;
use sterna::explorer::Explorer;
use sterna::run::Settings;

/// What a kind of explorer does.
pub trait Kind {
    /// Its moves, as a run takes them.
    fn moves(&self) -> Arc<dyn Explorer>;

    /// Masses of its moves, where they have some.
    fn masses(&self) -> Option<Masses> {
        None
    }

    /// Step sizes, where it has one for each chain.
    fn step_sizes(&self) -> Option<&[f64]> {
        None
    }

    /// Molecules: Metropolis moves of each iteration that turn a torsion.
    fn torsion_moves(&self) -> usize {
        0
    }
}

kinds! {
    /// Local moves.
    pub enum ExplorerKind: dyn Kind, by default Hmc {
        /// Hamiltonian moves that find their step at each point.
        Auto(Auto) = "auto",
        /// Hamiltonian Monte Carlo.
        Hmc(Hmc) = "hmc",
        /// The same with one leapfrog step.
        Mala(Mala) = "mala",
        /// Slice sampling, without scores.
        Slice(Slice) = "slice",
    }
}

impl ExplorerKind {
    /// Writes the moves into the settings of a run on a problem.
    pub fn choose(&self, problem: &Problem, settings: &mut Settings) -> Result<(), JobError> {
        if problem.molecule.is_none() {
            let kind = problem.kind.kind();
            if self.torsion_moves() > 0 {
                return Err(JobError::of_molecules("explorer.torsion_moves", kind));
            }
            if self.role().masses() == Some(Masses::Atoms) {
                return Err(JobError::of_molecules("explorer.masses = \"atoms\"", kind));
            }
        }
        if let Some(sizes) = self.step_sizes().filter(|sizes| sizes.len() != settings.chains) {
            let (found, chains) = (sizes.len(), settings.chains);
            return Err(JobError::Config(format!(
                "explorer.step_size has {found} number{}; {chains} chains need {chains}",
                if found == 1 { "" } else { "s" }
            )));
        }
        settings.explorer = self.role().moves();
        Ok(())
    }

    /// Step sizes, where there is one for each chain.
    pub fn step_sizes(&self) -> Option<&[f64]> {
        self.role().step_sizes()
    }

    /// Whether moves of a molecule have the masses of its atoms.
    pub fn weighs_atoms(&self) -> bool {
        self.role().masses() == Some(Masses::Atoms)
    }

    /// Molecules: Metropolis moves of each iteration that turn a torsion.
    pub fn torsion_moves(&self) -> usize {
        self.role().torsion_moves()
    }
}
