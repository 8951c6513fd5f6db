//! Numbers and plots of `docs/theory.md`: what the paper proves, measured on ladders in closed form.
//!
//! `cargo run --release -p sterna-testkit --example theory [FOLDER]` writes the drawings of each topic, one
//! below the other in a file, and `data.json`, a line of numbers for each item, into FOLDER (`docs/theory` unless given). Seeds are fixed: the files do not change.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::{
    Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Gaussian, Identity, Integrator, NoDrift,
    NormalDrift,
};
use sterna::call::{Call, Scratch};
use sterna::estimates::round_trip_rate;
use sterna::explorers::{Hmc, StepSizes};
use sterna::records::{PairRecord, SamplingRecord};
use sterna::streams::{Phase, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::transport::Drift;
use sterna::transports::Affine;
use sterna::{IndexProcess, Sampler, Schedule, Workspace, iterate};
use sterna_testkit::broken::PrintedSign;
use sterna_testkit::euler::euler_error;
use sterna_testkit::extended::{Extended, ExtendedLadder};
use sterna_testkit::moves::{depart, exact_ensemble, sampler};
use sterna_testkit::p_values::{log_gamma, mean_and_error, normal_cdf};
use sterna_testkit::{DiffusedLadder, ExactLadder, GaussianLadder, MixtureLadder};

type Outcome<T> = std::result::Result<T, Box<dyn Error>>;
type Point = (f64, f64);

fn main() -> Outcome<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::args().nth(1).map_or(repository.join("docs/theory"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    type Item = fn() -> (Value, Figure);
    let topics: [(&str, &[(&str, Item)]); 6] = [
        (
            "rejections",
            &[("rejection-estimators", rejection_estimators), ("divergence-bounds", divergence_bounds)],
        ),
        ("ladders", &[("round-trip-rate", round_trips), ("barrier", barrier)]),
        ("exact-log-z", &[("exact-log-z", exact_log_z)]),
        ("steps", &[("ornstein-uhlenbeck", ornstein_uhlenbeck), ("many-steps", many_steps)]),
        ("larger-space", &[("extended-space", extended_space), ("time-or-parallel", time_or_parallel)]),
        ("langevin", &[("noise-scaling", noise_scaling), ("backward-sign", backward_sign)]),
    ];
    let mut lines = Vec::new();
    for (topic, items) in topics {
        let mut drawings = Vec::new();
        for (name, item) in items {
            let (numbers, figure) = item();
            drawings.push(figure.draw()?);
            println!("{name}: {}", numbers["summary"].as_str().unwrap_or(""));
            lines.push(format!("{name:?}: {numbers}"));
        }
        std::fs::write(folder.join(format!("{topic}.svg")), one_below_the_other(&drawings))?;
    }
    Ok(std::fs::write(folder.join("data.json"), format!("{{\n{}\n}}\n", lines.join(",\n")))?)
}

// ---------------------------------------------------------------------------------------------
// Ladders and paths.

fn normal() -> Normal {
    Normal::new(vec![0.6, -0.4], vec![4.0, 0.5])
}

fn mixture() -> Gmm {
    Gmm::new(2, vec![[0.8, 0.3], [-0.7, 0.6], [0.1, -0.9]], 0.5)
}

/// Δ = log w(forward) − log w(backward) of each pair over `n` exact ladders, the two directions
/// independent of each other.
fn deltas(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
    seed: u64,
) -> Vec<Vec<f64>> {
    let path = ladder.path();
    let weights = |direction: Direction, seed: u64| {
        let x = ladder.draw_ladder(schedule, &Streams::new(seed), n);
        let (travellers, mut journey) = depart(direction, &*path, schedule, &x);
        let noise = Streams::new(seed ^ (1 << 40));
        accelerator
            .travel(
                direction,
                &Call::new(&*path, &noise, 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .expect("paths travel");
        journey.log_weight
    };
    let (up, down) = (weights(Direction::Forward, 2 * seed), weights(Direction::Backward, 2 * seed + 1));
    let pairs = schedule.pairs();
    let of_pair = |pair: usize| (pair..up.len()).step_by(pairs).map(|i| up[i] - down[i]).collect();
    (0..pairs).map(of_pair).collect()
}

/// E|tanh(Δ/2)| with its standard error.
fn rejection(delta: &[f64]) -> Point {
    mean_and_error(&delta.iter().map(|d| (0.5 * d).tanh().abs()).collect::<Vec<_>>())
}

/// Rejection rate of each pair.
fn rejections(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
    seed: u64,
) -> Vec<Point> {
    deltas(accelerator, ladder, schedule, n, seed).iter().map(|d| rejection(d)).collect()
}

/// Sum of independent estimates.
fn total(each: &[Point]) -> Point {
    (each.iter().map(|e| e.0).sum(), each.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt())
}

fn cmcd(drift: impl Drift + 'static, steps: usize, noise: &[f64]) -> Cmcd {
    Cmcd { steps: CmcdSteps::linear(Arc::new(drift), steps, noise).expect("positive noise") }
}

fn diffusion(steps: usize) -> Diffusion {
    Diffusion { steps: DiffusionSteps::new(steps, Integrator::Exponential).expect("at least one step") }
}

/// The affine maps between the chains of a normal ladder; `scale` = 1 is exact.
fn affine(ladder: &GaussianLadder, schedule: &Schedule, dim: usize, scale: f64) -> FlowAccelerator {
    let moments = |(n, &beta): (usize, &f64)| {
        let wrong = scale.powi(n as i32);
        (0..dim).map(|j| ladder.moments(beta, j)).map(|(m, p)| (m, wrong / p)).unzip()
    };
    let moments = schedule.betas().iter().enumerate().map(moments).collect();
    FlowAccelerator::new(Arc::new(Affine::diagonal(schedule.betas().to_vec(), moments).expect("positive")))
}

/// Pairs of equal barrier from N(0, I) to N(0, I/precision): precisions in geometric sequence.
fn equal_barriers(chains: usize, precision: f64) -> Schedule {
    let pairs = chains - 1;
    let beta = |n: usize| (precision.powf(n as f64 / pairs as f64) - 1.0) / (precision - 1.0);
    let mut betas: Vec<f64> = (0..chains).map(beta).collect();
    betas[pairs] = 1.0;
    Schedule::new(betas).expect("increasing")
}

/// E f(Δ) for Gaussian work: Δ ~ N(−s²/2, s²), by the trapezoidal rule.
fn gaussian_work(s: f64, f: impl Fn(f64) -> f64) -> f64 {
    let step = 0.002;
    let term = |i: i32| {
        let z = f64::from(i) * step;
        (-0.5 * z * z).exp() * f(s * z - 0.5 * s * s)
    };
    (-5000..=5000).map(term).sum::<f64>() * step / std::f64::consts::TAU.sqrt()
}

/// r = 2Φ(s/2) − 1 for Gaussian work.
fn gaussian_rejection(s: f64) -> f64 {
    1.0 - 2.0 * normal_cdf(-0.5 * s)
}

fn variance(values: &[f64]) -> f64 {
    mean_and_error(values).1.powi(2) * values.len() as f64
}

// ---------------------------------------------------------------------------------------------
// 1. Three estimators of the rejection rate.

fn rejection_estimators() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 2. The rejection rate and the symmetric divergence.

fn divergence_bounds() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 3. Round trips.

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

fn round_trips() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 4. Rejections add up to the barrier.

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

fn barrier() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 5. P = Q.

/// Weights of all pairs of `copies` ladders that start from exact draws.
fn sample(sampler: &Sampler, ladder: &dyn ExactLadder, copies: usize, iterations: u64) -> Vec<PairRecord> {
    let start = ladder.draw_ladder(&sampler.schedule, &Streams::new(501), copies);
    let mut ensemble = exact_ensemble(sampler, &start);
    let mut work = Workspace::new(&ensemble);
    let mut record = SamplingRecord::new(&ensemble, iterations, iterations);
    for t in 1..=iterations {
        iterate(t, &mut ensemble, sampler, &mut work, &mut record).expect("the sampler goes on");
    }
    record.counts.pairs
}

fn exact_log_z() -> (Value, Figure) {
    let (dim, chains, copies, iterations) = (5, 6, 24, 8192);
    let target = Normal::new(vec![0.6, 0.1, -0.4, -0.9, 1.2], vec![4.0, 0.5, 9.0, 1.5, 25.0]);
    let ladder = GaussianLadder::new(target);
    let schedule = Schedule::uniform(chains);
    let exact = ladder.log_z(1.0).expect("known");
    let local = || Hmc::with_sizes(1, 3, StepSizes::fixed(chains, dim, 0.2), 0.0);
    let members: [(&str, Arc<dyn Accelerator>); 3] = [
        ("parallel tempering", Arc::new(Identity)),
        ("affine map, 10% off", Arc::new(affine(&ladder, &schedule, dim, 1.1))),
        ("exact affine map", Arc::new(affine(&ladder, &schedule, dim, 1.0))),
    ];
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut summary = String::new();
    for (i, (name, accelerator)) in members.into_iter().enumerate() {
        let mut sampler = sampler(ladder.path(), schedule.clone(), local(), Identity);
        sampler.accelerator = accelerator;
        sampler.streams = Streams::new(500);
        let pairs = sample(&sampler, &ladder, copies, iterations);
        let accepted: u64 = pairs.iter().map(|p| p.accepted).sum();
        let proposed: u64 = pairs.iter().map(|p| p.proposed).sum();
        let mut points = Vec::new();
        for power in 1..=13 {
            let t = 1usize << power;
            let (mut squares, mut largest): (f64, f64) = (0.0, 0.0);
            for copy in pairs.chunks_exact(chains - 1) {
                let works = copy.iter().map(|p| (&p.forward[..t / 2], &p.backward[..t / 2])).collect();
                let log_z = sterna::estimates::log_z(0.0, &[works]);
                squares += (log_z.geometric_mean - exact).powi(2);
                for estimate in [log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar] {
                    largest = largest.max((estimate - exact).abs());
                }
            }
            let root_mean_square = (squares / copies as f64).sqrt();
            points.push((t as f64, root_mean_square.max(1e-16)));
            rows.push(json!({
                "accelerator": name, "iterations": t, "root_mean_square_error": short(root_mean_square),
                "largest_error_of_all_estimators": short(largest),
            }));
            if i == 2 && power == 13 {
                summary = format!("exact map: {accepted} of {proposed} swaps accepted, error {largest:.1e}");
            }
        }
        series.push(Series::line(i, name, points.clone()));
        series.push(Series::dots(i, "", points));
    }
    let figure = Figure {
        title: "Error of log Z against iterations, 24 runs each: with P = Q it is rounding",
        x: Axis::log("iterations T", 2.0, 8192.0),
        y: Axis::log("root mean square error of log Z", 1e-16, 10.0),
        series,
        legend: SeriesLabelPosition::MiddleRight,
    };
    (json!({ "summary": summary, "log_z": short(exact), "rows": rows }), figure)
}

// ---------------------------------------------------------------------------------------------
// 6. Many steps.

fn ornstein_uhlenbeck() -> (Value, Figure) {
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

fn many_steps() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 7. Accelerated tempering is plain tempering on a larger space.

fn extended_space() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 8. Steps in time or chains in parallel.

fn time_or_parallel() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 9. Noise that vanishes with the pair.

fn noise_scaling() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// 10. The sign of the backward drift.

fn backward_sign() -> (Value, Figure) {
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

// ---------------------------------------------------------------------------------------------
// Drawing.

/// Four significant digits: enough to read, and few enough to stay the same everywhere.
fn short(x: f64) -> f64 {
    format!("{x:.3e}").parse().expect("a number")
}

struct Axis {
    label: &'static str,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    fn linear(label: &'static str, from: f64, to: f64) -> Self {
        Self { label, from, to, log: false }
    }
    fn log(label: &'static str, from: f64, to: f64) -> Self {
        Self { label, from, to, log: true }
    }
}

#[derive(Clone, Copy)]
enum Mark {
    Line,
    Dashed,
    Dots,
}

/// Points of one colour; a series without a name is not in the legend.
struct Series {
    mark: Mark,
    colour: usize,
    name: String,
    points: Vec<Point>,
}

impl Series {
    fn of(mark: Mark, colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { mark, colour, name: name.into(), points }
    }
    fn line(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Line, colour, name, points)
    }
    fn dashed(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Dashed, colour, name, points)
    }
    fn dots(colour: usize, name: impl Into<String>, points: Vec<Point>) -> Self {
        Self::of(Mark::Dots, colour, name, points)
    }
}

struct Figure {
    title: &'static str,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    legend: SeriesLabelPosition,
}

/// Okabe and Ito's colours, distinguishable to everyone; the last two are grey and black.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(140, 140, 140),
    RGBColor(0, 0, 0),
];

/// Width and height of a drawing.
const SIZE: (u32, u32) = (860, 520);

impl Figure {
    /// As SVG.
    fn draw(&self) -> Outcome<String> {
        let (x, y) = (self.x.from..self.x.to, self.y.from..self.y.to);
        match (self.x.log, self.y.log) {
            (false, false) => self.draw_on(x, y),
            (true, false) => self.draw_on(x.log_scale(), y),
            (false, true) => self.draw_on(x, y.log_scale()),
            (true, true) => self.draw_on(x.log_scale(), y.log_scale()),
        }
    }

    fn draw_on<X, Y>(&self, x: X, y: Y) -> Outcome<String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(222, 222, 222))
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .draw()?;
        let inside =
            |p: &&Point| (self.x.from..=self.x.to).contains(&p.0) && (self.y.from..=self.y.to).contains(&p.1);
        for series in &self.series {
            let colour = COLOURS[series.colour];
            let style = colour.stroke_width(2);
            let points = series.points.iter().filter(inside).copied();
            let drawn = match series.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, style))?,
                Mark::Dashed => chart.draw_series(DashedLineSeries::new(points, 7, 5, style))?,
                Mark::Dots => chart.draw_series(points.map(|p| Circle::new(p, 3, colour.filled())))?,
            };
            if series.name.is_empty() {
                continue;
            }
            let mark = series.mark;
            drawn.label(series.name.as_str()).legend(move |(x, y)| match mark {
                Mark::Line => PathElement::new(vec![(x, y), (x + 22, y)], style).into_dyn(),
                // Two dashes as text: plotters has no single element of them.
                Mark::Dashed => {
                    let font = ("sans-serif", 15, FontStyle::Bold).into_font().color(&colour);
                    Text::new("– –", (x, y - 9), font).into_dyn()
                }
                Mark::Dots => Circle::new((x + 11, y), 3, colour.filled()).into_dyn(),
            });
        }
        chart
            .configure_series_labels()
            .position(self.legend.clone())
            .legend_area_size(30)
            .background_style(WHITE.mix(0.9))
            .border_style(RGBColor(190, 190, 190))
            .label_font(("sans-serif", 13))
            .draw()?;
        root.present()?;
        drop((chart, root));
        Ok(svg)
    }
}

/// Drawings in one.
fn one_below_the_other(drawings: &[String]) -> String {
    let (width, height) = (SIZE.0, SIZE.1 as usize);
    let total = drawings.len() * height;
    let mut out = format!(
        "<svg width=\"{width}\" height=\"{total}\" viewBox=\"0 0 {width} {total}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
    );
    for (i, drawing) in drawings.iter().enumerate() {
        out += &drawing.replacen("<svg ", &format!("<svg y=\"{}\" ", i * height), 1);
    }
    out + "</svg>\n"
}

/// 0.25, 64, 1e-3: as short as it can be said.
fn label(x: &f64) -> String {
    let rounded = short(*x);
    if rounded != 0.0 && !(1e-2..1e5).contains(&rounded.abs()) {
        format!("{rounded:e}")
    } else {
        format!("{rounded}")
    }
}
