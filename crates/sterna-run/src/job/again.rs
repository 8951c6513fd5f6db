//! A job that outlives some of its ranks: what those that are left need to go on from the last checkpoint.

use super::ranks::{by_all_left, has_begun, read_config};
use super::{Changes, Job};
use crate::config::Config;
use crate::error::JobError;
use crate::problem::Problem;
use std::path::PathBuf;

/// What a job was made of.
#[derive(Clone)]
pub(super) struct Again {
    pub problem: Problem,
    pub config: Config,
    pub folder: PathBuf,
}

impl Again {
    /// The same job, for the ranks that are left: from the start where nothing had been written.
    pub fn job(&self) -> Result<Job, JobError> {
        let Self { problem, config, folder } = self;
        let exchange = &*problem.exchange;
        by_all_left(exchange, || match has_begun(folder, exchange)? {
            true => {
                let stored = read_config(folder, exchange)?;
                Job::resumed(problem.clone(), stored, folder.clone(), &Changes::to(config))
            }
            false => Job::planned(problem.clone(), config.clone(), folder.clone(), None),
        })
    }
}
