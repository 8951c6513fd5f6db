//! A run that went to its end, back in memory.

use super::threads::pool;
use super::work::Work;
use crate::accelerators;
use crate::checkpoint::Store;
use crate::config::{Config, Device};
use crate::draws_store::StoredDraws;
use crate::error::JobError;
use crate::summary::Summary;
use std::path::Path;
use sterna::records::Draws;
use sterna::run::Run;
use sterna::{Batch, Streams, plain_sampler};

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
    config.run.device = Device::Cpu;
    let problem = config.problem()?;
    pool(&problem, &config)?.install(|| {
        let plan = accelerators::plan(&problem, &config)?;
        let work = Work::restore(problem, config, plan, None, description.times, &state)?;
        let (dim, ensembles) = work.shape();
        let draws = StoredDraws::open(store.draws_path(), dim, ensembles, description.draws_bytes)?;
        let draws = draws.judged(&work.problem)?;
        Ok(Finished { run: work.run, draws, summary })
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
