//! One run of an experiment: what is run, and what is kept of it.

use crate::checkpoint;
use crate::config::{Config, Count};
use crate::error::JobError;
use crate::job::{self, Finished};
use crate::summary::About;
use crate::traces::Traces;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use sterna::Target;
use sterna::estimates::{LadderWeights, LogZ, log_z_of};
use sterna::run::Run;
use sterna::streams::{Phase, Streams};

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
    /// The part of `summary.json` that tables need.
    pub summary: Value,
    /// What the cell asked to keep.
    pub kept: Kept,
}

/// See [`Keep`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// log Z by BAR, and by the paper's estimator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<[f64; 2]>,
    /// The same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ladders: Vec<[f64; 2]>,
    /// Of the draws.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u64>,
    /// Of the plain neural sampler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plain_distances: Vec<u64>,
    /// Draw after draw.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<Vec<f64>>,
    /// Iterations, and round trips by then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub round_trips: Vec<(u64, u64)>,
    /// Molecules: free energy over φ and ψ of the first residue.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub map: Value,
}

/// Subsets of weights, and ladders, that a box is made of.
pub const ESTIMATES: usize = 30;
/// Weights of each pair in a subset.
const SUBSET: usize = 1000;
/// Draws that pictures show.
const SHOWN: usize = 1000;
/// Points that a plain neural sampler draws.
const PLAIN: usize = 20_000;
/// Histograms of distances go from 0 to [`LONGEST`] in so many bins.
pub const DISTANCE_BINS: usize = 50;
/// Distances of DW-4 lie below this.
pub const LONGEST: f64 = 7.5;

/// Runs a cell in `folder`, or goes on with it.
pub fn measure(cell: &Cell, folder: &Path, observer: &mut dyn job::Observer) -> Result<Measured, JobError> {
    let run_folder = folder.join("run");
    let summary = match checkpoint::is_taken(&run_folder) {
        true => job::resume(&run_folder, &job::Changes::default(), observer)?,
        false => job::run(&cell.config, &run_folder, observer)?,
    };
    if !summary.finished {
        return Err(JobError::Stopped { folder: run_folder, own: false });
    }
    let Finished { run, draws, summary } = job::finished(&run_folder)?;
    let dim = run.sampler().path.dim();
    let keep = &cell.keep;
    let mut kept = Kept::default();
    if keep.subsets {
        kept.subsets = (0..ESTIMATES).map(|i| estimates(&subset(&run, i as u64))).collect();
    }
    if keep.ladders {
        let reference = run.sampler().path.log_z_reference();
        let ladders = run.records().flat_map(|r| r.weights());
        kept.ladders = ladders.map(|ladder| estimates(&log_z_of(reference, &[ladder]))).collect();
    }
    if keep.distances {
        kept.distances = distances(draws.iter().flat_map(|d| d.x.chunks_exact(dim)));
        if cell.config.accelerator.kind() != "none" {
            let plain = job::plain_samples(&run, PLAIN)?;
            kept.plain_distances = distances(plain.iter_rows());
        }
    }
    if keep.coordinates > 0 {
        let points = draws[0].x.chunks_exact(dim).take(SHOWN);
        kept.draws = points.map(|x| x[..keep.coordinates].iter().map(|&x| rounded(x)).collect()).collect();
    }
    if keep.round_trips {
        kept.round_trips = Traces::new(&run, &About::default()).round_trips;
    }
    if keep.map {
        let path = run_folder.join("phi_psi.json");
        let text = std::fs::read(&path).map_err(JobError::file("read", &path))?;
        let angles: Value = serde_json::from_slice(&text).unwrap_or_default();
        let residue = &angles["residues"][0];
        let round = |e: &Value| e.as_f64().map(|e| (100.0 * e).round() / 100.0);
        let rows = residue["free_energy"].as_array().into_iter().flatten();
        let rows = rows.map(|row| row.as_array().into_iter().flatten().map(round).collect::<Vec<_>>());
        kept.map = json!({"residue": residue["residue"], "free_energy": rows.collect::<Vec<_>>()});
    }
    let sterna = env!("CARGO_PKG_VERSION").to_string();
    Ok(Measured {
        cell: cell.clone(),
        sterna,
        summary: essence(&serde_json::to_value(&summary).expect("plain data")),
        kept,
    })
}

fn rounded(x: f64) -> f64 {
    (1e4 * x).round() / 1e4
}

fn estimates(log_z: &LogZ) -> [f64; 2] {
    [log_z.bar, log_z.geometric_mean].map(|z| (1e6 * z).round() / 1e6)
}

/// log Z from as many weights of each pair as the paper takes, drawn without replacement from all of them.
fn subset(run: &Run, number: u64) -> LogZ {
    let ladders: Vec<LadderWeights> = run.records().flat_map(|r| r.weights()).collect();
    let streams = Streams::new(run.settings().seed ^ 0x5DEE_CE66_D1CE_4E5B);
    let pick = |row: u32, weights: &[f64]| -> Vec<f64> {
        let mut stream = streams.row(Phase::Exact, number, row);
        let mut all = weights.to_vec();
        let wanted = SUBSET.min(all.len());
        for i in 0..wanted {
            let other = i + stream.below(all.len() - i);
            all.swap(i, other);
        }
        all.truncate(wanted);
        all
    };
    let picked: Vec<(Vec<f64>, Vec<f64>)> = ladders[0]
        .latest
        .iter()
        .enumerate()
        .map(|(pair, (forward, backward))| {
            (pick(2 * pair as u32, forward), pick(2 * pair as u32 + 1, backward))
        })
        .collect();
    let latest = picked.iter().map(|(f, b)| (&f[..], &b[..])).collect();
    log_z_of(run.sampler().path.log_z_reference(), &[LadderWeights { folded: None, latest }])
}

/// Histogram of the distances between four particles in the plane.
fn distances<'a>(points: impl Iterator<Item = &'a [f64]>) -> Vec<u64> {
    let mut counts = vec![0; DISTANCE_BINS];
    for x in points {
        let particles = x.as_chunks::<2>().0;
        for (i, a) in particles.iter().enumerate() {
            for b in &particles[..i] {
                let distance = (a[0] - b[0]).hypot(a[1] - b[1]);
                let bin = (distance / LONGEST * DISTANCE_BINS as f64) as usize;
                counts[bin.min(DISTANCE_BINS - 1)] += 1;
            }
        }
    }
    counts
}

/// As many independent draws as pictures show, of a target that can draw.
pub fn exact_draws(target: &dyn Target) -> Vec<Vec<f64>> {
    let streams = Streams::new(1);
    let draw = |i: usize| {
        let mut x = vec![0.0; target.dim()];
        target.draw(&mut streams.row(Phase::Exact, 0, i as u32), &mut x).then_some(x)
    };
    (0..SHOWN).filter_map(draw).collect()
}

/// What tables need of a summary: small enough to keep for good.
fn essence(summary: &Value) -> Value {
    let mut out = serde_json::Map::new();
    for key in [
        "dim",
        "seed",
        "chains",
        "ensembles",
        "iterations",
        "accelerator",
        "schedule",
        "rejection_rates",
        "global_barrier",
        "round_trips",
        "round_trip_rate",
        "exploration_efficiency",
        "evaluations",
        "compute_normalised_round_trips",
        "payoff",
        "break_even",
        "time",
        "molecule",
    ] {
        out.insert(key.into(), summary[key].clone());
    }
    let log_z = &summary["log_z"];
    out.insert(
        "log_z".into(),
        json!({
            "bar": log_z["bar"], "standard_error": log_z["standard_error"], "truth": log_z["truth"],
        }),
    );
    let training = &summary["training"];
    out.insert("training".into(), json!({"steps": training["steps"], "replaced": training["replaced"]}));
    let alarms = summary["alarms"].as_array().map_or(&[][..], |all| all);
    out.insert("alarms".into(), alarms.iter().map(|a| a["code"].clone()).collect());
    Value::Object(out)
}
