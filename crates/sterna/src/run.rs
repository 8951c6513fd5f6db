//! A whole run: tuning rounds, burn-in, sampling. Everything changes between rounds, by new values.

use crate::acceleration::{Acceleration, CollectRecord, Collected, FitReport, Fitted, Fitting, PairReport};
use crate::adaptation::{adapt_by_paper, adapt_scales, adapt_step_sizes, move_sizes};
use crate::engine::{Engine, Journal, MakeEngine};
use crate::ensemble::Ensemble;
use crate::estimates::{LogZ, Series, effective_draws, log_z_of, round_trip_rate};
use crate::explorer::Explorer;
use crate::explorers::{Followed, Hmc, StepSizes};
use crate::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use crate::path::{AnnealingPath, Points};
use crate::records::{BadPoint, Counts, Draws, SamplingRecord, TuningRecord};
use crate::schedule::{Schedule, cumulative_barrier};
use crate::streams::{Phase, Streams};
use crate::trace::{LadderTrace, RoundTrace};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

mod by_engine;
mod learned_path;
mod saved;

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
    fn adapts(&self) -> bool {
        matches!(self, Self::Adapt { .. } | Self::Paper)
    }
}

/// What the schedule is tuned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// In a tuning round, from 0.
    Tuning(usize),
    /// Samples for an accelerator, all frozen.
    Collecting,
    /// The accelerator is made from those samples, step by step.
    Fitting,
    /// In a tuning round, from 0, on a path that was learned.
    Retuning(usize),
    /// Before sampling, all frozen.
    BurnIn,
    /// Draws count.
    Sampling,
    /// All done.
    Finished,
}

/// Some of the ladders with all they need: the unit that threads share out.
#[derive(Serialize, Deserialize)]
struct Shard {
    ensemble: Ensemble,
    #[serde(skip)]
    work: Workspace,
    tuning: TuningRecord,
    collecting: CollectRecord,
    sampling: Option<SamplingRecord>,
}

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
    /// The path that the run was given; `sampler` may have a learned one.
    first_path: Arc<dyn AnnealingPath>,
    acceleration: Acceleration,
    sampler: Sampler,
    sizes: StepSizes,
    shards: Vec<Shard>,
    stage: Stage,
    stage_iterations: u64,
    fits: usize,
    /// What the fit under way sees.
    collected: Option<Arc<Collected>>,
    fitting: Option<Box<dyn Fitting>>,
    fitted: Option<Fitted>,
    /// Record of the last fit that brought a path.
    path_record: Option<Arc<[u8]>>,
    iteration: u64,
    local_barriers: Vec<f64>,
    barrier_schedule: Schedule,
    /// On earlier paths, or by an engine: not counted by the present path.
    evaluations_elsewhere: u64,
    evaluations_before_sampling: u64,
    network_evaluations_on_earlier_paths: u64,
    network_evaluations_before_sampling: u64,
    rounds: Vec<RoundTrace>,
    /// While it lasts, what had been counted when it began.
    plain: Option<PlainStage>,
    /// Makes what carries out burn-in and sampling, where that is not the cores.
    engine_maker: Option<Arc<dyn MakeEngine>>,
    engine: Option<(Box<dyn Engine>, Journal)>,
    engine_replaced: Option<String>,
}

/// Plain swaps on the tuned ladder, as the first samples for a fit were collected: what an accelerator is
/// held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainStage {
    /// Iterations.
    pub iterations: u64,
    /// Round trips of all ladders.
    pub round_trips: u64,
    /// Target evaluations.
    pub evaluations: u64,
    /// Target evaluations of the tuning before.
    pub tuning_evaluations: u64,
    /// Rejection rate of each pair.
    pub rejection_rates: Vec<f64>,
    /// The tuned schedule.
    pub schedule: Schedule,
    /// The tuned step sizes.
    pub sizes: StepSizes,
    /// λ(β) at each chain.
    pub local_barriers: Vec<f64>,
}

/// What a finished (or interrupted) run has found.
#[derive(Clone, Debug)]
pub struct Results {
    /// Sampling iterations so far.
    pub iterations: u64,
    /// The schedule in use.
    pub schedule: Schedule,
    /// Rejection rate of each pair, by the tanh estimator.
    pub rejection_rates: Vec<f64>,
    /// λ(β) on the schedule of the last tuning round: (β, λ).
    pub local_barrier: Vec<(f64, f64)>,
    /// Round trips of all ladders.
    pub round_trips: u64,
    /// Round trips per iteration and ladder.
    pub round_trip_rate: f64,
    /// What the rejection rates allow.
    pub round_trip_rate_predicted: f64,
    /// log Z in all its estimates.
    pub log_z: LogZ,
    /// Its true value, where known.
    pub log_z_truth: Option<f64>,
    /// Mean of each coordinate on the target chain with its standard error.
    pub means: Vec<(f64, f64)>,
    /// Effective sample size of each coordinate on the target chain.
    pub ess: Vec<f64>,
    /// Mean acceptance of local moves of each chain; NaN where draws are exact.
    pub acceptance: Vec<f64>,
    /// Step sizes in use.
    pub sizes: StepSizes,
    /// Proposals at which the target answered NaN or +∞, and the first of them.
    pub bad: (u64, Option<BadPoint>),
    /// Target evaluations, tuning included.
    pub evaluations: u64,
    /// Target evaluations of sampling alone.
    pub sampling_evaluations: u64,
    /// Points at which a learned path asked its network, tuning included; transports count for themselves.
    pub network_evaluations: u64,
    /// Those of sampling alone.
    pub sampling_network_evaluations: u64,
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
        let (chains, dim) = (settings.chains, path.dim());
        let sizes = match &settings.step_size {
            StepSize::Fixed(size) => StepSizes::fixed(chains, dim, *size),
            StepSize::PerChain(sizes) => StepSizes::per_chain(sizes.clone(), dim),
            StepSize::Adapt { .. } | StepSize::Paper => StepSizes::fixed(chains, dim, 0.1),
        };
        let schedule = match &acceleration {
            Acceleration::Kept(_, schedule) if schedule.chains() != chains => {
                let cure = "the accelerator was made for a schedule of another number of chains";
                return Err(Error::Setting { field: "chains.count", value: chains.to_string(), cure });
            }
            Acceleration::Kept(_, schedule) => schedule.clone(),
            _ => path.first_schedule(chains),
        };
        let first_path = path.clone();
        let sampler = Sampler {
            schedule: schedule.clone(),
            explorer: explorer(&settings, &sizes, &*path),
            path,
            accelerator: acceleration.at_start(),
            streams: Streams::new(settings.seed),
        };
        let mut shards = Vec::new();
        let mut first = 0;
        for copies in parts(settings.ensembles) {
            let ensemble = Ensemble::start(&*sampler.path, &sampler.streams, &schedule, first, copies)?;
            let work = Workspace::new(&ensemble);
            let tuning = TuningRecord::new(copies, chains, dim, settings.round_iterations as usize);
            let collecting = CollectRecord::new(copies, chains);
            shards.push(Shard { ensemble, work, tuning, collecting, sampling: None });
            first += copies;
        }
        // Asked of all ladders at once: how they are shared out must not matter.
        if shards.iter().all(|shard| shard.ensemble.is_lost()) {
            look_for_support(&*sampler.path, &sampler.streams, settings.ensembles * chains)?;
        }
        let mut run = Self {
            local_barriers: vec![f64::NAN; chains],
            barrier_schedule: schedule,
            evaluations_elsewhere: 0,
            evaluations_before_sampling: 0,
            network_evaluations_on_earlier_paths: 0,
            network_evaluations_before_sampling: 0,
            rounds: Vec::new(),
            plain: None,
            engine_maker: None,
            engine: None,
            engine_replaced: None,
            stage: Stage::Tuning(0),
            stage_iterations: 0,
            fits: 0,
            collected: None,
            fitting: None,
            fitted: None,
            path_record: None,
            iteration: 0,
            settings,
            first_path,
            acceleration,
            sampler,
            sizes,
            shards,
        };
        run.enter(Stage::Tuning(0));
        Ok(run)
    }

    /// Where the run stands: stage, iterations (or steps of a fit) done in it, iterations it has.
    pub fn progress(&self) -> (Stage, u64, u64) {
        let total = match self.stage {
            Stage::Tuning(_) | Stage::Retuning(_) => self.settings.round_iterations,
            Stage::Collecting => self.settings.collect << self.fits,
            Stage::Fitting => {
                let (done, total) = self.fitting.as_ref().map_or((0, 0), |f| f.progress());
                return (self.stage, done, total);
            }
            Stage::BurnIn => self.settings.burn_in,
            Stage::Sampling => self.settings.iterations,
            Stage::Finished => 0,
        };
        (self.stage, self.stage_iterations, total)
    }

    /// Goes on to the end.
    pub fn complete(&mut self) -> Result<()> {
        while self.stage != Stage::Finished {
            self.advance(u64::MAX)?;
        }
        Ok(())
    }

    /// Goes on by at most `most` iterations of the present stage; to the next change at the latest.
    pub fn advance(&mut self, most: u64) -> Result<()> {
        if let Some(fitting) = &mut self.fitting {
            fitting.advance(most)?;
            return self.change();
        }
        let block = self.until_change().min(most);
        let done = self.iteration;
        self.iteration += block;
        self.stage_iterations += block;
        if self.has_engine()? {
            self.advance_by_engine(done, block)?;
        } else {
            self.advance_by_cores(done, block)?;
        }
        self.change()
    }

    /// So many iterations after `done`, each thread its own ladders.
    fn advance_by_cores(&mut self, done: u64, block: u64) -> Result<()> {
        let (stage, sampler) = (self.stage, &self.sampler);
        self.shards.par_iter_mut().try_for_each(|shard| -> Result<()> {
            let Shard { ensemble, work, tuning, collecting, sampling } = shard;
            let mut nothing = ();
            let out: &mut dyn Recorder = match stage {
                Stage::Tuning(_) | Stage::Retuning(_) => tuning,
                Stage::Collecting => &mut Both(tuning, collecting),
                Stage::Sampling => sampling.as_mut().expect("made on entering the stage"),
                Stage::Fitting | Stage::BurnIn | Stage::Finished => &mut nothing,
            };
            (done + 1..=done + block).try_for_each(|t| iterate(t, ensemble, sampler, work, out))
        })
    }

    /// Iterations until something changes: a block of adaptation, the half and end of burn-in, of a round, of a stage.
    fn until_change(&self) -> u64 {
        let (_, done, total) = self.progress();
        let next = match self.stage {
            Stage::Tuning(_) | Stage::Retuning(_) if done < self.settings.round_burn_in => {
                let block = self.adaptation_block();
                ((done / block + 1) * block).min(self.settings.round_burn_in)
            }
            Stage::BurnIn if done < total / 2 => total / 2,
            _ => total,
        };
        next.min(total) - done
    }

    /// Burn-in of a tuning round is cut into ten blocks; step sizes adapt after each.
    fn adaptation_block(&self) -> u64 {
        self.settings.round_burn_in.div_ceil(10).max(1)
    }

    fn ends_adaptation_block(&self, done: u64) -> bool {
        let burn_in = self.settings.round_burn_in;
        done == burn_in || (done < burn_in && done.is_multiple_of(self.adaptation_block()))
    }

    /// Changes what is due at this iteration.
    fn change(&mut self) -> Result<()> {
        let (stage, done, total) = self.progress();
        match stage {
            Stage::Tuning(round) if done == total => {
                self.free_stranded()?;
                self.tune()?;
                self.enter(Stage::Tuning(round + 1));
            }
            Stage::Retuning(round) if done == total => {
                self.free_stranded()?;
                self.tune()?;
                if round + 1 == self.settings.rounds && self.settings.guard {
                    self.guard_path()?;
                }
                self.enter(Stage::Retuning(round + 1));
            }
            Stage::Tuning(round) | Stage::Retuning(round) if self.ends_adaptation_block(done) => {
                self.adapt(2.0 / (1.0 + round as f64));
                self.clear_tuning();
            }
            Stage::Collecting if done == total => {
                self.begin_fit()?;
                self.enter(Stage::Fitting);
            }
            Stage::Fitting if done == total => self.finish_fit()?,
            Stage::BurnIn if done == total => self.enter(Stage::Sampling),
            Stage::BurnIn if done == total / 2 => self.free_stranded()?,
            Stage::Sampling if done == total => self.enter(Stage::Finished),
            _ => {}
        }
        Ok(())
    }

    /// Enters a stage, passing over empty ones.
    fn enter(&mut self, stage: Stage) {
        self.stage = match stage {
            Stage::Tuning(round) if round >= self.settings.rounds => return self.enter(Stage::Collecting),
            Stage::Collecting if !matches!(self.acceleration, Acceleration::Fitted(_)) => {
                return self.enter(Stage::BurnIn);
            }
            Stage::Retuning(round) if round >= self.settings.rounds => return self.enter_after_fit(),
            Stage::BurnIn if self.settings.burn_in == 0 => return self.enter(Stage::Sampling),
            stage => stage,
        };
        self.stage_iterations = 0;
        if stage == Stage::Collecting && self.fits == 0 {
            self.plain = Some(PlainStage {
                iterations: 0,
                round_trips: self.round_trips(),
                evaluations: 0,
                tuning_evaluations: self.evaluations(),
                rejection_rates: Vec::new(),
                schedule: self.sampler.schedule.clone(),
                sizes: self.sizes.clone(),
                local_barriers: Vec::new(),
            });
        }
        if stage == Stage::Sampling {
            self.evaluations_before_sampling = self.evaluations();
            self.network_evaluations_before_sampling = self.network_evaluations();
            for shard in &mut self.shards {
                let record =
                    SamplingRecord::new(&shard.ensemble, self.settings.iterations, self.settings.thin);
                shard.sampling = Some(record.with_trajectories(self.settings.trajectories));
            }
        }
        self.clear_tuning();
    }

    /// Another round of fitting, or on to sampling.
    fn enter_after_fit(&mut self) {
        self.enter(if self.fits < self.settings.fits { Stage::Collecting } else { Stage::BurnIn });
    }

    /// No replica may stay where it started for want of moves: checked after each round, and halfway through burn-in.
    fn free_stranded(&mut self) -> Result<()> {
        let Sampler { path, streams, schedule, .. } = &self.sampler;
        self.shards.iter_mut().try_for_each(|shard| shard.ensemble.free_stranded(&**path, streams, schedule))
    }

    fn clear_tuning(&mut self) {
        let iterations = self.settings.round_iterations as usize;
        for shard in &mut self.shards {
            let (copies, dim) = (shard.ensemble.copies(), shard.ensemble.points.x.dim());
            shard.tuning = TuningRecord::new(copies, self.settings.chains, dim, iterations);
        }
    }

    fn tuning_counts(&self) -> impl Iterator<Item = &Counts> + Clone {
        self.shards.iter().map(|s| &s.tuning.counts)
    }

    fn adapt(&mut self, gain: f64) {
        let measured = Counts::acceptance(self.tuning_counts(), self.settings.chains);
        self.sizes = match self.settings.step_size {
            StepSize::Adapt { acceptance } => adapt_step_sizes(&self.sizes, &measured, acceptance, gain),
            StepSize::Paper => adapt_by_paper(&self.sizes, &measured),
            StepSize::Fixed(_) | StepSize::PerChain(_) => return,
        };
        self.sampler.explorer = explorer(&self.settings, &self.sizes, &*self.sampler.path);
    }

    /// End of a round: new schedule, scales and step sizes.
    fn tune(&mut self) -> Result<()> {
        let chains = self.settings.chains;
        self.adapt(1.0);
        let records = self.shards.iter().map(|s| &s.tuning);
        self.local_barriers = TuningRecord::local_barriers(records.clone(), chains);
        self.barrier_schedule = self.sampler.schedule.clone();
        self.rounds.push(self.trace_round());
        let old = &self.sampler.schedule;
        // λ(β) is about plain swaps: an accelerator is judged by its own rejections.
        let by_rejections =
            self.settings.criterion == Criterion::Rejection || self.sampler.accelerator.steps() > 0;
        let kept = matches!(self.acceleration, Acceleration::Kept(..));
        let new = if kept || self.settings.criterion == Criterion::Fixed {
            old.clone()
        } else if by_rejections {
            old.equalise_rejections(&Counts::rejection_rates(self.tuning_counts(), chains))
        } else {
            old.equalise_barrier(&self.local_barriers, chains)
        };
        if self.settings.adapt_masses
            && self.settings.step_size.adapts()
            && self.settings.step_size != StepSize::Paper
        {
            let information = TuningRecord::information(records, chains, self.sampler.path.dim());
            self.sizes = adapt_scales(&self.sizes, &information);
        }
        self.move_chains(new)
    }

    /// Between rounds of fitting, chains move to where the swaps of the accelerator so far would be rejected equally
    /// often: where it has learned much they may lie farther apart.
    fn spread_chains(&mut self) -> Result<()> {
        let Some(fitted) = self.fitted.as_ref().filter(|_| self.fits < self.settings.fits) else {
            return Ok(());
        };
        let rejections: Vec<f64> = fitted.report.pairs.iter().map(PairReport::used).collect();
        let known = rejections.len() == self.sampler.schedule.pairs();
        if !known || self.settings.criterion == Criterion::Fixed {
            return Ok(());
        }
        self.move_chains(self.sampler.schedule.equalise_rejections(&rejections))
    }

    fn move_chains(&mut self, new: Schedule) -> Result<()> {
        if self.settings.step_size.adapts() {
            self.sizes = move_sizes(&self.sizes, &self.sampler.schedule, &new);
            self.sampler.explorer = explorer(&self.settings, &self.sizes, &*self.sampler.path);
        }
        self.sampler.schedule = new;
        for shard in &mut self.shards {
            shard.ensemble.reschedule(&*self.sampler.path, &self.sampler.schedule)?;
        }
        Ok(())
    }

    /// End of collecting: the samples go to the fit.
    fn begin_fit(&mut self) -> Result<()> {
        let Acceleration::Fitted(fit) = &self.acceleration else { return Ok(()) };
        let (chains, dim) = (self.settings.chains, self.sampler.path.dim());
        let records = self.shards.iter().map(|s| &s.tuning);
        self.local_barriers = TuningRecord::local_barriers(records.clone(), chains);
        self.barrier_schedule = self.sampler.schedule.clone();
        let mut local_variance = TuningRecord::information(records, chains, dim);
        local_variance.as_mut_slice().iter_mut().for_each(|v| *v = v.recip());
        if let Some(before) = self.plain.clone().filter(|_| self.fits == 0) {
            self.plain = Some(PlainStage {
                iterations: self.stage_iterations,
                round_trips: self.round_trips() - before.round_trips,
                evaluations: self.evaluations() - before.tuning_evaluations,
                rejection_rates: Counts::rejection_rates(self.tuning_counts(), chains),
                local_barriers: self.local_barriers.clone(),
                ..before
            });
        }
        let collected = Arc::new(Collected {
            round: self.fits,
            schedule: self.sampler.schedule.clone(),
            samples: CollectRecord::samples(self.shards.iter().map(|s| &s.collecting), chains, dim),
            local_barrier: self.local_barriers.clone(),
            local_variance,
        });
        for shard in &mut self.shards {
            shard.collecting = CollectRecord::new(shard.ensemble.copies(), chains);
        }
        self.fitting = Some(fit.begin(collected.clone(), self.fitted.as_ref())?);
        self.collected = Some(collected);
        Ok(())
    }

    /// What plain swaps did on the tuned ladder, once an accelerator has been fitted.
    pub fn plain_stage(&self) -> Option<&PlainStage> {
        self.plain.as_ref().filter(|_| self.fits > 0)
    }

    /// What the last fit did, where there was one.
    pub fn fit_report(&self) -> Option<&FitReport> {
        self.fitted.as_ref().map(|f| &f.report)
    }

    /// What the last fit made, where there was one.
    pub fn fitted(&self) -> Option<&Fitted> {
        self.fitted.as_ref()
    }

    /// Points at which the target was evaluated so far, outside fits.
    fn evaluations(&self) -> u64 {
        // Wraps, since a restored run may sit on a path that has counted before.
        self.evaluations_elsewhere.wrapping_add(self.sampler.path.evaluations())
    }

    /// Points at which learned paths asked their networks so far, outside fits.
    fn network_evaluations(&self) -> u64 {
        self.network_evaluations_on_earlier_paths.wrapping_add(self.sampler.path.network_evaluations())
    }

    /// The round that ends, for people to look at.
    fn trace_round(&self) -> RoundTrace {
        let chains = self.settings.chains;
        RoundTrace::new(
            self.sampler.schedule.betas(),
            &Counts::rejection_rates(self.tuning_counts(), chains),
            self.barrier_curve().last().map_or(f64::NAN, |end| end.1),
            &self.sizes.step_size,
            &Counts::acceptance(self.tuning_counts(), chains),
        )
    }

    /// How tuning went, round by round.
    pub fn rounds(&self) -> &[RoundTrace] {
        &self.rounds
    }

    /// What is remembered of sampling, ladder after ladder. Empty before sampling has begun.
    pub fn traces(&self) -> impl Iterator<Item = &LadderTrace> + Clone {
        self.records().flat_map(|record| &record.traces)
    }

    /// Rejection rate of each pair in what the present stage has recorded; NaN where nothing was.
    pub fn rejection_rates_so_far(&self) -> Vec<f64> {
        let chains = self.settings.chains;
        match self.records().next() {
            Some(_) => Counts::rejection_rates(self.records().map(|r| &r.counts), chains),
            None => Counts::rejection_rates(self.tuning_counts(), chains),
        }
    }

    /// (β, ∫₀^β λ) as the last tuning round found it.
    pub fn barrier_curve(&self) -> Vec<(f64, f64)> {
        let betas = self.barrier_schedule.betas();
        betas.iter().copied().zip(cumulative_barrier(betas, &self.local_barriers)).collect()
    }

    /// What is frozen at present.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Settings of the run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Round trips since sampling began (before that, since the start).
    pub fn round_trips(&self) -> u64 {
        let of = |s: &Shard| match &s.sampling {
            Some(record) => record.round_trips.iter().sum(),
            None => s.ensemble.round_trips(),
        };
        self.shards.iter().map(of).sum()
    }

    /// Records of sampling, ladder after ladder. Empty before sampling has begun.
    pub fn records(&self) -> impl Iterator<Item = &SamplingRecord> + Clone {
        self.shards.iter().filter_map(|s| s.sampling.as_ref())
    }

    /// Estimates from the sampling so far.
    ///
    /// # Panics
    /// If sampling has not begun.
    pub fn results(&self) -> Results {
        let chains = self.settings.chains;
        let counts = self.records().map(|r| &r.counts);
        let iterations = self.records().next().expect("sampling has begun").counts.iterations;
        let rejection_rates = Counts::rejection_rates(counts.clone(), chains);
        let round_trips = self.round_trips();
        let weights: Vec<_> = self.records().flat_map(|r| r.weights()).collect();
        let series = self.coordinate_series();
        Results {
            iterations,
            schedule: self.sampler.schedule.clone(),
            local_barrier: self
                .barrier_schedule
                .betas()
                .iter()
                .copied()
                .zip(self.local_barriers.iter().copied())
                .collect(),
            round_trips,
            round_trip_rate: round_trips as f64 / (iterations * self.settings.ensembles as u64) as f64,
            round_trip_rate_predicted: round_trip_rate(&rejection_rates),
            rejection_rates,
            log_z: log_z_of(self.sampler.path.log_z_reference(), &weights),
            log_z_truth: self.sampler.path.log_z(),
            means: series.par_iter().map(|s| pooled_mean(s)).collect(),
            ess: series.par_iter().map(|s| effective_draws(s)).collect(),
            acceptance: Counts::acceptance(counts.clone(), chains),
            sizes: self.sizes.clone(),
            bad: (
                counts.clone().flat_map(|c| &c.local).map(|l| l.bad).sum(),
                Counts::first_bad_point(counts.clone()).cloned(),
            ),
            evaluations: self.evaluations(),
            sampling_evaluations: self.evaluations() - self.evaluations_before_sampling,
            network_evaluations: self.network_evaluations(),
            sampling_network_evaluations: self.network_evaluations()
                - self.network_evaluations_before_sampling,
        }
    }

    /// Takes the draws out, ladder after ladder: those since they were last taken out. Estimates do not need
    /// them, so a run of any length fits into memory if its owner puts draws elsewhere now and then.
    pub fn take_draws(&mut self) -> Vec<Draws> {
        let records = self.shards.iter_mut().filter_map(|s| s.sampling.as_mut());
        records.flat_map(|r| r.draws.iter_mut().map(Draws::take)).collect()
    }

    /// `[coordinate][ladder]` of the target chain.
    fn coordinate_series(&self) -> Vec<Vec<&Series>> {
        let dim = self.sampler.path.dim();
        let all = || self.records().flat_map(|r| &r.series);
        (0..dim).map(|j| all().skip(j).step_by(dim).collect()).collect()
    }
}

/// How many ladders each thread advances.
fn parts(ensembles: usize) -> impl Iterator<Item = usize> {
    let parts = rayon::current_num_threads().min(ensembles);
    (0..parts).map(move |part| ensembles * (part + 1) / parts - ensembles * part / parts)
}

/// Two records of one iteration.
struct Both<'a>(&'a mut TuningRecord, &'a mut CollectRecord);

impl Recorder for Both<'_> {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.0.record(step)?;
        self.1.record(step)
    }
}

/// One draw of the reference with a positive density is enough to go on: exact draws on chain 0 will
/// find more, and swaps carry them up. `drawn` had none; neither have a thousand others if this fails.
fn look_for_support(path: &dyn AnnealingPath, streams: &Streams, drawn: usize) -> Result<()> {
    let more = 1000;
    let mut points = Points::zeros(more, path.dim());
    let keys: Vec<u32> = (0..more as u32).collect();
    path.draw_reference(streams, Phase::Start.into(), 1, &keys, &mut points.x);
    path.evaluate(&vec![1.0; more], &mut points)?;
    if points.log_density.iter().all(|&l| l == f64::NEG_INFINITY) {
        return Err(Error::NoStart { draws: drawn + more });
    }
    Ok(())
}

/// Mean over independent ladders of equal length, and its standard error.
fn pooled_mean(ladders: &[&Series]) -> (f64, f64) {
    let each: Vec<_> = ladders.iter().map(|l| l.mean_with_error()).collect();
    let n = each.len() as f64;
    let variance: f64 = each.iter().map(|(_, e)| e * e).sum();
    (each.iter().map(|(m, _)| m).sum::<f64>() / n, variance.sqrt() / n)
}

fn hmc(settings: &Settings, sizes: &StepSizes) -> Hmc {
    let jitter = if matches!(settings.step_size, StepSize::Adapt { .. }) { 0.5 } else { 0.0 };
    Hmc { steps: settings.steps, leapfrog_steps: settings.leapfrog_steps, sizes: sizes.clone(), jitter }
}

fn explorer(settings: &Settings, sizes: &StepSizes, path: &dyn AnnealingPath) -> Arc<dyn Explorer> {
    let first: Arc<dyn Explorer> = Arc::new(hmc(settings, sizes));
    match path.own_moves() {
        Some(then) => Arc::new(Followed { first, then }),
        None => first,
    }
}
