//! A whole run: tuning rounds, collecting and fitting, burn-in, sampling.
//!
//! A run is three things: its progress, its ladders, and its fits.

use crate::Result;
use crate::acceleration::{Acceleration, FitReport, Fitted};
use crate::fitted::Modes;
use crate::iteration::Sampler;
use crate::path::AnnealingPath;
use crate::paths::Geometric;
use crate::records::{Counts, Draws, SamplingRecord};
use crate::trace::{LadderTrace, RoundTrace};
use std::sync::Arc;

mod among;
mod by_engine;
mod climbs;
mod first_block;
mod fits;
mod ladder;
mod outlook;
mod parts;
mod progress;
mod reference;
mod results;
mod rows;
mod saved;
mod settings;
mod stood_out;
mod tuning;
mod until;

use by_engine::ByEngine;
use fits::Fits;
use ladder::Ladder;
use progress::{Asked, Progress};

pub use fits::PlainStage;
pub use progress::Stage;
pub use reference::FitReference;
pub use results::{Leg, Results};
pub use settings::{Criterion, Settings};
pub use until::{Reached, StoppedBy, Until};

/// A run that can be advanced piece by piece; how it is cut never changes a bit.
///
/// ```
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// let path = Geometric::from_standard_normal(Normal::isotropic(3, 10.0));
/// let settings = Settings { chains: 4, rounds: 4, iterations: 5_000, ..Settings::default() };
/// let mut run = Run::new(std::sync::Arc::new(path), settings).unwrap();
/// run.complete().unwrap();
/// let log_z = run.results().log_z;
/// assert!((log_z.bar + 1.5 * 10f64.ln()).abs() < 5.0 * log_z.standard_error);
/// ```
pub struct Run {
    settings: Settings,
    /// The path that the run was given; the ladder may be on a learned one.
    first_path: Arc<dyn AnnealingPath>,
    acceleration: Acceleration,
    progress: Progress,
    ladder: Ladder,
    fits: Fits,
    /// The reference, where it is fitted.
    reference: Option<reference::Fitted>,
    by_engine: ByEngine,
    /// What this rank has asked that the others have not been told, where there are others.
    unsaid: Asked,
    /// How far sampling had come when it was last looked at.
    last_look: Option<(u64, Reached)>,
    slowest: Option<until::Slowest>,
}

impl Run {
    /// Parallel tempering: replicas drawn from the reference, uniform schedule, plain swaps.
    pub fn new(path: Arc<dyn AnnealingPath>, settings: Settings) -> Result<Self> {
        Self::accelerated(path, settings, Acceleration::None)
    }

    /// Accelerated parallel tempering.
    pub fn accelerated(
        path: Arc<dyn AnnealingPath>,
        settings: Settings,
        acceleration: Acceleration,
    ) -> Result<Self> {
        settings.check()?;
        Settings::check_dimension(path.dim())?;
        let ladder = Ladder::start(path.clone(), &settings, &acceleration)?;
        let mut run = Self::around(ladder, path, settings, acceleration, None);
        run.enter(Stage::Tuning(0));
        Ok(run)
    }

    /// A run whose reference is fitted: `ground` leads to the target from a broad normal, the anchor, which is where the run
    /// begins to look. See [`Settings::fit`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sterna::acceleration::Acceleration;
    /// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
    /// // A thousand times as wide as the anchor.
    /// let ground = Arc::new(Geometric::from_standard_normal(Normal::isotropic(3, 1e-6)));
    /// let mut run = Run::from_anchor(ground, Settings::fitted(), Acceleration::None).unwrap();
    /// run.complete().unwrap();
    /// let results = run.results();
    /// assert!((results.log_z.bar - 1.5 * 1e6f64.ln()).abs() < 5.0 * results.log_z.standard_error);
    /// assert!(results.evaluations < 20_000);
    /// ```
    pub fn from_anchor(
        ground: Arc<Geometric>,
        settings: Settings,
        acceleration: Acceleration,
    ) -> Result<Self> {
        settings.check()?;
        Settings::check_dimension(ground.dim())?;
        let reference = reference::Fitted::new(ground.clone())?;
        let ladder = Ladder::before_climbs(ground.clone(), &settings, &acceleration)?;
        let mut run = Self::around(ladder, ground, settings, acceleration, Some(reference));
        run.enter(Stage::Climbing);
        Ok(run)
    }

    fn around(
        ladder: Ladder,
        first_path: Arc<dyn AnnealingPath>,
        settings: Settings,
        acceleration: Acceleration,
        reference: Option<reference::Fitted>,
    ) -> Self {
        Self {
            ladder,
            first_path,
            progress: Progress::new(),
            fits: Fits::default(),
            reference,
            by_engine: ByEngine::default(),
            unsaid: Asked::default(),
            last_look: None,
            slowest: None,
            settings,
            acceleration,
        }
    }

    /// Where the run stands: stage, iterations (or steps of a fit) done in it, iterations it has.
    pub fn progress(&self) -> (Stage, u64, u64) {
        let stage = self.progress.stage;
        let total = match stage {
            Stage::Climbing => 1,
            Stage::Tuning(round) | Stage::Retuning(round) => self.settings.round(round).0,
            Stage::Collecting => self.fits.collect,
            Stage::Fitting => {
                let (done, total) = self.fits.under_way.as_ref().map_or((0, 0), |(_, fit)| fit.progress());
                return (stage, done, total);
            }
            Stage::BurnIn => self.burn_in(),
            Stage::Sampling => self.settings.iterations,
            Stage::Finished => 0,
        };
        (stage, self.progress.stage_iterations, total)
    }

    /// Iterations of burn-in: more than were asked for where transports that were chosen are looked at.
    pub fn burn_in_iterations(&self) -> u64 {
        self.burn_in()
    }

    /// Goes on to the end.
    pub fn complete(&mut self) -> Result<()> {
        while self.progress.stage != Stage::Finished {
            self.advance(u64::MAX)?;
        }
        Ok(())
    }

    /// Goes on by at most `most` iterations of the present stage; to the next change at the latest.
    pub fn advance(&mut self, most: u64) -> Result<()> {
        let before = Asked::by(&*self.ladder.sampler.path);
        if let Some((_, fitting)) = &mut self.fits.under_way {
            fitting.advance(most)?;
            self.count_as_first(before)?;
            return self.change();
        }
        if self.progress.stage == Stage::Climbing {
            return self.climb();
        }
        let next = self.until_change();
        let block = next.min(most);
        let done = self.progress.iteration;
        self.progress.iteration += block;
        self.progress.stage_iterations += block;
        if self.has_engine()? {
            self.advance_by_engine(done, block)?;
        } else {
            let records = match self.progress.stage {
                Stage::BurnIn => self.watches_burn_in(),
                _ => self.reference.is_some(),
            };
            self.ladder.advance(self.progress.stage, records, done, block)?;
        }
        self.unsaid.add_since(before, &*self.ladder.sampler.path);
        if block == next {
            self.gather_for_change()?;
        }
        self.change()
    }

    /// Iterations until something changes: a block of adaptation, the half and end of burn-in, of a round, of a stage.
    fn until_change(&self) -> u64 {
        let (stage, done, total) = self.progress();
        let next = match stage {
            Stage::Tuning(round) | Stage::Retuning(round) if done < self.settings.round(round).1 => {
                let block = self.adaptation_block(round);
                ((done / block + 1) * block).min(self.settings.round(round).1)
            }
            Stage::BurnIn if done < self.half_of_burn_in() => self.half_of_burn_in(),
            Stage::Tuning(_) => self.next_look_at_tuning(done),
            Stage::Sampling => self.next_look(done),
            _ => total,
        };
        next.min(total) - done
    }

    /// Changes what is due at this iteration.
    fn change(&mut self) -> Result<()> {
        let (stage, done, total) = self.progress();
        match stage {
            Stage::Tuning(round) if self.reference.is_some() && self.round_ends(round, done) => {
                self.refit(round)?;
                let settled = self.reference.as_ref().is_some_and(|reference| reference.state.settled);
                let enough = settled || self.tuning_is_spent();
                self.enter(if enough { Stage::Collecting } else { Stage::Tuning(round + 1) });
            }
            Stage::Tuning(round) if done == total => {
                self.ladder.free_stranded()?;
                self.tune()?;
                self.enter(Stage::Tuning(round + 1));
            }
            Stage::Retuning(round) if done == total => {
                self.ladder.free_stranded()?;
                self.tune()?;
                if round + 1 == self.settings.rounds && self.settings.guard {
                    self.guard_path()?;
                }
                self.enter(Stage::Retuning(round + 1));
            }
            Stage::Tuning(round) | Stage::Retuning(round) if self.ends_adaptation_block(round, done) => {
                self.adapt(2.0 / (1.0 + round as f64));
                self.ladder.clear_tuning(total);
            }
            Stage::Collecting if done == total => self.end_collecting()?,
            Stage::Fitting if done == total => self.finish_fit()?,
            Stage::BurnIn if done == total => {
                let anew = self.look_again()?;
                self.enter(if anew { Stage::BurnIn } else { Stage::Sampling });
            }
            Stage::BurnIn if done == self.half_of_burn_in() => {
                if self.reference.is_none() {
                    self.ladder.free_stranded()?;
                }
                self.follow_burn_in()?;
            }
            Stage::Sampling => {
                if let Some(reason) = self.ends_on_all(done)? {
                    self.finish(reason);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Enters a stage, passing over empty ones.
    fn enter(&mut self, stage: Stage) {
        if self.progress.stage == Stage::Climbing {
            self.progress.climbing = self.asked();
        }
        self.progress.stage = match stage {
            Stage::Tuning(round) if round >= self.settings.rounds => return self.enter(Stage::Collecting),
            Stage::Collecting if !matches!(self.acceleration, Acceleration::Fitted(_)) => {
                return self.enter(Stage::BurnIn);
            }
            Stage::Collecting if self.leaves_fit() => return self.enter(Stage::BurnIn),
            Stage::Retuning(round) if round >= self.settings.rounds => return self.enter_after_fit(),
            Stage::BurnIn if self.burn_in() == 0 => return self.enter(Stage::Sampling),
            stage => stage,
        };
        self.progress.stage_iterations = 0;
        self.progress.before_stage = (self.asked(), self.round_trips());
        if stage == Stage::Collecting && self.fits.done == 0 {
            self.begin_plain_stage();
        }
        if let (Stage::Collecting, Acceleration::Fitted(fit)) = (stage, &self.acceleration) {
            let wanted = fit.wants_scores();
            self.ladder.shards.iter_mut().for_each(|shard| shard.collecting.want_path_scores(wanted));
        }
        if stage == Stage::Sampling {
            self.progress.before_sampling = self.asked();
            let Settings { iterations, thin, trajectories, .. } = self.settings;
            let modes = self.mixture().and_then(Modes::of);
            for shard in &mut self.ladder.shards {
                let record = SamplingRecord::new(&shard.ensemble, iterations, thin).with_modes(modes.clone());
                shard.sampling = Some(record.with_trajectories(trajectories));
            }
        }
        if matches!(stage, Stage::BurnIn | Stage::Sampling) {
            self.take_turns();
        }
        self.ladder.clear_tuning(self.settings.round_iterations);
        if stage == Stage::Collecting && self.fits.done == 0 {
            self.keep_as_tuned();
        }
    }

    /// Sampling is over.
    fn finish(&mut self, reason: StoppedBy) {
        self.progress.stopped_by = Some(reason);
        self.enter(Stage::Finished);
    }

    /// Another round of fitting, or on to sampling.
    fn enter_after_fit(&mut self) {
        self.enter(if self.fits.done < self.settings.fits { Stage::Collecting } else { Stage::BurnIn });
    }

    /// What plain swaps did on the tuned ladder, once an accelerator has been fitted.
    pub fn plain_stage(&self) -> Option<&PlainStage> {
        self.fits.plain.as_ref().filter(|_| self.fits.done > 0)
    }

    /// What the last fit did, where there was one.
    pub fn fit_report(&self) -> Option<&FitReport> {
        self.fitted().map(|f| &f.report)
    }

    /// What the last fit made, where there was one.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fits.fitted.as_ref()
    }

    /// Points at which the target and learned paths' networks were evaluated so far, outside fits.
    fn asked(&self) -> Asked {
        self.progress.asked.total(&*self.ladder.sampler.path)
    }

    /// Points at which the target was evaluated so far.
    pub fn evaluations(&self) -> u64 {
        self.asked().target
    }

    /// Those that climbs asked for, and the points that ladders began from.
    pub fn climbing_evaluations(&self) -> u64 {
        self.progress.climbing.target
    }

    /// Means and standard deviations of the broad normal that a run with a fitted reference was given to begin from.
    pub fn given_anchor(&self) -> Option<(&[f64], &[f64])> {
        self.reference.as_ref()?.ground.reference().as_normal()
    }

    /// How tuning went, round by round.
    pub fn rounds(&self) -> &[RoundTrace] {
        &self.progress.rounds
    }

    /// What is remembered of sampling, ladder after ladder. Empty before sampling has begun.
    pub fn traces(&self) -> impl Iterator<Item = &LadderTrace> + Clone {
        self.records().flat_map(|record| &record.traces)
    }

    /// Rejection rate of each pair in what the present stage has recorded; NaN where nothing was.
    pub fn rejection_rates_so_far(&self) -> Vec<f64> {
        let chains = self.ladder.chains();
        match self.records().next() {
            Some(_) => Counts::rejection_rates(self.records().map(|r| &r.counts), chains),
            None => Counts::rejection_rates(self.ladder.tuning_counts(), chains),
        }
    }

    /// (β, ∫₀^β λ) as the last tuning round found it.
    pub fn barrier_curve(&self) -> Vec<(f64, f64)> {
        self.ladder.barrier.curve()
    }

    /// What is frozen at present.
    pub fn sampler(&self) -> &Sampler {
        &self.ladder.sampler
    }

    /// Settings of the run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Round trips since sampling began (before that, since the start).
    pub fn round_trips(&self) -> u64 {
        self.ladder.round_trips()
    }

    /// Records of sampling, ladder after ladder. Empty before sampling has begun.
    pub fn records(&self) -> impl Iterator<Item = &SamplingRecord> + Clone {
        self.ladder.records()
    }

    /// What is remembered of the time before sampling, ladder after ladder: iterations, counted from 1, and the target's chain after
    /// each. For people to look at, evenly spread and at most 512 of them.
    pub fn warmup(&self) -> impl Iterator<Item = (Vec<u32>, Draws)> {
        self.ladder.shards.iter().flat_map(|shard| shard.warmup.draws())
    }

    /// Takes the draws out, ladder after ladder: those since they were last taken out. Estimates do not need
    /// them, so a run of any length fits into memory if its owner puts draws elsewhere now and then.
    pub fn take_draws(&mut self) -> Vec<Draws> {
        let records = self.ladder.shards.iter_mut().filter_map(|s| s.sampling.as_mut());
        records.flat_map(|r| r.draws.iter_mut().map(Draws::take)).collect()
    }
}
