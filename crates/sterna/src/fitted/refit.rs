//! Refitting a mixture to draws: weights and moments by a few rounds of EM, shrunk in each component's own coordinates.

mod low_rank;

use super::numbers::{add, dot};
use super::optima::least_weight;
use super::{Component, Covariance, Mixture, Shape, by_scores};
use crate::Batch;

/// A reference narrower than its target makes weights without variance.
const WIDER: f64 = 1.05;

/// Rounds of EM where there are several components.
const ROUNDS: usize = 3;

/// Components whose shares of the draws have a larger cosine than this are one.
const SAME: f64 = 0.9;

/// Draws that the present weights count as, or as many as there are components.
const WEIGHT_OF_PRESENT: f64 = 2.0;

/// How many independent draws some are worth.
///
/// Ladders that keep to one mode each know its shape well, and next to nothing of its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Where weights of components are asked for.
    pub weights: f64,
    /// Where their means and covariances are.
    pub shapes: f64,
}

impl From<f64> for Worth {
    /// The same for both.
    fn from(effective: f64) -> Self {
        Self { weights: effective, shapes: effective }
    }
}

impl Worth {
    pub(super) fn at_most(self, rows: usize) -> Self {
        // What is no number stays none.
        let at_most = |worth: f64| if worth > rows as f64 { rows as f64 } else { worth };
        Self { weights: at_most(self.weights), shapes: at_most(self.shapes) }
    }

    pub(super) fn is_something(self) -> bool {
        self.weights > 0.0 && self.shapes > 0.0
    }
}

impl Mixture {
    /// The mixture with weights, means and covariances of draws, as far as they can tell.
    ///
    /// Each component is shrunk towards what it is, in the coordinates in which it is standard normal: shrinking in any
    /// others would destroy strong correlations. One without draws stays as it is, and keeps some weight.
    ///
    /// ```
    /// use sterna::{Batch, Streams, streams::Phase, fitted::{Covariance, Mixture, Shape}};
    /// let mut draws = Batch::zeros(4000, 1);
    /// Streams::new(1).normals(Phase::Check, 0, &(0..4000).collect::<Vec<_>>(), &mut draws);
    /// let present = Mixture::normal(vec![3.0], Shape::Diagonal(vec![10.0])).unwrap();
    /// let fitted = present.refit(&draws, 4000.0, Covariance::Dense);
    /// assert!(fitted.mean()[0].abs() < 0.1);
    /// assert!((fitted.components()[0].shape.deviations()[0] - 1.05).abs() < 0.07);
    /// ```
    pub fn refit(&self, draws: &Batch, worth: impl Into<Worth>, kind: Covariance) -> Self {
        let rows: Vec<&[f64]> = draws.iter_rows().filter(|x| x.iter().all(|x| x.is_finite())).collect();
        self.refit_to(&rows, None, worth.into(), kind)
    }

    /// The same, with means and covariances of draws and scores: a density that is nearly a normal is known from few of them.
    pub(super) fn refit_by_scores(
        &self,
        draws: &Batch,
        scores: &Batch,
        worth: Worth,
        kind: Covariance,
    ) -> Self {
        let both = draws.iter_rows().zip(scores.iter_rows());
        let (rows, scores): (Vec<&[f64]>, Vec<&[f64]>) =
            both.filter(|(x, _)| x.iter().all(|x| x.is_finite())).unzip();
        self.refit_to(&rows, Some(&scores), worth, kind)
    }

    fn refit_to(&self, rows: &[&[f64]], scores: Option<&[&[f64]]>, worth: Worth, kind: Covariance) -> Self {
        let worth = worth.at_most(rows.len());
        if rows.is_empty() || !worth.is_something() {
            return self.clone();
        }
        let as_kind = |c: &Component| Component { shape: kind.kind_of(&c.shape), ..c.clone() };
        let mut present: Vec<Component> = self.components().iter().map(as_kind).collect();
        let mut current = self.clone();
        for round in 0..if present.len() > 1 { ROUNDS } else { 1 } {
            let mut shares = current.shares_of(rows);
            if round + 1 == ROUNDS {
                merge(&mut present, &mut shares);
            }
            let count = present.len();
            let fitted = present.iter().zip(&shares).map(|(c, share)| {
                let effective = worth.shapes * share.iter().sum::<f64>() / rows.len() as f64;
                let by_scores = scores.and_then(|s| by_scores::fit(c, rows, s, share, effective));
                let (mean, shape) = by_scores.unwrap_or_else(|| {
                    let Component { mean, shape, .. } = fit(c, rows, share, worth, Present::Known);
                    (mean, shape)
                });
                Component { weight: weight_of(c, share, worth.weights, count), mean, shape }
            });
            match Self::new(floored(fitted.collect(), worth.weights)) {
                Ok(next) => current = next,
                Err(_) => return current,
            }
        }
        current.widened(rows, worth.shapes)
    }

    /// Each component's share of each draw.
    fn shares_of(&self, rows: &[&[f64]]) -> Vec<Vec<f64>> {
        let count = self.components().len();
        let mut out = vec![vec![0.0; rows.len()]; count];
        let (mut shares, mut standard) = (vec![0.0; count], vec![0.0; count * self.dim()]);
        for (i, x) in rows.iter().enumerate() {
            self.shares(x, &mut shares, &mut standard);
            out.iter_mut().zip(&shares).for_each(|(out, share)| out[i] = *share);
        }
        out
    }

    /// Components somewhat wider, and more so where draws lie farther out than those of a normal.
    fn widened(self, rows: &[&[f64]], effective: f64) -> Self {
        let shares = self.shares_of(rows);
        let mut components = self.components().to_vec();
        for (c, share) in components.iter_mut().zip(&shares) {
            let own = effective * share.iter().sum::<f64>() / rows.len() as f64;
            let own = own.min(distinct(rows, share));
            if own >= 1.0 {
                let wider = WIDER * heavier_than_normal(c, rows, share, own);
                c.shape = c.shape.clone().widened(wider);
            }
        }
        Self::new(components).unwrap_or(self)
    }

    /// The draw whose log π − log η stands out above all others': a place that this reference leaves out.
    ///
    /// It stands out where it is more than eight nats, and more than six times the distance between the quartiles, above the
    /// median.
    pub fn uncovered(&self, draws: &Batch, log_target: &[f64]) -> Option<usize> {
        let gaps = self.gaps(draws, log_target);
        let sorted = sorted(&gaps);
        let largest = *sorted.last()?;
        let spread = quantile(&sorted, 0.75) - quantile(&sorted, 0.25);
        let stands_out = largest - quantile(&sorted, 0.5) > (6.0 * spread).max(8.0);
        stands_out.then(|| gaps.iter().position(|g| *g == largest)).flatten()
    }

    /// What log π − log η is at most draws, about log Z; none without draws.
    pub fn usual_gap(&self, draws: &Batch, log_target: &[f64]) -> Option<f64> {
        let sorted = sorted(&self.gaps(draws, log_target));
        (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
    }

    /// log π − log η at each draw.
    pub(crate) fn gaps(&self, draws: &Batch, log_target: &[f64]) -> Vec<f64> {
        let (mut score, mut work) = (vec![0.0; self.dim()], Vec::new());
        let gap = |(x, log_target): (&[f64], &f64)| log_target - self.evaluate(x, &mut score, &mut work);
        draws.iter_rows().zip(log_target).map(gap).collect()
    }
}

/// The numbers among these, in order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|g| !g.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

/// Weights that leave no component without draws to come.
pub(super) fn floored(mut components: Vec<Component>, effective: f64) -> Vec<Component> {
    let floor = least_weight(components.len()).min(0.2 / components.len() as f64 / effective.max(1.0).sqrt());
    components.iter_mut().for_each(|c| c.weight = c.weight.max(floor));
    components
}

/// Joins components that have the same draws: the heavier one stays.
fn merge(components: &mut Vec<Component>, shares: &mut Vec<Vec<f64>>) {
    // A few draws between two modes belong to both.
    let enough = components.first().map_or(1.0, |c| c.mean.len() as f64);
    let mut i = 0;
    while i < components.len() {
        let same = |j: &usize| {
            let (a, b) = (&shares[i], &shares[*j]);
            let (aa, bb) = (dot(a, a), dot(b, b));
            aa > enough && bb > enough && dot(a, b) > SAME * (aa * bb).sqrt()
        };
        let Some(j) = (i + 1..components.len()).find(same) else {
            i += 1;
            continue;
        };
        let (other, its) = (components.remove(j), shares.remove(j));
        add(&mut shares[i], 1.0, &its);
        let weight = components[i].weight + other.weight;
        if other.weight > components[i].weight {
            components[i] = other;
        }
        components[i].weight = weight;
    }
}

/// How far a component's present variances are believed.
#[derive(Clone, Copy)]
pub(super) enum Present {
    /// They come from curvature or draws.
    Known,
    /// They are those of a component that it is a part of.
    Guess,
}

/// A component with the moments of its share of the draws.
pub(super) fn fit(
    present: &Component,
    rows: &[&[f64]],
    share: &[f64],
    worth: Worth,
    trust: Present,
) -> Component {
    let count: f64 = share.iter().sum();
    let part = count / rows.len() as f64;
    let own = (worth.shapes * part).min(distinct(rows, share));
    let weight = weight_of(present, share, worth.weights, 1);
    if own < 1.0 {
        return Component { weight, ..present.clone() };
    }
    let mean = shifted_mean(present, rows, share, own);
    let shape = match &present.shape {
        Shape::Dense { .. } => dense(present, &mean, rows, share, own, trust),
        Shape::Diagonal(_) => diagonal(present, &mean, rows, share, own),
        Shape::LowRank { .. } => low_rank::fit(present, &mean, rows, share, own),
    };
    let shape = shape.filter(|s| s.check().is_ok()).unwrap_or_else(|| present.shape.clone());
    Component { weight, mean, shape }
}

/// The share of so many draws that one of some components has, shrunk towards the present one: a few draws of many modes say little of
/// any.
fn weight_of(present: &Component, share: &[f64], all: f64, components: usize) -> f64 {
    let part = share.iter().sum::<f64>() / share.len() as f64;
    let known = WEIGHT_OF_PRESENT.max(components as f64);
    (all * part + known * present.weight) / (all + known)
}

/// How many different draws shares are worth: a ladder that stays where it is repeats one, which tells nothing new of a shape.
pub(super) fn distinct(rows: &[&[f64]], share: &[f64]) -> f64 {
    let (mut all, mut squares, mut stay) = (0.0, 0.0, 0.0);
    for (i, share) in share.iter().enumerate() {
        if i > 0 && rows[i] != rows[i - 1] {
            squares += stay * stay;
            stay = 0.0;
        }
        stay += share;
        all += share;
    }
    squares += stay * stay;
    if squares > 0.0 { all * all / squares } else { 0.0 }
}

/// The draws' mean, shrunk towards the present one as if that were one draw more.
fn shifted_mean(present: &Component, rows: &[&[f64]], share: &[f64], own: f64) -> Vec<f64> {
    let count: f64 = share.iter().sum();
    let mut shift = vec![0.0; present.mean.len()];
    for (x, share) in rows.iter().zip(share) {
        for ((shift, x), mean) in shift.iter_mut().zip(*x).zip(&present.mean) {
            *shift += share * (x - mean);
        }
    }
    let scale = own / (own + 1.0) / count;
    present.mean.iter().zip(shift).map(|(mean, shift)| mean + scale * shift).collect()
}

/// The draws' covariance in the present coordinates, shrunk towards the identity, which the present one is there.
fn dense(
    present: &Component,
    mean: &[f64],
    rows: &[&[f64]],
    share: &[f64],
    own: f64,
    trust: Present,
) -> Option<Shape> {
    let dim = mean.len();
    let centred = Component { mean: mean.to_vec(), ..present.clone() };
    let (mut z, mut covariance) = (vec![0.0; dim], vec![0.0; dim * dim]);
    for (x, share) in rows.iter().zip(share).filter(|(_, share)| **share > 0.0) {
        centred.standardise(x, &mut z);
        for (i, row) in covariance.chunks_exact_mut(dim).enumerate() {
            add(&mut row[..=i], share * z[i], &z);
        }
    }
    let count: f64 = share.iter().sum();
    for i in 0..dim {
        for j in 0..=i {
            covariance[i * dim + j] /= count;
            covariance[j * dim + i] = covariance[i * dim + j];
        }
    }
    Some(present.shape.around(&shrunk(&covariance, dim, own, trust)?))
}

/// The shape of a covariance of so many draws, shrunk towards the identity as if that were one draw more for each
/// dimension; variances less, where it is only a guess. Where that is little, the result becomes the coordinates in which
/// it is shrunk again: what is far from the identity would else keep much of it.
fn shrunk(covariance: &[f64], dim: usize, own: f64, trust: Present) -> Option<Shape> {
    let towards = (dim as f64 + 1.0) / (own + dim as f64 + 1.0);
    let mut shape = Shape::Diagonal(vec![1.0; dim]);
    for _ in 0..if towards < 0.1 { 4 } else { 1 } {
        let mut inner = covariance.to_vec();
        for _side in 0..2 {
            inner.chunks_exact_mut(dim).for_each(|row| shape.solve(row));
            transpose(&mut inner, dim);
        }
        let towards_variance = match trust {
            Present::Known => towards,
            Present::Guess => 2.0 / (own + 2.0),
        };
        for (i, row) in inner.chunks_exact_mut(dim).enumerate() {
            let variance = (1.0 - towards_variance) * row[i] + towards_variance;
            row.iter_mut().for_each(|entry| *entry *= 1.0 - towards);
            row[i] = variance;
        }
        shape = shape.around(&Shape::of_covariance(&inner, dim)?);
    }
    Some(shape)
}

fn transpose(matrix: &mut [f64], dim: usize) {
    for i in 0..dim {
        for j in 0..i {
            matrix.swap(i * dim + j, j * dim + i);
        }
    }
}

/// The draws' standard deviations, each shrunk towards the present one as if that were two draws.
fn diagonal(present: &Component, mean: &[f64], rows: &[&[f64]], share: &[f64], own: f64) -> Option<Shape> {
    let present = present.shape.deviations();
    let ratios = variance_ratios(&present, mean, rows, share, own, 2.0);
    Some(Shape::Diagonal(present.iter().zip(ratios).map(|(s, ratio)| s * ratio.sqrt()).collect()))
}

/// Variances of the draws over those of a component, shrunk towards one, which counts as so many draws.
fn variance_ratios(
    present: &[f64],
    mean: &[f64],
    rows: &[&[f64]],
    share: &[f64],
    own: f64,
    prior: f64,
) -> Vec<f64> {
    let mut ratios = vec![0.0; mean.len()];
    for (x, share) in rows.iter().zip(share) {
        for (((ratio, x), mean), s) in ratios.iter_mut().zip(*x).zip(mean).zip(present) {
            *ratio += share * ((x - mean) / s) * ((x - mean) / s);
        }
    }
    let scale = own / share.iter().sum::<f64>();
    ratios.iter().map(|ratio| (scale * ratio + prior) / (own + prior)).collect()
}

/// By how much a component should be wider for its tails: the fourth root of E|z|⁴ over a normal's, if that is surely above one.
fn heavier_than_normal(c: &Component, rows: &[&[f64]], share: &[f64], own: f64) -> f64 {
    let dim = c.mean.len() as f64;
    let mut z = vec![0.0; c.mean.len()];
    let (mut fourth, mut second) = (0.0, 0.0);
    for (x, share) in rows.iter().zip(share) {
        let square = c.standardise(x, &mut z);
        fourth += share * square * square;
        second += share * square;
    }
    let count: f64 = share.iter().sum();
    let kurtosis = fourth * count / (second * second) * dim / (dim + 2.0);
    // Its standard deviation for draws of a normal is at most that of one dimension, √(32/3), over the root of their number.
    let noise = (32.0 / 3.0 / dim / own).sqrt();
    if kurtosis > 1.0 + 3.0 * noise { kurtosis.sqrt().sqrt().min(1.5) } else { 1.0 }
}

#[cfg(test)]
mod tests;
