//! How far the goals of `[run.until]` are.

use crate::summary::number;
use serde::{Deserialize, Serialize};
use sterna::run::{Reached, Run, Until};

/// What there is of a goal, and what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What there is; NaN where that is not known.
    #[serde(deserialize_with = "number::one")]
    pub reached: f64,
    /// What is wanted.
    pub wanted: f64,
}

/// The goals of `[run.until]` that a run has. Draws and log Z are those of its last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goals {
    /// Fewest effective draws in the bulk of a coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ess: Option<Goal>,
    /// Fewest in the tails of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_ess: Option<Goal>,
    /// Standard error of log Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_z_error: Option<Goal>,
    /// Minutes so far, and at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Goal>,
    /// Evaluations so far, and at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<Goal>,
    /// Iterations of sampling after which it likely ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
}

impl Goals {
    /// Those of a run on its way, with the minutes that it has.
    pub fn of(run: &Run, minutes: Option<Goal>) -> Self {
        let until = run.settings().until.clone();
        let seen =
            until.map(|until| Self::seen(&until, run.last_look().map(|look| look.1), run.evaluations()));
        Self { minutes, expected: run.expected_iterations(), ..seen.unwrap_or_default() }
    }

    /// What a run had reached when it ended, or when it was last looked at; none where it was to reach nothing.
    pub fn at_the_end(run: &Run) -> Option<Self> {
        let until = run.settings().until.clone()?;
        let reached = match run.stopped_by() {
            Some(_) => Some(run.reached()),
            None => run.last_look().map(|look| look.1),
        };
        Some(Self::seen(&until, reached, run.evaluations()))
    }

    fn seen(until: &Until, look: Option<Reached>, evaluations: u64) -> Self {
        let seen = |wanted: Option<f64>, reached: Option<f64>| {
            wanted.zip(reached).map(|(wanted, reached)| Goal { reached, wanted })
        };
        let tail = until.ess.map(|ess| ess.min(Until::TAIL));
        Self {
            ess: seen(until.ess, look.map(|look| look.ess)),
            tail_ess: seen(tail, look.map(|look| look.tail_ess)),
            log_z_error: seen(until.log_z_error, look.map(|look| look.log_z_error)),
            evaluations: seen(until.evaluations.map(|most| most as f64), Some(evaluations as f64)),
            ..Self::default()
        }
    }

    /// Seconds until the minutes are over.
    pub fn seconds_left(&self) -> Option<f64> {
        self.minutes.map(|minutes| 60.0 * (minutes.wanted - minutes.reached).max(0.0))
    }

    /// A phrase for each goal: first those that the run waits for, then those that are reached.
    pub fn phrases(&self) -> Vec<String> {
        let (mut waits, mut done) = (Vec::new(), Vec::new());
        let missing = |goal: &Goal| goal.reached < goal.wanted || goal.reached.is_nan();
        // The tails are told where they are what is missing.
        let tail = self.tail_ess.filter(missing).filter(|_| !self.ess.is_some_and(|ess| missing(&ess)));
        waits.extend(tail.map(|Goal { reached, wanted }| format!("tail ESS {reached:.0} of {wanted:.0}")));
        match self.ess {
            Some(ess) if missing(&ess) => waits.push(format!("ESS {:.0} of {:.0}", ess.reached, ess.wanted)),
            Some(ess) => done.push(format!("ESS {:.0} reached", ess.wanted)),
            None => {}
        }
        match self.log_z_error {
            Some(Goal { reached, wanted }) if reached <= wanted => {
                done.push(format!("log Z ± {} reached", two_digits(wanted)));
            }
            Some(Goal { reached, wanted }) if reached.is_finite() => {
                waits.push(format!("log Z ± {} (wanted {})", two_digits(reached), two_digits(wanted)));
            }
            Some(Goal { wanted, .. }) => {
                waits.push(format!("log Z unknown (wanted ± {})", two_digits(wanted)))
            }
            None => {}
        }
        if waits.is_empty() && !done.is_empty() {
            done = vec!["all goals reached".into()];
            done.extend(self.expected.map(|fewest| format!("ends after {fewest} iterations")));
        } else if let Some(first) = waits.first_mut().filter(|_| !done.is_empty()) {
            *first = format!("waits for {first}");
        }
        let mut phrases = [waits, done].concat();
        if let Some(minutes) = self.minutes {
            phrases.push(format!("{} of {} min", two_digits(minutes.reached), two_digits(minutes.wanted)));
        }
        if let Some(evaluations) = self.evaluations {
            let share = 100.0 * evaluations.reached / evaluations.wanted;
            phrases.push(format!("{share:.0}% of {:.0} evaluations", evaluations.wanted));
        }
        phrases
    }
}

/// Two significant digits, without an exponent.
fn two_digits(x: f64) -> String {
    let places = if x > 0.0 { (1.0 - x.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
    format!("{x:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_is_a_phrase() {
        let goal = |reached, wanted| Some(Goal { reached, wanted });
        let goals = Goals {
            ess: goal(412.3, 1000.0),
            tail_ess: goal(390.0, 400.0),
            log_z_error: goal(0.0734, 0.05),
            minutes: goal(2.14, 30.0),
            evaluations: goal(1.2e6, 5e7),
            expected: None,
        };
        assert_eq!(
            goals.phrases(),
            [
                "ESS 412 of 1000",
                "log Z ± 0.073 (wanted 0.050)",
                "2.1 of 30 min",
                "2% of 50000000 evaluations"
            ]
        );
        assert!((goals.seconds_left().unwrap() - 1671.6).abs() < 1e-9);
        let tails = Goals { ess: goal(2411.0, 1000.0), log_z_error: goal(0.04, 0.05), ..goals };
        assert_eq!(
            tails.phrases()[..3],
            ["waits for tail ESS 390 of 400", "ESS 1000 reached", "log Z ± 0.050 reached"]
        );
        let log_z = Goals { ess: goal(2411.0, 1000.0), tail_ess: goal(400.0, 400.0), ..goals };
        assert_eq!(log_z.phrases()[0], "waits for log Z ± 0.073 (wanted 0.050)");
        let all = Goals {
            tail_ess: goal(400.0, 400.0),
            minutes: None,
            evaluations: None,
            expected: Some(512),
            ..tails
        };
        assert_eq!(all.phrases(), ["all goals reached", "ends after 512 iterations"]);
        let unknown = Goals { log_z_error: goal(f64::INFINITY, 0.1), ..goals };
        assert_eq!(unknown.phrases()[1], "log Z unknown (wanted ± 0.10)");
        let read: Goals = serde_json::from_str(&serde_json::to_string(&unknown).unwrap()).unwrap();
        assert_eq!(read.phrases(), unknown.phrases());
        assert_eq!(Goals::default().phrases(), [""; 0]);
    }
}
