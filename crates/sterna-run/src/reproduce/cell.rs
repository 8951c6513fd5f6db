//! One run of an experiment: what is run, what is to be kept of it, and what became of it.

use super::essence::Essence;
use super::kept::Kept;
use crate::config::{Config, Count};
use serde::{Deserialize, Serialize};

/// Memory that a cell may take: the paper's largest trainings collect some gigabytes of samples.
pub const MEMORY_GIB: f64 = 32.0;

/// A run that experiments ask for. Two that are equal give the same result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it is called in files.
    pub name: String,
    /// What is run.
    pub config: Config,
    /// The cell whose trained transport is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_of: Option<Source>,
    /// What is kept beside the summary.
    #[serde(default)]
    pub keep: Keep,
}

/// Where a transport comes from. With the config, so that another training is another source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Name of the cell that trains it.
    pub cell: String,
    /// What was run there.
    pub config: Box<Config>,
}

impl Cell {
    /// As what trains the transport of another one.
    pub fn as_source(&self) -> Source {
        Source { cell: self.name.clone(), config: Box::new(self.config.clone()) }
    }

    /// What it will cost, roughly and in no particular unit: for telling how much remains.
    pub fn cost(&self) -> f64 {
        let config = &self.config;
        let chains = if let Count::Number(n) = config.chains.count { n as f64 } else { 10.0 };
        let steps = 1.0 + config.accelerator.steps().unwrap_or(1) as f64;
        let network = self.transport_of.is_some() || config.accelerator.trains();
        let iterations = (config.run.iterations as f64 + 2e4) * config.chains.ensembles as f64;
        let sampling = iterations * chains * if network { 0.3 * steps } else { 0.1 } / 1e5;
        let training = if config.accelerator.trains() { 40.0 + 20.0 * steps } else { 0.0 };
        sampling + training * config.training.steps.map_or(1.0, |n| (n as f64 / 6000.0).min(1.0))
    }
}

/// What figures need beside the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keep {
    /// Estimates of log Z from random subsets of the weights, as the paper makes them.
    #[serde(skip_serializing_if = "is_false")]
    pub subsets: bool,
    /// An estimate of log Z from each ladder.
    #[serde(skip_serializing_if = "is_false")]
    pub ladders: bool,
    /// Histograms of the distances between particles, of the draws and of the plain neural sampler.
    #[serde(skip_serializing_if = "is_false")]
    pub distances: bool,
    /// So many coordinates of the first thousand draws.
    #[serde(skip_serializing_if = "is_zero")]
    pub coordinates: usize,
    /// Round trips over time.
    #[serde(skip_serializing_if = "is_false")]
    pub round_trips: bool,
    /// Molecules: free energy over φ and ψ.
    #[serde(skip_serializing_if = "is_false")]
    pub map: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was run.
    pub cell: Cell,
    /// The program's version.
    pub sterna: String,
    /// The part of its summary that tables need.
    pub summary: Essence,
    /// What the cell asked to keep.
    pub kept: Kept,
}

impl Measured {
    /// Of a cell of which nothing is known yet.
    pub fn of(cell: Cell) -> Self {
        let sterna = env!("CARGO_PKG_VERSION").to_string();
        Self { cell, sterna, summary: Essence::default(), kept: Kept::default() }
    }

    /// Whether it has all that its cell asks to keep.
    pub fn is_whole(&self) -> bool {
        let (keep, kept) = (&self.cell.keep, &self.kept);
        let parts = [
            (keep.subsets, kept.subsets.is_empty()),
            (keep.ladders, kept.ladders.is_empty()),
            (keep.distances, kept.distances.is_empty()),
            (keep.coordinates > 0, kept.draws.is_empty()),
        ];
        parts.iter().all(|(asked, lacks)| !(asked & lacks))
    }
}
