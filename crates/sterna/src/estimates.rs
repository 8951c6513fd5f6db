//! What a run says: log Z, barriers, round-trip rates, effective sample sizes.

mod bar;
mod barrier;
mod coverage;
mod crooks;
mod log_z;
mod series;

pub use bar::{Bar, bar};
pub use barrier::{global_barrier, local_barrier, round_trip_rate};
pub use coverage::{Outside, Seen};
pub use crooks::{Crooks, crooks};
pub use log_z::{LogZ, PairEstimate, log_z};
pub use series::{effective_sample_size, long_run_variance, mean_with_error};
