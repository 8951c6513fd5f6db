//! Accelerated tempering as plain tempering on a larger space; steps in time or chains in parallel.

use crate::drawing::{Axis, Figure, Mark, Series, short};
use crate::paths::{cmcd, diffusion, mixture, rejections};
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use std::sync::Arc;
use sterna::Schedule;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Identity, NoDrift};
use sterna::estimates::round_trip_rate;
use sterna::targets::Normal;
use sterna_testkit::extended::{Extended, ExtendedLadder};
use sterna_testkit::{DiffusedLadder, ExactLadder, GaussianLadder};

pub fn extended_space() -> (Value, Figure) {
    let (chains, n) = (7, 60_000);
    let schedule = Schedule::uniform(chains);
    let target = || GaussianLadder::new(Normal::new(vec![1.5], vec![8.0]));
    let mut rows = Vec::new();
    let mut dots = Vec::new();
    let mut worst: f64 = 0.0;
    for (case, noise) in [0.01, 0.05, 0.2].into_iter().enumerate() {
        let accelerator = cmcd(NoDrift, 1, &vec![noise; chains - 1]);
        let accelerated = rejections(&accelerator, &target(), &schedule, n, 700 + case as u64);
        let extended =
            ExtendedLadder(Arc::new(Extended { ladder: target(), schedule: schedule.clone(), noise }));
        let plain = rejections(&Identity, &extended, &schedule, n, 710 + case as u64);
        for (pair, (a, b)) in accelerated.iter().zip(&plain).enumerate() {
            let z = (a.0 - b.0) / a.1.hypot(b.1);
            worst = worst.max(z.abs());
            rows.push(json!({
                "noise": noise, "pair": pair + 1, "accelerated": short(a.0), "extended": short(b.0), "z": short(z),
            }));
        }
        let points = accelerated.iter().zip(&plain).map(|(a, b)| (a.0, b.0)).collect();
        dots.push(Series::dots(case, format!("σ² = {noise}"), points));
    }
    let mut series = vec![Series::line(7, "equal", vec![(0.0, 0.0), (0.8, 0.8)])];
    series.extend(dots);
    let summary = format!("{} pairs, largest |z| = {worst:.2}", rows.len());
    let figure = Figure {
        title: "Rejection rates: accelerated swaps against plain swaps on the extended space",
        x: Axis::linear("accelerated swap on R", 0.0, 0.8),
        y: Axis::linear("plain swap on R⁷", 0.0, 0.8),
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    (json!({ "summary": summary, "rows": rows }), figure)
}

pub fn time_or_parallel() -> (Value, Figure) {
    let n = 24_000;
    let start = 0.1;
    let diffused: [(&str, Arc<dyn ExactLadder>); 2] = [
        ("mixture", Arc::new(DiffusedLadder::new(Arc::new(mixture())))),
        ("normal", Arc::new(DiffusedLadder::new(Arc::new(Normal::isotropic(10, 10.0))))),
    ];
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut summary = Vec::new();
    for (i, (name, ladder)) in diffused.into_iter().enumerate() {
        let [mut in_time, mut in_parallel, mut without] = [const { Vec::new() }; 3];
        for power in 0..=6 {
            let steps = 1usize << power;
            // From s = 0.1 to the target, and the first pair from s = 0, which is left out.
            let split = |pieces: usize| {
                let inner = (0..pieces).map(|k| start + (1.0 - start) * k as f64 / pieces as f64);
                Schedule::new([0.0].into_iter().chain(inner).chain([1.0]).collect()).expect("increasing")
            };
            let rates = |accelerator: &dyn Accelerator, pieces: usize, seed: u64| {
                let all = rejections(accelerator, &*ladder, &split(pieces), n / pieces.min(8), seed);
                let each: Vec<f64> = all[1..].iter().map(|r| r.0).collect();
                (round_trip_rate(&each), each.iter().sum::<f64>())
            };
            let seed = 800 + 40 * i as u64 + 4 * power as u64;
            let time = rates(&diffusion(steps), 1, seed);
            let parallel = rates(&diffusion(1), steps, seed + 1);
            let plain = rates(&Identity, steps, seed + 2);
            in_time.push((steps as f64, time.0));
            in_parallel.push((steps as f64, parallel.0));
            without.push((steps as f64, plain.0));
            rows.push(json!({
                "target": name, "steps": steps,
                "time": { "rate": short(time.0), "sum_of_rejections": short(time.1) },
                "parallel": { "rate": short(parallel.0), "sum_of_rejections": short(parallel.1) },
                "plain": { "rate": short(plain.0), "sum_of_rejections": short(plain.1) },
            }));
        }
        let better =
            in_time.iter().zip(&in_parallel).filter(|(t, p)| t.0 > 1.0 && t.1 > p.1).map(|(t, _)| t.0);
        summary.push(format!("{name}: steps in time are better at K = {:?}", better.collect::<Vec<_>>()));
        for (j, (kind, points)) in
            [("K steps, 1 pair", in_time), ("1 step, K pairs", in_parallel), ("no steps, K pairs", without)]
                .into_iter()
                .enumerate()
        {
            let label = format!("{name}: {kind}");
            let mark = if i == 0 { Mark::Line } else { Mark::Dashed };
            series.push(Series::of(mark, j, label, points.clone()));
            series.push(Series::dots(j, "", points));
        }
    }
    let figure = Figure {
        title: "Local round trip rate from s = 0.1 to the target with K kernel steps, exact diffusion",
        x: Axis::log("K", 1.0, 64.0),
        y: Axis::linear("τ", 0.0, 0.5),
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    (json!({ "summary": summary.join("; "), "rows": rows }), figure)
}
