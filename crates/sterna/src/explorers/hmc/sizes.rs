//! Step sizes and masses, and how they adapt between rounds or blocks of burn-in (§2.1).

use crate::explorers::Between;
use crate::fitted::Shape;
use crate::lanes::one::{exp, ln};
use crate::{Batch, Schedule};
use serde::{Deserialize, Serialize};

/// How local moves get their step sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StepSize {
    /// One number for all chains.
    Fixed(f64),
    /// One number for each chain.
    PerChain(Vec<f64>),
    /// Step size and diagonal mass per chain, adapted in tuning to this acceptance, then frozen.
    Adapt {
        /// Wanted mean acceptance probability.
        acceptance: f64,
    },
    /// A step size per chain by the paper's rule: times 1.2 above an acceptance of 0.9, divided by 1.2 below 0.8.
    /// Unit masses, and every step as long as the last.
    Paper,
}

impl StepSize {
    pub(super) fn adapts(&self) -> bool {
        matches!(self, Self::Adapt { .. } | Self::Paper)
    }
}

/// Step sizes of all chains.
///
/// ```
/// use sterna::explorers::{Hmc, StepSizes};
/// let sizes = StepSizes::per_chain(vec![0.5, 0.3, 0.2], 10);
/// let hmc = Hmc::with_sizes(1, 5, sizes, 0.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSizes {
    /// Overall step size ε of each chain.
    pub step_size: Vec<f64>,
    /// Scale of each coordinate on each chain (chains × dim): one over the square root of the mass.
    pub scale: Batch,
}

impl StepSizes {
    /// One step size for all chains, unit mass.
    pub fn fixed(chains: usize, dim: usize, step_size: f64) -> Self {
        Self::per_chain(vec![step_size; chains], dim)
    }

    /// A step size for each chain, unit mass.
    pub fn per_chain(step_size: Vec<f64>, dim: usize) -> Self {
        let ones = vec![1.0; step_size.len() * dim];
        Self { scale: Batch::from_vec(dim, ones), step_size }
    }
}

/// Smallest and largest step size that adaptation will try, relative to the chain's scales.
pub const STEP_SIZE_BOUNDS: (f64, f64) = (1e-8, 1e3);

/// The step to begin with where the widths of the coordinates are known, in their units.
pub(in crate::explorers) fn first_step(dim: usize) -> f64 {
    0.7 / (dim as f64).sqrt().sqrt()
}

/// A step that grows where moves are accepted too readily and shrinks where they are not.
pub(in crate::explorers) fn follow_acceptance(size: f64, acceptance: f64, wanted: f64, gain: f64) -> f64 {
    // No move at all (chain 0 draws exactly), or no number: nothing was learned.
    let change = if acceptance.is_finite() { gain * (acceptance - wanted) } else { 0.0 };
    (size * exp(change)).clamp(STEP_SIZE_BOUNDS.0, STEP_SIZE_BOUNDS.1)
}

/// Steps that follow the acceptance that was seen.
pub(super) fn adapt_step_sizes(sizes: &StepSizes, acceptance: &[f64], wanted: f64, gain: f64) -> StepSizes {
    let steps = sizes.step_size.iter().zip(acceptance);
    StepSizes {
        step_size: steps
            .map(|(&size, &acceptance)| follow_acceptance(size, acceptance, wanted, gain))
            .collect(),
        scale: sizes.scale.clone(),
    }
}

/// The paper's rule (App. E): a step grows by 1.2 where more than 90% of the moves are accepted, and shrinks by as
/// much where fewer than 80% are.
pub(super) fn adapt_by_paper(sizes: &StepSizes, acceptance: &[f64]) -> StepSizes {
    let adapt = |(&size, &acceptance): (&f64, &f64)| {
        let factor = match acceptance {
            a if a > 0.9 => 1.2,
            a if a < 0.8 => 1.0 / 1.2,
            _ => 1.0,
        };
        (size * factor).clamp(STEP_SIZE_BOUNDS.0, STEP_SIZE_BOUNDS.1)
    };
    StepSizes {
        step_size: sizes.step_size.iter().zip(acceptance).map(adapt).collect(),
        scale: sizes.scale.clone(),
    }
}

/// Coordinates scaled by 1/√E(score²), the local width of the density: on a mixture this is the
/// width of a mode, where the marginal variance would see the distance between modes.
/// The mean step in log space stays what it was.
pub(super) fn adapt_scales(sizes: &StepSizes, information: &Batch) -> StepSizes {
    let mut out = sizes.clone();
    for chain in 0..out.step_size.len() {
        let information = information.row(chain);
        if !information.iter().all(|&i| i > 0.0 && i.is_finite()) {
            continue;
        }
        let dim = information.len() as f64;
        let mean_log = |scales: &[f64]| scales.iter().map(|s| ln(*s)).sum::<f64>() / dim;
        let before = mean_log(out.scale.row(chain));
        out.scale.row_mut(chain).iter_mut().zip(information).for_each(|(s, i)| *s = i.sqrt().recip());
        let after = mean_log(out.scale.row(chain));
        out.step_size[chain] *= exp(before - after);
    }
    out
}

/// Coordinates scaled by their standard deviations, which were handed over. Steps are in these units: those that knew none
/// begin anew.
pub(super) fn shape_scales(sizes: &StepSizes, shapes: &[Shape]) -> StepSizes {
    let mut out = sizes.clone();
    for (chain, shape) in shapes.iter().enumerate() {
        if sizes.scale.row(chain).iter().all(|&scale| scale == 1.0) {
            out.step_size[chain] = first_step(shape.dim());
        }
        out.scale.row_mut(chain).copy_from_slice(&shape.deviations());
    }
    out
}

/// The same sizes read at other β: masses and squared inverse steps taken as linear in β between
/// chains, which is exact for normals.
pub(super) fn move_sizes(sizes: &StepSizes, from: &Schedule, to: &Schedule) -> StepSizes {
    let mut out = StepSizes::fixed(to.chains(), sizes.scale.dim(), 1.0);
    for (chain, &beta) in to.betas().iter().enumerate() {
        let between = Between::new(from, beta);
        out.step_size[chain] = between.width(|n| sizes.step_size[n]);
        for (j, scale) in out.scale.row_mut(chain).iter_mut().enumerate() {
            *scale = between.width(|n| sizes.scale.row(n)[j]);
        }
    }
    out
}
