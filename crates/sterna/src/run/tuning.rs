//! Between rounds everything changes, by new values: schedule and local moves.

use super::{Criterion, Run, Stage};
use crate::Result;
use crate::acceleration::Acceleration;
use crate::balance::Balance;
use crate::bend::Bend;
use crate::estimates::round_trip_rate;
use crate::explorer::Tuning;
use crate::explorers::MOVES;
use crate::paths::Spline;
use crate::records::{Counts, TuningRecord};
use crate::schedule::Schedule;
use crate::trace::RoundTrace;
use std::sync::Arc;

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
        if matches!(self.progress.stage, Stage::Tuning(n) | Stage::Retuning(n) if n + 1 == self.settings.rounds)
        {
            self.balance(self.seen_balance());
        }
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
        let new = self.bend().unwrap_or(new);
        self.ladder.move_chains(new)
    }

    /// Knots of a path that goes over some move to where its barrier is lower; and the schedule that suits it then. The first round
    /// tunes the straight path, the last one what has come of it; where more round trips fit through the straight one, it is taken
    /// again.
    fn bend(&mut self) -> Option<Schedule> {
        let ladder = &mut self.ladder;
        let path = ladder.sampler.path.as_spline()?;
        let rounds = &self.progress.rounds;
        if self.settings.criterion == Criterion::Fixed || rounds.len() < 2 {
            return None;
        }
        let (path, schedule) = match rounds.len() < self.settings.rounds {
            true => {
                let samples = TuningRecord::ends(ladder.tuning(), ladder.chains());
                Bend::new(path, &ladder.sampler.schedule, samples)?.bent(path, &ladder.sampler.schedule)?
            }
            false => {
                let rate = |round: &RoundTrace| {
                    let rates = round.rejection_rates.iter().map(|rate| rate.unwrap_or(1.0));
                    round_trip_rate(&rates.collect::<Vec<_>>())
                };
                let straight = &rounds[1];
                if rate(rounds.last()?) >= rate(straight) {
                    return None;
                }
                let schedule = Schedule::new(straight.schedule.clone()).ok()?;
                (Spline::new(path.ground().clone(), Vec::new()).ok()?, schedule)
            }
        };
        ladder.sampler.path = Arc::new(path);
        Some(schedule)
    }

    /// Local moves between swaps become as many as the last round has shown to pay, where that is left to tuning. All rounds before
    /// make one on each chain, so that where nothing more pays a run has the bits of one that was told so.
    pub(super) fn balance(&mut self, seen: Option<Balance>) {
        if let Some(balance) = seen {
            self.ladder.adapt(&Tuning::Balance(&balance));
        }
    }

    /// What moves and swaps of the round's first leg were worth; none where too little was seen of them.
    pub(super) fn seen_balance(&self) -> Option<Balance> {
        let ladder = &self.ladder;
        let described = ladder.sampler.explorer.describe();
        let (_, moves) = described.iter().find(|(name, _)| *name == MOVES)?;
        let (chains, dim) = (ladder.chains(), ladder.dim());
        let legs = ladder.shards.first()?.ensemble.legs();
        let spread = TuningRecord::spread(ladder.tuning(), chains, dim);
        let recorded = ladder.tuning_counts().next()?.iterations as f64 * ladder.ladders() as f64;
        let proposed = Counts::moves(ladder.tuning_counts(), chains);
        let proposed: Vec<f64> = proposed.iter().map(|&moves| moves as f64 / recorded).collect();
        let exact = ladder.sampler.path.draws_reference();
        let of_chain = |chain: usize| match exact && chain == 0 {
            true => vec![vec![0.0; dim + 1]],
            false => TuningRecord::left(ladder.tuning(), (chain, chains), &spread),
        };
        let left: Vec<_> = (0..=legs.target()).map(of_chain).collect();
        if moves.iter().any(|&moves| moves > 1.0) || left.iter().any(Vec::is_empty) {
            return None;
        }
        let all = self.asked().target.saturating_sub(self.progress.before_stage.0.target) as f64;
        let all = all / (self.progress.stage_iterations as f64 * ladder.ladders() as f64);
        let drawn = if exact { legs.count() as f64 } else { 0.0 };
        let each = (all - drawn).max(0.0) / proposed.iter().sum::<f64>();
        let rates = Counts::rejection_rates(ladder.tuning_counts(), chains);
        Some(Balance {
            rejections: rates[..legs.target()].to_vec(),
            left,
            shares: proposed[..=legs.target()].to_vec(),
            alone: legs.turns() == 2,
            fixed: all - each * proposed[..=legs.target()].iter().sum::<f64>(),
            each,
        })
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
