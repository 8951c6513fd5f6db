//! Members of the family of local moves.

mod between;
mod followed;
mod hmc;
mod slice;

pub use followed::Followed;
pub use hmc::{Hmc, STEP_SIZE_BOUNDS, StepSize, StepSizes};
pub use slice::Slice;
