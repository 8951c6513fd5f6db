//! Barriers and the round trips they allow (§4, Proposition 2 and Theorem 2).

use crate::priors::normal_distribution;

/// λ(β) = ½ E|V − V′| for independent V, V′ ~ d log π^β/dβ, from samples of one chain:
/// half of Gini's mean difference over all pairs of samples. Sorts `slopes`.
pub fn local_barrier(slopes: &mut Vec<f64>) -> f64 {
    slopes.retain(|v| v.is_finite());
    let n = slopes.len() as f64;
    if slopes.len() < 2 {
        return f64::NAN;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let weighted: f64 = slopes.iter().enumerate().map(|(i, v)| (2.0 * i as f64 + 1.0 - n) * v).sum();
    weighted / (n * (n - 1.0))
}

/// Λ ≈ Σ rₙ.
pub fn global_barrier(rejection_rates: &[f64]) -> f64 {
    rejection_rates.iter().sum()
}

/// τ = (2 + 2 Σ r/(1 − r))⁻¹: what the rejection rates allow if local moves explore efficiently.
pub fn round_trip_rate(rejection_rates: &[f64]) -> f64 {
    1.0 / (2.0 + 2.0 * rejection_rates.iter().map(|r| r / (1.0 - r)).sum::<f64>())
}

/// Share of swaps that are rejected across a barrier b, where log densities differ as normal numbers do: erf(√π b/2). Such
/// barriers add up from pair to pair.
///
/// ```
/// use sterna::estimates::{barrier_of_rejection, rejection_across};
/// assert!((rejection_across(0.01) - 0.01).abs() < 1e-6);
/// assert!((barrier_of_rejection(rejection_across(1.3)) - 1.3).abs() < 1e-9);
/// ```
pub fn rejection_across(barrier: f64) -> f64 {
    let accepted = 2.0 * normal_distribution(-barrier * std::f64::consts::FRAC_PI_2.sqrt());
    (1.0 - accepted).clamp(0.0, 1.0 - 1e-6)
}

/// The barrier across which so many are, by halving; at most 4.
pub fn barrier_of_rejection(rate: f64) -> f64 {
    let (mut low, mut high) = (0.0, 4.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if rejection_across(middle) < rate { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erf(1/2) and erf(1) from tables.
    #[test]
    fn rejections_across_barriers() {
        let unit = 2.0 / std::f64::consts::PI.sqrt();
        let [half, one] = [0.5 * unit, unit].map(rejection_across);
        assert!((half - 0.520_499_88).abs() < 1e-8 && (one - 0.842_700_79).abs() < 1e-8, "{half} {one}");
        assert!((barrier_of_rejection(rejection_across(0.7)) - 0.7).abs() < 1e-9);
        assert!(barrier_of_rejection(1.0) <= 4.0 && barrier_of_rejection(0.0) < 1e-9);
    }

    #[test]
    fn mean_difference_of_all_pairs() {
        let values: [f64; 5] = [3.0, -1.0, 4.0, 1.5, -5.0];
        let mut sum = 0.0;
        for a in values {
            for b in values {
                sum += (a - b).abs();
            }
        }
        let expected = 0.5 * sum / 20.0;
        let mut slopes = values.to_vec();
        slopes.push(f64::NEG_INFINITY);
        assert!((local_barrier(&mut slopes) - expected).abs() < 1e-14);
        assert!(local_barrier(&mut vec![f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn rates_at_the_ends() {
        assert_eq!(round_trip_rate(&[0.0, 0.0]), 0.5);
        assert_eq!(round_trip_rate(&[0.5]), 0.25);
        assert_eq!(round_trip_rate(&[1.0, 0.3]), 0.0);
    }
}
