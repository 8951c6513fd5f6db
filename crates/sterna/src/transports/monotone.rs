//! Monotone maps of each coordinate between chains, F′⁻¹ ∘ F with smooth distribution functions of its own on either chain (§5.1).
//!
//! Where target and reference are products of laws of their coordinates all chains are, and the maps are then as exact as the laws are known.
//!
//! Each law is a map to a line that all chains share, z = log F/(1 − F), by a rational-quadratic spline, which has its inverse in closed
//! form; beyond its knots it goes on straight. So the map is the same to rounding there and back, however well the law is known.

use super::smooth::{BINS, log_masses};
use crate::call::Scratch;
use crate::lanes::one::{exp, ln};
use crate::transport::{Flow, Interval};
use crate::{Batch, Error, Result};
use rayon::prelude::*;

/// Knots lie between these quantiles, and so much of their distance beyond.
const TAIL: f64 = 1e-3;
const BEYOND: f64 = 0.25;

/// Part of each law that is spread evenly over its bins: distribution functions rise everywhere.
const UNIFORM: f64 = 1e-5;

/// Penalties on roughness that are tried, from that which leaves a normal; held-out samples choose.
const PENALTIES: [f64; 7] = [1e6, 1e4, 1e2, 1.0, 1e-2, 1e-4, 1e-6];

/// x ↦ F′⁻¹(F(x)) in each coordinate, with its law F on one chain and F′ on the other.
///
/// ```
/// use sterna::{Batch, call::Scratch, transport::{Flow, Interval}, transports::Monotone};
/// // An even law on [0, 1], and its square's.
/// let even: Vec<f64> = (0..4000).map(|i| (0.618_033_988_7 * i as f64).fract()).collect();
/// let squares = even.iter().map(|x| x * x).collect();
/// let samples = [even, squares].map(|x| Batch::from_vec(1, x));
/// let maps = Monotone::fit(&[0.0, 1.0], &samples).unwrap();
/// let (mut x, mut log_det) = (Batch::from_vec(1, vec![0.5]), vec![0.0]);
/// maps.forward(&[Interval { lower: 0.0, upper: 1.0 }], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
/// assert!((x.row(0)[0] - 0.25).abs() < 0.02 && log_det[0].abs() < 0.2);
/// ```
#[derive(Clone, Debug)]
pub struct Monotone {
    betas: Vec<f64>,
    /// Of each chain, its coordinates'.
    laws: Vec<Vec<Law>>,
}

impl Monotone {
    /// Fitted to samples of each chain.
    ///
    /// # Errors
    /// If a coordinate does not vary on a chain.
    pub fn fit(betas: &[f64], samples: &[Batch]) -> Result<Self> {
        let dim = samples.first().map_or(0, Batch::dim);
        let of_coordinate = |j: usize| {
            let counted = samples.iter().map(|x| Counted::of(x, j)).collect::<Result<Vec<_>>>()?;
            let penalty = best_penalty(&counted);
            Ok(counted.iter().map(|counted| counted.law(penalty)).collect::<Vec<Law>>())
        };
        let columns = (0..dim).into_par_iter().map(of_coordinate).collect::<Result<Vec<_>>>()?;
        let chain = |n: usize| columns.iter().map(|laws| laws[n].clone()).collect();
        Ok(Self { betas: betas.to_vec(), laws: (0..betas.len()).map(chain).collect() })
    }

    fn chain(&self, beta: f64) -> Result<&[Law]> {
        let found = self.betas.binary_search_by(|b| b.total_cmp(&beta));
        let cure = "the maps were fitted to other chains; fit them to this schedule";
        let chain =
            found.map_err(|_| Error::Setting { setting: "Monotone.betas", value: beta.to_string(), cure });
        Ok(&self.laws[chain?])
    }

    /// Maps a row from one chain to another; returns log |det|.
    fn map(&self, from: f64, to: f64, x: &mut [f64]) -> Result<f64> {
        let (from, to) = (self.chain(from)?, self.chain(to)?);
        let mut log_det = 0.0;
        for ((x, from), to) in x.iter_mut().zip(from).zip(to) {
            let (z, slope) = from.up(*x);
            let (image, slope_there) = to.down(z);
            *x = image;
            log_det += ln(slope / slope_there);
        }
        Ok(log_det)
    }
}

impl Flow for Monotone {
    fn forward(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64], _: &mut Scratch) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(pair.lower, pair.upper, x.row_mut(i))?;
        }
        Ok(())
    }

    fn inverse(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64], _: &mut Scratch) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(pair.upper, pair.lower, x.row_mut(i))?;
        }
        Ok(())
    }
}

/// One coordinate's samples on one chain, counted in bins.
struct Counted {
    low: f64,
    step: f64,
    /// Shares of the first half of the samples, of the second, and of all.
    shares: [Vec<f64>; 3],
    /// Where the search for log masses begins.
    start: Vec<f64>,
}

impl Counted {
    fn of(samples: &Batch, j: usize) -> Result<Self> {
        let values: Vec<f64> = samples.iter_rows().map(|row| row[j]).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let at = |share: f64| sorted.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN);
        let (low, high) = (at(TAIL), at(1.0 - TAIL));
        let beyond = BEYOND * (high - low);
        let (low, step) = (low - beyond, (high - low + 2.0 * beyond) / BINS as f64);
        if !(step > 0.0 && step.is_finite() && low + step > low) {
            let cure = "every coordinate must vary on every chain";
            return Err(Error::Setting {
                setting: "Monotone.samples",
                value: (high - low).to_string(),
                cure,
            });
        }
        let shares = |values: &[f64]| {
            let (mut shares, mut inside) = (vec![0.0; BINS], 0.0);
            for x in values {
                // What is below the first bin comes out as no bin.
                if let Some(share) = shares.get_mut(((x - low) / step).floor() as i64 as usize) {
                    *share += 1.0;
                    inside += 1.0;
                }
            }
            shares.iter_mut().for_each(|share| *share /= f64::max(inside, 1.0));
            shares
        };
        let (first, second) = values.split_at(values.len() / 2);
        let shares = [shares(first), shares(second), shares(&values)];
        let start = shares[2].iter().map(|share| ln(0.5 * (share + 1.0 / BINS as f64))).collect();
        Ok(Self { low, step, shares, start })
    }

    /// For each penalty, how surprising either half is to what was fitted to the other.
    fn surprises(&self) -> [f64; PENALTIES.len()] {
        let mut out = [0.0; PENALTIES.len()];
        for (fitted, judge) in [(0, 1), (1, 0)] {
            let mut theta = self.start.clone();
            for (out, penalty) in out.iter_mut().zip(PENALTIES) {
                log_masses(&self.shares[fitted], penalty, &mut theta);
                let log_total = ln(theta.iter().map(|t| exp(*t)).sum::<f64>());
                *out -= self.shares[judge].iter().zip(&theta).map(|(s, t)| s * (t - log_total)).sum::<f64>();
            }
        }
        out
    }

    /// The law at this penalty.
    fn law(&self, penalty: f64) -> Law {
        let mut theta = self.start.clone();
        log_masses(&self.shares[2], penalty, &mut theta);
        Law::new(self.low, self.step, &theta)
    }
}

/// What serves a coordinate best on all chains together.
fn best_penalty(chains: &[Counted]) -> f64 {
    let mut sums = [0.0; PENALTIES.len()];
    for chain in chains {
        sums.iter_mut().zip(chain.surprises()).for_each(|(sum, surprise)| *sum += surprise);
    }
    let best = (0..PENALTIES.len()).min_by(|&a, &b| sums[a].total_cmp(&sums[b]));
    PENALTIES[best.unwrap_or(0)]
}

/// A place on the line that all chains share, and the slope of the way there.
#[derive(Clone, Copy, Debug)]
struct Knot {
    z: f64,
    slope: f64,
}

/// z = log F/(1 − F) as a spline with equal bins.
#[derive(Clone, Debug)]
struct Law {
    low: f64,
    step: f64,
    knots: Vec<Knot>,
}

impl Law {
    /// From log masses of bins.
    fn new(low: f64, step: f64, theta: &[f64]) -> Self {
        let total: f64 = theta.iter().map(|t| exp(*t)).sum();
        let bins = theta.len();
        let even = UNIFORM / bins as f64;
        let mass: Vec<f64> = theta.iter().map(|t| (1.0 - UNIFORM) * exp(*t) / total + even).collect();
        // A tail falls as the density does at its end: the density there, and the mass beyond.
        let tail = |end: f64, next: f64| {
            let fall = (ln(next / end) / step).max(1.0 / (bins as f64 * step));
            let density = end * exp(-0.5 * fall * step) / step;
            (density, density / fall)
        };
        let [(first, below), (last, above)] = [tail(mass[0], mass[1]), tail(mass[bins - 1], mass[bins - 2])];
        let density = |k: usize| match k {
            0 => first,
            k if k == bins => last,
            k => (mass[k - 1] * mass[k]).sqrt() / step,
        };
        // Summed from either end, so that neither tail is a difference of large numbers.
        let sums = |from: f64, masses: &mut dyn Iterator<Item = &f64>| {
            let mut sum = from;
            std::iter::once(from)
                .chain(masses.map(|m| {
                    sum += m;
                    sum
                }))
                .collect::<Vec<f64>>()
        };
        let (left, right) = (sums(below, &mut mass.iter()), sums(above, &mut mass.iter().rev()));
        let knot = |k: usize| {
            let (left, right) = (left[k], right[bins - k]);
            Knot { z: ln(left / right), slope: density(k) * (left + right) / (left * right) }
        };
        Self { low, step, knots: (0..=bins).map(knot).collect() }
    }

    /// z(x) and its slope.
    fn up(&self, x: f64) -> (f64, f64) {
        let last = self.knots.len() - 1;
        let place = (x - self.low) / self.step;
        // Beyond the knots, and where x is no number.
        if !(place >= 0.0 && place < last as f64) {
            let (k, knot) = if place < 0.0 { (0, self.knots[0]) } else { (last, self.knots[last]) };
            return (knot.z + knot.slope * (place - k as f64) * self.step, knot.slope);
        }
        let k = place as usize;
        let bin = Bin::new(self.knots[k], self.knots[k + 1], self.step);
        let along = place - k as f64;
        (self.knots[k].z + bin.rise(along), bin.slope(along))
    }

    /// x at z, and the slope of the way up there.
    fn down(&self, z: f64) -> (f64, f64) {
        let last = self.knots.len() - 1;
        let above = self.knots.partition_point(|knot| knot.z <= z);
        if above == 0 || above > last {
            let (k, knot) = if above == 0 { (0, self.knots[0]) } else { (last, self.knots[last]) };
            return (self.low + k as f64 * self.step + (z - knot.z) / knot.slope, knot.slope);
        }
        let k = above - 1;
        let bin = Bin::new(self.knots[k], self.knots[above], self.step);
        let along = bin.found(z - self.knots[k].z);
        (self.low + (k as f64 + along) * self.step, bin.slope(along))
    }
}

/// Between two knots: a quotient of two quadratics that rises (Gregory and Delbourgo 1982).
struct Bin {
    height: f64,
    mean: f64,
    first: f64,
    last: f64,
    /// By how much the slopes at both ends exceed the mean slope together.
    excess: f64,
}

impl Bin {
    fn new(from: Knot, to: Knot, width: f64) -> Self {
        let height = to.z - from.z;
        let mean = height / width;
        Self { height, mean, first: from.slope, last: to.slope, excess: from.slope + to.slope - 2.0 * mean }
    }

    /// How far it has risen at this share of the width.
    fn rise(&self, along: f64) -> f64 {
        let both = along * (1.0 - along);
        self.height * (self.mean * along * along + self.first * both) / (self.mean + self.excess * both)
    }

    fn slope(&self, along: f64) -> f64 {
        let left = 1.0 - along;
        let both = along * left;
        let above = self.last * along * along + 2.0 * self.mean * both + self.first * left * left;
        (self.mean / (self.mean + self.excess * both)).powi(2) * above
    }

    /// The share at which it has risen so far: a quadratic's root, in the form that does not cancel.
    fn found(&self, rise: f64) -> f64 {
        let a = self.height * (self.mean - self.first) + rise * self.excess;
        let b = self.height * self.first - rise * self.excess;
        let c = self.mean * rise;
        2.0 * c / (b + (b * b + 4.0 * a * c).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// Two wells of uneven weight, as many as asked for.
    fn wells(rows: usize, apart: f64, seed: u64) -> Batch {
        let mut x = Batch::zeros(rows, 2);
        let keys: Vec<u32> = (0..rows as u32).collect();
        Streams::new(seed).normals(Phase::Check, 0, &keys, &mut x);
        for i in 0..rows {
            let side =
                if Streams::new(seed).row(Phase::Start, 0, i as u32).uniform() < 0.3 { -1.0 } else { 1.0 };
            x.row_mut(i)[0] = 0.3 * x.row(i)[0] + apart * side;
            x.row_mut(i)[1] = 2.0 * x.row(i)[1] - 1.0;
        }
        x
    }

    const PAIR: Interval = Interval { lower: 0.0, upper: 1.0 };

    #[test]
    fn the_inverse_undoes_and_the_slope_is_that_of_differences() {
        let maps = Monotone::fit(&[0.0, 1.0], &[wells(800, 0.4, 1), wells(800, 1.5, 2)]).unwrap();
        for i in 0..=2000 {
            // Far beyond all samples, too.
            let start = [(i as f64 - 1000.0) / 100.0, (i as f64 - 900.0) / 60.0];
            let carry = |x: [f64; 2], there: bool| {
                let (mut x, mut log_det) = (Batch::from_vec(2, x.to_vec()), [0.0]);
                let (maps, none) = (&maps, &mut Scratch::default());
                if there {
                    maps.forward(&[PAIR], &mut x, &mut log_det, none)
                } else {
                    maps.inverse(&[PAIR], &mut x, &mut log_det, none)
                }
                .unwrap();
                ([x.row(0)[0], x.row(0)[1]], log_det[0])
            };
            let (there, log_det) = carry(start, true);
            let (back, log_det_back) = carry(there, false);
            assert!(
                (0..2).all(|j| (back[j] - start[j]).abs() < 1e-7 * (1.0 + start[j].abs())),
                "{start:?} {back:?}"
            );
            assert!((log_det + log_det_back).abs() < 1e-6, "{start:?}: {log_det} {log_det_back}");
            let h = 1e-6;
            let of = |j: usize| {
                let moved = |by: f64| {
                    carry(std::array::from_fn(|k| start[k] + if k == j { by } else { 0.0 }), true).0[j]
                };
                ((moved(h) - moved(-h)) / (2.0 * h)).ln()
            };
            assert!((of(0) + of(1) - log_det).abs() < 2e-3, "{start:?}: {} {log_det}", of(0) + of(1));
        }
    }

    #[test]
    fn samples_of_one_chain_become_those_of_the_other() {
        let (a, b) = (wells(20_000, 0.4, 1), wells(20_000, 1.5, 2));
        let maps = Monotone::fit(&[0.0, 1.0], &[a, b.clone()]).unwrap();
        let mut x = wells(20_000, 0.4, 3);
        maps.forward(&vec![PAIR; 20_000], &mut x, &mut vec![0.0; 20_000], &mut Scratch::default()).unwrap();
        for j in 0..2 {
            let column = |x: &Batch| {
                let mut values: Vec<f64> = x.iter_rows().map(|row| row[j]).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (ours, theirs) = (column(&x), column(&b));
            // Five standard errors of three samples: those of both fits, and the one that travels.
            for q in [200, 2000, 8000, 14_000, 18_000, 19_800] {
                let share = |of: f64| of / 20_000.0;
                let (found, wanted) =
                    (share(ours.partition_point(|x| *x < theirs[q]) as f64), share(q as f64));
                let error = share(3.0 * wanted * (1.0 - wanted)).sqrt();
                assert!((found - wanted).abs() < 5.0 * error, "{j}: {found} {wanted} ± {error}");
            }
        }
    }

    #[test]
    fn modes_far_apart_have_a_map_everywhere() {
        let maps = Monotone::fit(&[0.0, 1.0], &[wells(400, 0.1, 1), wells(400, 80.0, 2)]).unwrap();
        for x in [-90.0, -80.0, -3.0, 0.0, 41.0, 80.2, 200.0] {
            let (mut x, mut log_det) = (Batch::from_vec(2, vec![x, x]), [0.0]);
            maps.inverse(&[PAIR], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
            assert!(
                log_det[0].is_finite() && x.as_slice().iter().all(|x| x.is_finite()),
                "{x:?} {log_det:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let (flat, sound) = (Batch::zeros(10, 2), wells(10, 1.0, 1));
        assert!(Monotone::fit(&[0.0, 1.0], &[flat, sound.clone()]).is_err());
        assert!(
            Monotone::fit(&[0.0, 1.0], &[sound.clone(), Batch::from_vec(2, vec![f64::NAN; 20])]).is_err()
        );
        let maps = Monotone::fit(&[0.0, 1.0], &[sound.clone(), sound]).unwrap();
        let elsewhere = [Interval { lower: 0.0, upper: 0.5 }];
        assert!(
            maps.forward(&elsewhere, &mut Batch::zeros(1, 2), &mut [0.0], &mut Scratch::default()).is_err()
        );
    }
}
