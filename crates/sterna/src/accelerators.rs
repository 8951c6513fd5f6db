//! Members of the family of accelerators.

mod cmcd;
mod diffusion;
mod flow;
mod framed;
mod gaussian;
mod identity;
mod in_turn;
mod per_pair;

pub use cmcd::{Cmcd, CmcdSteps, NoDrift, NormalDrift};
pub use diffusion::{Diffusion, DiffusionSteps, Integrator};
pub use flow::FlowAccelerator;
pub use framed::{Framed, tamed};
pub use gaussian::{Gaussian, GaussianSteps};
pub use identity::Identity;
pub use in_turn::InTurn;
pub use per_pair::PerPair;
