//! Maps of two angles together between temperatures, for φ and ψ of a residue: Knothe and Rosenblatt's
//! rearrangement, φ by its marginal and then ψ by its conditional given φ.
//!
//! (Moving φ or ψ by its own marginal alone does harm: the two are far from independent.) The joint density is
//! fitted as exp of a trigonometric polynomial and tabulated as constant on small cells, so that the inverse and
//! the determinant are exact whatever the fit. Between fitted temperatures the tabulated masses are interpolated.
//! The circle of φ is cut at two barriers, for alanine near 0 and 120 degrees, and each side is mapped to itself:
//! what lies between them is crossed rarely, so that the populations are known badly when the transport is fitted.

use super::circle::equalise;
use super::exponential_family::ExponentialFamily;
use rayon::prelude::*;
use std::f64::consts::TAU;
use sterna::lanes::one::sin_cos;

/// Cells along each angle.
const CELLS: usize = 128;

/// Cells of the grid that the density is fitted on.
const FIT_CELLS: usize = 48;

/// Part of each tabulated density that is uniform: distribution functions stay strictly increasing.
const UNIFORM: f64 = 1e-3;

/// Highest multiple of either angle in the fit.
const ORDER: i32 = 3;

/// Running sums of a tabulated joint density.
#[derive(Clone, Debug)]
struct Table {
    /// Of the first angle: CELLS + 1 borders.
    first: Vec<f64>,
    /// Of the second in each cell of the first, not normalised: CELLS rows of CELLS + 1 borders.
    second: Vec<f64>,
}

/// Joint distribution of two angles along the path.
#[derive(Clone, Debug)]
pub(super) struct TorusMap {
    cuts: [f64; 2],
    /// Increasing.
    betas: Vec<f64>,
    /// At each β, the coefficients of the fitted density …
    fits: Vec<Vec<f64>>,
    /// … and its table.
    tables: Vec<Table>,
}

/// Coefficients of a density.
pub(super) const PARAMETERS: usize = ((2 * ORDER + 1) * (2 * ORDER + 1) - 1) as usize;

/// Densities on cells of circles cut at `cuts`.
fn family(cells: usize, cuts: [f64; 2]) -> ExponentialFamily {
    let middle = |cut: f64, i: usize| cut + TAU * (i as f64 + 0.5) / cells as f64;
    let grid = (0..cells * cells).map(|k| [middle(cuts[0], k / cells), middle(cuts[1], k % cells)]);
    ExponentialFamily::new(PARAMETERS, grid, features)
}

impl TorusMap {
    /// Fits the pairs of angles of each chain (β increasing).
    pub(super) fn fit(chains: &[(f64, Vec<[f64; 2]>)]) -> Self {
        let coarse = family(FIT_CELLS, [0.0; 2]);
        let fits = chains.par_iter().map(|(_, angles)| coarse.fit(angles, features)).collect();
        Self::new(chains.iter().map(|(beta, _)| *beta).collect(), fits)
    }

    /// From the coefficients at each β (increasing).
    pub(super) fn new(betas: Vec<f64>, fits: Vec<Vec<f64>>) -> Self {
        let coarse = family(FIT_CELLS, [0.0; 2]);
        let mut marginals = [vec![0.0; FIT_CELLS], vec![0.0; FIT_CELLS]];
        for fit in &fits {
            for (k, mass) in coarse.masses(fit, 0.0).iter().enumerate() {
                marginals[0][k / FIT_CELLS] += mass;
                marginals[1][k % FIT_CELLS] += mass;
            }
        }
        // The lowest point of each circle, and on the first another at least a sixth of a turn away.
        let lowest = |marginal: &[f64], from: usize, to: usize| {
            let order = |i: &usize, j: &usize| marginal[i % FIT_CELLS].total_cmp(&marginal[j % FIT_CELLS]);
            (from..to).min_by(order).unwrap_or(from)
        };
        let first = lowest(&marginals[0], 0, FIT_CELLS);
        let barrier = lowest(&marginals[0], first + FIT_CELLS / 6, first + FIT_CELLS - FIT_CELLS / 6);
        let other = lowest(&marginals[1], 0, FIT_CELLS);
        let cuts = [first, other].map(|i| TAU * (i as f64 + 0.5) / FIT_CELLS as f64);
        let rows = (barrier - first) * CELLS / FIT_CELLS;
        let fine = family(CELLS, cuts);
        let table = |fit: &Vec<f64>| {
            let mut masses = fine.masses(fit, UNIFORM);
            let (one, two) = masses.split_at_mut(rows * CELLS);
            equalise([one, two].into_iter());
            Table::new(&masses)
        };
        let tables = fits.par_iter().map(table).collect();
        Self { cuts, betas, fits, tables }
    }

    /// The coefficients at each β.
    pub(super) fn fits(&self) -> &[Vec<f64>] {
        &self.fits
    }

    /// The image of two angles between two β, with the map's determinant.
    pub(super) fn apply(&self, from: f64, to: f64, angles: [f64; 2]) -> ([f64; 2], f64) {
        let (from, to) = (self.between(from), self.between(to));
        let (cell, turns) = self.place(0, angles[0]);
        let i = (cell as usize).min(CELLS - 1);
        let u = from.first(i) + (cell - i as f64) * (from.first(i + 1) - from.first(i));
        let (i_to, part) = invert(|border| to.first(border), u);
        let first = self.cuts[0] + TAU * (turns + (i_to as f64 + part) / CELLS as f64);

        let (cell, turns) = self.place(1, angles[1]);
        let j = (cell as usize).min(CELLS - 1);
        let mass = from.second(i, j + 1) - from.second(i, j);
        let v = (from.second(i, j) + (cell - j as f64) * mass) / from.second(i, CELLS);
        let (j_to, part) = invert(|border| to.second(i_to, border), v * to.second(i_to, CELLS));
        let second = self.cuts[1] + TAU * (turns + (j_to as f64 + part) / CELLS as f64);
        let mass_to = to.second(i_to, j_to + 1) - to.second(i_to, j_to);
        // The product of the two slopes: marginal times conditional is the joint.
        let marginal = (from.first(i + 1) - from.first(i)) / from.second(i, CELLS);
        let marginal_to = (to.first(i_to + 1) - to.first(i_to)) / to.second(i_to, CELLS);
        ([first, second], mass * marginal / (mass_to * marginal_to))
    }

    /// Cells and whole turns from the cut.
    fn place(&self, axis: usize, angle: f64) -> (f64, f64) {
        let position = (angle - self.cuts[axis]) / TAU;
        let turns = position.floor();
        ((position - turns) * CELLS as f64, turns)
    }

    fn between(&self, beta: f64) -> Between<'_> {
        let last = self.betas.len() - 1;
        let upper = self.betas.iter().position(|&b| b >= beta).unwrap_or(last);
        let lower = upper.saturating_sub(1);
        let width = self.betas[upper] - self.betas[lower];
        let weight = if width > 0.0 { ((beta - self.betas[lower]) / width).clamp(0.0, 1.0) } else { 0.0 };
        Between { lower: &self.tables[lower], upper: &self.tables[upper], weight }
    }
}

impl Table {
    fn new(masses: &[f64]) -> Self {
        let (mut first, mut second) = (vec![0.0], Vec::new());
        let mut total = 0.0;
        for row in masses.chunks(CELLS) {
            let mut sum = 0.0;
            second.push(0.0);
            for mass in row {
                sum += mass;
                second.push(sum);
            }
            total += sum;
            first.push(total);
        }
        first.iter_mut().for_each(|value| *value /= total);
        Self { first, second }
    }
}

/// A table between two.
struct Between<'a> {
    lower: &'a Table,
    upper: &'a Table,
    weight: f64,
}

impl Between<'_> {
    fn mix(&self, lower: f64, upper: f64) -> f64 {
        lower * (1.0 - self.weight) + upper * self.weight
    }

    fn first(&self, border: usize) -> f64 {
        self.mix(self.lower.first[border], self.upper.first[border])
    }

    fn second(&self, row: usize, border: usize) -> f64 {
        let k = row * (CELLS + 1) + border;
        self.mix(self.lower.second[k], self.upper.second[k])
    }
}

/// The cell in which an increasing function reaches `value`, and how far into it.
fn invert(at: impl Fn(usize) -> f64, value: f64) -> (usize, f64) {
    let (mut low, mut high) = (0, CELLS);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if at(middle) <= value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, (value - at(low)) / (at(low + 1) - at(low)))
}

/// cos and sin of kφ + lψ, one of each pair ±(k, l), without the constant.
fn features(angles: &[f64; 2], out: &mut [f64]) {
    let mut next = 0;
    for k in 0..=ORDER {
        for l in -ORDER..=ORDER {
            if k > 0 || l > 0 {
                let (s, c) = sin_cos(f64::from(k) * angles[0] + f64::from(l) * angles[1]);
                out[next..next + 2].copy_from_slice(&[c, s]);
                next += 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two correlated angles about a centre.
    fn angles(spread: f64, count: usize) -> Vec<[f64; 2]> {
        let u = |i: usize, k: f64| ((i as f64 + 0.5) * k).fract() - 0.5;
        (0..count)
            .map(|i| {
                let a = 2.0 * spread * (u(i, 0.618_033_988) + u(i, 0.414_213_562));
                let b = 2.0 * spread * (u(i, 0.732_050_807) + u(i, 0.236_067_977));
                [-1.4 + a, 1.2 + b - 0.5 * a]
            })
            .collect()
    }

    #[test]
    fn the_inverse_undoes_and_the_determinant_is_exact() {
        let map =
            TorusMap::fit(&[(0.0, angles(0.8, 3000)), (0.4, angles(0.6, 3000)), (1.0, angles(0.4, 3000))]);
        for (from, to) in [(0.0, 0.4), (0.4, 1.0), (0.1, 0.7), (1.0, 0.0)] {
            let mut checked = 0;
            for i in 0..2000 {
                let x = [0.618_033_988, 0.732_050_807].map(|k| TAU * ((i as f64 * k).fract() - 0.5));
                let (y, det) = map.apply(from, to, x);
                let (back, det_back) = map.apply(to, from, y);
                assert!((back[0] - x[0]).abs() < 1e-9 && (back[1] - x[1]).abs() < 1e-9, "{x:?} {back:?}");
                assert!((det * det_back - 1.0).abs() < 1e-7);
                // Within cells, here and there, the map is affine and triangular.
                let h = 1e-4;
                let cells = |p: [f64; 2]| [0, 1].map(|axis| map.place(axis, p[axis]).0.floor());
                let [a, b, c, d] = [[h, 0.0], [-h, 0.0], [0.0, h], [0.0, -h]]
                    .map(|s| ([x[0] + s[0], x[1] + s[1]], map.apply(from, to, [x[0] + s[0], x[1] + s[1]]).0));
                let same = [a, b, c, d].iter().all(|(p, q)| cells(*p) == cells(x) && cells(*q) == cells(y));
                if same {
                    let found = (a.1[0] - b.1[0]) * (c.1[1] - d.1[1]) / (4.0 * h * h);
                    assert!((found / det - 1.0).abs() < 1e-6, "{found} {det}");
                    checked += 1;
                }
            }
            assert!(checked > 1500, "{checked}");
        }
    }

    #[test]
    fn samples_of_one_temperature_become_those_of_another() {
        let chains = [(0.0, angles(0.8, 20000)), (1.0, angles(0.4, 20000))];
        let map = TorusMap::fit(&chains);
        let moments = |points: &[[f64; 2]]| {
            let mut mean = vec![0.0; 24];
            let mut feature = vec![0.0; 48];
            for p in points {
                features(p, &mut feature);
                mean.iter_mut().zip(&feature).for_each(|(m, f)| *m += f / points.len() as f64);
            }
            mean
        };
        let images: Vec<[f64; 2]> = chains[0].1.iter().map(|&x| map.apply(0.0, 1.0, x).0).collect();
        for (found, expected) in moments(&images).iter().zip(moments(&chains[1].1)) {
            assert!((found - expected).abs() < 0.03, "{found} {expected}");
        }
    }
}
