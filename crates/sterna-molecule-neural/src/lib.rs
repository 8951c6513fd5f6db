//! Where networks meet molecules: transports between temperatures that a network refines, and fits that are judged on
//! held-out samples.
//!
//! - [`TrainMoleculeFlow`] trains a [`MoleculeFlow`] inside the conditional affine transport of a molecule: [`CircularFlow`]
//!   moves the soft torsions, [`StiffFlow`] the other coordinates given these; [`FrozenMoleculeFlow`] is the trained map;
//! - [`FitControlled`] fits a controlled diffusion in closed form and chooses, pair by pair, how far its steps relax.
//!
//! Both are [`sterna::acceleration::Fit`]s, so a run fits them between its rounds.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")
)]

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
