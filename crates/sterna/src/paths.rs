//! Members of the family of annealing paths.

mod geometric;

pub use geometric::{Geometric, Reference};
