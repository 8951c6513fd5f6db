//! What a suite found: p-values that share one false-alarm level, and facts that must simply hold.

use std::fmt;

/// One question and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was asked.
    pub name: String,
    /// Probability of an answer at least this far off if all is well; 0 or 1 for facts.
    pub p_value: f64,
}

/// All answers of a suite. It passes if no p-value is below `false_alarm` over their number.
///
/// ```
/// let mut verdict = sterna_testkit::Verdict::new(1e-5);
/// verdict.add("mean", 0.3);
/// assert!(verdict.passed());
/// verdict.add("variance", 1e-9);
/// assert!(!verdict.passed());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Probability that a sound subject fails, over all checks together.
    pub false_alarm: f64,
    /// Statistical checks.
    pub checks: Vec<Check>,
    /// Facts that do not hold.
    pub violations: Vec<String>,
}

impl Verdict {
    /// Nothing asked yet.
    pub fn new(false_alarm: f64) -> Self {
        Self { false_alarm, checks: Vec::new(), violations: Vec::new() }
    }

    /// Adds a p-value.
    pub fn add(&mut self, name: impl Into<String>, p_value: f64) {
        self.checks.push(Check { name: name.into(), p_value });
    }

    /// Adds a fact; it leaves a trace only if it does not hold.
    pub fn require(&mut self, holds: bool, name: impl Into<String>) {
        if !holds {
            self.violations.push(name.into());
        }
    }

    /// Adds all of another suite; the false-alarm level stays.
    pub fn merge(&mut self, prefix: &str, other: Verdict) {
        let named = |name: String| format!("{prefix}{name}");
        self.checks.extend(other.checks.into_iter().map(|c| Check { name: named(c.name), ..c }));
        self.violations.extend(other.violations.into_iter().map(named));
    }

    /// Level of each single check (Bonferroni).
    pub fn level(&self) -> f64 {
        self.false_alarm / self.checks.len().max(1) as f64
    }

    /// Checks that failed; one without a number has failed.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        let level = self.level();
        self.checks.iter().filter(move |c| c.p_value < level || c.p_value.is_nan())
    }

    /// Whether all is well.
    pub fn passed(&self) -> bool {
        self.violations.is_empty() && self.failures().next().is_none()
    }

    /// The smallest p-value, 1 if there is none.
    pub fn smallest(&self) -> f64 {
        self.checks.iter().map(|c| c.p_value).fold(1.0, f64::min)
    }

    /// Panics with the list of failures unless all is well.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{self}");
    }

    /// Panics if all seems well: for broken subjects, which must be caught.
    #[track_caller]
    pub fn assert_caught(&self) {
        assert!(!self.passed(), "a fault went unnoticed: {self}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} checks at level {:.1e} each, smallest p-value {:.1e}",
            self.checks.len(),
            self.level(),
            self.smallest()
        )?;
        for violation in &self.violations {
            write!(f, "\n  violated: {violation}")?;
        }
        for check in self.failures() {
            write!(f, "\n  failed: {} (p = {:.1e})", check.name, check.p_value)?;
        }
        Ok(())
    }
}
