//! Tests of what `sterna-molecule` offers, one module per subject, in one binary.

mod bad_input;
mod common;
mod controlled;
mod force_field;
mod internal;
mod molecule;
mod tempered;
mod torsion_moves;
mod transports;
