//! Members of the family of annealing paths.

mod diffused;
mod framed;
mod geometric;
mod reference;

pub use diffused::Diffused;
pub use framed::Framed;
pub use geometric::Geometric;
pub use reference::{Prior, Reference};
