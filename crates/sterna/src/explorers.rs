//! Members of the family of local moves.

mod hmc;

pub use hmc::{Hmc, StepSizes};
