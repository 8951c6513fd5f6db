//! When sampling has done enough.

use super::Run;
use crate::estimates::{Series, bulk_draws, effective_draws, tail_draws};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// What a run is to reach. It ends when all of them are; looked at only after numbers of iterations that grow by a third,
/// so that looking hardly bends the estimates.
///
/// ```
/// use sterna::run::Until;
/// let until = Until { ess: Some(5000.0), ..Until::default() };
/// assert_eq!(until.log_z_error, Some(0.1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Effective draws in the bulk of every coordinate, and [`TAIL`](Self::TAIL) in its tails.
    pub ess: Option<f64>,
    /// Standard error of log Z.
    pub log_z_error: Option<f64>,
    /// Evaluations of the target at which it ends in any case, those before sampling among them.
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
    /// Fewest effective draws in the bulk of a coordinate.
    pub ess: f64,
    /// Fewest in the tails of one.
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
        look += look / 3;
    }
    look
}

impl Run {
    /// Iterations of sampling at which something may end, after `done`.
    pub(super) fn next_look(&self, done: u64) -> u64 {
        if self.settings.until.is_some() { next_look(done) } else { u64::MAX }
    }

    /// Why sampling ends now, if it does.
    pub(super) fn ends(&self, done: u64) -> Option<StoppedBy> {
        if let Some(until) = self.settings.until.as_ref().filter(|_| done > 0 && next_look(done - 1) == done)
        {
            let reached = self.reached();
            if until.is_met(&reached) {
                return Some(StoppedBy::Goals);
            }
            if until.evaluations.is_some_and(|most| reached.evaluations >= most) {
                return Some(StoppedBy::Evaluations);
            }
        }
        (done == self.settings.iterations).then_some(StoppedBy::Iterations)
    }

    /// How far sampling has come.
    ///
    /// # Panics
    /// If sampling has not begun.
    pub fn reached(&self) -> Reached {
        let series = self.coordinate_series();
        let fewest = |of: fn(&[&Series]) -> f64| {
            // A coordinate that never moves has no effective draws.
            let each = series.iter().map(|ladders| of(ladders));
            each.map(|ess| if ess.is_nan() { 0.0 } else { ess }).fold(f64::INFINITY, f64::min)
        };
        Reached {
            ess: fewest(bulk),
            tail_ess: fewest(tail),
            log_z_error: self.log_z().standard_error,
            evaluations: self.asked().target,
        }
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
    fn looks_grow_by_a_third() {
        let mut looks = vec![next_look(0)];
        for _ in 0..5 {
            looks.push(next_look(*looks.last().unwrap()));
        }
        assert_eq!(looks, [48, 64, 85, 113, 150, 200]);
        assert_eq!(next_look(84), 85);
    }
}
