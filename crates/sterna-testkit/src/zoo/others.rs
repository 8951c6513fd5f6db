//! Shapes of other kinds than all before them, kept aside: no setting and no threshold was chosen by them.

use super::aside::ridge;
use super::{Class, Density, Expectation, Hump, LN_2_PI, Specimen, integral, mixture, of_first};
use crate::p_values::normal_cdf;
use std::f64::consts::PI;

pub(super) fn specimens() -> Vec<Specimen> {
    let of = |name, about, humps: Vec<Hump>, thresholds: &[f64]| {
        let known = of_first(&humps, thresholds);
        aside(name, about, mixture(humps)).with_log_z(0.0).knowing(known)
    };
    let nested = vec![Hump::new(0.9, vec![0.0; 6], 0.1), Hump::new(0.1, vec![0.0; 6], 5.0)];
    let apart = |at: f64| (0..30).map(|j| if j == 0 { at } else { 0.0 }).collect();
    let thirty = vec![Hump::new(0.4, apart(-3.0), 1.0), Hump::new(0.6, apart(3.0), 1.0)];
    let all: f64 = (0..10).map(|k| 0.6f64.powi(k)).sum();
    let tooth = |k: i32| Hump::new(0.6f64.powi(k) / all, vec![f64::from(k), 0.0], 0.1);
    vec![
        of("nested", "0.9 N(0, 0.1) + 0.1 N(0, 5), d = 6", nested, &[-4.0, 0.05]),
        of("one-of-thirty", "two modes 6 apart in one of 30 coordinates", thirty, &[-3.0, 0.0]),
        of(
            "comb",
            "ten normals of width 0.1, one apart, each 0.6 of the last",
            (0..10).map(tooth).collect(),
            &[0.0, 2.5, 6.5],
        ),
        // |x| has the mean 1.5 √(2/π).
        ridge(
            "vee",
            "x₀ ~ N(0, 1.5), x₁ ~ N(2 |x₀| − 2.39, 0.1): a sharp bend",
            1.5,
            0.1,
            |x| 2.0 * x.abs() - 2.393_653_682_408_596,
            |x| 2.0 * x.signum(),
        ),
        hyperbola(),
        cross(),
        logit_beta(),
        one_sided_bells(),
        volatility(),
        pareto(),
        ball(),
        half_dirichlet(),
        t_in_twenty(),
        saddle(),
        corrugated(),
    ]
}

fn aside(name: &'static str, about: &'static str, density: Density) -> Specimen {
    Specimen::new(name, Class::Aside, about, density)
}

/// Two factors of which the product alone is known: two branches that go on along the axes.
fn hyperbola() -> Specimen {
    const WIDTH: f64 = 0.1;
    let density = Density::new(2, |x, score| {
        let off = (x[0] * x[1] - 1.0) / (WIDTH * WIDTH);
        score.copy_from_slice(&[-x[0] - x[1] * off, -x[1] - x[0] * off]);
        -0.5 * (x[0] * x[0] + x[1] * x[1] + off * off * WIDTH * WIDTH)
    });
    // Given one factor, the product is normal.
    let given = |a: f64| {
        let variance = a * a + WIDTH * WIDTH;
        (-0.5 * (a * a + 1.0 / variance + variance.ln() + 2.0 * LN_2_PI)).exp()
    };
    let all = integral(given, -12.0, 12.0, 24_000);
    let within = integral(given, -1.0, 1.0, 8000) / all;
    aside("hyperbola", "N(0, 1) in 2 coordinates whose product is 1 ± 0.1", density)
        .with_log_z(1.5 * LN_2_PI + WIDTH.ln() + all.ln())
        .knowing([
            Expectation::below(0, 0.0, 0.5),
            Expectation::share("P(|x0| < 1)", within, |x| x[0].abs() < 1.0),
            Expectation::share("P(|x0| < |x1|)", 0.5, |x| x[0].abs() < x[1].abs()),
        ])
}

/// Two needles across each other.
fn cross() -> Specimen {
    const LONG: f64 = 4.0;
    const THIN: f64 = 0.05;
    let density = Density::new(2, |x, score| {
        let log = |a: f64, b: f64| {
            -0.5 * ((a / LONG).powi(2) + (b / THIN).powi(2)) - LN_2_PI - (2.0 * LONG * THIN).ln()
        };
        let logs = [log(x[0], x[1]), log(x[1], x[0])];
        let all = super::log_sum_exp(&logs);
        let [lying, standing] = logs.map(|log| (log - all).exp());
        score[0] = -x[0] * (lying / (LONG * LONG) + standing / (THIN * THIN));
        score[1] = -x[1] * (lying / (THIN * THIN) + standing / (LONG * LONG));
        all
    });
    let below = |t: f64| Expectation::below(0, t, 0.5 * (normal_cdf(t / LONG) + normal_cdf(t / THIN)));
    aside("cross", "two needles of length 4 and width 0.05 across each other", density)
        .with_log_z(0.0)
        .knowing([below(-2.0), below(0.0), below(2.0)])
        .knowing([Expectation::share("P(|x0| < |x1|)", 0.5, |x| x[0].abs() < x[1].abs())])
}

/// Shares as they are sampled: their log odds, with exponential tails of two speeds.
fn logit_beta() -> Specimen {
    const POWERS: [f64; 2] = [0.3, 0.6];
    let one = |x: f64| POWERS[0] * x - (POWERS[0] + POWERS[1]) * (x.max(0.0) + (-x.abs()).exp().ln_1p());
    let density = Density::new(3, move |x, score| {
        let slope = |x: f64| POWERS[0] - (POWERS[0] + POWERS[1]) / (1.0 + (-x).exp());
        score.iter_mut().zip(x).for_each(|(s, x)| *s = slope(*x));
        x.iter().map(|&x| one(x)).sum()
    });
    let all = integral(|x| one(x).exp(), -160.0, 80.0, 48_000);
    let below = |t: f64| Expectation::below(0, t, integral(|x| one(x).exp(), -160.0, t, 48_000) / all);
    aside("logit-beta", "log odds of shares with the law Beta(0.3, 0.6), d = 3", density)
        .with_log_z(3.0 * all.ln())
        .knowing([below(-6.0), below(-1.0), below(2.0)])
}

/// Normals that fall off faster on one side: 2 φ(x) σ(8x).
fn one_sided_bells() -> Specimen {
    const STEEP: f64 = 8.0;
    let one = |x: f64| {
        let t = STEEP * x;
        2f64.ln() - 0.5 * x * x - (-t).max(0.0) - (-t.abs()).exp().ln_1p()
    };
    let density = Density::new(5, move |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x + STEEP / (1.0 + (STEEP * x).exp()));
        x.iter().map(|&x| one(x)).sum()
    });
    let all = integral(|x| one(x).exp(), -10.0, 10.0, 20_000);
    let below = |t: f64| Expectation::below(2, t, integral(|x| one(x).exp(), -10.0, t, 20_000) / all);
    let mean = integral(|x| x * one(x).exp(), -10.0, 10.0, 20_000) / all;
    // σ(t) + σ(−t) = 1.
    aside("one-sided-bells", "2 φ(x) σ(8x), d = 5", density).with_log_z(2.5 * LN_2_PI).knowing([
        below(0.0),
        below(0.5),
        below(2.0),
        Expectation::mean("E[x4]", mean, |x| x[4]),
    ])
}

/// Logarithms of variances that follow each other, and a number of each.
fn volatility() -> Specimen {
    const KEPT: f64 = 0.9;
    const NEW: f64 = 0.6;
    let density = Density::new(8, |x, score| {
        let (states, values) = x.split_at(4);
        score.fill(0.0);
        let mut sum = 0.0;
        for t in 0..4 {
            let (before, width) = if t == 0 { (0.0, 1.0) } else { (KEPT * states[t - 1], NEW) };
            let off = (states[t] - before) / (width * width);
            score[t] -= off;
            if t > 0 {
                score[t - 1] += KEPT * off;
            }
            let precision = (-states[t]).exp();
            score[t] += 0.5 * values[t] * values[t] * precision - 0.5;
            score[4 + t] = -values[t] * precision;
            sum -= 0.5 * (off * off * width * width + values[t] * values[t] * precision + states[t]);
        }
        sum
    });
    let mut variance: f64 = 1.0;
    for _ in 1..4 {
        variance = KEPT * KEPT * variance + NEW * NEW;
    }
    aside("volatility", "four numbers, the logarithms of whose variances follow each other, d = 8", density)
        .with_log_z(4.0 * LN_2_PI + 3.0 * NEW.ln())
        .knowing(Expectation::normal(0, 0.0, 1.0))
        .knowing(Expectation::normal(3, 0.0, variance.sqrt()))
        .knowing([Expectation::below(7, 0.0, 0.5)])
}

/// A wall on one side and a power on the other, beside normals.
fn pareto() -> Specimen {
    const POWER: f64 = 2.5;
    let density = Density::new(3, |x, score| {
        score.copy_from_slice(&[-(POWER + 1.0) / x[0], -x[1], -x[2]]);
        match x[0] > 1.0 {
            true => -(POWER + 1.0) * x[0].ln() - 0.5 * (x[1] * x[1] + x[2] * x[2]),
            false => f64::NEG_INFINITY,
        }
    });
    let below = |t: f64| Expectation::below(0, t, 1.0 - t.powf(-POWER));
    aside("pareto", "x₀^−3.5 from 1 on, beside two normals", density)
        .with_log_z(LN_2_PI - POWER.ln())
        .knowing([below(1.1), below(1.5), below(4.0)])
        .knowing([Expectation::below(1, 0.0, 0.5)])
}

/// As dense everywhere within a bent wall.
fn ball() -> Specimen {
    const RADIUS: f64 = 2.0;
    let density = Density::new(5, |x, score| {
        score.fill(0.0);
        match x.iter().map(|x| x * x).sum::<f64>() < RADIUS * RADIUS {
            true => 0.0,
            false => f64::NEG_INFINITY,
        }
    });
    let within = |share: f64| {
        let radius = RADIUS * share.powf(0.2);
        let name = format!("P(r < {radius:.3})");
        Expectation::share(name, share, move |x| x.iter().map(|x| x * x).sum::<f64>() < radius * radius)
    };
    aside("ball", "even in a ball of radius 2, nothing outside, d = 5", density)
        .with_log_z((8.0 * PI * PI / 15.0).ln() + 5.0 * RADIUS.ln())
        .knowing([Expectation::below(0, 0.0, 0.5), within(0.1), within(0.6)])
}

/// Shares as they are: a triangle with a pole along each side.
fn half_dirichlet() -> Specimen {
    let density = Density::new(2, |x, score| {
        let rest = 1.0 - x[0] - x[1];
        score.copy_from_slice(&[0.5 / rest - 0.5 / x[0], 0.5 / rest - 0.5 / x[1]]);
        match x[0] > 0.0 && x[1] > 0.0 && rest > 0.0 {
            true => -0.5 * (x[0].ln() + x[1].ln() + rest.ln()),
            false => f64::NEG_INFINITY,
        }
    });
    let below = |t: f64| Expectation::below(0, t, t.sqrt());
    aside("half-dirichlet", "two of three shares with the law Dirichlet(½): poles along walls", density)
        .with_log_z(LN_2_PI)
        .knowing([below(0.01), below(0.25), below(0.8)])
        .knowing([Expectation::share("P(x0 < x1)", 0.5, |x| x[0] < x[1])])
}

/// Student's t in many coordinates: draws lie far from the mode.
fn t_in_twenty() -> Specimen {
    const DEGREES: f64 = 4.0;
    let density = Density::new(20, |x, score| {
        let square: f64 = x.iter().map(|x| x * x).sum();
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -(DEGREES + 20.0) * x / (DEGREES + square));
        -0.5 * (DEGREES + 20.0) * (square / DEGREES).ln_1p()
    });
    // The surface of a ball in 20 dimensions is 2π¹⁰/9!; r = 2 eᵘ.
    let radial = |u: f64| (20.0 * (u + 2f64.ln()) - 12.0 * (2.0 * u).exp().ln_1p()).exp();
    let all = integral(radial, -30.0, 30.0, 40_000);
    let within = integral(radial, -30.0, 1.0, 40_000) / all;
    aside("t-in-twenty", "multivariate t of 4 degrees, d = 20", density)
        .with_log_z((2.0 * PI.powi(10) / 362_880.0).ln() + all.ln())
        .knowing([
            Expectation::below(0, 0.0, 0.5),
            Expectation::below(0, 1.0, 0.813_049_516_849_971),
            Expectation::share("P(r < 2e)", within, |x| {
                x.iter().map(|x| x * x).sum::<f64>() < 4.0 * 2f64.exp()
            }),
        ])
}

/// Falls off along one diagonal and grows along the other.
fn saddle() -> Specimen {
    let density = Density::new(2, |x, score| {
        score.copy_from_slice(&[x[1] - 0.8 * x[0], x[0] - 0.8 * x[1]]);
        x[0] * x[1] - 0.4 * (x[0] * x[0] + x[1] * x[1])
    });
    aside("saddle", "exp(x₀ x₁ − 0.4 r²): grows along a diagonal", density)
}

/// Modes without an end.
fn corrugated() -> Specimen {
    let density = Density::new(3, |x, score| {
        score.copy_from_slice(&[-3.0 * x[0].sin(), -x[1], -x[2]]);
        3.0 * x[0].cos() - 0.5 * (x[1] * x[1] + x[2] * x[2])
    });
    aside("corrugated", "exp(3 cos x₀) beside two normals: as many modes as there is room", density)
}
