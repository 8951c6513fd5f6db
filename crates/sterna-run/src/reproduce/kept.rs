//! What is kept of a run beside its summary: what figures plot.

use super::cell::{Cell, Keep, Measured};
use super::essence::Essence;
use crate::checkpoint;
use crate::chemistry::{PhiPsi, ResidueMap};
use crate::error::JobError;
use crate::job::{self, Finished};
use crate::summary::About;
use crate::traces::Traces;
use serde::{Deserialize, Serialize};
use std::path::Path;
use sterna::Target;
use sterna::estimates::{LadderWeights, LogZ, log_z_of};
use sterna::run::Run;
use sterna::streams::{Phase, Streams};
use sterna::targets::Dw4;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<ResidueMap>,
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
    let mut measured = Measured::of(cell.clone());
    measured.summary = Essence::of(&summary);
    if cell.keep != Keep::default() {
        let transported = cell.config.accelerator.kind() != "none";
        measured.kept = Kept::of(&cell.keep, &job::finished(&run_folder)?, transported, &run_folder)?;
    }
    Ok(measured)
}

impl Kept {
    fn of(keep: &Keep, finished: &Finished, transported: bool, folder: &Path) -> Result<Self, JobError> {
        let Finished { run, draws, .. } = finished;
        let dim = run.sampler().path.dim();
        let mut kept = Self::default();
        if keep.subsets {
            kept.subsets = (0..ESTIMATES).map(|i| estimates(&subset(run, i as u64))).collect();
        }
        if keep.ladders {
            let reference = run.sampler().path.log_z_reference();
            let ladders = run.records().flat_map(|r| r.weights(0));
            kept.ladders = ladders.map(|ladder| estimates(&log_z_of(reference, &[ladder]))).collect();
        }
        if keep.distances {
            kept.distances = distances(draws.iter().flat_map(|d| d.x.chunks_exact(dim)));
        }
        if keep.distances && transported {
            kept.plain_distances = distances(job::plain_samples(run, PLAIN)?.iter_rows());
        }
        if keep.coordinates > 0 {
            let points = draws[0].x.chunks_exact(dim).take(SHOWN);
            kept.draws =
                points.map(|x| x[..keep.coordinates].iter().map(|&x| rounded(x)).collect()).collect();
        }
        if keep.round_trips {
            kept.round_trips = Traces::new(run, &About::default()).round_trips;
        }
        if keep.map {
            kept.map = map(folder)?;
        }
        Ok(kept)
    }
}

/// Free energy over φ and ψ of the first residue, to a hundredth.
fn map(folder: &Path) -> Result<Option<ResidueMap>, JobError> {
    let first = PhiPsi::read(folder)?.residues.into_iter().next();
    Ok(first.map(|ResidueMap { residue, mut free_energy, .. }| {
        let energies = free_energy.iter_mut().flatten().flatten();
        energies.for_each(|energy| *energy = (100.0 * *energy).round() / 100.0);
        ResidueMap { residue, free_energy, ..ResidueMap::default() }
    }))
}

fn rounded(x: f64) -> f64 {
    (1e4 * x).round() / 1e4
}

fn estimates(log_z: &LogZ) -> [f64; 2] {
    [log_z.bar, log_z.geometric_mean].map(|z| (1e6 * z).round() / 1e6)
}

/// log Z from as many weights of each pair as the paper takes, drawn without replacement from all of them.
fn subset(run: &Run, number: u64) -> LogZ {
    let ladders: Vec<LadderWeights> = run.records().flat_map(|r| r.weights(0)).collect();
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

/// Histogram of the six distances between the particles of each point of DW-4.
pub fn distances<'a>(points: impl Iterator<Item = &'a [f64]>) -> Vec<u64> {
    let mut counts = vec![0; DISTANCE_BINS];
    for distance in points.flat_map(Dw4::distances) {
        let bin = (distance / LONGEST * DISTANCE_BINS as f64) as usize;
        counts[bin.min(DISTANCE_BINS - 1)] += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_four_particles_are_six() {
        // Four particles, two of them on a line with the others, and their mean-free coordinates by hand.
        let particles = [[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 1.0]];
        let rows = [[1.0, -1.0, 0.0, 0.0], [1.0, 1.0, -2.0, 0.0], [1.0, 1.0, 1.0, -3.0f64]];
        let mut point = Vec::new();
        for row in rows {
            let length = row.iter().map(|c| c * c).sum::<f64>().sqrt();
            for axis in [0, 1] {
                point.push((0..4).map(|i| row[i] * particles[i][axis]).sum::<f64>() / length);
            }
        }
        let counts = distances([&point[..]].into_iter());
        assert_eq!(counts.iter().sum::<u64>(), 6);
        let width = LONGEST / DISTANCE_BINS as f64;
        let sides = [3.0f64, 4.0, 5.0, 1.0, 10f64.sqrt(), 18f64.sqrt()];
        let expected: Vec<usize> = sides.map(|d| (d / width + 1e-9) as usize).to_vec();
        let found = |bin: usize| counts[bin] + counts[bin.saturating_sub(1)];
        assert!(expected.iter().all(|&bin| found(bin) > 0), "{counts:?}");
    }
}
