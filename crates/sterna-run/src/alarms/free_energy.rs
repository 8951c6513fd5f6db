//! Alarms of log Z.

use super::Evidence;
use sterna::estimates::global_barrier;
use sterna::run::Leg;
use sterna_testkit::p_values::chi_square;

/// Probability that parts of a sound run disagree so, if its error is right.
const BY_CHANCE: f64 = 1e-4;

/// A difference of log Z below this matters to nobody.
const SMALL: f64 = 0.05;

/// An error that rests on fewer round trips is no yardstick.
const FEW_TRIPS: u64 = 20;

/// Smallest and largest.
fn range(parts: &[f64]) -> (f64, f64) {
    let known = || parts.iter().copied().filter(|z| z.is_finite());
    (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max))
}

/// A barrier below this is none: one swap in a hundred is rejected.
const NO_BARRIER: f64 = 0.01;

impl Evidence<'_> {
    /// Halves of ladders against what the whole says of its error.
    pub(super) fn parts_disagree(&self) -> Option<String> {
        let far = |leg: &&Leg| {
            let known = leg.parts.iter().filter(|z| z.is_finite());
            let (count, error) = (known.clone().count(), leg.log_z.standard_error);
            if count < 2 || leg.round_trips < FEW_TRIPS || error.is_nan() || error <= 0.0 {
                return false;
            }
            let n = count as f64;
            let mean = known.clone().sum::<f64>() / n;
            let squares = known.clone().map(|z| (z - mean).powi(2)).sum::<f64>();
            // A part has the whole's variance as many times as there are parts.
            let statistic = squares / (n * error * error);
            let (lowest, highest) = range(&leg.parts);
            highest - lowest > SMALL && chi_square(statistic, count - 1) < BY_CHANCE
        };
        let leg = self.results.legs.iter().find(far)?;
        let (lowest, highest) = range(&leg.parts);
        Some(format!(
            "parts of the run (halves of ladders) put log Z between {lowest:.3} and {highest:.3}, by more than its error of {:.3} \
             explains: it had not settled when sampling began, or some parts missed what others saw; run longer \
             (sterna resume), with more tuning (schedule.rounds) or burn-in (run.burn_in)",
            leg.log_z.standard_error
        ))
    }

    /// A ladder without a barrier has not told its ends apart.
    pub(super) fn looks_like_reference(&self) -> Option<String> {
        let barrier = global_barrier(&self.results.rejection_rates);
        (barrier < NO_BARRIER && self.optima.is_empty()).then(|| {
            format!(
                "swaps are never rejected (Λ = {barrier:.1e}): as far as the chains have seen, the target is the reference, and \
                 log Z says no more than that; if it may have mass elsewhere, begin from a reference that is wider than it \
                 (reference.scale) or fitted to it (reference.kind = \"fitted\")"
            )
        })
    }

    pub(super) fn log_z_disagrees(&self) -> Option<String> {
        let z = &self.results.log_z;
        if !z.bar.is_finite() {
            return Some(
                "log Z is not known: of some neighbouring chains no proposal comes near where the other is, so that nothing tells \
                 their ratio; more chains, or a reference nearer to the target, then a longer run (sterna resume)"
                    .into(),
            );
        }
        if !z.standard_error.is_finite() {
            return Some(format!(
                "log Z ({:.3}) has no error: proposals are too few to tell; do not use it, and run longer (sterna resume)",
                z.bar
            ));
        }
        // What is no number agrees with nothing.
        let is_far = |apart: f64, error: f64| apart.is_nan() || apart > 1.0 + 10.0 * error;
        // What is said of two legs together has the sides of the first, which are held against what that one says by itself.
        let own = match &self.results.legs[..] {
            [first, _] => &first.log_z,
            _ => z,
        };
        let one_sided = is_far((own.bar - own.forward).abs(), own.standard_error);
        (one_sided || is_far(z.gap(), z.standard_error)).then(|| {
            format!(
                "log Z from forward weights ({:.3}), from backward weights ({:.3}) and from both ({:.3}) disagree: the chains \
                 overlap too little; trust BAR with caution, or use more chains",
                z.forward, z.backward, z.bar
            )
        })
    }
}
