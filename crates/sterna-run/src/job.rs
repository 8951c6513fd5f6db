//! A job: a config becomes a run folder.

use crate::accelerators;
use crate::builtin;
use crate::checkpoint::{self, Description, Store};
use crate::chemistry::{self, Observed};
use crate::config::{Config, Count};
use crate::draws_file::{DrawsFile, Values};
use crate::draws_store::StoredDraws;
use crate::error::JobError;
use crate::files::write_whole;
use crate::library;
use crate::molecules;
use crate::progress::{State, Watched};
use crate::report;
use crate::stopwatch::Stopwatch;
use crate::summary::{About, Findings, Summary, Times};
use crate::traces::{Sample, Traces};
use serde_json::json;
use std::any::Any;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use sterna::path::AnnealingPath;
use sterna::records::Draws;
use sterna::run::{Run, Stage};
use sterna::{Batch, Streams, Target, plain_sampler};

/// What a watcher is told, several times a second.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Where the run stands.
    pub stage: Stage,
    /// Tuning rounds in all.
    pub rounds: usize,
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
}

/// Sees a job's progress, and may stop it.
pub trait Observer: Send {
    /// Called a few times a second.
    fn progress(&mut self, progress: &Progress);
    /// Whether to stop after the present block of iterations.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Sees nothing.
impl Observer for () {
    fn progress(&mut self, _progress: &Progress) {}
}

/// Runs a config in memory: the run itself and its summary.
pub fn sample(config: &Config, observer: &mut dyn Observer) -> Result<(Run, Summary), JobError> {
    pool(config)?.install(|| {
        let mut work = Work::begin(config)?;
        while work.run.progress().0 != Stage::Finished && !observer.should_stop() {
            work.advance(observer)?;
        }
        let draws: Vec<Draws> = work.run.records().flat_map(|r| &r.draws).cloned().collect();
        let (summary, _) = work.summary(&draws).ok_or(JobError::Interrupted)?;
        Ok((work.run, summary))
    })
}

/// Draws of the plain neural sampler that a finished run's transport makes: its forward kernels from reference
/// to target, without swaps. For comparison; nothing corrects them.
pub fn plain_samples(run: &Run, n: usize) -> Result<Batch, JobError> {
    let sampler = run.sampler();
    // Not the random numbers of the run itself.
    let streams = Streams::new(run.settings().seed ^ 0x3C6E_F372_FE94_F82B);
    Ok(plain_sampler(&*sampler.path, &sampler.schedule, &*sampler.accelerator, &streams, n)?)
}

fn pool(config: &Config) -> Result<rayon::ThreadPool, JobError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads)
        .build()
        .map_err(|e| JobError::Config(format!("threads = {}: {e}", config.threads)))
}

/// A run with what a summary of it needs.
struct Work {
    /// Resolved.
    config: Config,
    target: Arc<dyn Target>,
    about: About,
    run: Run,
    times: Times,
    /// Iterations at a time.
    block: u64,
}

impl Work {
    fn begin(config: &Config) -> Result<Self, JobError> {
        let target = builtin::target(&config.target)?;
        let plan = accelerators::plan(config, target.clone())?;
        let config = resolve_chains(config, &plan.path)?;
        let about = about(&config, plan.steps);
        let run = Run::accelerated(plan.path, config.settings()?, plan.acceleration)?;
        let run = with_engine(run, &config)?;
        Ok(Self { config, target, about, run, times: Times::default(), block: 1 })
    }

    fn restore(config: Config, times: Times, state: &[u8]) -> Result<Self, JobError> {
        let target = builtin::target(&config.target)?;
        let plan = accelerators::plan(&config, target.clone())?;
        let about = about(&config, plan.steps);
        let run = Run::restore(plan.path, config.settings()?, plan.acceleration, state)?;
        let run = with_engine(run, &config)?;
        Ok(Self { config, target, about, run, times, block: 1 })
    }

    /// Advances by a block, so that progress shows and an interruption is heard.
    fn advance(&mut self, observer: &mut dyn Observer) -> Result<(), JobError> {
        let (stage, _, _) = self.run.progress();
        let clock = Stopwatch::start();
        // What a panic leaves behind is thrown away: the run goes on from its last checkpoint.
        let run = AssertUnwindSafe(&mut self.run);
        let block = self.block;
        catch_unwind(move || { run }.advance(block))
            .map_err(|e| JobError::Panicked(panic_message(&*e)))??;
        let spent = clock.stop();
        match stage {
            Stage::Tuning(_) | Stage::Retuning(_) => self.times.tuning += spent,
            Stage::Collecting => {
                self.times.collecting += spent;
                if self.run.plain_stage().is_none() {
                    self.times.plain += spent;
                }
            }
            Stage::Fitting => self.times.training += spent,
            _ => self.times.sampling += spent,
        }
        let seconds = spent.clock_s;
        // Blocks of about a twentieth of a second; a step of the next stage may take a thousand times as long.
        if self.run.progress().0 != stage {
            self.block = 1;
        } else if seconds < 0.025 {
            self.block = (self.block * 2).min(1 << 20);
        } else if seconds > 0.1 {
            self.block = (self.block / 2).max(1);
        }
        observer.progress(&Progress::of(&self.run));
        Ok(())
    }

    /// Dimension and ensembles.
    fn shape(&self) -> (usize, usize) {
        (self.run.sampler().path.dim(), self.config.chains.ensembles)
    }

    /// Numbers of draws that are in memory.
    fn waiting_numbers(&self) -> usize {
        self.run.records().flat_map(|r| &r.draws).map(|d| d.x.len()).sum()
    }

    /// The summary, with what chemists look at; none before the first draw.
    fn summary(&self, draws: &[Draws]) -> Option<(Summary, Option<Observed>)> {
        let sampled = self.run.records().next().is_some_and(|r| r.counts.iterations > 0);
        if !sampled {
            return None;
        }
        let observed = chemistry::observe(&self.config, &self.run.sampler().schedule, draws);
        let summary = Summary::of(&Findings {
            about: &self.about,
            run: &self.run,
            times: &self.times,
            draws,
            observed: observed.as_ref().map(Option::as_ref),
        });
        Some((summary, observed.ok().flatten()))
    }
}

/// What a config says of a run that the run itself does not know.
fn about(config: &Config, steps: usize) -> About {
    About {
        target: config.target.kind.clone(),
        parameters: Vec::new(),
        accelerator: config.accelerator.kind.clone(),
        steps,
        network_points: match config.accelerator.kind.as_str() {
            "diffusion" => 0,
            "flow" => 1,
            _ => steps as u64 + 1,
        },
        transport_given: config.accelerator.transport.is_some(),
        loss: config.training.loss.clone(),
    }
}

/// The run, with what carries it out where that is not the cores.
fn with_engine(run: Run, config: &Config) -> Result<Run, JobError> {
    Ok(match accelerators::engine_maker(config)? {
        Some(maker) => run.with_engine(maker)?,
        None => run,
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into())
}

/// "auto" becomes twice the barrier that a short pilot finds, plus one: about half of all swaps are
/// then accepted, the most round trips per chain.
fn resolve_chains(config: &Config, path: &Arc<dyn AnnealingPath>) -> Result<Config, JobError> {
    let mut config = config.clone();
    if config.chains.count == Count::Word("auto".into()) {
        config.chains.count = Count::Number(8);
        let mut settings = config.settings()?;
        settings.rounds = settings.rounds.max(4);
        let mut pilot = Run::new(path.clone(), settings)?;
        while matches!(pilot.progress().0, Stage::Tuning(_)) {
            pilot.advance(u64::MAX)?;
        }
        let barrier = pilot.barrier_curve().last().expect("at least two chains").1;
        config.chains.count = Count::Number(((2.0 * barrier).ceil() as usize + 1).clamp(2, 500));
    }
    Ok(config)
}

/// A folder name that says what ran and when.
pub fn default_folder(config: &Config) -> PathBuf {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let kind = &config.target.kind;
    PathBuf::from("runs").join(format!("{kind}-{}-{}", config.accelerator.kind, date(seconds)))
}

/// Seconds since 1970 as yyyymmdd-hhmmss, UTC.
pub(crate) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from day count: years begin in March, so leap days come last.
    let z = days as i64 + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Runs a config and writes its folder.
///
/// A stop before the first draw is an error; one after it gives a summary that is not finished.
pub fn run(config: &Config, folder: &Path, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    // Everything that can be refused is refused before anything is written.
    let config = &library::with_absolute_path(config);
    let mut probe = config.clone();
    if probe.chains.count == Count::Word("auto".into()) {
        probe.chains.count = Count::Number(8);
    }
    probe.settings()?;
    accelerators::plan(config, builtin::target(&config.target)?)?;
    accelerators::engine_maker(config)?;
    if checkpoint::is_taken(folder) {
        let folder = folder.display();
        return Err(JobError::Config(format!(
            "{folder} holds a run already: go on with `sterna resume {folder}`, or choose another folder with --out"
        )));
    }
    fs::create_dir_all(folder).map_err(JobError::file("create the run folder", folder))?;
    Job::open(folder, observer)?.start(config)
}

/// What may be changed when a run goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    /// Iterations of sampling in all.
    pub iterations: Option<u64>,
    /// Threads.
    pub threads: Option<usize>,
}

/// Goes on with the run in a folder: same bits as if it had never stopped.
pub fn resume(folder: &Path, changes: &Changes, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    let path = folder.join("config.toml");
    let text = fs::read_to_string(&path).map_err(JobError::file("read", &path))?;
    let mut config =
        Config::parse(&text, &[]).map_err(|e| JobError::Config(format!("{}: {e}", path.display())))?;
    config.threads = changes.threads.unwrap_or(config.threads);
    let job = Job::open(folder, observer)?;
    let Some((description, state)) = job.store.read()? else {
        if folder.join("summary.json").exists() {
            return Err(JobError::Config(format!(
                "{} holds a summary but no checkpoint: run its config.toml again with another --out",
                folder.display()
            )));
        }
        // It stopped before its first checkpoint.
        config.run.iterations = changes.iterations.unwrap_or(config.run.iterations);
        return job.start(&config.within(folder));
    };
    let before = Config::parse(&description.config, &[])?;
    if config.chains.count == Count::Word("auto".into()) {
        config.chains.count = before.chains.count.clone();
    }
    let changed = |what: String| {
        JobError::Config(format!(
            "{} was changed since the run began: {what}; change it back, or begin another run",
            path.display()
        ))
    };
    if let Some(what) = checkpoint::difference(&config, &before) {
        return Err(changed(what));
    }
    // A crash can leave the larger number in the config alone.
    if config.run.iterations < before.run.iterations {
        let (now, was) = (config.run.iterations, before.run.iterations);
        return Err(changed(format!("run.iterations is {now} now, but was {was}")));
    }
    config.run.iterations = changes.iterations.unwrap_or(config.run.iterations);
    pool(&config)?.install(|| {
        let work = Work::restore(config.within(folder), description.times, &state)?;
        let (dim, ensembles) = work.shape();
        let draws = StoredDraws::open(job.store.draws_path(), dim, ensembles, description.draws_bytes)?;
        let sampled = work.run.records().next().map_or(0, |r| r.counts.iterations / work.config.run.thin);
        if draws.draws() as u64 != sampled {
            return Err(JobError::Config(format!(
                "the checkpoint in {} has {} draws of {sampled}; nothing was changed",
                folder.display(),
                draws.draws()
            )));
        }
        job.observer.begin();
        job.log("resume", json!({"stage": format!("{:?}", work.run.progress().0)}))?;
        job.write_config(&work.config)?;
        job.go(work, draws)
    })
}

/// A run that went to its end, back in memory.
pub struct Finished {
    /// The run.
    pub run: Run,
    /// Draws of each ladder, or some of very many, evenly spread.
    pub draws: Vec<Draws>,
    /// `summary.json`.
    pub summary: Summary,
}

/// Reads a finished run's folder.
pub fn finished(folder: &Path) -> Result<Finished, JobError> {
    let summary = Summary::read(folder)?;
    let store = Store::open(folder)?;
    let missing = || JobError::Config(format!("{}: holds no checkpoint", folder.display()));
    let (description, state) = store.read()?.ok_or_else(missing)?;
    let mut config = Config::parse(&description.config, &[])?.within(folder);
    // Nothing is sampled any more.
    config.run.device = "cpu".into();
    pool(&config)?.install(|| {
        let work = Work::restore(config, description.times, &state)?;
        let (dim, ensembles) = work.shape();
        let draws = StoredDraws::open(store.draws_path(), dim, ensembles, description.draws_bytes)?;
        let draws = draws.judged(&work.config)?;
        Ok(Finished { run: work.run, draws, summary })
    })
}

/// A run folder at work.
struct Job<'a> {
    folder: &'a Path,
    store: Store,
    observer: Watched<'a>,
}

impl<'a> Job<'a> {
    fn open(folder: &'a Path, observer: &'a mut dyn Observer) -> Result<Self, JobError> {
        let store = Store::open(folder)?;
        Ok(Self { folder, store, observer: Watched::new(folder, observer) })
    }

    fn start(self, config: &Config) -> Result<Summary, JobError> {
        self.observer.begin();
        let config = molecules::keep_files(config, self.folder)?.within(self.folder);
        self.write_config(&config)?;
        self.log("start", json!({"version": env!("CARGO_PKG_VERSION"), "seed": config.seed}))?;
        pool(&config)?.install(|| {
            let mut work = Work::begin(&config)?;
            let (dim, ensembles) = work.shape();
            let mut draws = StoredDraws::create(self.store.draws_path(), dim, ensembles)?;
            self.checkpoint(&mut work, &mut draws)?;
            self.write_config(&work.config)?;
            self.go(work, draws)
        })
    }

    /// To the end, or until asked to stop.
    fn go(mut self, mut work: Work, mut draws: StoredDraws) -> Result<Summary, JobError> {
        let folder = self.folder.to_owned();
        let summary = self.work(&mut work, &mut draws);
        self.observer.end(match &summary {
            Ok(Some(summary)) if summary.finished => State::Finished,
            Ok(_) => State::Stopped,
            Err(error) => State::Failed(error.to_string()),
        });
        let halted = |cause| JobError::Halted { folder: folder.clone(), cause: Box::new(cause) };
        summary.map_err(halted)?.ok_or(JobError::Stopped { folder: folder.clone() })
    }

    fn work(&mut self, work: &mut Work, draws: &mut StoredDraws) -> Result<Option<Summary>, JobError> {
        let mut pace = Pace::new(work.config.run.checkpoint_seconds);
        let mut draws_pace = Pace::new(work.config.run.checkpoint_seconds);
        while work.run.progress().0 != Stage::Finished && !self.observer.should_stop() {
            let before = work.run.progress().0;
            work.advance(&mut self.observer)?;
            let after = work.run.progress().0;
            let entered = std::mem::discriminant(&before) != std::mem::discriminant(&after);
            if after != Stage::Finished && (entered || pace.is_due()) {
                let (_, observed) = pace.time(|| {
                    self.checkpoint(work, draws)?;
                    self.write_summary(work, draws)
                })?;
                // Written whole each time, so it has a pace of its own.
                if draws_pace.is_due() {
                    draws_pace.time(|| self.write_draws(work, draws, observed.as_ref()))?;
                }
            } else if work.waiting_numbers() > MOST_WAITING {
                draws.append(&work.run.take_draws())?;
            }
        }
        self.checkpoint(work, draws)?;
        if let Some(fitted) = work.run.fitted().filter(|f| f.report.steps > 0 && !f.record.is_empty()) {
            write_whole(&self.folder.join("transport.safetensors"), &fitted.record)?;
        }
        let (summary, observed) = self.write_summary(work, draws)?;
        self.write_draws(work, draws, observed.as_ref())?;
        if summary.is_some() {
            report::write(self.folder)?;
        }
        let finished = work.run.progress().0 == Stage::Finished;
        let event = if finished { "end" } else { "stop" };
        self.log(event, json!({"finished": finished, "round_trips": work.run.round_trips()}))?;
        Ok(summary)
    }

    /// Draws first: a state speaks of no draws that are not on disk.
    fn checkpoint(&self, work: &mut Work, draws: &mut StoredDraws) -> Result<(), JobError> {
        draws.append(&work.run.take_draws())?;
        draws.sync()?;
        let description = Description {
            version: env!("CARGO_PKG_VERSION").into(),
            config: work.config.seen_from(self.folder).to_toml(),
            times: work.times,
            draws_bytes: draws.bytes(),
        };
        self.store.write(&description, &work.run.save()?)
    }

    /// `config.toml`; the files it names lie beside it.
    fn write_config(&self, config: &Config) -> Result<(), JobError> {
        let text = config.seen_from(self.folder).to_toml();
        write_whole(&self.folder.join("config.toml"), text.as_bytes())
    }

    /// `summary.json` and `traces.json`, as far as they go; nothing before the first draw.
    fn write_summary(
        &self,
        work: &Work,
        draws: &StoredDraws,
    ) -> Result<(Option<Summary>, Option<Observed>), JobError> {
        let Some((summary, observed)) = work.summary(&draws.judged(&work.config)?) else {
            return Ok((None, None));
        };
        if let Some(observed) = &observed {
            chemistry::write_files(self.folder, &work.config, &work.run, observed)?;
        }
        let mut traces = Traces::new(&work.run, &work.about);
        traces.exact = Sample::exact(&*work.target, work.config.seed, &summary.target_chain.ess);
        let traces = serde_json::to_vec(&traces).expect("plain data");
        write_whole(&self.folder.join("traces.json"), &traces)?;
        write_whole(&self.folder.join("summary.json"), summary.to_json().as_bytes())?;
        Ok((Some(summary), observed))
    }

    /// `draws.nc`: an ensemble is what ArviZ calls a chain.
    fn write_draws(
        &self,
        work: &Work,
        draws: &StoredDraws,
        observed: Option<&Observed>,
    ) -> Result<(), JobError> {
        if draws.draws() == 0 {
            return Ok(());
        }
        let series = observed.into_iter().flat_map(|o| &o.series);
        let file = DrawsFile::stored(work.run.sampler().path.dim(), draws);
        let file = series.fold(file, |file, series| {
            file.statistic(&series.name, series.values.iter().map(|values| Values::Real(values)))
        });
        let file = file
            .attribute("seed", work.config.seed)
            .attribute("target", work.config.target.kind.as_str())
            .attribute("thin", work.config.run.thin);
        Ok(file.write(&self.folder.join("draws.nc"))?)
    }

    /// `log.jsonl`: events with times.
    fn log(&self, event: &str, mut details: serde_json::Value) -> Result<(), JobError> {
        let path = self.folder.join("log.jsonl");
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        details["event"] = event.into();
        details["time"] = time.into();
        let append = || {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(format!("{details}\n").as_bytes())
        };
        append().map_err(JobError::file("write", &path))
    }
}

/// Numbers of draws that wait in memory before they go to disk, at a checkpoint at the latest.
const MOST_WAITING: usize = 1 << 21;

/// When something is due again: after the given seconds, and the later the longer it takes.
struct Pace {
    seconds: f64,
    last: Instant,
    cost: Duration,
}

impl Pace {
    fn new(seconds: f64) -> Self {
        Self { seconds, last: Instant::now(), cost: Duration::ZERO }
    }

    fn is_due(&self) -> bool {
        // At most a twentieth of the time; with zero seconds as often as can be.
        let wait = Duration::from_secs_f64(self.seconds).max(20 * self.cost);
        self.seconds == 0.0 || self.last.elapsed() >= wait
    }

    fn time<T>(&mut self, job: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let out = job();
        (self.last, self.cost) = (Instant::now(), begin.elapsed());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::paths::Geometric;
    use sterna::{Evaluation, targets::Normal};

    struct Panics;

    impl Target for Panics {
        fn dim(&self) -> usize {
            1
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
            assert!(x.as_slice().iter().all(|x| *x < 2.5), "no such orbital");
            Normal::isotropic(1, 1.0).evaluate(x, out)
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_last_checkpoint_stays() {
        let folder = tempfile::tempdir().unwrap();
        let overrides = [("chains.count", "3"), ("seed", "4"), ("run.checkpoint_seconds", "0.0")];
        let config = Config::parse("", &overrides).unwrap();
        let path = Arc::new(Geometric::from_standard_normal(Panics));
        let run = Run::new(path, config.settings().unwrap()).unwrap();
        let (target, about) = (Arc::new(Panics), About::default());
        let mut work = Work { config, target, about, run, times: Times::default(), block: 1 };
        let mut nobody = ();
        let job = Job::open(folder.path(), &mut nobody).unwrap();
        let mut draws = StoredDraws::create(job.store.draws_path(), 1, 1).unwrap();
        job.checkpoint(&mut work, &mut draws).unwrap();
        let error = job.go(work, draws).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("panicked") && message.contains("no such orbital"), "{message}");
        assert!(message.contains("sterna resume") && error.exit_code() == 1, "{message}");
        let (_, state) = Store::open(folder.path()).unwrap().read().unwrap().expect("a checkpoint");
        assert!(!state.is_empty());
    }

    #[test]
    fn dates() {
        assert_eq!(super::date(0), "19700101-000000");
        assert_eq!(super::date(951_827_696), "20000229-123456");
        assert_eq!(super::date(1_767_225_599), "20251231-235959");
    }
}
