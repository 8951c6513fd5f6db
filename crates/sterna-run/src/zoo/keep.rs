//! What a cell leaves for those who look for evidence that no alarm uses yet: its summary, its draws and the weights of its swaps.

use crate::error::JobError;
use crate::files::write_whole;
use crate::summary::Summary;
use std::path::Path;
use sterna::run::Run;

/// Rows of a file at most: every so many-th is kept where there are more.
const ROWS: usize = 3000;

/// Writes `summary.json`, `draws.f32` (rows of ladder, coordinates, log density) and `weights.f32` (rows of leg, ladder, pair, 0
/// for forward or 1 for backward, log weight) into a folder; numbers are little-endian and of single precision.
pub(super) fn keep(folder: &Path, run: &Run, summary: &Summary) -> Result<(), JobError> {
    std::fs::create_dir_all(folder).map_err(JobError::file("create", folder))?;
    let text = serde_json::to_string(summary).expect("plain data");
    write_whole(&folder.join("summary.json"), text.as_bytes())?;
    write_whole(&folder.join("draws.f32"), &bytes(draws(run)))?;
    write_whole(&folder.join("weights.f32"), &bytes(weights(run)))
}

fn draws(run: &Run) -> Vec<Vec<f64>> {
    let dim = run.sampler().path.dim();
    let ladders = run.records().flat_map(|record| &record.draws).enumerate();
    let row = |ladder: usize, x: &[f64], log_density: f64| -> Vec<f64> {
        std::iter::once(ladder as f64).chain(x.iter().copied()).chain([log_density]).collect()
    };
    let rows = ladders.flat_map(|(ladder, draws)| {
        let points = draws.x.chunks_exact(dim).zip(&draws.log_density);
        points.map(move |(x, log_density)| row(ladder, x, *log_density))
    });
    thinned(rows.collect())
}

fn weights(run: &Run) -> Vec<Vec<f64>> {
    let mut rows = Vec::new();
    for (batch, record) in run.records().enumerate() {
        for leg in 0..record.legs().count() {
            for (copy, ladder) in record.weights(leg).enumerate() {
                for (pair, (forward, backward)) in ladder.latest.iter().enumerate() {
                    let place = [leg, batch * record.draws.len() + copy, pair].map(|n| n as f64);
                    let sides = [(0.0, *forward), (1.0, *backward)];
                    let all =
                        sides.iter().flat_map(|(side, weights)| weights.iter().map(move |w| (*side, *w)));
                    rows.extend(all.map(|(side, w)| vec![place[0], place[1], place[2], side, w]));
                }
            }
        }
    }
    thinned(rows)
}

fn thinned(rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let every = rows.len().div_ceil(ROWS).max(1);
    rows.into_iter().step_by(every).collect()
}

fn bytes(rows: Vec<Vec<f64>>) -> Vec<u8> {
    rows.iter().flatten().flat_map(|x| (*x as f32).to_le_bytes()).collect()
}
