//! A run folder at work: who writes which file.

use super::Observer;
use super::ranks::Next;
use super::work::Work;
use crate::checkpoint::{Description, Store};
use crate::chemistry::{self, Observed};
use crate::config::{Config, TargetKind};
use crate::draws_file::{DrawsFile, Values};
use crate::draws_store::StoredDraws;
use crate::error::JobError;
use crate::files::write_whole;
use crate::progress::{State, Watched};
use crate::report;
use crate::summary::Summary;
use crate::traces::{Sample, Traces};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use sterna::acceleration::Fitted;
use sterna::records::Draws;
use sterna::run::Stage;

/// Numbers of draws that wait in memory before they go to disk, at a checkpoint at the latest.
const MOST_WAITING: usize = 1 << 21;

/// A run folder, held by this process alone.
pub(super) struct Folder<'a> {
    path: &'a Path,
    store: Store,
    observer: Watched<'a>,
}

impl<'a> Folder<'a> {
    pub fn open(path: &'a Path, store: Store, observer: &'a mut dyn Observer) -> Self {
        Self { path, store, observer: Watched::new(path, observer) }
    }

    /// Says that work begins.
    pub fn begin(&self, event: &str, details: serde_json::Value) -> Result<(), JobError> {
        self.observer.begin();
        self.log(event, details)
    }

    /// What comes before the first checkpoint; an error ends the run.
    pub fn prepare<T>(&self, work: impl FnOnce() -> Result<T, JobError>) -> Result<T, JobError> {
        work().inspect_err(|error| self.observer.end(State::Failed(error.to_string())))
    }

    /// Draws of a run that starts.
    pub fn new_draws(&self, work: &Work) -> Result<StoredDraws, JobError> {
        let (dim, ensembles) = work.shape();
        StoredDraws::create(self.store.draws_path(), dim, ensembles)
    }

    /// To the end, or until asked to stop.
    pub fn go(mut self, mut work: Work, mut draws: StoredDraws) -> Result<Summary, JobError> {
        let folder = self.path.to_owned();
        let summary = self.work(&mut work, &mut draws);
        match &summary {
            Ok(Some(summary)) if summary.finished => self.observer.end(State::Finished),
            Ok(_) => self.observer.end(State::Stopped),
            // Other ranks go on at once.
            Err(_) if work.problem.exchange.is_bereft() => {}
            Err(error) => self.observer.end(State::Failed(error.to_string())),
        }
        let own = matches!(work.problem.kind, TargetKind::Own(_));
        outcome(summary, folder, own)
    }

    fn work(&mut self, work: &mut Work, draws: &mut StoredDraws) -> Result<Option<Summary>, JobError> {
        let mut pace = Pace::new(work.config.run.checkpoint_seconds);
        let mut draws_pace = Pace::new(work.config.run.checkpoint_seconds);
        while work.run.progress().0 != Stage::Finished && !self.observer.should_stop() && !work.ranks.stop {
            let before = work.run.progress().0;
            work.advance(&mut self.observer)?;
            let after = work.run.progress().0;
            let entered = std::mem::discriminant(&before) != std::mem::discriminant(&after);
            let wanted = self.observer.wants_files();
            if after != Stage::Finished && (entered || wanted || pace.is_due()) {
                let (_, observed) = pace.time(|| {
                    self.checkpoint(work, draws)?;
                    self.write_summary(work, draws)
                })?;
                // Written whole each time, so it has a pace of its own.
                if wanted || draws_pace.is_due() {
                    draws_pace.time(|| self.write_draws(work, draws, observed.as_ref()))?;
                }
            } else if work.waiting_numbers() > MOST_WAITING {
                draws.append(&work.take_draws()?)?;
            }
        }
        self.checkpoint(work, draws)?;
        if let Some(fitted) = work.run.fitted().filter(|f| is_a_transport(f)) {
            write_whole(&self.path.join("transport.safetensors"), &fitted.record)?;
        }
        let (summary, observed) = self.write_summary(work, draws)?;
        self.write_draws(work, draws, observed.as_ref())?;
        if summary.is_some() {
            report::write(self.path)?;
        }
        if let Some(first) = summary.as_ref().and_then(|summary| summary.moves.bad_densities.first.as_ref()) {
            self.log("bad-density", json!(first))?;
        }
        let finished = work.run.progress().0 == Stage::Finished;
        let event = if finished { "end" } else { "stop" };
        self.log(event, json!({"finished": finished, "round_trips": work.run.round_trips()}))?;
        work.ranks.say(Next::End(summary.as_ref().map(Summary::to_json)))?;
        Ok(summary)
    }

    /// Draws first: a state speaks of no draws that are not on disk.
    pub fn checkpoint(&self, work: &mut Work, draws: &mut StoredDraws) -> Result<(), JobError> {
        draws.append(&work.take_draws()?)?;
        draws.sync()?;
        let description = Description {
            version: env!("CARGO_PKG_VERSION").into(),
            config: work.config.seen_from(self.path).to_toml(),
            times: work.times,
            draws_bytes: draws.bytes(),
        };
        self.store.write(&description, &work.run.save()?)
    }

    /// `config.toml`; the files it names lie beside it.
    pub fn write_config(&self, config: &Config) -> Result<(), JobError> {
        let text = config.seen_from(self.path).to_toml_with_notes();
        write_whole(&self.path.join("config.toml"), text.as_bytes())
    }

    /// `summary.json` and `traces.json`, as far as they go; nothing before the first draw.
    fn write_summary(
        &self,
        work: &Work,
        draws: &StoredDraws,
    ) -> Result<(Option<Summary>, Option<Observed>), JobError> {
        let Some((summary, observed)) = work.summary(&draws.judged(&work.problem)?) else {
            return Ok((None, None));
        };
        if let Some(observed) = &observed {
            chemistry::write_files(self.path, &work.run, observed)?;
        }
        let mut traces = Traces::new(&work.run, &work.about);
        // Exact draws are of coordinates.
        if work.problem.values.is_none() {
            traces.exact = Sample::exact(&*work.problem.target, work.config.seed, &summary.target_chain.ess);
        }
        let traces = serde_json::to_vec(&traces).expect("plain data");
        write_whole(&self.path.join("traces.json"), &traces)?;
        write_whole(&self.path.join("summary.json"), summary.to_json().as_bytes())?;
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
        let warmup: Vec<_> = work.run.warmup().collect();
        let series = observed.into_iter().flat_map(|o| &o.series);
        let file = DrawsFile::stored(work.run.sampler().path.dim(), draws).after(&warmup);
        let file = series.fold(file, |file, series| {
            file.statistic(&series.name, series.values.iter().map(|values| Values::Real(values)))
        });
        described(file, work).write(&self.path.join("draws.nc"))?;
        match work.problem.molecule {
            // Those of a molecule are frames that chemists' programs open.
            Some(_) => Ok(()),
            None => self.write_chains(work),
        }
    }

    /// `chain-<n>.nc`: draws of each chain, laid out as those of the target's, where the config asks for them.
    fn write_chains(&self, work: &Work) -> Result<(), JobError> {
        let (chains, dim) = (work.run.sampler().schedule.chains(), work.run.sampler().path.dim());
        let all: Vec<&Draws> = work.run.records().flat_map(|record| &record.trajectories).collect();
        if all.first().is_none_or(|draws| draws.replica.is_empty()) {
            return Ok(());
        }
        for chain in 0..chains {
            let of_ladders = all.iter().skip(chain).step_by(chains).copied();
            let file = described(DrawsFile::new(dim, of_ladders), work)
                .attribute("chain", chain as u64)
                .attribute("beta", work.run.sampler().schedule.betas()[chain])
                .attribute("thin", work.config.output.every);
            file.write(&self.path.join(format!("chain-{chain}.nc")))?;
        }
        Ok(())
    }

    /// `log.jsonl`: events with times.
    fn log(&self, event: &str, mut details: serde_json::Value) -> Result<(), JobError> {
        let path = self.path.join("log.jsonl");
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

/// A file of draws, with what is known of a run's values.
fn described<'a>(file: DrawsFile<'a>, work: &'a Work) -> DrawsFile<'a> {
    file.named(&work.problem.parameters)
        .holding(work.problem.values.as_deref())
        .observing(&work.problem.observables)
        .attribute("seed", work.config.seed)
        .attribute("target", work.config.target.kind())
        .attribute("thin", work.config.run.thin)
}

/// What a job comes to that was worked on as far as this.
pub(super) fn outcome(
    summary: Result<Option<Summary>, JobError>,
    folder: PathBuf,
    own: bool,
) -> Result<Summary, JobError> {
    match summary {
        Ok(Some(summary)) => Ok(summary),
        Ok(None) => Err(JobError::Stopped { folder, own }),
        // A density that is nowhere: there is nothing to go on with.
        Err(cause @ (JobError::Config(_) | JobError::Sampler(sterna::Error::NoStart { .. }))) => Err(cause),
        Err(cause) => Err(JobError::Halted { folder, own, cause: Box::new(cause) }),
    }
}

/// Due after the given seconds, and the later the longer it takes.
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

/// Whether what a fit made can be used again: a choice among several ways belongs to its own run.
fn is_a_transport(fitted: &Fitted) -> bool {
    fitted.report.steps > 0 && !fitted.record.is_empty() && fitted.report.choice.is_none()
}
