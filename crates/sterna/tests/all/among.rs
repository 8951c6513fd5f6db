//! A run among several ranks is the run on one: any number of them, any stage, any change of their number.

use crate::resume::{answers, on, restore, settings, start};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sterna::acceleration::Acceleration;
use sterna::exchange::Exchange;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::targets::Normal;
use sterna::{Batch, Error, Evaluation, Result, Target};
use sterna_testkit::Together;

/// To the end by blocks; what the first rank answers.
fn complete(mut run: Run, exchange: Arc<dyn Exchange>, block: u64) -> Option<String> {
    while run.progress().0 != Stage::Finished {
        run.advance(block).unwrap();
    }
    run.gather().unwrap();
    (exchange.rank() == 0).then(|| answers(&run))
}

#[test]
fn any_number_of_ranks_gives_the_same_bits() {
    for kind in 0..7 {
        let whole = {
            let mut run = start(kind, settings());
            run.complete().unwrap();
            answers(&run)
        };
        // Of five ladders of five rows: seven ranks share two of them, twelve all, and of thirty not all have one.
        let whole_ladders = [(1, 2, 17), (2, 1, u64::MAX), (3, 2, 13), (4, 1, 29)];
        for (ranks, threads, block) in
            whole_ladders.into_iter().chain([(7, 1, 31), (12, 2, u64::MAX), (30, 1, 19)])
        {
            let all = Together::run(ranks, |exchange| {
                let run = || start(kind, settings()).among(exchange.clone()).unwrap();
                on(threads, || complete(run(), exchange.clone(), block))
            });
            assert!(all[0].as_ref() == Some(&whole), "kind {kind}, {ranks} ranks");
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    for kind in [0, 1, 4, 5, 6] {
        let whole = {
            let mut run = start(kind, settings());
            run.complete().unwrap();
            answers(&run)
        };
        let mut saved = start(kind, settings()).save().unwrap();
        for (ranks, blocks) in [3, 12, 1, 8, 2].into_iter().zip([7, 4, 3, 5, 4]).cycle() {
            let mut all = Together::run(ranks, |exchange| {
                let run = restore(kind, settings(), &saved).unwrap();
                let mut run = run.among(exchange.clone()).unwrap();
                for _ in 0..blocks {
                    if run.progress().0 != Stage::Finished {
                        run.advance(11).unwrap();
                    }
                }
                run.gather().unwrap();
                let finished = run.progress().0 == Stage::Finished;
                (exchange.rank() == 0).then(|| (run.save().unwrap(), finished.then(|| answers(&run))))
            });
            let (state, found) = all.swap_remove(0).expect("the first rank answers");
            saved = state;
            if let Some(found) = found {
                assert!(found == whole, "kind {kind}");
                break;
            }
        }
    }
}

#[test]
fn fitted_references_and_goals_too() {
    let run = || {
        let ground = Arc::new(Geometric::from_standard_normal(Normal::isotropic(3, 1e-4)));
        Run::from_anchor(ground, Settings { seed: 5, ..Settings::fitted() }, Acceleration::None).unwrap()
    };
    let whole = {
        let mut run = run();
        run.complete().unwrap();
        answers(&run)
    };
    for ranks in [2, 3, 11] {
        let all = Together::run(ranks, |exchange| {
            complete(run().among(exchange.clone()).unwrap(), exchange, u64::MAX)
        });
        assert!(all[0].as_ref() == Some(&whole), "{ranks} ranks");
    }
}

/// Counts by itself, and fails after so many points.
struct Limited {
    asked: Arc<AtomicU64>,
    most: u64,
}

impl Target for Limited {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        if self.asked.fetch_add(x.rows() as u64, Ordering::Relaxed) > self.most {
            return Err(Error::Target("the licence server is gone".into()));
        }
        Normal::isotropic(2, 2.0).evaluate(x, out)
    }
}

fn limited(most: u64) -> (Arc<AtomicU64>, Run) {
    let asked = Arc::new(AtomicU64::new(0));
    let target = Limited { asked: asked.clone(), most };
    let settings = Settings { chains: 4, ensembles: 4, rounds: 2, iterations: 400, ..Settings::default() };
    (asked, Run::new(Arc::new(Geometric::from_standard_normal(target)), settings).unwrap())
}

#[test]
fn each_rank_asks_its_share_alone() {
    let all = Together::run(4, |exchange| {
        let (asked, run) = limited(u64::MAX);
        let mut run = run.among(exchange).unwrap();
        run.complete().unwrap();
        run.gather().unwrap();
        (asked.load(Ordering::Relaxed), run.evaluations())
    });
    let total = all[0].1 as f64;
    for (asked, _) in &all {
        let share = *asked as f64 / total;
        assert!(share > 0.24 && share < 0.3, "{share}");
    }
}

#[test]
fn each_rank_of_a_team_asks_for_its_rows_alone() {
    let all = Together::run(16, |exchange| {
        let (asked, run) = limited(u64::MAX);
        let mut run = run.among(exchange).unwrap();
        let before = asked.load(Ordering::Relaxed);
        run.complete().unwrap();
        run.gather().unwrap();
        (asked.load(Ordering::Relaxed) - before, run.evaluations())
    });
    let total = all[0].1 as f64;
    for (asked, _) in &all {
        // Replicas take turns at the reference, which asks for less; what changes between rounds all ranks ask for.
        let share = *asked as f64 / total;
        assert!(share > 0.03 && share < 0.1, "{share}");
    }
}

/// Panics where the others of its team wait for it.
struct Panics(Limited);

impl Target for Panics {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(x, out).unwrap();
        Ok(())
    }
}

#[test]
fn a_panic_in_a_team_is_told() {
    let all = Together::run(3, |exchange| {
        let most = if exchange.rank() == 2 { 500 } else { u64::MAX };
        let settings = Settings { chains: 6, rounds: 2, iterations: 400, ..Settings::default() };
        let path = Geometric::from_standard_normal(Panics(Limited { asked: Arc::default(), most }));
        let mut run = Run::new(Arc::new(path), settings).unwrap().among(exchange.clone()).unwrap();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.complete()));
        outcome.unwrap_or_else(|_| {
            exchange.fail("rank 2: licence");
            Err(Error::Elsewhere("rank 2: licence".into()))
        })
    });
    for outcome in all {
        assert!(outcome.unwrap_err().to_string().contains("rank 2"));
    }
}

#[test]
fn what_fails_on_one_rank_fails_on_all_and_says_where() {
    // Three move whole ladders, sixteen a row each.
    for ranks in [3, 16] {
        let all = Together::run(ranks, |exchange| {
            let most = if exchange.rank() == 2 { 500 } else { u64::MAX };
            limited(most).1.among(exchange).unwrap().complete().unwrap_err().to_string()
        });
        for (rank, text) in all.iter().enumerate() {
            assert!(text.contains("licence") && (rank == 2 || text.contains("rank 2")), "{all:?}");
        }
    }
}
