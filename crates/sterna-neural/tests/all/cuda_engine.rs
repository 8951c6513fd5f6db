//! Runs whose burn-in and sampling a GPU carries out, against the same runs by the cores. Where there is no GPU the
//! cores' part is still made, and the tests say so and pass.
use std::sync::Arc;

use sterna::acceleration::Acceleration;
use sterna::explorers::Hmc;
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::run::{Results, Run, Settings, Stage};
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Error, Evaluation, Target};
use sterna_neural::{
    CmcdSize, Compute, GraphTarget, Hidden, LadderEngines, Precision, TrainCmcd, Training, Value,
};

/// −½ p|x|² + log(c − x₀): no number beyond a wall.
#[derive(Clone, Copy)]
struct Walled;

const WALL: f64 = 2.2;
const PRECISION: f64 = 3.0;

impl Target for Walled {
    fn dim(&self) -> usize {
        3
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        for i in 0..x.rows() {
            let squares: f64 = x.row(i).iter().map(|x| x * x).sum();
            out.log_density[i] = (WALL - x.row(i)[0]).ln() - 0.5 * PRECISION * squares;
            for (score, x) in out.score.row_mut(i).iter_mut().zip(x.row(i)) {
                *score = -PRECISION * x;
            }
            out.score.row_mut(i)[0] -= 1.0 / (WALL - x.row(i)[0]);
        }
        Ok(())
    }
}

impl GraphTarget for Walled {
    fn dim(&self) -> usize {
        3
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        (x.slice(0, 1) * -1.0 + WALL).log() + x.dot(x) * (-0.5 * PRECISION)
    }
}

/// What is sampled, and what carries its swaps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Mixture,
    Walled,
    /// A controlled diffusion of a normal, which leaves no pair to the plain swap unless it is guarded.
    Diffusion {
        guard: bool,
    },
    /// From a normal of another place and other widths: plain swaps, or a controlled diffusion in its coordinates.
    Placed {
        carried: bool,
    },
}

/// Away from the origin, as its reference is.
fn placed() -> Normal {
    Normal::new(vec![30.0, -2.0, 0.5], vec![400.0, 3.0, 0.2])
}

impl Kind {
    fn target(self) -> Arc<dyn GraphTarget> {
        match self {
            Self::Mixture => Arc::new(Gmm::paper(10)),
            Self::Walled => Arc::new(Walled),
            Self::Diffusion { .. } => Arc::new(Normal::isotropic(4, 20.0)),
            Self::Placed { .. } => Arc::new(placed()),
        }
    }

    fn parts(self) -> (Arc<dyn AnnealingPath>, Acceleration) {
        let path: Arc<dyn AnnealingPath> = match self {
            Self::Mixture => Arc::new(Geometric::from_standard_normal(Gmm::paper(10))),
            Self::Walled => Arc::new(Geometric::from_standard_normal(Walled)),
            Self::Diffusion { .. } => Arc::new(Geometric::from_standard_normal(Normal::isotropic(4, 20.0))),
            Self::Placed { .. } => {
                let reference = Reference::normal(vec![30.2, 0.0, 1.0], vec![0.4, 1.0, 3.0]);
                Arc::new(Geometric::new(reference, Arc::new(placed())).unwrap())
            }
        };
        let guard = match self {
            Self::Diffusion { guard } => guard,
            Self::Placed { carried: true } => false,
            _ => return (path, Acceleration::None),
        };
        let hidden = Hidden::new(2, 16);
        let size = CmcdSize::new(2, hidden);
        let training = Training { steps: 60, batch: 32, learning_rate: 0.01, guard, ..Training::default() };
        let fit = TrainCmcd::new(path.clone(), self.target(), size, training).unwrap();
        (path, Acceleration::Fitted(Arc::new(fit)))
    }

    fn start(self, settings: &Settings) -> Run {
        let (path, acceleration) = self.parts();
        Run::accelerated(path, settings.clone(), acceleration).unwrap()
    }

    fn restore(self, settings: &Settings, saved: &[u8]) -> Run {
        let (path, acceleration) = self.parts();
        Run::restore(path, settings.clone(), acceleration, saved).unwrap()
    }

    /// On a GPU, if there is one.
    fn engines(self) -> Option<Arc<LadderEngines>> {
        let compute = Compute::Cuda { precision: Precision::F32, fall_back: false };
        match LadderEngines::open(compute, self.target(), 0) {
            Ok(engines) => engines.map(Arc::new),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }
}

fn settings(ensembles: usize) -> Settings {
    Settings {
        seed: 5,
        chains: 5,
        ensembles,
        rounds: 3,
        round_iterations: 100,
        round_burn_in: 30,
        collect: 200,
        burn_in: 3,
        iterations: 9,
        explorer: Arc::new(Hmc { steps: 2, leapfrog_steps: 3, ..Hmc::default() }),
        ..Settings::default()
    }
}

/// All that a run answers, as text: every number is printed so that it reads back as itself.
fn answers(run: &Run) -> String {
    let draws: Vec<_> = run.records().flat_map(|r| &r.draws).collect();
    let traces: Vec<_> = run.traces().collect();
    format!("{:?} {draws:?} {traces:?}", run.results())
}

fn near(what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!(a == b || (a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} and {b}");
    }
}

/// The same random numbers and formulas: all that is recorded agrees to rounding, f32's where a drift moves points.
#[test]
fn the_first_iterations_are_those_of_the_cores() {
    let cases = [
        (Kind::Mixture, 1, 1e-7),
        (Kind::Mixture, 2, 1e-7),
        (Kind::Walled, 3, 1e-7),
        (Kind::Diffusion { guard: false }, 1, 1e-3),
        (Kind::Diffusion { guard: true }, 2, 1e-3),
        (Kind::Placed { carried: false }, 2, 1e-7),
        (Kind::Placed { carried: true }, 2, 1e-3),
    ];
    for (kind, ladders, tolerance) in cases {
        let settings = settings(ladders);
        let mut cores = kind.start(&settings);
        cores.complete().unwrap();
        let plain = cores.fit_report().map(|r| r.pairs.iter().map(|p| p.plain).collect::<Vec<_>>());
        println!("{kind:?}, {ladders} ladders, plain pairs {plain:?}");
        let Some(engines) = kind.engines() else { continue };
        let mut gpu = kind.start(&settings).with_engine(engines).unwrap();
        gpu.complete().unwrap();
        let (ours, theirs) = (gpu.results(), cores.results());
        assert_eq!(ours.evaluations, theirs.evaluations);
        assert_eq!(ours.sampling_evaluations, theirs.sampling_evaluations);
        assert_eq!((ours.round_trips, ours.bad.0), (theirs.round_trips, theirs.bad.0));
        near("acceptance", &ours.acceptance[1..], &theirs.acceptance[1..], tolerance);
        near("rejections", &ours.rejection_rates, &theirs.rejection_rates, tolerance);
        for (ours, theirs) in gpu.records().zip(cores.records()) {
            for (ours, theirs) in ours.draws.iter().zip(&theirs.draws) {
                assert_eq!(ours.replica, theirs.replica);
                near("draws", &ours.x, &theirs.x, tolerance);
                near("log densities", &ours.log_density, &theirs.log_density, 100.0 * tolerance);
            }
            for (ours, theirs) in ours.counts.pairs.iter().zip(&theirs.counts.pairs) {
                assert_eq!((ours.proposed, ours.accepted), (theirs.proposed, theirs.accepted));
                near("forward weights", &ours.forward, &theirs.forward, 100.0 * tolerance);
                near("backward weights", &ours.backward, &theirs.backward, 100.0 * tolerance);
            }
        }
        for (ours, theirs) in gpu.traces().zip(cores.traces()) {
            assert_eq!(ours.start, theirs.start);
            let energies = |trace: &sterna::trace::LadderTrace| -> Vec<f64> {
                trace.energies.iter().flat_map(|e| e.iter()).flat_map(|(_, row)| row.to_vec()).collect()
            };
            near("energies", &energies(ours), &energies(theirs), 100.0 * tolerance);
        }
    }
}

#[test]
fn bad_proposals_are_counted_and_the_first_is_shown() {
    let settings = Settings { iterations: 60, ..settings(3) };
    let mut cores = Kind::Walled.start(&settings);
    cores.complete().unwrap();
    let theirs = cores.results().bad;
    let first = theirs.1.expect("the wall was met");
    println!("{} bad proposals, the first {first:?}", theirs.0);
    let Some(engines) = Kind::Walled.engines() else { return };
    let mut gpu = Kind::Walled.start(&settings).with_engine(engines).unwrap();
    gpu.complete().unwrap();
    let ours = gpu.results().bad;
    let found = ours.1.expect("the wall was met");
    assert_eq!(ours.0, theirs.0);
    assert_eq!((found.iteration, found.chain, found.replica), (first.iteration, first.chain, first.replica));
    near("the point", &found.point, &first.point, 1e-6);
}

#[test]
fn a_run_that_was_cut_is_the_run_that_was_not() {
    for (kind, ladders) in [
        (Kind::Mixture, 1),
        (Kind::Mixture, 2),
        (Kind::Diffusion { guard: true }, 3),
        (Kind::Placed { carried: true }, 2),
    ] {
        let Some(engines) = kind.engines() else { return };
        // Longer than what the host reads at once.
        let settings = Settings { burn_in: 23, iterations: 700, thin: 3, ..settings(ladders) };
        let mut whole = kind.start(&settings).with_engine(engines.clone()).unwrap();
        whole.complete().unwrap();
        let mut saved = kind.start(&settings).save().unwrap();
        for cut in [13, 300, 17, 1, 64].into_iter().cycle() {
            let mut run = kind.restore(&settings, &saved).with_engine(engines.clone()).unwrap();
            run.advance(cut).unwrap();
            saved = run.save().unwrap();
            if run.progress().0 == Stage::Finished {
                assert!(answers(&run) == answers(&whole), "{kind:?}, {ladders} ladders");
                break;
            }
        }
    }
}

#[test]
fn log_z_lies_within_its_error() {
    // log Z = −½ d log λ. Five standard errors: one false alarm in two million.
    let truth = -0.5 * 4.0 * 20f64.ln();
    let settings = Settings { burn_in: 200, iterations: 2000, ..settings(16) };
    let check = |what: &str, results: Results| {
        let z = &results.log_z;
        println!("{what}: log Z {:.4} ± {:.4}, in truth {truth:.4}", z.bar, z.standard_error);
        assert!(z.standard_error < 0.05 && (z.bar - truth).abs() < 5.0 * z.standard_error);
        assert!(results.round_trips > 100);
    };
    for guard in [false, true] {
        let kind = Kind::Diffusion { guard };
        let mut cores = kind.start(&settings);
        cores.complete().unwrap();
        check("cores", cores.results());
        let Some(engines) = kind.engines() else { continue };
        let mut gpu = kind.start(&settings).with_engine(engines).unwrap();
        gpu.complete().unwrap();
        check("GPU", gpu.results());
    }
}

/// A mixture is left to the cores, with a word about it.
#[test]
fn a_mixture_is_no_reference_for_a_gpu() {
    let Some(engines) = Kind::Placed { carried: false }.engines() else { return };
    let normal =
        sterna::fitted::Mixture::normal(vec![30.0, 0.0, 0.0], sterna::fitted::Shape::Diagonal(vec![1.0; 3]));
    let path = Geometric::new(Reference::mixture(normal.unwrap()), Arc::new(placed())).unwrap();
    let run = Run::new(Arc::new(path), settings(2)).unwrap();
    let refused = run.with_engine(engines).unwrap().complete().unwrap_err().to_string();
    assert!(refused.contains("one normal"), "{refused}");
}

#[test]
fn another_target_is_noticed() {
    let Some(engines) = Kind::Mixture.engines() else { return };
    let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(10, 4.0)));
    let run = Run::new(path, settings(2)).unwrap();
    let refused = run.with_engine(engines).unwrap().complete();
    assert!(matches!(refused, Err(Error::Setting { setting: "run.device", .. })), "{refused:?}");
}
