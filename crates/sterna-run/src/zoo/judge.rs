//! What a cell came to, beside the truth.

use super::{Case, Class};
use crate::alarms::Verdict;
use crate::summary::{Summary, number};
use serde::{Deserialize, Serialize};
use sterna::estimates::effective_sample_size;
use sterna::run::Run;
use sterna_testkit::zoo::Expectation;

/// Standard errors beyond which a result is wrong.
const FAR: f64 = 4.0;

/// Effective draws below which no result is right.
const FEW: f64 = 100.0;

/// An error below this is rounding: nobody asks for more digits.
const ROUNDING: f64 = 1e-8;

/// What a run said, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// `sound`, `doubtful`, `unsound`; `refused` where there was no run, `panicked` where it should have been.
    pub verdict: String,
    /// Alarms by name, or why it was refused.
    pub because: Vec<String>,
    /// Estimate of log Z.
    #[serde(deserialize_with = "number::one")]
    pub log_z: f64,
    /// Its standard error.
    #[serde(deserialize_with = "number::one")]
    pub error: f64,
    /// Standard errors that the farthest estimate is off the truth.
    #[serde(deserialize_with = "number::one")]
    pub off: f64,
    /// Which estimate that is.
    pub of: String,
    /// Fewest effective draws.
    #[serde(deserialize_with = "number::one")]
    pub ess: f64,
    /// Evaluations of the target.
    pub evaluations: u64,
}

impl Told {
    fn nothing(verdict: &str, why: String) -> Self {
        let nan = f64::NAN;
        Self {
            verdict: verdict.into(),
            because: vec![why],
            log_z: nan,
            error: nan,
            off: nan,
            of: String::new(),
            ess: nan,
            evaluations: 0,
        }
    }

    /// There was no run.
    pub(super) fn refused(why: String) -> Self {
        Self::nothing("refused", why)
    }

    /// There was none, and that should not be.
    pub(super) fn panicked(why: String) -> Self {
        Self::nothing("panicked", why)
    }

    /// What a run came to.
    pub(super) fn of(case: &Case, run: &Run, summary: &Summary) -> Self {
        let z = &summary.log_z;
        let error = z.standard_error.max(ROUNDING);
        let log_z = case.log_z.map(|truth| ("log Z".to_string(), (z.bar - truth).abs() / error));
        let others = case.expectations.iter().map(|known| (known.name.clone(), off(known, run, summary)));
        // What is no number is as far off as can be.
        let known = |(name, off): (String, f64)| (name, if off.is_nan() { f64::INFINITY } else { off });
        let worst = log_z.into_iter().chain(others).map(known).max_by(|a, b| a.1.total_cmp(&b.1));
        let (of, off) = worst.unwrap_or((String::new(), f64::NAN));
        let ess = summary.mixing.as_ref().map_or(f64::NAN, |mixing| mixing.ess_bulk.min(mixing.ess_tail));
        Self {
            verdict: summary.verdict.name().into(),
            because: summary.alarms.iter().map(|alarm| alarm.code.name().to_string()).collect(),
            log_z: z.bar,
            error: z.standard_error,
            off,
            of,
            ess,
            evaluations: summary.cost.evaluations.target,
        }
    }
}

/// Standard errors between the mean of the draws and the truth.
fn off(known: &Expectation, run: &Run, summary: &Summary) -> f64 {
    let dim = run.sampler().path.dim();
    let draws = run.records().flat_map(|record| &record.draws);
    let ladders: Vec<Vec<f64>> =
        draws.map(|d| d.x.chunks_exact(dim).map(|x| (known.function)(x)).collect()).collect();
    let all = || ladders.iter().flatten().copied();
    let count = all().count() as f64;
    let mean = all().sum::<f64>() / count;
    let spread = (all().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0)).sqrt();
    // A set that no draw was in, or all were in, is worth what the coordinates are.
    let ess = effective_sample_size(&ladders.iter().map(|l| &l[..]).collect::<Vec<_>>());
    let ess = if ess.is_nan() { summary.target_chain.ess.minimum } else { ess };
    (mean - known.value).abs() / (known.deviation.unwrap_or(spread) / ess.sqrt())
}

/// A cell that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The case.
    pub case: String,
    /// Its seed.
    pub seed: u64,
    /// What a user said beside the target.
    pub config: String,
    /// Whether there was a law to be sampled.
    pub has_law: bool,
    /// Whether no verdict could be right.
    pub hidden: bool,
    /// Whether nothing was chosen by it.
    #[serde(default)]
    pub aside: bool,
    /// What the run said.
    #[serde(flatten)]
    pub told: Told,
}

impl Outcome {
    pub(super) fn of(case: &Case, seed: u64, told: Told) -> Self {
        Self {
            case: case.name.into(),
            seed,
            config: case.config.into(),
            has_law: case.has_law && case.class != Class::Molecule,
            hidden: case.is_hidden(),
            aside: case.is_aside(),
            told,
        }
    }

    /// Whether it is within four standard errors of all that is known, with draws enough to say so.
    pub fn is_right(&self) -> bool {
        self.has_law && self.told.off <= FAR && self.told.ess >= FEW
    }

    /// Whether the verdict was `sound`.
    pub fn is_sound(&self) -> bool {
        self.told.verdict == Verdict::Sound.name()
    }

    /// A wrong result without a warning.
    pub fn fooled(&self) -> bool {
        self.is_sound() && !self.is_right()
    }

    /// A right result that was forbidden, or a target that was refused though nothing is wrong with it.
    pub fn false_alarm(&self) -> bool {
        let forbidden = self.told.verdict == Verdict::Unsound.name() && self.is_right();
        let refused = ["refused", "panicked"].contains(&self.told.verdict.as_str());
        forbidden || (refused && self.has_law)
    }
}
