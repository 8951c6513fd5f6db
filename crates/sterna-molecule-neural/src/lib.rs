//! Where networks meet molecules: transports between temperatures that a network refines, and fits that are judged on
//! held-out samples.
//!
//! - [`TrainMoleculeFlow`] trains a [`MoleculeFlow`] inside the conditional affine transport of a molecule: [`CircularFlow`]
//!   moves the soft torsions, [`StiffFlow`] the other coordinates given these; [`FrozenMoleculeFlow`] is the trained map;
//! - [`FitControlled`] fits a controlled diffusion in closed form and chooses, pair by pair, how far its steps relax.
//!
//! Both are [`sterna::acceleration::Fit`]s, so a run fits them between its rounds.
//!
//! ```no_run
//! use std::sync::Arc;
//! use sterna::acceleration::Acceleration;
//! use sterna_molecule::{TemperedPath, alanine_dipeptide};
//! use sterna_molecule_neural::FitControlled;
//!
//! let molecule = Arc::new(alanine_dipeptide(300.0)?);
//! let path = Arc::new(TemperedPath::new(molecule.clone(), 1200.0)?);
//! let temperatures = path.temperatures();
//! let fit = FitControlled { molecule, temperatures, path, steps: 5, seed: 1, guard: true };
//! let acceleration = Acceleration::Fitted(Arc::new(fit));
//! # Ok::<(), sterna_molecule::MoleculeError>(())
//! ```

mod circular_flow;
mod density;
mod fit_controlled;
mod flow;
mod samples;
mod stiff_flow;
mod train_flow;

pub use circular_flow::{CircularFlow, CircularFlowConfig};
pub use fit_controlled::FitControlled;
pub use flow::{FrozenMoleculeFlow, Inner, MoleculeFlow, MoleculeFlowConfig};
pub use stiff_flow::{StiffFlow, StiffFlowConfig};
pub use train_flow::TrainMoleculeFlow;

/// A molecule that cannot be fitted stops the run.
fn stopped(error: sterna_molecule::MoleculeError) -> sterna::Error {
    sterna::Error::Transport(Box::new(error))
}
