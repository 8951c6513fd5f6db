//! Jumps, walls and poles.

use super::{Class, Density, Expectation, LN_2_PI, Specimen};
use crate::p_values::{log_gamma, normal_cdf, upper_gamma};

pub(super) fn specimens() -> Vec<Specimen> {
    vec![cube(), half_space(), step(), pole(), staircase()]
}

fn cube() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.fill(0.0);
        if x.iter().all(|x| (0.0..1.0).contains(x)) { 0.0 } else { f64::NEG_INFINITY }
    });
    Specimen::new("cube", Class::Edges, "uniform in a cube of side 1, nothing outside", density)
        .with_log_z(0.0)
        .knowing([
            Expectation::mean("E[x0]", 0.5, |x| x[0]),
            Expectation::below(1, 0.1, 0.1),
            Expectation::below(2, 0.9, 0.9),
        ])
}

fn half_space() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        match x[0] > 1.0 {
            true => -0.5 * x.iter().map(|x| x * x).sum::<f64>(),
            false => f64::NEG_INFINITY,
        }
    });
    let above = normal_cdf(-1.0);
    let below = |t: f64| (normal_cdf(t) - normal_cdf(1.0)) / above;
    Specimen::new(
        "half-space",
        Class::Edges,
        "standard normal where x0 > 1, nothing elsewhere, d = 3",
        density,
    )
    .with_log_z(1.5 * LN_2_PI + above.ln())
    .knowing([1.2, 2.0].map(|t| Expectation::below(0, t, below(t))))
    .knowing(Expectation::normal(1, 0.0, 1.0))
}

/// Three times as dense on one side.
fn step() -> Specimen {
    let density = Density::new(2, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        let more = if x[0] > 0.0 { 9f64.ln() } else { 0.0 };
        more - 0.5 * x.iter().map(|x| x * x).sum::<f64>()
    });
    Specimen::new("step", Class::Edges, "standard normal, nine times as dense where x0 > 0, d = 2", density)
        .with_log_z(LN_2_PI + 5f64.ln())
        .knowing([Expectation::below(0, 0.0, 0.1)])
        .knowing(Expectation::normal(1, 0.0, 1.0))
}

/// |x|^−0.9 e^(−x²/2).
fn pole() -> Specimen {
    let density = Density::new(1, |x, score| {
        score[0] = -0.9 / x[0] - x[0];
        -0.9 * x[0].abs().ln() - 0.5 * x[0] * x[0]
    });
    // ∫ = 2^(a/2) Γ(a/2) with a = 0.1, and x²/2 ~ Γ(a/2).
    let within = |t: f64| 1.0 - upper_gamma(0.05, 0.5 * t * t);
    Specimen::new("pole", Class::Edges, "|x|^−0.9 e^(−x²/2)", density)
        .with_log_z(0.05 * 2f64.ln() + log_gamma(0.05))
        .knowing(
            [1e-6, 1e-2, 1.0]
                .map(|t| Expectation::share(format!("P(|x0| < {t})"), within(t), move |x| x[0].abs() < t)),
        )
        .knowing([Expectation::below(0, 0.0, 0.5)])
}

/// A normal whose density is rounded down to steps: its score is zero everywhere.
fn staircase() -> Specimen {
    let density = Density::new(2, |x, score| {
        score.fill(0.0);
        x.iter().map(|x| -x.abs().floor()).sum()
    });
    // Each side is a geometric series of steps.
    let side = 1.0 / (1.0 - (-1f64).exp());
    let below_one = 0.5 + 0.5 / side;
    Specimen::new("staircase", Class::Edges, "exp(−Σ⌊|x|⌋), d = 2: flat steps, a score of zero", density)
        .with_log_z(2.0 * (2.0 * side).ln())
        .knowing([Expectation::below(0, 1.0, below_one), Expectation::below(1, 0.0, 0.5)])
}
