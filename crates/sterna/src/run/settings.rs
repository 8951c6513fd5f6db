//! What defines a run apart from its path.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How local moves get their step sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StepSize {
    /// One number for all chains.
    Fixed(f64),
    /// One number for each chain.
    PerChain(Vec<f64>),
    /// Step size and diagonal mass per chain, adapted in tuning to this acceptance, then frozen.
    Adapt {
        /// Wanted mean acceptance probability.
        acceptance: f64,
    },
    /// A step size per chain by the paper's rule: times 1.2 above an acceptance of 0.9, divided by 1.2 below 0.8.
    /// Unit masses, and every step as long as the last.
    Paper,
}

impl StepSize {
    pub(super) fn adapts(&self) -> bool {
        matches!(self, Self::Adapt { .. } | Self::Paper)
    }
}

/// What the schedule is tuned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The local barrier λ(β), which does not saturate.
    Barrier,
    /// Rejection rates: the paper's Algorithm 2.
    Rejection,
    /// Nothing: the path's first schedule stays, and only step sizes adapt.
    Fixed,
}

/// Everything that defines a run, apart from the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Chains, so `chains − 1` pairs.
    pub chains: usize,
    /// Independent copies of the ladder.
    pub ensembles: usize,
    /// HMC proposals an iteration.
    pub steps: usize,
    /// Leapfrog steps a proposal; 1 is MALA.
    pub leapfrog_steps: usize,
    /// Step sizes of local moves.
    pub step_size: StepSize,
    /// Whether an adapted step size comes with an adapted mass of each coordinate.
    pub adapt_masses: bool,
    /// Tuning rounds.
    pub rounds: usize,
    /// Iterations of a tuning round.
    pub round_iterations: u64,
    /// How many of those are not looked at by the tuning of the schedule.
    pub round_burn_in: u64,
    /// What the schedule is tuned on.
    pub criterion: Criterion,
    /// Iterations whose samples an accelerator is fitted to, where one is; twice as many in each later fit.
    pub collect: u64,
    /// How often an accelerator is fitted: each fit sees samples that the one before carried.
    pub fits: usize,
    /// Whether a learned path that allows fewer round trips than plain swaps is given up.
    pub guard: bool,
    /// Iterations before sampling, with everything frozen.
    pub burn_in: u64,
    /// Iterations of sampling.
    pub iterations: u64,
    /// Keep every so many draws.
    pub thin: u64,
    /// Keep the points of all chains every so many iterations of sampling; if not given, never.
    pub trajectories: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            chains: 10,
            ensembles: 1,
            steps: 1,
            leapfrog_steps: 5,
            step_size: StepSize::Adapt { acceptance: 0.92 },
            adapt_masses: true,
            rounds: 10,
            round_iterations: 1100,
            round_burn_in: 100,
            criterion: Criterion::Barrier,
            collect: 5000,
            fits: 1,
            guard: true,
            burn_in: 1000,
            iterations: 100_000,
            thin: 1,
            trajectories: None,
        }
    }
}

impl Settings {
    /// Names the first setting that cannot be, with a cure.
    pub fn check(&self) -> Result<()> {
        let wrong = |field, value: String, cure| Err(Error::Setting { field, value, cure });
        let step_is_bad = |s: &f64| !(*s > 0.0 && s.is_finite());
        if self.chains < 2 {
            return wrong("chains.count", self.chains.to_string(), "a ladder needs at least 2 chains");
        }
        if self.ensembles == 0 {
            return wrong("chains.ensembles", "0".into(), "at least 1 ensemble is needed");
        }
        if (self.ensembles * self.chains) as u64 > u64::from(u32::MAX) {
            return wrong(
                "chains.ensembles",
                self.ensembles.to_string(),
                "there are too many replicas to number",
            );
        }
        if self.steps == 0 || self.steps > 60 {
            return wrong(
                "explorer.steps",
                self.steps.to_string(),
                "between 1 and 60 moves an iteration are possible",
            );
        }
        if self.leapfrog_steps == 0 {
            return wrong("explorer.leapfrog_steps", "0".into(), "at least 1 leapfrog step is needed");
        }
        match &self.step_size {
            StepSize::Fixed(s) if step_is_bad(s) => {
                return wrong("explorer.step_size", s.to_string(), "a step size is a positive number");
            }
            StepSize::PerChain(all) if all.iter().any(step_is_bad) => {
                return wrong("explorer.step_size", format!("{all:?}"), "step sizes are positive numbers");
            }
            StepSize::PerChain(all) if all.len() != self.chains => {
                let cure = "one step size per chain is needed";
                return wrong("explorer.step_size", format!("{} numbers", all.len()), cure);
            }
            StepSize::Adapt { acceptance } if !(*acceptance > 0.0 && *acceptance < 1.0) => {
                let cure = "the wanted acceptance lies strictly between 0 and 1";
                return wrong("explorer.acceptance", acceptance.to_string(), cure);
            }
            sizes if sizes.adapts() && self.rounds == 0 => {
                let cure = "step sizes adapt during tuning: give at least 1 round, or a number as explorer.step_size";
                return wrong("schedule.rounds", "0".into(), cure);
            }
            _ => {}
        }
        if self.rounds > 0 && self.round_burn_in + 2 > self.round_iterations {
            let cure = "a tuning round must be longer than its burn-in by at least 2 iterations";
            return wrong("schedule.iterations", self.round_iterations.to_string(), cure);
        }
        if self.collect < 10 {
            return wrong("training.collect", self.collect.to_string(), "at least 10 iterations are needed");
        }
        if self.fits == 0 || self.fits > 20 {
            let cure = "between 1 and 20 rounds are possible, each with twice the samples of the one before";
            return wrong("training.rounds", self.fits.to_string(), cure);
        }
        if self.iterations == 0 {
            return wrong("run.iterations", "0".into(), "at least 1 iteration is needed");
        }
        if self.trajectories == Some(0) {
            return wrong("output.every", "0".into(), "keep a frame every 1 or more iterations");
        }
        if self.thin == 0 || self.thin > self.iterations {
            return wrong(
                "run.thin",
                self.thin.to_string(),
                "keep at least one draw: 1 <= thin <= iterations",
            );
        }
        Ok(())
    }
}
