//! Jobs: configs become run folders.

pub mod accelerators;
pub mod bench;
pub mod builtin;
pub mod checkpoint;
pub mod config;
pub mod draws_file;
pub mod draws_store;
mod error;
pub mod evaluate;
pub mod fuzz;
pub mod job;
pub mod library;
pub mod points_file;
pub mod summary;
pub mod verify;

pub use config::Config;
pub use error::JobError;
pub use job::{Changes, Observer, Progress, resume, run, sample};
pub use summary::{Alarm, Summary};

/// The built-in demo.
pub const DEMO: &str = "\
seed = 1

[target]
kind = \"gmm\"

[chains]
count = 12
ensembles = 4

[run]
iterations = 50000
";
