//! Crooks' check: forward and backward weights of a pair cross where they should, and part as they should.
//!
//! The densities of l = log w under backward and forward paths satisfy p_Q(l) = p_P(l) e^{l − c}: they
//! cross at l = c = log Zₙ/Zₙ₋₁. A logistic regression of "backward or forward" on l therefore has
//! slope 1 and its zero at c; anything else means wrong weights or chains that are not at their laws.

use super::bar::{Weighted, bar_of, each_sigmoid};
use crate::lanes::one::ln;

/// Where the two work histograms cross, and the slope of their log-ratio there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crooks {
    /// l at which forward and backward weights are equally likely.
    pub crossing: f64,
    /// d log(p_Q/p_P)/dl: 1 if all is well.
    pub slope: f64,
}

/// A weight so far from the ratio belongs to its side beyond all doubt, and would only carry the sums away.
const FAR: f64 = 1e4;

/// Fits the log-ratio of the two histograms by a line, by Newton's method. NaN where they do not overlap.
pub fn crooks(forward: &[f64], backward: &[f64]) -> Crooks {
    let (forward, backward) = (Weighted::plain(forward, 1.0), Weighted::plain(backward, -1.0));
    crooks_of(&forward, &backward, bar_of(&forward, &backward).log_ratio)
}

/// [`crooks`] over weights that stand for several proposals each, with Bennett's ratio of these.
pub(super) fn crooks_of(forward: &Weighted, backward: &Weighted, ratio: f64) -> Crooks {
    let nothing = Crooks { crossing: f64::NAN, slope: f64::NAN };
    let total = |side: &Weighted| side.finite().map(|(_, n)| n).sum::<f64>();
    let (n_forward, n_backward) = (total(forward), total(backward));
    if n_forward < 2.0 || n_backward < 2.0 || ratio.is_nan() {
        return nothing;
    }
    // Unequal numbers shift the intercept.
    let prior = ln(n_backward / n_forward);
    let near = |l: f64| l.clamp(ratio - FAR, ratio + FAR);
    let mean = |side: &Weighted, n: f64| side.finite().map(|(l, n)| n * near(l)).sum::<f64>() / n;
    let middle = 0.5 * (mean(forward, n_forward) + mean(backward, n_backward));
    // log odds = offset + slope (l − middle), started at no relation.
    let (mut offset, mut slope) = (0.0, 0.0);
    for _ in 0..60 {
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (side, label) in [(forward, 0.0), (backward, 1.0)] {
            let odds = |l: f64| prior + offset + slope * (near(l) - middle);
            each_sigmoid(side.finite(), odds, |l, n, p| {
                let t = near(l) - middle;
                let (miss, weight) = (n * (label - p), n * p * (1.0 - p));
                g0 += miss;
                g1 += miss * t;
                h00 += weight;
                h01 += weight * t;
                h11 += weight * t * t;
            });
        }
        let determinant = h00 * h11 - h01 * h01;
        if determinant.is_nan() || determinant <= 1e-300 * h00 * h00 {
            return nothing;
        }
        let (d0, d1) = ((h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant);
        // Steps are bounded: far from the solution the logistic is flat.
        let shorten = (1.0 / (d0.abs().max(d1.abs()))).min(1.0);
        offset += shorten * d0;
        slope += shorten * d1;
        if d0.abs().max(d1.abs()) < 1e-12 {
            break;
        }
    }
    Crooks { crossing: middle - offset / slope, slope }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn work(c: f64, s: f64, sign: f64, n: usize, row: u32) -> Vec<f64> {
        let mut stream = Streams::new(8).row(Phase::Check, 0, row);
        (0..n).map(|_| c + sign * 0.5 * s * s + s * stream.normal()).collect()
    }

    /// 20,000 works a side; the slope's standard error is below 0.02, the crossing's below 0.02: 5 of each.
    #[test]
    fn gaussian_work_crosses_at_the_ratio_with_slope_one() {
        for s in [0.7, 1.5] {
            let (forward, backward) = (work(2.5, s, -1.0, 20_000, 0), work(2.5, s, 1.0, 10_000, 1));
            let found = crooks(&forward, &backward);
            assert!((found.slope - 1.0).abs() < 0.1 && (found.crossing - 2.5).abs() < 0.1, "{s}: {found:?}");
        }
    }

    /// Works that are twice too large (a temperature forgotten) have slope one half.
    #[test]
    fn wrong_weights_have_another_slope() {
        let twice = |w: Vec<f64>| w.into_iter().map(|l| 2.0 * l).collect::<Vec<_>>();
        let found = crooks(&twice(work(0.0, 1.0, -1.0, 20_000, 0)), &twice(work(0.0, 1.0, 1.0, 20_000, 1)));
        assert!((found.slope - 0.5).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn without_overlap_there_is_no_answer_and_no_panic() {
        assert!(crooks(&[1.0], &[2.0]).slope.is_nan());
        let apart = crooks(&[0.0, 0.1, 0.2], &[50.0, 51.0]);
        assert!(apart.slope.is_nan() || apart.slope > 0.0);
        assert!(crooks(&[3.0; 5], &[3.0; 5]).crossing.is_nan());
    }
}
