//! Tests of what `sterna-neural` offers, one module per subject, in one binary.

#![allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")]

mod bits;
mod common;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cuda_engine;
#[cfg(feature = "cuda")]
mod cuda_ladders;
mod derivatives;
mod likelihood;
mod networks;
mod polished;
mod references;
mod splines;
mod trained;
mod weights;
