//! The guard that keeps a transport only on those pairs where it beats the plain swap.
//!
//! Whatever training does, the run stays exact: accelerators weigh their own paths. The guard is about speed.

use std::sync::Arc;

use sterna::Batch;
use sterna::acceleration::{FitReport, PairReport};
use sterna::accelerator::{Accelerator, Crossing, Direction};
use sterna::accelerators::{Identity, PerPair};
use sterna::estimates::Seen;
use sterna::path::AnnealingPath;
use sterna::streams::Streams;

use crate::fit::Training;
use crate::split::Split;

/// Journeys that judge a pair, in each direction.
const JUDGES: usize = 1000;

/// Rejection rate of every pair on held-out samples: r = E|tanh(Δ/2)|, Δ = log w(forward) − log w(backward).
pub fn rejection_rates(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    split: &Split,
    seed: u64,
) -> sterna::Result<Vec<f64>> {
    // Not the noise of sampling, nor that of batches.
    let streams = Streams::new(seed ^ 0x6A09_E667_F3BC_C908);
    let crossing = Crossing { accelerator, path, schedule: split.schedule(), streams: &streams };
    let travel = |pair: usize, direction: Direction| -> sterna::Result<Vec<f64>> {
        let chain = if direction == Direction::Forward { pair - 1 } else { pair };
        let starts = split.held_out(chain, JUDGES).concat();
        let start = crossing.start(pair, direction, Batch::from_vec(path.dim(), starts))?;
        Ok(crossing.cross(pair, direction, pair as u64, start)?.log_weight)
    };
    (1..=split.pairs())
        .map(|pair| {
            let (forward, backward) = (travel(pair, Direction::Forward)?, travel(pair, Direction::Backward)?);
            let n = forward.len();
            // A pair of samples of the same iteration would be correlated by the swap between them.
            let other = (0..n).map(|i| backward[(i + n / 2) % n]);
            let rejection = |(f, b): (&f64, f64)| {
                let r = (0.5 * (f - b)).tanh().abs();
                if r.is_nan() { 1.0 } else { r }
            };
            Ok(forward.iter().zip(other).map(rejection).sum::<f64>() / n as f64)
        })
        .collect()
}

/// Judges a transport pair by pair and replaces it where the plain swap does better.
pub(crate) fn guard(
    accelerator: Arc<dyn Accelerator>,
    path: &dyn AnnealingPath,
    split: &Split,
    training: &Training,
    report: &mut FitReport,
) -> sterna::Result<Arc<dyn Accelerator>> {
    report.seen = Seen::new(&split.trained_on_target());
    let ours = rejection_rates(&*accelerator, path, split, training.seed)?;
    let plain = rejection_rates(&Identity, path, split, training.seed)?;
    let judge = |(&rejection, &plain_rejection): (&f64, &f64)| PairReport {
        rejection,
        plain_rejection,
        plain: training.guard && rejection > plain_rejection,
    };
    report.pairs = ours.iter().zip(&plain).map(judge).collect();
    let replaced: Vec<usize> = (0..report.pairs.len()).filter(|&n| report.pairs[n].plain).collect();
    if replaced.is_empty() {
        return Ok(accelerator);
    }
    let rates = |n: &usize| {
        let p = &report.pairs[*n];
        format!("{}–{} ({:.3} against {:.3})", n, n + 1, p.rejection, p.plain_rejection)
    };
    let message = format!(
        "on samples held out from training the transport rejects more than a plain swap between chains {}; \
         these pairs are swapped plainly; more samples (training.collect) or steps (training.steps) may help",
        replaced.iter().map(rates).collect::<Vec<_>>().join(", ")
    );
    report.alarms.push(("transport-replaced".into(), message));
    Ok(partly_plain(accelerator, report.pairs.iter().map(|p| p.plain).collect()))
}

/// Plain swaps on the pairs that are marked.
pub(crate) fn partly_plain(accelerator: Arc<dyn Accelerator>, plain: Vec<bool>) -> Arc<dyn Accelerator> {
    if plain.iter().all(|&p| p) {
        Arc::new(Identity)
    } else if plain.iter().any(|&p| p) {
        Arc::new(PerPair::new(accelerator, plain))
    } else {
        accelerator
    }
}
