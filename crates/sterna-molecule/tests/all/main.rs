//! Tests of what `sterna-molecule` offers, one module per subject, in one binary.

#![allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")]

mod bad_input;
mod common;
mod controlled;
mod force_field;
mod internal;
mod molecule;
mod tempered;
mod torsion_moves;
mod transports;
