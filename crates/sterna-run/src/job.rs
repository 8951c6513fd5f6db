//! A job: a problem, sampled as a config says, becomes a run folder.

mod before;
mod finished;
mod folder;
mod names;
mod ranks;
mod refuse;
mod threads;
mod tuned;
mod work;

pub(crate) use work::{no_start, resolve_chains};

pub use finished::{Finished, finished, plain_samples};
pub(crate) use names::date;
pub use names::default_folder;
pub use tuned::{Tuned, tuned};

use crate::accelerators::{self, Plan};
use crate::checkpoint::{self, Description, Store};
use crate::config::{Config, Count, RunConfig, TargetKind, Until};
use crate::draws_file::check_names;
use crate::error::JobError;
use crate::molecules;
use crate::problem::Problem;
use crate::progress::Goals;
use crate::spread::Spread;
use crate::summary::{Summary, Times};
use crate::{timed, trial};
use before::Before;
use folder::{Folder, outcome};
use ranks::{agreed, together};
use rayon::ThreadPool;
use refuse::{bad_names, refuse_changes, refuse_other, stored_draws};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::engine::MakeEngine;
use sterna::exchange::Alone;
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
}

/// A checkpoint, held.
struct Stopped {
    store: Store,
    checkpoint: Option<(Description, Vec<u8>)>,
}

impl Job {
    /// A new run; nothing is written yet.
    pub fn new(problem: Problem, config: Config, folder: impl Into<PathBuf>) -> Result<Self, JobError> {
        let folder = folder.into();
        together(&*problem.exchange.clone(), || {
            let config = agreed(config, &*problem.exchange)?;
            let job = Self::planned(problem, config, folder, None)?;
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
        let folder = folder.into();
        together(&*problem.exchange.clone(), || {
            let mut config = read_config(&folder)?;
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
        let folder = folder.into();
        if !folder.join("config.toml").exists() {
            return Self::new(problem, config, folder);
        }
        let mut ours = config.settled(&problem)?;
        let before = read_config(&folder)?;
        refuse_other(&problem, &before, &folder)?;
        if ours.chains.count == Count::Auto {
            ours.chains.count = before.chains.count;
        }
        let RunConfig { iterations, until, .. } = ours.run;
        let changes =
            Changes { iterations: Some(iterations), until: Some(until), threads: Some(ours.threads) };
        // Files of a molecule have other names in the folder, which holds copies of them.
        ours.target = before.target.clone();
        refuse_changes(&ours, &before, &folder)?;
        Self::resume(problem, folder, &changes)
    }

    fn planned(
        mut problem: Problem,
        config: Config,
        folder: PathBuf,
        from: Option<Stopped>,
    ) -> Result<Self, JobError> {
        check_names(problem.value_count(), &problem.parameters, &problem.observables).map_err(bad_names)?;
        let config = config.settled(&problem)?;
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
        Ok(Self { problem, config, folder, pool, plan, engine, from })
    }

    /// Runs to the end, or until the observer asks to stop, and writes the folder.
    ///
    /// A stop before the first draw is an error; one after it gives a summary that is not finished.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Summary, JobError> {
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

fn read_config(folder: &Path) -> Result<Config, JobError> {
    let path = folder.join("config.toml");
    let text = fs::read_to_string(&path).map_err(JobError::file("read", &path))?;
    Config::parse(&text, &[]).map_err(JobError::within(path))
}

/// Runs a config and writes its folder: see [`Job::run`].
pub fn run(config: &Config, folder: &Path, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    Job::new(config.problem()?, config.clone(), folder)?.run(observer)
}

/// Goes on with the run of a config in a folder: same bits as if it had never stopped.
pub fn resume(folder: &Path, changes: &Changes, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    Job::resume(problem_in(folder)?, folder, changes)?.run(observer)
}

/// The problem of a run that a config began in a folder.
pub fn problem_in(folder: &Path) -> Result<Problem, JobError> {
    read_config(folder)?.within(folder).problem().map_err(JobError::within(folder))
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
mod tests {
    use super::*;
    use sterna::{Batch, Evaluation, Target, targets::Normal};

    /// Beyond a limit.
    struct Panics(f64);

    impl Target for Panics {
        fn dim(&self) -> usize {
            1
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
            assert!(x.as_slice().iter().all(|x| *x < self.0), "no such orbital");
            Normal::isotropic(1, 1.0).evaluate(x, out)
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_last_checkpoint_stays() {
        let folder = tempfile::tempdir().unwrap();
        let overrides = [("chains.count", "3"), ("seed", "4"), ("run.checkpoint_seconds", "0.0")];
        let config = Config::parse("", &overrides).unwrap();
        let job = Job::new(Problem::new(Panics(2.5)), config, folder.path()).unwrap();
        let error = job.run(&mut ()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("panicked") && message.contains("no such orbital"), "{message}");
        assert!(message.contains("Job::resume") && error.exit_code() == 1, "{message}");
        let (_, state) = Store::open(folder.path()).unwrap().read().unwrap().expect("a checkpoint");
        assert!(!state.is_empty());
    }

    #[test]
    fn a_panic_before_the_first_checkpoint_is_an_error_and_progress_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse("", &[("chains.count", "3")]).unwrap();
        let job = Job::new(Problem::new(Panics(-9.0)), config.clone(), folder.path()).unwrap();
        let message = job.run(&mut ()).unwrap_err().to_string();
        assert!(message.contains("panicked") && message.contains("no such orbital"), "{message}");
        let progress = fs::read_to_string(folder.path().join("progress.json")).unwrap();
        assert!(progress.contains("failed") && progress.contains("no such orbital"), "{progress}");
    }

    /// Each would otherwise panic, or end for want of memory, in the midst of a run.
    #[test]
    fn sizes_beyond_all_bounds_are_refused_by_name() {
        let huge = "9223372036854775807";
        let cases = [
            ("target.dim", "131074", "131072"),
            ("chains.ensembles", huge, "4294967295"),
            ("chains.count", huge, "4294967295"),
            ("schedule.iterations", huge, "17592186044416"),
            ("run.burn_in", huge, "17592186044416"),
            ("run.iterations", huge, "17592186044416"),
            ("explorer.leapfrog_steps", huge, "10000"),
        ];
        for kind in ["gmm", "normal", "many-well", "funnel"] {
            for (key, value, bound) in cases {
                let folder = tempfile::tempdir().unwrap();
                let overrides = [("target.kind", kind), ("chains.count", "3"), (key, value)];
                let config = Config::parse("", &overrides).unwrap();
                let message = run(&config, folder.path(), &mut ()).unwrap_err().to_string();
                let named = message.contains(key) && message.contains(value) && message.contains(bound);
                assert!(named, "{message}");
            }
        }
        let own = Problem::new(Normal::isotropic(131_073, 1.0));
        let message = Job::new(own, Config::default(), "nowhere").map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("target.dim = 131073") && message.contains("131072"), "{message}");
    }
}
