//! A lattice field in the modes of a free one: coordinates in which that is N(0, I).
//!
//! cas t = cos t + sin t, and H with H_kn = cas(2πkn/L)/√L is symmetric and its own inverse. Its rows are waves along an edge, on which
//! −Δ is 2 − 2 cos(2πk/L). A field is φ = H (w∘z) H with a width w for each pair of waves: with the widths of a free field, z is N(0, I)
//! under that. Waves as long as the lattice then move as far in a step as short ones, which plain coordinates keep waiting
//! (Fourier acceleration).

use super::Phi4;
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk, one};
use std::f64::consts::TAU;

/// The free field that comes nearest to a lattice φ⁴ theory, and its modes.
///
/// ```
/// use sterna::targets::{FreeField, Phi4};
/// let modes = FreeField::nearest(&Phi4::new(6, -4.0, 6.975));
/// let mut field = vec![0.0; 36];
/// // The first mode is the same everywhere.
/// modes.field(&std::array::from_fn::<f64, 36, _>(|mode| f64::from(mode == 0)), &mut field, &mut Default::default());
/// assert!(field.iter().all(|site| (site - field[0]).abs() < 1e-15));
/// ```
#[derive(Clone, Debug)]
pub struct FreeField {
    length: usize,
    /// H, row by row.
    waves: Vec<f64>,
    /// Standard deviation of each mode.
    widths: Vec<f64>,
    /// Σ ln w: what the volume of modes is short of that of fields.
    log_volume: f64,
}

impl FreeField {
    /// The free field q for which the mean of S under q less the entropy of q is least, by its gap equation: the precision of a mode is
    /// 2 (eigenvalue of −Δ) + μ, where μ = 2 m² + 12 λ ⟨φ²⟩ and ⟨φ²⟩ is the mean variance.
    pub fn nearest(lattice: &Phi4) -> Self {
        let length = lattice.length();
        let angle = |k: usize| TAU * (k % length) as f64 / length as f64;
        let edge: Vec<f64> = (0..length).map(|k| 2.0 - 2.0 * one::sin_cos(angle(k)).1).collect();
        let precisions = |mu: f64| {
            let edge = &edge;
            edge.iter().flat_map(move |a| edge.iter().map(move |b| 2.0 * (a + b) + mu))
        };
        let sites = (length * length) as f64;
        let excess = |mu: f64| {
            let spread = precisions(mu).map(f64::recip).sum::<f64>() / sites;
            mu - 2.0 * lattice.mass_squared() - 12.0 * lattice.coupling() * spread
        };
        let mu = root_of_rising(excess);
        let widths: Vec<f64> = precisions(mu).map(|precision| precision.sqrt().recip()).collect();
        let scale = (length as f64).sqrt().recip();
        let wave = |k: usize, n: usize| {
            let (sine, cosine) = one::sin_cos(angle(k * n));
            scale * (sine + cosine)
        };
        let waves = (0..length).flat_map(|k| (0..length).map(move |n| wave(k, n))).collect();
        let log_volume = widths.iter().map(|width| one::ln(*width)).sum();
        Self { length, waves, widths, log_volume }
    }

    /// Sites, and modes.
    pub fn sites(&self) -> usize {
        self.widths.len()
    }

    /// H, row by row.
    pub fn waves(&self) -> &[f64] {
        &self.waves
    }

    /// Standard deviations of modes.
    pub fn widths(&self) -> &[f64] {
        &self.widths
    }

    /// ln |∂φ/∂z|.
    pub fn log_volume(&self) -> f64 {
        self.log_volume
    }

    /// The field of such modes; `work` is memory.
    pub fn field(&self, modes: &[f64], field: &mut [f64], work: &mut [Vec<f64>; 2]) {
        let [wide, half] = work;
        wide.clear();
        wide.extend(modes.iter().zip(&self.widths).map(|(mode, width)| mode * width));
        self.turn(wide, half, field);
    }

    /// Derivatives by modes, of derivatives by sites.
    pub fn pull_back(&self, of_sites: &[f64], of_modes: &mut [f64], work: &mut [Vec<f64>; 2]) {
        self.turn(of_sites, &mut work[1], of_modes);
        of_modes.iter_mut().zip(&self.widths).for_each(|(slope, width)| *slope *= width);
    }

    /// H A H.
    fn turn(&self, a: &[f64], half: &mut Vec<f64>, out: &mut [f64]) {
        half.resize(self.sites(), 0.0);
        dispatch(Product { length: self.length, a, b: &self.waves, out: half });
        dispatch(Product { length: self.length, a: &self.waves, b: half, out });
    }
}

/// Where a function that rises from below 0 at 0 to above it is 0.
fn root_of_rising(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while f(high) < 0.0 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    high
}

/// A·B of square matrices, row by row.
struct Product<'a> {
    length: usize,
    a: &'a [f64],
    b: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let length = self.length;
        for (a, out) in self.a.chunks_exact(length).zip(self.out.chunks_exact_mut(length)) {
            for_each_chunk!(length, |columns| {
                let mut sum = L::splat(0.0);
                for (a, b) in a.iter().zip(self.b.chunks_exact(length)) {
                    sum = L::splat(*a).mul_add(L::load_some(&b[columns.clone()]), sum);
                }
                sum.store_some(&mut out[columns]);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// −Δ of a field.
    fn curved(field: &[f64], length: usize) -> Vec<f64> {
        let at = |i: usize, j: usize| field[i % length * length + j % length];
        let beside = |i, j| at(i + 1, j) + at(i + length - 1, j) + at(i, j + 1) + at(i, j + length - 1);
        (0..length * length)
            .map(|site| (site / length, site % length))
            .map(|(i, j)| 4.0 * at(i, j) - beside(i, j))
            .collect()
    }

    #[test]
    fn under_the_free_action_modes_are_standard_normal() {
        for length in [3, 4, 6, 11] {
            let lattice = Phi4::new(length, -4.0, 6.0);
            let modes = FreeField::nearest(&lattice);
            let z: Vec<f64> = {
                let mut stream = Streams::new(3).row(Phase::Check, 0, length as u32);
                (0..length * length).map(|_| stream.normal()).collect()
            };
            let mut field = vec![0.0; z.len()];
            modes.field(&z, &mut field, &mut Default::default());
            let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
            // The gap equation, with the variance of a site from the modes that make it.
            let mu = modes.widths[0].powi(-2);
            let spread = square(&modes.widths) / z.len() as f64;
            assert!((mu - (-8.0 + 72.0 * spread)).abs() < 1e-9, "{length}: {mu}, {spread}");
            let along: f64 = curved(&field, length).iter().zip(&field).map(|(a, b)| a * b).sum();
            let free = along + 0.5 * mu * square(&field);
            assert!((free - 0.5 * square(&z)).abs() < 1e-9 * free, "{length}: {free}");
        }
    }

    #[test]
    fn waves_are_their_own_inverse() {
        for length in [3, 8, 13] {
            let modes = FreeField::nearest(&Phi4::new(length, -4.0, 6.0));
            let mut twice = vec![0.0; length * length];
            dispatch(Product { length, a: &modes.waves, b: &modes.waves, out: &mut twice });
            for (place, found) in twice.iter().enumerate() {
                let expected = f64::from(place / length == place % length);
                assert!((found - expected).abs() < 1e-14, "{length}: {found}");
            }
        }
    }
}
