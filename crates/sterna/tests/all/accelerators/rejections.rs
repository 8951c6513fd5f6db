//! What swaps gain: rejections of exact, long and vanishing transports.

use super::*;
use sterna::accelerator::Direction;
use sterna::call::Call;
use sterna_testkit::moves::depart;
use sterna_testkit::p_values::mean_and_error;

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
    let accelerator = FlowAccelerator::new(Arc::new(OfRows(Exact(GaussianLadder::new(normal())))));
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
