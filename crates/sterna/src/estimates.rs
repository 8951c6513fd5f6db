//! What a run says: log Z, barriers, round-trip rates, effective sample sizes.

mod bar;
mod barrier;
mod blocks;
mod coverage;
mod crooks;
mod folded;
mod fourier;
mod log_z;
mod mixing;
mod ranks;
mod series;

pub use bar::{Bar, bar};
pub use barrier::{barrier_of_rejection, global_barrier, local_barrier, rejection_across, round_trip_rate};
pub use blocks::{Series, effective_draws, most_kept};
pub use coverage::{Outside, Seen};
pub use crooks::{Crooks, crooks};
pub use folded::{FoldedLadder, FoldedWeights};
pub(crate) use log_z::log_mean_exp;
pub use log_z::{
    LadderWeights, LogZ, PairEstimate, Works, log_z, log_z_of, log_z_of_beginning, log_z_of_parts,
};
pub use mixing::{Mixing, mixing};
pub use ranks::{bulk_draws, normal_quantile, quantile, tail_draws};
pub use series::{autocorrelation, effective_sample_size, long_run_variance, mean_with_error};
