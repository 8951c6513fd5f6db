//! Barriers and the round trips they allow (§4, Proposition 2 and Theorem 2).

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

#[cfg(test)]
mod tests {
    use super::*;

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
