//! Every accelerator through the suite, untrained parameters included, and every fault caught (§3, §5).
//!
//! Each verdict has a false-alarm level of 10⁻⁵ over all its checks; seeds are fixed.

mod rejections;
mod weights;

use std::sync::Arc;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{
    Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Gaussian, Identity, Integrator, NoDrift,
    NormalDrift,
};
use sterna::call::Scratch;
use sterna::explorers::{Hmc, StepSizes};
use sterna::records::SamplingRecord;
use sterna::streams::{Phase, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::transport::{Drift, Flow, Interval};
use sterna::transports::{Affine, Monotone};
use sterna::{Batch, Ensemble, Result, Sampler, Schedule, Workspace, iterate};
use sterna_testkit::broken::{Broken, Fault, Mismatched, PrintedSign};
use sterna_testkit::moves::{iteration, sampler};
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

/// A map of one row at a time: moves it and returns log |det|.
trait RowMap: Send + Sync {
    fn forward(&self, pair: &Interval, x: &mut [f64]) -> f64;
    fn inverse(&self, pair: &Interval, x: &mut [f64]) -> f64;
}

/// A map of rows as a flow.
struct OfRows<M>(M);

impl<M: RowMap> Flow for OfRows<M> {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        pairs.iter().enumerate().for_each(|(i, pair)| log_det[i] = self.0.forward(pair, x.row_mut(i)));
        Ok(())
    }
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        pairs.iter().enumerate().for_each(|(i, pair)| log_det[i] = self.0.inverse(pair, x.row_mut(i)));
        Ok(())
    }
}

/// An invertible map that nobody trained: bends each coordinate, then shears the second by the first.
struct Bent;

impl Bent {
    fn size(pair: &Interval) -> f64 {
        0.8 * pair.width() + 0.2 * pair.lower
    }
}

impl RowMap for Bent {
    fn forward(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        let a = Self::size(pair);
        let mut log_det = 0.0;
        for x in x.iter_mut() {
            log_det += (a / x.cosh().powi(2)).ln_1p();
            *x += a * x.tanh();
        }
        x[1] += 0.3 * x[0] * x[0] - 0.1;
        log_det
    }
    fn inverse(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        let a = Self::size(pair);
        let mut log_det = 0.0;
        x[1] -= 0.3 * x[0] * x[0] - 0.1;
        for x in x {
            let y = *x;
            // Newton's method on an increasing function; its slope lies between 1 and 1 + a.
            for _ in 0..60 {
                *x -= (*x + a * x.tanh() - y) / (1.0 + a);
            }
            log_det -= (a / x.cosh().powi(2)).ln_1p();
        }
        log_det
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

impl RowMap for Exact {
    fn forward(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        self.map(pair.lower, pair.upper, x)
    }
    fn inverse(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        self.map(pair.upper, pair.lower, x)
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
    all_pass(
        &ladders(),
        &[("bent", flow(OfRows(Bent))), ("exact", flow(OfRows(Exact(GaussianLadder::new(normal())))))],
    );
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

/// Monotone maps fitted to few samples; and twins that forget the slope, or go down by maps of other samples. Modes are far enough apart
/// for slopes to vary: a constant that is left out is no swap's concern.
#[test]
fn fitted_monotone_maps_pass_and_their_twins_do_not() {
    let apart: Arc<dyn ExactLadder> = Arc::new(MixtureLadder::three_modes(2));
    for (name, ladder) in [("normal", ladders()[0].1.clone()), ("modes apart", apart)] {
        let schedule = schedule();
        let fitted = |seed: u64, rows: usize| {
            // Chains of their own noise each: of shared noise maps between normals would be exact.
            let chains = schedule.betas().iter().zip(0..);
            let draws = |(beta, chain): (&f64, u64)| {
                ladder.draw_betas(&[*beta], &Streams::new(seed + 100 * chain), rows)
            };
            let samples: Vec<Batch> = chains.map(draws).collect();
            Monotone::fit(schedule.betas(), &samples).unwrap()
        };
        for rows in [30, 1000] {
            let verdict = check(&*flow(fitted(17, rows)), &*ladder);
            assert!(verdict.passed(), "{rows} samples of {name}: {verdict}");
        }
        let forgetful = check(&*flow(Forgetful(fitted(17, 1000))), &*ladder);
        assert!(!forgetful.passed(), "{name}: forgotten slopes went unnoticed: {forgetful}");
        let twin = Mismatched { forward: flow(fitted(17, 30)), backward: flow(fitted(18, 30)) };
        let verdict = check(&twin, &*ladder);
        assert!(!verdict.passed(), "{name}: maps of other samples went unnoticed: {verdict}");
    }
}

/// A flow that forgets its log-determinant, both ways.
struct Forgetful<F>(F);

impl<F: Flow> Flow for Forgetful<F> {
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
        ("flow", ladders()[0].1.clone(), flow(OfRows(Bent))),
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

impl RowMap for Unweighed {
    fn forward(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        self.0.forward(pair, x);
        0.0
    }
    fn inverse(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        self.0.inverse(pair, x);
        0.0
    }
}

/// An inverse that is not one.
struct Lossy(Bent);

impl RowMap for Lossy {
    fn forward(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        self.0.forward(pair, x)
    }
    fn inverse(&self, pair: &Interval, x: &mut [f64]) -> f64 {
        let log_det = self.0.inverse(pair, x);
        x.iter_mut().for_each(|x| *x *= 0.95);
        log_det
    }
}

#[test]
fn faults_of_transports_are_caught() {
    let ladder = &*ladders()[0].1;
    check(&*flow(OfRows(Unweighed(Bent))), ladder).assert_caught();
    check(&*flow(OfRows(Lossy(Bent))), ladder).assert_caught();
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

fn uneven_steps(pairs: usize, steps: usize) -> CmcdSteps {
    let noise: Vec<f64> = (0..pairs).map(|pair| 0.2 + 0.05 * pair as f64).collect();
    CmcdSteps::linear(Arc::new(Whirl), steps, &noise).unwrap()
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

/// A whole accelerated iteration keeps the joint law, with local moves and the index process around
/// the swaps.
#[test]
fn whole_accelerated_iterations_keep_the_joint_law() {
    let cases: Vec<(Arc<dyn ExactLadder>, Arc<dyn Accelerator>)> = vec![
        (ladders()[1].1.clone(), flow(OfRows(Bent))),
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
