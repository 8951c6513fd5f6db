//! Every accelerator through the suite, untrained parameters included, and every fault caught (§3, §5).
//!
//! Each verdict has a false-alarm level of 10⁻⁵ over all its checks; seeds are fixed.

use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::{
    Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Gaussian, GaussianSteps, Identity,
    Integrator, NoDrift, NormalDrift,
};
use sterna::call::{Call, Rows, Scratch};
use sterna::explorers::{Hmc, StepSizes};
use sterna::path::{AnnealingPath, Points};
use sterna::records::SamplingRecord;
use sterna::streams::{Phase, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::transport::{Drift, Flow, Interval};
use sterna::transports::Affine;
use sterna::{Batch, Ensemble, Result, Sampler, Schedule, Workspace, iterate};
use sterna_testkit::broken::{Broken, Fault, Mismatched};
use sterna_testkit::moves::{depart, iteration, points_of, sampler};
use sterna_testkit::p_values::mean_and_error;
use sterna_testkit::{
    DiffusedLadder, ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, Statistic, Verdict,
    check_accelerator, check_invariance,
};

fn normal() -> Normal {
    Normal::new(vec![0.6, -0.4], vec![4.0, 0.5])
}

/// Three modes near enough for weights to have a variance.
fn mixture() -> Gmm {
    Gmm::new(2, vec![[0.8, 0.3], [-0.7, 0.6], [0.1, -0.9]], 0.5)
}

fn ladders() -> Vec<(&'static str, Arc<dyn ExactLadder>)> {
    vec![
        ("normal", Arc::new(GaussianLadder::new(normal()))),
        ("mixture", Arc::new(MixtureLadder::new(mixture()))),
    ]
}

fn diffused_ladders() -> Vec<(&'static str, Arc<dyn ExactLadder>)> {
    vec![
        ("diffused normal", Arc::new(DiffusedLadder::new(Arc::new(normal())))),
        ("diffused mixture", Arc::new(DiffusedLadder::new(Arc::new(mixture())))),
    ]
}

/// An invertible map that nobody trained: bends each coordinate, then shears the second by the first.
struct Bent;

impl Bent {
    fn size(pair: &Interval) -> f64 {
        0.8 * pair.width() + 0.2 * pair.lower
    }
}

impl Flow for Bent {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            let a = Self::size(pair);
            log_det[i] = 0.0;
            let row = x.row_mut(i);
            for x in row.iter_mut() {
                log_det[i] += (a / x.cosh().powi(2)).ln_1p();
                *x += a * x.tanh();
            }
            row[1] += 0.3 * row[0] * row[0] - 0.1;
        }
        Ok(())
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            let a = Self::size(pair);
            log_det[i] = 0.0;
            let row = x.row_mut(i);
            row[1] -= 0.3 * row[0] * row[0] - 0.1;
            for x in row.iter_mut() {
                let y = *x;
                // Newton's method on an increasing function; its slope lies between 1 and 1 + a.
                for _ in 0..60 {
                    *x -= (*x + a * x.tanh() - y) / (1.0 + a);
                }
                log_det[i] -= (a / x.cosh().powi(2)).ln_1p();
            }
        }
        Ok(())
    }
}

/// x ↦ m′ + (x − m) √(p/p′): takes each chain of a normal ladder exactly to the next.
struct Exact(GaussianLadder);

impl Exact {
    fn map(&self, from: f64, to: f64, x: &mut [f64]) -> f64 {
        let mut log_det = 0.0;
        for (j, x) in x.iter_mut().enumerate() {
            let ((m, p), (m2, p2)) = (self.0.moments(from, j), self.0.moments(to, j));
            *x = m2 + (*x - m) * (p / p2).sqrt();
            log_det += 0.5 * (p / p2).ln();
        }
        log_det
    }
}

impl Flow for Exact {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(pair.lower, pair.upper, x.row_mut(i));
        }
        Ok(())
    }
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(pair.upper, pair.lower, x.row_mut(i));
        }
        Ok(())
    }
}

/// A drift that nobody trained.
struct Whirl;

impl Drift for Whirl {
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, (pair, time)) in pairs.iter().zip(times).enumerate() {
            let x = x.row(i);
            for (j, out) in out.row_mut(i).iter_mut().enumerate() {
                let other = x[(j + 1) % x.len()];
                *out = pair.width() * (0.9 * other.sin() - 0.5 * x[j] + 0.6 * time);
            }
        }
        Ok(())
    }
}

fn flow(flow: impl Flow + 'static) -> Arc<dyn Accelerator> {
    Arc::new(FlowAccelerator::new(Arc::new(flow)))
}

/// φ and σ of every pair and step are different.
fn uneven_cmcd(drift: impl Drift + 'static, pairs: usize, steps: usize, scale: f64) -> Arc<dyn Accelerator> {
    let mut interpolation = Vec::new();
    let mut noise = Vec::new();
    for pair in 0..pairs {
        interpolation.extend((0..=steps).map(|k| (k as f64 / steps as f64).powf(1.0 + 0.5 * pair as f64)));
        noise.extend((0..steps).map(|k| scale * (0.15 + 0.1 * k as f64 / steps as f64 + 0.05 * pair as f64)));
    }
    let (interpolation, noise) = (Batch::from_vec(steps + 1, interpolation), Batch::from_vec(steps, noise));
    Arc::new(Cmcd { steps: CmcdSteps::new(Arc::new(drift), interpolation, noise).unwrap() })
}

/// An untrained drift with a part along the score, another at every step of every pair.
fn along_score(pairs: usize, steps: usize) -> Arc<dyn Accelerator> {
    let shares = (0..pairs * (steps + 1)).map(|i| 0.2 * (i as f64 * 0.754_877_7).fract() - 0.05).collect();
    let steps = uneven_steps(pairs, steps).with_score(Batch::from_vec(steps + 1, shares)).unwrap();
    Arc::new(Cmcd { steps })
}

fn diffusion(steps: usize, integrator: Integrator) -> Arc<dyn Accelerator> {
    Arc::new(Diffusion { steps: DiffusionSteps::new(steps, integrator).unwrap() })
}

fn schedule() -> Schedule {
    Schedule::new(vec![0.0, 0.35, 1.0]).unwrap()
}

fn check(accelerator: &dyn Accelerator, ladder: &dyn ExactLadder) -> Verdict {
    check_accelerator(accelerator, ladder, &schedule(), 21, FALSE_ALARM)
}

fn all_pass(ladders: &[(&str, Arc<dyn ExactLadder>)], accelerators: &[(&str, Arc<dyn Accelerator>)]) {
    for (ladder_name, ladder) in ladders {
        for (name, accelerator) in accelerators {
            let verdict = check(&**accelerator, &**ladder);
            assert!(verdict.passed(), "{name} on {ladder_name}: {verdict}");
        }
    }
}

#[test]
fn flows_pass() {
    all_pass(&ladders(), &[("bent", flow(Bent)), ("exact", flow(Exact(GaussianLadder::new(normal()))))]);
}

/// Affine maps fitted to few samples, hence far from exact.
#[test]
fn fitted_affine_maps_pass() {
    for (name, ladder) in ladders() {
        let schedule = schedule();
        let draws = |beta: &f64| ladder.draw_betas(&[*beta], &Streams::new(17), 30);
        let samples: Vec<Batch> = schedule.betas().iter().map(draws).collect();
        for full in [false, true] {
            let affine = Affine::fit(schedule.betas(), &samples, full).unwrap();
            let verdict = check(&*flow(affine), &*ladder);
            assert!(verdict.passed(), "full: {full}, on {name}: {verdict}");
        }
    }
}

#[test]
fn controlled_diffusions_pass() {
    let members: Vec<(&str, Arc<dyn Accelerator>)> = vec![
        ("no drift", uneven_cmcd(NoDrift, 2, 1, 1.0)),
        ("exact drift", uneven_cmcd(NormalDrift::new(normal()), 2, 5, 1.0)),
        ("untrained drift", uneven_cmcd(Whirl, 2, 3, 1.0)),
        ("drift along the score", along_score(2, 3)),
    ];
    all_pass(&ladders(), &members);
}

#[test]
fn diffusions_pass() {
    let members: Vec<(&str, Arc<dyn Accelerator>)> = vec![
        ("K = 0", Arc::new(Identity)),
        ("exponential, K = 1", diffusion(1, Integrator::Exponential)),
        ("exponential, K = 4", diffusion(4, Integrator::Exponential)),
        ("Euler, K = 3", diffusion(3, Integrator::Euler)),
    ];
    all_pass(&diffused_ladders(), &members);
}

#[test]
fn faults_of_every_family_are_caught() {
    let one_pair = Schedule::uniform(2);
    let families = [
        ("flow", ladders()[0].1.clone(), flow(Bent)),
        ("cmcd", ladders()[0].1.clone(), uneven_cmcd(Whirl, 1, 2, 1.0)),
        ("diffusion", diffused_ladders()[0].1.clone(), diffusion(2, Integrator::Exponential)),
    ];
    for (name, ladder, inner) in families {
        for fault in Fault::ALL {
            let broken = Broken { inner: inner.clone(), fault };
            let verdict = check_accelerator(&broken, &*ladder, &one_pair, 22, FALSE_ALARM);
            assert!(!verdict.passed(), "{name}: {fault:?} went unnoticed: {verdict}");
        }
    }
}

/// Forgets the log-determinant of the map, both ways.
struct Unweighed(Bent);

impl Flow for Unweighed {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.forward(pairs, x, log_det, scratch)?;
        log_det.fill(0.0);
        Ok(())
    }
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.inverse(pairs, x, log_det, scratch)?;
        log_det.fill(0.0);
        Ok(())
    }
}

/// An inverse that is not one.
struct Lossy(Bent);

impl Flow for Lossy {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.forward(pairs, x, log_det, scratch)
    }
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.inverse(pairs, x, log_det, scratch)?;
        x.as_mut_slice().iter_mut().for_each(|x| *x *= 0.95);
        Ok(())
    }
}

#[test]
fn faults_of_transports_are_caught() {
    let ladder = &*ladders()[0].1;
    check(&*flow(Unweighed(Bent)), ladder).assert_caught();
    check(&*flow(Lossy(Bent)), ladder).assert_caught();
    // σ of the way down is not that of the way up.
    let sigma =
        Mismatched { forward: uneven_cmcd(Whirl, 2, 2, 1.0), backward: uneven_cmcd(Whirl, 2, 2, 1.3) };
    check(&sigma, ladder).assert_caught();
    // The backward kernel has the printed sign on the way down only.
    let sign = Mismatched {
        forward: uneven_cmcd(Whirl, 2, 2, 1.0),
        backward: Arc::new(Gaussian { steps: PrintedSign(uneven_steps(2, 2)) }),
    };
    check(&sign, ladder).assert_caught();
    let integrators = Mismatched {
        forward: diffusion(2, Integrator::Exponential),
        backward: diffusion(2, Integrator::Euler),
    };
    check(&integrators, &*diffused_ladders()[0].1).assert_caught();
}

/// A controlled diffusion with the printed backward mean x − Δs (σ² ∇U − b) (errata E6): still sound,
/// since P and Q may be any kernels, but of little use.
struct PrintedSign(CmcdSteps);

impl GaussianSteps for PrintedSign {
    fn steps(&self) -> usize {
        self.0.steps()
    }
    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.0.betas(rows, k, out);
    }
    fn variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.0.variances(rows, k, out);
    }
    fn control(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.control(rows, k, points, out, scratch)
    }
    fn forward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.0.forward_means(rows, k, points, control, out)
    }
    fn backward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.0.backward_means(rows, k, points, control, out)?;
        for (out, x) in out.as_mut_slice().iter_mut().zip(points.x.as_slice()) {
            *out = 2.0 * x - *out;
        }
        Ok(())
    }
}

fn uneven_steps(pairs: usize, steps: usize) -> CmcdSteps {
    let noise: Vec<f64> = (0..pairs).map(|pair| 0.2 + 0.05 * pair as f64).collect();
    CmcdSteps::linear(Arc::new(Whirl), steps, &noise).unwrap()
}

/// Mean acceptance of each pair over exact ladders.
fn acceptance(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
) -> Vec<f64> {
    rejection(accelerator, ladder, schedule, n).iter().map(|(mean, _)| 1.0 - mean).collect()
}

/// Rejection rate of each pair with its standard error, by the tanh estimator over exact ladders.
fn rejection(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
) -> Vec<(f64, f64)> {
    let path = ladder.path();
    let weights = |direction: Direction, seed: u64| {
        let x = ladder.draw_ladder(schedule, &Streams::new(seed), n);
        let (travellers, mut journey) = depart(direction, &*path, schedule, &x);
        accelerator
            .travel(
                direction,
                &Call::new(&*path, &Streams::new(7), 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        journey.log_weight
    };
    let (up, down) = (weights(Direction::Forward, 31), weights(Direction::Backward, 32));
    let pairs = schedule.pairs();
    (0..pairs)
        .map(|pair| {
            let of_pair = (pair..up.len()).step_by(pairs);
            let values: Vec<f64> = of_pair.map(|i| (0.5 * (up[i] - down[i])).tanh().abs()).collect();
            mean_and_error(&values)
        })
        .collect()
}

/// Errata E6: identical normals, many steps. The corrected reversal hardly rejects; the printed one does.
#[test]
fn the_printed_sign_is_sound_but_useless() {
    let normal = Normal::isotropic(2, 1.0);
    let ladder = GaussianLadder::new(normal.clone());
    let steps = || CmcdSteps::linear(Arc::new(NoDrift), 100, &[1.0]).unwrap();
    let ours = Cmcd { steps: steps() };
    let printed = Gaussian { steps: PrintedSign(steps()) };
    let schedule = Schedule::uniform(2);
    let (ours_accepts, printed_accepts) =
        (acceptance(&ours, &ladder, &schedule, 4000)[0], acceptance(&printed, &ladder, &schedule, 4000)[0]);
    assert!(ours_accepts > 0.98 && printed_accepts < 0.5 * ours_accepts, "{ours_accepts} {printed_accepts}");
    // A sound accelerator is what the suite asks for, not a good one.
    check(&Gaussian { steps: PrintedSign(uneven_steps(2, 2)) }, &*ladders()[0].1).assert_passed();
}

/// Exact affine ladder: every swap accepted, log Z exact, for any number of iterations.
#[test]
fn an_exact_transport_accepts_always_and_knows_log_z() {
    let chains = 6;
    let ladder = GaussianLadder::new(normal());
    let exact_log_z = ladder.log_z(1.0).unwrap();
    let accelerator = FlowAccelerator::new(Arc::new(Exact(GaussianLadder::new(normal()))));
    let hmc = Hmc::with_sizes(1, 3, StepSizes::fixed(chains, 2, 0.3), 0.0);
    let sampler = sampler(ladder.path(), Schedule::uniform(chains), hmc, accelerator);
    for iterations in [10, 501] {
        let record = sample(&sampler, 2, iterations).1;
        assert!(record.counts.pairs.iter().all(|pair| pair.accepted == pair.proposed));
        let works: Vec<Vec<_>> = record
            .counts
            .pairs
            .chunks_exact(chains - 1)
            .map(|pairs| pairs.iter().map(|p| (&p.forward[..], &p.backward[..])).collect())
            .collect();
        let log_z = sterna::estimates::log_z(0.0, &works);
        for estimate in [log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar] {
            assert!((estimate - exact_log_z).abs() < 1e-10, "{estimate} {exact_log_z}");
        }
    }
}

fn sample(sampler: &Sampler, copies: usize, iterations: u64) -> (Ensemble, SamplingRecord) {
    let mut ensemble =
        Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, 0, copies).unwrap();
    let mut work = Workspace::new(&ensemble);
    let mut record = SamplingRecord::new(&ensemble, iterations, 1);
    for t in 1..=iterations {
        iterate(t, &mut ensemble, sampler, &mut work, &mut record).unwrap();
    }
    (ensemble, record)
}

/// Errata E9: with σ² = Δβ σ̃² the accelerator becomes the identity as Δβ → 0, and Σr stays bounded
/// from 8 to 256 chains: it may grow by 10% and 5 standard errors. With one σ² for all it grows on.
#[test]
fn rejections_stay_bounded_when_noise_vanishes_with_the_pair() {
    let target = Normal::isotropic(2, 10.0);
    let ladder = GaussianLadder::new(target.clone());
    let sum = |drift: Arc<dyn Drift>, chains: usize, scaled: bool, n: usize| {
        // Equal barriers: precisions in geometric sequence.
        let pairs = chains - 1;
        let mut betas: Vec<f64> =
            (0..chains).map(|n| (10f64.powf(n as f64 / pairs as f64) - 1.0) / 9.0).collect();
        betas[pairs] = 1.0;
        let schedule = Schedule::new(betas).unwrap();
        let noise: Vec<f64> = (1..chains)
            .map(|pair| 0.05 * if scaled { 8.0 * schedule.interval(pair).width() } else { 1.0 })
            .collect();
        let cmcd = Cmcd { steps: CmcdSteps::linear(drift, 2, &noise).unwrap() };
        let each = rejection(&cmcd, &ladder, &schedule, n);
        let error = each.iter().map(|(_, e)| e * e).sum::<f64>().sqrt();
        (each.iter().map(|(r, _)| r).sum::<f64>(), error)
    };
    let drifts: [Arc<dyn Drift>; 2] = [Arc::new(NoDrift), Arc::new(NormalDrift::new(target))];
    for drift in drifts {
        let (few, few_error) = sum(drift.clone(), 8, true, 8000);
        let (many, many_error) = sum(drift.clone(), 256, true, 400);
        let allowed = 1.1 * few + 5.0 * few_error.hypot(many_error);
        assert!(many < allowed, "{few} ± {few_error} to {many} ± {many_error}");
        let (fixed, _) = sum(drift, 256, false, 400);
        assert!(fixed > 2.0 * many, "{many} {fixed}");
    }
}

/// N(0, 1) becomes N(0, 1/p) by one noisy step along the score, whatever its noise: with x' = a x + √v z the law of x
/// given x' is normal with mean b x', b = a p, and variance u = 1 − a² p. Every weight is then Z′/Z, and nothing is rejected.
/// Without that part, or with a wrong one, swaps are.
#[test]
fn one_step_along_the_score_makes_one_normal_of_another() {
    let (p, v) = (10.0f64, 0.02);
    let ladder = GaussianLadder::new(Normal::isotropic(2, p));
    let a = (1.0 / p - v).sqrt();
    let (b, u) = (a * p, 1.0 - a * a * p);
    // Means are x (1 − (v/2 + c) score's precision) on the way there, with u and −c on the way back.
    let shares = [1.0 - a - 0.5 * v, (b - 1.0) / p + 0.5 * u];
    let rejected = |shares: [f64; 2]| {
        let one = |x: f64| Batch::from_vec(1, vec![x]);
        let ends = Batch::from_vec(2, vec![0.0, 1.0]);
        let steps =
            CmcdSteps::with_backward_noise(Arc::new(NoDrift), ends, one(0.5 * v), one(0.5 * u)).unwrap();
        let cmcd = Cmcd { steps: steps.with_score(Batch::from_vec(2, shares.to_vec())).unwrap() };
        rejection(&cmcd, &ladder, &Schedule::uniform(2), 500)[0].0
    };
    assert!(rejected(shares) < 1e-12, "{}", rejected(shares));
    for wrong in [[0.0, 0.0], [-shares[0], shares[1]], [shares[0], -shares[1]]] {
        assert!(rejected(wrong) > 0.1, "{wrong:?} {}", rejected(wrong));
    }
}

/// With the exact drift, or the exact score, what is left to reject is the discretisation: rejections
/// fall at least like 1/√K (half of that rate is asked for, from 4 steps to 64).
#[test]
fn rejections_of_exact_dynamics_vanish_with_steps() {
    let geometric = GaussianLadder::new(normal());
    let diffused = DiffusedLadder::new(Arc::new(mixture()));
    let schedule = Schedule::uniform(2);
    let by_drift = |steps: usize| {
        let noise = [0.1];
        let drift = Arc::new(NormalDrift::new(normal()));
        let cmcd = Cmcd { steps: CmcdSteps::linear(drift, steps, &noise).unwrap() };
        rejection(&cmcd, &geometric, &schedule, 3000)[0].0
    };
    let later = Schedule::new(vec![0.0, 0.2, 1.0]).unwrap();
    // The first step from s = 0 is no step (errata E12): what counts is the pair after it.
    let by_score =
        |steps: usize| rejection(&*diffusion(steps, Integrator::Exponential), &diffused, &later, 3000)[1].0;
    for (name, few, many) in [("drift", by_drift(4), by_drift(64)), ("score", by_score(4), by_score(64))] {
        assert!(many < 0.5 * few && many > 0.0, "{name}: {few} {many}");
    }
}

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

/// A whole accelerated iteration keeps the joint law, with local moves and the index process around
/// the swaps.
#[test]
fn whole_accelerated_iterations_keep_the_joint_law() {
    let cases: Vec<(Arc<dyn ExactLadder>, Arc<dyn Accelerator>)> = vec![
        (ladders()[1].1.clone(), flow(Bent)),
        (ladders()[1].1.clone(), uneven_cmcd(Whirl, 2, 2, 1.0)),
        (diffused_ladders()[1].1.clone(), diffusion(2, Integrator::Exponential)),
    ];
    for (ladder, accelerator) in cases {
        for t in [1, 2] {
            let hmc = Hmc::with_sizes(1, 3, StepSizes::fixed(3, 2, 0.4), 0.2);
            let mut sampler = sampler(ladder.path(), schedule(), hmc, Identity);
            sampler.accelerator = accelerator.clone();
            check_invariance(
                |streams| ladder.draw_ladder(&sampler.schedule, streams, 6000),
                iteration(&sampler, t),
                &Statistic::ladder(&sampler.path, sampler.schedule.betas()),
                40 + t,
                FALSE_ALARM,
            )
            .assert_passed();
        }
    }
}

/// A path that comes out as no number is a rejected one, and spoils no estimate.
#[test]
fn weights_that_are_no_numbers_are_rejections() {
    let ladder = GaussianLadder::new(normal());
    let broken = Broken { inner: Arc::new(Identity), fault: Fault::NotANumber };
    let hmc = Hmc::with_sizes(1, 3, StepSizes::fixed(3, 2, 0.3), 0.0);
    let sampler = sampler(ladder.path(), schedule(), hmc, broken);
    let (_, record) = sample(&sampler, 2, 2000);
    let works: Vec<Vec<_>> = record
        .counts
        .pairs
        .chunks_exact(2)
        .map(|pairs| pairs.iter().map(|p| (&p.forward[..], &p.backward[..])).collect())
        .collect();
    let log_z = sterna::estimates::log_z(0.0, &works);
    assert!(works.iter().flatten().all(|(f, b)| f.iter().chain(*b).all(|w| !w.is_nan())));
    // Replica 1 of the first ladder answers no numbers; its ladder accepts only what avoids it.
    assert!(works.iter().flatten().any(|(f, _)| f.contains(&f64::NEG_INFINITY)));
    let estimates = [log_z.forward, log_z.backward, log_z.bar, log_z.standard_error];
    assert!(estimates.iter().all(|x| x.is_finite()), "{estimates:?}");
    let z = (log_z.bar - ladder.log_z(1.0).unwrap()) / log_z.standard_error;
    assert!(z.abs() < 5.0, "{z}");
}
