//! What tests of local moves share: a schedule, the verdict on exact ladders, and sameness to the bit.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::explorer::Explorer;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::streams::Streams;
use sterna::targets::Banana;
use sterna::{Batch, Schedule};
use sterna_testkit::moves::explore;
use sterna_testkit::{ExactLadder, FALSE_ALARM, MixtureLadder, Statistic, Verdict, check_invariance};

pub const LADDERS: usize = 6000;

pub fn schedule() -> Schedule {
    Schedule::new(vec![0.0, 0.2, 0.55, 1.0]).unwrap()
}

/// Exact draws of every chain of [`schedule`], one call of the explorer: is the law the same?
pub fn check_explorer(ladder: &dyn ExactLadder, explorer: &dyn Explorer, seed: u64) -> Verdict {
    let (path, schedule) = (ladder.path(), schedule());
    check_invariance(
        |streams| ladder.draw_ladder(&schedule, streams, LADDERS),
        explore(&*path, schedule.betas(), explorer),
        &Statistic::ladder(&path, schedule.betas()),
        seed,
        FALSE_ALARM,
    )
}

/// Two explorers move three coordinates alike, to the bit.
pub fn assert_alike(plain: &dyn Explorer, fast: &dyn Explorer) {
    let ladder = MixtureLadder::three_modes(3);
    let (path, schedule) = (ladder.path(), schedule());
    let x = ladder.draw_ladder(&schedule, &Streams::new(4), 300);
    let run = |explorer: &dyn Explorer| -> Batch {
        explore(&*path, schedule.betas(), explorer)(&Streams::new(5), x.clone())
    };
    let (plain, fast) = (run(plain), run(fast));
    assert_ne!(plain, x, "something moved");
    assert_eq!(plain, fast);
}

/// A run goes on from any state with the same bits.
pub fn assert_resumes(explorer: Arc<dyn Explorer>) {
    let path = || Arc::new(Geometric::from_standard_normal(Banana::new(2)));
    let settings = || Settings {
        chains: 4,
        ensembles: 3,
        rounds: 2,
        round_iterations: 60,
        round_burn_in: 20,
        burn_in: 10,
        iterations: 100,
        explorer: explorer.clone(),
        ..Settings::default()
    };
    let mut whole = Run::new(path(), settings()).unwrap();
    whole.complete().unwrap();
    let mut cut = Run::new(path(), settings()).unwrap();
    for _ in 0..7 {
        cut.advance(17).unwrap();
        cut = Run::restore(path(), settings(), Acceleration::None, &cut.save().unwrap()).unwrap();
    }
    cut.complete().unwrap();
    assert_eq!(whole.results().means, cut.results().means);
    assert_eq!(whole.results().evaluations, cut.results().evaluations);
}
