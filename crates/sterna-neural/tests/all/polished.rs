//! What samples have taught a flow, and what goes on from there: journeys that polish it, judges that have no part in it.

use std::sync::Arc;

use sterna::acceleration::{Collected, Fit, Fitted, InSlices, JUDGES, judged_rejections};
use sterna::accelerator::Accelerator;
use sterna::paths::Geometric;
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Schedule};
use sterna_neural::{Coupling, FlowSize, Hidden, Loss, TrainFlow, Training};
use sterna_testkit::{ExactLadder, GaussianLadder};

fn target() -> Normal {
    Normal::new(vec![1.0, -0.5], vec![4.0, 25.0])
}

fn exact(betas: &[f64], rows: usize, seed: u64) -> Vec<Batch> {
    let (ladder, streams) = (GaussianLadder::new(target()), Streams::new(seed));
    let of_chain = |(chain, beta): (usize, &f64)| {
        let mut x = Batch::zeros(rows, 2);
        (0..rows).for_each(|i| {
            ladder.draw(*beta, &mut streams.row(Phase::Check, chain as u64, i as u32), x.row_mut(i));
        });
        x
    };
    betas.iter().enumerate().map(of_chain).collect()
}

const BETAS: [f64; 4] = [0.0, 0.1, 0.4, 1.0];

fn collected() -> Arc<Collected> {
    let variance = |beta: f64| [4.0, 25.0].map(|precision: f64| (1.0 - beta + beta * precision).recip());
    Arc::new(Collected {
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(BETAS.to_vec()).unwrap(),
        samples: exact(&BETAS, 1500, 3),
        scores: Vec::new(),
        local_barrier: vec![1.0; 4],
        local_variance: Batch::from_vec(2, BETAS.iter().flat_map(|&beta| variance(beta)).collect()),
    })
}

fn trained(fit: &dyn Fit, earlier: Option<&Fitted>) -> Fitted {
    trained_on(fit, collected(), earlier)
}

fn trained_on(fit: &dyn Fit, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Fitted {
    let mut fitting = fit.begin(collected, earlier).unwrap();
    fitting.advance(u64::MAX).unwrap();
    fitting.finish().unwrap()
}

fn path() -> Arc<Geometric> {
    Arc::new(Geometric::from_standard_normal(target()))
}

/// Rejections of all pairs together, on samples that nobody has seen.
fn rejected(accelerator: &dyn Accelerator, schedule: &Schedule) -> f64 {
    let judges = exact(schedule.betas(), JUDGES, 11);
    let judged = judged_rejections(accelerator, &*path(), schedule, &judges, 5).unwrap();
    judged.iter().map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).sum()
}

fn training(loss: Loss) -> Training {
    Training { batch: 64, learning_rate: 5e-3, loss, ..Training::default() }
}

/// What samples have taught journeys go on with: the loss of pairs, on the maps of chains, begins where that of samples has ended.
#[test]
fn journeys_polish_what_samples_have_taught() {
    let flow = |loss| {
        let size = FlowSize::new(4, Hidden::new(1, 16));
        TrainFlow::new(path(), Arc::new(target()), size, training(loss)).unwrap().of_chains()
    };
    let schedule = collected().schedule.clone();
    let taught = trained(&*flow(Loss::Likelihood).slice(60).unwrap(), None);
    let polishing = flow(Loss::Skl);
    let polished = trained(&*polishing.slice(200).unwrap(), Some(&taught));
    let [before, after] = [&taught, &polished].map(|fitted| rejected(&*fitted.accelerator, &schedule));
    assert!(after < 0.8 * before, "{after} after {before}");
    // The target is asked as often as was said, and what the first has seen counts as nothing of the second's.
    let (_, (_, asked)) = polishing.work().unwrap();
    assert!(asked > 0 && polished.report.target_evaluations == 200 * asked, "{:?}", polished.report);
    // It begins where the first has ended, not anew: the optimiser's first step is as long in both.
    let first = |earlier| rejected(&*trained(&*polishing.slice(1).unwrap(), earlier).accelerator, &schedule);
    let [goes_on, anew] = [first(Some(&taught)), first(None)];
    assert!(goes_on < 0.5 * anew, "{goes_on} after one step, {anew} from nothing");
    // And its chains may move, as those of the first.
    let elsewhere = Schedule::new(vec![0.0, 0.3, 1.0]).unwrap();
    assert!(polishing.rebuild_at(&polished.record, &elsewhere).unwrap().is_some());
}

/// The base of splines is fitted to samples that train: those held out, which judge the flow, shape nothing of it.
#[test]
fn no_judge_shapes_the_base_of_splines() {
    let size = FlowSize { coupling: Coupling::Spline, ..FlowSize::new(2, Hidden::new(1, 8)) };
    let fit = TrainFlow::new(path(), Arc::new(target()), size, training(Loss::Likelihood)).unwrap();
    let fit = fit.slice(1).unwrap();
    let altered = |row: usize| {
        let mut all = (*collected()).clone();
        all.samples[2].row_mut(row)[0] += 100.0;
        trained_on(&*fit, Arc::new(all), None).record
    };
    let (last, first) = (1499, 0);
    assert!(altered(last) == trained(&*fit, None).record && altered(first) != altered(last));
}
