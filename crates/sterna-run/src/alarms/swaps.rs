//! Alarms of swaps: do replicas, and news with them, pass up and down the ladder?

use super::Evidence;
use sterna::estimates::global_barrier;
use sterna::schedule::{chains_for, cumulative_barrier};

/// No more chains than these are worth a try.
pub(crate) const MOST_ADVISED: usize = 2000;

/// Rejections of a pair that wants chains between: across a barrier of 1, about two of three swaps are rejected.
const HOLDS_BACK: f64 = 0.6;

/// Where the target is alone with a reference, each accepted swap is a draw of its own that took one evaluation: chains between cost more
/// than they bring until nine of ten are rejected.
const HOLDS_BACK_ALONE: f64 = 0.9;

/// Fewer round trips carry no estimate: the weight of a mode that 20 arrivals settle is known to a tenth at best.
const FEW_TRIPS: u64 = 20;

/// Below this share of what the swaps allow, local moves are the bottleneck …
const LOW_SHARE: f64 = 0.3;

/// … where the swaps allow so many: with 40, a sound run at half of what they allow falls below the share by chance in
/// fewer than two of a hundred.
const ENOUGH_ALLOWED: f64 = 40.0;

/// Λ of the first leg: by λ(β), which does not saturate, for plain swaps; by the rejections of accelerated ones.
pub(crate) fn barrier(rates: &[f64], local: impl Iterator<Item = (f64, f64)>, accelerated: bool) -> f64 {
    let rejections = global_barrier(rates);
    let (betas, lambda): (Vec<f64>, Vec<f64>) = local.filter(|(beta, _)| *beta <= 1.0).unzip();
    let integral = cumulative_barrier(&betas, &lambda).last().copied().unwrap_or(f64::NAN);
    if accelerated || integral.is_nan() { rejections } else { integral.max(rejections) }
}

impl Evidence<'_> {
    pub(super) fn starving_pair(&self) -> Option<String> {
        let rates = self.results.rejection_rates[..self.pairs()].iter().copied().enumerate();
        let (pair, rate) = rates.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        (rate > 0.95).then(|| {
            format!(
                "swaps between chains {} and {} are rejected {:.1}% of the time: little passes this pair; more chains, \
                 or a transport, would help",
                pair,
                pair + 1,
                100.0 * rate
            )
        })
    }

    fn barrier(&self) -> f64 {
        let r = self.results;
        barrier(&r.rejection_rates[..self.pairs()], r.local_barrier.iter().copied(), self.accelerated)
    }

    /// Whether some swap is refused nearly as often as across a barrier of one. λ(β) is read at the chains alone, and may be high at one of them, a wide
    /// reference for instance, without holding back any swap.
    fn some_pair_holds_back(&self) -> bool {
        let alone = self.pairs() == 1 && !self.accelerated;
        let most = if alone { HOLDS_BACK_ALONE } else { HOLDS_BACK };
        self.results.rejection_rates[..self.pairs()].iter().any(|rate| *rate > most)
    }

    pub(super) fn too_few_chains(&self) -> Option<String> {
        let (barrier, pairs) = (self.barrier(), self.pairs());
        // A plain swap across a barrier of 1 is rejected about two times in three: Σr of accelerated
        // pairs says the same at two thirds of their number.
        let limit = if self.accelerated { 0.67 * pairs as f64 } else { pairs as f64 };
        let wanted = chains_for(barrier);
        (barrier > limit && wanted > pairs + 1 && self.some_pair_holds_back()).then(|| {
            if wanted > MOST_ADVISED {
                return format!(
                    "{} chains are few for a barrier of {barrier:.1e}, and no number of them would do: the target is far \
                     narrower than the reference, or degenerate; give it other coordinates, or a reference nearer to it",
                    pairs + 1
                );
            }
            let (more, or) = match self.accelerated {
                true => ("at least ", "more steps (accelerator.steps)"),
                false => ("about ", "a transport"),
            };
            format!(
                "{} chains are few for a barrier of {barrier:.1}: {more}{wanted} (twice the barrier plus one) make most \
                 round trips for their cost; set chains.count = {wanted}, or use {or}",
                pairs + 1
            )
        })
    }

    pub(super) fn no_round_trip(&self) -> Option<String> {
        (self.results.round_trips == 0).then(|| {
            "no replica went from the reference to the target and back: draws may miss modes, and log Z may be wrong \
             beyond its error; more chains or iterations are needed"
                .into()
        })
    }

    pub(super) fn few_round_trips(&self) -> Option<String> {
        let trips = self.results.round_trips;
        (trips > 0 && trips < FEW_TRIPS).then(|| {
            let s = if trips == 1 { "" } else { "s" };
            format!(
                "only {trips} round trip{s} came from the reference and back: what weight each mode has, and log Z with it, rests \
                 on so few arrivals, and their errors may be too small; {} helps most, then more chains where swaps are rejected, \
                 then more iterations",
                match self.is_molecule() {
                    true => "a transport (accelerator.kind = \"affine\")",
                    false => "a reference nearer to the target (reference.kind = \"fitted\")",
                }
            )
        })
    }

    pub(super) fn low_exploration(&self) -> Option<String> {
        let r = self.results;
        let share = r.round_trip_rate / r.round_trip_rate_predicted;
        // As many as the swaps would have allowed, whatever was seen: where few were to be expected, few say nothing.
        let allowed = r.round_trips as f64 / share;
        (r.round_trips > 0 && allowed >= ENOUGH_ALLOWED && share < LOW_SHARE).then(|| {
            format!(
                "round trips are {:.0}% of what the swaps allow: local moves are the bottleneck; more of them \
                 (explorer.steps) or longer ones (explorer.leapfrog_steps) would help",
                100.0 * share
            )
        })
    }
}
