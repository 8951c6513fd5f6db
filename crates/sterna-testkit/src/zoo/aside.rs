//! Shapes that were kept aside: no setting and no threshold was chosen by them.

use super::{Class, Density, Expectation, Hump, LN_2_PI, Specimen, integral, mixture, of_first};
use crate::p_values::normal_cdf;
use std::f64::consts::{PI, TAU};

pub(super) fn specimens() -> Vec<Specimen> {
    let mut all = vec![
        ridge(
            "sine-ridge",
            "x₀ ~ N(0, 2), x₁ ~ N(sin 2x₀, 0.1)",
            2.0,
            0.1,
            |x| (2.0 * x).sin(),
            |x| 2.0 * (2.0 * x).cos(),
        ),
        bananas(),
        volcano(),
        spiral(),
        two_necks(),
        common_scale(),
        truncated(),
        turned_cauchy(),
        ring_and_dot(),
        slow_plane(),
    ];
    let of = |name, about, humps: Vec<Hump>, thresholds: &[f64]| {
        let known = of_first(&humps, thresholds);
        Specimen::new(name, Class::Aside, about, mixture(humps)).with_log_z(0.0).knowing(known)
    };
    let bell = |weight: f64, at: f64, width: f64| Hump::new(weight, vec![at, 0.0, 0.0], width);
    let dumbbell = vec![bell(0.45, -4.0, 0.8), bell(0.1, 0.0, 1.2), bell(0.45, 4.0, 0.8)];
    all.push(of("dumbbell", "N(∓4, 0.8) with a bar between, d = 3", dumbbell, &[-3.0, 0.0]));
    let at = |weight: f64, at: f64, width: f64| Hump::new(weight, vec![at; 3], width);
    let spikes = vec![at(0.5, 0.0, 1.0), at(0.25, 0.9, 0.08), at(0.25, -0.7, 0.08)];
    all.push(of("two-spikes", "½ N(0, 1) + ¼ N(0.9, 0.08) + ¼ N(−0.7, 0.08), d = 3", spikes, &[-0.7, 0.9]));
    let beside = vec![Hump::new(0.8, vec![0.0; 2], 2.0), Hump::new(0.2, vec![3.0, -2.0], 0.1)];
    all.push(of("thin-beside", "0.8 N(0, 2) + 0.2 N((3, −2), 0.1), d = 2", beside, &[0.0, 2.9]));
    all.push(spike_in_cauchy());
    all
}

/// Half of it a Cauchy, half a narrow normal.
fn spike_in_cauchy() -> Specimen {
    let spike = Hump::new(0.5, vec![2.0, 1.0], 0.05);
    let density = Density::new(2, move |x, score| {
        let broad = 0.5f64.ln() - x.iter().map(|x| (PI * (1.0 + x * x)).ln()).sum::<f64>();
        let narrow = spike.log_density(x);
        let all = super::log_sum_exp(&[broad, narrow]);
        for ((score, x), centre) in score.iter_mut().zip(x).zip(&spike.centre) {
            let pull = (narrow - all).exp() * (centre - x) / spike.deviation.powi(2);
            *score = pull - (broad - all).exp() * 2.0 * x / (1.0 + x * x);
        }
        all
    });
    let below = |t: f64| 0.25 + 0.5 * t.atan() / PI;
    aside("spike-in-cauchy", "½ Cauchy + ½ N((2, 1), 0.05), d = 2", density).with_log_z(0.0).knowing([
        Expectation::below(0, 0.0, below(0.0)),
        Expectation::below(0, 1.9, below(1.9) + 0.5 * normal_cdf(-2.0)),
        Expectation::below(1, 1.0, below(1.0) + 0.25),
    ])
}

fn aside(name: &'static str, about: &'static str, density: Density) -> Specimen {
    Specimen::new(name, Class::Aside, about, density)
}

/// x₁ along a curve of x₀.
pub(super) fn ridge(
    name: &'static str,
    about: &'static str,
    wide: f64,
    narrow: f64,
    curve: fn(f64) -> f64,
    slope: fn(f64) -> f64,
) -> Specimen {
    let density = Density::new(2, move |x, score| {
        let off = (x[1] - curve(x[0])) / (narrow * narrow);
        score[0] = -x[0] / (wide * wide) + slope(x[0]) * off;
        score[1] = -off;
        -0.5 * (x[0] / wide).powi(2) - 0.5 * off * off * narrow * narrow
    });
    aside(name, about, density)
        .with_log_z(LN_2_PI + (wide * narrow).ln())
        .knowing(Expectation::normal(0, 0.0, wide))
        .knowing([Expectation::mean("E[x1]", 0.0, |x| x[1])])
}

/// Four bananas beside each other.
fn bananas() -> Specimen {
    const WIDTH: f64 = 0.3;
    let density = Density::new(8, |x, score| {
        let mut sum = 0.0;
        for (x, score) in x.chunks_exact(2).zip(score.chunks_exact_mut(2)) {
            let off = (x[1] - x[0] * x[0]) / (WIDTH * WIDTH);
            score[0] = -x[0] + 2.0 * x[0] * off;
            score[1] = -off;
            sum -= 0.5 * (x[0] * x[0] + off * off * WIDTH * WIDTH);
        }
        sum
    });
    aside("bananas", "four bananas of width 0.3 beside each other, d = 8", density)
        .with_log_z(4.0 * (LN_2_PI + WIDTH.ln()))
        .knowing(Expectation::normal(0, 0.0, 1.0))
        .knowing([Expectation::mean("E[x1]", 1.0, |x| x[1]), Expectation::mean("E[x7]", 1.0, |x| x[7])])
}

/// (1 + r²)⁴ e^(−r²): a crater.
fn volcano() -> Specimen {
    let density = Density::new(3, |x, score| {
        let square: f64 = x.iter().map(|x| x * x).sum();
        score.iter_mut().zip(x).for_each(|(s, x)| *s = x * (8.0 / (1.0 + square) - 2.0));
        4.0 * square.ln_1p() - square
    });
    let radial = |r: f64| r * r * (1.0 + r * r).powi(4) * (-r * r).exp();
    let z = integral(radial, 0.0, 12.0, 4000);
    let near = integral(radial, 0.0, 1.5, 4000) / z;
    aside("volcano", "(1 + r²)⁴ e^(−r²), d = 3", density).with_log_z((4.0 * PI * z).ln()).knowing([
        Expectation::below(0, 0.0, 0.5),
        Expectation::share("P(r < 1.5)", near, |x| x.iter().map(|x| x * x).sum::<f64>() < 2.25),
    ])
}

/// Arms that wind around each other, lower farther out.
fn spiral() -> Specimen {
    const WIDTH: f64 = 0.3;
    let density = Density::new(2, |x, score| {
        let (r, angle) = (x[0].hypot(x[1]), x[1].atan2(x[0]));
        let phase = PI * r - 0.5 * angle;
        let turn = -(2.0 * phase).sin() / (2.0 * WIDTH * WIDTH);
        for (j, (along, across)) in [(x[0] / r, -x[1] / r), (x[1] / r, x[0] / r)].into_iter().enumerate() {
            score[j] = along * (PI * turn - 0.5) - 0.5 * turn * across / r;
        }
        -0.5 * phase.sin().powi(2) / (WIDTH * WIDTH) - 0.5 * r
    });
    let around = integral(|a| (-0.5 * (0.5 * a).sin().powi(2) / (WIDTH * WIDTH)).exp(), 0.0, TAU, 4000);
    let within = 1.0 - 3.0 * (-2f64).exp();
    aside("spiral", "an arm that winds outwards, d = 2", density).with_log_z((4.0 * around).ln()).knowing([
        Expectation::mean("E[r]", 4.0, |x| x[0].hypot(x[1])),
        Expectation::share("P(r < 4)", within, |x| x[0].hypot(x[1]) < 4.0),
    ])
}

/// Two funnels beside each other.
fn two_necks() -> Specimen {
    const WIDE: f64 = 2.0;
    let density = Density::new(8, |x, score| {
        let mut sum = 0.0;
        for (x, score) in x.chunks_exact(4).zip(score.chunks_exact_mut(4)) {
            let square: f64 = x[1..].iter().map(|x| x * x).sum();
            let precision = (-x[0]).exp();
            sum += -0.5 * (x[0] / WIDE).powi(2) - 0.5 * square * precision - 1.5 * x[0];
            score[0] = -x[0] / (WIDE * WIDE) + 0.5 * square * precision - 1.5;
            (1..4).for_each(|j| score[j] = -x[j] * precision);
        }
        sum
    });
    aside("two-necks", "two funnels of scale 2 beside each other, d = 8", density)
        .with_log_z(4.0 * LN_2_PI + 2.0 * WIDE.ln())
        .knowing(Expectation::normal(0, 0.0, WIDE))
        .knowing(Expectation::normal(4, 0.0, WIDE))
        .knowing([Expectation::below(1, 0.0, 0.5)])
}

/// Normals whose common scale has a half-Cauchy law, in its logarithm.
fn common_scale() -> Specimen {
    let density = Density::new(6, |x, score| {
        let square: f64 = x[1..].iter().map(|x| x * x).sum();
        let (scale, precision) = ((2.0 * x[0]).exp(), (-2.0 * x[0]).exp());
        (1..6).for_each(|j| score[j] = -x[j] * precision);
        score[0] = 1.0 - 2.0 * scale / (1.0 + scale) - 5.0 + square * precision;
        x[0] - scale.ln_1p() - 5.0 * x[0] - 0.5 * square * precision
    });
    let below = |t: f64| 2.0 / PI * t.exp().atan();
    aside("common-scale", "five normals of one half-Cauchy scale, whose logarithm is sampled", density)
        .with_log_z((0.5 * PI).ln() + 2.5 * LN_2_PI)
        .knowing([-2.0, 0.0, 2.0].map(|t| Expectation::below(0, t, below(t))))
        .knowing([Expectation::below(3, 0.0, 0.5)])
}

/// Standard normals in a box.
fn truncated() -> Specimen {
    let (low, high) = (-0.5, 1.0);
    let density = Density::new(4, move |x, score| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -x);
        match x.iter().all(|x| (low..high).contains(x)) {
            true => -0.5 * x.iter().map(|x| x * x).sum::<f64>(),
            false => f64::NEG_INFINITY,
        }
    });
    let share = normal_cdf(high) - normal_cdf(low);
    let below = |t: f64| Expectation::below(1, t, (normal_cdf(t) - normal_cdf(low)) / share);
    aside("truncated", "standard normals between −0.5 and 1, d = 4", density)
        .with_log_z(4.0 * (0.5 * LN_2_PI + share.ln()))
        .knowing([below(-0.2), below(0.0), below(0.7)])
}

/// A Cauchy beside normals, turned by an eighth.
fn turned_cauchy() -> Specimen {
    let density = Density::new(3, |x, score| {
        let (a, b) = ((x[0] + x[1]) / 2f64.sqrt(), (x[0] - x[1]) / 2f64.sqrt());
        let (da, db) = (-2.0 * a / (1.0 + a * a), -b);
        score.copy_from_slice(&[(da + db) / 2f64.sqrt(), (da - db) / 2f64.sqrt(), -x[2]]);
        -(a * a).ln_1p() - 0.5 * (b * b + x[2] * x[2])
    });
    let beyond = |t: f64| {
        let name = format!("P(x0 + x1 < {t} √2)");
        Expectation::share(name, 0.5 + t.atan() / PI, move |x| (x[0] + x[1]) / 2f64.sqrt() < t)
    };
    aside("turned-cauchy", "a Cauchy beside two normals, turned by an eighth", density)
        .with_log_z(PI.ln() + LN_2_PI)
        .knowing([beyond(-3.0), beyond(0.0), beyond(1.0)])
        .knowing([Expectation::below(2, 0.0, 0.5)])
}

/// A circle around a dot, of equal weight.
fn ring_and_dot() -> Specimen {
    const RADIUS: f64 = 3.0;
    const WIDTH: f64 = 0.1;
    const DOT: f64 = 0.3;
    let radial = |r: f64| r * (-0.5 * ((r - RADIUS) / WIDTH).powi(2)).exp();
    let circle = (TAU * integral(radial, RADIUS - 12.0 * WIDTH, RADIUS + 12.0 * WIDTH, 4000)).ln();
    let dot = LN_2_PI + 2.0 * DOT.ln();
    let density = Density::new(2, move |x, score| {
        let r = x[0].hypot(x[1]);
        let on_circle = -0.5 * ((r - RADIUS) / WIDTH).powi(2) - circle;
        let on_dot = -0.5 * (r / DOT).powi(2) - dot;
        let all = super::log_sum_exp(&[on_circle, on_dot]);
        let (share, other) = ((on_circle - all).exp(), (on_dot - all).exp());
        for (s, x) in score.iter_mut().zip(x) {
            let towards = if r > 0.0 { -(r - RADIUS) / (WIDTH * WIDTH) * x / r } else { 0.0 };
            *s = share * towards - other * x / (DOT * DOT);
        }
        all
    });
    aside("ring-and-dot", "a circle of radius 3 and width 0.1 around N(0, 0.3)", density)
        .with_log_z(2f64.ln())
        .knowing([
            Expectation::share("P(r < 1.5)", 0.5, |x| x[0].hypot(x[1]) < 1.5),
            Expectation::below(0, 0.0, 0.5),
            Expectation::share("P(x0 > |x1|)", 0.25, |x| x[0] > x[1].abs()),
        ])
}

/// r⁻² in the plane: no integral, by a hair.
fn slow_plane() -> Specimen {
    let density = Density::new(2, |x, score| {
        let square = x[0] * x[0] + x[1] * x[1];
        score.iter_mut().zip(x).for_each(|(s, x)| *s = -2.0 * x / (1.0 + square));
        -square.ln_1p()
    });
    aside("slow-plane", "1/(1 + r²), d = 2: no integral", density)
}
