//! How far Euler's steps are from the process they discretise (App. B.5).

use crate::p_values::mean_and_error;
use sterna::streams::{Phase, Streams};

/// Total variation between the laws of X(0), X(1/K), …, X(1) of the stationary process
/// dX = −X dt + dB and of its Euler discretisation: E|tanh(L/2)| over both, L their log-ratio.
/// With its standard error from `n` paths; also KL(exact ‖ Euler), in closed form.
pub fn euler_error(steps: usize, n: u32) -> ((f64, f64), f64) {
    let h = 1.0 / steps as f64;
    let (keep, exact_variance) = ((-h).exp(), 0.5 * (1.0 - (-2.0 * h).exp()));
    let value = |row: u32| {
        let mut noise = Streams::new(600 + steps as u64).row(Phase::Check, 0, row);
        let mut x = noise.normal() * 0.5f64.sqrt();
        let mut log_ratio = 0.0;
        for _ in 0..steps {
            let (exact, euler) = (keep * x, (1.0 - h) * x);
            let (mean, variance) = if row.is_multiple_of(2) { (exact, exact_variance) } else { (euler, h) };
            x = mean + variance.sqrt() * noise.normal();
            log_ratio += 0.5 * ((x - euler).powi(2) / h - (x - exact).powi(2) / exact_variance);
        }
        log_ratio -= 0.5 * steps as f64 * (exact_variance / h).ln();
        (0.5 * log_ratio).tanh().abs()
    };
    let ratio = exact_variance / h;
    let step = 0.5 * (ratio - 1.0 - ratio.ln()) + (keep - 1.0 + h).powi(2) * 0.5 / (2.0 * h);
    (mean_and_error(&(0..n).map(value).collect::<Vec<_>>()), steps as f64 * step)
}
