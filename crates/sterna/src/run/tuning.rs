//! Between rounds everything changes, by new values: schedule, step sizes, masses.

use super::{Criterion, Run, StepSize, explorer};
use crate::Result;
use crate::acceleration::Acceleration;
use crate::adaptation::{adapt_by_paper, adapt_scales, adapt_step_sizes, move_sizes};
use crate::iteration::Sampler;
use crate::records::{Counts, TuningRecord};
use crate::schedule::Schedule;
use crate::trace::RoundTrace;

impl Run {
    /// Burn-in of a tuning round is cut into ten blocks; step sizes adapt after each.
    pub(super) fn adaptation_block(&self) -> u64 {
        self.settings.round_burn_in.div_ceil(10).max(1)
    }

    pub(super) fn ends_adaptation_block(&self, done: u64) -> bool {
        let burn_in = self.settings.round_burn_in;
        done == burn_in || (done < burn_in && done.is_multiple_of(self.adaptation_block()))
    }

    /// No replica may stay where it started for want of moves: checked after each round, and halfway through burn-in.
    pub(super) fn free_stranded(&mut self) -> Result<()> {
        let Sampler { path, streams, schedule, .. } = &self.sampler;
        self.shards.iter_mut().try_for_each(|shard| shard.ensemble.free_stranded(&**path, streams, schedule))
    }

    pub(super) fn clear_tuning(&mut self) {
        let iterations = self.settings.round_iterations as usize;
        for shard in &mut self.shards {
            let (copies, dim) = (shard.ensemble.copies(), shard.ensemble.points.x.dim());
            shard.tuning = TuningRecord::new(copies, self.settings.chains, dim, iterations);
        }
    }

    pub(super) fn tuning_counts(&self) -> impl Iterator<Item = &Counts> + Clone {
        self.shards.iter().map(|s| &s.tuning.counts)
    }

    pub(super) fn adapt(&mut self, gain: f64) {
        let measured = Counts::acceptance(self.tuning_counts(), self.settings.chains);
        self.sizes = match self.settings.step_size {
            StepSize::Adapt { acceptance } => adapt_step_sizes(&self.sizes, &measured, acceptance, gain),
            StepSize::Paper => adapt_by_paper(&self.sizes, &measured),
            StepSize::Fixed(_) | StepSize::PerChain(_) => return,
        };
        self.sampler.explorer = explorer(&self.settings, &self.sizes, &*self.sampler.path);
    }

    /// End of a round: new schedule, scales and step sizes.
    pub(super) fn tune(&mut self) -> Result<()> {
        let chains = self.settings.chains;
        self.adapt(1.0);
        let records = self.shards.iter().map(|s| &s.tuning);
        self.local_barriers = TuningRecord::local_barriers(records.clone(), chains);
        self.barrier_schedule = self.sampler.schedule.clone();
        self.rounds.push(self.trace_round());
        let old = &self.sampler.schedule;
        // λ(β) is about plain swaps: an accelerator is judged by its own rejections.
        let by_rejections =
            self.settings.criterion == Criterion::Rejection || self.sampler.accelerator.steps() > 0;
        let kept = matches!(self.acceleration, Acceleration::Kept(..));
        let new = if kept || self.settings.criterion == Criterion::Fixed {
            old.clone()
        } else if by_rejections {
            old.equalise_rejections(&Counts::rejection_rates(self.tuning_counts(), chains))
        } else {
            old.equalise_barrier(&self.local_barriers, chains)
        };
        if self.settings.adapt_masses
            && self.settings.step_size.adapts()
            && self.settings.step_size != StepSize::Paper
        {
            let information = TuningRecord::information(records, chains, self.sampler.path.dim());
            self.sizes = adapt_scales(&self.sizes, &information);
        }
        self.move_chains(new)
    }

    pub(super) fn move_chains(&mut self, new: Schedule) -> Result<()> {
        if self.settings.step_size.adapts() {
            self.sizes = move_sizes(&self.sizes, &self.sampler.schedule, &new);
            self.sampler.explorer = explorer(&self.settings, &self.sizes, &*self.sampler.path);
        }
        self.sampler.schedule = new;
        for shard in &mut self.shards {
            shard.ensemble.reschedule(&*self.sampler.path, &self.sampler.schedule)?;
        }
        Ok(())
    }

    /// The round that ends, for people to look at.
    fn trace_round(&self) -> RoundTrace {
        let chains = self.settings.chains;
        RoundTrace::new(
            self.sampler.schedule.betas(),
            &Counts::rejection_rates(self.tuning_counts(), chains),
            self.barrier_curve().last().map_or(f64::NAN, |end| end.1),
            &self.sizes.step_size,
            &Counts::acceptance(self.tuning_counts(), chains),
        )
    }
}
