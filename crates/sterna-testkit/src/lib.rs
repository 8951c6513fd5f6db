//! Statistical tests for samplers: exact ladders to start from, moves to apply, p-values to judge by.
//!
//! A test here draws exactly from the law that a move must keep, applies the move once, and asks
//! whether the law is still the same. All of its p-values share one false-alarm level (Bonferroni),
//! all randomness comes from a seed, and a test that never fails proves nothing: [`broken`] holds
//! faults that each suite must catch.

pub mod accelerators;
pub mod between;
pub mod broken;
pub mod euler;
pub mod extended;
pub mod invariance;
pub mod ladders;
pub mod moves;
pub mod p_values;
pub mod together;
pub mod verdict;
pub mod zoo;

pub use accelerators::check_accelerator;
pub use between::{BetweenLadder, MixtureTarget};
pub use invariance::{Statistic, check_invariance};
pub use ladders::{DiffusedLadder, ExactLadder, GaussianLadder, MixtureLadder};
pub use together::Together;
pub use verdict::{Check, Verdict};

/// False-alarm level of a whole suite on a fresh seed, unless a test says otherwise.
pub const FALSE_ALARM: f64 = 1e-5;

/// The seed itself; or, where the variable `STERNA_FRESH_SEED` holds a number, one derived from both.
/// Pull requests run on fixed seeds, nightly checks and the curious on fresh ones.
#[expect(clippy::disallowed_methods, reason = "the one switch of the tests, and never of a sampler")]
pub fn seed(fixed: u64) -> u64 {
    let fresh = std::env::var("STERNA_FRESH_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    match fresh {
        // Odd multiples of a Weyl constant keep seeds apart.
        Some(fresh) => fixed.wrapping_add(fresh.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        None => fixed,
    }
}
