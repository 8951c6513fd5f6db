//! Flows of each chain from a common base: densities that are densities, journeys that are exact, training that asks nothing.

use std::sync::Arc;

use crate::common::{compile, lively, numbers};
use sterna::acceleration::{Acceleration, Collected, Fit, InSlices};
use sterna::accelerators::FlowAccelerator;
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::run::{Run, Settings};
use sterna::streams::{Phase, Streams};
use sterna::targets::Normal;
use sterna::{Batch, Schedule};
use sterna_neural::{
    CmcdSize, Conditions, Cpu, FlowSize, Graph, Hidden, Layout, Loss, NeuralFlow, Parameters, RealNvp,
    RealNvpConfig, Route, Split, TrainCmcd, TrainFlow, Training, host_target, load_transport,
    rejection_rates,
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
    let there = target.clone();
    let size = FlowSize::new(4, Hidden::new(1, 16));
    let fit = TrainFlow::new(path.clone(), host_target(Arc::new(target)), size, training()).unwrap();
    let (journey, (step, asked)) = fit.work().unwrap();
    assert!(journey > 1000.0 && (step, asked) == (3.0 * 64.0 * journey, 0));
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
    // Chains elsewhere are carried by the same maps; one of pairs knows its own chains alone.
    let elsewhere = Schedule::new(vec![0.0, 0.3, 1.0]).unwrap();
    assert!(fit.rebuild_at(record, &elsewhere).unwrap().is_some());
    let of_pairs = Training { loss: Loss::Skl, ..training() };
    let of_pairs = TrainFlow::new(
        Arc::new(Geometric::from_standard_normal(there.clone())),
        host_target(Arc::new(there)),
        size,
        of_pairs,
    );
    assert!(of_pairs.unwrap().rebuild_at(record, &elsewhere).unwrap().is_none());
}

/// Maps through a base carry chains that they were not learned at, more and fewer of them, exactly.
#[test]
fn chains_elsewhere_are_carried_exactly() {
    let ladder = GaussianLadder::uneven(3);
    let (network, parameters) = flow(3, Route::ThroughBase);
    let flow = NeuralFlow::<f64>::new(network, parameters, Arc::new(Cpu::new(1))).unwrap();
    let accelerator = Arc::new(FlowAccelerator::new(Arc::new(flow)));
    for betas in [vec![0.0, 0.2, 1.0], vec![0.0, 0.01, 0.1, 0.3, 0.6, 1.0]] {
        let schedule = Schedule::new(betas).unwrap();
        check_accelerator(&*accelerator, &ladder, &schedule, 5, FALSE_ALARM).assert_passed();
        let twin = Broken { inner: accelerator.clone(), fault: Fault::MissingJacobian(0.3) };
        check_accelerator(&twin, &ladder, &schedule, 5, FALSE_ALARM).assert_caught();
    }
}

/// What is said of a controlled diffusion's work is what its training asks; a slice goes on from another's weights with its K.
#[test]
fn the_work_of_a_slice_is_known_before() {
    let target = Normal::isotropic(2, 4.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let training = || Training { loss: Loss::Skl, batch: 8, judges: false, ..training() };
    let fit = |steps: usize| {
        let (target, size) = (host_target(Arc::new(target.clone())), CmcdSize::new(steps, Hidden::new(1, 8)));
        TrainCmcd::new(path.clone(), target, size, training()).unwrap()
    };
    let [(once, _), (twice, (_, asked))] = [1, 3].map(|steps| fit(steps).work().unwrap());
    assert_eq!(twice, 2.0 * once);
    let settings = Settings { chains: 3, collect: 200, iterations: 10, ..Settings::default() };
    let slice = fit(3).slice(5).unwrap();
    let mut run = Run::accelerated(path.clone(), settings.clone(), Acceleration::Fitted(slice)).unwrap();
    run.complete().unwrap();
    assert_eq!(run.fit_report().unwrap().target_evaluations, 5 * asked);
    let samples = run.fitted().unwrap();
    assert_eq!(fit(1).slice(5).unwrap().rebuild(&samples.record).unwrap().accelerator.steps(), 3);
}

#[test]
fn controlled_diffusions_have_no_likelihood() {
    let target = Normal::isotropic(2, 4.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let refused =
        TrainCmcd::new(path, host_target(Arc::new(target)), CmcdSize::new(2, Hidden::new(1, 8)), training());
    assert!(refused.err().unwrap().to_string().contains("training.loss"));
}

/// Scores say more than samples: from few of them, a flow that also follows the stored scores comes nearer to the truth, on samples
/// that nobody has seen; one that is told the negative of each score is the broken twin. Nobody asks the target.
#[test]
fn scores_teach_from_few_samples() {
    let target = Normal::new(vec![1.0, -0.5], vec![4.0, 25.0]);
    let path: Arc<dyn AnnealingPath> = Arc::new(Geometric::from_standard_normal(target.clone()));
    let betas = [0.0, 0.1, 0.4, 1.0];
    let drawn = |rows: usize, seed: u64, sign: f64| {
        let (mut samples, mut scores, mut variances) = (Vec::new(), Vec::new(), Vec::new());
        for (chain, beta) in betas.iter().enumerate() {
            let mut stream = Streams::new(seed).row(Phase::Check, 0, chain as u32);
            let (mut x, mut score) = (Vec::new(), Vec::new());
            let laws = [(1.0_f64, 4.0_f64), (-0.5, 25.0)].map(|(mean, precision)| {
                let sum = 1.0 - beta + beta * precision;
                (beta * precision * mean / sum, sum)
            });
            for (mean, precision) in (0..rows).flat_map(|_| laws) {
                let z = stream.normal();
                x.push(mean + z / precision.sqrt());
                score.push(-sign * z * precision.sqrt());
            }
            samples.push(Batch::from_vec(2, x));
            scores.push(Batch::from_vec(2, score));
            variances.extend(laws.map(|(_, precision)| precision.recip()));
        }
        Arc::new(Collected {
            round: 0,
            prospect: Default::default(),
            schedule: Schedule::new(betas.to_vec()).unwrap(),
            samples,
            scores,
            local_barrier: vec![1.0; 4],
            local_variance: Batch::from_vec(2, variances),
        })
    };
    let fresh = Split::judging((*drawn(4000, 9, 1.0)).clone());
    let rejections = |loss, sign: f64| {
        let training = Training { steps: 1500, loss, guard: false, ..training() };
        let size = FlowSize::new(4, Hidden::new(1, 16));
        let fit = TrainFlow::new(path.clone(), Arc::new(target.clone()), size, training).unwrap();
        assert_eq!(fit.wants_scores(), loss == Loss::Scores);
        let mut fitting = fit.begin(drawn(200, 3, sign), None).unwrap();
        fitting.advance(u64::MAX).unwrap();
        let fitted = fitting.finish().unwrap();
        assert_eq!(fitted.report.target_evaluations, 0);
        rejection_rates(&*fitted.accelerator, &*path, &fresh, 4).unwrap().iter().sum::<f64>()
    };
    let (likelihood, scores) = (rejections(Loss::Likelihood, 1.0), rejections(Loss::Scores, 1.0));
    assert!(scores < 0.7 * likelihood, "{scores} against {likelihood}");
    let twin = rejections(Loss::Scores, -1.0);
    assert!(twin > 2.0 * scores, "{twin} against {scores}");
}

/// In a run the scores come with the samples.
#[test]
fn runs_store_the_scores_that_training_wants() {
    let target = Normal::new(vec![1.0, -0.5], vec![4.0, 25.0]);
    for mean in [0.0, 0.2] {
        let reference = Reference::normal(vec![mean; 2], vec![1.0 + mean; 2]);
        let path = Arc::new(Geometric::new(reference, Arc::new(target.clone())).unwrap());
        let size = FlowSize::new(4, Hidden::new(1, 16));
        let training = Training { loss: Loss::Scores, ..training() };
        let fit = Arc::new(
            TrainFlow::new(path.clone(), host_target(Arc::new(target.clone())), size, training).unwrap(),
        );
        let settings = Settings { chains: 3, collect: 1000, iterations: 2000, ..Settings::default() };
        let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
        run.complete().unwrap();
        let report = run.fit_report().unwrap();
        assert_eq!((report.target_evaluations, report.steps), (0, 300));
        for pair in &report.pairs {
            assert!(pair.rejection < 0.4 * pair.plain_rejection, "{pair:?}");
        }
        let results = run.results();
        let off = results.log_z.bar - results.log_z_truth.expect("of a normal");
        assert!(off.abs() < 5.0 * results.log_z.standard_error, "{off}");
    }
}

#[test]
fn samples_without_scores_are_refused() {
    let target = Normal::isotropic(2, 4.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let training = Training { loss: Loss::Scores, ..training() };
    let fit = TrainFlow::new(path, Arc::new(target), FlowSize::new(2, Hidden::new(1, 8)), training).unwrap();
    let collected = Collected {
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(vec![0.0, 1.0]).unwrap(),
        samples: vec![Batch::from_vec(2, numbers(40, 1, 1.0, 0.0)); 2],
        scores: Vec::new(),
        local_barrier: vec![1.0; 2],
        local_variance: Batch::from_vec(2, vec![1.0; 4]),
    };
    let error = fit.begin(Arc::new(collected), None).err().unwrap().to_string();
    assert!(error.contains("scores"), "{error}");
}
