//! Tests of what `sterna-cli` offers, one module per subject, in one binary.

mod reproduce;
#[cfg(feature = "mpi")]
mod spread;
