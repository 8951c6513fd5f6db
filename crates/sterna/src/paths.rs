//! Members of the family of annealing paths.

mod diffused;
mod geometric;

pub use diffused::Diffused;
pub use geometric::{Geometric, Reference};
