//! Estimators of the rejection rate, and its bounds by the symmetric divergence.

use crate::Point;
use crate::drawing::{Axis, Figure, Series, short};
use crate::paths::{
    affine, cmcd, deltas, diffusion, gaussian_rejection, gaussian_work, mixture, normal, rejection, variance,
};
use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use std::sync::Arc;
use sterna::Schedule;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Identity, NoDrift, NormalDrift};
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna_testkit::p_values::mean_and_error;
use sterna_testkit::{DiffusedLadder, ExactLadder, GaussianLadder, MixtureLadder};

pub fn rejection_estimators() -> (Value, Figure) {
    let names = ["counted", "1 − min(1, exp Δ)", "|tanh(Δ/2)|"];
    let mut curves = [const { Vec::new() }; 3];
    for i in 1..=120 {
        let s = 0.05 * f64::from(i);
        let r = gaussian_rejection(s);
        let square = |f: &dyn Fn(f64) -> f64| gaussian_work(s, |d| f(d).powi(2)) - r * r;
        curves[0].push((r, r * (1.0 - r)));
        curves[1].push((r, square(&|d| 1.0 - d.min(0.0).exp())));
        curves[2].push((r, square(&|d| (0.5 * d).tanh())));
    }
    let mut rows = Vec::new();
    let mut dots = [const { Vec::new() }; 3];
    // The fourth is the distance at which r = 0.42.
    for (case, shift) in [0.2, 0.4, 0.6, 0.782_6, 1.0, 1.4, 2.0, 3.0].into_iter().enumerate() {
        let ladder = GaussianLadder::new(Normal::new(vec![shift], vec![1.0]));
        let delta = deltas(&Identity, &ladder, &Schedule::uniform(2), 200_000, 100 + case as u64).remove(0);
        let keys: Vec<u32> = (0..delta.len() as u32).collect();
        let mut uniforms = vec![0.0; delta.len()];
        Streams::new(100).uniforms(Phase::Check, case as u64, &keys, &mut uniforms);
        let rejected = |(d, u): (&f64, &f64)| f64::from(u8::from(u.ln() >= *d));
        let values: [Vec<f64>; 3] = [
            delta.iter().zip(&uniforms).map(rejected).collect(),
            delta.iter().map(|d| 1.0 - d.min(0.0).exp()).collect(),
            delta.iter().map(|d| (0.5 * d).tanh().abs()).collect(),
        ];
        let exact = gaussian_rejection(shift * 2f64.sqrt());
        let estimates = values.each_ref().map(|v| mean_and_error(v));
        let variances = values.each_ref().map(|v| variance(v));
        (0..3).for_each(|i| dots[i].push((exact, variances[i])));
        rows.push(json!({
            "shift": shift,
            "total_variation": short(exact),
            "estimates": estimates.map(|e| short(e.0)),
            "standard_errors": estimates.map(|e| short(e.1)),
            "variances": variances.map(short),
        }));
    }
    let at = &rows[3];
    let summary = format!("r = {}: variances {}", at["total_variation"], at["variances"]);
    let mut series = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        series.push(Series::line(i, name, curves[i].clone()));
        series.push(Series::dots(i, "", dots[i].clone()));
    }
    let figure = Figure {
        title: "Variance of three estimators of r (curves: quadrature; dots: 200,000 swaps of unit normals)",
        x: Axis::linear("rejection rate r", 0.0, 1.0),
        y: Axis::linear("variance of one observation", 0.0, 0.27),
        series,
        legend: SeriesLabelPosition::UpperLeft,
    };
    (json!({ "summary": summary, "estimators": names, "rows": rows }), figure)
}

pub fn divergence_bounds() -> (Value, Figure) {
    let uneven = GaussianLadder::new(normal());
    let mixed = MixtureLadder::new(mixture());
    let diffused = DiffusedLadder::new(Arc::new(mixture()));
    let mut groups: Vec<(&str, Vec<Point>)> = Vec::new();
    let mut rows = Vec::new();
    let mut worst = f64::INFINITY;
    let mut add =
        |name: &'static str, accelerator: &dyn Accelerator, ladder: &dyn ExactLadder, on: &Schedule| {
            let seed = 200 + rows.len() as u64;
            for (pair, delta) in deltas(accelerator, ladder, on, 40_000, seed).iter().enumerate() {
                let (r, error) = rejection(delta);
                let divergence = -0.5 * mean_and_error(delta).0;
                rows.push(json!({
                    "accelerator": name, "chains": on.chains(), "pair": pair + 1,
                    "r": short(r), "standard_error": short(error), "symmetric_divergence": short(divergence),
                }));
                worst = worst.min(divergence / (r * r.atanh()));
                match groups.iter_mut().find(|g| g.0 == name) {
                    Some(group) => group.1.push((divergence, r * r)),
                    None => groups.push((name, vec![(divergence, r * r)])),
                }
            }
        };
    for chains in [2, 3, 6] {
        let on = Schedule::uniform(chains);
        let noise = vec![0.3 / (chains - 1) as f64; chains - 1];
        add("none (parallel tempering)", &Identity, &uneven, &on);
        add("none (parallel tempering)", &Identity, &mixed, &on);
        add("affine map, 40% off", &affine(&uneven, &on, 2, 1.4), &uneven, &on);
        for steps in [1, 4] {
            add("controlled diffusion, no drift", &cmcd(NoDrift, steps, &noise), &mixed, &on);
            let exact = cmcd(NormalDrift::new(normal()), steps, &noise);
            add("controlled diffusion, exact drift", &exact, &uneven, &on);
            add("diffusion, exact score", &diffusion(steps), &diffused, &on);
        }
    }
    let grid = || (0..=100).map(|i| 10f64.powf(-2.5 + 3.5 * f64::from(i) / 100.0));
    let rates = || (1..=400).map(|i| 1.0 - 10f64.powf(-4.0 * f64::from(i) / 400.0));
    let mut series = vec![
        Series::line(7, "bound: SKL", grid().map(|d| (d, d)).collect()),
        Series::line(6, "bound: 1 − exp(−2 SKL)", grid().map(|d| (d, 1.0 - (-2.0 * d).exp())).collect()),
        Series::line(5, "best bound: SKL = r artanh r", rates().map(|r| (r * r.atanh(), r * r)).collect()),
        Series::dashed(
            7,
            "Gaussian work",
            grid().map(|d| (d, gaussian_rejection(2.0 * d.sqrt()).powi(2))).collect(),
        ),
    ];
    series.extend(groups.into_iter().enumerate().map(|(i, (name, points))| Series::dots(i, name, points)));
    let summary = format!("{} pairs; smallest SKL / (r artanh r) = {worst:.4}", rows.len());
    let figure = Figure {
        title: "r² against the symmetric divergence: measured pairs under three bounds",
        x: Axis::log("SKL(P, Q)", 3e-3, 10.0),
        y: Axis::log("r²", 1e-3, 1.3),
        series,
        legend: SeriesLabelPosition::LowerRight,
    };
    (json!({ "summary": summary, "rows": rows }), figure)
}
