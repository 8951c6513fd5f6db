//! Where a run stands, and what it has asked so far.

use super::StoppedBy;
use crate::path::AnnealingPath;
use crate::records::MOST_COUNTED;
use crate::trace::RoundTrace;
use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Uphill to optima, for a reference that is fitted.
    Climbing,
    /// In a tuning round, from 0.
    Tuning(usize),
    /// Samples for an accelerator, all frozen.
    Collecting,
    /// The accelerator is made from those samples, step by step.
    Fitting,
    /// In a tuning round, from 0, on a path that was learned.
    Retuning(usize),
    /// Before sampling, all frozen.
    BurnIn,
    /// Draws count.
    Sampling,
    /// All done.
    Finished,
}

/// Stage, iterations, and what tuning and evaluations came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub stage: Stage,
    /// Iterations of the present stage.
    pub stage_iterations: u64,
    /// Iterations of all stages.
    pub iteration: u64,
    /// How tuning went.
    pub rounds: Vec<RoundTrace>,
    pub asked: Tally,
    /// What climbs had asked when they were over.
    pub climbing: Asked,
    /// What had been asked when sampling began.
    pub before_sampling: Asked,
    /// What had been asked, and round trips that had been made, when the present stage began.
    pub before_stage: (Asked, u64),
    /// Why sampling ended.
    pub stopped_by: Option<StoppedBy>,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            stage: Stage::Tuning(0),
            stage_iterations: 0,
            iteration: 0,
            rounds: Vec::new(),
            asked: Tally::default(),
            climbing: Asked::default(),
            before_sampling: Asked::default(),
            before_stage: (Asked::default(), 0),
            stopped_by: None,
        }
    }

    /// Whether counts are such that sums of them fit: a file may claim anything.
    pub fn is_sound(&self) -> bool {
        let counts =
            [self.iteration, self.stage_iterations, self.asked.before.target, self.asked.before.network];
        let then = self.before_sampling;
        counts.iter().all(|&n| n < MOST_COUNTED)
            && self.climbing.target <= self.asked.before.target
            && then.target <= self.asked.before.target
            && then.network <= self.asked.before.network
            && self.before_stage.0.target <= self.asked.before.target
            && self.before_stage.1 < MOST_COUNTED
    }
}

/// Points at which the target, and the network of a learned path, were evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub target: u64,
    pub network: u64,
}

impl Asked {
    pub fn by(path: &dyn AnnealingPath) -> Self {
        Self { target: path.evaluations(), network: path.network_evaluations() }
    }

    /// Adds what a path was asked since.
    pub fn add_since(&mut self, before: Self, path: &dyn AnnealingPath) {
        let now = Self::by(path);
        self.target += now.target - before.target;
        self.network += now.network - before.network;
    }
}

/// What a run has asked, over all the paths that it has been on. Paths count for themselves; this knows where each came in.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// All that had been asked when the present path was taken up.
    before: Asked,
    /// What that path had counted then and is not the run's.
    #[serde(skip)]
    not_ours: Asked,
}

impl Tally {
    /// All so far, on the present path.
    pub fn total(&self, path: &dyn AnnealingPath) -> Asked {
        let now = Asked::by(path);
        Asked {
            target: self.before.target + (now.target - self.not_ours.target),
            network: self.before.network + (now.network - self.not_ours.network),
        }
    }

    /// The run leaves a path for a learned one, whose evaluations are all the run's.
    pub fn learn(&mut self, old: &dyn AnnealingPath) {
        *self = Self { before: self.total(old), not_ours: Asked::default() };
    }

    /// The run leaves a path for one that has counted before.
    pub fn go_back(&mut self, old: &dyn AnnealingPath, new: &dyn AnnealingPath) {
        *self = Self { before: self.total(old), not_ours: Asked::by(new) };
    }

    /// A saved run goes on, on a path that may have counted since.
    pub fn resume(&mut self, path: &dyn AnnealingPath) {
        self.not_ours = Asked::by(path);
    }

    /// As it is saved: all of it before whatever comes.
    pub fn settled(&self, path: &dyn AnnealingPath) -> Self {
        Self { before: self.total(path), not_ours: Asked::default() }
    }

    /// All that had been asked when the present path was taken up.
    pub fn before(&self) -> Asked {
        self.before
    }

    /// What other ranks have asked.
    pub fn add_elsewhere(&mut self, asked: Asked) {
        self.before.target += asked.target;
        self.before.network += asked.network;
    }

    /// What an engine has asked.
    pub fn add(&mut self, target: u64) {
        self.before.target += target;
    }
}
