//! Round trips, and rejections that add up to the barrier.

use crate::Point;
use crate::drawing::{Axis, Figure, Series, short};
use crate::paths::{equal_barriers, rejections, total};
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use sterna::IndexProcess;
use sterna::accelerators::Identity;
use sterna::estimates::round_trip_rate;
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna_testkit::GaussianLadder;
use sterna_testkit::p_values::{log_gamma, mean_and_error};

/// Round trips an iteration of index processes whose swaps are independent coins.
fn simulated_rate(rejections: &[f64], case: u64) -> Point {
    let chains = rejections.len() + 1;
    // Iterations that one replica needs for a round trip: some to forget the start, more to count.
    let turn = (chains as f64 / round_trip_rate(rejections)).ceil() as u64;
    let (warm, measured) = (4 * turn, 16 * turn);
    let rates: Vec<f64> = (0..20)
        .map(|copy| {
            let mut index = IndexProcess::new(chains);
            let streams = Streams::new(300 + case);
            let mut before = 0;
            for t in 1..=warm + measured {
                let mut coins = streams.row(Phase::Check, t, copy);
                index.advance(t, |pair| coins.uniform() >= rejections[pair - 1]);
                if t == warm {
                    before = index.round_trips();
                }
            }
            (index.round_trips() - before) as f64 / measured as f64
        })
        .collect();
    mean_and_error(&rates)
}

pub fn round_trips() -> (Value, Figure) {
    let mut ladders: Vec<(&str, Vec<f64>)> = Vec::new();
    for pairs in [1, 2, 5, 10, 20, 30] {
        for r in [0.1, 0.3, 0.5, 0.7, 0.9] {
            ladders.push(("equal r", vec![r; pairs]));
        }
        let mut stream = Streams::new(301).row(Phase::Check, 0, pairs as u32);
        ladders.push(("r uniform in (0, 0.95)", (0..pairs).map(|_| 0.95 * stream.uniform()).collect()));
        let mut bottleneck = vec![0.05; pairs];
        bottleneck[pairs / 2] = 0.97;
        ladders.push(("one bottleneck, r = 0.97", bottleneck));
    }
    let mut rows = Vec::new();
    let mut groups: Vec<(&str, Vec<Point>)> = Vec::new();
    let mut chi_square = 0.0;
    for (case, (name, rejections)) in ladders.iter().enumerate() {
        let predicted = round_trip_rate(rejections);
        let (mean, error) = simulated_rate(rejections, case as u64);
        let z = (mean - predicted) / error;
        chi_square += z * z;
        rows.push(json!({
            "ladder": name, "pairs": rejections.len(), "sum_of_rejections": short(rejections.iter().sum()),
            "predicted": short(predicted), "simulated": short(mean), "standard_error": short(error), "z": short(z),
        }));
        match groups.iter_mut().find(|g| g.0 == *name) {
            Some(group) => group.1.push((predicted, mean)),
            None => groups.push((name, vec![(predicted, mean)])),
        }
    }
    let mut series = vec![Series::line(7, "simulated = predicted", vec![(1.5e-3, 1.5e-3), (0.6, 0.6)])];
    series.extend(groups.into_iter().enumerate().map(|(i, (name, points))| Series::dots(i, name, points)));
    let summary = format!("{} ladders, sum of z² = {chi_square:.1}", rows.len());
    let figure = Figure {
        title: "Round trips an iteration: formula against simulated index processes, 1 to 30 pairs",
        x: Axis::log("τ from rejection rates", 1.5e-3, 0.6),
        y: Axis::log("τ simulated", 1.5e-3, 0.6),
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    (json!({ "summary": summary, "rows": rows }), figure)
}

/// r between N(0, I) and N(0, e^{−ℓ} I) in `dim` dimensions:
/// 2^{1−d}/B(d/2, d/2) ∫₀^ℓ sech^d(u/2) du, by Simpson's rule.
fn normal_rejection(dim: usize, log_ratio: f64) -> f64 {
    let d = dim as f64;
    let log_beta = 2.0 * log_gamma(0.5 * d) - log_gamma(d);
    let (n, h) = (400, log_ratio / 400.0);
    let weight = |i: i32| match i {
        0 => 1.0,
        i if i == n => 1.0,
        i => 2.0 + 2.0 * f64::from(i % 2),
    };
    let term = |i: i32| weight(i) * (0.5 * h * f64::from(i)).cosh().powf(-d);
    ((1.0 - d) * 2f64.ln() - log_beta).exp() * h / 3.0 * (0..=n).map(term).sum::<f64>()
}

pub fn barrier() -> (Value, Figure) {
    let precision = 10.0;
    let mut series = Vec::new();
    let mut rows = Vec::new();
    let mut worst: f64 = 0.0;
    for (i, dim) in [1, 2, 4, 16, 64].into_iter().enumerate() {
        let exact = Normal::global_barrier(dim, precision);
        let of = |pairs: usize| pairs as f64 * normal_rejection(dim, precision.ln() / pairs as f64);
        series.push(Series::line(
            i,
            format!("d = {dim}"),
            (1..=128).map(|n| (n as f64, of(n) / exact)).collect(),
        ));
        let ladder = GaussianLadder::new(Normal::isotropic(dim, precision));
        let mut dots = Vec::new();
        for pairs in [1, 2, 4, 8, 16, 32, 64, 128] {
            let schedule = equal_barriers(pairs + 1, precision);
            let n = 120_000 / (pairs + 1);
            let (sum, error) =
                total(&rejections(&Identity, &ladder, &schedule, n, 400 + 200 * dim as u64 + pairs as u64));
            // Where hardly a swap is accepted, errors are no errors of a normal law.
            if 1.0 - of(pairs) / pairs as f64 > 1e-3 {
                worst = worst.max(((sum - of(pairs)) / error).abs());
            }
            dots.push((pairs as f64, sum / exact));
            rows.push(json!({
                "dim": dim, "pairs": pairs, "sum": short(sum), "standard_error": short(error),
                "sum_exact": short(of(pairs)), "barrier": short(exact),
            }));
        }
        series.push(Series::dots(i, "", dots));
    }
    series.push(Series::dashed(7, "Λ", vec![(1.0, 1.0), (128.0, 1.0)]));
    let summary =
        format!("{} ladders, largest |z| against the closed form {worst:.2} where 1 − r > 0.001", rows.len());
    let figure = Figure {
        title: "Σr / Λ for normals of precision 1 to 10 (curves: closed form; dots: swaps of exact ladders)",
        x: Axis::log("pairs N", 1.0, 128.0),
        y: Axis::linear("Σr / Λ", 0.0, 1.1),
        series,
        legend: SeriesLabelPosition::LowerRight,
    };
    (json!({ "summary": summary, "precision": precision, "rows": rows }), figure)
}
