//! Shapes from draws and the scores there: where a density is nearly a normal, scores know it from few draws.
//!
//! A normal's score is −Σ⁻¹(x − μ), so draws and scores together tell Σ without the noise of a sample's covariance: it is the one
//! matrix with Σ C Σ = A, for the covariances A of the draws and C of the scores, and it makes E|∇log π − ∇log η|² least (as
//! nutpie tunes its masses). All of it happens in the coordinates in which the present component is standard normal. There A and
//! C of a fit that is right are the same matrix, whatever the draws: it stays as it is.

use super::covariance::RANK;
use super::numbers::{add, dot};
use super::refit::distinct;
use super::{Component, Shape, eigen};

/// Up to so many coordinates all correlations are fitted; beyond, those along the directions in which draws or scores vary most.
const MOST_WHOLE: usize = 64;

/// Rows that are looked at where coordinates are many.
const MOST_ROWS: usize = 600;

/// Fewer draws than this tell nothing.
const FEWEST: f64 = 2.0;

/// Draws as which the present fit counts.
const WEIGHT_OF_PRESENT: f64 = 1.0;

/// Mean and shape of a component from its share of the draws and the scores there, those that it has where draws are too few; none
/// where scores cannot tell.
pub(super) fn fit(
    present: &Component,
    rows: &[&[f64]],
    scores: &[&[f64]],
    share: &[f64],
    effective: f64,
) -> Option<(Vec<f64>, Shape)> {
    let own = effective.min(distinct(rows, share));
    if matches!(present.shape, Shape::LowRank { .. }) || rows.is_empty() {
        return None;
    }
    if own < FEWEST {
        return Some((present.mean.clone(), present.shape.clone()));
    }
    let mut seen = Seen::new(present, rows, scores, share)?;
    let widths = seen.rescale(own);
    let inner = match present.shape {
        Shape::Diagonal(_) => Shape::Diagonal(vec![1.0; seen.dim]),
        _ if seen.dim <= MOST_WHOLE => seen.whole(own)?,
        _ => seen.along_wide_directions(own)?,
    };
    // The mean of a normal is x + Σ s at any x.
    let mut shift = seen.mean_score.clone();
    inner.apply_transposed(&mut shift);
    inner.apply(&mut shift);
    add(&mut shift, 1.0, &seen.mean_point);
    let scale = own / (own + WEIGHT_OF_PRESENT);
    let scaled = Shape::Diagonal(widths.clone());
    shift.iter_mut().zip(&widths).for_each(|(x, width)| *x *= scale * width);
    present.shape.apply(&mut shift);
    let mut mean = present.mean.clone();
    add(&mut mean, 1.0, &shift);
    let shape = match (&present.shape, inner) {
        (Shape::Diagonal(present), _) => {
            Shape::Diagonal(present.iter().zip(&widths).map(|(a, b)| a * b).collect())
        }
        (outer, inner) => outer.around(&scaled.around(&inner)),
    };
    (shape.check().is_ok() && mean.iter().all(|m| m.is_finite())).then_some((mean, shape))
}

/// Draws and scores of a component in its own coordinates, around their means.
struct Seen {
    dim: usize,
    points: Vec<f64>,
    scores: Vec<f64>,
    /// Shares, which sum to one.
    share: Vec<f64>,
    mean_point: Vec<f64>,
    mean_score: Vec<f64>,
}

impl Seen {
    fn new(present: &Component, rows: &[&[f64]], scores: &[&[f64]], share: &[f64]) -> Option<Self> {
        let dim = present.mean.len();
        let stride = if dim > MOST_WHOLE { rows.len().div_ceil(MOST_ROWS).max(1) } else { 1 };
        let finite = |i: &usize| share[*i] > 0.0 && scores[*i].iter().all(|s| s.is_finite());
        let chosen: Vec<usize> = (0..rows.len()).step_by(stride).filter(finite).collect();
        let count: f64 = chosen.iter().map(|&i| share[i]).sum();
        let mut seen = Self {
            dim,
            points: vec![0.0; chosen.len() * dim],
            scores: vec![0.0; chosen.len() * dim],
            share: chosen.iter().map(|&i| share[i] / count).collect(),
            mean_point: vec![0.0; dim],
            mean_score: vec![0.0; dim],
        };
        let both = seen.points.chunks_exact_mut(dim).zip(seen.scores.chunks_exact_mut(dim));
        for (((z, g), &i), share) in both.zip(&chosen).zip(&seen.share) {
            present.standardise(rows[i], z);
            g.copy_from_slice(scores[i]);
            present.shape.apply_transposed(g);
            add(&mut seen.mean_point, *share, z);
            add(&mut seen.mean_score, *share, g);
        }
        seen.points.chunks_exact_mut(dim).for_each(|z| add(z, -1.0, &seen.mean_point));
        seen.scores.chunks_exact_mut(dim).for_each(|g| add(g, -1.0, &seen.mean_score));
        (count > 0.0).then_some(seen)
    }

    /// Makes draws and scores equally wide, coordinate by coordinate; how wide the target is beside the present fit.
    fn rescale(&mut self, own: f64) -> Vec<f64> {
        let variances = |of: &[f64]| {
            let mut sums = vec![0.0; self.dim];
            for (row, share) in of.chunks_exact(self.dim).zip(&self.share) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += share * x * x);
            }
            sums
        };
        let known = |(a, b): (&f64, &f64)| {
            ((own * a + WEIGHT_OF_PRESENT) / (own * b + WEIGHT_OF_PRESENT)).sqrt().sqrt()
        };
        let widths: Vec<f64> =
            variances(&self.points).iter().zip(&variances(&self.scores)).map(known).collect();
        for (rows, mean, by_width) in
            [(&mut self.points, &mut self.mean_point, false), (&mut self.scores, &mut self.mean_score, true)]
        {
            for row in rows.chunks_exact_mut(self.dim).chain([&mut mean[..]]) {
                let scaled = row.iter_mut().zip(&widths);
                scaled.for_each(|(x, width)| *x = if by_width { *x * width } else { *x / width });
            }
        }
        widths
    }

    /// The shape with all correlations.
    fn whole(&self, own: f64) -> Option<Shape> {
        let covariance = |of: &[f64]| {
            let mut all = vec![0.0; self.dim * self.dim];
            for (row, share) in of.chunks_exact(self.dim).zip(&self.share) {
                all.chunks_exact_mut(self.dim).zip(row).for_each(|(out, x)| add(out, share * x, row));
            }
            shrunk(all, self.dim, own)
        };
        between(&covariance(&self.points), &covariance(&self.scores), self.dim)
    }

    /// The shape that differs from the identity along those directions alone in which draws or scores vary most.
    fn along_wide_directions(&self, own: f64) -> Option<Shape> {
        let dim = self.dim;
        let product = |of: &'_ [f64], v: &[f64], out: &mut [f64]| {
            out.fill(0.0);
            for (row, share) in of.chunks_exact(dim).zip(&self.share) {
                add(out, share * dot(row, v), row);
            }
        };
        let rank = RANK.min(self.share.len() / 2).min(dim / 2);
        let mut span = Vec::new();
        for of in [&self.points, &self.scores] {
            span.extend(eigen::largest(dim, rank, |v, out| product(of, v, out)).1);
        }
        eigen::orthonormalise(&mut span, dim);
        let span: Vec<f64> = span.chunks_exact(dim).filter(|v| dot(v, v) > 0.5).flatten().copied().collect();
        let count = span.len() / dim;
        let within = |of: &[f64]| {
            let mut all = vec![0.0; count * count];
            for (row, share) in of.chunks_exact(dim).zip(&self.share) {
                let along: Vec<f64> = span.chunks_exact(dim).map(|v| dot(v, row)).collect();
                all.chunks_exact_mut(count).zip(&along).for_each(|(out, x)| add(out, share * x, &along));
            }
            shrunk(all, count, own)
        };
        let small = between(&within(&self.points), &within(&self.scores), count)?;
        // I + V (Σ − I) Vᵀ has the root I + V (S − I) Vᵀ along the axes of Σ.
        let (values, turns) = eigen::symmetric(small.covariance(), count);
        let mut directions = vec![0.0; count * dim];
        for (out, turn) in directions.chunks_exact_mut(dim).zip(turns.chunks_exact(count)) {
            span.chunks_exact(dim).zip(turn).for_each(|(v, by)| add(out, *by, v));
        }
        eigen::orthonormalise(&mut directions, dim);
        let stretches: Vec<f64> = values.iter().map(|value| value.sqrt()).collect();
        let shape = Shape::LowRank { deviations: vec![1.0; dim], directions, stretches };
        shape.check().is_ok().then_some(shape)
    }
}

/// A covariance in which the identity counts as one draw more.
fn shrunk(mut covariance: Vec<f64>, dim: usize, own: f64) -> Vec<f64> {
    let towards = WEIGHT_OF_PRESENT / (own + WEIGHT_OF_PRESENT);
    covariance.iter_mut().for_each(|entry| *entry *= 1.0 - towards);
    (0..dim).for_each(|i| covariance[i * dim + i] += towards);
    covariance
}

/// The shape whose covariance Σ solves Σ C Σ = A: with C = L Lᵀ it is L⁻ᵀ (Lᵀ A L)^½ L⁻¹.
fn between(a: &[f64], c: &[f64], dim: usize) -> Option<Shape> {
    let root = Shape::of_covariance(c, dim)?;
    let mut inner = a.to_vec();
    for _side in 0..2 {
        inner.chunks_exact_mut(dim).for_each(|row| root.apply_transposed(row));
        for i in 0..dim {
            (0..i).for_each(|j| inner.swap(i * dim + j, j * dim + i));
        }
    }
    let (values, vectors) = eigen::symmetric(inner, dim);
    let mut covariance = vec![0.0; dim * dim];
    for (value, v) in values.iter().zip(vectors.chunks_exact(dim)) {
        let mut v = v.to_vec();
        root.solve_transposed(&mut v);
        let by = value.max(0.0).sqrt();
        covariance.chunks_exact_mut(dim).zip(&v).for_each(|(row, x)| add(row, by * x, &v));
    }
    Shape::of_covariance(&covariance, dim)
}

#[cfg(test)]
mod tests {
    use super::super::numbers::near;
    use super::*;
    use crate::streams::Phase;
    use crate::{Batch, Streams};

    /// Draws of a correlated normal and the scores there.
    fn normal(dim: usize, rows: u32, scale: impl Fn(usize) -> f64) -> (Shape, Batch, Batch) {
        let entry = |k: usize| {
            let (i, j) = (k / dim, k % dim);
            scale(i) * scale(j) * if i == j { 1.0 } else { 0.9 }
        };
        let truth = Shape::of_covariance(&(0..dim * dim).map(entry).collect::<Vec<_>>(), dim).unwrap();
        let mut draws = Batch::zeros(rows as usize, dim);
        Streams::new(3).normals(Phase::Check, 0, &(0..rows).collect::<Vec<_>>(), &mut draws);
        let mut scores = draws.clone();
        for i in 0..rows as usize {
            truth.apply(draws.row_mut(i));
            scores.row_mut(i).copy_from_slice(draws.row(i));
            truth.solve(scores.row_mut(i));
            truth.solve_transposed(scores.row_mut(i));
            scores.row_mut(i).iter_mut().for_each(|s| *s = -*s);
            draws.row_mut(i).iter_mut().for_each(|x| *x += 7.0);
        }
        (truth, draws, scores)
    }

    fn fitted(present: &Component, draws: &Batch, scores: &Batch) -> (Vec<f64>, Shape) {
        let (rows, scores): (Vec<_>, Vec<_>) = draws.iter_rows().zip(scores.iter_rows()).unzip();
        fit(present, &rows, &scores, &vec![1.0; rows.len()], rows.len() as f64).unwrap()
    }

    #[test]
    fn thirty_draws_and_their_scores_know_a_normal_of_eight_dimensions() {
        let (truth, draws, scores) = normal(8, 30, |j| 10f64.powi(j as i32 - 4));
        let mut present = Component { weight: 1.0, mean: vec![6.0; 8], shape: Shape::Diagonal(vec![1.0; 8]) };
        present.shape = present.shape.dense();
        for _ in 0..6 {
            (present.mean, present.shape) = fitted(&present, &draws, &scores);
        }
        assert!(near(&present.mean, &[7.0; 8], 0.05), "{:?}", present.mean);
        let ratios: Vec<f64> =
            present.shape.deviations().iter().zip(truth.deviations()).map(|(a, b)| a / b).collect();
        assert!(near(&ratios, &[1.0; 8], 0.02), "{ratios:?}");
        assert!((present.shape.log_volume() - truth.log_volume()).abs() < 0.05);
    }

    #[test]
    fn what_is_right_stays_right_however_few_the_draws() {
        for dim in [5, 200] {
            let (truth, draws, scores) = normal(dim, 20, |j| 10f64.powi(j as i32 % 5 - 2));
            let present = Component { weight: 1.0, mean: vec![7.0; dim], shape: truth.clone().widened(1.1) };
            let (mean, shape) = fitted(&present, &draws, &scores);
            let off = shape.log_volume() - truth.log_volume();
            assert!(off.abs() < 0.005 * dim as f64, "{dim}: {off}");
            assert!(near(&mean, &vec![7.0; dim], 0.2 * 100.0));
        }
    }

    #[test]
    fn a_diagonal_stays_one_and_nothing_is_fitted_to_nothing() {
        let (truth, draws, scores) = normal(1, 50, |_| 3.0);
        let present = Component { weight: 1.0, mean: vec![0.0], shape: Shape::Diagonal(vec![1.0]) };
        let (mean, shape) = fitted(&present, &draws, &scores);
        assert!((mean[0] - 7.0).abs() < 0.5);
        assert!((shape.deviations()[0] / truth.deviations()[0] - 1.0).abs() < 0.2, "{shape:?}");
        assert!(fit(&present, &[], &[], &[], 0.0).is_none());
        let nan = [f64::NAN];
        assert!(fit(&present, &[&[1.0], &[2.0]], &[&nan, &nan], &[1.0; 2], 2.0).is_none());
    }
}
