//! Independent runs of one problem, as of a job array, joined into one result: all their draws, R̂ between runs, one log Z.
//!
//! Made from the files of the runs alone: no target is asked, so that runs of any program can be joined.

mod draws;
mod joined;

pub use joined::Member;

use crate::config::Config;
use crate::draws_file;
use crate::error::JobError;
use crate::files::write_whole;
use crate::report;
use crate::summary::Summary;
use draws::Joined;
use std::fs;
use std::path::{Path, PathBuf};

/// A run as its folder holds it.
struct Source {
    folder: PathBuf,
    config: Config,
    summary: Summary,
    columns: Vec<draws_file::Column>,
}

impl Source {
    fn read(folder: &Path) -> Result<Self, JobError> {
        let summary = Summary::read(folder)?;
        if !summary.merged.is_empty() {
            let why = "is a merged result: merge the runs that it was made of, and the others, in one go";
            return Err(JobError::Config(format!("{} {why}", folder.display())));
        }
        if !summary.finished {
            let folder = folder.display();
            return Err(JobError::Config(format!(
                "{folder} has not ended: go on with `sterna resume {folder}`"
            )));
        }
        let path = folder.join("config.toml");
        let text = fs::read_to_string(&path).map_err(JobError::file("read", &path))?;
        let config = Config::parse(&text, &[]).map_err(JobError::within(path))?;
        let columns = draws_file::read(&folder.join("draws.nc"))?;
        Ok(Self { folder: folder.into(), config, summary, columns })
    }
}

/// Joins runs into a folder of their own: `draws.nc`, `summary.json` and `report.html`.
///
/// # Errors
/// If there are fewer than two, if one has not ended, if two have the same seed, or if they are of different problems.
///
/// ```
/// use sterna_run::{Config, merge, run};
///
/// let folder = tempfile::tempdir()?;
/// let runs = [1, 2].map(|seed: u64| (seed, folder.path().join(seed.to_string())));
/// for (seed, out) in &runs {
///     let text = format!("seed = {seed}\n[target]\nkind = \"banana\"\n[chains]\ncount = 3\n[run]\niterations = 300");
///     run(&Config::parse(&text, &[])?, out, &mut ())?;
/// }
/// let merged = merge::merge(&runs.map(|(_, out)| out), &folder.path().join("all"))?;
/// assert_eq!((merged.merged.len(), merged.setup.ensembles), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<Summary, JobError> {
    if folders.len() < 2 {
        return Err(JobError::Config("at least two runs are needed to merge".into()));
    }
    if out.join("summary.json").exists() || out.join("config.toml").exists() {
        let taken = format!("{} holds a result already: choose another folder with --out", out.display());
        return Err(JobError::Config(taken));
    }
    let runs: Vec<Source> = folders.iter().map(|folder| Source::read(folder)).collect::<Result<_, _>>()?;
    for (i, run) in runs.iter().enumerate().skip(1) {
        refuse_other(&runs[0], run)?;
        refuse_same(&runs[..i], run)?;
    }
    let draws = Joined::of(&runs)?;
    fs::create_dir_all(out).map_err(JobError::file("create", out))?;
    draws.write(&out.join("draws.nc"), &runs[0].summary)?;
    let summary = joined::summary(&runs, &draws);
    write_whole(&out.join("summary.json"), summary.to_json().as_bytes())?;
    report::write(out)?;
    Ok(summary)
}

/// Draws and log Z of two problems say nothing together.
fn refuse_other(first: &Source, run: &Source) -> Result<(), JobError> {
    let [a, b] = [first, run].map(|run| run.folder.display());
    let differ = |what: String| {
        Err(JobError::Config(format!(
            "{a} and {b} are runs of different problems: {what}; only runs of one are merged"
        )))
    };
    let (ours, theirs) = (&first.summary, &run.summary);
    if (&ours.setup.target.kind, ours.setup.target.dim)
        != (&theirs.setup.target.kind, theirs.setup.target.dim)
    {
        let name = |summary: &Summary| {
            format!("\"{}\" of dimension {}", summary.setup.target.kind, summary.setup.target.dim)
        };
        return differ(format!("{}, and {}", name(ours), name(theirs)));
    }
    if let Some(what) = difference(first, run) {
        return differ(what);
    }
    if ours.log_z.of != theirs.log_z.of {
        return differ("log Z of one is the log evidence, and of the other not".into());
    }
    let names = |summary: &Summary| -> Vec<String> {
        summary.parameters.iter().chain(&summary.observables).map(|quantity| quantity.name.clone()).collect()
    };
    match names(ours) == names(theirs) {
        true => Ok(()),
        false => differ("their parameters have other names".into()),
    }
}

/// What the configs say of the problem and is not the same. A file may have other names, seen from each folder.
fn difference(first: &Source, run: &Source) -> Option<String> {
    let of = |config: Config| -> toml::Table {
        let all: toml::Table = toml::from_str(&config.to_toml()).expect("a config reads back");
        all.into_iter().filter(|(key, _)| ["target", "parameters"].contains(&key.as_str())).collect()
    };
    let seen = [first, run].map(|run| of(run.config.clone().within(&run.folder)));
    // A molecule's files lie in the folders themselves.
    let written = [first, run].map(|run| of(run.config.clone()));
    let outside = written.iter().any(|table| table.to_string().contains(".."));
    if seen[0] == seen[1] || (written[0] == written[1] && !outside) {
        return None;
    }
    let key = seen[0].keys().chain(seen[1].keys()).find(|key| seen[0].get(*key) != seen[1].get(*key))?;
    let show = |table: &toml::Table| table.get(key).map_or("nothing".into(), ToString::to_string);
    Some(format!("[{key}] is {} in one, and {} in the other", show(&seen[0]), show(&seen[1])))
}

/// The same seed gives the same draws, which count once.
fn refuse_same(earlier: &[Source], run: &Source) -> Result<(), JobError> {
    let seed = run.summary.setup.seed;
    match earlier.iter().find(|other| other.summary.setup.seed == seed) {
        None => Ok(()),
        Some(other) => Err(JobError::Config(format!(
            "{} and {} have the same seed, {seed}: their draws may be the same ones; runs that are merged need seeds of their own (--seed)",
            other.folder.display(),
            run.folder.display()
        ))),
    }
}
