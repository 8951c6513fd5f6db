//! One mode, of any place and width: what every sampler must get right.

use super::{Class, Density, Expectation, LN_2_PI, Specimen};
use crate::p_values::log_gamma;

pub(super) fn specimens() -> Vec<Specimen> {
    vec![normal(), far_and_narrow(), correlated(), laplace(), log_gammas(), logistic()]
}

/// A product of normals, not normalised.
fn normals(means: Vec<f64>, deviations: Vec<f64>) -> Density {
    Density::new(means.len(), move |x, score| {
        let mut sum = 0.0;
        for j in 0..x.len() {
            let z = (x[j] - means[j]) / deviations[j];
            sum -= 0.5 * z * z;
            score[j] = -z / deviations[j];
        }
        sum
    })
}

fn normal() -> Specimen {
    Specimen::new("normal", Class::Easy, "standard normal, d = 5", normals(vec![0.0; 5], vec![1.0; 5]))
        .with_log_z(2.5 * LN_2_PI)
        .knowing(Expectation::normal(0, 0.0, 1.0))
        .knowing(Expectation::normal(4, 0.0, 1.0))
}

fn far_and_narrow() -> Specimen {
    let (means, deviations) = (vec![1e3, -40.0, 0.5], vec![50.0, 1.0, 0.01]);
    let log_z = 1.5 * LN_2_PI + deviations.iter().map(|d: &f64| d.ln()).sum::<f64>();
    let about = "normal of mean (1000, −40, 0.5) and widths (50, 1, 0.01)";
    Specimen::new("far-and-narrow", Class::Easy, about, normals(means, deviations))
        .with_log_z(log_z)
        .knowing(Expectation::normal(0, 1e3, 50.0))
        .knowing(Expectation::normal(2, 0.5, 0.01))
}

/// Precision matrix of correlations ρ^|i − j|, which has three diagonals.
fn correlated() -> Specimen {
    const DIM: usize = 10;
    let rho: f64 = 0.98;
    let over = 1.0 / (1.0 - rho * rho);
    let density = Density::new(DIM, move |x, score| {
        let mut sum = 0.0;
        for j in 0..DIM {
            let inner = if j == 0 || j == DIM - 1 { 1.0 } else { 1.0 + rho * rho };
            let before = if j > 0 { x[j - 1] } else { 0.0 };
            let after = if j + 1 < DIM { x[j + 1] } else { 0.0 };
            score[j] = -over * (inner * x[j] - rho * (before + after));
            sum += 0.5 * x[j] * score[j];
        }
        sum
    });
    let log_z = 0.5 * DIM as f64 * LN_2_PI + 0.5 * (DIM - 1) as f64 * (1.0 - rho * rho).ln();
    Specimen::new("correlated", Class::Easy, "normal, neighbours correlated to 0.98, d = 10", density)
        .with_log_z(log_z)
        .knowing(Expectation::normal(0, 0.0, 1.0))
        .knowing(Expectation::normal(9, 0.0, 1.0))
}

fn laplace() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x.signum());
        -x.iter().map(|x| x.abs()).sum::<f64>()
    });
    Specimen::new("laplace", Class::Easy, "exp(−Σ|x|), a kink at the mode, d = 3", density)
        .with_log_z(3.0 * 2f64.ln())
        .knowing([
            Expectation::mean("E[x0]", 0.0, |x| x[0]),
            Expectation::below(0, -1.0, 0.5 * (-1f64).exp()),
            Expectation::below(2, 2.0, 1.0 - 0.5 * (-2f64).exp()),
        ])
}

/// The logarithm of a gamma variable: skewed, and of log Z = ln Γ(a).
fn log_gammas() -> Specimen {
    const A: f64 = 0.5;
    let density = Density::new(4, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = A - x.exp());
        x.iter().map(|x| A * x - x.exp()).sum()
    });
    // Γ(½) has the quantiles of half a squared normal.
    let below = |t: f64| 1.0 - crate::p_values::normal_two_sided((2.0 * t.exp()).sqrt());
    Specimen::new("log-gamma", Class::Easy, "logarithms of Γ(½) variables, skewed, d = 4", density)
        .with_log_z(4.0 * log_gamma(A))
        .knowing([-4.0, -1.0, 0.0].map(|t| Expectation::below(0, t, below(t))))
}

fn logistic() -> Specimen {
    let density = Density::new(2, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -(0.5 * x).tanh());
        // −ln(2 + 2 cosh x), without overflow.
        x.iter().map(|x| -x.abs() - 2.0 * (-x.abs()).exp().ln_1p()).sum()
    });
    Specimen::new("logistic", Class::Easy, "logistic, d = 2", density)
        .with_log_z(0.0)
        .knowing([-2.0, 0.0, 3.0].map(|t: f64| Expectation::below(1, t, 1.0 / (1.0 + (-t).exp()))))
}
