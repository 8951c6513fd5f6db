//! Low rank plus diagonal from draws that may be fewer than dimensions.

use super::super::covariance::RANK;
use super::super::numbers::{add, dot};
use super::super::{Component, Shape, eigen};
use super::variance_ratios;

/// Standard deviations follow the draws; then directions in which the draws are wider than chance allows are stretched.
pub(super) fn fit(
    present: &Component,
    mean: &[f64],
    rows: &[&[f64]],
    share: &[f64],
    own: f64,
) -> Option<Shape> {
    let Shape::LowRank { deviations, directions, stretches } = &present.shape else { return None };
    let ratios = variance_ratios(&present.shape.deviations(), mean, rows, share, own, 5.0);
    let deviations: Vec<f64> = deviations.iter().zip(ratios).map(|(s, ratio)| s * ratio.sqrt()).collect();
    let (directions, stretches) = (directions.clone(), stretches.clone());
    let scaled = Shape::LowRank {
        deviations: deviations.clone(),
        directions: directions.clone(),
        stretches: stretches.clone(),
    };
    let (new, by) = wide_directions(scaled, mean, rows, share, own);
    let (directions, stretches) = combined((&directions, &stretches), (&new, &by), mean.len());
    Some(Shape::LowRank { deviations, directions, stretches })
}

/// Directions, in the coordinates of a shape, in which draws are wider than those of its normal would be by chance, and
/// how much wider they are.
fn wide_directions(
    shape: Shape,
    mean: &[f64],
    rows: &[&[f64]],
    share: &[f64],
    own: f64,
) -> (Vec<f64>, Vec<f64>) {
    let dim = mean.len();
    let frame = Component { weight: 1.0, mean: mean.to_vec(), shape };
    let mut standard = vec![0.0; rows.len() * dim];
    for (x, z) in rows.iter().zip(standard.chunks_exact_mut(dim)) {
        frame.standardise(x, z);
    }
    let count: f64 = share.iter().sum();
    let product = |v: &[f64], out: &mut [f64]| {
        out.fill(0.0);
        for (z, share) in standard.chunks_exact(dim).zip(share) {
            add(out, share * dot(z, v) / count, z);
        }
    };
    let (values, vectors) = eigen::largest(dim, RANK.min(rows.len()), product);
    let (mut directions, mut stretches) = (Vec::new(), Vec::new());
    for (value, v) in values.iter().zip(vectors.chunks_exact(dim)) {
        if let Some(variance) = above_chance(*value, dim as f64 / own) {
            directions.extend_from_slice(v);
            stretches.push(variance.sqrt());
        }
    }
    (directions, stretches)
}

/// The variance that a sample's eigenvalue stands for, with `ratio` dimensions per draw; none where a sample of a standard
/// normal has such eigenvalues too (Marchenko and Pastur; Baik, Ben Arous and Péché).
fn above_chance(value: f64, ratio: f64) -> Option<f64> {
    let edge = (1.0 + ratio.sqrt()) * (1.0 + ratio.sqrt());
    let shifted = value + 1.0 - ratio;
    (value > 1.1 * edge).then(|| 0.5 * (shifted + (shifted * shifted - 4.0 * value).sqrt()))
}

/// The product of two stretches, as one: outside of the span of their directions both do nothing.
fn combined(outer: (&[f64], &[f64]), inner: (&[f64], &[f64]), dim: usize) -> (Vec<f64>, Vec<f64>) {
    let unit = |(directions, stretches): (&[f64], &[f64])| Shape::LowRank {
        deviations: vec![1.0; dim],
        directions: directions.to_vec(),
        stretches: stretches.to_vec(),
    };
    let (first, second) = (unit(outer), unit(inner));
    let mut span = [outer.0, inner.0].concat();
    eigen::orthonormalise(&mut span, dim);
    let span: Vec<f64> = span.chunks_exact(dim).filter(|v| dot(v, v) > 0.5).flatten().copied().collect();
    let product = |v: &[f64], out: &mut [f64]| {
        out.copy_from_slice(v);
        first.apply_transposed(out);
        second.apply_transposed(out);
        second.apply(out);
        first.apply(out);
    };
    let (values, vectors) = eigen::rotated(span, dim, product);
    let mut order: Vec<usize> = (0..values.len()).filter(|&k| values[k] > 0.0).collect();
    // Those farthest from one, either way.
    let distance = |k: usize| values[k].max(1.0 / values[k]);
    order.sort_by(|&a, &b| distance(b).total_cmp(&distance(a)));
    order.truncate(RANK);
    let mut directions: Vec<f64> =
        order.iter().flat_map(|&k| &vectors[k * dim..(k + 1) * dim]).copied().collect();
    eigen::orthonormalise(&mut directions, dim);
    (directions, order.iter().map(|&k| values[k].sqrt()).collect())
}
