//! Step sizes and masses, changed only between rounds or blocks of burn-in (§2.1).

use crate::explorers::StepSizes;
use crate::{Batch, Schedule};

/// Smallest and largest step size that adaptation will try, relative to the chain's scales.
pub const BOUNDS: (f64, f64) = (1e-8, 1e3);

/// Steps that grow where moves are accepted too readily and shrink where they are not.
pub fn adapt_step_sizes(sizes: &StepSizes, acceptance: &[f64], wanted: f64, gain: f64) -> StepSizes {
    let adapt = |(&size, &acceptance): (&f64, &f64)| {
        // No move at all (chain 0 draws exactly), or no number: nothing was learned.
        let change = if acceptance.is_finite() { gain * (acceptance - wanted) } else { 0.0 };
        (size * change.exp()).clamp(BOUNDS.0, BOUNDS.1)
    };
    StepSizes {
        step_size: sizes.step_size.iter().zip(acceptance).map(adapt).collect(),
        scale: sizes.scale.clone(),
    }
}

/// The paper's rule (App. E): a step grows by 1.2 where more than 90% of the moves are accepted, and shrinks by as
/// much where fewer than 80% are.
pub fn adapt_by_paper(sizes: &StepSizes, acceptance: &[f64]) -> StepSizes {
    let adapt = |(&size, &acceptance): (&f64, &f64)| {
        let factor = match acceptance {
            a if a > 0.9 => 1.2,
            a if a < 0.8 => 1.0 / 1.2,
            _ => 1.0,
        };
        (size * factor).clamp(BOUNDS.0, BOUNDS.1)
    };
    StepSizes {
        step_size: sizes.step_size.iter().zip(acceptance).map(adapt).collect(),
        scale: sizes.scale.clone(),
    }
}

/// Coordinates scaled by 1/√E(score²), the local width of the density: on a mixture this is the
/// width of a mode, where the marginal variance would see the distance between modes.
/// The mean step in log space stays what it was.
pub fn adapt_scales(sizes: &StepSizes, information: &Batch) -> StepSizes {
    let mut out = sizes.clone();
    for chain in 0..out.step_size.len() {
        let information = information.row(chain);
        if !information.iter().all(|&i| i > 0.0 && i.is_finite()) {
            continue;
        }
        let dim = information.len() as f64;
        let mean_log = |scales: &[f64]| scales.iter().map(|s| s.ln()).sum::<f64>() / dim;
        let before = mean_log(out.scale.row(chain));
        out.scale.row_mut(chain).iter_mut().zip(information).for_each(|(s, i)| *s = i.powf(-0.5));
        let after = mean_log(out.scale.row(chain));
        out.step_size[chain] *= (before - after).exp();
    }
    out
}

/// The same sizes read at other β: masses and squared inverse steps taken as linear in β between
/// chains, which is exact for normals.
pub fn move_sizes(sizes: &StepSizes, from: &Schedule, to: &Schedule) -> StepSizes {
    let dim = sizes.scale.dim();
    let mut out = StepSizes::fixed(to.chains(), dim, 1.0);
    for (chain, &beta) in to.betas().iter().enumerate() {
        let n = from.betas().partition_point(|&b| b < beta).clamp(1, from.pairs());
        let interval = from.interval(n);
        let t = ((beta - interval.lower) / interval.width()).clamp(0.0, 1.0);
        let blend = |a: f64, b: f64| ((1.0 - t) * a.powi(-2) + t * b.powi(-2)).powf(-0.5);
        out.step_size[chain] = blend(sizes.step_size[n - 1], sizes.step_size[n]);
        for (j, scale) in out.scale.row_mut(chain).iter_mut().enumerate() {
            *scale = blend(sizes.scale.row(n - 1)[j], sizes.scale.row(n)[j]);
        }
    }
    out
}
