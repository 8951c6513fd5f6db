//! A run that was saved and restored is the run that never stopped: any stage, any threads, more iterations.

use std::sync::Arc;
use sterna::acceleration::{Acceleration, Collected, Fit, FitAffine, FitCmcd, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Diffusion, DiffusionSteps, Identity, Integrator, NoDrift};
use sterna::explorers::{Hmc, Repeated, StepSize};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference, Spline};
use sterna::run::{Criterion, Run, Settings, Stage};
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Error, Evaluation, Result, Target};

/// All that a run answers, as text: every number is printed so that it reads back as itself.
pub(super) fn answers(run: &Run) -> String {
    let draws: Vec<_> = run.records().flat_map(|r| &r.draws).collect();
    let trips: Vec<_> = run.records().flat_map(|r| &r.round_trips).collect();
    format!("{:?} {draws:?} {trips:?} {:?} {:?}", run.results(), run.fit_report(), run.stood_out())
}

/// A mixture that answers no number beyond a wall.
struct Walled(Gmm);

impl Target for Walled {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.0.evaluate(x, out)?;
        for i in 0..x.rows() {
            if x.row(i)[3] > 2.4 {
                out.log_density[i] = f64::NAN;
            }
        }
        Ok(())
    }
}

fn diffusion() -> Diffusion {
    Diffusion { steps: DiffusionSteps::new(2, Integrator::Exponential).unwrap() }
}

fn diffused() -> Arc<dyn AnnealingPath> {
    Arc::new(Diffused::exact(Arc::new(Gmm::paper(4))).unwrap())
}

/// To a normal so narrow that no plain swap on the way succeeds.
fn narrow() -> Arc<dyn AnnealingPath> {
    Arc::new(Diffused::exact(Arc::new(Normal::isotropic(4, 1e12))).unwrap())
}

/// A fit of several steps whose first round brings a path, a useless one if so wished, and whose second comes to
/// nothing.
struct FitPath {
    useless: bool,
}

struct Steps {
    useless: bool,
    round: usize,
    done: u64,
}

impl Fit for FitPath {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        assert_eq!(earlier.is_some(), collected.round > 0);
        Ok(Box::new(Steps { useless: self.useless, round: collected.round, done: 0 }))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        assert_eq!(record, [7]);
        let (accelerator, path): (Arc<dyn Accelerator>, _) = match self.useless {
            false => (Arc::new(diffusion()), Some(diffused())),
            true => (Arc::new(Identity), Some(narrow())),
        };
        Ok(Fitted { accelerator, path, record: record.into(), report: FitReport::default() })
    }
}

impl Fitting for Steps {
    fn progress(&self) -> (u64, u64) {
        (self.done, 20)
    }

    fn advance(&mut self, most: u64) -> Result<()> {
        self.done += most.min(20 - self.done);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        let mut fitted = FitPath { useless: self.useless }.rebuild(&[7])?;
        if self.round > 0 {
            (fitted.accelerator, fitted.path, fitted.record) = (Arc::new(Identity), None, Arc::new([]));
        }
        fitted.report.steps = 20 * (1 + self.round as u64);
        Ok(fitted)
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(vec![self.done as u8])
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.done = u64::from(saved[0]);
        Ok(())
    }
}

pub(super) fn settings() -> Settings {
    Settings {
        explorer: std::sync::Arc::new(Hmc {
            step_size: StepSize::Adapt { acceptance: 0.9 },
            ..Hmc::default()
        }),
        seed: 3,
        chains: 5,
        ensembles: 5,
        rounds: 2,
        round_iterations: 40,
        round_burn_in: 15,
        criterion: Criterion::Barrier,
        collect: 37,
        fits: 2,
        burn_in: 23,
        iterations: 151,
        thin: 3,
        ..Settings::default()
    }
}

/// Path and acceleration, made anew each time: nothing may be remembered outside the bytes.
fn parts(kind: usize) -> (Arc<dyn AnnealingPath>, Acceleration) {
    let geometric =
        || Arc::new(Geometric::new(Reference::standard_normal(4), Arc::new(Walled(Gmm::paper(4)))).unwrap());
    match kind {
        0 => (geometric(), Acceleration::None),
        1 => (geometric(), Acceleration::Fitted(Arc::new(FitAffine { full: true }))),
        2 => {
            let cmcd = FitCmcd { drift: Arc::new(NoDrift), steps: 2, noise: 0.2 };
            (geometric(), Acceleration::Fitted(Arc::new(cmcd)))
        }
        3 => (diffused(), Acceleration::Given(Arc::new(diffusion()))),
        6 => (Arc::new(Spline::new(geometric(), Vec::new()).unwrap()), Acceleration::None),
        _ => (geometric(), Acceleration::Fitted(Arc::new(FitPath { useless: kind == 5 }))),
    }
}

pub(super) fn on<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(job)
}

/// A path whose knots move, with moves whose number is found, has rounds enough for both.
fn of_kind(kind: usize, settings: Settings) -> Settings {
    match kind {
        6 => {
            let explorer = std::sync::Arc::new(Repeated::new(std::sync::Arc::new(Hmc::default())));
            Settings { rounds: 4, explorer, ..settings }
        }
        _ => settings,
    }
}

pub(super) fn start(kind: usize, settings: Settings) -> Run {
    let (path, acceleration) = parts(kind);
    Run::accelerated(path, of_kind(kind, settings), acceleration).unwrap()
}

pub(super) fn restore(kind: usize, settings: Settings, saved: &[u8]) -> Result<Run> {
    let (path, acceleration) = parts(kind);
    Run::restore(path, of_kind(kind, settings), acceleration, saved)
}

#[test]
fn restored_runs_are_the_same_to_the_bit() {
    for kind in 0..7 {
        let whole = {
            let mut run = start(kind, settings());
            run.complete().unwrap();
            answers(&run)
        };
        // Restored again and again, with blocks that end in all stages, on changing numbers of threads.
        let mut saved = on(3, || start(kind, settings()).save().unwrap());
        let mut stages = Vec::new();
        for (block, threads) in [13, 5, 17, 1].into_iter().zip([2, 7, 1, 3]).cycle() {
            let (next, stage, found) = on(threads, || {
                let mut run = restore(kind, settings(), &saved).unwrap();
                assert!(run.save().unwrap().len() > 100);
                run.advance(block).unwrap();
                let stage = run.progress().0;
                (run.save().unwrap(), stage, (stage == Stage::Finished).then(|| answers(&run)))
            });
            saved = next;
            stages.push(stage);
            if let Some(found) = found {
                assert!(found == whole, "kind {kind}");
                break;
            }
        }
        let fitted = [1, 2, 4, 5].contains(&kind);
        for stage in [Stage::Collecting, Stage::Fitting] {
            assert_eq!(stages.contains(&stage), fitted, "{stages:?}");
        }
        assert_eq!(stages.contains(&Stage::Retuning(1)), [4, 5].contains(&kind), "{stages:?}");
        assert!(stages.contains(&Stage::Tuning(1)) && stages.contains(&Stage::BurnIn));
    }
}

/// The useless path of the runs above is given up, and the run goes on where plain swaps had left it.
#[test]
fn a_useless_path_is_given_up() {
    let mut run = start(5, Settings { fits: 1, ..settings() });
    run.complete().unwrap();
    let report = run.fit_report().unwrap();
    assert!(report.alarms.iter().any(|(code, _)| code == "transport-replaced"), "{:?}", report.alarms);
    assert!(run.fitted().unwrap().path.is_none());
    assert_eq!(run.results().schedule, run.plain_stage().unwrap().schedule);
}

#[test]
fn a_finished_run_can_be_made_longer() {
    for kind in 0..7 {
        let long = Settings { iterations: 400, ..settings() };
        let mut whole = start(kind, long.clone());
        whole.complete().unwrap();
        for after in [151, 60] {
            let mut short = start(kind, settings());
            while short.progress().0 != Stage::Sampling {
                short.advance(u64::MAX).unwrap();
            }
            short.advance(after).unwrap();
            let mut longer = restore(kind, long.clone(), &short.save().unwrap()).unwrap();
            longer.complete().unwrap();
            assert!(answers(&longer) == answers(&whole));
        }
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    let mut run = start(1, settings());
    run.complete().unwrap();
    let saved = run.save().unwrap();
    let refused = |settings: Settings, saved: &[u8]| match restore(1, settings, saved) {
        Err(error) => error,
        Ok(_) => panic!("this was accepted"),
    };
    let shorter = refused(Settings { iterations: 100, ..settings() }, &saved);
    assert!(matches!(shorter, Error::Setting { setting: "Settings.iterations", .. }), "{shorter}");
    let other = refused(Settings { seed: 4, ..settings() }, &saved).to_string();
    assert!(other.contains("other settings"), "{other}");
    for length in (0..saved.len()).step_by(1001) {
        assert!(matches!(refused(settings(), &saved[..length]), Error::Saved(_)));
    }
    let longer = [&saved[..], &[0]].concat();
    assert!(refused(settings(), &longer).to_string().contains("longer"));
    // Another acceleration.
    assert!(matches!(restore(0, settings(), &saved), Err(Error::Saved(_))));
}

/// Beyond what is kept one by one, weights and draws are folded: at the same iterations for every cut.
#[test]
fn long_runs_fold_their_weights_and_resume() {
    let settings = Settings {
        explorer: std::sync::Arc::new(Hmc { leapfrog_steps: 2, ..Hmc::default() }),
        chains: 3,
        ensembles: 2,
        rounds: 3,
        round_iterations: 200,
        burn_in: 0,
        iterations: 300_000,
        ..Settings::default()
    };
    let path = || Arc::new(Geometric::from_standard_normal(Normal::isotropic(1, 9.0)));
    let mut whole = Run::new(path(), settings.clone()).unwrap();
    whole.complete().unwrap();
    let results = whole.results();
    assert_eq!(whole.records().next().unwrap().series[0].block(), 4);
    assert_eq!(whole.records().flat_map(|r| &r.folded).count(), 2);
    // log Z = −½ log 9; five standard errors, and the seed is fixed.
    let log_z = &results.log_z;
    assert!((log_z.bar + 9f64.ln() / 2.0).abs() < 5.0 * log_z.standard_error, "{log_z:?}");
    assert!(log_z.standard_error > 1e-4 && log_z.standard_error < 1e-2, "{log_z:?}");

    let mut run = on(1, || Run::new(path(), settings.clone()).unwrap());
    let mut draws = vec![Vec::new(); 2];
    for threads in [2, 1, 2, 1, 2, 1, 2] {
        let saved = run.save().unwrap();
        // What is kept is bounded: weights, series, and no draws.
        assert!(saved.len() < 12 << 20, "{}", saved.len());
        run = on(threads, || {
            let mut run = Run::restore(path(), settings.clone(), Acceleration::None, &saved).unwrap();
            run.advance(65_535).unwrap();
            run
        });
        let taken = run.take_draws();
        draws.iter_mut().zip(taken).for_each(|(all, more)| all.extend(more.x));
    }
    run.complete().unwrap();
    draws.iter_mut().zip(run.take_draws()).for_each(|(all, more)| all.extend(more.x));
    assert_eq!(format!("{results:?}"), format!("{:?}", run.results()));
    for (found, expected) in draws.iter().zip(whole.take_draws()) {
        assert!(*found == expected.x);
    }
}
