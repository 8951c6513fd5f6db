//! Controlled diffusions of chains that have moved: exact, the same where nothing moved, and of use where something did.

use super::{Mismatched, mixture, normal};
use std::sync::Arc;
use sterna::accelerator::{Accelerator, Crossing, Direction};
use sterna::accelerators::{Cmcd, CmcdSteps, Identity, NormalDrift};
use sterna::streams::Phase;
use sterna::{Batch, Schedule, Streams};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{ExactLadder, FALSE_ALARM, GaussianLadder, MixtureLadder, check_accelerator, seed};

/// Steps with all that they may have, uneven in every way, for three pairs.
fn steps(k: usize) -> CmcdSteps {
    let each = |pair: usize, k: usize| 0.02 + 0.03 * pair as f64 + 0.01 * k as f64;
    let noise = |scale: f64| {
        Batch::from_vec(k, (0..3).flat_map(|n| (0..k).map(move |k| scale * each(n, k))).collect())
    };
    let phi = (0..3).flat_map(|n| (0..=k).map(move |j| (j as f64 / k as f64).powf(1.0 + 0.3 * n as f64)));
    let along = (0..3 * (k + 1)).map(|i| 0.02 * (i % 4) as f64).collect();
    let drift = Arc::new(NormalDrift::new(normal()));
    let steps =
        CmcdSteps::with_backward_noise(drift, Batch::from_vec(k + 1, phi.collect()), noise(1.0), noise(1.3));
    steps.unwrap().with_score(Batch::from_vec(k + 1, along)).unwrap()
}

fn schedules() -> [Schedule; 4] {
    [
        Schedule::uniform(4),
        Schedule::uniform(3),
        Schedule::new(vec![0.0, 0.1, 0.4, 0.9, 1.0]).unwrap(),
        Schedule::new(vec![0.0, 0.7, 1.0]).unwrap(),
    ]
}

/// Wherever chains are, fewer or more of them, the law stays; a fault is caught there too.
#[test]
fn steps_of_chains_that_have_moved_are_exact() {
    let ladders: [Arc<dyn ExactLadder>; 2] =
        [Arc::new(GaussianLadder::new(normal())), Arc::new(MixtureLadder::new(mixture()))];
    let from = Schedule::uniform(4);
    for to in schedules() {
        for k in [1, 3] {
            let moved: Arc<dyn Accelerator> = Arc::new(Cmcd { steps: steps(k).at(&from, &to).unwrap() });
            for ladder in &ladders {
                check_accelerator(&*moved, &**ladder, &to, 23, FALSE_ALARM).assert_passed();
            }
            let flipped = Broken { inner: moved, fault: Fault::FlippedRatio };
            check_accelerator(&flipped, &*ladders[0], &to, 23, FALSE_ALARM).assert_caught();
        }
    }
    // Chains have moved, and the way back does not know.
    let to = schedules()[2].clone();
    let four = Schedule::new(vec![0.0, 0.2, 0.5, 0.8, 1.0]).unwrap();
    let [there, back] = [&to, &four]
        .map(|to| Arc::new(Cmcd { steps: steps(2).at(&from, to).unwrap() }) as Arc<dyn Accelerator>);
    let mismatched = Mismatched { forward: there, backward: back };
    check_accelerator(&mismatched, &*ladders[0], &to, 23, FALSE_ALARM).assert_caught();
}

/// log w of journeys from exact draws, in both directions.
fn weights(accelerator: &dyn Accelerator, schedule: &Schedule) -> Vec<[Vec<f64>; 2]> {
    let (ladder, streams) = (GaussianLadder::new(normal()), Streams::new(seed(29)));
    let of_pair = |pair: usize| {
        [Direction::Forward, Direction::Backward].map(|direction| {
            let path = ladder.path();
            let crossing = Crossing { accelerator, path: &*path, schedule, streams: &streams };
            let chain = if direction == Direction::Forward { pair - 1 } else { pair };
            let mut x = Batch::zeros(500, path.dim());
            let rows = 0..x.rows();
            rows.for_each(|i| {
                let beta = schedule.betas()[chain];
                ladder.draw(beta, &mut streams.row(Phase::Check, chain as u64, i as u32), x.row_mut(i));
            });
            let start = crossing.start(pair, direction, x).unwrap();
            crossing.cross(pair, direction, 1, start).unwrap().log_weight
        })
    };
    (1..=schedule.pairs()).map(of_pair).collect()
}

#[test]
fn where_nothing_moved_nothing_changes() {
    let from = Schedule::uniform(4);
    for k in [1, 2, 5] {
        let (before, after) = (steps(k), steps(k).at(&from, &from).unwrap());
        let [before, after] = [before, after].map(|steps| weights(&Cmcd { steps }, &from));
        for (a, b) in before.iter().flatten().flatten().zip(after.iter().flatten().flatten()) {
            assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{k}: {a} {b}");
        }
    }
}

/// Between normals the drift is known: half as many pairs and twice as many are still carried far better than by plain swaps.
#[test]
fn drifts_lead_over_other_distances() {
    let from = Schedule::uniform(4);
    let drift = Arc::new(NormalDrift::new(normal()));
    let made = CmcdSteps::linear(drift, 4, &[0.01; 3]).unwrap();
    for to in schedules() {
        let rejected = |accelerator: &dyn Accelerator| -> f64 {
            let of = |[there, back]: &[Vec<f64>; 2]| {
                there.iter().zip(back).map(|(f, b)| (0.5 * (f - b)).tanh().abs()).sum::<f64>()
                    / there.len() as f64
            };
            weights(accelerator, &to).iter().map(of).sum()
        };
        let [ours, plain] = [rejected(&Cmcd { steps: made.at(&from, &to).unwrap() }), rejected(&Identity)];
        assert!(ours < 0.5 * plain, "{to:?}: {ours} {plain}");
    }
    assert!(made.at(&Schedule::uniform(3), &from).is_err());
}
