//! Members of the family of local moves.

mod followed;
mod hmc;

pub use followed::Followed;
pub use hmc::{Hmc, StepSizes};
