//! Averages of correlated series: autocovariances, errors, effective sample size.

use crate::lanes::one::ln;
use rustfft::{FftPlanner, num_complex::Complex};
use std::cell::RefCell;

/// Autocovariances at all lags, divided by n (biased, hence positive definite), by FFT.
fn autocovariance(series: &[f64]) -> Vec<f64> {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n as f64;
    let size = (2 * n).next_power_of_two();
    let mut buffer: Vec<Complex<f64>> = series.iter().map(|x| Complex::new(x - mean, 0.0)).collect();
    buffer.resize(size, Complex::default());
    // Plans cost more than transforms and are asked for again and again.
    thread_local! {
        static PLANNER: RefCell<FftPlanner<f64>> = RefCell::new(FftPlanner::new());
    }
    let transform = PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(size));
    let mut scratch = vec![Complex::default(); transform.get_inplace_scratch_len()];
    transform.process_with_scratch(&mut buffer, &mut scratch);
    for c in &mut buffer {
        *c = Complex::new(c.norm_sqr(), 0.0);
    }
    // A power spectrum is even: transforming it forward again is the inverse up to size.
    transform.process_with_scratch(&mut buffer, &mut scratch);
    buffer[..n].iter().map(|c| c.re / (size as f64 * n as f64)).collect()
}

/// Autocorrelations at lags 0, 1, … below `lags`, and below the length of the series; none where it does not vary.
///
/// ```
/// use sterna::estimates::autocorrelation;
/// let turns: Vec<f64> = (0..1000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
/// let found = autocorrelation(&turns, 3);
/// assert!((found[1] + 1.0).abs() < 0.01 && (found[2] - 1.0).abs() < 0.01);
/// ```
pub fn autocorrelation(series: &[f64], lags: usize) -> Vec<f64> {
    let mut gamma = autocovariance(series);
    gamma.truncate(lags);
    match gamma.first() {
        Some(&variance) if variance > 0.0 => gamma.iter().map(|g| g / variance).collect(),
        _ => Vec::new(),
    }
}

/// γ₀ + 2Σγₖ: n times the variance of the series' mean, by Geyer's initial monotone sequence.
pub fn long_run_variance(series: &[f64]) -> f64 {
    let n = series.len();
    if n < 4 {
        return f64::NAN;
    }
    let gamma = autocovariance(series);
    let (mut sum, mut previous) = (-gamma[0], f64::INFINITY);
    for pair in gamma.chunks_exact(2) {
        // Sums of neighbouring lags of a reversible chain are positive and decrease.
        let both = (pair[0] + pair[1]).min(previous);
        if both <= 0.0 {
            break;
        }
        sum += 2.0 * both;
        previous = both;
    }
    // Strongly alternating series: never below a tenth of independent draws'.
    sum.max(0.1 * gamma[0]) * n as f64 / (n as f64 - 1.0)
}

/// Mean of a series and its standard error.
pub fn mean_with_error(series: &[f64]) -> (f64, f64) {
    let n = series.len() as f64;
    (series.iter().sum::<f64>() / n, (long_run_variance(series) / n).sqrt())
}

/// Effective number of independent draws for the mean over several chains, each split in half:
/// Stan's estimator, as in ArviZ (`ess`, method "mean").
pub fn effective_sample_size(chains: &[&[f64]]) -> f64 {
    let length = chains.iter().map(|c| c.len()).min().unwrap_or(0) / 2;
    if length < 4 {
        return f64::NAN;
    }
    let halves: Vec<&[f64]> = chains.iter().flat_map(|c| [&c[..length], &c[c.len() - length..]]).collect();
    let (m, n) = (halves.len() as f64, length as f64);
    let gammas: Vec<Vec<f64>> = halves.iter().map(|h| autocovariance(h)).collect();
    let mean_gamma = |lag: usize| gammas.iter().map(|g| g[lag]).sum::<f64>() / m;
    let means: Vec<f64> = halves.iter().map(|h| h.iter().sum::<f64>() / n).collect();
    let grand = means.iter().sum::<f64>() / m;
    let between = means.iter().map(|x| (x - grand).powi(2)).sum::<f64>() / (m - 1.0);
    let within = mean_gamma(0) * n / (n - 1.0);
    let total = within * (n - 1.0) / n + between;
    if total <= 0.0 || !total.is_finite() {
        return f64::NAN;
    }
    let rho = |lag: usize| 1.0 - (within - mean_gamma(lag)) / total;

    // Geyer's initial positive sequence over pairs of lags, made monotone.
    let mut pairs = vec![1.0 + rho(1)];
    let mut last_even = 1.0;
    let mut t = 1;
    while t < length - 3 && *pairs.last().expect("not empty") > 0.0 {
        let (even, odd) = (rho(t + 1), rho(t + 2));
        pairs.push(even + odd);
        last_even = even;
        t += 2;
    }
    // The pair at which the search ended lends only its positive even lag.
    let kept = pairs.len() - 1;
    let tail = if kept > 0 { last_even.max(0.0) } else { 0.0 };
    let (mut sum, mut lowest) = (0.0, f64::INFINITY);
    for &pair in &pairs[..kept.max(1)] {
        lowest = pair.min(lowest);
        sum += lowest;
    }
    let draws = m * n;
    let time = (-1.0 + 2.0 * sum + tail).max(std::f64::consts::LN_10 / ln(draws));
    draws / time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn autoregressive(n: usize, phi: f64, seed: u64) -> Vec<f64> {
        let mut stream = Streams::new(seed).row(Phase::Check, 0, 0);
        let mut x = stream.normal() / (1.0 - phi * phi).sqrt();
        (0..n)
            .map(|_| {
                x = phi * x + stream.normal();
                x
            })
            .collect()
    }

    /// The long-run variance of an AR(1) series is 1/(1 − φ)²; 40 series, so the mean is known to
    /// about 3%. The bound is 5 of those.
    #[test]
    fn long_run_variance_of_autoregressions() {
        for phi in [0.0, 0.5, 0.9] {
            let mean =
                (0..40).map(|s| long_run_variance(&autoregressive(20_000, phi, s))).sum::<f64>() / 40.0;
            let exact = 1.0 / (1.0 - phi).powi(2);
            assert!((mean / exact - 1.0).abs() < 0.1, "{phi}: {mean} {exact}");
        }
    }

    #[test]
    fn effective_sample_size_of_autoregressions() {
        for phi in [-0.3, 0.0, 0.8] {
            let series = autoregressive(50_000, phi, 9);
            let exact = 50_000.0 * (1.0 - phi) / (1.0 + phi);
            let ess = effective_sample_size(&[&series]);
            assert!((ess / exact - 1.0).abs() < 0.12, "{phi}: {ess} {exact}");
        }
    }

    #[test]
    fn degenerate_series_have_no_answer() {
        assert!(effective_sample_size(&[&[1.0; 100]]).is_nan());
        assert!(effective_sample_size(&[&[1.0, 2.0]]).is_nan());
        assert!(long_run_variance(&[1.0]).is_nan());
    }
}
