//! What the paper proves (§3–4, App. B.4–B.6), checked on ladders in closed form. `docs/theory.md`
//! shows the same statements as plots.
//!
//! Seeds are fixed. Each test has a false-alarm level of 10⁻⁵ over all its checks, unless it says
//! otherwise; tolerances are standard errors. Left to other files, where they are tested already:
//! acceptance of unit normals, Σr → Λ on fine ladders (`closed_forms.rs`); r² ≤ SKL for every
//! accelerator (the suite of `sterna_testkit::check_accelerator`); log Z where P = Q, the printed sign
//! of the backward drift, and noise that vanishes with the pair (`accelerators.rs`).

mod extended;

use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction};
use sterna::accelerators::{
    Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Identity, Integrator, NoDrift, NormalDrift,
};
use sterna::call::{Call, Scratch};
use sterna::estimates::round_trip_rate;
use sterna::explorers::{Hmc, StepSizes};
use sterna::records::SamplingRecord;
use sterna::streams::{Phase, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::transports::Affine;
use sterna::{Ensemble, IndexProcess, Schedule, Workspace, iterate};
use sterna_testkit::extended::{Extended, ExtendedLadder};
use sterna_testkit::moves::{depart, points_of, sampler};
use sterna_testkit::p_values::{log_gamma, mean_and_error, normal_cdf, z_test, z_test_at_most_zero};
use sterna_testkit::{
    DiffusedLadder, ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, Verdict, seed,
};

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
    number: u64,
) -> Vec<Vec<f64>> {
    let path = ladder.path();
    let weights = |direction: Direction, number: u64| {
        let x = ladder.draw_ladder(schedule, &Streams::new(seed(number)), n);
        let (travellers, mut journey) = depart(direction, &*path, schedule, &x);
        let noise = Streams::new(!seed(number));
        accelerator
            .travel(
                direction,
                &Call::new(&*path, &noise, 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        journey.log_weight
    };
    let (up, down) = (weights(Direction::Forward, 2 * number), weights(Direction::Backward, 2 * number + 1));
    let pairs = schedule.pairs();
    let of_pair = |pair: usize| (pair..up.len()).step_by(pairs).map(|i| up[i] - down[i]).collect();
    (0..pairs).map(of_pair).collect()
}

/// E|tanh(Δ/2)| of each pair, with its standard error.
fn rejections(
    accelerator: &dyn Accelerator,
    ladder: &dyn ExactLadder,
    schedule: &Schedule,
    n: usize,
    number: u64,
) -> Vec<(f64, f64)> {
    let by_tanh =
        |delta: &Vec<f64>| mean_and_error(&delta.iter().map(|d| (0.5 * d).tanh().abs()).collect::<Vec<_>>());
    deltas(accelerator, ladder, schedule, n, number).iter().map(by_tanh).collect()
}

fn cmcd(drift: impl sterna::transport::Drift + 'static, steps: usize, noise: &[f64]) -> Cmcd {
    Cmcd { steps: CmcdSteps::linear(Arc::new(drift), steps, noise).unwrap() }
}

fn diffusion(steps: usize) -> Diffusion {
    Diffusion { steps: DiffusionSteps::new(steps, Integrator::Exponential).unwrap() }
}

/// E f(Δ) for Gaussian work, Δ ~ N(−s²/2, s²), by the trapezoidal rule.
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

/// ½ ∬ |p(x) q(y) − q(x) p(y)| dx dy for p = N(0, 1) and q = N(m, 1/λ), by the midpoint rule: its
/// error is below 10⁻⁴, a tenth of the standard errors it is compared with.
fn total_variation(m: f64, precision: f64) -> f64 {
    let step = 0.02;
    let grid: Vec<(f64, f64)> = (-400..400)
        .map(|i| {
            let x = (f64::from(i) + 0.5) * step;
            let p = (-0.5 * x * x).exp();
            let q = precision.sqrt() * (-0.5 * precision * (x - m) * (x - m)).exp();
            let unit = step / std::f64::consts::TAU.sqrt();
            (p * unit, q * unit)
        })
        .collect();
    let row = |&(p, q): &(f64, f64)| grid.iter().map(|(p2, q2)| (p * q2 - q * p2).abs()).sum::<f64>();
    0.5 * grid.iter().map(row).sum::<f64>()
}

/// Theorem 1: r is the total variation of P⊗Q and Q⊗P, and three observations of a swap have it as
/// their mean: whether it was rejected, 1 − min(1, e^Δ), and |tanh(Δ/2)|.
#[test]
fn three_estimators_of_the_total_variation() {
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (case, (m, precision)) in [(0.5, 1.0), (0.0, 4.0), (1.5, 0.4), (3.0, 9.0)].into_iter().enumerate() {
        let exact = total_variation(m, precision);
        let ladder = GaussianLadder::new(Normal::new(vec![m], vec![precision]));
        let n = 100_000;
        let delta = deltas(&Identity, &ladder, &Schedule::uniform(2), n, 101 + case as u64).remove(0);
        let mut uniforms = vec![0.0; n];
        let keys: Vec<u32> = (0..n as u32).collect();
        Streams::new(seed(100)).uniforms(Phase::Check, case as u64, &keys, &mut uniforms);
        let rejected = |(d, u): (&f64, &f64)| f64::from(u8::from(u.ln() >= *d));
        let values: [(&str, Vec<f64>); 3] = [
            ("counted", delta.iter().zip(&uniforms).map(rejected).collect()),
            ("acceptance", delta.iter().map(|d| 1.0 - d.min(0.0).exp()).collect()),
            ("tanh", delta.iter().map(|d| (0.5 * d).tanh().abs()).collect()),
        ];
        let estimates = values.map(|(name, values)| (name, mean_and_error(&values)));
        for (name, (mean, error)) in estimates {
            verdict.add(format!("case {case}, {name}: {mean} and {exact}"), z_test(mean - exact, error, 1.0));
        }
        let errors = estimates.map(|e| e.1.1);
        verdict
            .require(errors.is_sorted_by(|a, b| a > b), format!("case {case}: each is better than the last"));
    }
    verdict.assert_passed();
}

/// At r = 0.42 and Gaussian work: 0.243 counting, 0.117 by acceptance, 0.064 by tanh. The middle one
/// is nearer 0.118. By quadrature, so to rounding; and the means are all r.
#[test]
fn variances_of_the_three_estimators() {
    let s = 1.1068; // r = 0.42
    let r = gaussian_rejection(s);
    assert!((r - 0.42).abs() < 1e-4, "{r}");
    let moments = |f: &dyn Fn(f64) -> f64| {
        let mean = gaussian_work(s, f);
        (mean, gaussian_work(s, |d| f(d).powi(2)) - mean * mean)
    };
    let (by_acceptance, by_tanh) =
        (moments(&|d: f64| 1.0 - d.min(0.0).exp()), moments(&|d: f64| (0.5 * d).tanh().abs()));
    for (mean, _) in [by_acceptance, by_tanh] {
        assert!((mean - r).abs() < 1e-6, "{mean} {r}");
    }
    let variances = [r * (1.0 - r), by_acceptance.1, by_tanh.1];
    for (variance, expected) in variances.into_iter().zip([0.2436, 0.118, 0.064]) {
        assert!((variance - expected).abs() < 1e-3, "{variances:?}");
    }
}

/// §3.2, equation for SKL: r² ≤ SKL and r² ≤ 1 − exp(−2 SKL), the second being the tighter only where
/// SKL > 0.797. Both follow from SKL ≥ r artanh r, which is the best bound: with u = |Δ|,
/// r = E tanh(u/2) and SKL = ½ E[u tanh(u/2)], and t artanh t is convex.
#[test]
fn divergence_bounds_rejection() {
    for i in 1..=1000 {
        let r = f64::from(i) / 1001.0;
        let best = r * r.atanh();
        assert!(r * r <= best && r * r <= 1.0 - (-2.0 * best).exp() + 1e-15, "{r}");
        // Gaussian work: SKL = s²/4.
        let s = 0.01 * f64::from(i);
        let (r, divergence) = (gaussian_rejection(s), 0.25 * s * s);
        assert!(r * r.atanh() <= divergence || r > 1.0 - 1e-12, "{s}");
    }
    let tighter = |d: f64| 1.0 - (-2.0 * d).exp() < d;
    assert!(!tighter(0.79) && tighter(0.80));

    let mut verdict = Verdict::new(FALSE_ALARM);
    let schedule = Schedule::uniform(3);
    let noise = [0.15, 0.15];
    let normals = || -> Box<dyn ExactLadder> { Box::new(GaussianLadder::new(normal())) };
    type Member = (&'static str, Box<dyn Accelerator>, Box<dyn ExactLadder>);
    let members: [Member; 5] = [
        ("identity", Box::new(Identity), normals()),
        ("identity, mixture", Box::new(Identity), Box::new(MixtureLadder::new(mixture()))),
        ("no drift", Box::new(cmcd(NoDrift, 2, &noise)), Box::new(MixtureLadder::new(mixture()))),
        ("exact drift", Box::new(cmcd(NormalDrift::new(normal()), 3, &noise)), normals()),
        ("diffusion", Box::new(diffusion(4)), Box::new(DiffusedLadder::new(Arc::new(mixture())))),
    ];
    for (case, (name, accelerator, ladder)) in members.iter().enumerate() {
        for delta in deltas(&**accelerator, &**ladder, &schedule, 20_000, 120 + case as u64) {
            let by_tanh: Vec<f64> = delta.iter().map(|d| (0.5 * d).tanh().abs()).collect();
            let (r, divergence) = (mean_and_error(&by_tanh).0, -0.5 * mean_and_error(&delta).0);
            let slope = r.atanh() + r / (1.0 - r * r);
            let influence: Vec<f64> = delta.iter().zip(&by_tanh).map(|(d, t)| slope * t + 0.5 * d).collect();
            let p = z_test_at_most_zero(r * r.atanh() - divergence, mean_and_error(&influence).1, 1.0);
            verdict.add(format!("{name}: r = {r}, SKL = {divergence}"), p);
        }
    }
    verdict.assert_passed();
}

/// Proposition 2 with up to 30 pairs: τ = (2 + 2 Σ r/(1 − r))⁻¹ is the rate of index processes whose
/// swaps are independent coins. Shorter ladders are in `closed_forms.rs`. As a negative control, the limit
/// of fine ladders, (2 + 2 Σr)⁻¹ (Theorem 2), is refuted on these coarse ones.
#[test]
fn round_trip_rates_of_long_ladders() {
    let mut stream = Streams::new(140).row(Phase::Check, 0, 0);
    let uneven: Vec<f64> = (0..30).map(|_| 0.9 * stream.uniform()).collect();
    let mut bottleneck = vec![0.05; 20];
    bottleneck[7] = 0.95;
    let mut verdict = Verdict::new(FALSE_ALARM);
    let mut limit = Verdict::new(FALSE_ALARM);
    for (case, rejections) in [vec![0.1; 30], vec![0.6; 30], uneven, bottleneck].iter().enumerate() {
        let chains = rejections.len() + 1;
        let exact = round_trip_rate(rejections);
        // A replica's round trip takes this many iterations: four to forget the start.
        let turn = (chains as f64 / exact).ceil() as u64;
        let (warm, measured) = (4 * turn, 12 * turn);
        let rate = |copy: u32| {
            let mut index = IndexProcess::new(chains);
            let mut before = 0;
            for t in 1..=warm + measured {
                let mut coins = Streams::new(seed(141 + case as u64)).row(Phase::Check, t, copy);
                index.advance(t, |pair| coins.uniform() >= rejections[pair - 1]);
                if t == warm {
                    before = index.round_trips();
                }
            }
            (index.round_trips() - before) as f64 / measured as f64
        };
        let (mean, error) = mean_and_error(&(0..24).map(rate).collect::<Vec<_>>());
        verdict.add(format!("case {case}: {mean} and {exact}"), z_test(mean - exact, error, 1.0));
        let fine = 0.5 / (1.0 + rejections.iter().sum::<f64>());
        limit.add(format!("case {case}: {mean} and {fine}"), z_test(mean - fine, error, 1.0));
    }
    verdict.assert_passed();
    limit.assert_caught();
}

/// r between N(0, I) and N(0, e^{−ℓ} I): 2^{1−d}/B(d/2, d/2) ∫₀^ℓ sech^d(u/2) du, by Simpson's rule.
fn normal_rejection(dim: usize, log_ratio: f64) -> f64 {
    let d = dim as f64;
    let log_beta = 2.0 * log_gamma(0.5 * d) - log_gamma(d);
    let h = log_ratio / 400.0;
    let weight = |i: i32| if i == 0 || i == 400 { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
    let sum: f64 = (0..=400).map(|i| weight(i) * (0.5 * h * f64::from(i)).cosh().powf(-d)).sum();
    ((1.0 - d) * 2f64.ln() - log_beta).exp() * h / 3.0 * sum
}

/// Theorem 2 on normals, ladders of any fineness: rejections have a closed form, whose sum approaches
/// Λ from below, the missing share being d ℓ²/24 with ℓ the log-ratio of a pair's precisions.
#[test]
fn rejections_of_normals_at_every_fineness() {
    let precision = 10f64;
    for dim in [1, 2, 5, 20] {
        let barrier = Normal::global_barrier(dim, precision);
        let mut before = 0.0;
        for pairs in [1, 2, 4, 16, 64, 256, 1024] {
            let ell = precision.ln() / pairs as f64;
            let sum = pairs as f64 * normal_rejection(dim, ell);
            assert!(before < sum && sum < barrier, "{dim} dimensions, {pairs} pairs: {sum} {barrier}");
            before = sum;
            let share = dim as f64 * ell * ell / 24.0;
            if share < 1e-2 {
                assert!(((1.0 - sum / barrier) / share - 1.0).abs() < 0.02, "{dim} {pairs}");
            }
        }
        // In the plane the integral is elementary.
        assert!((normal_rejection(2, 1.3) - 0.65f64.tanh()).abs() < 1e-12);
    }
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (dim, pairs) in [(1, [1, 3]), (2, [1, 3]), (5, [1, 3]), (20, [4, 12])] {
        let ladder = GaussianLadder::new(Normal::isotropic(dim, precision));
        for pairs in pairs {
            let beta = |n: usize| (precision.powf(n as f64 / pairs as f64) - 1.0) / (precision - 1.0);
            let betas = (0..pairs).map(beta).chain([1.0]).collect();
            let exact = normal_rejection(dim, precision.ln() / pairs as f64);
            let number = 160 + 4 * dim as u64 + pairs as u64;
            for (r, error) in rejections(&Identity, &ladder, &Schedule::new(betas).unwrap(), 20_000, number) {
                verdict.add(
                    format!("{dim} dimensions, {pairs} pairs: {r} {exact}"),
                    z_test(r - exact, error, 1.0),
                );
            }
        }
    }
    verdict.assert_passed();
}

/// Proposition 1: where P = Q, log Z is exact from the first proposals on, from any state, and nothing
/// is rejected. (`accelerators.rs` has the same on another ladder; here chains start far off, and
/// iterations are counted from the fewest that propose every pair.)
#[test]
fn exact_maps_know_log_z_from_any_state() {
    let (dim, chains) = (5, 7);
    let target = Normal::new(vec![0.6, 0.1, -0.4, -0.9, 1.2], vec![4.0, 0.5, 9.0, 1.5, 25.0]);
    let ladder = GaussianLadder::new(target);
    let schedule = Schedule::uniform(chains);
    let moments = |&beta: &f64| (0..dim).map(|j| ladder.moments(beta, j)).map(|(m, p)| (m, 1.0 / p)).unzip();
    let moments = schedule.betas().iter().map(moments).collect();
    let affine = Affine::diagonal(schedule.betas().to_vec(), moments).unwrap();
    let exact = ladder.log_z(1.0).unwrap();
    let hmc = Hmc::with_sizes(1, 3, StepSizes::fixed(chains, dim, 0.2), 0.0);
    let mut sampler = sampler(ladder.path(), schedule, hmc, FlowAccelerator::new(Arc::new(affine)));
    sampler.streams = Streams::new(seed(180));
    for iterations in [2, 3, 8, 100, 1001] {
        let mut ensemble =
            Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, 0, 2).unwrap();
        let mut work = Workspace::new(&ensemble);
        let mut record = SamplingRecord::new(&ensemble, iterations, 1);
        for t in 1..=iterations {
            iterate(t, &mut ensemble, &sampler, &mut work, &mut record).unwrap();
        }
        let pairs = &record.counts.pairs;
        assert!(pairs.iter().all(|pair| pair.accepted == pair.proposed && pair.proposed > 0));
        let copies = pairs.chunks_exact(chains - 1);
        let works: Vec<Vec<_>> =
            copies.map(|pairs| pairs.iter().map(|p| (&p.forward[..], &p.backward[..])).collect()).collect();
        let log_z = sterna::estimates::log_z(0.0, &works);
        for estimate in [log_z.forward, log_z.backward, log_z.geometric_mean, log_z.bar] {
            assert!((estimate - exact).abs() < 1e-10, "{iterations} iterations: {estimate} {exact}");
        }
    }
}

/// Total variation between the laws of X(0), X(1/K), …, X(1) of dX = −θX dt + dB, X(0) ~ N(0, v), and of
/// its Euler discretisation, as E|tanh(L/2)| over paths of both; and KL(exact ‖ Euler) for v = 1/(2θ).
fn euler_error(theta: f64, start: f64, steps: usize, n: u32, number: u64) -> (f64, f64, f64) {
    let h = 1.0 / steps as f64;
    let (keep, exact_variance) = ((-theta * h).exp(), (1.0 - (-2.0 * theta * h).exp()) / (2.0 * theta));
    let value = |row: u32| {
        let mut noise = Streams::new(seed(number)).row(Phase::Check, steps as u64, row);
        let mut x = noise.normal() * start.sqrt();
        let mut log_ratio = -0.5 * steps as f64 * (exact_variance / h).ln();
        for _ in 0..steps {
            let (exact, euler) = (keep * x, (1.0 - theta * h) * x);
            let (mean, variance) = if row.is_multiple_of(2) { (exact, exact_variance) } else { (euler, h) };
            x = mean + variance.sqrt() * noise.normal();
            log_ratio += 0.5 * ((x - euler).powi(2) / h - (x - exact).powi(2) / exact_variance);
        }
        (0.5 * log_ratio).tanh().abs()
    };
    let (mean, error) = mean_and_error(&(0..n).map(value).collect::<Vec<_>>());
    let ratio = exact_variance / h;
    let square = 0.5 / theta;
    let step = 0.5 * (ratio - 1.0 - ratio.ln()) + (keep - 1.0 + theta * h).powi(2) * square / (2.0 * h);
    (mean, error, steps as f64 * step)
}

/// App. B.4, Proposition 4: ‖P*_K − P_K‖ = O(1/√K), where P*_K is the law of the process at the K + 1
/// grid points and P_K that of Euler's steps. For Ornstein and Uhlenbeck's process the limit of TV·√K is
/// θ/(2√π): per step only the variance is wrong, by a share θ/K, so the log-ratio of K steps tends to a
/// normal of variance θ²/(2K). With θ = 1 that is 0.2821, whatever σ and the start.
#[test]
fn euler_steps_of_an_ornstein_uhlenbeck_process() {
    let limit = 0.5 / std::f64::consts::PI.sqrt();
    assert!((limit - 0.282).abs() < 1e-3);
    let mut verdict = Verdict::new(FALSE_ALARM);
    for (case, (theta, start)) in [(1.0, 0.5), (1.0, 0.0), (2.0, 0.25)].into_iter().enumerate() {
        let steps = 256;
        let (distance, error, divergence) = euler_error(theta, start, steps, 20_000, 200 + case as u64);
        let root = (steps as f64).sqrt();
        // What is left at 256 steps is a share of about θ/K.
        let expected = theta * limit / root * (1.0 - 0.5 * theta / steps as f64);
        verdict.add(
            format!("θ = {theta}: TV·√K = {} and {}", distance * root, expected * root),
            z_test(distance - expected, error.hypot(0.5 * expected * theta / steps as f64), 1.0),
        );
        verdict.require(distance < (0.5 * divergence).sqrt(), "Pinsker's bound holds");
        // Negative control: the constant of Pinsker's bound, θ/√8, is another.
        let bound = theta / (8f64.sqrt() * root);
        verdict.require(z_test(distance - bound, error, 1.0) < FALSE_ALARM, "another constant is refuted");
    }
    // One step from a point: two normals of variances a < b, whose densities cross at
    // x² = ln(b/a) ab/(b − a).
    let (a, b): (f64, f64) = (0.5 * (1.0 - (-2f64).exp()), 1.0);
    let cross = ((b / a).ln() * a * b / (b - a)).sqrt();
    let exact = 2.0 * (normal_cdf(cross / a.sqrt()) - normal_cdf(cross / b.sqrt()));
    let (distance, error, _) = euler_error(1.0, 0.0, 1, 50_000, 210);
    verdict.add(format!("one step: {distance} {exact}"), z_test(distance - exact, error, 1.0));
    verdict.assert_passed();
}

/// Proposition 3: r_K → r_∞, at least like 1/√K. Annealed Langevin dynamics from N(0, 1) to N(m, 1) has
/// a limit in closed form: its work is Gaussian with variance v = 2m²/c (1 − (1 − e^{−c})/c), c = σ², so
/// r_∞ = 2Φ(√(v/2)) − 1. It is reached like 1/K: the excess over r_∞ halves from K to 2K.
#[test]
fn rejections_tend_to_those_of_the_continuous_process() {
    let (m, c) = (2.0, 2.0);
    let v: f64 = 2.0 * m * m / c * (1.0 - (1.0 - f64::exp(-c)) / c);
    let limit = gaussian_rejection((2.0 * v).sqrt());
    let ladder = GaussianLadder::new(Normal::new(vec![m], vec![1.0]));
    let excess = |steps: usize, n: usize| {
        let (r, error) =
            rejections(&cmcd(NoDrift, steps, &[c]), &ladder, &Schedule::uniform(2), n, 220 + steps as u64)[0];
        (r - limit, error)
    };
    let mut verdict = Verdict::new(FALSE_ALARM);
    let (coarse, fine, finest) = (excess(8, 60_000), excess(16, 60_000), excess(128, 10_000));
    // Terms of order 1/K² are allowed a tenth.
    let allowed = 0.1 * coarse.0 / 3.0;
    verdict.add(
        format!("excess {} at 8 and {} at 16 steps", coarse.0, fine.0),
        z_test(coarse.0 - 2.0 * fine.0, coarse.1.hypot(2.0 * fine.1).hypot(allowed), 1.0),
    );
    let expected = coarse.0 / 16.0;
    verdict.add(
        format!("r_128 exceeds r_∞ = {limit} by {}", finest.0),
        z_test(finest.0 - expected, finest.1.hypot(coarse.1 / 16.0).hypot(0.2 * expected / 3.0), 1.0),
    );
    verdict.require(coarse.0 > 20.0 * coarse.1, "the excess at 8 steps is seen clearly");
    verdict.assert_passed();
}
