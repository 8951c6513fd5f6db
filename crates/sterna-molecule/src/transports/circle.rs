//! Monotone maps of one angle between temperatures: F_{T′}⁻¹ ∘ F_T with smooth fitted densities.
//!
//! A density is fitted as exp(Σ aₖ cos kφ + bₖ sin kφ) by maximum likelihood (a few moments matched), then
//! tabulated as constant on many small bins. The tabulated distribution defines the map, so its inverse and its
//! derivative are exact whatever the fit. Between fitted temperatures distribution functions are interpolated.
//! Where two forms hardly interconvert (cis and trans) each is mapped to itself: their populations are known
//! badly when the transport is fitted, and moving points from one to the other gains nothing.

use super::exponential_family::ExponentialFamily;
use rayon::prelude::*;
use std::f64::consts::TAU;
use sterna::lanes::one::sin_cos;

/// Bins in a period.
const BINS: usize = 512;

/// Part of each tabulated density that is uniform: distribution functions stay strictly increasing.
const UNIFORM: f64 = 1e-4;

/// Where a circle is cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// Where the pooled density is lowest.
    Lowest,
    /// Here and half a turn further; each half is mapped to itself.
    Halves(f64),
}

/// Distribution of one angle along the path.
#[derive(Clone, Debug)]
pub(super) struct CircleMap {
    /// 2π over the symmetry.
    period: f64,
    /// Where the circle is cut.
    cut: f64,
    /// Increasing.
    betas: Vec<f64>,
    /// At each β, the coefficients of the fitted density …
    fits: Vec<Vec<f64>>,
    /// … and the distribution function at the BINS + 1 borders of bins, from 0 to 1.
    tables: Vec<Vec<f64>>,
}

/// What is fitted to one angle.
#[derive(Clone, Copy, Debug)]
pub(super) struct CircleModel {
    /// 3 for methyl groups.
    pub symmetry: usize,
    /// Number of multiples of the angle.
    pub harmonics: usize,
    /// Where the circle is cut.
    pub cut: Cut,
}

impl CircleModel {
    /// Coefficients of a density.
    pub(super) fn parameters(&self) -> usize {
        2 * self.harmonics
    }

    fn period(&self) -> f64 {
        TAU / self.symmetry as f64
    }

    /// Densities on the bins of a circle cut at `from`.
    fn family(&self, from: f64) -> ExponentialFamily {
        let period = self.period();
        let middles = (0..BINS).map(|bin| from + period * (bin as f64 + 0.5) / BINS as f64);
        ExponentialFamily::new(self.parameters(), middles, |angle, out| self.features(*angle, out))
    }

    /// cos kφ and sin kφ, k = symmetry, 2 symmetry, …
    fn features(&self, angle: f64, out: &mut [f64]) {
        for (k, pair) in out.chunks_mut(2).enumerate() {
            let (s, c) = sin_cos(((k + 1) * self.symmetry) as f64 * angle);
            pair.copy_from_slice(&[c, s]);
        }
    }
}

impl CircleMap {
    /// Fits the angles of each chain (β increasing).
    pub(super) fn fit(chains: &[(f64, Vec<f64>)], model: CircleModel) -> Self {
        let family = model.family(0.0);
        let fit = |angles: &[f64]| family.fit(angles, |angle, out| model.features(*angle, out));
        let fits = chains.par_iter().map(|(_, angles)| fit(angles)).collect();
        Self::new(chains.iter().map(|(beta, _)| *beta).collect(), fits, model)
    }

    /// From the coefficients at each β (increasing).
    pub(super) fn new(betas: Vec<f64>, fits: Vec<Vec<f64>>, model: CircleModel) -> Self {
        let period = model.period();
        let lowest = || {
            let family = model.family(0.0);
            let pooled = fits
                .iter()
                .map(|fit| family.masses(fit, 0.0))
                .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect());
            let lowest = pooled.and_then(|p| (0..BINS).min_by(|&i, &j| p[i].total_cmp(&p[j])));
            lowest.map_or(0.0, |bin| period * (bin as f64 + 0.5) / BINS as f64)
        };
        let (cut, parts) = match model.cut {
            Cut::Lowest => (lowest(), 1),
            Cut::Halves(at) => (at, 2),
        };
        let family = model.family(cut);
        let table = |fit: &Vec<f64>| {
            let mut masses = family.masses(fit, UNIFORM);
            equalise(masses.chunks_mut(BINS / parts));
            cumulative(&masses)
        };
        let tables = fits.iter().map(table).collect();
        Self { period, cut, betas, fits, tables }
    }

    /// The coefficients at each β.
    pub(super) fn fits(&self) -> &[Vec<f64>] {
        &self.fits
    }

    /// The image of `angle` between two β, with the map's derivative.
    pub(super) fn apply(&self, from: f64, to: f64, angle: f64) -> (f64, f64) {
        let (from, to) = (self.table(from), self.table(to));
        // angle = cut + turns · period + place · period, 0 ≤ place < 1.
        let position = (angle - self.cut) / self.period;
        let turns = position.floor();
        let place = (position - turns) * BINS as f64;
        let bin = (place as usize).min(BINS - 1);
        let mass = from.mass(bin);
        let u = from.value(bin) + (place - bin as f64) * mass;
        // The bin of `to` that holds u.
        let (mut low, mut high) = (0, BINS);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if to.value(middle) <= u {
                low = middle;
            } else {
                high = middle;
            }
        }
        let image_mass = to.mass(low);
        let image = (low as f64 + (u - to.value(low)) / image_mass) / BINS as f64;
        (self.cut + self.period * (turns + image), mass / image_mass)
    }

    fn table(&self, beta: f64) -> Interpolated<'_> {
        let last = self.betas.len() - 1;
        let upper = self.betas.iter().position(|&b| b >= beta).unwrap_or(last);
        let lower = upper.saturating_sub(1);
        let width = self.betas[upper] - self.betas[lower];
        let weight = if width > 0.0 { ((beta - self.betas[lower]) / width).clamp(0.0, 1.0) } else { 0.0 };
        Interpolated { lower: &self.tables[lower], upper: &self.tables[upper], weight }
    }
}

/// A distribution function between two tables.
struct Interpolated<'a> {
    lower: &'a [f64],
    upper: &'a [f64],
    weight: f64,
}

impl Interpolated<'_> {
    fn value(&self, border: usize) -> f64 {
        self.lower[border] * (1.0 - self.weight) + self.upper[border] * self.weight
    }

    fn mass(&self, bin: usize) -> f64 {
        self.value(bin + 1) - self.value(bin)
    }
}

/// Gives each part the same mass.
pub(super) fn equalise<'a>(parts: impl Iterator<Item = &'a mut [f64]>) {
    for part in parts {
        let total: f64 = part.iter().sum();
        part.iter_mut().for_each(|mass| *mass /= total);
    }
}

/// 0, then running sums up to exactly 1.
fn cumulative(masses: &[f64]) -> Vec<f64> {
    let mut table = vec![0.0];
    let mut sum = 0.0;
    for mass in masses {
        sum += mass;
        table.push(sum);
    }
    table.iter_mut().for_each(|value| *value /= sum);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Angles at quantiles of a wrapped normal about `mean`.
    fn angles(mean: f64, spread: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| {
                // A sum of uniforms, deterministic.
                let u = |k: f64| ((i as f64 + 0.5) * k).fract() - 0.5;
                mean + spread * 2.0 * (u(0.618_033_988) + u(0.414_213_562) + u(0.732_050_807))
            })
            .collect()
    }

    #[test]
    fn the_inverse_undoes_and_the_derivative_is_exact() {
        for (symmetry, cut) in [(1, Cut::Halves(-TAU / 4.0)), (1, Cut::Lowest), (3, Cut::Lowest)] {
            let chains: Vec<(f64, Vec<f64>)> =
                [(0.0, 0.35), (0.4, 0.2), (1.0, 0.1)].map(|(b, s)| (b, angles(3.1, s, 4000))).to_vec();
            let map = CircleMap::fit(&chains, CircleModel { symmetry, harmonics: 4, cut });
            for (from, to) in [(0.0, 0.4), (0.4, 1.0), (0.1, 0.7), (1.0, 0.0)] {
                let mut images = Vec::new();
                let mut checked = 0;
                for i in 0..1000 {
                    let x = TAU * ((i as f64 + 0.317) / 1000.0 - 0.5);
                    let (y, slope) = map.apply(from, to, x);
                    let (back, slope_back) = map.apply(to, from, y);
                    assert!((back - x).abs() < 1e-10, "{x} came back as {back}");
                    assert!((slope * slope_back - 1.0).abs() < 1e-9);
                    // The slope is constant between borders of bins, here and there.
                    let h = 1e-4;
                    let bin = |angle: f64| ((angle - map.cut) / map.period * BINS as f64).floor();
                    let (left, right) = (map.apply(from, to, x - h).0, map.apply(from, to, x + h).0);
                    if bin(x - h) == bin(x + h) && bin(left) == bin(right) {
                        let found = (right - left) / (2.0 * h);
                        assert!((found / slope - 1.0).abs() < 1e-7, "{found} {slope}");
                        checked += 1;
                    }
                    images.push(y);
                }
                assert!(checked > 700, "{checked}");
                assert!(images.windows(2).all(|w| w[0] < w[1]), "monotone");
            }
        }
    }

    #[test]
    fn halves_stay_apart() {
        let both =
            |spread: f64, other: usize| [angles(3.1, spread, 4000), angles(0.1, spread, other)].concat();
        let chains = [(0.0, both(0.3, 1000)), (1.0, both(0.1, 10))];
        let map =
            CircleMap::fit(&chains, CircleModel { symmetry: 1, harmonics: 4, cut: Cut::Halves(-TAU / 4.0) });
        for angle in chains[0].1.iter().chain(&chains[1].1) {
            let (image, _) = map.apply(0.0, 1.0, *angle);
            assert_eq!(angle.cos() < 0.0, image.cos() < 0.0, "{angle} {image}");
        }
    }

    #[test]
    fn samples_of_one_temperature_become_those_of_another() {
        let chains = [(0.0, angles(3.1, 0.35, 20000)), (1.0, angles(3.1, 0.1, 20000))];
        let map = CircleMap::fit(&chains, CircleModel { symmetry: 1, harmonics: 6, cut: Cut::Lowest });
        let spread = |x: &[f64]| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            (x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64).sqrt()
        };
        let images: Vec<f64> = chains[0].1.iter().map(|&x| map.apply(0.0, 1.0, x).0).collect();
        let (found, expected) = (spread(&images), spread(&chains[1].1));
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }
}
