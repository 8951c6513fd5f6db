//! Members of the family of annealing paths.

mod diffused;
mod framed;
mod geometric;
mod reference;
mod spline;

pub use diffused::Diffused;
pub use framed::Framed;
pub use geometric::Geometric;
pub use reference::{Prior, Reference};
pub use spline::{Knot, Spline};
