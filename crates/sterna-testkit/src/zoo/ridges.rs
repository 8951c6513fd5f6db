//! Bent densities, and those that are narrow in a direction that turns.

use super::aside::ridge;
use super::{Class, Density, Expectation, LN_2_PI, Specimen, integral, log_sum_exp};
use crate::p_values::normal_cdf;

pub(super) fn specimens() -> Vec<Specimen> {
    vec![banana(), rosenbrock(), bent_chain(), cubic(), circle(), shell(), needle(), cross()]
}

/// y − x² + 1 ~ N(0, w²) beside x ~ N(0, 1).
fn banana() -> Specimen {
    const WIDTH: f64 = 0.1;
    let density = Density::new(2, |x, score| {
        let off = (x[1] - x[0] * x[0] + 1.0) / (WIDTH * WIDTH);
        score[0] = -x[0] + 2.0 * x[0] * off;
        score[1] = -off;
        -0.5 * x[0] * x[0] - 0.5 * off * off * WIDTH * WIDTH
    });
    Specimen::new(
        "banana",
        Class::Ridges,
        "the banana of the book: a normal of width 0.1 along a parabola",
        density,
    )
    .with_log_z(LN_2_PI + WIDTH.ln())
    .knowing(Expectation::normal(0, 0.0, 1.0))
    .knowing([Expectation::mean("E[x1]", 0.0, |x| x[1])])
}

/// Rosenbrock's function as a density: x ~ N(1, 10), y ~ N(x², 1/10) in variances.
fn rosenbrock() -> Specimen {
    let (across, along): (f64, f64) = (0.1, 10.0);
    let density = Density::new(2, move |x, score| {
        let (a, off) = (x[0] - 1.0, x[1] - x[0] * x[0]);
        score[0] = -a / along + 2.0 * x[0] * off / across;
        score[1] = -off / across;
        -0.5 * a * a / along - 0.5 * off * off / across
    });
    Specimen::new(
        "rosenbrock",
        Class::Ridges,
        "Rosenbrock: x ~ N(1, 10), y ~ N(x², 0.1) (variances)",
        density,
    )
    .with_log_z(LN_2_PI + 0.5 * (across * along).ln())
    .knowing(Expectation::normal(0, 1.0, along.sqrt()))
    .knowing([Expectation::mean("E[x1]", 11.0, |x| x[1])])
}

/// Each coordinate is bent along the one before.
fn bent_chain() -> Specimen {
    const DIM: usize = 4;
    const VARIANCE: f64 = 0.05;
    let density = Density::new(DIM, |x, score| {
        score.fill(0.0);
        score[0] = -x[0];
        let mut sum = -0.5 * x[0] * x[0];
        for j in 1..DIM {
            let off = x[j] - x[j - 1] * x[j - 1];
            sum -= 0.5 * off * off / VARIANCE;
            score[j] -= off / VARIANCE;
            score[j - 1] += 2.0 * x[j - 1] * off / VARIANCE;
        }
        sum
    });
    let about = "x₀ ~ N(0, 1), each of 3 others N(the square of the one before, 0.05)";
    Specimen::new("bent-chain", Class::Ridges, about, density)
        .with_log_z(0.5 * DIM as f64 * LN_2_PI + 1.5 * VARIANCE.ln())
        .knowing(Expectation::normal(0, 0.0, 1.0))
        .knowing([
            Expectation::mean("E[x1]", 1.0, |x| x[1]),
            // E[x1²] = E[x0⁴] + variance.
            Expectation::mean("E[x2]", 3.0 + VARIANCE, |x| x[2]),
        ])
}

/// −(r − R)²/(2 w²).
fn radial(dim: usize, radius: f64, width: f64) -> Density {
    Density::new(dim, move |x, score| {
        let r = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let off = (r - radius) / (width * width);
        score.iter_mut().zip(x).for_each(|(s, x)| *s = if r > 0.0 { -off * x / r } else { 0.0 });
        -0.5 * off * off * width * width
    })
}

/// log of ∫ rᵈ⁻¹ e^(−(r − R)²/(2 w²)) dr.
fn of_radius(dim: i32, radius: f64, width: f64) -> f64 {
    let f = |r: f64| r.powi(dim - 1) * (-0.5 * ((r - radius) / width).powi(2)).exp();
    integral(f, (radius - 12.0 * width).max(0.0), radius + 12.0 * width, 4000).ln()
}

fn cubic() -> Specimen {
    let about = "x₀ ~ N(0, 1.5), x₁ ~ N(x₀³/4, 0.2)";
    let aside = ridge("cubic-ridge", about, 1.5, 0.2, |x| 0.25 * x.powi(3), |x| 0.75 * x * x);
    Specimen { class: Class::Ridges, ..aside }
}

fn circle() -> Specimen {
    Specimen::new("circle", Class::Ridges, "a circle of radius 4 and width 0.1", radial(2, 4.0, 0.1))
        .with_log_z(std::f64::consts::TAU.ln() + of_radius(2, 4.0, 0.1))
        .knowing([
            Expectation::mean("E[x0]", 0.0, |x| x[0]),
            Expectation::below(1, 0.0, 0.5),
            Expectation::share("P(x0 > |x1|)", 0.25, |x| x[0] > x[1].abs()),
        ])
}

fn shell() -> Specimen {
    Specimen::new("shell", Class::Ridges, "a shell of radius 3 and width 0.2, d = 3", radial(3, 3.0, 0.2))
        .with_log_z((4.0 * std::f64::consts::PI).ln() + of_radius(3, 3.0, 0.2))
        .knowing([
            Expectation::mean("E[x0]", 0.0, |x| x[0]),
            Expectation::below(1, 0.0, 0.5),
            Expectation::below(2, 0.0, 0.5),
        ])
}

/// A normal a thousand times longer than wide, on a diagonal.
fn needle() -> Specimen {
    let (long, wide): (f64, f64) = (10.0, 0.01);
    let density = Density::new(2, move |x, score| {
        let (along, across) = ((x[0] + x[1]) / 2f64.sqrt(), (x[0] - x[1]) / 2f64.sqrt());
        let (a, b) = (along / (long * long), across / (wide * wide));
        score[0] = -(a + b) / 2f64.sqrt();
        score[1] = -(a - b) / 2f64.sqrt();
        -0.5 * (along * a + across * b)
    });
    let deviation = ((long * long + wide * wide) / 2.0).sqrt();
    Specimen::new(
        "needle",
        Class::Ridges,
        "a normal a thousand times longer than wide, on the diagonal",
        density,
    )
    .with_log_z(LN_2_PI + (long * wide).ln())
    .knowing([
        Expectation::mean("E[x0]", 0.0, |x| x[0]),
        Expectation::below(0, deviation, normal_cdf(1.0)),
        Expectation::below(1, 0.0, 0.5),
    ])
}

/// Two needles across each other: one optimum, from which climbs along either come.
fn cross() -> Specimen {
    const LONG: f64 = 4.0;
    const THIN: f64 = 0.05;
    let density = Density::new(2, |x, score| {
        let log = |a: f64, b: f64| {
            -0.5 * ((a / LONG).powi(2) + (b / THIN).powi(2)) - LN_2_PI - (2.0 * LONG * THIN).ln()
        };
        let logs = [log(x[0], x[1]), log(x[1], x[0])];
        let all = log_sum_exp(&logs);
        let [lying, standing] = logs.map(|log| (log - all).exp());
        score[0] = -x[0] * (lying / (LONG * LONG) + standing / (THIN * THIN));
        score[1] = -x[1] * (lying / (THIN * THIN) + standing / (LONG * LONG));
        all
    });
    let below = |t: f64| Expectation::below(0, t, 0.5 * (normal_cdf(t / LONG) + normal_cdf(t / THIN)));
    Specimen::new("cross", Class::Ridges, "two needles of length 4 and width 0.05 across each other", density)
        .with_log_z(0.0)
        .knowing([below(-2.0), below(0.0), below(2.0)])
        .knowing([Expectation::share("P(|x0| < |x1|)", 0.5, |x| x[0].abs() < x[1].abs())])
}
