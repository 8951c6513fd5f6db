//! The anchor: a broad normal that does not follow the draws, wide enough for all optima that climbs found.

use super::{Optimum, Starts};
use crate::lanes::one::exp;

/// How many of the anchor's standard deviations away an optimum's surroundings may lie before the anchor is widened, and
/// where they lie then.
const FARTHEST: f64 = 2.0;
const WITHIN: f64 = 1.5;

/// An anchor no broader than what it is to correct would see nothing else: it is so many times as broad, or fewer where there are
/// so many coordinates that the way there would lie behind a larger barrier than this, √(2d/π) ln times.
const BROADER: f64 = 4.0;
const BARRIER: f64 = 4.0;

/// How many times as broad as all optima together an anchor should be.
fn broader(dim: usize) -> f64 {
    BROADER.min(exp(BARRIER / (2.0 * dim as f64 / std::f64::consts::PI).sqrt()))
}

/// Standard deviations of an anchor, broad enough beside those of all optima together.
///
/// ```
/// assert_eq!(sterna::fitted::broaden(&[1.0, 100.0], &[2.0, 3.0]), [8.0, 100.0]);
/// ```
pub fn broaden(anchor: &[f64], optima: &[f64]) -> Vec<f64> {
    let times = broader(anchor.len());
    anchor.iter().zip(optima).map(|(a, o)| a.max(times * o)).collect()
}

/// The anchor's standard deviations, grown coordinate by coordinate so that each optimum, with two of its own standard
/// deviations around it, lies within two of the anchor's. Pass those that [matter](super::Found::that_matter).
///
/// ```
/// use sterna::fitted::{Optimum, Shape, Starts, widen};
/// let far = Optimum {
///     mean: vec![0.5, 29.0],
///     shape: Shape::Diagonal(vec![0.1, 0.5]),
///     log_density: 0.0,
///     log_evidence: 0.0,
///     climbs: 1,
/// };
/// assert_eq!(widen(Starts { mean: &[0.0; 2], deviation: &[1.0; 2] }, [&far]), [1.0, 20.0]);
/// ```
pub fn widen<'a>(anchor: Starts, optima: impl IntoIterator<Item = &'a Optimum>) -> Vec<f64> {
    let mut wide = anchor.deviation.to_vec();
    for optimum in optima {
        let own = optimum.shape.deviations();
        for (j, wide) in wide.iter_mut().enumerate() {
            let reach = (optimum.mean[j] - anchor.mean[j]).abs() + 2.0 * own[j];
            if reach > FARTHEST * anchor.deviation[j] {
                *wide = wide.max(reach / WITHIN);
            }
        }
    }
    wide
}
