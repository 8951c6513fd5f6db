//! p-values: normal, χ², Kolmogorov and Smirnov.

/// log Γ(x) for x > 0, by Lanczos' approximation (g = 7, nine terms), good to 10⁻¹³.
pub fn log_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = C[0] + C[1..].iter().enumerate().map(|(i, c)| c / (x + i as f64 + 1.0)).sum::<f64>();
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// Q(a, x) = Γ(a, x)/Γ(a), the upper regularised incomplete gamma function; small values keep their
/// relative precision.
pub fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let log_front = a * x.ln() - x - log_gamma(a);
    if x < a + 1.0 {
        // Series for P = 1 − Q.
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - log_front.exp() * sum;
    }
    // Lentz's continued fraction.
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut h = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    log_front.exp() * h
}

/// P(|Z| > |z|) for a standard normal Z.
pub fn normal_two_sided(z: f64) -> f64 {
    upper_gamma(0.5, 0.5 * z * z)
}

/// Φ(z) of a standard normal, with relative precision in the lower tail.
pub fn normal_cdf(z: f64) -> f64 {
    let outside = 0.5 * normal_two_sided(z);
    if z < 0.0 { outside } else { 1.0 - outside }
}

/// P(χ² > statistic) with the given degrees of freedom.
pub fn chi_square(statistic: f64, degrees: usize) -> f64 {
    upper_gamma(0.5 * degrees as f64, 0.5 * statistic)
}

/// χ² test that counts came from the given probabilities; returns its p-value.
///
/// # Panics
/// If the lengths differ or are below two.
pub fn chi_square_counts(counts: &[u64], probabilities: &[f64]) -> f64 {
    assert!(counts.len() == probabilities.len() && counts.len() >= 2);
    let n = counts.iter().sum::<u64>() as f64;
    let term = |(&count, &p): (&u64, &f64)| (count as f64 - n * p).powi(2) / (n * p);
    chi_square(counts.iter().zip(probabilities).map(term).sum(), counts.len() - 1)
}

/// P(√n D > λ) in the limit of many samples (Kolmogorov's law).
fn kolmogorov(lambda: f64) -> f64 {
    if lambda < 0.2 {
        return 1.0;
    }
    if lambda < 1.0 {
        // The dual series converges fast where the other does not.
        let unit = -std::f64::consts::PI.powi(2) / (8.0 * lambda * lambda);
        let sum: f64 = (1..20).step_by(2).map(|k| (unit * f64::from(k * k)).exp()).sum();
        return 1.0 - std::f64::consts::TAU.sqrt() / lambda * sum;
    }
    let term =
        |k: i32| (-2.0 * f64::from(k * k) * lambda * lambda).exp() * if k % 2 == 1 { 2.0 } else { -2.0 };
    (1..20).map(term).sum()
}

/// Kolmogorov's law with Stephens' correction for `n` samples.
fn kolmogorov_of(distance: f64, n: f64) -> f64 {
    kolmogorov(distance * (n.sqrt() + 0.12 + 0.11 / n.sqrt()))
}

/// p-value of samples against a distribution function; zero if a sample is not a number.
pub fn kolmogorov_smirnov(samples: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    if samples.is_empty() || samples.iter().any(|x| x.is_nan()) {
        return 0.0;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mut distance: f64 = 0.0;
    for (i, &x) in sorted.iter().enumerate() {
        let (i, f) = (i as f64, cdf(x));
        distance = distance.max((f - i / n).abs()).max(((i + 1.0) / n - f).abs());
    }
    kolmogorov_of(distance, n)
}

/// p-value of two samples having one law; ties make it conservative. Zero if anything is not a number.
pub fn kolmogorov_smirnov_two(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|x| x.is_nan()) {
        return 0.0;
    }
    let sorted = |x: &[f64]| {
        let mut x = x.to_vec();
        x.sort_unstable_by(f64::total_cmp);
        x
    };
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j) = (0, 0);
    let mut distance: f64 = 0.0;
    while i < a.len() && j < b.len() {
        let x = a[i].min(b[j]);
        while i < a.len() && a[i] <= x {
            i += 1;
        }
        while j < b.len() && b[j] <= x {
            j += 1;
        }
        distance = distance.max((i as f64 / n - j as f64 / m).abs());
    }
    kolmogorov_of(distance, n * m / (n + m))
}

/// Mean of independent values, and its standard error.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

/// Two-sided p-value of `difference` being zero but for a normal error. Errors below a billionth of
/// `scale` count as rounding. Zero if anything is not a number.
pub fn z_test(difference: f64, standard_error: f64, scale: f64) -> f64 {
    if difference.is_nan() || standard_error.is_nan() {
        return 0.0;
    }
    normal_two_sided(difference / floor_of_error(standard_error, scale))
}

/// One-sided p-value of `excess` ≤ 0 but for a normal error; see [`z_test`].
pub fn z_test_at_most_zero(excess: f64, standard_error: f64, scale: f64) -> f64 {
    if excess.is_nan() || standard_error.is_nan() {
        return 0.0;
    }
    normal_cdf(-excess / floor_of_error(standard_error, scale))
}

fn floor_of_error(standard_error: f64, scale: f64) -> f64 {
    standard_error.max(1e-9 * scale.abs()).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::streams::{Phase, Streams};

    /// Values from tables: NIST's handbook, and R's pnorm and pchisq.
    #[test]
    fn agrees_with_tables() {
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        close(log_gamma(0.5), 0.5 * std::f64::consts::PI.ln());
        close(log_gamma(10.0), 362_880f64.ln());
        close(normal_two_sided(1.0), 0.317_310_507_862_914_15);
        close(normal_two_sided(5.0), 5.733_031_437_583_878e-7);
        close(normal_cdf(-2.0), 0.022_750_131_948_179_21);
        close(normal_cdf(1.5), 0.933_192_798_731_141_9);
        close(chi_square(3.841_458_820_694_124, 1), 0.05);
        // What is beyond all bounds is no chance.
        assert_eq!((chi_square(f64::INFINITY, 3), normal_two_sided(f64::NEG_INFINITY)), (0.0, 0.0));
        close(chi_square(18.307_038_053_275_146, 10), 0.05);
        close(chi_square(4.605_170_185_988_092, 2), 0.1);
        // Kolmogorov's quantiles: 1.3581 at 5%, 1.6276 at 1%.
        assert!((kolmogorov(1.358_098_639) - 0.05).abs() < 1e-8);
        assert!((kolmogorov(1.627_623_611) - 0.01).abs() < 1e-8);
        assert!((kolmogorov(0.999_999_999) - kolmogorov(1.000_000_001)).abs() < 1e-8);
    }

    fn uniforms(n: u32, seed: u64) -> Vec<f64> {
        (0..n).map(|i| Streams::new(seed).row(Phase::Check, 0, i).uniform()).collect()
    }

    /// p-values of true hypotheses are uniform: 400 of each test, themselves tested at 10⁻⁶ each.
    #[test]
    fn p_values_of_true_hypotheses_are_uniform() {
        let mut all: [Vec<f64>; 4] = Default::default();
        for seed in 0..400 {
            let (a, b) = (uniforms(1000, 2 * seed), uniforms(1500, 2 * seed + 1));
            all[0].push(kolmogorov_smirnov(&a, |x| x));
            all[1].push(kolmogorov_smirnov_two(&a, &b));
            let (mean, error) = mean_and_error(&a);
            all[2].push(z_test(mean - 0.5, error, 1.0));
            let mut counts = [0; 8];
            b.iter().for_each(|x| counts[(8.0 * x) as usize] += 1);
            all[3].push(chi_square_counts(&counts, &[0.125; 8]));
        }
        for p in &all {
            assert!(kolmogorov_smirnov(p, |x| x) > 1e-6, "{p:?}");
        }
    }

    #[test]
    fn false_hypotheses_are_rejected() {
        let (a, b) = (uniforms(3000, 1), uniforms(3000, 2));
        let squared: Vec<f64> = b.iter().map(|x| x.powf(1.3)).collect();
        assert!(kolmogorov_smirnov(&squared, |x| x) < 1e-6);
        assert!(kolmogorov_smirnov_two(&a, &squared) < 1e-6);
        assert!(chi_square_counts(&[600, 400], &[0.5, 0.5]) < 1e-6);
        assert!(z_test(6.0, 1.0, 1.0) < 1e-6 && z_test_at_most_zero(6.0, 1.0, 1.0) < 1e-6);
    }

    #[test]
    fn nonsense_is_rejected() {
        assert_eq!(kolmogorov_smirnov(&[f64::NAN], |x| x), 0.0);
        assert_eq!(kolmogorov_smirnov_two(&[1.0], &[f64::NAN]), 0.0);
        assert_eq!(z_test(f64::NAN, 1.0, 1.0), 0.0);
        assert_eq!(z_test(0.0, 0.0, 1.0), 1.0);
        assert_eq!(z_test(1.0, 0.0, 1.0), 0.0);
    }
}
