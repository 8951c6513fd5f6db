//! Parallel tempering, accelerated by transports.
//!
//! The modules follow the paper *Accelerated Parallel Tempering via Neural Transports*; start with
//! [`iteration`], which is its Algorithm 1.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")
)]

pub mod acceleration;
pub mod accelerator;
pub mod accelerators;
pub mod annealing;
pub mod balance;
mod batch;
pub mod bend;
pub mod call;
mod differences;
pub mod engine;
mod ensemble;
mod error;
pub mod estimates;
pub mod exchange;
pub mod explorer;
pub mod explorers;
pub mod fitted;
pub mod frame;
mod index_process;
pub mod iteration;
pub mod lanes;
pub mod last_look;
mod partners;
pub mod path;
pub mod path_formula;
pub mod paths;
mod plain_sampler;
pub mod priors;
pub mod records;
pub mod run;
pub mod schedule;
pub mod streams;
pub mod supports;
mod swap;
mod target;
pub mod targets;
pub mod trace;
pub mod transport;
pub mod transports;
pub mod weight;

pub use batch::Batch;
pub use differences::Differences;
pub use ensemble::Ensemble;
pub use error::{BadState, Error, Result};
pub use index_process::{IndexProcess, Legs, even_odd};
pub use iteration::{Recorder, Sampler, Step, Workspace, iterate};
pub use path::Points;
pub use plain_sampler::plain_sampler;
pub use schedule::Schedule;
pub use streams::Streams;
pub use swap::{Swap, decide};
pub use target::{Counted, Evaluation, Target};
