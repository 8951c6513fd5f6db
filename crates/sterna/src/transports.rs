//! Transports in closed form: no training, everything about them can be checked exactly.

mod affine;

pub use affine::Affine;
