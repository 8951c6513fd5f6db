//! Smooth densities on a grid: counts of bins, and a penalty on third differences of the log density (Silverman 1982). What the
//! penalty leaves untouched is the normal with the counts' mean and variance, so where counts say no more it is that.

use crate::lanes::one::exp;

/// Bins of a grid.
pub(super) const BINS: usize = 128;

/// Third differences of a vector: their weights.
const THIRD: [f64; 4] = [-1.0, 3.0, -3.0, 1.0];

/// Diagonal and three more of a symmetric matrix: row i has its entries at i, i + 1, i + 2 and i + 3.
type Banded = Vec<[f64; 4]>;

/// Newton's method ends after so many steps, or where one gains less than this.
const MOST_STEPS: usize = 200;
const GAIN: f64 = 1e-12;

/// Log masses θ of all bins: the minimum of Σ (exp θ − share · θ) + ½ penalty Σ (third differences of θ)², whose masses add up
/// to 1. Begins at `theta`, and ends where rounding lets no step be found.
pub(super) fn log_masses(shares: &[f64], penalty: f64, theta: &mut [f64]) {
    let objective = |theta: &[f64]| {
        let fit: f64 = theta.iter().zip(shares).map(|(t, share)| exp(*t) - share * t).sum();
        let rough: f64 = theta.windows(4).map(|w| third(w).powi(2)).sum();
        fit + 0.5 * penalty * rough
    };
    let mut best = objective(theta);
    for _ in 0..MOST_STEPS {
        let mut matrix: Banded = theta.iter().map(|t| [exp(*t), 0.0, 0.0, 0.0]).collect();
        let mut step: Vec<f64> = theta.iter().zip(shares).map(|(t, share)| share - exp(*t)).collect();
        for i in 0..theta.len() - 3 {
            let pull = penalty * third(&theta[i..i + 4]);
            for j in 0..4 {
                step[i + j] -= pull * THIRD[j];
                for k in j..4 {
                    matrix[i + j][k - j] += penalty * THIRD[j] * THIRD[k];
                }
            }
        }
        if solve(&mut matrix, &mut step).is_none() {
            break;
        }
        let before = best;
        let mut size = 1.0;
        while size > 1e-9 {
            let trial: Vec<f64> = theta.iter().zip(&step).map(|(t, s)| t + size * s).collect();
            let value = objective(&trial);
            if value < best {
                (best, size) = (value, 0.0);
                theta.copy_from_slice(&trial);
            }
            size *= 0.5;
        }
        // Not below it by what counts: also where nothing is a number.
        let gain = before - best;
        if gain.is_nan() || gain <= GAIN {
            break;
        }
    }
}

fn third(window: &[f64]) -> f64 {
    window.iter().zip(THIRD).map(|(t, weight)| t * weight).sum()
}

/// Solves a positive definite system in place, by Cholesky's method; none if it is not positive definite.
fn solve(matrix: &mut Banded, right: &mut [f64]) -> Option<()> {
    let n = matrix.len();
    for i in 0..n {
        let pivot = matrix[i][0];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        for j in 1..4.min(n - i) {
            let share = matrix[i][j] / pivot;
            for k in j..4.min(n - i) {
                matrix[i + j][k - j] -= share * matrix[i][k];
            }
            right[i + j] -= share * right[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (1..4.min(n - i)).map(|j| matrix[i][j] * right[i + j]).sum();
        right[i] = (right[i] - known) / matrix[i][0];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of a law, and their logs.
    fn shares(log_density: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
        let at = |bin: usize| 8.0 * ((bin as f64 + 0.5) / BINS as f64 - 0.5);
        let log: Vec<f64> = (0..BINS).map(|bin| log_density(at(bin))).collect();
        let total: f64 = log.iter().map(|l| l.exp()).sum();
        (log.iter().map(|l| l.exp() / total).collect(), log.iter().map(|l| l - total.ln()).collect())
    }

    fn fitted(shares: &[f64], penalty: f64) -> Vec<f64> {
        let mut theta = vec![-(BINS as f64).ln(); BINS];
        log_masses(shares, penalty, &mut theta);
        theta
    }

    #[test]
    fn a_normal_is_found_whatever_the_penalty() {
        let (shares, expected) = shares(|x| -0.7 * (x - 0.3) * (x - 0.3));
        for penalty in [1e-4, 1.0, 1e6] {
            let theta = fitted(&shares, penalty);
            let off = theta.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-3, "{penalty}: {off}");
        }
    }

    #[test]
    fn two_modes_are_kept_or_smoothed_away_with_mass_mean_and_variance() {
        let (shares, expected) = shares(|x| -(x * x - 2.0).powi(2));
        let moments = |theta: &[f64]| {
            [0, 1, 2]
                .map(|k| theta.iter().enumerate().map(|(i, t)| (i as f64).powi(k) * t.exp()).sum::<f64>())
        };
        let (loose, strict) = (fitted(&shares, 1e-6), fitted(&shares, 1e6));
        let middle = BINS / 2;
        assert!((loose[middle] - expected[middle]).abs() < 0.05, "{} {}", loose[middle], expected[middle]);
        assert!(strict[middle] > strict[middle / 2] && loose[middle] < loose[3 * BINS / 8] - 1.0);
        for theta in [loose, strict] {
            let close =
                moments(&theta).into_iter().zip(moments(&expected)).all(|(a, b)| (a / b - 1.0).abs() < 1e-5);
            assert!(close, "{:?} {:?}", moments(&theta), moments(&expected));
        }
    }
}
