//! Bennett's acceptance ratio on path weights: log Zₙ/Zₙ₋₁ from both directions at once (§3.2).

use super::folded::FoldedWeights;
use crate::lanes::one::{exp, exps, ln};

/// The ratio and how the equation it solves responds to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// log Zₙ/Zₙ₋₁.
    pub log_ratio: f64,
    /// Σ σ′: how fast the two sides part when the ratio is wrong.
    pub slope: f64,
    /// Share of overlap between forward and backward weights, from 0 (none) to 1 (identical).
    pub overlap: f64,
}

/// 1/(1 + e⁻ˣ).
pub(super) fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { exp(x) / (1.0 + exp(x)) } else { 1.0 / (1.0 + exp(-x)) }
}

/// σ at each of some weights, seen from somewhere: `then` has the weight, how many it stands for, and σ.
pub(super) fn each_sigmoid(
    mut weights: impl Iterator<Item = (f64, f64)>,
    seen: impl Fn(f64) -> f64,
    mut then: impl FnMut(f64, f64, f64),
) {
    const AT_ONCE: usize = 64;
    let (mut held, mut powers) = ([(0.0, 0.0, 0.0); AT_ONCE], [0.0; AT_ONCE]);
    loop {
        let mut count = 0;
        for (w, n) in weights.by_ref().take(AT_ONCE) {
            let x = seen(w);
            (held[count], powers[count]) = ((w, n, x), -x.abs());
            count += 1;
        }
        if count == 0 {
            return;
        }
        exps(&mut powers[..count]);
        for (&(w, n, x), power) in held.iter().zip(&powers[..count]) {
            then(w, n, if x < 0.0 { power / (1.0 + power) } else { 1.0 / (1.0 + power) });
        }
    }
}

/// Log-weights of one direction, each with the number of proposals it stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Weighted(Vec<(f64, f64)>);

impl Weighted {
    /// One by one, without those that come from where the density vanishes.
    pub(super) fn plain(weights: &[f64], sign: f64) -> Self {
        let mut out = Self::default();
        out.add(weights, sign);
        out
    }

    /// Adds weights one by one; `sign` is +1 forward and −1 backward.
    pub(super) fn add(&mut self, weights: &[f64], sign: f64) {
        let from_nowhere = sign * f64::INFINITY;
        self.0.extend(weights.iter().filter(|&&w| w != from_nowhere).map(|&w| (w, 1.0)));
    }

    /// Adds weights that were folded.
    pub(super) fn add_folded(&mut self, folded: &FoldedWeights, sign: f64) {
        self.0.extend(folded.points());
        if folded.vanished > 0 {
            self.0.push((sign * f64::NEG_INFINITY, folded.vanished as f64));
        }
    }

    fn total(&self) -> f64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// Those that are finite.
    pub(super) fn finite(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.0.iter().copied().filter(|(w, _)| w.is_finite())
    }
}

/// Where all proposals of a side together meet the other by less than a tenth of one, whatever lies between the two solves the
/// equation, as far as numbers can tell.
const LEAST_MEETING: f64 = 0.1;

/// Solves Σ σ(F − c) = Σ σ(c − B) for c over log-weights of forward and backward paths.
///
/// A forward path into zero density weighs −∞, a backward one +∞. One that comes from there
/// (backward −∞, forward +∞: a replica that has not yet found the support) tells nothing and is left
/// out. NaN if one side has no finite weight, or where the two do not overlap.
///
/// ```
/// use sterna::estimates::bar;
/// assert!((bar(&[1.0, 2.0], &[2.0, 3.0]).log_ratio - 2.0).abs() < 1e-9);
/// assert!(bar(&[-50.0, -51.0], &[50.0, 51.0]).log_ratio.is_nan());
/// ```
pub fn bar(forward: &[f64], backward: &[f64]) -> Bar {
    bar_of(&Weighted::plain(forward, 1.0), &Weighted::plain(backward, -1.0))
}

/// [`bar`] over weights that stand for several proposals each.
pub(super) fn bar_of(forward: &Weighted, backward: &Weighted) -> Bar {
    let nothing = Bar { log_ratio: f64::NAN, slope: f64::NAN, overlap: f64::NAN };
    if forward.finite().next().is_none() || backward.finite().next().is_none() {
        return nothing;
    }
    let (n_forward, n_backward) = (forward.total(), backward.total());
    // Unequal numbers enter as a shift of the weights.
    let shift = ln(n_forward / n_backward);
    // By how much the first side exceeds the second, how fast they part, and the lesser of the two.
    let excess = |c: f64| {
        let (mut value, mut slope) = (0.0, 0.0);
        each_sigmoid(
            forward.0.iter().copied(),
            |w| w - c - shift,
            |_, n, s| {
                value += n * s;
                slope += n * s * (1.0 - s);
            },
        );
        let first: f64 = value;
        each_sigmoid(
            backward.0.iter().copied(),
            |w| c + shift - w,
            |_, n, s| {
                value -= n * s;
                slope += n * s * (1.0 - s);
            },
        );
        (value, slope, first.min(first - value))
    };
    let (mut low, mut high) = bracket(middle(forward, backward) - shift, |c| excess(c).0 > 0.0);
    // Newton's steps inside a bracket that always shrinks.
    let mut c = between(low, high);
    let (mut slope, mut meeting) = (0.0, 0.0);
    for _ in 0..200 {
        let value;
        (value, slope, meeting) = excess(c);
        if value > 0.0 {
            low = c
        } else {
            high = c
        }
        let newton = c + value / slope;
        let next = if newton > low && newton < high { newton } else { between(low, high) };
        let done = (next - c).abs() <= 1e-13 * c.abs().max(1.0);
        c = next;
        if done {
            break;
        }
    }
    if meeting < LEAST_MEETING {
        return Bar { log_ratio: f64::NAN, slope, overlap: 0.0 };
    }
    let n = n_forward * n_backward / (n_forward + n_backward);
    Bar { log_ratio: c, slope, overlap: slope / n }
}

/// The middle of all finite weights: near the root, however far out single ones lie.
fn middle(forward: &Weighted, backward: &Weighted) -> f64 {
    let mut all: Vec<f64> = forward.finite().chain(backward.finite()).map(|(w, _)| w).collect();
    let half = all.len() / 2;
    *all.select_nth_unstable_by(half, f64::total_cmp).1
}

/// Two numbers between which what is low becomes what is not: from `start` in steps that double.
fn bracket(start: f64, is_low: impl Fn(f64) -> bool) -> (f64, f64) {
    let upwards = is_low(start);
    // Where weights are beyond all bounds, a step of one would change nothing.
    let first = (1e-12 * start.abs()).max(1.0);
    let (mut near, mut step) = (start, if upwards { first } else { -first });
    loop {
        let far = near + step;
        if is_low(far) != upwards || !far.is_finite() {
            return if upwards { (near, far) } else { (far, near) };
        }
        (near, step) = (far, 2.0 * step);
    }
}

/// The middle of a bracket; of a wide one by orders of magnitude, since it would take a thousand halvings.
fn between(low: f64, high: f64) -> f64 {
    const WIDE: f64 = 1e6;
    // How many powers of e a number lies from 1, and which lies there; with the sign, and through zero.
    let order = |x: f64| ln(1.0 + x.abs()).copysign(x);
    let at = |order: f64| (exp(order.abs()) - 1.0).copysign(order);
    if high - low < WIDE { 0.5 * (low + high) } else { at(0.5 * (order(low) + order(high))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// Gaussian work: forward N(c − s²/2, s²) and backward N(c + s²/2, s²) satisfy Crooks' relation.
    #[test]
    fn recovers_the_ratio_of_gaussian_work() {
        for (s, allowed) in [(0.3, 0.012), (1.0, 0.05), (3.0, 0.25)] {
            // Bounds: 5 of Bennett's standard errors at n = 20,000.
            let mut stream = Streams::new(4).row(Phase::Check, 0, 0);
            let forward: Vec<f64> = (0..20_000).map(|_| 2.5 - 0.5 * s * s + s * stream.normal()).collect();
            let backward: Vec<f64> = (0..20_000).map(|_| 2.5 + 0.5 * s * s + s * stream.normal()).collect();
            let estimate = bar(&forward, &backward);
            assert!((estimate.log_ratio - 2.5).abs() < allowed, "{s}: {estimate:?}");
            assert!(estimate.overlap > 0.0 && estimate.overlap <= 1.0, "{estimate:?}");
        }
    }

    /// One path that lands where the density all but vanishes moves nothing, however small its weight.
    #[test]
    fn a_weight_that_is_far_out_moves_nothing() {
        let mut stream = Streams::new(5).row(Phase::Check, 0, 0);
        let mut forward: Vec<f64> = (0..2_000).map(|_| 2.0 + stream.normal()).collect();
        let mut backward: Vec<f64> = (0..2_000).map(|_| 3.0 + stream.normal()).collect();
        let without = |forward: &[f64], backward: &[f64]| bar(forward, backward).log_ratio;
        forward.push(f64::NEG_INFINITY);
        let known = without(&forward, &backward);
        for far in [-1e3, -1e13, -1e213, f64::MIN] {
            *forward.last_mut().unwrap() = far;
            let got = without(&forward, &backward);
            assert!((got - known).abs() < 1e-12, "{far:e}: {got} instead of {known}");
            // The twin: halving from the extremes, as many times as the solver steps, does not come back.
            let halved = (0..200).fold((far, 5.0f64), |(low, high), _| {
                let c = 0.5 * (low + high);
                if c < known { (c, high) } else { (low, c) }
            });
            assert!(far > -1e50 || (halved.0 - known).abs() > 1.0, "{far:e}");
        }
        forward.pop();
        backward.push(f64::INFINITY);
        let known = without(&forward, &backward);
        for far in [1e13, 1e213, f64::MAX] {
            *backward.last_mut().unwrap() = far;
            assert!((without(&forward, &backward) - known).abs() < 1e-12, "{far:e}");
        }
    }

    /// Nor do many, even if they are most.
    #[test]
    fn most_weights_may_be_far_out() {
        let mut stream = Streams::new(6).row(Phase::Check, 0, 0);
        let mut forward: Vec<f64> = (0..500).map(|_| 2.0 + stream.normal()).collect();
        let backward: Vec<f64> = (0..1_000).map(|_| 3.0 + stream.normal()).collect();
        forward.extend([f64::NEG_INFINITY; 3000]);
        let known = bar(&forward, &backward).log_ratio;
        for order in [20, 200, 300] {
            let far = |i: usize| -(1.0 + i as f64) * 10f64.powi(order);
            forward.iter_mut().skip(500).enumerate().for_each(|(i, w)| *w = far(i));
            let got = bar(&forward, &backward).log_ratio;
            assert!((got - known).abs() < 1e-9, "{order}: {got} instead of {known}");
        }
    }

    #[test]
    fn equal_weights_are_exact() {
        let estimate = bar(&[3.25; 7], &[3.25; 11]);
        assert!((estimate.log_ratio - 3.25).abs() < 1e-12);
        assert!((estimate.overlap - 1.0).abs() < 1e-12, "{estimate:?}");
    }

    #[test]
    fn edges() {
        assert!(bar(&[f64::NEG_INFINITY; 3], &[1.0; 3]).log_ratio.is_nan());
        // Sides that do not meet, however many there are: an estimate would be anywhere between them.
        for (forward, backward) in [(-1e6, 1e6), (-1.9e200, 3.0), (f64::MIN, f64::MAX), (-40.0, 40.0)] {
            let apart = bar(&[forward; 1000], &[backward; 1000]);
            assert!(apart.log_ratio.is_nan() && apart.overlap == 0.0, "{apart:?}");
        }
        // One proposal of two thousand that arrives is something, if little.
        let hardly = bar(&[vec![-40.0; 999], vec![2.0]].concat(), &[2.5; 1000]);
        assert!(hardly.log_ratio.is_finite(), "{hardly:?}");
        let mixed = bar(&[f64::NEG_INFINITY, 0.0, 0.0], &[0.0, 0.0, 0.0]).log_ratio;
        assert!(mixed < 0.0 && mixed > -2.0);
        // More paths from nowhere than finite ones: no root without leaving them out.
        let (nowhere, somewhere) = (f64::NEG_INFINITY, [0.25, 0.25]);
        let lost = bar(&[nowhere, nowhere, 0.25, 0.25], &[nowhere, nowhere, nowhere, 0.25, 0.25]);
        let known = bar(&[nowhere, nowhere, 0.25, 0.25], &somewhere);
        assert_eq!(lost, known);
    }
}
