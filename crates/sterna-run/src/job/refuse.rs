//! What a job refuses: names that are taken, a folder of another run, a config that has changed.

use super::work::Work;
use crate::checkpoint::{self, Store};
use crate::config::{Config, TargetKind};
use crate::draws_file::DrawsFileError;
use crate::draws_store::StoredDraws;
use crate::error::JobError;
use crate::problem::Problem;
use std::path::Path;

/// What is wrong with the names of a problem.
pub(super) fn bad_names(error: DrawsFileError) -> JobError {
    JobError::Config(match error {
        DrawsFileError::Name { name, taken: true } => format!(
            "the name `{name}` is taken: each parameter and each observable needs a name of its own, and draws.nc has its own chain, draw \
             and, where coordinates have no names, x"
        ),
        other => format!("names of the problem: {other}"),
    })
}

/// A problem of a program must be the one that the folder is about, as far as names can tell.
pub(super) fn refuse_other(problem: &Problem, config: &Config, folder: &Path) -> Result<(), JobError> {
    let name = |kind: &TargetKind| match kind {
        TargetKind::Own(own) => format!("\"{}\" of dimension {}", own.name, own.dim.unwrap_or(0)),
        other => format!("kind = \"{}\"", other.kind()),
    };
    let (ours, theirs) = (name(&problem.kind), name(&config.target));
    match ours == theirs {
        true => Ok(()),
        false => Err(JobError::Config(format!(
            "{} holds a run of another target: {theirs}, not {ours}; choose another folder",
            folder.display()
        ))),
    }
}

/// A run goes on as it began; only its length may grow, and its goals be others.
pub(super) fn refuse_changes(config: &Config, before: &Config, folder: &Path) -> Result<(), JobError> {
    let changed = |what: String| {
        JobError::Config(format!(
            "{} was changed since the run began: {what}; change it back, or begin another run",
            folder.join("config.toml").display()
        ))
    };
    if let Some(what) = checkpoint::difference(config, before) {
        return Err(changed(what));
    }
    // A crash can leave the larger number in the config alone.
    if config.run.iterations < before.run.iterations {
        let (now, was) = (config.run.iterations, before.run.iterations);
        return Err(changed(format!("run.iterations is {now} now, but was {was}")));
    }
    Ok(())
}

pub(super) fn stored_draws(
    store: &Store,
    work: &Work,
    bytes: u64,
    folder: &Path,
) -> Result<StoredDraws, JobError> {
    let (dim, ensembles) = work.shape();
    let draws = StoredDraws::open(store.draws_path(), dim, ensembles, bytes)?;
    let sampled = work.run.records().next().map_or(0, |r| r.counts.iterations / work.config.run.thin);
    if draws.draws() as u64 != sampled {
        return Err(JobError::Config(format!(
            "the checkpoint in {} has {} draws of {sampled}; nothing was changed",
            folder.display(),
            draws.draws()
        )));
    }
    Ok(draws)
}
