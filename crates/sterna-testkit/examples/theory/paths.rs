//! Ladders, accelerators and their rejections: what several topics measure on.

use crate::Point;
use std::sync::Arc;
use sterna::Schedule;
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::{Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Integrator};
use sterna::call::{Call, Scratch};
use sterna::streams::Streams;
use sterna::targets::{Gmm, Normal};
use sterna::transport::Drift;
use sterna::transports::Affine;
use sterna_testkit::moves::depart;
use sterna_testkit::p_values::{mean_and_error, normal_cdf};
use sterna_testkit::{ExactLadder, GaussianLadder};

pub fn normal() -> Normal {
    Normal::new(vec![0.6, -0.4], vec![4.0, 0.5])
}

pub fn mixture() -> Gmm {
    Gmm::new(2, vec![[0.8, 0.3], [-0.7, 0.6], [0.1, -0.9]], 0.5)
}

/// Δ = log w(forward) − log w(backward) of each pair over `n` exact ladders, the two directions
/// independent of each other.
pub fn deltas(
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
pub fn rejection(delta: &[f64]) -> Point {
    mean_and_error(&delta.iter().map(|d| (0.5 * d).tanh().abs()).collect::<Vec<_>>())
}

/// Rejection rate of each pair.
pub fn rejections(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
    seed: u64,
) -> Vec<Point> {
    deltas(accelerator, ladder, schedule, n, seed).iter().map(|d| rejection(d)).collect()
}

/// Sum of independent estimates.
pub fn total(each: &[Point]) -> Point {
    (each.iter().map(|e| e.0).sum(), each.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt())
}

pub fn cmcd(drift: impl Drift + 'static, steps: usize, noise: &[f64]) -> Cmcd {
    Cmcd { steps: CmcdSteps::linear(Arc::new(drift), steps, noise).expect("positive noise") }
}

pub fn diffusion(steps: usize) -> Diffusion {
    Diffusion { steps: DiffusionSteps::new(steps, Integrator::Exponential).expect("at least one step") }
}

/// The affine maps between the chains of a normal ladder; `scale` = 1 is exact.
pub fn affine(ladder: &GaussianLadder, schedule: &Schedule, dim: usize, scale: f64) -> FlowAccelerator {
    let moments = |(n, &beta): (usize, &f64)| {
        let wrong = scale.powi(n as i32);
        (0..dim).map(|j| ladder.moments(beta, j)).map(|(m, p)| (m, wrong / p)).unzip()
    };
    let moments = schedule.betas().iter().enumerate().map(moments).collect();
    FlowAccelerator::new(Arc::new(Affine::diagonal(schedule.betas().to_vec(), moments).expect("positive")))
}

/// Pairs of equal barrier from N(0, I) to N(0, I/precision): precisions in geometric sequence.
pub fn equal_barriers(chains: usize, precision: f64) -> Schedule {
    let pairs = chains - 1;
    let beta = |n: usize| (precision.powf(n as f64 / pairs as f64) - 1.0) / (precision - 1.0);
    let mut betas: Vec<f64> = (0..chains).map(beta).collect();
    betas[pairs] = 1.0;
    Schedule::new(betas).expect("increasing")
}

/// E f(Δ) for Gaussian work: Δ ~ N(−s²/2, s²), by the trapezoidal rule.
pub fn gaussian_work(s: f64, f: impl Fn(f64) -> f64) -> f64 {
    let step = 0.002;
    let term = |i: i32| {
        let z = f64::from(i) * step;
        (-0.5 * z * z).exp() * f(s * z - 0.5 * s * s)
    };
    (-5000..=5000).map(term).sum::<f64>() * step / std::f64::consts::TAU.sqrt()
}

/// r = 2Φ(s/2) − 1 for Gaussian work.
pub fn gaussian_rejection(s: f64) -> f64 {
    1.0 - 2.0 * normal_cdf(-0.5 * s)
}

pub fn variance(values: &[f64]) -> f64 {
    mean_and_error(values).1.powi(2) * values.len() as f64
}
