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

    /// A phrase for each goal.
    pub fn phrases(&self) -> Vec<String> {
        let mut phrases = Vec::new();
        // The tails are told where they are what is missing.
        let short = |goal: &Goal| goal.reached < goal.wanted;
        let tail = self.tail_ess.filter(short).filter(|_| !self.ess.is_some_and(|ess| short(&ess)));
        match (tail, self.ess) {
            (Some(tail), _) => phrases.push(format!("tail ESS {:.0} of {:.0}", tail.reached, tail.wanted)),
            (None, Some(ess)) => phrases.push(format!("ESS {:.0} of {:.0}", ess.reached, ess.wanted)),
            (None, None) => {}
        }
        if let Some(error) = self.log_z_error {
            let reached = match error.reached.is_finite() {
                true => format!("± {}", two_digits(error.reached)),
                false => "unknown".into(),
            };
            phrases.push(format!("log Z {reached} (wanted {})", two_digits(error.wanted)));
        }
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
        let tails = Goals { ess: goal(1012.0, 1000.0), ..goals };
        assert_eq!(tails.phrases()[0], "tail ESS 390 of 400");
        let unknown = Goals { log_z_error: goal(f64::INFINITY, 0.1), ..goals };
        assert!(unknown.phrases()[1].contains("unknown"));
        let read: Goals = serde_json::from_str(&serde_json::to_string(&unknown).unwrap()).unwrap();
        assert_eq!(read.phrases(), unknown.phrases());
        assert_eq!(Goals::default().phrases(), [""; 0]);
    }
}
