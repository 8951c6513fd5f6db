//! Further components where one normal for an optimum is not enough: bent ridges, funnels, heavy tails.

use super::numbers::{add, dot, shares};
use super::refit::{Present, distinct, fit};
use super::{Component, Covariance, Mixture, Worth, eigen};
use crate::Batch;

/// Draws that a split looks at, at most; fewer where they have many coordinates.
const MOST_DRAWS: usize = 4000;
/// Multiplications that one attempt may take, more or less.
const MOST_WORK: usize = 400_000_000;
/// Rounds of EM that two halves get before they are judged.
const ROUNDS: usize = 8;
/// A draw belongs to a component if its share is above this.
const LEAST_SHARE: f64 = 1e-3;
/// Log-likelihood that each new number must bring. Akaike's criterion asks for one; halves were chosen from several.
const PRICE: f64 = 2.0;

impl Mixture {
    /// The mixture with components split in two wherever draws say surely that two are better.
    ///
    /// Candidates are halves along the directions in which a component is least like a normal. They get a few rounds of EM
    /// and stay if they raise the draws' log-likelihood by more than their numbers would by chance.
    ///
    /// ```
    /// use sterna::{Batch, Streams, streams::Phase, fitted::{Covariance, Mixture, Shape}};
    /// let mut draws = Batch::zeros(2000, 2);
    /// Streams::new(1).normals(Phase::Check, 0, &(0..2000).collect::<Vec<_>>(), &mut draws);
    /// let one = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
    /// assert_eq!(one.split(&draws, 2000.0, Covariance::Dense).components().len(), 1);
    /// // A ridge that bends.
    /// (0..2000).for_each(|i| draws.row_mut(i)[1] += 2.0 * draws.row(i)[0].powi(2));
    /// assert!(one.split(&draws, 2000.0, Covariance::Dense).components().len() > 3);
    /// ```
    pub fn split(&self, draws: &Batch, worth: impl Into<Worth>, kind: Covariance) -> Self {
        let rows: Vec<&[f64]> = draws.iter_rows().filter(|x| x.iter().all(|x| x.is_finite())).collect();
        let per_draw = self.dim() * self.dim() * ROUNDS * 6;
        let most = MOST_DRAWS.min(MOST_WORK / per_draw);
        let worth = worth.into().at_most(rows.len());
        if most < 4 * self.dim() || !worth.is_something() {
            return self.clone();
        }
        let stride = rows.len().div_ceil(most).max(1);
        let rows: Vec<&[f64]> = rows.into_iter().step_by(stride).collect();
        let effective = worth.shapes.min(rows.len() as f64);
        let as_kind = |c: &Component| Component { shape: kind.kind_of(&c.shape), ..c.clone() };
        let parts = self.components().iter().map(as_kind).map(|c| Part::new(c, &rows)).collect();
        let mut splitting = Splitting { rows, effective, kind, parts };
        while splitting.parts.len() < Self::MOST && splitting.split_next() {}
        let components = splitting.parts.into_iter().map(|part| part.component).collect();
        Self::new(components).unwrap_or_else(|_| self.clone())
    }
}

/// A component with what it adds to the density at each draw.
struct Part {
    component: Component,
    logs: Vec<f64>,
    tried: bool,
}

impl Part {
    fn new(component: Component, rows: &[&[f64]]) -> Self {
        let logs = component.logs(rows);
        Self { component, logs, tried: false }
    }
}

/// A mixture while components are split one by one.
struct Splitting<'a> {
    rows: Vec<&'a [f64]>,
    effective: f64,
    kind: Covariance,
    parts: Vec<Part>,
}

/// The draws of one component.
struct Own<'a> {
    rows: Vec<&'a [f64]>,
    /// Its share of each.
    share: Vec<f64>,
    /// log of what the other components add to the density there.
    others: Vec<f64>,
    /// log density of all.
    total: Vec<f64>,
    /// How many independent ones they stand for, if each counted wholly.
    effective: f64,
}

impl Splitting<'_> {
    /// Tries the component with most draws of those not tried; false where none is left.
    fn split_next(&mut self) -> bool {
        let of_parts = self.shares();
        let weight = |k: usize| of_parts[k].iter().sum::<f64>();
        let untried = (0..self.parts.len()).filter(|&k| !self.parts[k].tried);
        let Some(k) = untried.reduce(|a, b| if weight(b) > weight(a) { b } else { a }) else { return false };
        self.parts[k].tried = true;
        let own = self.own(k, &of_parts[k]);
        if let Some(halves) = self.best_halves(&self.parts[k].component, &own) {
            self.parts.remove(k);
            self.parts.extend(halves.map(|half| Part::new(half, &self.rows)));
        }
        true
    }

    /// Each component's share of each draw.
    fn shares(&self) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = vec![Vec::with_capacity(self.rows.len()); self.parts.len()];
        let mut logs = Vec::new();
        for i in 0..self.rows.len() {
            logs.clear();
            logs.extend(self.parts.iter().map(|part| part.logs[i]));
            let some = shares(&mut logs) > f64::NEG_INFINITY;
            out.iter_mut().zip(&logs).for_each(|(out, share)| out.push(if some { *share } else { 0.0 }));
        }
        out
    }

    fn own(&self, k: usize, share: &[f64]) -> Own<'_> {
        let chosen: Vec<usize> = (0..share.len()).filter(|&i| share[i] > LEAST_SHARE).collect();
        let (mut others, mut total) = (Vec::new(), Vec::new());
        let mut logs = Vec::new();
        for &i in &chosen {
            for (without, out) in [(Some(k), &mut others), (None, &mut total)] {
                logs.clear();
                let parts = self.parts.iter().enumerate().filter(|(j, _)| Some(*j) != without);
                logs.extend(parts.map(|(_, part)| part.logs[i]));
                out.push(shares(&mut logs));
            }
        }
        let rows: Vec<&[f64]> = chosen.iter().map(|&i| self.rows[i]).collect();
        let share: Vec<f64> = chosen.iter().map(|&i| share[i]).collect();
        let part = share.iter().sum::<f64>() / rows.len().max(1) as f64;
        let effective = self.effective * chosen.len() as f64 / self.rows.len() as f64;
        Own {
            effective: effective.min(distinct(&rows, &share) / part.max(1e-300)),
            rows,
            share,
            others,
            total,
        }
    }

    /// The two halves that raise the log-likelihood most, if they pay for themselves.
    fn best_halves(&self, whole: &Component, own: &Own) -> Option<[Component; 2]> {
        let draws = own.effective * own.share.iter().sum::<f64>() / own.rows.len() as f64;
        if own.rows.is_empty() || draws < 2.0 * whole.mean.len() as f64 + 4.0 {
            return None;
        }
        let standard = Standard::new(whole, own);
        let attempts = standard.directions().into_iter().filter_map(|direction| {
            let halves = self.improved(standard.halves(whole, own, &direction)?, own);
            let gain = self.gain(&halves, own);
            Some((gain, halves))
        });
        let (gain, halves) = attempts.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        (gain > PRICE * self.numbers(whole.mean.len() as f64, draws)).then_some(halves)
    }

    /// Numbers that one more component has, as far as so many draws move them.
    fn numbers(&self, dim: f64, draws: f64) -> f64 {
        let followed = draws / (draws + 2.0 * (dim + 1.0));
        let correlations = match self.kind {
            Covariance::Dense => 0.5 * dim * (dim - 1.0) * followed * followed,
            Covariance::LowRank => dim,
            Covariance::Diagonal => 0.0,
        };
        1.0 + 2.0 * dim + correlations
    }

    /// EM among two components, all others as they are.
    fn improved(&self, mut halves: [Component; 2], own: &Own) -> [Component; 2] {
        let part = own.rows.len() as f64 / self.rows.len() as f64;
        for _ in 0..ROUNDS {
            let of_halves = shares_of(&halves, own).0;
            for (half, share) in halves.iter_mut().zip(&of_halves) {
                let weight = (part * share.iter().sum::<f64>() / own.rows.len() as f64).max(1e-12);
                *half =
                    Component { weight, ..fit(half, &own.rows, share, own.effective.into(), Present::Guess) };
            }
        }
        halves
    }

    /// What two halves add to the log-likelihood of the independent draws.
    fn gain(&self, halves: &[Component; 2], own: &Own) -> f64 {
        let after = shares_of(halves, own).1;
        let gain: f64 = after.iter().zip(&own.total).map(|(after, before)| after - before).sum();
        own.effective * gain / own.rows.len() as f64
    }
}

/// Shares of two components of each draw, and the log density with all others there.
fn shares_of(halves: &[Component; 2], own: &Own) -> ([Vec<f64>; 2], Vec<f64>) {
    let mut of_halves = [halves[0].logs(&own.rows), halves[1].logs(&own.rows)];
    let mut density = Vec::with_capacity(own.rows.len());
    for (i, &others) in own.others.iter().enumerate() {
        let mut logs = [of_halves[0][i], of_halves[1][i], others];
        density.push(shares(&mut logs));
        let known = density[i] > f64::NEG_INFINITY;
        of_halves.iter_mut().zip(logs).for_each(|(of, share)| of[i] = if known { share } else { 0.0 });
    }
    (of_halves, density)
}

/// Draws in the coordinates in which their component is standard normal, around their own mean.
struct Standard<'a> {
    points: Vec<f64>,
    share: &'a [f64],
    dim: usize,
}

impl<'a> Standard<'a> {
    fn new(whole: &Component, own: &'a Own) -> Self {
        let dim = whole.mean.len();
        let mut points = vec![0.0; own.rows.len() * dim];
        let mut mean = vec![0.0; dim];
        for ((x, z), share) in own.rows.iter().zip(points.chunks_exact_mut(dim)).zip(&own.share) {
            whole.standardise(x, z);
            add(&mut mean, *share, z);
        }
        let count: f64 = own.share.iter().sum();
        points.chunks_exact_mut(dim).for_each(|z| add(z, -1.0 / count, &mean));
        Self { points, share: &own.share, dim }
    }

    /// Where the draws differ most from a normal's: E |z|² z, which is zero for one, and the directions in which
    /// E |z|² z zᵀ, which is then a multiple of the identity, is largest and smallest.
    fn directions(&self) -> Vec<Vec<f64>> {
        let weighted: Vec<f64> = self.rows().map(|(z, share)| share * dot(z, z)).collect();
        let mut lean = vec![0.0; self.dim];
        self.rows().zip(&weighted).for_each(|((z, _), weight)| add(&mut lean, *weight, z));
        let product = |v: &[f64], out: &mut [f64]| {
            out.fill(0.0);
            self.rows().zip(&weighted).for_each(|((z, _), weight)| add(out, weight * dot(z, v), z));
        };
        let (value, widest) = eigen::largest(self.dim, 1, product);
        let remainder = |v: &[f64], out: &mut [f64]| {
            product(v, out);
            out.iter_mut().zip(v).for_each(|(out, v)| *out = value[0] * v - *out);
        };
        let (_, narrowest) = eigen::largest(self.dim, 1, remainder);
        if self.dim == 1 { vec![lean] } else { vec![lean, widest, narrowest] }
    }

    /// Components fitted to the draws on either side of the median along a direction.
    fn halves(&self, whole: &Component, own: &Own, direction: &[f64]) -> Option<[Component; 2]> {
        let along: Vec<f64> = self.rows().map(|(z, _)| dot(z, direction)).collect();
        let mut order: Vec<usize> = (0..along.len()).collect();
        order.sort_by(|&a, &b| along[a].total_cmp(&along[b]));
        let half = 0.5 * self.share.iter().sum::<f64>();
        let mut sum = 0.0;
        let median = order.into_iter().find(|&i| {
            sum += self.share[i];
            sum >= half
        })?;
        let side = |above: bool| {
            let of = |(a, share): (&f64, &f64)| if (*a > along[median]) == above { *share } else { 0.0 };
            let share: Vec<f64> = along.iter().zip(self.share).map(of).collect();
            let fitted = fit(whole, &own.rows, &share, own.effective.into(), Present::Guess);
            Component { weight: 0.5 * whole.weight, ..fitted }
        };
        Some([side(false), side(true)])
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.chunks_exact(self.dim).zip(self.share.iter().copied())
    }
}

impl Component {
    /// log of weight × density at each draw.
    fn logs(&self, rows: &[&[f64]]) -> Vec<f64> {
        let (height, mut z) = (self.height(), vec![0.0; self.mean.len()]);
        rows.iter().map(|x| height - 0.5 * self.standardise(x, &mut z)).collect()
    }
}

#[cfg(test)]
mod tests;
