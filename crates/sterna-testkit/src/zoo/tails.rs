//! Tails that fall off by a power, and funnels.

use super::{Class, Density, Expectation, LN_2_PI, Specimen};
use crate::p_values::log_gamma;
use std::f64::consts::PI;

pub(super) fn specimens() -> Vec<Specimen> {
    vec![
        student(),
        spherical_student(),
        cauchy(),
        horseshoe(),
        funnel("funnel-1", "funnel of scale 1: v ~ N(0, 1), four others N(0, eᵛ)", 5, 1.0),
        funnel("funnel-3", "funnel of scale 3: v ~ N(0, 9), nine others N(0, eᵛ)", 10, 3.0),
        funnel("funnel-5", "funnel of scale 5: v ~ N(0, 25), nine others N(0, eᵛ)", 10, 5.0),
    ]
}

/// Student's t with three degrees in each coordinate, not normalised.
fn student() -> Specimen {
    const NU: f64 = 3.0;
    let density = Density::new(3, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -(NU + 1.0) * x / (NU + x * x));
        x.iter().map(|x| -0.5 * (NU + 1.0) * (x * x / NU).ln_1p()).sum()
    });
    let log_z = log_gamma(0.5 * NU) + 0.5 * (NU * PI).ln() - log_gamma(0.5 * (NU + 1.0));
    // P(T < t) of three degrees.
    let below = |t: f64| {
        let u = t / 3f64.sqrt();
        0.5 + (u / (1.0 + u * u) + u.atan()) / PI
    };
    Specimen::new("student", Class::Tails, "Student's t of 3 degrees in each of 3 coordinates", density)
        .with_log_z(3.0 * log_z)
        .knowing([-2.0, 0.0, 4.0].map(|t| Expectation::below(0, t, below(t))))
}

/// The multivariate t of two degrees: all coordinates are large together.
fn spherical_student() -> Specimen {
    const NU: f64 = 2.0;
    const DIM: usize = 5;
    let d = DIM as f64;
    let density = Density::new(DIM, move |x, score| {
        let square: f64 = x.iter().map(|x| x * x).sum();
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -(NU + d) * x / (NU + square));
        -0.5 * (NU + d) * (square / NU).ln_1p()
    });
    let log_z = log_gamma(0.5 * NU) + 0.5 * d * (NU * PI).ln() - log_gamma(0.5 * (NU + d));
    let below = |t: f64| 0.5 + 0.5 * t / (2.0 + t * t).sqrt();
    Specimen::new("spherical-student", Class::Tails, "multivariate t of 2 degrees, d = 5", density)
        .with_log_z(log_z)
        .knowing([-3.0, 0.0, 6.0].map(|t: f64| Expectation::below(2, t, below(t))))
}

fn cauchy() -> Specimen {
    let density = Density::new(2, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -2.0 * x / (1.0 + x * x));
        -x.iter().map(|x| (x * x).ln_1p()).sum::<f64>()
    });
    Specimen::new("cauchy", Class::Tails, "Cauchy, d = 2", density)
        .with_log_z(2.0 * PI.ln())
        .knowing([-5.0, 0.0, 1.0].map(|t: f64| Expectation::below(0, t, 0.5 + t.atan() / PI)))
}

/// x ~ N(0, λ²) with a half-Cauchy λ, of which the logarithm is the first coordinate; normalised.
fn horseshoe() -> Specimen {
    let density = Density::new(4, |x, score| {
        let l = x[0];
        // ln(2/π) + l − ln(1 + e²ˡ), without overflow.
        let soft = if l > 0.0 { 2.0 * l + (-2.0 * l).exp().ln_1p() } else { (2.0 * l).exp().ln_1p() };
        let (mut sum, precision) = ((2.0 / PI).ln() + l - soft, (-2.0 * l).exp());
        score[0] = 1.0 - 2.0 / (1.0 + precision);
        for j in 1..4 {
            sum -= 0.5 * (LN_2_PI + x[j] * x[j] * precision) + l;
            score[0] += x[j] * x[j] * precision - 1.0;
            score[j] = -x[j] * precision;
        }
        sum
    });
    let below = |t: f64| 2.0 / PI * t.exp().atan();
    Specimen::new(
        "horseshoe",
        Class::Funnels,
        "N(0, λ²) of a half-Cauchy λ, whose logarithm is sampled, d = 4",
        density,
    )
    .with_log_z(0.0)
    .knowing([-2.0, 0.0, 2.0].map(|t: f64| Expectation::below(0, t, below(t))))
}

fn funnel(name: &'static str, about: &'static str, dim: usize, scale: f64) -> Specimen {
    let density = Density::new(dim, move |x, score| {
        let (v, precision) = (x[0], (-x[0]).exp());
        let square: f64 = x[1..].iter().map(|x| x * x).sum();
        let others = (dim - 1) as f64;
        score[0] = -v / (scale * scale) - 0.5 * others + 0.5 * square * precision;
        score[1..].iter_mut().zip(&x[1..]).for_each(|(s, x)| *s = -x * precision);
        -0.5 * (LN_2_PI + v * v / (scale * scale))
            - scale.ln()
            - 0.5 * (others * (LN_2_PI + v) + square * precision)
    });
    Specimen::new(name, Class::Funnels, about, density)
        .with_log_z(0.0)
        .knowing(Expectation::normal(0, 0.0, scale))
        .knowing([Expectation::below(1, 0.0, 0.5)])
}
