//! Noise that vanishes with the pair, and the sign of the backward drift.

use crate::drawing::{Axis, Figure, Mark, Series, short};
use crate::paths::{cmcd, equal_barriers, rejections, total};
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use std::sync::Arc;
use sterna::Schedule;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Cmcd, CmcdSteps, Gaussian, NoDrift, NormalDrift};
use sterna::targets::Normal;
use sterna_testkit::GaussianLadder;
use sterna_testkit::broken::PrintedSign;

pub fn noise_scaling() -> (Value, Figure) {
    let target = Normal::isotropic(2, 10.0);
    let ladder = GaussianLadder::new(target.clone());
    let steps = 2;
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut summary = Vec::new();
    for (i, (name, exact)) in [("no drift", false), ("exact drift", true)].into_iter().enumerate() {
        for scaled in [true, false] {
            let mut points = Vec::new();
            for chains in [8, 16, 32, 64, 128, 256] {
                let schedule = equal_barriers(chains, 10.0);
                let width = |pair: usize| schedule.interval(pair).width();
                let noise: Vec<f64> =
                    (1..chains).map(|pair| if scaled { 0.4 * width(pair) } else { 0.05 }).collect();
                let accelerator: Arc<dyn Accelerator> = if exact {
                    Arc::new(cmcd(NormalDrift::new(target.clone()), steps, &noise))
                } else {
                    Arc::new(cmcd(NoDrift, steps, &noise))
                };
                let seed = 900 + 1000 * i as u64 + 2 * chains as u64 + u64::from(scaled);
                let (sum, error) =
                    total(&rejections(&*accelerator, &ladder, &schedule, 400_000 / chains, seed));
                points.push((chains as f64, sum));
                rows.push(json!({
                    "drift": name, "noise": if scaled { "0.4 Δβ" } else { "0.05" }, "chains": chains,
                    "sum": short(sum), "standard_error": short(error),
                }));
            }
            let label = format!("{name}, σ² {}", if scaled { "= 0.4 Δβ" } else { "= 0.05" });
            let (first, last) = (points[0].1, points[5].1);
            summary.push(format!("{label}: {first:.3} to {last:.3}"));
            let mark = if scaled { Mark::Line } else { Mark::Dashed };
            series.push(Series::of(mark, i, label, points.clone()));
            series.push(Series::dots(i, "", points));
        }
    }
    let plain = Normal::global_barrier(2, 10.0);
    series.push(Series::dashed(7, "Λ of parallel tempering", vec![(8.0, plain), (256.0, plain)]));
    let figure = Figure {
        title: "Σr of controlled diffusions (K = 2) on a normal ladder as chains are added",
        x: Axis::log("chains", 8.0, 256.0),
        y: Axis::linear("Σr", 0.0, 7.0),
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    (json!({ "summary": summary.join("; "), "steps": steps, "barrier": short(plain), "rows": rows }), figure)
}

pub fn backward_sign() -> (Value, Figure) {
    let schedule = Schedule::uniform(2);
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut summary = Vec::new();
    for (i, dim) in [1, 2, 8].into_iter().enumerate() {
        let ladder = GaussianLadder::new(Normal::isotropic(dim, 1.0));
        let [mut ours, mut printed] = [const { Vec::new() }; 2];
        for steps in [1, 2, 4, 8, 16, 32, 64, 100] {
            let made = || CmcdSteps::linear(Arc::new(NoDrift), steps, &[1.0]).expect("positive noise");
            let seed = 1000 + 200 * i as u64 + steps as u64;
            let corrected = rejections(&Cmcd { steps: made() }, &ladder, &schedule, 20_000, seed)[0];
            let wrong =
                rejections(&Gaussian { steps: PrintedSign(made()) }, &ladder, &schedule, 20_000, seed)[0];
            ours.push((steps as f64, 1.0 - corrected.0));
            printed.push((steps as f64, 1.0 - wrong.0));
            rows.push(json!({
                "dim": dim, "steps": steps, "corrected": short(1.0 - corrected.0), "printed": short(1.0 - wrong.0),
                "standard_errors": [short(corrected.1), short(wrong.1)],
            }));
        }
        summary.push(format!("d = {dim}, K = 100: {:.4} and {:.4}", ours[7].1, printed[7].1));
        for (points, mark, name) in [(ours, Mark::Line, "corrected"), (printed, Mark::Dashed, "printed")] {
            series.push(Series::of(mark, i, format!("{name} sign, d = {dim}"), points.clone()));
            series.push(Series::dots(i, "", points));
        }
    }
    let figure = Figure {
        title: "Acceptance between identical normals N(0, I), no drift, σ = 1",
        x: Axis::log("steps K", 1.0, 100.0),
        y: Axis::linear("acceptance", 0.0, 1.05),
        series,
        legend: SeriesLabelPosition::MiddleRight,
    };
    (json!({ "summary": summary.join("; "), "rows": rows }), figure)
}
