//! A whole run: tuning rounds, collecting and fitting, burn-in, sampling.

use crate::acceleration::{Acceleration, CollectRecord, Collected, FitReport, Fitted, Fitting};
use crate::engine::{Engine, Journal, MakeEngine};
use crate::ensemble::Ensemble;
use crate::explorer::Explorer;
use crate::explorers::{Followed, Hmc, StepSizes};
use crate::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use crate::path::{AnnealingPath, Points};
use crate::records::{Counts, Draws, SamplingRecord, TuningRecord};
use crate::schedule::{Schedule, cumulative_barrier};
use crate::streams::{Phase, Streams};
use crate::trace::{LadderTrace, RoundTrace};
use crate::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

mod by_engine;
mod fitting;
mod results;
mod saved;
mod settings;
mod tuning;

pub use fitting::PlainStage;
pub use results::Results;
pub use settings::{Criterion, Settings, StepSize};

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

    /// Takes the draws out, ladder after ladder: those since they were last taken out. Estimates do not need
    /// them, so a run of any length fits into memory if its owner puts draws elsewhere now and then.
    pub fn take_draws(&mut self) -> Vec<Draws> {
        let records = self.shards.iter_mut().filter_map(|s| s.sampling.as_mut());
        records.flat_map(|r| r.draws.iter_mut().map(Draws::take)).collect()
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
