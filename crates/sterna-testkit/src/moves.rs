//! The library's moves as functions of batches of independent ladders, for [`check_invariance`].
//!
//! Rows hold the chains of a ladder one after the other.
//!
//! [`check_invariance`]: crate::check_invariance

use std::sync::Arc;
use sterna::accelerator::{Accelerator, Crossing, Direction, Journey};
use sterna::call::{Call, Rows, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::path::{AnnealingPath, Points};
use sterna::{Batch, Ensemble, Sampler, Schedule, Streams, Swap, Workspace, decide, iterate};

/// Points of all ladders, evaluated at the β of their chains.
pub fn points_of(path: &dyn AnnealingPath, betas: &[f64], ladders: &Batch) -> Points {
    let rows = ladders.rows() * betas.len();
    let mut points = Points::zeros(rows, path.dim());
    points.x.as_mut_slice().copy_from_slice(ladders.as_slice());
    let row_betas: Vec<f64> = (0..rows).map(|row| betas[row % betas.len()]).collect();
    path.evaluate(&row_betas, &mut points).expect("the path answers");
    points
}

/// One call of an explorer on every chain of every ladder.
pub fn explore<'a>(
    path: &'a dyn AnnealingPath,
    betas: &'a [f64],
    explorer: &'a dyn Explorer,
) -> impl FnMut(&Streams, Batch) -> Batch + 'a {
    move |streams, ladders| {
        let mut points = points_of(path, betas, &ladders);
        let rows = Rows::of_ladders(betas, ladders.rows());
        let mut moved = Moved::default();
        moved.begin(rows.len());
        explorer
            .explore(&Call::new(path, streams, 1, &rows), &mut points, &mut moved, &mut Scratch::default())
            .expect("the explorer moves");
        Batch::from_vec(ladders.dim(), points.x.as_slice().to_vec())
    }
}

/// A whole iteration t of Algorithm 1.
pub fn iteration<'a>(sampler: &'a Sampler, t: u64) -> impl FnMut(&Streams, Batch) -> Batch + 'a {
    move |streams, ladders| {
        let sampler = Sampler { streams: *streams, ..sampler.clone() };
        let mut ensemble = exact_ensemble(&sampler, &ladders);
        let mut work = Workspace::new(&ensemble);
        iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).expect("the sampler goes on");
        ladders_of(&ensemble)
    }
}

/// An ensemble in the given state, replica m on chain m.
pub fn exact_ensemble(sampler: &Sampler, ladders: &Batch) -> Ensemble {
    let Sampler { path, schedule, streams, .. } = sampler;
    let mut ensemble =
        Ensemble::start(&**path, streams, schedule, 0, ladders.rows()).expect("the path can start");
    ensemble.points = points_of(&**path, schedule.betas(), ladders);
    ensemble
}

/// The state of an ensemble, chain by chain.
pub fn ladders_of(ensemble: &Ensemble) -> Batch {
    let (chains, dim) = (ensemble.chains(), ensemble.points.x.dim());
    let mut out = Batch::zeros(ensemble.copies(), chains * dim);
    for copy in 0..ensemble.copies() {
        for (chain, x) in out.row_mut(copy).chunks_exact_mut(dim).enumerate() {
            x.copy_from_slice(ensemble.points.x.row(ensemble.row(copy, chain)));
        }
    }
    out
}

/// Rows and journeys of all pairs of all ladders, in one direction: entry i belongs to ladder
/// i / pairs and to pair 1 + i mod pairs. Keys are those that an ensemble would give.
pub fn depart(
    direction: Direction,
    path: &dyn AnnealingPath,
    schedule: &Schedule,
    ladders: &Batch,
) -> (Rows, Journey) {
    let points = points_of(path, schedule.betas(), ladders);
    let (chains, pairs) = (schedule.chains(), schedule.pairs());
    let mut rows = Rows::default();
    for ladder in 0..ladders.rows() {
        for pair in 1..=pairs {
            let chain = if direction == Direction::Forward { pair - 1 } else { pair };
            let row = ladder * chains + chain;
            rows.push_leaving(row, row as u32, pair, schedule.interval(pair), direction);
        }
    }
    let mut journey = Journey::new(ladders.rows() * pairs, path.dim());
    journey.begin(&points, &rows.row);
    (rows, journey)
}

/// The swap of one pair of chains, by the given accelerator: rows hold the two chains.
pub fn swap<'a>(
    path: &'a dyn AnnealingPath,
    schedule: &'a Schedule,
    pair: usize,
    accelerator: &'a dyn Accelerator,
) -> impl FnMut(&Streams, Batch) -> Batch + 'a {
    move |streams, mut both| {
        let dim = path.dim();
        let rows = both.rows();
        let crossing = Crossing { accelerator, path, schedule, streams };
        let travel = |direction: Direction, chain: usize| {
            let starts = both.iter_rows().flat_map(|row| &row[chain * dim..(chain + 1) * dim]);
            let start = crossing.start(pair, direction, Batch::from_vec(dim, starts.copied().collect()));
            let start = start.expect("the path answers");
            crossing.cross(pair, direction, 1, start).expect("the accelerator travels")
        };
        let (up, down) = (travel(Direction::Forward, 0), travel(Direction::Backward, 1));
        let weights = up.log_weight.iter().zip(&down.log_weight);
        let mut swaps: Vec<Swap> = weights
            .map(|(&log_forward, &log_backward)| Swap { pair, log_forward, log_backward, ..Swap::default() })
            .collect();
        let keys: Vec<u32> = (0..rows as u32).collect();
        decide(streams, 1, &keys, &mut vec![0.0; rows], &mut swaps);
        for (i, _) in swaps.iter().enumerate().filter(|(_, swap)| swap.accepted) {
            let (lower, upper) = both.row_mut(i).split_at_mut(dim);
            lower.copy_from_slice(down.points.x.row(i));
            upper.copy_from_slice(up.points.x.row(i));
        }
        both
    }
}

/// A sampler of the given parts; its streams are replaced by those of each test.
pub fn sampler(
    path: Arc<dyn AnnealingPath>,
    schedule: Schedule,
    explorer: impl Explorer + 'static,
    accelerator: impl Accelerator + 'static,
) -> Sampler {
    Sampler {
        path,
        schedule,
        explorer: Arc::new(explorer),
        accelerator: Arc::new(accelerator),
        streams: Streams::new(0),
    }
}
