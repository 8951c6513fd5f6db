//! Many steps: Ornstein–Uhlenbeck and Langevin.

use crate::Point;
use crate::drawing::{Axis, Figure, Series, short};
use crate::paths::{cmcd, diffusion, gaussian_rejection, mixture, normal, rejections};
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use std::sync::Arc;
use sterna::Schedule;
use sterna::accelerators::{NoDrift, NormalDrift};
use sterna::targets::Normal;
use sterna_testkit::euler::euler_error;
use sterna_testkit::{DiffusedLadder, GaussianLadder};

pub fn ornstein_uhlenbeck() -> (Value, Figure) {
    let limit = 0.5 / std::f64::consts::PI.sqrt();
    let mut rows = Vec::new();
    let [mut measured, mut pinsker] = [const { Vec::new() }; 2];
    let mut summary = String::new();
    for power in 0..=9 {
        let steps = 1 << power;
        let ((distance, error), divergence) = euler_error(steps, 200_000);
        let root = (steps as f64).sqrt();
        measured.push((steps as f64, distance * root));
        pinsker.push((steps as f64, (0.5 * divergence).sqrt() * root));
        summary =
            format!("K = {steps}: TV √K = {:.4} ± {:.4}, limit {limit:.4}", distance * root, error * root);
        rows.push(json!({
            "steps": steps, "total_variation": short(distance), "standard_error": short(error),
            "times_root_steps": short(distance * root), "divergence": short(divergence),
            "pinsker_times_root_steps": short((0.5 * divergence).sqrt() * root),
        }));
    }
    let figure = Figure {
        title: "Euler against the exact Ornstein–Uhlenbeck process (θ = σ = 1, stationary, on [0, 1])",
        x: Axis::log("steps K", 1.0, 512.0),
        y: Axis::linear("total variation × √K", 0.15, 0.4),
        series: vec![
            Series::line(0, "Pinsker's bound √(KL/2)", pinsker),
            Series::dashed(7, "limit 1/(2√π) = 0.2821", vec![(1.0, limit), (512.0, limit)]),
            Series::dots(1, "total variation, 200,000 paths", measured),
        ],
        legend: SeriesLabelPosition::LowerRight,
    };
    (json!({ "summary": summary, "theta": 1, "sigma": 1, "limit": short(limit), "rows": rows }), figure)
}

/// r_∞ of annealed Langevin dynamics from N(0, 1) to N(m, 1): its work is Gaussian with variance
/// v = 2m²/c (1 − (1 − e^{−c})/c), c = σ², and s² = 2v.
fn langevin_limit(m: f64, c: f64) -> f64 {
    let v = 2.0 * m * m / c * (1.0 - (1.0 - (-c).exp()) / c);
    gaussian_rejection((2.0 * v).sqrt())
}

pub fn many_steps() -> (Value, Figure) {
    let (shift, noise) = (2.0, 2.0);
    let limit = langevin_limit(shift, noise);
    let shifted = Normal::new(vec![shift], vec![1.0]);
    let same_width = GaussianLadder::new(shifted.clone());
    let uneven = GaussianLadder::new(normal());
    let diffused = DiffusedLadder::new(Arc::new(mixture()));
    let one = Schedule::uniform(2);
    // The first step from s = 0 is no step (errata E12): what counts is the pair after it.
    let later = Schedule::new(vec![0.0, 0.2, 1.0]).expect("increasing");
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut summary = Vec::new();
    type Member<'a> = (&'static str, f64, u32, Box<dyn Fn(usize, u64) -> Point + 'a>);
    let members: [Member; 3] = [
        (
            "|r_K − r_∞|, Langevin without drift",
            limit,
            6,
            Box::new(|steps, seed| {
                rejections(&cmcd(NoDrift, steps, &[noise]), &same_width, &one, 400_000, seed)[0]
            }),
        ),
        (
            "r_K, controlled diffusion, exact drift",
            0.0,
            8,
            Box::new(|steps, seed| {
                let exact = cmcd(NormalDrift::new(normal()), steps, &[0.3]);
                rejections(&exact, &uneven, &one, 20_000, seed)[0]
            }),
        ),
        (
            "r_K, diffusion, exact score",
            0.0,
            8,
            Box::new(|steps, seed| rejections(&diffusion(steps), &diffused, &later, 10_000, seed)[1]),
        ),
    ];
    for (i, (name, limit, last_power, member)) in members.into_iter().enumerate() {
        let mut points = Vec::new();
        for power in 0..=last_power {
            let steps = 1usize << power;
            let (r, error) = member(steps, 620 + 20 * i as u64 + u64::from(power));
            // Differences within the noise say nothing of the rate.
            if (r - limit).abs() > 2.5 * error {
                points.push((steps as f64, (r - limit).abs()));
            }
            rows.push(json!({
                "member": name, "steps": steps, "r": short(r), "standard_error": short(error), "limit": short(limit),
            }));
        }
        let last: Vec<Point> = points.iter().rev().take(3).map(|p| (p.0.ln(), p.1.ln())).collect();
        let slope = (last[0].1 - last[2].1) / (last[0].0 - last[2].0);
        summary.push(format!("{name}: slope of the last three {slope:.2}"));
        groups.push((i, name, points));
    }
    let guide =
        |size: f64, power: f64| (0..=8).map(|k| 2f64.powi(k)).map(|k| (k, size * k.powf(power))).collect();
    let mut series = vec![
        Series::dashed(7, "slope −1/2", guide(0.6, -0.5)),
        Series::dashed(6, "slope −1", guide(0.3, -1.0)),
    ];
    for (i, name, points) in groups {
        series.push(Series::line(i, name, points.clone()));
        series.push(Series::dots(i, "", points));
    }
    let figure = Figure {
        title: "Distance of the rejection rate from its limit as steps grow",
        x: Axis::log("steps K", 1.0, 256.0),
        y: Axis::log("|r_K − r_∞|", 4e-4, 1.0),
        series,
        legend: SeriesLabelPosition::LowerLeft,
    };
    (json!({ "summary": summary.join("; "), "limit_without_drift": short(limit), "rows": rows }), figure)
}
