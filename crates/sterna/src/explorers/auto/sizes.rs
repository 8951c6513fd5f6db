//! Base steps and shapes of the chains, and how they adapt between blocks of tuning.

use crate::explorers::Between;
use crate::explorers::hmc::{STEP_SIZE_BOUNDS, first_step, follow_acceptance};
use crate::fitted::{Mixture, Shape};
use crate::lanes::one::{exp, ln};
use crate::{Batch, Schedule};
use serde::{Deserialize, Serialize};

/// Base steps and shapes of all chains.
///
/// ```
/// use sterna::explorers::{Auto, AutoSizes};
/// use sterna::fitted::Shape;
/// let correlated = Shape::of_covariance(&[1.0, 0.9, 0.9, 1.0], 2).expect("positive definite");
/// let moves = Auto::with_sizes(AutoSizes::new(vec![0.8; 3], vec![correlated; 3]));
/// # assert_eq!(moves.steps, 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AutoSizes {
    /// Base step of each chain, in units of its shape.
    pub step_size: Vec<f64>,
    /// Square root of the covariance of each chain.
    pub shapes: Vec<Shape>,
    /// How far trajectories reach, in units of the shape: 1 where it is the width of the whole chain, more where it is a local
    /// one, less where swaps bring draws of their own.
    pub reach: Vec<f64>,
    /// How often the base step may be doubled, in some moves: more than 0 where the density is of uneven width.
    pub doublings: u32,
    /// Whether shapes were handed over, which none that moves see by themselves replace.
    pub fitted: bool,
    /// Normals that lie all over the target, where it is not one itself: most moves have the shape of one near the point.
    pub parts: Option<Mixture>,
    /// How many times as wide as at the target they are taken on each chain.
    pub widening: Vec<f64>,
}

/// How far trajectories reach at most: further than their number of steps lets them.
const FURTHEST: f64 = 1000.0;

impl AutoSizes {
    /// More doublings are of no use.
    pub const MOST_DOUBLINGS: u32 = 6;

    /// Base steps and covariances that are known, one for each chain.
    pub fn new(step_size: Vec<f64>, shapes: Vec<Shape>) -> Self {
        let alike = vec![1.0; shapes.len()];
        Self {
            reach: alike.clone(),
            widening: alike,
            step_size,
            shapes,
            doublings: 0,
            fitted: true,
            parts: None,
        }
    }

    /// Moves in the shape of one of these normals, which lie all over the target, near the point that is moved.
    pub fn with_parts(mut self, parts: Mixture) -> Self {
        let (whole, dim) = (parts.pooled_shape().log_volume(), parts.dim() as f64);
        let wider = |shape: &Shape| exp((shape.log_volume() - whole) / dim);
        self.widening = self.shapes.iter().map(wider).collect();
        self.parts = Some(parts);
        self
    }

    /// Those to begin with.
    pub(super) fn first(chains: usize, dim: usize) -> Self {
        let shapes = vec![Shape::Diagonal(vec![1.0; dim]); chains];
        Self { fitted: false, ..Self::new(vec![first_step(dim); chains], shapes) }
    }

    /// Steps of the longest trajectory of a chain: about a quarter of the period of a normal.
    pub(super) fn most_leaps(&self, chain: usize) -> usize {
        (1.6 * self.reach[chain] / self.step_size[chain]).round().clamp(1.0, 12.0) as usize
    }

    /// Doublings of a move's step, by a uniform number: none in three moves of four.
    pub(super) fn doublings_of(&self, uniform: f64) -> i32 {
        let longer = 1.0 - 4.0 * uniform;
        if longer <= 0.0 { 0 } else { (longer * f64::from(self.doublings)).ceil() as i32 }
    }

    /// Whether they serve so many chains of points of this length. A file may claim anything.
    pub(super) fn are_for(&self, chains: usize, dim: usize) -> bool {
        let shaped = |shape: &Shape| match shape {
            Shape::Diagonal(deviations) => deviations.len() == dim,
            Shape::Dense { dim: theirs, lower } => *theirs == dim && lower.len() == dim * (dim + 1) / 2,
            Shape::LowRank { deviations, directions, stretches } => {
                deviations.len() == dim && directions.len() == dim * stretches.len()
            }
        };
        let Self { step_size, shapes, reach, parts, widening, .. } = self;
        [step_size.len(), shapes.len(), reach.len(), widening.len()] == [chains; 4]
            && self.doublings <= Self::MOST_DOUBLINGS
            && step_size.iter().chain(reach).chain(widening).all(|x| *x > 0.0 && x.is_finite())
            && shapes.iter().all(shaped)
            && parts.as_ref().is_none_or(|parts| parts.dim() == dim)
    }

    /// Steps that follow the acceptance that was seen.
    pub(super) fn followed(&self, acceptance: &[f64], wanted: f64, gain: f64) -> Self {
        let step_size = self.step_size.iter().zip(acceptance);
        let step_size = step_size.map(|(&step, &seen)| follow_acceptance(step, seen, wanted, gain)).collect();
        Self { step_size, ..self.clone() }
    }

    /// Coordinates scaled by 1/√E(score²), the local width of the density, as moves have seen it; the mean step in log
    /// space stays what it was. Trajectories reach as far as the chain is wide.
    pub(super) fn scaled(&self, information: &Batch, spread: &Batch) -> Self {
        let mut out = self.clone();
        for (chain, information) in information.iter_rows().enumerate() {
            if information.iter().all(|&i| i > 0.0 && i.is_finite()) {
                let shape = Shape::Diagonal(information.iter().map(|i| i.sqrt().recip()).collect());
                let wider = (shape.log_volume() - self.shapes[chain].log_volume()) / shape.dim() as f64;
                out.step_size[chain] = bounded(self.step_size[chain] * exp(-wider));
                let mean_log = |x: &[f64]| x.iter().map(|x| ln(*x)).sum::<f64>() / x.len() as f64;
                let reach = exp(mean_log(spread.row(chain)) + 0.5 * mean_log(information));
                // A coordinate that has not moved tells nothing.
                out.reach[chain] = if reach.is_finite() { reach.clamp(1.0, FURTHEST) } else { 1.0 };
                out.shapes[chain] = shape;
            }
        }
        out
    }

    /// Other shapes, one for each chain. Steps are in their units: the first shapes find steps that knew none.
    pub(super) fn shaped(
        &self,
        shapes: &[Shape],
        parts: Option<&Mixture>,
        doublings: u32,
        reach: &[f64],
    ) -> Self {
        let step_size = match (self.fitted, shapes.first()) {
            (false, Some(shape)) => vec![first_step(shape.dim()); shapes.len()],
            _ => self.step_size.clone(),
        };
        let out = Self { doublings, reach: reach.to_vec(), ..Self::new(step_size, shapes.to_vec()) };
        parts.map_or(out.clone(), |parts| out.with_parts(parts.clone()))
    }

    /// The same at other β, of which there may be more or fewer: squared inverse steps and widths are linear in β, as those
    /// of normals are; of dense shapes the nearer one is taken.
    pub(super) fn read_at(&self, from: &Schedule, to: &Schedule) -> Self {
        let Self { fitted, doublings, .. } = *self;
        let mut out = Self { fitted, doublings, parts: self.parts.clone(), ..Self::default() };
        for &beta in to.betas() {
            let between = Between::new(from, beta);
            out.step_size.push(between.width(|n| self.step_size[n]));
            out.reach.push(between.width(|n| self.reach[n]));
            out.widening.push(between.width(|n| self.widening[n]));
            out.shapes.push(match [&self.shapes[between.lower], &self.shapes[between.lower + 1]] {
                [Shape::Diagonal(a), Shape::Diagonal(b)] => {
                    let width = |j: usize| between.width(|n| if n == between.lower { a[j] } else { b[j] });
                    Shape::Diagonal((0..a.len()).map(width).collect())
                }
                shapes => shapes[usize::from(between.share > 0.5)].clone(),
            });
        }
        out
    }
}

fn bounded(step: f64) -> f64 {
    step.clamp(STEP_SIZE_BOUNDS.0, STEP_SIZE_BOUNDS.1)
}
