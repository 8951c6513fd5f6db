//! Members of the family of accelerators.

mod identity;

pub use identity::Identity;
