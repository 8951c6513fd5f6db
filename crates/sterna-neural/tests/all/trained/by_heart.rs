//! Held-out samples end a training that learns its samples by heart, and keep the weights from before.

use std::sync::Arc;

use sterna::acceleration::{Collected, Fit, Fitted};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Schedule};
use sterna_neural::{
    CmcdSize, FlowSize, Hidden, Loss, Split, TrainCmcd, TrainFlow, Training, rejection_rates,
};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.3, 1.0];
const PRECISION: f64 = 20.0;

/// Independent samples of every chain between N(0, I) and a narrow normal.
fn drawn(rows: usize, seed: u64) -> Arc<Collected> {
    let of_chain = |(chain, beta): (usize, &f64)| {
        let width = (1.0 + (PRECISION - 1.0) * beta).sqrt().recip();
        let mut stream = Streams::new(seed).row(Phase::Check, 0, chain as u32);
        Batch::from_vec(2, (0..2 * rows).map(|_| width * stream.normal()).collect())
    };
    let variance = |beta: &f64| [1.0 / (1.0 + (PRECISION - 1.0) * beta); 2];
    Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(SCHEDULE.to_vec()).unwrap(),
        samples: SCHEDULE.iter().enumerate().map(of_chain).collect(),
        local_barrier: vec![1.0; 4],
        local_variance: Batch::from_vec(2, SCHEDULE.iter().flat_map(variance).collect()),
    })
}

fn path() -> Arc<dyn AnnealingPath> {
    Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, PRECISION)))
}

/// Σ r/(1 − r) on samples that nobody has seen.
fn on_fresh_samples(fitted: &Fitted) -> f64 {
    let split = Split::judging((*drawn(4000, 99)).clone());
    let rates = rejection_rates(&*fitted.accelerator, &*path(), &split, 5).unwrap();
    rates.iter().map(|r| r / (1.0 - r)).sum()
}

fn flow(judges: bool) -> Arc<dyn Fit> {
    flow_then(judges, 0)
}

/// With so many steps of the round-trip loss after it.
fn flow_then(judges: bool, fine_tune: u64) -> Arc<dyn Fit> {
    let training = Training {
        steps: 6000,
        fine_tune,
        batch: 64,
        learning_rate: 1e-2,
        loss: Loss::Skl,
        guard: false,
        judges,
        ..Training::default()
    };
    let size = FlowSize::new(4, Hidden::new(2, 32));
    Arc::new(TrainFlow::new(path(), Arc::new(Normal::isotropic(2, PRECISION)), size, training).unwrap())
}

fn trained(fit: &dyn Fit, samples: usize) -> Fitted {
    let mut fitting = fit.begin(drawn(samples, 7), None).unwrap();
    fitting.advance(u64::MAX).unwrap();
    fitting.finish().unwrap()
}

/// From 56 samples a large flow learns what is not there; one that nobody looks at is the broken twin, which does so to the end.
#[test]
fn what_is_learned_by_heart_is_not_kept() {
    let (looked_at, unseen) = (trained(&*flow(true), 64), trained(&*flow(false), 64));
    assert!(
        looked_at.report.steps < 6000 && looked_at.report.kept_step.is_some(),
        "{:?}",
        looked_at.report.kept_step
    );
    assert_eq!((unseen.report.steps, unseen.report.kept_step), (6000, None));
    let [kept, by_heart] = [&looked_at, &unseen].map(on_fresh_samples);
    assert!(kept < 0.7 * by_heart, "{kept} against {by_heart}");
    // Looks are counted: two points of each of 2,048 journeys in both directions.
    let asked = looked_at.report.steps * 2 * 2 * 64;
    assert!((looked_at.report.target_evaluations - asked).is_multiple_of(2 * 2 * 2048));
    assert!(looked_at.report.target_evaluations > asked);
}

/// The round-trip loss goes on from weights that were kept, and the report says from which.
#[test]
fn fine_tuning_goes_on_from_what_was_kept() {
    let [alone, tuned] = [0, 10].map(|fine_tune| trained(&*flow_then(true, fine_tune), 64).report);
    assert_eq!(tuned.steps, alone.steps + 10);
    assert!(alone.kept_step.is_some() && tuned.kept_step == alone.kept_step, "{:?}", tuned.kept_step);
}

/// With samples enough the last weights are kept, as if nobody had looked.
#[test]
fn what_helps_is_kept() {
    let (looked_at, unseen) = (trained(&*flow(true), 20_000), trained(&*flow(false), 20_000));
    assert_eq!((looked_at.report.steps, looked_at.report.kept_step), (6000, None));
    let weights = |fitted: &Fitted| on_fresh_samples(fitted).to_bits();
    assert_eq!(weights(&looked_at), weights(&unseen));
}

/// Looks, their best weights and an early end outlive an interruption, between looks and at them.
#[test]
fn looks_go_on_where_they_were_left() {
    let training =
        Training { steps: 1500, fine_tune: 600, batch: 16, learning_rate: 2e-2, ..Training::default() };
    let cmcd = TrainCmcd::new(
        path(),
        Arc::new(Normal::isotropic(2, PRECISION)),
        CmcdSize::new(1, Hidden::new(1, 16)),
        training,
    );
    for fit in [flow(true), Arc::new(cmcd.unwrap()) as Arc<dyn Fit>] {
        let collected = drawn(64, 7);
        let begin = || fit.begin(collected.clone(), None).unwrap();
        let mut whole = begin();
        whole.advance(u64::MAX).unwrap();
        let whole = whole.finish().unwrap();
        let mut part = begin();
        for stop in [400, 500, 1100, 1700] {
            part.advance(stop - part.progress().0).unwrap();
            let mut rest = begin();
            rest.restore(&part.save().unwrap()).unwrap();
            while rest.progress().0 < rest.progress().1 {
                rest.advance(170).unwrap();
            }
            let rest = rest.finish().unwrap();
            assert!(whole.record == rest.record, "the weights differ after a stop at {stop}");
            assert_eq!(whole.report, rest.report);
        }
    }
}
