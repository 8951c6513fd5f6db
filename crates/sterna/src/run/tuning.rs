//! Between rounds everything changes, by new values: schedule and local moves.

use super::{Criterion, Run};
use crate::Result;
use crate::acceleration::Acceleration;
use crate::explorer::Tuning;
use crate::records::{Counts, TuningRecord};
use crate::trace::RoundTrace;

impl Run {
    /// Burn-in of a tuning round is cut into ten blocks; local moves adapt after each.
    /// Rounds that double begin too short for that: their burn-in is one block.
    pub(super) fn adaptation_block(&self, round: usize) -> u64 {
        let (_, burn_in) = self.settings.round(round);
        let blocks = if self.reference.is_some() { 1 } else { 10 };
        burn_in.div_ceil(blocks).max(1)
    }

    pub(super) fn ends_adaptation_block(&self, round: usize, done: u64) -> bool {
        let (_, burn_in) = self.settings.round(round);
        done == burn_in || (done < burn_in && done.is_multiple_of(self.adaptation_block(round)))
    }

    /// Whether a round that doubles is over: it has all its iterations, or tuning may not go on.
    pub(super) fn round_ends(&self, round: usize, done: u64) -> bool {
        let (total, burn_in) = self.settings.round(round);
        done == total
            || (done > burn_in && self.next_look_at_tuning(done - 1) == done && self.tuning_is_spent())
    }

    /// Local moves follow the acceptance that was seen.
    pub(super) fn adapt(&mut self, gain: f64) {
        let acceptance = Counts::acceptance(self.ladder.tuning_counts(), self.ladder.chains());
        self.ladder.adapt(&Tuning::Block { acceptance: &acceptance, gain });
    }

    /// End of a round: new schedule and local moves.
    pub(super) fn tune(&mut self) -> Result<()> {
        let (chains, dim) = (self.ladder.chains(), self.ladder.dim());
        self.adapt(1.0);
        self.ladder.measure_barrier();
        let round = self.trace_round();
        self.progress.rounds.push(round);
        let old = &self.ladder.sampler.schedule;
        // λ(β) is about plain swaps: an accelerator is judged by its own rejections.
        let by_rejections =
            self.settings.criterion == Criterion::Rejection || self.ladder.sampler.accelerator.steps() > 0;
        let kept = matches!(self.acceleration, Acceleration::Kept(..));
        let new = if kept || self.settings.criterion == Criterion::Fixed {
            old.clone()
        } else if by_rejections {
            old.equalise_rejections(&Counts::rejection_rates(self.ladder.tuning_counts(), chains))
        } else {
            old.equalise_barrier(&self.ladder.barrier.local, chains)
        };
        let information = TuningRecord::information(self.ladder.tuning(), chains, dim);
        let spread = TuningRecord::spread(self.ladder.tuning(), chains, dim);
        self.ladder.adapt(&Tuning::Round { information: &information, spread: &spread });
        self.ladder.move_chains(new)
    }

    /// The round that ends, for people to look at.
    pub(super) fn trace_round(&self) -> RoundTrace {
        let chains = self.ladder.chains();
        let sampler = &self.ladder.sampler;
        RoundTrace::new(
            sampler.schedule.betas(),
            &Counts::rejection_rates(self.ladder.tuning_counts(), chains),
            self.barrier_curve().last().map_or(f64::NAN, |end| end.1),
            &sampler.explorer.size_of_moves(),
            &Counts::acceptance(self.ladder.tuning_counts(), chains),
        )
    }
}
