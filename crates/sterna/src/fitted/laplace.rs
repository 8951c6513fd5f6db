//! A normal from the curvature at a point, by differences of the score.

use super::climb::{Place, places};
use super::numbers::{add, dot};
use super::{Covariance, Shape, eigen};
use crate::{Result, Target};

/// Rounds of differences in which each coordinate finds its step.
const ROUNDS: usize = 6;

/// Eigenvalues of a curvature that is no optimum's are bounded below by this, on the scale where its diagonal is one.
const LEAST: f64 = 1e-3;

/// The normal whose log density has the slope and the curvature of the target's at a point.
#[derive(Clone, Debug)]
pub struct Laplace {
    /// Its mean: one step of Newton's from the point.
    pub mean: Vec<f64>,
    /// A square root of its covariance.
    pub shape: Shape,
    /// What the step to the mean gains in log density, if the target is such a normal.
    pub gain: f64,
    /// Whether the curvature is that of an optimum: positive in all directions.
    pub proper: bool,
    /// Whether it is so uneven in the frame that differences along other axes would tell more.
    pub uneven: bool,
    /// Points at which the target was evaluated.
    pub evaluations: u64,
}

/// A normal from the curvature at a point. Differences are taken along the axes of a frame, x = x₀ + F u: the nearer F Fᵀ is to
/// the covariance, the more they tell.
///
/// All axes are evaluated as one batch, in as many rounds as the steps need to suit the curvature that they find. Above
/// [`Covariance::MOST_DENSE`] dimensions, random signs probe the diagonal alone.
pub fn laplace(target: &dyn Target, at: &Place, frame: &Shape, kind: Covariance) -> Result<Laplace> {
    if at.point.len() > Covariance::MOST_DENSE {
        return diagonal(target, at, frame, kind);
    }
    let mut axes = Axes::new(at, frame);
    axes.find(target)?;
    let dim = at.point.len();
    let (inner, proper, uneven) = normal_of(axes.curvature(), dim);
    let mut laplace = newton(at, frame.around(&inner), proper);
    laplace.shape = kind.kind_of(&laplace.shape);
    laplace.uneven = uneven;
    laplace.evaluations = axes.evaluations;
    Ok(laplace)
}

/// The step of Newton's with this inverse curvature, where there is an optimum to step to.
fn newton(at: &Place, shape: Shape, proper: bool) -> Laplace {
    let mut step = at.score.clone();
    shape.apply_transposed(&mut step);
    let gain = 0.5 * dot(&step, &step);
    shape.apply(&mut step);
    let mut mean = at.point.clone();
    if proper {
        add(&mut mean, 1.0, &step);
    }
    Laplace { mean, shape, gain, proper, uneven: false, evaluations: 0 }
}

/// Differences of the score along axes, each with its own step.
struct Axes<'a> {
    at: &'a Place,
    frame: &'a Shape,
    /// The score in u at the point itself.
    slope: Vec<f64>,
    steps: Vec<f64>,
    /// Minus the difference quotient of the score along each axis, row by row.
    quotients: Vec<f64>,
    evaluations: u64,
}

impl<'a> Axes<'a> {
    fn new(at: &'a Place, frame: &'a Shape) -> Self {
        let dim = at.point.len();
        let mut slope = at.score.clone();
        frame.apply_transposed(&mut slope);
        Self { at, frame, slope, steps: vec![0.05; dim], quotients: vec![0.0; dim * dim], evaluations: 0 }
    }

    fn find(&mut self, target: &dyn Target) -> Result<()> {
        let dim = self.steps.len();
        let mut open: Vec<usize> = (0..dim).collect();
        for _ in 0..ROUNDS {
            let points = open.iter().map(|&j| self.moved(j)).collect();
            self.evaluations += open.len() as u64;
            let seen = places(target, points)?;
            let look = |(j, place): (usize, Place)| self.look(j, place).then_some(j);
            open = open.into_iter().zip(seen).filter_map(look).collect();
            if open.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn moved(&self, j: usize) -> Vec<f64> {
        let mut point = vec![0.0; self.steps.len()];
        point[j] = self.steps[j];
        self.frame.apply(&mut point);
        add(&mut point, 1.0, &self.at.point);
        point
    }

    /// Takes the score at a moved point; says whether another step would suit better.
    fn look(&mut self, j: usize, place: Place) -> bool {
        let (dim, step) = (self.steps.len(), self.steps[j]);
        if !place.is_finite() {
            self.steps[j] *= 0.01;
            return true;
        }
        let mut slope = place.score;
        self.frame.apply_transposed(&mut slope);
        let row = &mut self.quotients[j * dim..(j + 1) * dim];
        for ((out, before), after) in row.iter_mut().zip(&self.slope).zip(&slope) {
            *out = (before - after) / step;
        }
        let curvature = row[j];
        if curvature <= 0.0 || !curvature.is_finite() {
            // Not curved down here: farther out it may be.
            self.steps[j] = (step * 10.0).min(1e6);
            return step < 1e6;
        }
        let width = 1.0 / curvature.sqrt();
        let suits = 0.003 * width < step && step < 0.3 * width;
        if !suits {
            self.steps[j] = 0.05 * width;
        }
        !suits && self.steps[j] > 1e-14 && self.steps[j] < 1e9
    }

    /// The symmetric part of the quotients.
    fn curvature(&self) -> Vec<f64> {
        let dim = self.steps.len();
        let entry = |k: usize| 0.5 * (self.quotients[k] + self.quotients[k % dim * dim + k / dim]);
        (0..dim * dim).map(entry).collect()
    }
}

/// The shape with this precision; whether the precision is positive definite, and whether it is uneven.
fn normal_of(mut precision: Vec<f64>, dim: usize) -> (Shape, bool, bool) {
    let scales: Vec<f64> =
        (0..dim).map(|j| 1.0 / precision[j * dim + j].abs().clamp(1e-24, 1e24).sqrt()).collect();
    for (k, entry) in precision.iter_mut().enumerate() {
        *entry *= scales[k / dim] * scales[k % dim];
    }
    let positive = (0..dim).all(|j| precision[j * dim + j] > 0.5);
    let direct = Shape::of_precision(&precision, dim).filter(|_| positive);
    let proper = direct.is_some();
    let shape = direct.unwrap_or_else(|| bounded(precision, dim));
    // On the scale of a diagonal of ones, deviations are the square roots of the inverse's diagonal.
    let widest = shape.deviations().iter().fold(0.0, |a: f64, b| a.max(*b));
    let spread =
        scales.iter().fold(0.0, |a: f64, b| a.max(*b)) / scales.iter().fold(f64::INFINITY, |a, b| a.min(*b));
    let scaled = Shape::Diagonal(scales).around(&shape);
    (scaled, proper, widest > 30.0 || spread > 1e6)
}

/// The shape of a precision whose eigenvalues are made positive.
fn bounded(precision: Vec<f64>, dim: usize) -> Shape {
    let (values, vectors) = eigen::symmetric(precision, dim);
    let mut positive = vec![0.0; dim * dim];
    for (value, v) in values.iter().zip(vectors.chunks_exact(dim)) {
        let value = if value.is_finite() { value.abs().max(LEAST) } else { 1.0 };
        for (row, by) in positive.chunks_exact_mut(dim).zip(v) {
            add(row, value * by, v);
        }
    }
    Shape::of_precision(&positive, dim).unwrap_or_else(|| Shape::Diagonal(vec![1.0; dim]))
}

/// The curvature's diagonal alone, by differences along random signs of all coordinates at once (Hutchinson).
fn diagonal(target: &dyn Target, at: &Place, frame: &Shape, kind: Covariance) -> Result<Laplace> {
    const PROBES: usize = 8;
    let dim = at.point.len();
    let mut deviations = frame.deviations();
    let (mut step, mut proper, mut evaluations) = (0.01, false, 0);
    for _ in 0..4 {
        let signs: Vec<Vec<f64>> =
            (0..PROBES).map(|k| (0..dim).map(|j| sign(k * dim + j)).collect()).collect();
        let moved = |signs: &Vec<f64>| {
            let moves = at.point.iter().zip(&deviations).zip(signs);
            moves.map(|((x, s), sign)| x + step * s * sign).collect()
        };
        let seen = places(target, signs.iter().map(moved).collect())?;
        evaluations += PROBES as u64;
        if !seen.iter().all(Place::is_finite) {
            step *= 0.01;
            continue;
        }
        let mut curvature = vec![0.0; dim];
        for (place, signs) in seen.iter().zip(&signs) {
            for j in 0..dim {
                let quotient = (at.score[j] - place.score[j]) / (step * deviations[j] * signs[j]);
                curvature[j] += quotient / PROBES as f64;
            }
        }
        proper = curvature.iter().all(|c| *c > 0.0);
        for (s, c) in deviations.iter_mut().zip(&curvature) {
            let wanted = 1.0 / c.abs().sqrt();
            *s = if wanted.is_finite() { wanted.clamp(1e-6 * *s, 1e6 * *s) } else { *s };
        }
        step = 0.05;
    }
    let mut laplace = newton(at, kind.kind_of(&Shape::Diagonal(deviations)), proper);
    laplace.evaluations = evaluations;
    Ok(laplace)
}

/// A sign that looks random: one bit of a multiple of Weyl's constant, mixed.
fn sign(i: usize) -> f64 {
    let mut bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    if (bits ^ bits >> 32) & 1 == 0 { 1.0 } else { -1.0 }
}
