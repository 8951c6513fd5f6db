//! Accelerated swaps as plain swaps on a larger space, and steps in time against chains in parallel (App. B.6).

use super::*;

/// App. B.6, Proposition 5: accelerated swaps are plain swaps on the extended space. Path by path, the log-weight is
/// log π_ex^n − log π_ex^{n−1} + log Zₙ/Zₙ₋₁, whatever the other coordinates are; so rejection rates agree.
#[test]
fn accelerated_swaps_are_plain_swaps_on_a_larger_space() {
    let (chains, noise) = (5, 0.1);
    let schedule = Schedule::uniform(chains);
    let target = || GaussianLadder::new(Normal::new(vec![1.5], vec![8.0]));
    let extended = Arc::new(Extended { ladder: target(), schedule: schedule.clone(), noise });
    let accelerator = cmcd(NoDrift, 1, &vec![noise; chains - 1]);

    let ladder = target();
    let path = ladder.path();
    for direction in [Direction::Forward, Direction::Backward] {
        let x = ladder.draw_ladder(&schedule, &Streams::new(241), 50);
        let (travellers, mut journey) = depart(direction, &*path, &schedule, &x);
        let start = journey.points.x.clone();
        accelerator
            .travel(
                direction,
                &Call::new(&*path, &Streams::new(242), 1, &travellers),
                &mut journey,
                &mut Scratch::default(),
            )
            .unwrap();
        for (i, &pair) in travellers.pair.iter().enumerate() {
            let ends = (start.row(i)[0], journey.points.x.row(i)[0]);
            let (lower, upper) = if direction == Direction::Forward { ends } else { (ends.1, ends.0) };
            let mut others = Streams::new(243).row(Phase::Check, 0, i as u32);
            let mut point: Vec<f64> = (0..chains).map(|_| 2.0 * others.normal()).collect();
            (point[pair - 1], point[pair]) = (lower, upper);
            let log_z = |chain: usize| ladder.log_z(schedule.betas()[chain]).unwrap();
            let expected = extended.log_density(pair, &point) - extended.log_density(pair - 1, &point)
                + log_z(pair)
                - log_z(pair - 1);
            let found = journey.log_weight[i];
            assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
        }
    }

    let mut verdict = Verdict::new(FALSE_ALARM);
    let accelerated = rejections(&accelerator, &ladder, &schedule, 20_000, 244);
    let plain = rejections(&Identity, &ExtendedLadder(extended), &schedule, 20_000, 245);
    for (pair, (a, b)) in accelerated.iter().zip(&plain).enumerate() {
        verdict.add(format!("pair {}: {} {}", pair + 1, a.0, b.0), z_test(a.0 - b.0, a.1.hypot(b.1), 1.0));
    }
    verdict.assert_passed();
}

/// Local round trip rates (App. B.6, "Parallelism versus Acceleration Time") on the exact diffusion path
/// from s = 0.1 on: K steps in one pair against one step in each of K pairs.
fn time_and_parallel(ladder: &dyn ExactLadder, steps: usize, n: usize, number: u64) -> (f64, f64) {
    let rate = |accelerator: &Diffusion, pieces: usize, number: u64| {
        let inner = (0..pieces).map(|k| 0.1 + 0.9 * k as f64 / pieces as f64);
        let schedule = Schedule::new([0.0].into_iter().chain(inner).chain([1.0]).collect()).unwrap();
        // The first pair starts at s = 0, where no step accelerates (errata E12).
        let each: Vec<f64> =
            rejections(accelerator, ladder, &schedule, n, number)[1..].iter().map(|r| r.0).collect();
        round_trip_rate(&each)
    };
    (rate(&diffusion(steps), 1, number), rate(&diffusion(1), steps, number + 1))
}

/// The paper finds chains in parallel preferable to steps in time. Here it depends: on a hard pair
/// (10 dimensions, r ≈ 1) chains win while steps are few, and steps win once they are many, since Σr of K
/// pairs tends to a constant while r_K tends to zero. The asserted gaps are a tenth, the standard errors
/// of the rates below 2%.
#[test]
fn steps_in_time_against_chains_in_parallel() {
    let hard = DiffusedLadder::new(Arc::new(Normal::isotropic(10, 10.0)));
    let (time, parallel) = time_and_parallel(&hard, 4, 6000, 260);
    assert!(parallel > 1.1 * time, "few steps: {time} {parallel}");
    let (time, parallel) = time_and_parallel(&hard, 32, 2000, 262);
    assert!(time > 1.1 * parallel, "many steps: {time} {parallel}");
    let easy = DiffusedLadder::new(Arc::new(mixture()));
    let (time, parallel) = time_and_parallel(&easy, 8, 6000, 264);
    assert!(time > 1.1 * parallel, "an easy pair: {time} {parallel}");
}

/// The densities of the extended space belong to its draws: π_ex^n/π_ex^{n−1} averages to one over draws
/// from π_ex^{n−1}.
#[test]
fn extended_densities_are_those_of_the_extended_draws() {
    let schedule = Schedule::uniform(4);
    let ladder = GaussianLadder::new(Normal::new(vec![0.8], vec![3.0]));
    let extended = ExtendedLadder(Arc::new(Extended { ladder, schedule: schedule.clone(), noise: 0.15 }));
    let path = extended.path();
    let mut verdict = Verdict::new(FALSE_ALARM);
    for pair in 1..=schedule.pairs() {
        let interval = schedule.interval(pair);
        let x = extended.draw_betas(&[interval.lower], &Streams::new(seed(270 + pair as u64)), 20_000);
        let at = |beta: f64| points_of(&*path, &[beta], &x).log_density;
        let ratios: Vec<f64> =
            at(interval.upper).iter().zip(at(interval.lower)).map(|(u, l)| (u - l).exp()).collect();
        let (mean, error) = mean_and_error(&ratios);
        verdict.add(format!("pair {pair}: {mean}"), z_test(mean - 1.0, error, 1.0));
    }
    verdict.assert_passed();
}
