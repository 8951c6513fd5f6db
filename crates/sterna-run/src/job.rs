//! A job: a config becomes a run folder.

use crate::accelerators;
use crate::builtin;
use crate::chemistry;
use crate::config::{Config, Count};
use crate::draws_file::{DrawsFile, Values};
use crate::error::JobError;
use crate::molecules;
use crate::summary::{Summary, Times};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use sterna::path::AnnealingPath;
use sterna::run::{Run, Stage};

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
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads)
        .build()
        .map_err(|e| JobError::Config(format!("threads = {}: {e}", config.threads)))?;
    pool.install(|| {
        let plan = accelerators::plan(config, builtin::target(&config.target)?)?;
        let config = &resolve_chains(config, &plan.path)?;
        let mut run = Run::accelerated(plan.path, config.settings()?, plan.acceleration)?;
        let times = advance(&mut run, observer)?;
        if run.records().next().is_none() {
            return Err(JobError::Interrupted);
        }
        let summary = Summary::new(config, plan.steps, &run, &times);
        Ok((run, summary))
    })
}

/// Advances block by block, so that progress shows and an interruption is heard.
fn advance(run: &mut Run, observer: &mut dyn Observer) -> Result<Times, JobError> {
    let mut times = Times::default();
    let mut block = 64;
    while run.progress().0 != Stage::Finished && !observer.should_stop() {
        let (stage, _, _) = run.progress();
        let begin = Instant::now();
        run.advance(block)?;
        let seconds = begin.elapsed().as_secs_f64();
        match stage {
            Stage::Tuning(_) | Stage::Retuning(_) => times.tuning_s += seconds,
            Stage::Collecting => times.collecting_s += seconds,
            Stage::Fitting => times.training_s += seconds,
            _ => times.sampling_s += seconds,
        }
        // Blocks of about a twentieth of a second.
        if seconds < 0.025 {
            block = (block * 2).min(1 << 20);
        } else if seconds > 0.1 {
            block = (block / 2).max(1);
        }
        let (stage, done, total) = run.progress();
        let rounds = run.settings().rounds;
        observer.progress(&Progress { stage, rounds, done, total, round_trips: run.round_trips() });
    }
    Ok(times)
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
fn date(seconds: u64) -> String {
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
pub fn run(config: &Config, folder: &Path, observer: &mut dyn Observer) -> Result<Summary, JobError> {
    // Everything that can be refused is refused before anything is written.
    let mut probe = config.clone();
    if probe.chains.count == Count::Word("auto".into()) {
        probe.chains.count = Count::Number(8);
    }
    probe.settings()?;
    accelerators::plan(config, builtin::target(&config.target)?)?;
    if folder.join("summary.json").exists() {
        return Err(JobError::Config(format!(
            "{} holds a run already: choose another folder with --out, or remove it",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(JobError::file("create the run folder", folder))?;
    let log = Log::open(folder)?;
    let kept = molecules::keep_files(config, folder)?;
    write_whole(&folder.join("config.toml"), kept.to_toml().as_bytes())?;
    log.event("start", serde_json::json!({"version": env!("CARGO_PKG_VERSION"), "seed": config.seed}))?;
    let (run, summary) = sample(config, observer)?;
    let kept = molecules::keep_files(&summary.config, folder)?;
    write_whole(&folder.join("config.toml"), kept.to_toml().as_bytes())?;
    chemistry::write_files(folder, &run, &summary)?;
    write_draws(&folder.join("draws.nc"), &run, &summary)?;
    if let (Some(_), Some(fitted)) = (&summary.training, run.fitted()) {
        write_whole(&folder.join("transport.safetensors"), &fitted.record)?;
    }
    write_whole(&folder.join("summary.json"), summary.to_json().as_bytes())?;
    log.event(
        "end",
        serde_json::json!({"finished": summary.finished, "round_trips": summary.results.round_trips}),
    )?;
    Ok(summary)
}

/// Draws of the target chain, an ensemble being what ArviZ calls a chain.
fn write_draws(path: &Path, run: &Run, summary: &Summary) -> Result<(), JobError> {
    let draws: Vec<_> = run.records().flat_map(|r| &r.draws).cloned().collect();
    if draws.iter().all(|d| d.replica.is_empty()) {
        return Ok(());
    }
    let series = summary.molecule.iter().flat_map(|molecule| &molecule.series);
    let file = series.fold(DrawsFile::new(summary.dim, &draws), |file, series| {
        file.statistic(&series.name, series.values.iter().map(|values| Values::Real(values)))
    });
    let file = file
        .attribute("seed", summary.config.seed)
        .attribute("target", summary.config.target.kind.as_str())
        .attribute("thin", summary.config.run.thin);
    Ok(file.write(path)?)
}

/// Writes beside, then renames: a crash leaves the old file or the new one, never half of one.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), JobError> {
    let beside = path.with_extension("partial");
    let write = || {
        let mut file = fs::File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(JobError::file("write", path))
}

/// `log.jsonl`: events with times.
struct Log {
    path: PathBuf,
}

impl Log {
    fn open(folder: &Path) -> Result<Self, JobError> {
        Ok(Self { path: folder.join("log.jsonl") })
    }

    fn event(&self, name: &str, mut details: serde_json::Value) -> Result<(), JobError> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        details["event"] = name.into();
        details["time"] = time.into();
        let append = || {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
            writeln!(file, "{details}")
        };
        append().map_err(JobError::file("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::date(0), "19700101-000000");
        assert_eq!(super::date(951_827_696), "20000229-123456");
        assert_eq!(super::date(1_767_225_599), "20251231-235959");
    }
}
