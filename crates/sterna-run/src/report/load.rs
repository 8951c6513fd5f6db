//! What a run folder holds, as far as it is there: the report is made from files alone.

use crate::builtin;
use crate::config::Config;
use crate::error::JobError;
use crate::traces::Traces;
use rust_hdf5::H5File;
use serde_json::Value;
use std::fs;
use std::path::Path;
use sterna::streams::{Phase, Streams};

/// Coordinates that are shown, and draws of all ladders that are looked at.
const COORDINATES: usize = 8;
const DRAWS: usize = 100_000;
/// Numbers that are read of a file, and in how many pieces of each ladder.
const NUMBERS: usize = 50_000_000;
const BLOCKS: usize = 64;
/// Exact draws to compare with.
const EXACT: usize = 20_000;

/// Draws of some coordinates.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Which coordinates, the slowest first.
    pub coordinates: Vec<usize>,
    /// Values of each, draw by draw.
    pub values: Vec<Vec<f64>>,
}

/// A run folder as read.
pub struct Folder {
    /// The resolved config.
    pub config: Config,
    /// Its text.
    pub config_text: String,
    /// `summary.json`.
    pub summary: Value,
    /// `traces.json`, where there is one.
    pub traces: Option<Traces>,
    /// Draws of the target chain, where there are some.
    pub draws: Option<Sample>,
    /// Exact draws of the same coordinates, where the target can draw.
    pub exact: Option<Sample>,
    /// `phi_psi.json`, where the target is a molecule.
    pub angles: Option<Value>,
    /// When the run began, in seconds since 1970.
    pub began: Option<f64>,
}

impl Folder {
    /// Reads what is there; a config and a summary must be.
    pub fn read(folder: &Path) -> Result<Self, JobError> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(JobError::file("read", path))
        };
        if !folder.join("summary.json").exists() {
            return Err(JobError::Config(format!(
                "{} holds no summary.json: is it a run folder, and has sampling begun?",
                folder.display()
            )));
        }
        let config_text = text("config.toml")?;
        let config = Config::parse(&config_text, &[])?;
        let json = |name: &str| -> Result<Value, JobError> {
            let unreadable = |e| JobError::Config(format!("{}: {e}", folder.join(name).display()));
            serde_json::from_str(&text(name)?).map_err(unreadable)
        };
        let summary = json("summary.json")?;
        // Folders of older versions have no traces: their reports show less.
        let traces = json("traces.json").ok().and_then(|value| serde_json::from_value(value).ok());
        let angles = json("phi_psi.json").ok();
        let began = text("log.jsonl").ok().and_then(|log| {
            let first: Value = serde_json::from_str(log.lines().next()?).ok()?;
            first["time"].as_f64()
        });
        let draws = read_draws(&folder.join("draws.nc"), &slowest(&summary));
        let exact = draws.as_ref().and_then(|draws| exact_draws(&config, &draws.coordinates));
        Ok(Self { config, config_text, summary, traces, draws, exact, angles, began })
    }
}

/// Coordinates with the fewest effective draws: where trouble shows first.
fn slowest(summary: &Value) -> Vec<usize> {
    let ess: Vec<f64> = super::numbers(&summary["ess"]["coordinates"]);
    let mut order: Vec<usize> = (0..ess.len()).collect();
    let rank = |i: &usize| if ess[*i].is_nan() { f64::INFINITY } else { ess[*i] };
    order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    order.truncate(COORDINATES);
    order
}

/// The given coordinates, evenly thinned.
fn read_draws(path: &Path, coordinates: &[usize]) -> Option<Sample> {
    let file = H5File::open(path).ok()?;
    let data = file.dataset("posterior/x").ok()?;
    let [ladders, draws, dim] = data.shape()[..].try_into().ok()?;
    let coordinates: Vec<usize> = coordinates.iter().copied().filter(|&j| j < dim).collect();
    let stride = (ladders * draws).div_ceil(DRAWS).max(1);
    let mut values = vec![Vec::new(); coordinates.len()];
    // A file of many gigabytes is not read whole: of each of some blocks, only the beginning.
    let blocks = BLOCKS.min(draws);
    let whole = ladders * draws * dim <= NUMBERS;
    let part = (NUMBERS / (ladders * blocks * dim)).max(1);
    for ladder in 0..ladders {
        for block in 0..blocks {
            let (first, end) = (block * draws / blocks, (block + 1) * draws / blocks);
            let rows = if whole { end - first } else { part.min(end - first) };
            let x: Vec<f64> = data.read_slice(&[ladder, first, 0], &[1, rows, dim]).ok()?;
            for row in (0..rows).filter(|row| !whole || (first + row).is_multiple_of(stride)) {
                for (out, &j) in values.iter_mut().zip(&coordinates) {
                    out.push(x[row * dim + j]);
                }
            }
        }
    }
    Some(Sample { coordinates, values }).filter(|s| s.values.iter().all(|v| !v.is_empty()))
}

fn exact_draws(config: &Config, coordinates: &[usize]) -> Option<Sample> {
    let target = builtin::target(&config.target).ok()?;
    let streams = Streams::new(config.seed);
    let mut x = vec![0.0; target.dim()];
    let mut values = vec![Vec::new(); coordinates.len()];
    // Not more numbers than the clock allows.
    let draws = EXACT.min(20_000_000 / target.dim().max(1)).max(500);
    for i in 0..draws {
        if !target.draw(&mut streams.row(Phase::Exact, 0, i as u32), &mut x) {
            return None;
        }
        values.iter_mut().zip(coordinates).for_each(|(out, &j)| out.push(x[j]));
    }
    Some(Sample { coordinates: coordinates.to_vec(), values })
}
