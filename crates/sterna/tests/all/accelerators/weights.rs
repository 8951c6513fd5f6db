//! Weights of paths, against paths simulated plainly, row by row and step by step.

use super::*;
use sterna::accelerator::Direction;
use sterna::call::Call;
use sterna::path::AnnealingPath;
use sterna_testkit::moves::{depart, points_of};

/// log N(x; mean, v I), up to what all have in common.
fn log_normal(x: &[f64], mean: &[f64], variance: f64) -> f64 {
    let square: f64 = x.iter().zip(mean).map(|(x, m)| (x - m).powi(2)).sum();
    -0.5 * square / variance - 0.5 * x.len() as f64 * variance.ln()
}

/// Simulates a path plainly, row by row, step by step, with the library's random numbers, and weighs
/// it by log π̃ⁿ(x_K) Π Q / (π̃ⁿ⁻¹(x₀) Π P), written out.
fn plain_path(
    path: &dyn AnnealingPath,
    direction: Direction,
    steps: usize,
    start: &[f64],
    key: u32,
    streams: &Streams,
    kernel: &PlainKernel,
) -> (Vec<f64>, f64) {
    let at = |beta: f64, x: &[f64]| {
        let points = points_of(path, &[beta], &Batch::from_vec(x.len(), x.to_vec()));
        (points.log_density[0], points.score.row(0).to_vec())
    };
    let mut x = start.to_vec();
    let mut log_weight = 0.0;
    for n in 0..steps {
        let forward = direction == Direction::Forward;
        let (k, from, to) = if forward { (n + 1, n, n + 1) } else { (steps - n, steps - n, steps - n - 1) };
        let phase = if forward { Phase::Forward } else { Phase::Backward };
        let (mean, variance) = (kernel.mean)(k, from, &x, &at((kernel.beta)(from), &x).1);
        let mut noise = streams.row(phase.number(k), 1, key);
        let y: Vec<f64> = mean.iter().map(|m| m + variance.sqrt() * noise.normal()).collect();
        let (back, back_variance) = (kernel.mean)(k, to, &y, &at((kernel.beta)(to), &y).1);
        let (out, home) = (log_normal(&y, &mean, variance), log_normal(&x, &back, back_variance));
        log_weight += if forward { home - out } else { out - home };
        x = y;
    }
    let (lower, upper) = if direction == Direction::Forward { (start, &x[..]) } else { (&x[..], start) };
    log_weight += at((kernel.beta)(steps), upper).0 - at((kernel.beta)(0), lower).0;
    (x, log_weight)
}

struct PlainKernel<'a> {
    /// β at path time k.
    beta: &'a dyn Fn(usize) -> f64,
    /// Mean and variance of step k's kernel that leaves path time `from`, of point and score there.
    mean: &'a PlainMean,
}
type PlainMean = dyn Fn(usize, usize, &[f64], &[f64]) -> (Vec<f64>, f64);

fn assert_weighs_like(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    kernel: impl Fn(Interval, usize, Direction, &[f64], u32) -> (Vec<f64>, f64),
) {
    let (path, schedule) = (ladder.path(), schedule());
    for direction in [Direction::Forward, Direction::Backward] {
        let x = ladder.draw_ladder(&schedule, &Streams::new(5), 20);
        let (travellers, mut journey) = depart(direction, &*path, &schedule, &x);
        let start = journey.points.x.clone();
        accelerator
            .travel(
                direction,
                &Call::new(&*path, &Streams::new(6), 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        for i in 0..travellers.len() {
            let (interval, pair, key) = (travellers.interval[i], travellers.pair[i], travellers.key[i]);
            let (end, log_weight) = kernel(interval, pair, direction, start.row(i), key);
            for (a, b) in end.iter().zip(journey.points.x.row(i)) {
                assert!((a - b).abs() < 1e-10 * a.abs().max(1.0), "end {a} {b}");
            }
            let found = journey.log_weight[i];
            assert!((log_weight - found).abs() < 1e-9 * found.abs().max(1.0), "weight {log_weight} {found}");
        }
    }
}

/// §5.2 with errata E6 and E8, written out.
#[test]
fn controlled_diffusions_weigh_paths_by_their_densities() {
    let ladder = MixtureLadder::new(mixture());
    let path = ladder.path();
    let (steps, noise) = (3, [0.2, 0.3]);
    let cmcd = Cmcd { steps: CmcdSteps::linear(Arc::new(Whirl), steps, &noise).unwrap() };
    assert_weighs_like(&cmcd, &ladder, |interval, pair, direction, start, key| {
        let time = move |k: usize| k as f64 / steps as f64;
        let mean = move |k: usize, from: usize, x: &[f64], score: &[f64]| {
            let mut drift = Batch::zeros(1, x.len());
            Whirl
                .drift(
                    &[interval],
                    &[time(from)],
                    &Batch::from_vec(x.len(), x.to_vec()),
                    &mut drift,
                    &mut Scratch::default(),
                )
                .unwrap();
            let delta = 1.0 / steps as f64;
            let sign = if from + 1 == k { 1.0 } else { -1.0 };
            let sigma = noise[pair - 1];
            let mean =
                (0..x.len()).map(|j| x[j] + delta * (sigma * score[j] + sign * drift.row(0)[j])).collect();
            (mean, 2.0 * delta * sigma)
        };
        let beta = |k: usize| interval.lower + time(k) * interval.width();
        let kernel = PlainKernel { beta: &beta, mean: &mean };
        plain_path(&*path, direction, steps, start, key, &Streams::new(6), &kernel)
    });
}

/// Counts the points at which it is asked.
#[derive(Clone, Default)]
struct Asked(Arc<std::sync::atomic::AtomicUsize>);

impl Drift for Asked {
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.fetch_add(x.rows(), std::sync::atomic::Ordering::Relaxed);
        Whirl.drift(pairs, times, x, out, scratch)
    }
}

/// K + 1 drifts and K evaluations a journey: each point's serve the step that leaves it and the one that
/// returns to it, and the start comes evaluated.
#[test]
fn controlled_diffusions_ask_once_at_each_point() {
    let ladder = MixtureLadder::new(mixture());
    let (path, schedule) = (ladder.path(), schedule());
    for (steps, direction) in [(1, Direction::Forward), (4, Direction::Forward), (4, Direction::Backward)] {
        let asked = Asked::default();
        let cmcd = Cmcd { steps: CmcdSteps::linear(Arc::new(asked.clone()), steps, &[0.2, 0.3]).unwrap() };
        let x = ladder.draw_ladder(&schedule, &Streams::new(5), 20);
        let (travellers, mut journey) = depart(direction, &*path, &schedule, &x);
        let before = path.evaluations();
        cmcd.travel(
            direction,
            &Call::new(&*path, &Streams::new(6), 1, &travellers),
            &mut journey,
            &mut Scratch::default(),
        )
        .unwrap();
        assert_eq!(asked.0.load(std::sync::atomic::Ordering::Relaxed), (steps + 1) * travellers.len());
        assert_eq!(path.evaluations() - before, (steps * travellers.len()) as u64);
    }
}

/// §5.3 and errata E12, written out: noising by √(1−α), α = 1 − s_{k−1}/s_k, and the exponential
/// integrator of its reversal.
#[test]
fn diffusions_weigh_paths_by_their_densities() {
    let ladder = DiffusedLadder::new(Arc::new(mixture()));
    let path = ladder.path();
    let steps = 3;
    assert_weighs_like(
        &*diffusion(steps, Integrator::Exponential),
        &ladder,
        |interval, _, direction, start, key| {
            let beta = move |k: usize| interval.lower + k as f64 / steps as f64 * interval.width();
            let mean = move |k: usize, from: usize, x: &[f64], score: &[f64]| {
                let alpha = 1.0 - beta(k - 1) / beta(k);
                let keep = (1.0 - alpha).sqrt();
                let mean = if from == k {
                    x.iter().map(|x| keep * x).collect()
                } else {
                    x.iter().zip(score).map(|(x, s)| keep * x + 2.0 * (1.0 - keep) * (x + s)).collect()
                };
                (mean, alpha)
            };
            let kernel = PlainKernel { beta: &beta, mean: &mean };
            plain_path(&*path, direction, steps, start, key, &Streams::new(6), &kernel)
        },
    );
}
