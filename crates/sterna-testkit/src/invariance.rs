//! Does a move keep the law it is meant to keep? Draw from it exactly, move once, compare.

use crate::p_values::{kolmogorov_smirnov_two, mean_and_error, z_test};
use crate::verdict::Verdict;
use std::sync::Arc;
use sterna::path::{AnnealingPath, Points};
use sterna::{Batch, Streams};

/// A number that is computed for each row of a batch.
///
/// ```
/// use sterna::Batch;
/// use sterna_testkit::Statistic;
///
/// let square = Statistic::new("square", |x| x[0] * x[0]);
/// assert_eq!(square.values(&Batch::from_vec(1, vec![2.0, 3.0])), [4.0, 9.0]);
/// ```
pub struct Statistic {
    /// What it is.
    pub name: String,
    of: Box<OfBatch>,
}
type OfBatch = dyn Fn(&Batch) -> Vec<f64>;

impl Statistic {
    /// A function of whole batches, for values that are cheaper together.
    pub fn of_batch(name: impl Into<String>, of: impl Fn(&Batch) -> Vec<f64> + 'static) -> Self {
        Self { name: name.into(), of: Box::new(of) }
    }

    /// A function of a row.
    pub fn new(name: impl Into<String>, of: impl Fn(&[f64]) -> f64 + 'static) -> Self {
        Self::of_batch(name, move |x| x.iter_rows().map(&of).collect())
    }

    /// Its value at each row.
    pub fn values(&self, x: &Batch) -> Vec<f64> {
        (self.of)(x)
    }

    /// What separates laws on ladders of the given β, rows holding their chains one after the other:
    /// coordinates, their squares, neighbouring products, products across neighbouring chains, log
    /// densities, and the log-ratios of neighbouring densities, by which swaps decide.
    pub fn ladder(path: &Arc<dyn AnnealingPath>, betas: &[f64]) -> Vec<Statistic> {
        let dim = path.dim();
        let mut out = Vec::new();
        for (chain, &beta) in betas.iter().enumerate() {
            let first = chain * dim;
            for j in first..first + dim {
                let here = format!("chain {chain}, coordinate {}", j - first);
                out.push(Self::new(here.clone(), move |x| x[j]));
                out.push(Self::new(format!("{here}, square"), move |x| x[j] * x[j]));
                if j + 1 < first + dim {
                    out.push(Self::new(format!("{here}, times the next"), move |x| x[j] * x[j + 1]));
                }
                if chain + 1 < betas.len() {
                    out.push(Self::new(format!("{here}, times the next chain's"), move |x| {
                        x[j] * x[j + dim]
                    }));
                }
            }
            let density = |beta: f64| log_density(path.clone(), first, beta);
            let here = density(beta);
            out.push(Self::of_batch(format!("chain {chain}, log density"), here));
            for (other, name) in [(chain.wrapping_sub(1), "lower"), (chain + 1, "upper")] {
                if let Some(&other) = betas.get(other) {
                    let (here, there) = (density(beta), density(other));
                    out.push(Self::of_batch(format!("chain {chain}, log-ratio to the {name}"), move |x| {
                        there(x).iter().zip(here(x)).map(|(a, b)| a - b).collect()
                    }));
                }
            }
        }
        out
    }
}

/// log π̃^β of the chain that begins at column `first`.
fn log_density(path: Arc<dyn AnnealingPath>, first: usize, beta: f64) -> impl Fn(&Batch) -> Vec<f64> {
    let dim = path.dim();
    move |x| {
        let mut points = Points::zeros(x.rows(), dim);
        for i in 0..x.rows() {
            points.x.row_mut(i).copy_from_slice(&x.row(i)[first..first + dim]);
        }
        path.evaluate(&vec![beta; x.rows()], &mut points).expect("the path answers");
        points.log_density
    }
}

/// Draws rows from the exact law, moves each once, and tests in two ways that the law is the same:
/// the mean change of each statistic is zero (paired, hence sharp), and its distribution is that of
/// fresh exact draws (Kolmogorov–Smirnov).
///
/// `draw_exact` and `apply_move` get streams of their own; rows must be independent of each other.
/// A sound move fails with probability `false_alarm` on a fresh seed.
///
/// ```
/// use sterna_testkit::{Statistic, check_invariance};
/// use sterna::{Batch, streams::Phase};
/// let normals = |streams: &sterna::Streams| {
///     let mut x = Batch::zeros(4000, 1);
///     streams.normals(Phase::Exact, 0, &(0..4000).collect::<Vec<_>>(), &mut x);
///     x
/// };
/// let statistics = [Statistic::new("square", |x| x[0] * x[0])];
/// let scale = |by: f64| move |_: &sterna::Streams, x: Batch| {
///     Batch::from_vec(1, x.as_slice().iter().map(|x| by * x).collect())
/// };
/// check_invariance(normals, scale(-1.0), &statistics, 1, 1e-5).assert_passed();
/// check_invariance(normals, scale(1.2), &statistics, 1, 1e-5).assert_caught();
/// ```
pub fn check_invariance(
    mut draw_exact: impl FnMut(&Streams) -> Batch,
    mut apply_move: impl FnMut(&Streams, Batch) -> Batch,
    statistics: &[Statistic],
    seed: u64,
    false_alarm: f64,
) -> Verdict {
    let streams = |n: u64| Streams::new(crate::seed(seed) ^ (n << 56));
    let before = draw_exact(&streams(1));
    let fresh = draw_exact(&streams(2));
    let after = apply_move(&streams(3), before.clone());
    let mut verdict = Verdict::new(false_alarm);
    verdict.require(after.rows() == before.rows() && after.dim() == before.dim(), "the move keeps the shape");
    verdict.require(after.as_slice().iter().all(|x| x.is_finite()), "the move keeps points finite");
    if !verdict.passed() {
        return verdict;
    }
    for statistic in statistics {
        let (old, new) = (statistic.values(&before), statistic.values(&after));
        let change: Vec<f64> = new.iter().zip(&old).map(|(new, old)| new - old).collect();
        let (mean, error) = mean_and_error(&change);
        let spread = mean_and_error(&old).1;
        verdict.add(format!("{}, mean", statistic.name), z_test(mean, error, spread));
        let p = kolmogorov_smirnov_two(&new, &statistic.values(&fresh));
        verdict.add(format!("{}, distribution", statistic.name), p);
    }
    verdict
}
