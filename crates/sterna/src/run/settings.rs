//! What defines a run apart from its path.

use super::{FitReference, Until};
use crate::explorer::Explorer;
use crate::explorers::{Auto, Hmc};
use crate::{Error, Result, Streams};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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

/// Iterations that a stage may have, 2⁴⁴. All stages together stay below 2⁴⁸, where the random numbers' count ends.
const MOST_ITERATIONS: u64 = 1 << 44;

/// Everything that defines a run, apart from the path.
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::{Hmc, StepSize};
/// use sterna::run::Settings;
/// let explorer = Arc::new(Hmc { leapfrog_steps: 3, step_size: StepSize::Fixed(0.1), ..Hmc::default() });
/// let settings = Settings { chains: 8, explorer, ..Settings::default() };
/// assert!(settings.check().is_ok());
/// assert!(Settings { chains: 1, ..settings }.check().is_err());
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Chains, so `chains − 1` pairs.
    pub chains: usize,
    /// Independent copies of the ladder.
    pub ensembles: usize,
    /// Local moves; the run asks them to [`begin`](Explorer::begin) and adapts them.
    #[serde(skip, default = "default_explorer")]
    pub explorer: Arc<dyn Explorer>,
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
    /// Iterations before sampling, with everything frozen; more where transports that were chosen are looked at again.
    pub burn_in: u64,
    /// Iterations of sampling.
    pub iterations: u64,
    /// Keep every so many draws.
    pub thin: u64,
    /// Keep the points of all chains every so many iterations of sampling; if not given, never.
    pub trajectories: Option<u64>,
    /// How the reference is fitted, in [`Run::from_anchor`](super::Run::from_anchor): rounds of tuning then double, from
    /// `round_iterations` on, at most `rounds` of them, and choose the number of chains.
    pub fit: Option<FitReference>,
    /// When sampling has done enough; if not given, after all `iterations`.
    pub until: Option<Until>,
}

/// All fields are; explorers if they save the same.
impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        let plain = |settings: &Self| postcard::to_allocvec(settings).ok();
        plain(self) == plain(other) && *self.explorer == *other.explorer
    }
}

/// One trajectory of five leapfrog steps, its step sizes and masses adapted.
fn default_explorer() -> Arc<dyn Explorer> {
    Arc::new(Hmc::default())
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            chains: 10,
            ensembles: 1,
            explorer: default_explorer(),
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
            fit: None,
            until: None,
        }
    }
}

impl Settings {
    /// What suits a density of which nothing is known: a fitted reference with an anchor, moves that find their step, four
    /// ladders, and an end when there are a thousand effective draws.
    pub fn fitted() -> Self {
        Self {
            chains: 12,
            ensembles: 4,
            explorer: Arc::new(Auto::default()),
            rounds: 9,
            round_iterations: 16,
            round_burn_in: 4,
            burn_in: 32,
            iterations: 1 << 20,
            fit: Some(FitReference::default()),
            until: Some(Until::default()),
            ..Self::default()
        }
    }

    /// Iterations of a round of tuning, and how many of those the tuning of the schedule does not look at.
    pub(super) fn round(&self, round: usize) -> (u64, u64) {
        match self.fit {
            None => (self.round_iterations, self.round_burn_in),
            Some(_) => {
                let length = self.round_iterations.max(4) << round.min(40);
                (length, length / 4)
            }
        }
    }

    /// The explorer that was saved in a run with these settings.
    pub(super) fn restore_explorer(
        &self,
        saved: &[u8],
        chains: usize,
        dim: usize,
    ) -> Result<Arc<dyn Explorer>> {
        let restored = self.explorer.restore(saved, chains, dim)?;
        Ok(restored.unwrap_or_else(|| self.explorer.clone()))
    }

    /// Names the first setting that cannot be, with a cure.
    pub fn check(&self) -> Result<()> {
        let wrong = |setting, value: String, cure| Err(Error::Setting { setting, value, cure });
        if self.chains < 2 {
            return wrong("Settings.chains", self.chains.to_string(), "a ladder needs at least 2 chains");
        }
        if self.ensembles == 0 {
            return wrong("Settings.ensembles", "0".into(), "at least 1 ensemble is needed");
        }
        self.check_replicas()?;
        self.explorer.check(self.chains, self.rounds)?;
        if self.rounds > 0 && self.round_burn_in.saturating_add(2) > self.round_iterations {
            let cure = "a tuning round must be longer than its burn-in by at least 2 iterations";
            return wrong("Settings.round_iterations", self.round_iterations.to_string(), cure);
        }
        if self.collect < 10 {
            return wrong("Settings.collect", self.collect.to_string(), "at least 10 iterations are needed");
        }
        if self.fits == 0 || self.fits > 20 {
            let cure = "between 1 and 20 rounds are possible, each with twice the samples of the one before";
            return wrong("Settings.fits", self.fits.to_string(), cure);
        }
        if self.rounds > 10_000 {
            return wrong("Settings.rounds", self.rounds.to_string(), "at most 10000 rounds are possible");
        }
        self.check_length()?;
        if self.iterations == 0 {
            return wrong("Settings.iterations", "0".into(), "at least 1 iteration is needed");
        }
        if self.trajectories == Some(0) {
            return wrong("Settings.trajectories", "0".into(), "keep a frame every 1 or more iterations");
        }
        if let Some(until) = &self.until {
            until.check()?;
        }
        if self.thin == 0 || self.thin > self.iterations {
            return wrong(
                "Settings.thin",
                self.thin.to_string(),
                "keep at least one draw: 1 <= thin <= iterations",
            );
        }
        Ok(())
    }

    /// A replica's number keys its random numbers, and has 32 bits.
    fn check_replicas(&self) -> Result<()> {
        let (chains, ensembles) = (self.chains, self.ensembles);
        if chains.checked_mul(ensembles).is_some_and(|replicas| u32::try_from(replicas).is_ok()) {
            return Ok(());
        }
        let cure =
            "chains times ensembles are at most 4294967295 replicas: give fewer chains, or fewer ensembles";
        Err(match ensembles {
            1 => Error::setting("Settings.chains", chains, cure),
            _ => Error::setting("Settings.ensembles", format!("{ensembles} of {chains} chains"), cure),
        })
    }

    /// Counts of iterations can be added up, and doubled as often as there are fits.
    fn check_length(&self) -> Result<()> {
        let tuning = self.round_iterations.saturating_mul(self.rounds.max(1) as u64);
        let fitting = self.collect.saturating_mul(1 << self.fits);
        let stages = [
            ("Settings.round_iterations", self.round_iterations, tuning),
            ("Settings.collect", self.collect, fitting),
            ("Settings.burn_in", self.burn_in, self.burn_in),
            ("Settings.iterations", self.iterations, self.iterations),
        ];
        for (setting, given, in_all) in stages {
            if in_all > MOST_ITERATIONS {
                let cure = "a stage has at most 17592186044416 iterations, all its rounds together";
                return Err(Error::setting(setting, given, cure));
            }
        }
        Ok(())
    }

    /// Whether a target of dimension `dim` can be sampled.
    pub fn check_dimension(dim: usize) -> Result<()> {
        const { assert!(Streams::MOST_NORMALS == 131_072) };
        match dim > Streams::MOST_NORMALS {
            true => Err(Error::setting("Target.dim", dim, "a target has at most 131072 coordinates")),
            false => Ok(()),
        }
    }
}
