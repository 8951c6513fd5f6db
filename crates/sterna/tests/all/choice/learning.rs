//! What is trained is trained as long as that pays, slice by slice.

use super::{PRECISION, choose, run_of, settings, wells};
use crate::resume::{answers, on};
use std::sync::Arc;
use sterna::Result;
use sterna::acceleration::{
    Acceleration, Choose, Collected, Fit, FitReport, Fitted, Fitting, InSlices, Trainee,
};
use sterna::accelerators::FlowAccelerator;
use sterna::path::AnnealingPath;
use sterna::run::{Run, Stage};
use sterna::transports::Affine;

/// Learns the map between the narrow coordinates, step by step: after n steps a share n/(n + 100) of what it can learn of its
/// logarithm.
#[derive(Clone, Copy)]
struct Learner {
    steps: u64,
    most: f64,
}

struct Learning {
    learner: Learner,
    before: u64,
    done: u64,
    betas: Vec<f64>,
}

impl Learner {
    fn learned(self, betas: &[f64], steps: u64) -> Result<Fitted> {
        let share = self.most * steps as f64 / (steps as f64 + 100.0);
        let variance = |beta: f64| (1.0 + beta * PRECISION).powf(-share);
        let of_chain =
            |&beta: &f64| (vec![0.0; 4], vec![variance(beta), variance(beta), variance(beta), 1.0]);
        let moments = betas.iter().map(of_chain).collect();
        let affine = Affine::diagonal(betas.to_vec(), moments)?;
        let record = postcard::to_allocvec(&(steps, betas)).unwrap().into();
        let report = FitReport { steps, losses: vec![1.0 - share], ..FitReport::default() };
        Ok(Fitted {
            accelerator: Arc::new(FlowAccelerator::new(Arc::new(affine))),
            path: None,
            record,
            report,
        })
    }
}

impl InSlices for Learner {
    fn slice(&self, steps: u64) -> Result<Arc<dyn Fit>> {
        Ok(Arc::new(Self { steps, ..*self }))
    }

    fn on(&self, _: &Arc<dyn AnnealingPath>) -> Arc<dyn InSlices> {
        Arc::new(*self)
    }
}

impl Fit for Learner {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let before = earlier.map_or(0, |earlier| {
            let (steps, _): (u64, Vec<f64>) = postcard::from_bytes(&earlier.record).unwrap();
            steps
        });
        let betas = collected.schedule.betas().to_vec();
        Ok(Box::new(Learning { learner: *self, before, done: 0, betas }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let (steps, betas): (u64, Vec<f64>) = postcard::from_bytes(record).unwrap();
        Ok(Fitted { report: FitReport::default(), ..self.learned(&betas, steps)? })
    }
}

impl Fitting for Learning {
    fn progress(&self) -> (u64, u64) {
        (self.done, self.learner.steps)
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        self.done += most.min(self.learner.steps - self.done);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        let fitted = self.learner.learned(&self.betas, self.before + self.done)?;
        let report = FitReport { steps: self.done, ..fitted.report };
        Ok(Fitted { report, ..fitted })
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(self.done.to_le_bytes().to_vec())
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.done = u64::from_le_bytes(saved.try_into().unwrap());
        Ok(())
    }
}

/// One that is to be trained: K, what it can learn, what a journey asks and what a step of training costs.
fn trainee(steps: usize, most: f64, evaluations: f64, step: f64) -> Trainee {
    let training = Arc::new(Learner { steps: 0, most });
    let (name, family) = (format!("learner {steps}"), ("learner".into(), steps));
    Trainee {
        name,
        family,
        training,
        instead: None,
        operations: 1.0,
        evaluations,
        step: (0.0, step),
        first: 64,
    }
}

/// One that stands in for another is tried where that one was not worth beginning, and only there.
#[test]
fn a_stand_in_is_tried_where_the_other_is_too_dear() {
    for (step, trained) in [(1e-2, 0), (1e6, 1)] {
        let stand_in = Trainee { instead: Some(0), ..trainee(2, 1.0, 1.0, 1e-2) };
        let of = || among(vec![trainee(1, 0.3, 1.0, step), stand_in.clone()]);
        let mut run = run_of(of(), settings());
        run.complete().unwrap();
        let choice = run.fit_report().unwrap().choice.clone().unwrap();
        let found = [1, 2].map(|way| choice.weighed[way].trained > 0);
        assert_eq!(found, [trained == 0, trained == 1], "{choice:?}");
    }
}

fn among(trainees: Vec<Trainee>) -> Choose {
    Choose { candidates: Vec::new(), trainees, ..choose(&wells(), 1000.0) }
}

fn learning(step: f64) -> Choose {
    among(vec![trainee(1, 1.0, 1.0, step)])
}

/// Other K are tried as far as the curve of gain against cost promises more: the dearer their journeys, the fewer steps.
#[test]
fn as_many_steps_of_a_path_as_pay() {
    let mut largest = Vec::new();
    for journey in [0.1, 10.0, 1e4] {
        let of = |(steps, most): (usize, f64)| trainee(steps, most, steps as f64 * journey, 1.0);
        let mut run = run_of(among([(1, 0.5), (2, 0.8), (4, 0.95)].map(of).to_vec()), settings());
        run.complete().unwrap();
        let choice = run.fit_report().unwrap().choice.clone().unwrap();
        let trained: Vec<bool> = choice.weighed[1..].iter().map(|way| way.trained > 0).collect();
        assert!(trained.is_sorted_by(|before, after| before >= after), "{choice:?}");
        largest.push(trained.iter().filter(|trained| **trained).count());
        if journey == 0.1 {
            assert!(choice.of_pair.iter().all(|way| *way == 3), "{choice:?}");
        }
    }
    assert!(largest.is_sorted_by(|a, b| a >= b) && (largest[0], largest[2]) == (3, 0), "{largest:?}");
}

/// The cheaper a step beside the run, the more of them; where even hope does not cover the first, none.
#[test]
fn training_goes_on_as_long_as_it_pays() {
    let mut steps = Vec::new();
    for step in [1e-2, 5.0, 50.0, 1e6] {
        let mut run = run_of(learning(step), settings());
        run.complete().unwrap();
        let report = run.fit_report().unwrap();
        let choice = report.choice.as_ref().unwrap();
        assert_eq!(choice.weighed[1].trained, report.steps);
        steps.push(report.steps);
        if step == 1e6 {
            assert!(choice.weighed[1].refused.as_ref().unwrap().contains("does not cover"), "{choice:?}");
        }
        if step == 1e-2 {
            assert!(choice.of_pair.iter().all(|way| *way == 1), "{choice:?}");
        }
    }
    assert!(steps.is_sorted_by(|a, b| a >= b) && steps[0] > steps[1] && steps[1] >= 64, "{steps:?}");
    assert_eq!(steps[3], 0);
}

#[test]
fn training_has_the_same_bits_however_it_is_cut() {
    let whole = {
        let mut run = run_of(learning(1.0), settings());
        run.complete().unwrap();
        answers(&run)
    };
    let mut saved = run_of(learning(1.0), settings()).save().unwrap();
    let mut slices = 0;
    for (block, threads) in [(201, 2), (3, 5), (29, 1)].into_iter().cycle() {
        let (next, found) = on(threads, || {
            let choose = learning(1.0);
            let acceleration = Acceleration::Fitted(Arc::new(choose.clone()));
            let mut run = Run::restore(choose.path, settings(), acceleration, &saved).unwrap();
            run.advance(block).unwrap();
            slices += usize::from(run.progress().0 == Stage::Fitting);
            (run.save().unwrap(), (run.progress().0 == Stage::Finished).then(|| answers(&run)))
        });
        saved = next;
        if let Some(found) = found {
            assert!(found == whole);
            break;
        }
    }
    assert!(slices > 5, "{slices}");
}
