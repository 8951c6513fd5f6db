//! A job: a problem, sampled as a config says, becomes a run folder.

mod again;
mod before;
mod finished;
mod folder;
mod names;
mod ranks;
mod refuse;
mod threads;
mod tuned;
mod work;

pub(crate) use threads::own_ladders;
pub(crate) use work::{no_start, with_chains};

pub use finished::{Finished, finished, plain_samples};
pub(crate) use names::date;
pub use names::default_folder;
pub use tuned::{Tuned, tuned};

use crate::accelerators::{self, Plan};
use crate::checkpoint::{self, Description, Store};
use crate::config::{Config, Count, TargetKind, Until};
use crate::draws_file::check_names;
use crate::error::JobError;
use crate::molecules;
use crate::problem::Problem;
use crate::progress::Goals;
use crate::spread::Spread;
use crate::summary::{Summary, Times};
use crate::{timed, trial};
use again::Again;
use before::Before;
use folder::{Folder, outcome};
use ranks::{agreed, agreed_folder, by_all_left, has_begun, read_config, together};
use rayon::ThreadPool;
use refuse::{bad_names, refuse_changes, refuse_other, stored_draws};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::engine::MakeEngine;
use sterna::exchange::{Alone, Exchange};
use sterna::records::Draws;
use sterna::run::{Run, Stage};
use work::Work;

/// What a watcher is told, several times a second.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Where the run stands.
    pub stage: Stage,
    /// Tuning rounds in all, where their number is fixed; rounds that double end when they have settled.
    pub rounds: Option<usize>,
    /// Iterations done in the stage.
    pub done: u64,
    /// Iterations of the stage.
    pub total: u64,
    /// Round trips so far.
    pub round_trips: u64,
    /// Λ in what the stage has seen, where it has seen enough.
    pub barrier: Option<f64>,
    /// The pair that rejects most, from 0, and its rejection rate.
    pub worst_pair: Option<(usize, f64)>,
    /// How far the goals of sampling are, where there are any.
    pub goals: Goals,
    /// Which stage this is, from 1, and how many there are.
    pub number: (usize, usize),
    /// Iterations after this stage, where they are known, and trainings.
    pub ahead: (Option<u64>, usize),
    /// The loss of a training under way.
    pub loss: Option<f64>,
}

/// Sees a job's progress, and may stop it.
///
/// ```
/// use sterna_run::{Config, Observer, Progress, sample};
///
/// /// Prints how far a run has come, and counts how often it did.
/// struct Printer(usize);
///
/// impl Observer for Printer {
///     fn progress(&mut self, progress: &Progress) {
///         println!("{:?}: {} of {} iterations", progress.stage, progress.done, progress.total);
///         self.0 += 1;
///     }
/// }
///
/// let config = Config::parse("[target]\nkind = \"banana\"\n[chains]\ncount = 3\n[run]\niterations = 300", &[])?;
/// let mut printer = Printer(0);
/// sample(&config, &mut printer)?;
/// assert!(printer.0 > 0);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
pub trait Observer: Send {
    /// Called a few times a second.
    fn progress(&mut self, progress: &Progress);
    /// Whether to stop after the present block of iterations.
    fn should_stop(&self) -> bool {
        false
    }
    /// Told what people should know of at once.
    fn note(&mut self, _text: &str) {}
    /// Whether all files are to be written after the present block, as they are when a run stops; asked once a block, and true
    /// once for each wish.
    fn wants_files(&mut self) -> bool {
        false
    }
}

/// Sees nothing.
impl Observer for () {
    fn progress(&mut self, _progress: &Progress) {}
}

/// What may be changed when a run goes on.
///
/// ```
/// use sterna_run::{Changes, Config, resume, run};
///
/// let folder = tempfile::tempdir()?;
/// let short = Config::parse("[target]\nkind = \"banana\"\n[chains]\ncount = 3\n[run]\niterations = 300", &[])?;
/// run(&short, &folder.path().join("run"), &mut ())?;
/// let longer = Changes { iterations: Some(600), ..Changes::default() };
/// assert_eq!(resume(&folder.path().join("run"), &longer, &mut ())?.setup.iterations, 600);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    /// Iterations of sampling in all.
    pub iterations: Option<u64>,
    /// When it is enough: more than before, and the run goes on as if it had been so from the start; less, and it keeps what it
    /// has and ends where it is next looked at.
    pub until: Option<Until>,
    /// Threads.
    pub threads: Option<usize>,
}

impl Changes {
    /// What may be changed, as a config has it.
    fn to(config: &Config) -> Self {
        let Config { run, threads, .. } = config;
        Self { iterations: Some(run.iterations), until: Some(run.until), threads: Some(*threads) }
    }
}

/// A problem to be sampled into a folder: all that can be refused has been, and what runs is planned.
///
/// ```
/// use sterna_run::{Config, Job, Problem};
///
/// let folder = tempfile::tempdir()?;
/// let problem = Problem::new(sterna::targets::Banana::new(2)).called("banana");
/// let config = Config::parse("[run]\niterations = 500\n[chains]\ncount = 3", &[])?;
/// let summary = Job::new(problem, config, folder.path().join("run"))?.run(&mut ())?;
/// assert!(summary.finished && folder.path().join("run/report.html").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Job {
    problem: Problem,
    config: Config,
    folder: PathBuf,
    pool: ThreadPool,
    plan: Plan,
    engine: Option<Arc<dyn MakeEngine>>,
    /// Where it goes on, if it does.
    from: Option<Stopped>,
    again: Again,
}

/// A checkpoint, held.
struct Stopped {
    store: Store,
    checkpoint: Option<(Description, Vec<u8>)>,
}

impl Job {
    /// A new run; nothing is written yet.
    pub fn new(problem: Problem, config: Config, folder: impl Into<PathBuf>) -> Result<Self, JobError> {
        let (folder, exchange) = (folder.into(), problem.exchange.clone());
        by_all_left(&*exchange, || {
            let folder = agreed_folder(&folder, &*exchange)?;
            let config = agreed(config.clone(), &*exchange)?;
            let job = Self::planned(problem.clone(), config, folder, None)?;
            if job.leads() && checkpoint::is_taken(&job.folder) {
                let folder = job.folder.display();
                return Err(JobError::Config(format!(
                    "{folder} holds a run already: go on with `sterna resume {folder}`, or choose another folder with --out"
                )));
            }
            Ok(job)
        })
    }

    /// Goes on with the run of this problem in a folder: same bits as if it had never stopped.
    pub fn resume(problem: Problem, folder: impl Into<PathBuf>, changes: &Changes) -> Result<Self, JobError> {
        let (folder, exchange) = (folder.into(), problem.exchange.clone());
        by_all_left(&*exchange, || {
            let folder = agreed_folder(&folder, &*exchange)?;
            let config = read_config(&folder, &*exchange)?;
            Self::resumed(problem.clone(), config, folder, changes)
        })
    }

    /// Goes on, on all ranks, with the run that a config began in a folder.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sterna::exchange::{Alone, Exchange};
    /// use sterna_run::{Changes, Config, Job, run};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let short = Config::parse("[target]\nkind = \"banana\"\n[chains]\ncount = 3\n[run]\niterations = 300", &[])?;
    /// run(&short, &folder.path().join("run"), &mut ())?;
    /// let longer = Changes { iterations: Some(600), ..Changes::default() };
    /// let job = Job::resume_config(folder.path().join("run"), Arc::new(Alone), &longer)?;
    /// assert_eq!(job.run(&mut ())?.setup.iterations, 600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume_config(
        folder: impl Into<PathBuf>,
        exchange: Arc<dyn Exchange>,
        changes: &Changes,
    ) -> Result<Self, JobError> {
        let folder = folder.into();
        by_all_left(&*exchange, || {
            let folder = agreed_folder(&folder, &*exchange)?;
            let config = read_config(&folder, &*exchange)?;
            let problem = config.clone().within(&folder).problem().map_err(JobError::within(&folder))?;
            Self::resumed(problem.among(exchange.clone()), config, folder, changes)
        })
    }

    /// Starts, or goes on where the folder holds a run: what a program that may be started again wants.
    ///
    /// The config must be the one that the run began with; only iterations, goals, threads and the time between checkpoints
    /// may change.
    pub fn start_or_resume(
        problem: Problem,
        config: Config,
        folder: impl Into<PathBuf>,
    ) -> Result<Self, JobError> {
        let (folder, exchange) = (folder.into(), problem.exchange.clone());
        by_all_left(&*exchange, || {
            let folder = agreed_folder(&folder, &*exchange)?;
            if !has_begun(&folder, &*exchange)? {
                let config = agreed(config.clone(), &*exchange)?;
                return Self::planned(problem.clone(), config, folder, None);
            }
            let mut ours = config.clone().settled(&problem)?;
            let before = read_config(&folder, &*exchange)?;
            refuse_other(&problem, &before, &folder)?;
            if ours.chains.count == Count::Auto {
                ours.chains.count = before.chains.count;
            }
            // Files of a molecule have other names in the folder, which holds copies of them.
            ours.target = before.target.clone();
            refuse_changes(&ours, &before, &folder)?;
            Self::resumed(problem.clone(), before, folder, &Changes::to(&ours))
        })
    }

    /// Goes on with a run whose folder holds this config.
    fn resumed(
        problem: Problem,
        mut config: Config,
        folder: PathBuf,
        changes: &Changes,
    ) -> Result<Self, JobError> {
        refuse_other(&problem, &config, &folder)?;
        config.threads = changes.threads.unwrap_or(config.threads);
        let stopped = match problem.exchange.rank() {
            0 => Some(Stopped::open(&folder)?),
            _ => None,
        };
        if let Some((description, _)) = stopped.as_ref().and_then(|stopped| stopped.checkpoint.as_ref()) {
            let before = Config::parse(&description.config, &[])?;
            if config.chains.count == Count::Auto {
                config.chains.count = before.chains.count;
            }
            refuse_changes(&config, &before, &folder)?;
        }
        config.run.iterations = changes.iterations.unwrap_or(config.run.iterations);
        config.run.until = changes.until.unwrap_or(config.run.until);
        let config = agreed(config, &*problem.exchange)?;
        Self::planned(problem, config.within(&folder), folder, stopped)
    }

    fn planned(
        mut problem: Problem,
        config: Config,
        folder: PathBuf,
        from: Option<Stopped>,
    ) -> Result<Self, JobError> {
        check_names(problem.value_count(), &problem.parameters, &problem.observables).map_err(bad_names)?;
        let config = config.settled(&problem)?;
        let again = Again { problem: problem.clone(), config: config.clone(), folder: folder.clone() };
        let ladders = threads::own_ladders(&problem, &config);
        problem.target = Arc::new(Spread::new(problem.target, ladders));
        let mut probe = config.clone();
        if work::needs_pilot(&probe) {
            probe.chains.count = work::PILOT;
        }
        probe.settings(&problem)?;
        timed::limited(&mut problem, config.run.evaluation_seconds)?;
        let pool = threads::pool(&problem, &config)?;
        let plan = pool.install(|| accelerators::plan(&problem, &config))?;
        problem.tried = trial::tried(&problem, &plan)?;
        let engine = accelerators::engine_maker(&problem, &config)?;
        Ok(Self { problem, config, folder, pool, plan, engine, from, again })
    }

    /// Runs to the end, or until the observer asks to stop, and writes the folder. Where ranks die and the others can go on, they do so
    /// from the last checkpoint.
    ///
    /// A stop before the first draw is an error; one after it gives a summary that is not finished.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Summary, JobError> {
        let (exchange, again) = (self.problem.exchange.clone(), self.again.clone());
        let mut done = self.run_once(observer);
        while let Some(who) = exchange.regroup()? {
            observer.note(&format!(
                "{who}; what is left goes on from the last checkpoint, ranks: {}",
                exchange.ranks()
            ));
            done = again.job().and_then(|job| job.run_once(observer));
        }
        done
    }

    fn run_once(self, observer: &mut dyn Observer) -> Result<Summary, JobError> {
        let exchange = self.problem.exchange.clone();
        together(&*exchange, || {
            // Nothing is written before all ranks have come as far as this.
            let state = exchange.hear_first(self.state())?;
            match self.leads() {
                true => self.lead(observer),
                false => self.follow(&state, observer),
            }
        })
    }

    /// Whether this is the rank that writes.
    fn leads(&self) -> bool {
        self.problem.exchange.rank() == 0
    }

    /// The run's own bytes in the checkpoint where it goes on; none where it starts.
    fn state(&self) -> &[u8] {
        let checkpoint = self.from.as_ref().and_then(|stopped| stopped.checkpoint.as_ref());
        checkpoint.map_or(&[], |(_, state)| state)
    }

    /// Does as the first rank says, from where that begins.
    fn follow(self, state: &[u8], observer: &mut dyn Observer) -> Result<Summary, JobError> {
        let Self { problem, config, folder, pool, plan, engine, .. } = self;
        let own = matches!(problem.kind, TargetKind::Own(_));
        let summary = pool.install(|| {
            let work = match state {
                [] => Work::begin(problem, &config, plan, engine)?,
                state => Work::restore(problem, config, plan, engine, Times::default(), state)?,
            };
            work.follow(observer)
        });
        match summary {
            // What ails this rank the first one tells, with how to go on; where that one has died, this one may have to.
            Err(cause) if !matches!(cause, JobError::Sampler(sterna::Error::Elsewhere(_))) => Err(cause),
            summary => outcome(summary, folder, own),
        }
    }

    fn lead(self, observer: &mut dyn Observer) -> Result<Summary, JobError> {
        match self.from {
            Some(Stopped { store, checkpoint: Some((description, state)) }) => {
                let Self { problem, config, plan, engine, pool, .. } = self;
                let path = self.folder;
                pool.install(|| {
                    let work = Work::restore(problem, config, plan, engine, description.times, &state)?;
                    let draws = stored_draws(&store, &work, description.draws_bytes, &path)?;
                    let folder = Folder::open(&path, store, observer);
                    let stage = format!("{:?}", work.run.progress().0);
                    folder.begin("resume", json!({"stage": stage}))?;
                    folder.write_config(&work.config)?;
                    folder.go(work, draws)
                })
            }
            Some(Stopped { store, checkpoint: None }) => Self { from: None, ..self }.start(store, observer),
            None => {
                let before = Before::look(&self.folder);
                fs::create_dir_all(&self.folder)
                    .map_err(JobError::file("create the run folder", &self.folder))?;
                let store = Store::open(&self.folder)?;
                let run = Self { from: None, ..self }.start(store, observer);
                run.inspect_err(|error| before.restore(error))
            }
        }
    }

    fn start(self, store: Store, observer: &mut dyn Observer) -> Result<Summary, JobError> {
        let Self { problem, config, folder: path, pool, plan, engine, .. } = self;
        let folder = Folder::open(&path, store, observer);
        folder.begin("start", json!({"version": env!("CARGO_PKG_VERSION"), "seed": config.seed}))?;
        pool.install(|| {
            let (work, draws) = folder.prepare(|| {
                let config = molecules::keep_files(&config, &path)?.within(&path);
                folder.write_config(&config)?;
                let mut work = Work::begin(problem, &config, plan, engine)?;
                let mut draws = folder.new_draws(&work)?;
                folder.checkpoint(&mut work, &mut draws)?;
                folder.write_config(&work.config)?;
                Ok((work, draws))
            })?;
            folder.go(work, draws)
        })
    }
}

impl Stopped {
    /// Takes hold of a run folder; without a checkpoint, the run stopped before its first.
    fn open(folder: &Path) -> Result<Self, JobError> {
        let store = Store::open(folder)?;
        let checkpoint = store.read()?;
        if checkpoint.is_none() && folder.join("summary.json").exists() {
            return Err(JobError::Config(format!(
                "{} holds a summary but no checkpoint: run its config.toml again with another --out",
                folder.display()
            )));
        }
        Ok(Self { store, checkpoint })
    }
}

/// Runs a config and writes its folder: see [`Job::run`].
pub fn run(config: &Config, folder: &Path, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    Job::new(config.problem()?, config.clone(), folder)?.run(observer)
}

/// Goes on with the run of a config in a folder: same bits as if it had never stopped.
pub fn resume(folder: &Path, changes: &Changes, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    Job::resume_config(folder, Arc::new(Alone), changes)?.run(observer)
}

/// Runs a config in memory: the run itself and its summary.
pub fn sample(config: &Config, observer: &mut dyn Observer) -> Result<(Run, Summary), JobError> {
    sample_problem(config.problem()?, config, observer)
}

/// The same of a problem that is there already.
pub fn sample_problem(
    mut problem: Problem,
    config: &Config,
    observer: &mut dyn Observer,
) -> Result<(Run, Summary), JobError> {
    problem.exchange = Arc::new(Alone);
    let config = &config.clone().settled(&problem)?;
    threads::pool(&problem, config)?.install(|| {
        let plan = accelerators::plan(&problem, config)?;
        problem.tried = trial::tried(&problem, &plan)?;
        let engine = accelerators::engine_maker(&problem, config)?;
        let mut work = Work::begin(problem, config, plan, engine)?;
        while work.run.progress().0 != Stage::Finished && !observer.should_stop() {
            work.advance(observer)?;
        }
        let draws: Vec<Draws> = work.run.records().flat_map(|r| &r.draws).cloned().collect();
        let (summary, _) = work.summary(&draws).ok_or(JobError::Interrupted)?;
        Ok((work.run, summary))
    })
}

#[cfg(test)]
mod tests;
