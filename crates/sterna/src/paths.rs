//! Members of the family of annealing paths.

mod diffused;
mod geometric;
mod reference;

pub use diffused::Diffused;
pub use geometric::Geometric;
pub use reference::{Prior, Reference};
