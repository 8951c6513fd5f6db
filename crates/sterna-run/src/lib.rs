//! Jobs: configs become run folders.

pub mod accelerators;
pub mod alarms;
pub mod baseline;
pub mod bench;
#[cfg(feature = "cuda")]
mod bench_cuda;
mod bench_sizes;
pub mod checkpoint;
pub mod chemistry;
mod closing;
pub mod compare;
pub mod config;
pub mod draws_file;
pub mod draws_store;
mod error;
pub mod evaluate;
pub mod explorers;
pub mod files;
pub mod fuzz;
pub mod job;
pub mod library;
pub mod merge;
pub mod molecules;
mod no_score;
pub mod payoff;
mod platform;
pub mod points_file;
mod posterior;
pub mod problem;
pub mod progress;
pub mod ranks;
pub mod references;
pub mod report;
pub mod reproduce;
mod spread;
pub mod stan;
pub mod starter;
pub mod summary;
pub mod targets;
mod timed;
pub mod traces;
pub mod trial;
pub mod verify;
pub mod zoo;

pub use alarms::Alarm;
pub use config::Config;
pub use error::JobError;
pub use job::{Changes, Job, Observer, Progress, resume, run, sample};
pub use problem::{Parameter, Problem};
pub use summary::Summary;

/// The built-in demo: a target on which plain swaps hardly bring a round trip.
pub const DEMO: &str = "\
seed = 1

[target]
kind = \"gmm\"
dim = 50

[chains]
count = 10
ensembles = 2

[accelerator]
kind = \"flow\"

[training]
collect = 3000
steps = 1500

[run]
iterations = 20000
";
