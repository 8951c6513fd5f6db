//! Flows of each chain from a common base: densities that are densities, journeys that are exact, training that asks nothing.

use std::sync::Arc;

use crate::common::{compile, lively, numbers};
use sterna::Schedule;
use sterna::acceleration::{Acceleration, Fit};
use sterna::accelerators::FlowAccelerator;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::targets::Normal;
use sterna_neural::{
    CmcdSize, Conditions, Cpu, FlowSize, Graph, Hidden, Layout, Loss, NeuralFlow, Parameters, RealNvp,
    RealNvpConfig, Route, TrainCmcd, TrainFlow, Training, host_target, load_transport,
};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];

fn flow(dim: usize, route: Route) -> (RealNvp, Parameters<f64>) {
    let mut layout = Layout::new();
    let config = RealNvpConfig { layers: 4, route, ..RealNvpConfig::small(dim, &SCHEDULE).unwrap() };
    let network = config.build(&mut layout, "flow").unwrap();
    (network, Parameters::new(lively(&layout)))
}

/// Whatever the weights, journeys down to the base and up again are weighed by what they did; a forgotten part of the
/// log-determinant is caught.
#[test]
fn journeys_through_the_base_are_exact() {
    let ladder = GaussianLadder::uneven(3);
    let schedule = Schedule::new(SCHEDULE.to_vec()).unwrap();
    for route in [Route::ThroughReference, Route::ThroughBase] {
        let (network, parameters) = flow(3, route);
        let flow = NeuralFlow::<f64>::new(network, parameters, Arc::new(Cpu::new(1))).unwrap();
        let accelerator = Arc::new(FlowAccelerator::new(Arc::new(flow)));
        check_accelerator(&*accelerator, &ladder, &schedule, 3, FALSE_ALARM).assert_passed();
        let twin = Broken { inner: accelerator, fault: Fault::MissingJacobian(0.3) };
        check_accelerator(&twin, &ladder, &schedule, 3, FALSE_ALARM).assert_caught();
    }
}

/// The surprise is −log of a density: it integrates to one over the plane, but for the base's constant. With the reference as
/// base, the first chain has that law itself.
#[test]
fn surprises_are_those_of_a_density() {
    let (side, width) = (161, 0.1);
    let at = |i: usize| (i as f64 - (side / 2) as f64) * width;
    let x: Vec<f64> = (0..side * side).flat_map(|i| [at(i / side), at(i % side)]).collect();
    for (route, beta) in
        [(Route::ThroughReference, 0.4), (Route::ThroughBase, 0.4), (Route::ThroughBase, 0.0)]
    {
        let (network, parameters) = flow(2, route);
        let graph = Graph::new();
        let value = network.record_surprise(graph.input("beta", 1), graph.input("x", 2));
        let mut program = compile(&graph, &[value]);
        program.run(&parameters, side * side, &[&vec![beta; side * side], &x]).unwrap();
        let sum: f64 = program.output(0).iter().map(|s| (-s).exp()).sum();
        let integral = sum * width * width / std::f64::consts::TAU;
        assert!((integral - 1.0).abs() < 1e-3, "{route:?} at {beta}: {integral}");
    }
    let (network, parameters) = flow(2, Route::ThroughReference);
    let graph = Graph::new();
    let value = network.record_surprise(graph.input("beta", 1), graph.input("x", 2));
    let mut program = compile(&graph, &[value]);
    let x = numbers(6, 1, 1.0, 0.0);
    program.run(&parameters, 3, &[&[0.0; 3], &x]).unwrap();
    for (i, surprise) in program.output(0).iter().enumerate() {
        assert!((surprise - 0.5 * (x[2 * i].powi(2) + x[2 * i + 1].powi(2))).abs() < 1e-12);
    }
}

/// There and back by one pair is where it began.
#[test]
fn ways_back_undo_ways_there() {
    let (network, parameters) = flow(3, Route::ThroughBase);
    let graph = Graph::new();
    let conditions = Conditions::pair_inputs(&graph);
    let (y, there) = network.record(&conditions, graph.input("x", 3));
    let (back, again) = network.record_inverse(&conditions, y);
    let mut program = compile(&graph, &[back, there + again]);
    let x = numbers(12, 2, 1.0, 0.0);
    program.run(&parameters, 4, &[&[0.05; 4], &[0.4; 4], &x]).unwrap();
    assert!(program.output(0).iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-10));
    assert!(program.output(1).iter().all(|sum| sum.abs() < 1e-10));
}

fn training() -> Training {
    Training { steps: 300, batch: 64, learning_rate: 5e-3, loss: Loss::Likelihood, ..Training::default() }
}

/// From stored samples alone a flow learns what two normals have to do with each other, and its file says how.
#[test]
fn training_asks_for_no_evaluations() {
    let target = Normal::new(vec![1.0, -0.5], vec![4.0, 25.0]);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let size = FlowSize { layers: 4, hidden: Hidden::new(1, 16) };
    let fit = TrainFlow::new(path.clone(), host_target(Arc::new(target)), size, training()).unwrap();
    let (journey, step) = fit.work().unwrap();
    assert!(journey > 1000.0 && step == 3.0 * 64.0 * journey);
    let settings = Settings { chains: 3, collect: 1500, iterations: 3000, ..Settings::default() };
    let fit = Arc::new(fit);
    let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit.clone())).unwrap();
    run.complete().unwrap();
    let report = run.fit_report().unwrap();
    assert_eq!((report.target_evaluations, report.steps), (0, 300));
    for pair in &report.pairs {
        assert!(pair.rejection < 0.4 * pair.plain_rejection, "{pair:?}");
    }
    let results = run.results();
    let off = results.log_z.bar - results.log_z_truth.expect("of a normal");
    assert!(off.abs() < 5.0 * results.log_z.standard_error, "{off}");
    let record = &run.fitted().unwrap().record;
    assert_eq!(load_transport(record.to_vec(), "flow").unwrap().kind, "flow");
    assert!(fit.rebuild(record).unwrap().record == *record);
}

#[test]
fn controlled_diffusions_have_no_likelihood() {
    let target = Normal::isotropic(2, 4.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let refused =
        TrainCmcd::new(path, host_target(Arc::new(target)), CmcdSize::new(2, Hidden::new(1, 8)), training());
    assert!(refused.err().unwrap().to_string().contains("training.loss"));
}
