//! When sampling has done enough.

use super::Run;
use crate::acceleration::Prospect;
use crate::estimates::{Series, bulk_draws, effective_draws, round_trip_rate, tail_draws};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a run is to reach. It ends when all of them are; looked at only after numbers of iterations that grow by an eighth,
/// so that looking hardly bends the estimates.
///
/// ```
/// use sterna::run::Until;
/// let until = Until { ess: Some(5000.0), ..Until::default() };
/// assert_eq!(until.log_z_error, Some(0.1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Effective draws in the bulk of every coordinate, and [`TAIL`](Self::TAIL) in its tails and of the log density. They are
    /// counted by ranks, so a monotone function of a coordinate has as many. Where there are several modes, the share of each is to be known to
    /// a standard error of 1/(4√ess).
    pub ess: Option<f64>,
    /// Standard error of log Z.
    pub log_z_error: Option<f64>,
    /// Evaluations of the target at which it ends in any case, those before sampling among them. Rounds of tuning that double
    /// end when they have taken half of them, which is looked at as often as goals are.
    pub evaluations: Option<u64>,
}

impl Default for Until {
    fn default() -> Self {
        Self { ess: Some(1000.0), log_z_error: Some(0.1), evaluations: None }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Fewest effective draws in the bulk of a coordinate; or those that the share of a mode is known to, if that is fewer.
    pub ess: f64,
    /// Fewest in the tails of one, or of the log density in bulk and tails.
    pub tail_ess: f64,
    /// Standard error of log Z.
    pub log_z_error: f64,
    /// Evaluations of the target.
    pub evaluations: u64,
}

/// Why sampling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// All iterations were made.
    Iterations,
    /// All that was wanted is there.
    Goals,
    /// No more evaluations were allowed.
    Evaluations,
    /// Whoever ran it had no more time.
    Time,
}

/// The coordinates that had the fewest effective draws when all were looked at, after `done` iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowest {
    done: u64,
    bulk: usize,
    tail: usize,
}

impl Until {
    /// Effective draws that are wanted in the tails, where fewer are not wanted in the bulk.
    pub const TAIL: f64 = 400.0;

    pub(super) fn check(&self) -> Result<()> {
        let bad = |value: &f64| !(*value > 0.0 && value.is_finite());
        for (setting, value) in [("Until.ess", self.ess), ("Until.log_z_error", self.log_z_error)] {
            if let Some(value) = value.filter(bad) {
                return Err(Error::setting(setting, value, "it must be positive"));
            }
        }
        if self.evaluations == Some(0) {
            return Err(Error::setting("Until.evaluations", 0, "at least 1 evaluation is needed"));
        }
        Ok(())
    }

    /// How many times as many iterations the goals ask for, from the one that is farthest off; none where there are none.
    fn times_more(&self, reached: &Reached) -> Option<f64> {
        let draws =
            self.ess.map(|wanted| (wanted / reached.ess).max(wanted.min(Self::TAIL) / reached.tail_ess));
        let error = self.log_z_error.map(|wanted| (reached.log_z_error / wanted).powi(2));
        // What is not known yet may take any time.
        let known = |times: f64| if times.is_nan() { f64::INFINITY } else { times };
        [draws, error].into_iter().flatten().map(known).reduce(f64::max)
    }

    /// Whether this is all that was wanted.
    fn is_met(&self, reached: &Reached) -> bool {
        let tail = |wanted: f64| wanted.min(Self::TAIL);
        self.ess.is_none_or(|wanted| reached.ess >= wanted && reached.tail_ess >= tail(wanted))
            && self.log_z_error.is_none_or(|wanted| reached.log_z_error <= wanted)
            && (self.ess.is_some() || self.log_z_error.is_some())
    }
}

/// The first look comes after so many iterations.
const FIRST_LOOK: u64 = 48;

/// The next number of iterations after which a run is looked at.
fn next_look(done: u64) -> u64 {
    let mut look = FIRST_LOOK;
    while look <= done {
        look += look / 8;
    }
    look
}

impl Run {
    /// Iterations of sampling at which something may end, after `done`.
    pub(super) fn next_look(&self, done: u64) -> u64 {
        if self.settings.until.is_some() { next_look(done) } else { u64::MAX }
    }

    /// Iterations of sampling, as far as is known before it: all, or those in which the draws that are wanted come, each
    /// as seldom as in tuning or, where that was not looked at, as in what was collected, if not as round trips.
    pub(super) fn iterations_ahead(&self, prospect: &Prospect) -> f64 {
        let most = self.settings.iterations as f64;
        let Some(until) = &self.settings.until else { return most };
        let each = match &self.reference {
            Some(reference) => reference.state.effective_each,
            None => {
                let drawn = prospect.effective.unwrap_or(0.0) / prospect.iterations.max(1) as f64;
                drawn.max(prospect.ladders as f64 * round_trip_rate(&prospect.rejection_rates))
            }
        };
        let wanted = until.ess.filter(|_| each > 0.0).map_or(most, |ess| ess / each);
        let allowed = until.evaluations.map_or(f64::INFINITY, |all| {
            let each = prospect.evaluations as f64 / prospect.iterations.max(1) as f64;
            all.saturating_sub(self.asked().target) as f64 / each.max(1.0)
        });
        wanted.max(self.fewest_iterations() as f64).min(allowed).min(most)
    }

    /// Iterations of a round of tuning that doubles after which it may have taken all that it is allowed.
    pub(super) fn next_look_at_tuning(&self, done: u64) -> u64 {
        if self.reference.is_some() && self.most_of_tuning().is_some() { next_look(done) } else { u64::MAX }
    }

    /// Evaluations that tuning may take: half of all, so that some are left for draws.
    pub(super) fn most_of_tuning(&self) -> Option<u64> {
        self.settings.until.as_ref().and_then(|until| until.evaluations).map(|most| most / 2)
    }

    /// Whether tuning may not go on.
    pub(super) fn tuning_is_spent(&self) -> bool {
        self.most_of_tuning().is_some_and(|most| self.asked().target >= most)
    }

    /// Whether sampling may end after so many iterations.
    pub(super) fn is_looked_at(&self, done: u64) -> bool {
        let look = self.settings.until.is_some() && done > 0 && next_look(done - 1) == done;
        look || done == self.settings.iterations
    }

    /// Why sampling ends now, if it does.
    pub(super) fn ends(&mut self, done: u64) -> Option<StoppedBy> {
        if let Some(until) = self.settings.until.clone().filter(|_| done > 0 && next_look(done - 1) == done) {
            let reached = self.look(done, &until);
            self.last_look = Some((done, reached));
            if done >= self.fewest_iterations() && until.is_met(&reached) {
                return Some(StoppedBy::Goals);
            }
            if until.evaluations.is_some_and(|most| reached.evaluations >= most) {
                return Some(StoppedBy::Evaluations);
            }
        }
        (done == self.settings.iterations).then_some(StoppedBy::Iterations)
    }

    /// How far sampling has come, for `until` to be met or not: where the coordinate that was slowest when all were last looked
    /// at does not meet it, the others are spared, until there are twice as many iterations.
    fn look(&mut self, done: u64, until: &Until) -> Reached {
        let known = self.slowest.filter(|slowest| done < 2 * slowest.done);
        let rough = known
            .map(|slowest| self.reached_by(slowest.bulk..slowest.bulk + 1, slowest.tail..slowest.tail + 1).0);
        if let Some(rough) = rough.filter(|rough| !until.is_met(rough)) {
            return rough;
        }
        let all = 0..self.ladder.dim();
        let (reached, [bulk, tail]) = self.reached_by(all.clone(), all);
        self.slowest = Some(Slowest { done, bulk, tail });
        reached
    }

    /// How far sampling has come.
    ///
    /// # Panics
    /// If sampling has not begun.
    pub fn reached(&self) -> Reached {
        let all = 0..self.ladder.dim();
        self.reached_by(all.clone(), all).0
    }

    /// The same as far as these coordinates tell, and which of them has the fewest draws in its bulk and in its tails.
    fn reached_by(&self, of_bulk: Range<usize>, of_tail: Range<usize>) -> (Reached, [usize; 2]) {
        let series = self.coordinate_series();
        let fewest = |of: fn(&[&Series]) -> f64, among: Range<usize>| {
            // A coordinate that never moves has no effective draws.
            let each = among.map(|j| (j, of(&series[j])));
            let each = each.map(|(j, ess)| (j, if ess.is_nan() { 0.0 } else { ess }));
            each.fold((0, f64::INFINITY), |least, next| if next.1 < least.1 { next } else { least })
        };
        let ((bulk_at, in_bulk), (tail_at, in_tail)) = (fewest(bulk, of_bulk), fewest(tail, of_tail));
        // A density that is the same everywhere says nothing.
        let heights: Vec<&Series> = self.records().flat_map(|record| &record.heights).collect();
        let of_heights = [bulk(&heights), tail(&heights)].into_iter().filter(|ess| !ess.is_nan());
        let reached = Reached {
            ess: in_bulk.min(self.worth_of_modes()),
            tail_ess: of_heights.fold(in_tail, f64::min),
            log_z_error: self.log_z().standard_error,
            evaluations: self.asked().target,
        };
        (reached, [bulk_at, tail_at])
    }

    /// n, where the share of each mode is known to a standard error of 1/(4√n): coordinates may mix well while modes do not.
    fn worth_of_modes(&self) -> f64 {
        let count = self.records().next().map_or(0, |r| r.mode_series.len() / r.draws.len());
        let of_mode = |mode: usize| {
            let all = self.records().flat_map(|r| r.mode_series.iter().skip(mode).step_by(count));
            let ladders: Vec<&Series> = all.collect();
            let share = ladders.iter().map(|s| s.mean_with_error().0).sum::<f64>() / ladders.len() as f64;
            bulk(&ladders) / (16.0 * share * (1.0 - share))
        };
        // One that no draw belongs to, or all do, says nothing.
        (0..count).map(of_mode).filter(|n| n.is_finite()).fold(f64::INFINITY, f64::min)
    }

    /// How far sampling had come when it was last looked at, and after how many of its iterations that was: as far as its slowest
    /// coordinate tells, where that was not enough. A run that goes on knows it again from its next look.
    pub fn last_look(&self) -> Option<(u64, Reached)> {
        self.last_look
    }

    /// Iterations of sampling after which the run ends, as far as its last look tells: effective draws grow as iterations do,
    /// and the squared error of log Z falls as they grow.
    pub fn expected_iterations(&self) -> Option<u64> {
        let (until, (done, reached)) = self.settings.until.as_ref().zip(self.last_look)?;
        let spent = self.progress.before_sampling.target;
        let last = until.evaluations.map(|most| {
            let each = reached.evaluations.saturating_sub(spent) as f64 / done as f64;
            most.saturating_sub(spent) as f64 / each
        });
        let fewest = self.fewest_iterations() as f64;
        let wanted = until.times_more(&reached).map(|times| (times * done as f64).max(fewest));
        let expected = [wanted, last].into_iter().flatten().fold(f64::INFINITY, f64::min);
        // It ends at a look; a float beyond all counts becomes the largest of them.
        let expected = (expected.max(1.0) as u64).min(self.settings.iterations);
        Some(next_look(expected - 1).min(self.settings.iterations))
    }

    /// Ends sampling here, for want of time.
    pub fn stop_for_time(&mut self) {
        if self.progress.stage == super::Stage::Sampling {
            self.finish(StoppedBy::Time);
        }
    }

    /// Why sampling ended; none before it has.
    pub fn stopped_by(&self) -> Option<StoppedBy> {
        self.progress.stopped_by
    }
}

/// By ranks while the series is whole, else by block means.
fn bulk(ladders: &[&Series]) -> f64 {
    match ladders.iter().all(|s| s.block() == 1) {
        true => bulk_draws(&ladders.iter().map(|s| s.means()).collect::<Vec<_>>()),
        false => effective_draws(ladders),
    }
}

fn tail(ladders: &[&Series]) -> f64 {
    match ladders.iter().all(|s| s.block() == 1) {
        true => tail_draws(&ladders.iter().map(|s| s.means()).collect::<Vec<_>>()),
        false => effective_draws(ladders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_by_an_eighth() {
        let mut looks = vec![next_look(0)];
        for _ in 0..5 {
            looks.push(next_look(*looks.last().unwrap()));
        }
        assert_eq!(looks, [48, 54, 60, 67, 75, 84]);
        assert_eq!(next_look(83), 84);
    }

    #[test]
    fn the_goal_that_is_farthest_off_says_how_much_is_left() {
        let until = Until { ess: Some(1000.0), log_z_error: Some(0.1), evaluations: None };
        let reached = Reached { ess: 500.0, tail_ess: 100.0, log_z_error: 0.1, evaluations: 9 };
        assert_eq!(until.times_more(&reached), Some(4.0));
        assert_eq!(until.times_more(&Reached { log_z_error: 0.3, ..reached }).map(f64::round), Some(9.0));
        assert_eq!(until.times_more(&Reached { ess: 0.0, ..reached }), Some(f64::INFINITY));
        assert_eq!(until.times_more(&Reached { log_z_error: f64::NAN, ..reached }), Some(f64::INFINITY));
        let nothing = Until { ess: None, log_z_error: None, evaluations: Some(3) };
        assert_eq!(nothing.times_more(&reached), None);
    }
}
