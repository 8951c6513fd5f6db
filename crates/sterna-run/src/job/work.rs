//! A run on its way, with what a summary of it needs.

use super::ranks::{Next, Ranks};
use super::{Observer, Progress};
use crate::accelerators::{self, Plan};
use crate::alarms::exact_draws;
use crate::chemistry::{self, Observed};
use crate::closing;
use crate::config::{AcceleratorKind, Config, Count, ReferenceKind, TargetKind, word};
use crate::error::JobError;
use crate::problem::Problem;
use crate::progress::{Goal, Goals};
use crate::summary::Stopwatch;
use crate::summary::{About, Findings, Summary, Times};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use sterna::engine::MakeEngine;
use sterna::last_look::Seen;
use sterna::path::AnnealingPath;
use sterna::records::Draws;
use sterna::run::{Run, Stage};
use sterna::schedule::chains_for;

/// A run with what a summary of it needs.
pub(super) struct Work {
    pub problem: Problem,
    /// With all choices made.
    pub config: Config,
    pub about: About,
    pub run: Run,
    pub times: Times,
    /// Iterations at a time.
    pub block: u64,
    pub ranks: Ranks,
}

impl Work {
    pub fn begin(
        problem: Problem,
        config: &Config,
        plan: Plan,
        engine: Option<Arc<dyn MakeEngine>>,
    ) -> Result<Self, JobError> {
        caught(|| {
            let (config, plan) = with_chains(&problem, config, plan)?;
            let about = about(&problem, &config, plan.steps);
            let run = plan.begin(config.settings(&problem)?);
            let run = with_engine(run.map_err(|error| no_start(error, &problem))?, engine)?;
            Self::on_all_ranks(problem, config, about, run, Times::default())
        })
    }

    pub fn restore(
        problem: Problem,
        config: Config,
        plan: Plan,
        engine: Option<Arc<dyn MakeEngine>>,
        times: Times,
        state: &[u8],
    ) -> Result<Self, JobError> {
        caught(|| {
            let about = about(&problem, &config, plan.steps);
            let run = plan.restore(config.settings(&problem)?, state)?;
            let run = with_engine(run, engine)?;
            Self::on_all_ranks(problem, config, about, run, times)
        })
    }

    fn on_all_ranks(
        problem: Problem,
        config: Config,
        about: About,
        run: Run,
        times: Times,
    ) -> Result<Self, JobError> {
        let ranks = Ranks::new(problem.exchange.clone());
        let run = run.among(problem.exchange.clone())?;
        Ok(Self { problem, config, about, run, times, block: 1, ranks })
    }

    /// Advances by a block, so that progress shows and an interruption is heard.
    pub fn advance(&mut self, observer: &mut dyn Observer) -> Result<(), JobError> {
        let (stage, _, _) = self.run.progress();
        self.ranks.say(Next::Advance(self.block))?;
        let before = self.times.total_s();
        self.advance_by(self.block)?;
        let seconds = self.times.total_s() - before;
        // A step of the next stage may take a thousand times as long.
        let same = self.run.progress().0 == stage;
        self.block =
            if same { next_block(self.block, seconds, self.problem.exchange.ranks() > 1) } else { 1 };
        if self.is_out_of_time() {
            self.ranks.say(Next::EndForTime)?;
            self.run.stop_for_time();
        }
        let goals = match self.run.progress().0 {
            Stage::Sampling => {
                let reached = self.times.total_s() / 60.0;
                Goals::of(&self.run, self.config.run.until.minutes.map(|wanted| Goal { reached, wanted }))
            }
            _ => Goals::default(),
        };
        observer.progress(&Progress::of(&self.run, goals));
        Ok(())
    }

    /// Advances by so many iterations at most, and counts the time of every rank.
    pub fn advance_by(&mut self, block: u64) -> Result<(), JobError> {
        let (stage, _, _) = self.run.progress();
        let clock = Stopwatch::start();
        caught(|| self.run.advance(block).map_err(|error| no_start(error, &self.problem)))?;
        let mut spent = clock.stop();
        spent.processor_s += std::mem::take(&mut self.ranks.processor_s);
        if self.run.progress().0 != stage {
            refuse_carried_off(&self.run)?;
        }
        match stage {
            Stage::Climbing | Stage::Tuning(_) | Stage::Retuning(_) => self.times.tuning += spent,
            Stage::Collecting => {
                self.times.collecting += spent;
                if self.run.plain_stage().is_none() {
                    self.times.plain += spent;
                }
            }
            Stage::Fitting => self.times.training += spent,
            _ => self.times.sampling += spent,
        }
        Ok(())
    }

    /// Whether the minutes that a run may take are over; it has a draw at least.
    fn is_out_of_time(&self) -> bool {
        let (stage, done, _) = self.run.progress();
        let over = |minutes: f64| self.times.total_s() >= 60.0 * minutes;
        stage == Stage::Sampling
            && done >= self.config.run.thin
            && self.config.run.until.minutes.is_some_and(over)
    }

    /// Dimension and ensembles.
    pub fn shape(&self) -> (usize, usize) {
        (self.run.sampler().path.dim(), self.config.chains.ensembles)
    }

    /// Numbers of draws that are in memory, here or on other ranks.
    pub fn waiting_numbers(&self) -> usize {
        // Ladders have as many each; what this rank knows of others may be old.
        let most = self.run.records().flat_map(|r| &r.draws).map(|d| d.x.len()).max();
        most.unwrap_or(0) * self.config.chains.ensembles
    }

    /// The summary, with what chemists look at; none before the first draw.
    pub fn summary(&self, draws: &[Draws]) -> Option<(Summary, Option<Observed>)> {
        let sampled = self.run.records().next().is_some_and(|r| r.counts.iterations > 0);
        if !sampled {
            return None;
        }
        let seen = self.last_look(draws);
        let schedule = &self.run.sampler().schedule;
        let observed = chemistry::observe(&self.problem, &self.config, schedule, draws);
        let summary = Summary::of(&Findings {
            about: &self.about,
            run: &self.run,
            times: &self.times,
            draws,
            seen: seen.as_ref(),
            exact: exact_draws(&*self.problem.target).filter(|_| self.problem.values.is_none()),
            values: self.problem.values.as_deref(),
            observables: &self.problem.observables,
            says: self.problem.says.as_deref(),
            observed: observed.as_ref().map(Option::as_ref),
        });
        Some((summary, observed.ok().flatten()))
    }
}

impl Work {
    /// Looks where no draw came near, once the run has ended; none where nobody looked. It asks the target anew each time, so that
    /// a run that goes on has the bits of one that never stopped.
    fn last_look(&self, draws: &[Draws]) -> Option<Seen> {
        if self.run.progress().0 != Stage::Finished {
            return None;
        }
        // What fails, or panics, far out has said nothing.
        caught(|| Ok(closing::look(&self.problem, &self.run, self.config.seed, draws)?)).ok().flatten()
    }
}

/// What is known of a run that the run itself does not know.
fn about(problem: &Problem, config: &Config, steps: usize) -> About {
    About {
        target: problem.kind.kind().into(),
        parameters: problem.value_names(),
        is_evidence: problem.prior.is_some() && !of_physics(&problem.kind),
        reference: config.reference.kind().into(),
        accelerator: config.accelerator.kind().into(),
        steps,
        network_points: match config.accelerator {
            AcceleratorKind::Diffusion(_) => 0,
            AcceleratorKind::Flow(_) => 1,
            _ => steps as u64 + 1,
        },
        transport_given: config.accelerator.transport().is_some(),
        loss: word(&config.training.loss),
        tried: problem.tried.clone(),
    }
}

/// The trap of a cluster, or a free field, is where a path begins, but nobody's prior.
fn of_physics(kind: &TargetKind) -> bool {
    matches!(kind, TargetKind::LennardJones(_) | TargetKind::Phi4(_))
}

/// Where no replica finds a start, what the target itself says is told as well.
pub(crate) fn no_start(error: sterna::Error, problem: &Problem) -> JobError {
    let origin = vec![0.0; problem.dim()];
    let (point, at) = match &error {
        sterna::Error::NoStart { .. } => (&origin, "at the origin of its free coordinates"),
        sterna::Error::BadStart { point, .. } => (point, "there"),
        _ => return error.into(),
    };
    match problem.says.as_ref().and_then(|says| says(point)) {
        Some(said) => JobError::Config(format!("{error}\n{at} the target says: {said}")),
        None => error.into(),
    }
}

/// A reference wider than what the run was told to begin from, by more than any scale that people forget to tell.
const FARTHEST: f64 = 1e10;

/// A density that does not fall off carries its draws away, and the reference with them: round after round, without an end.
fn refuse_carried_off(run: &Run) -> Result<(), JobError> {
    let (Some(mixture), Some((_, given))) = (run.mixture(), run.given_anchor()) else { return Ok(()) };
    let widest = |j: usize| {
        let each = mixture.components().iter().map(|component| component.shape.deviations()[j]);
        each.fold(0.0, f64::max)
    };
    let gone = (0..given.len()).map(|j| (j, widest(j))).find(|(j, wide)| *wide > FARTHEST * given[*j]);
    let endless = run.endless().map(|endless| (endless.coordinate, endless.distance));
    match gone.or(endless) {
        None => Ok(()),
        Some((j, far)) => Err(JobError::Config(format!(
            "the density seems not to be integrable: coordinate {j} went off to ±{far:.0e}, where it is still not falling; give it \
             other bounds (parameters.lower, parameters.upper) or a proper prior, or say so if it is truly that wide (reference.mean and reference.scale, which is {} now)",
            given[j]
        ))),
    }
}

/// Iterations of the next block, where these took so many seconds: about a twentieth of a second, so that people see it move. At the
/// end of a block the quickest of several ranks wait for the slowest, so that these have longer ones, of some iterations at least.
fn next_block(block: u64, seconds: f64, several: bool) -> u64 {
    let (short, long) = if several { (0.25, 1.0) } else { (0.025, 0.1) };
    if seconds < short || (several && block < SOME_ITERATIONS && seconds < 0.5 * LONGEST_BLOCK) {
        (block * 2).min(1 << 20)
    } else if seconds > long && !(several && block <= SOME_ITERATIONS && seconds < LONGEST_BLOCK) {
        (block / 2).max(1)
    } else {
        block
    }
}

/// Iterations that several ranks make at least before they hear of each other what people want, unless these take more seconds.
const SOME_ITERATIONS: u64 = 16;
const LONGEST_BLOCK: f64 = 10.0;

/// The run, with what carries it out where that is not the cores.
fn with_engine(run: Run, engine: Option<Arc<dyn MakeEngine>>) -> Result<Run, JobError> {
    Ok(match engine {
        Some(maker) => run.with_engine(maker)?,
        None => run,
    })
}

/// A panic of the target or a transport, as an error. What it leaves behind is thrown away: the run goes on from its last
/// checkpoint, or begins again.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, JobError>) -> Result<T, JobError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|e| Err(JobError::Panicked(panic_message(&*e))))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

/// The config with as many chains as a pilot asks for, where it is to count them, and what hangs on their number planned anew: so a run
/// that goes on plans it too.
pub(crate) fn with_chains(
    problem: &Problem,
    config: &Config,
    plan: Plan,
) -> Result<(Config, Plan), JobError> {
    if !needs_pilot(config) {
        return Ok((config.clone(), plan));
    }
    let config = resolve_chains(problem, config, &plan.path)?;
    let Plan { acceleration, .. } = accelerators::plan(problem, &config)?;
    Ok((config, Plan { acceleration, ..plan }))
}

/// "auto" becomes twice the barrier that a short pilot finds, plus one: about half of all swaps are
/// then accepted, the most round trips per chain.
fn resolve_chains(
    problem: &Problem,
    config: &Config,
    path: &Arc<dyn AnnealingPath>,
) -> Result<Config, JobError> {
    let mut config = config.clone();
    config.chains.count = PILOT;
    let mut settings = config.settings(problem)?;
    settings.rounds = settings.rounds.max(4);
    let pilot = Run::new(path.clone(), settings).map_err(|error| no_start(error, problem))?;
    let mut pilot = pilot.among(problem.exchange.clone())?;
    while matches!(pilot.progress().0, Stage::Tuning(_)) {
        pilot.advance(u64::MAX)?;
    }
    let barrier = pilot.barrier_curve().last().expect("at least two chains").1;
    config.chains.count = Count::Number(chains_for(barrier).clamp(2, 500));
    Ok(config)
}

/// Whether the number of chains is to be found before the run; one that fits its reference finds it on its way.
pub(super) fn needs_pilot(config: &Config) -> bool {
    config.chains.count == Count::Auto && !matches!(config.reference, ReferenceKind::Fitted(_))
}

/// Chains of a pilot.
pub(super) const PILOT: Count = Count::Number(8);
