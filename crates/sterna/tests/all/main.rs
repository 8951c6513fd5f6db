//! Tests of what `sterna` offers, one module per subject, in one binary.

#![allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")]

mod accelerators;
mod among;
mod annealing;
mod auto;
mod bad_input;
mod calibration;
mod choice;
mod closed_forms;
mod collected;
mod common;
mod engine;
mod fitted_runs;
mod invariance;
mod last_look;
mod legs;
mod repeated;
mod resume;
mod sameness;
mod slice;
mod spline;
mod starts;
mod theory;
mod trace;
