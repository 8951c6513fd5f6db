//! Lattice φ⁴ theory in two dimensions, periodic: the standard test of learned samplers for fields.
//!
//! S = Σₓ φ(−Δ)φ + m²φ² + λφ⁴ with (−Δφ)ₓ = 4φₓ − Σ of its four neighbours, so that Σ φ(−Δ)φ = Σ over links of (φₓ − φᵧ)²; log π̃ = −S.

use super::FreeField;
use crate::{Batch, Evaluation, Result, Target};
use std::cell::Cell;

/// A field on L × L sites, row by row.
///
/// ```
/// use sterna::{Target, targets::Phi4};
/// let lattice = Phi4::new(6, -4.0, 6.975);
/// assert_eq!(lattice.dim(), 36);
/// assert_eq!(lattice.magnetisation(&[0.5; 36]), 0.5);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Phi4 {
    length: usize,
    mass_squared: f64,
    coupling: f64,
}

impl Phi4 {
    /// # Panics
    /// If an edge has fewer than 3 sites, where a site would be its own neighbour twice, or the action has no lower bound.
    pub fn new(length: usize, mass_squared: f64, coupling: f64) -> Self {
        assert!(length >= 3, "an edge has three sites or more");
        assert!(coupling > 0.0 && mass_squared.is_finite(), "the coupling is positive");
        Self { length, mass_squared, coupling }
    }

    /// Sites along an edge.
    pub fn length(&self) -> usize {
        self.length
    }

    /// m², which may be negative.
    pub fn mass_squared(&self) -> f64 {
        self.mass_squared
    }

    /// λ.
    pub fn coupling(&self) -> f64 {
        self.coupling
    }

    /// M = the mean of the field.
    pub fn magnetisation(&self, field: &[f64]) -> f64 {
        field.iter().sum::<f64>() / field.len() as f64
    }

    /// S per site.
    pub fn action_per_site(&self, field: &[f64]) -> f64 {
        let mut score = vec![0.0; field.len()];
        self.row(field, &mut score) / field.len() as f64
    }

    /// The sites to the right of all sites, and below them: each link once.
    pub fn neighbours(&self) -> [Vec<usize>; 2] {
        let l = self.length;
        let right = (0..l * l).map(|site| site / l * l + (site + 1) % l).collect();
        let below = (0..l * l).map(|site| (site + l) % (l * l)).collect();
        [right, below]
    }

    /// S of one field; its score is written.
    fn row(&self, field: &[f64], score: &mut [f64]) -> f64 {
        let l = self.length;
        let mut action = 0.0;
        for (i, (here, score)) in field.chunks_exact(l).zip(score.chunks_exact_mut(l)).enumerate() {
            let above = &field[(i + l - 1) % l * l..][..l];
            let below = &field[(i + 1) % l * l..][..l];
            for j in 0..l {
                let right = if j + 1 < l { here[j + 1] } else { here[0] };
                let left = if j > 0 { here[j - 1] } else { here[l - 1] };
                let phi = here[j];
                let (square, curved) = (phi * phi, 4.0 * phi - (left + right) - (above[j] + below[j]));
                action += phi * curved + square * (self.mass_squared + self.coupling * square);
                score[j] = -2.0 * curved - phi * (2.0 * self.mass_squared + 4.0 * self.coupling * square);
            }
        }
        action
    }
}

impl Target for Phi4 {
    fn dim(&self) -> usize {
        self.length * self.length
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            out.log_density[i] = -self.row(x.row(i), out.score.row_mut(i));
        }
        Ok(())
    }
}

/// The same theory in the modes of the free field that comes nearest, z: the same log Z, and N(0, I) is where a path may begin.
///
/// ```
/// use sterna::{Target, targets::{Phi4, Phi4InModes}};
/// let lattice = Phi4InModes::new(Phi4::new(6, -4.0, 6.975));
/// assert_eq!(lattice.dim(), 36);
/// ```
#[derive(Clone, Debug)]
pub struct Phi4InModes {
    lattice: Phi4,
    modes: FreeField,
}

/// What an evaluation needs.
#[derive(Default)]
struct Work {
    field: Vec<f64>,
    slopes: Vec<f64>,
    /// Of a change between modes and sites.
    turning: [Vec<f64>; 2],
}

thread_local! {
    static WORK: Cell<Work> = Cell::default();
}

impl Phi4InModes {
    /// A theory, whose modes follow from it.
    pub fn new(lattice: Phi4) -> Self {
        Self { lattice, modes: FreeField::nearest(&lattice) }
    }

    /// The theory in its sites.
    pub fn lattice(&self) -> &Phi4 {
        &self.lattice
    }

    /// What its coordinates are.
    pub fn modes(&self) -> &FreeField {
        &self.modes
    }

    /// The field at a point.
    pub fn field(&self, point: &[f64], field: &mut [f64]) {
        let mut work = WORK.take();
        self.modes.field(point, field, &mut work.turning);
        WORK.set(work);
    }
}

impl Target for Phi4InModes {
    fn dim(&self) -> usize {
        self.modes.sites()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let mut work = WORK.take();
        let Work { field, slopes, turning } = &mut work;
        field.resize(self.dim(), 0.0);
        slopes.resize(self.dim(), 0.0);
        for i in 0..x.rows() {
            self.modes.field(x.row(i), field, turning);
            let action = self.lattice.row(field, slopes);
            self.modes.pull_back(slopes, out.score.row_mut(i), turning);
            out.log_density[i] = self.modes.log_volume() - action;
        }
        WORK.set(work);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// S over links, from its other form.
    fn over_links(lattice: &Phi4, field: &[f64]) -> f64 {
        let [right, below] = lattice.neighbours();
        let links =
            |to: &[usize]| to.iter().enumerate().map(|(a, b)| (field[a] - field[*b]).powi(2)).sum::<f64>();
        let sites: f64 =
            field.iter().map(|phi| lattice.mass_squared * phi.powi(2) + lattice.coupling * phi.powi(4)).sum();
        links(&right) + links(&below) + sites
    }

    #[test]
    fn the_action_is_a_sum_over_links() {
        for length in [3, 6, 11] {
            let lattice = Phi4::new(length, -4.0, 6.975);
            let mut stream = Streams::new(4).row(Phase::Check, 0, length as u32);
            let field: Vec<f64> = (0..lattice.dim()).map(|_| stream.normal()).collect();
            let expected = over_links(&lattice, &field);
            let found = lattice.action_per_site(&field) * field.len() as f64;
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} and {expected}");
        }
    }

    #[test]
    fn shifts_reflections_and_signs_change_nothing() {
        let lattice = Phi4::new(5, -4.0, 6.0);
        let mut stream = Streams::new(5).row(Phase::Check, 0, 0);
        let field: Vec<f64> = (0..25).map(|_| stream.normal()).collect();
        let of = |f: &dyn Fn(usize, usize) -> f64| {
            let changed: Vec<f64> = (0..25).map(|site| f(site / 5, site % 5)).collect();
            lattice.action_per_site(&changed)
        };
        let expected = lattice.action_per_site(&field);
        let at = |i: usize, j: usize| field[i % 5 * 5 + j % 5];
        for found in [of(&|i, j| at(i + 2, j + 3)), of(&|i, j| at(j, i)), of(&|i, j| -at(4 - i, j))] {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
