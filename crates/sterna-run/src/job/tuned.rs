//! A run that has been tuned and goes no further: its ladder serves others.

use super::threads::pool;
use super::work::Work;
use crate::accelerators;
use crate::config::{AcceleratorKind, Config};
use crate::error::JobError;
use crate::problem::Problem;
use crate::summary::Spent;
use crate::trial;
use std::sync::Arc;
use sterna::exchange::Alone;
use sterna::run::{Run, Stage};

/// A ladder with plain swaps, tuned as a run would tune it.
pub struct Tuned {
    /// The run, before burn-in.
    pub run: Run,
    /// What it was tuned with.
    pub config: Config,
    /// What tuning took.
    pub spent: Spent,
}

/// Tunes the ladder of a problem, and goes on with it in the same threads.
pub fn tuned<T: Send>(
    mut problem: Problem,
    config: &Config,
    then: impl FnOnce(Tuned) -> Result<T, JobError> + Send,
) -> Result<T, JobError> {
    problem.exchange = Arc::new(Alone);
    let plain = |config: Config| Config { accelerator: AcceleratorKind::default(), ..config };
    // What is settled may be another transport that suits the target.
    let config = plain(plain(config.clone()).settled(&problem)?);
    pool(&problem, &config)?.install(|| {
        let plan = accelerators::plan(&problem, &config)?;
        problem.tried = trial::tried(&problem, &plan)?;
        let mut work = Work::begin(problem, &config, plan, None)?;
        while matches!(work.run.progress().0, Stage::Climbing | Stage::Tuning(_)) {
            work.advance(&mut ())?;
        }
        then(Tuned { run: work.run, config: work.config, spent: work.times.tuning })
    })
}
