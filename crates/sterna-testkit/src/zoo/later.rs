//! More shapes that were kept aside, made after others of that kind had been in sight when the looks for narrow modes and far ends were
//! made broader.

use super::aside::ridge;
use super::{Class, Density, Expectation, Hump, LN_2_PI, Specimen, integral, log_sum_exp, mixture, of_first};
use std::f64::consts::TAU;

pub(super) fn specimens() -> Vec<Specimen> {
    let of = |name, about, humps: Vec<Hump>, thresholds: &[f64]| {
        let known = of_first(&humps, thresholds);
        aside(name, about, mixture(humps)).with_log_z(0.0).knowing(known)
    };
    let hump = |weight: f64, centre: &[f64], width: f64| Hump::new(weight, centre.to_vec(), width);
    let three = vec![hump(0.6, &[0.0; 3], 1.0), hump(0.4, &[2.5, -1.5, 1.0], 0.12)];
    let five = vec![hump(0.5, &[0.0; 5], 1.0), hump(0.5, &[2.0, -2.0, 1.0, 0.0, 1.0], 0.3)];
    let far = vec![hump(0.7, &[0.0; 2], 2.0), hump(0.3, &[-15.0, 9.0], 0.3)];
    vec![
        of("thin-in-three", "0.6 N(0, 1) + 0.4 N((2.5, −1.5, 1), 0.12), d = 3", three, &[0.0, 2.4]),
        of("thin-in-five", "½ N(0, 1) + ½ N((2, −2, 1, 0, 1), 0.3), d = 5", five, &[0.0, 1.9]),
        of("thin-and-far", "0.7 N(0, 2) + 0.3 N((−15, 9), 0.3), d = 2", far, &[-15.0, 0.0]),
        two_logistics(),
        ridge(
            "exp-ridge",
            "x₀ ~ N(0, 1), x₁ ~ N(e^x₀ − √e, 0.1)",
            1.0,
            0.1,
            |x| x.exp() - 0.5f64.exp(),
            f64::exp,
        ),
        gumbel(),
        two_shells(),
        corner(),
    ]
}

fn aside(name: &'static str, about: &'static str, density: Density) -> Specimen {
    Specimen::new(name, Class::Aside, about, density)
}

/// log of a logistic density, and its slope.
fn logistic(x: f64) -> (f64, f64) {
    let e = (-x.abs()).exp();
    (-x.abs() - 2.0 * e.ln_1p(), -(0.5 * x).tanh())
}

/// Tails that fall off as slowly as those of one fall into the other.
fn two_logistics() -> Specimen {
    const CENTRES: [f64; 2] = [-8.0, 8.0];
    let density = Density::new(2, |x, score| {
        let log = |centre: f64| 0.5f64.ln() + x.iter().map(|x| logistic(x - centre).0).sum::<f64>();
        let logs = CENTRES.map(log);
        let all = log_sum_exp(&logs);
        score.fill(0.0);
        for (log, centre) in logs.iter().zip(CENTRES) {
            score.iter_mut().zip(x).for_each(|(s, x)| *s += (log - all).exp() * logistic(x - centre).1);
        }
        all
    });
    let below = |t: f64| 0.5 * CENTRES.iter().map(|c| 1.0 / (1.0 + (c - t).exp())).sum::<f64>();
    aside("two-logistics", "½ logistic at −8 + ½ logistic at 8, d = 2", density)
        .with_log_z(0.0)
        .knowing([-10.0, 0.0, 9.0].map(|t| Expectation::below(0, t, below(t))))
        .knowing([Expectation::mean("E[x1]", 0.0, |x| x[1])])
}

/// The law of a largest value: steep on one side.
fn gumbel() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = (-x).exp() - 1.0);
        x.iter().map(|x| -x - (-x).exp()).sum()
    });
    let below = |t: f64| (-(-t).exp()).exp();
    aside("gumbel", "Gumbel, d = 3", density)
        .with_log_z(0.0)
        .knowing([-1.0, 0.0, 3.0].map(|t| Expectation::below(1, t, below(t))))
        .knowing([Expectation::mean("E[x0]", 0.577_215_664_901_532_9, |x| x[0])])
}

/// Two spheres beside each other.
fn two_shells() -> Specimen {
    const RADIUS: f64 = 2.0;
    const WIDTH: f64 = 0.15;
    const CENTRES: [f64; 2] = [-3.5, 3.5];
    let density = Density::new(3, |x, score| {
        let radius = |centre: f64| ((x[0] - centre).powi(2) + x[1] * x[1] + x[2] * x[2]).sqrt();
        let logs = CENTRES.map(|centre| -0.5 * ((radius(centre) - RADIUS) / WIDTH).powi(2));
        let all = log_sum_exp(&logs);
        score.fill(0.0);
        for (log, centre) in logs.iter().zip(CENTRES) {
            let r = radius(centre);
            let pull = -(log - all).exp() * (r - RADIUS) / (WIDTH * WIDTH * r.max(1e-300));
            let away = [x[0] - centre, x[1], x[2]];
            score.iter_mut().zip(away).for_each(|(s, away)| *s += pull * away);
        }
        all
    });
    let radial = |r: f64| r * r * (-0.5 * ((r - RADIUS) / WIDTH).powi(2)).exp();
    let one = 2.0 * TAU * integral(radial, RADIUS - 12.0 * WIDTH, RADIUS + 12.0 * WIDTH, 4000);
    aside("two-shells", "two shells of radius 2 and width 0.15, 7 apart, d = 3", density)
        .with_log_z((2.0 * one).ln())
        .knowing([Expectation::below(0, 0.0, 0.5), Expectation::below(1, 0.0, 0.5)])
        .knowing([Expectation::share("P(|x0| < 3.5)", 0.5, |x| x[0].abs() < 3.5)])
}

/// Exponentials from a corner on, beside a normal.
fn corner() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.copy_from_slice(&[-1.0, -1.0, -x[2]]);
        match x[0] >= 0.0 && x[1] >= 0.0 {
            true => -x[0] - x[1] - 0.5 * x[2] * x[2] - 0.5 * LN_2_PI,
            false => f64::NEG_INFINITY,
        }
    });
    let below = |t: f64| 1.0 - (-t).exp();
    aside("corner", "exponentials from 0 on in 2 coordinates, a normal in the third", density)
        .with_log_z(0.0)
        .knowing([0.1, 1.0, 3.0].map(|t| Expectation::below(0, t, below(t))))
        .knowing(Expectation::normal(2, 0.0, 1.0))
}
