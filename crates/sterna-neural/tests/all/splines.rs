//! Flows with spline couplings on an affine base: derivatives, inverses, densities, journeys that are exact, training.

use std::sync::Arc;

use crate::common::{check_network, compile, lively, numbers, relative_error};
use sterna::acceleration::Acceleration;
use sterna::accelerators::FlowAccelerator;
use sterna::call::Scratch;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::targets::Normal;
use sterna::transport::{Flow, Interval};
use sterna::{Batch, Schedule};
use sterna_neural::{
    AffineBase, Conditions, Coupling, Cpu, FlowSize, Graph, Hidden, Layout, Loss, NeuralFlow, Parameters,
    RealNvp, RealNvpConfig, Route, TrainFlow, Training, load_transport,
};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];

/// Some mean and width for each chain.
fn base(dim: usize) -> AffineBase {
    let of_chain = |n: usize| Batch::from_vec(dim, numbers(6 * dim, n, 1.0 / (n + 1) as f64, 0.1 * n as f64));
    AffineBase::of_samples(&(0..SCHEDULE.len()).map(of_chain).collect::<Vec<_>>())
}

fn config(dim: usize, route: Route) -> RealNvpConfig {
    let base = match route {
        Route::ThroughReference => base(dim).from_standard(),
        _ => base(dim),
    };
    let small = RealNvpConfig::small(dim, &SCHEDULE).unwrap();
    RealNvpConfig {
        layers: 3,
        hidden: Hidden::new(1, 6),
        coupling: Coupling::Spline,
        base: Some(base),
        route,
        ..small
    }
}

fn flow(dim: usize, route: Route) -> (RealNvp, Parameters<f64>) {
    let mut layout = Layout::new();
    let network = config(dim, route).build(&mut layout, "flow").unwrap();
    (network, Parameters::new(lively(&layout)))
}

#[test]
fn derivatives_are_those_of_differences() {
    let mut layout = Layout::new();
    // An even schedule: features of β then vary slowly enough for differences.
    let conditioning = RealNvpConfig::small(3, &[0.0, 0.3, 0.6, 1.0]).unwrap().conditioning;
    let config = RealNvpConfig { conditioning, ..config(3, Route::Direct) };
    let network = config.build(&mut layout, "flow").unwrap();
    // Off the schedule's knots, where features have kinks.
    let inputs = [vec![0.1, 0.35, 0.65], vec![0.35, 0.62, 0.9], numbers(9, 4, 1.0, 0.1)];
    check_network("spline flow", 3, &inputs, &layout, &lively(&layout), 1e-6, |_, x| {
        let conditions = Conditions { lower: x[0], upper: x[1], time: None };
        let (y, log_det) = network.record(&conditions, x[2]);
        let (z, back) = network.record_inverse(&conditions, x[2] * 0.7);
        y.square().sum_cols() + log_det.square() + z.square().sum_cols() + back.sin()
    });
}

/// There and back by one pair is where it began, near and far out, and the determinants are those of differences.
#[test]
fn inverses_are_exact_everywhere() {
    for (route, size) in
        [(Route::Direct, 1.0), (Route::ThroughBase, 1.0), (Route::Direct, 8.0), (Route::Direct, 1e6)]
    {
        let (network, parameters) = flow(3, route);
        let flow = NeuralFlow::<f64>::new(network, parameters, Arc::new(Cpu::new(1))).unwrap();
        let pair = Interval { lower: 0.05, upper: 0.4 };
        let start = Batch::from_vec(3, numbers(60, 2, size, 0.0));
        let (mut x, mut there, mut back) = (start.clone(), vec![0.0; 20], vec![0.0; 20]);
        flow.forward(&[pair; 20], &mut x, &mut there, &mut Scratch::default()).unwrap();
        let moved = x.clone();
        flow.inverse(&[pair; 20], &mut x, &mut back, &mut Scratch::default()).unwrap();
        assert!(relative_error(moved.as_slice(), start.as_slice()) > 0.1, "the flow moves points");
        assert!(relative_error(x.as_slice(), start.as_slice()) < 1e-11, "{route:?} at {size}");
        assert!(there.iter().zip(&back).all(|(a, b)| (a + b).abs() < 1e-9), "{route:?} at {size}");
    }
}

/// Whatever the weights, journeys are weighed by what they did; a forgotten part of the log-determinant is caught.
#[test]
fn journeys_are_exact() {
    let ladder = GaussianLadder::uneven(3);
    let schedule = Schedule::new(SCHEDULE.to_vec()).unwrap();
    for route in [Route::Direct, Route::ThroughReference, Route::ThroughBase] {
        let (network, parameters) = flow(3, route);
        let flow = NeuralFlow::<f64>::new(network, parameters, Arc::new(Cpu::new(1))).unwrap();
        let accelerator = Arc::new(FlowAccelerator::new(Arc::new(flow)));
        check_accelerator(&*accelerator, &ladder, &schedule, 3, FALSE_ALARM).assert_passed();
        let twin = Broken { inner: accelerator, fault: Fault::MissingJacobian(0.3) };
        check_accelerator(&twin, &ladder, &schedule, 3, FALSE_ALARM).assert_caught();
    }
}

/// The surprise is −log of a density: it integrates to one over the plane, but for the base's constant.
#[test]
fn surprises_are_those_of_a_density() {
    let side = 401;
    for (route, beta, width) in [
        (Route::ThroughReference, 0.4, 0.015),
        (Route::ThroughBase, 0.05, 0.03),
        (Route::ThroughReference, 0.0, 0.03),
    ] {
        let at = |i: usize| (i as f64 - (side / 2) as f64) * width;
        let x: Vec<f64> = (0..side * side).flat_map(|i| [at(i / side), at(i % side)]).collect();
        let (network, parameters) = flow(2, route);
        let graph = Graph::new();
        let value = network.record_surprise(graph.input("beta", 1), graph.input("x", 2));
        let mut program = compile(&graph, &[value]);
        program.run(&parameters, side * side, &[&vec![beta; side * side], &x]).unwrap();
        let sum: f64 = program.output(0).iter().map(|s| (-s).exp()).sum();
        let integral = sum * width * width / std::f64::consts::TAU;
        assert!((integral - 1.0).abs() < 2e-3, "{route:?} at {beta}: {integral}");
    }
}

/// An untrained flow is the affine map from one chain's mean and width to the other's.
#[test]
fn it_starts_as_the_affine_transport() {
    let at = |mean: f64, width: f64| Batch::from_vec(2, vec![mean - width, 5.0, mean + width, 5.0]);
    let base = AffineBase::of_samples(&[at(0.0, 1.0), at(0.0, 1.0), at(2.0, 3.0), at(-1.0, 0.5)]);
    let mut layout = Layout::new();
    let config = RealNvpConfig { base: Some(base), ..config(2, Route::Direct) };
    let network = config.build(&mut layout, "flow").unwrap();
    let flow = NeuralFlow::<f64>::new(network, layout.initialise(1), Arc::new(Cpu::new(1))).unwrap();
    let (mut x, mut log_det) = (Batch::from_vec(2, vec![2.0 + 3.0 * 1.5, 7.0]), [0.0]);
    let pair = [Interval { lower: 0.4, upper: 1.0 }];
    flow.forward(&pair, &mut x, &mut log_det, &mut Scratch::default()).unwrap();
    // The second coordinate has no width, and stays.
    assert!(relative_error(x.row(0), &[-1.0 + 0.5 * 1.5, 7.0]) < 1e-12, "{:?}", x.row(0));
    assert!((log_det[0] - (0.5f64 / 3.0).ln()).abs() < 1e-12);
}

#[test]
fn a_base_must_have_all_chains() {
    let base = AffineBase::of_samples(&[Batch::zeros(2, 2)]);
    let config = RealNvpConfig { base: Some(base), ..config(2, Route::Direct) };
    let error = config.build(&mut Layout::new(), "flow").unwrap_err().to_string();
    assert!(error.contains("base") && error.contains("1 chains"), "{error}");
}

/// Trained by either loss on a far normal, it carries points better than plain swaps, and its file says how.
#[test]
fn it_learns() {
    let target = Normal::new(vec![1.0, -0.5], vec![4.0, 25.0]);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let size = FlowSize { coupling: Coupling::Spline, ..FlowSize::new(2, Hidden::new(1, 16)) };
    for loss in [Loss::Skl, Loss::Likelihood] {
        let training = Training { steps: 200, batch: 64, learning_rate: 5e-3, loss, ..Training::default() };
        let fit = Arc::new(TrainFlow::new(path.clone(), Arc::new(target.clone()), size, training).unwrap());
        let settings = Settings { chains: 3, collect: 1500, iterations: 3000, ..Settings::default() };
        let mut run = Run::accelerated(path.clone(), settings, Acceleration::Fitted(fit)).unwrap();
        run.complete().unwrap();
        for pair in &run.fit_report().unwrap().pairs {
            assert!(pair.rejection < 0.4 * pair.plain_rejection, "{loss:?}: {pair:?}");
        }
        let results = run.results();
        let off = results.log_z.bar - results.log_z_truth.expect("of a normal");
        assert!(off.abs() < 5.0 * results.log_z.standard_error, "{loss:?}: {off}");
        let record = &run.fitted().unwrap().record;
        assert_eq!(load_transport(record.to_vec(), "flow").unwrap().kind, "flow");
    }
}
