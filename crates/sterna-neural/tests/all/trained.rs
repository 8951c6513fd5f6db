//! Trained transports: losses hold the sampler's own weights, training helps, and whatever becomes of a
//! network, the run stays exact.

mod by_heart;
mod diffusion;
mod wrecked;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{check_network, compile, lively, numbers, relative_error};
use sterna::acceleration::{Acceleration, Collected, Fit, FitAtOnce, Fitted, Fitting};
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{Cmcd, Diffusion, DiffusionSteps, FlowAccelerator, Identity, Integrator, PerPair};
use sterna::call::{Call, Rows, Scratch};
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Diffused, Geometric};
use sterna::run::{Criterion, Results, Run, Settings};
use sterna::streams::Phase;
use sterna::targets::{Dw4, Gmm, Normal};
use sterna::transport::EnergyModel;
use sterna::{Batch, Evaluation, Schedule, Streams, Target};
use sterna_neural::{
    CmcdInputs, CmcdNetwork, CmcdSize, Conditions, Cpu, DiffusionSize, EnergyConfig, FlowSize, Graph,
    GraphPath, GraphTarget, Hidden, Layout, Loss, Made, MlpDriftConfig, NeuralDrift, NeuralEnergyModel,
    NeuralFlow, Parameters, Particles, RealNvpConfig, TrainCmcd, TrainDiffusion, TrainFlow, Training, Value,
    flow_divergences, host_target, load_transport, round_trip_loss,
};
use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];
const ROWS: usize = 6;
const PAIRS: [usize; ROWS] = [1, 2, 3, 3, 2, 1];

fn small(dim: usize) -> MlpDriftConfig {
    MlpDriftConfig { hidden: Hidden::new(1, 8), ..MlpDriftConfig::small(dim, &SCHEDULE).unwrap() }
}

fn cmcd(dim: usize, steps: usize) -> (Layout, CmcdNetwork) {
    let mut layout = Layout::new();
    let drift = small(dim).build(&mut layout, "drift").unwrap();
    let network = CmcdNetwork::new(&mut layout, drift.into(), steps, &[[0.3, 0.2], [0.1, 0.1], [0.03, 0.01]])
        .with_score(&mut layout);
    (layout, network)
}

fn cmcd_accelerator(network: &CmcdNetwork, parameters: &Parameters<f64>) -> Cmcd {
    let drift = NeuralDrift::<f64>::new(network.drift().clone(), parameters.clone(), Arc::new(Cpu::new(1)));
    Cmcd { steps: network.kernels(parameters, Arc::new(drift.unwrap())).unwrap() }
}

fn flow(dim: usize) -> (Layout, sterna_neural::RealNvp) {
    let mut layout = Layout::new();
    let config = RealNvpConfig { layers: 4, ..RealNvpConfig::small(dim, &SCHEDULE).unwrap() };
    let network = config.build(&mut layout, "flow").unwrap();
    (layout, network)
}

fn flow_accelerator(network: &sterna_neural::RealNvp, parameters: &Parameters<f64>) -> FlowAccelerator {
    let flow = NeuralFlow::<f64>::new(network.clone(), parameters.clone(), Arc::new(Cpu::new(1)));
    FlowAccelerator::new(Arc::new(flow.unwrap()))
}

/// Journeys of the rows of [`PAIRS`] from the given starts.
fn travel(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    direction: Direction,
    starts: &[f64],
) -> Journey {
    let schedule = Schedule::new(SCHEDULE.to_vec()).unwrap();
    let mut travellers = Rows::default();
    for (row, &pair) in PAIRS.iter().enumerate() {
        travellers.push_leaving(row, row as u32, pair, schedule.interval(pair), direction);
    }
    let mut points = Points::zeros(ROWS, path.dim());
    points.x.as_mut_slice().copy_from_slice(starts);
    path.evaluate(&travellers.beta, &mut points).unwrap();
    let mut journey = Journey::new(ROWS, path.dim());
    journey.begin(&points, &travellers.row);
    accelerator
        .travel(
            direction,
            &Call::new(path, &Streams::new(3), 1, &travellers),
            &mut journey,
            &mut Scratch::default(),
        )
        .unwrap();
    journey
}

fn ends() -> [Vec<f64>; 2] {
    [1, 0].map(|back| PAIRS.iter().map(|pair| SCHEDULE[pair - back]).collect())
}

#[test]
fn losses_hold_the_weights_of_controlled_diffusions() {
    let target = Gmm::paper(3);
    let path = Geometric::from_standard_normal(target.clone());
    let starts = numbers(ROWS * 3, 4, 0.6, 0.0);
    for steps in [1, 2, 5] {
        let (layout, network) = cmcd(3, steps);
        let parameters = Parameters::new(lively(&layout));
        let accelerator = cmcd_accelerator(&network, &parameters);
        for (direction, phase) in
            [(Direction::Forward, Phase::Forward), (Direction::Backward, Phase::Backward)]
        {
            let journey = travel(&accelerator, &path, direction, &starts);
            let is_forward = direction == Direction::Forward;
            let mut noise = vec![0.0; ROWS * steps * 3];
            for n in 1..=steps {
                let k = if is_forward { n } else { steps + 1 - n };
                let mut z = Batch::zeros(ROWS, 3);
                Streams::new(3).normals(phase.number(k), 1, &[0, 1, 2, 3, 4, 5], &mut z);
                for i in 0..ROWS {
                    noise[(i * steps + n - 1) * 3..][..3].copy_from_slice(z.row(i));
                }
            }
            let which: Vec<f64> =
                PAIRS.iter().flat_map(|&pair| (1..=3).map(move |n| f64::from(u8::from(n == pair)))).collect();
            let graph = Graph::new();
            let rows = CmcdInputs::record(&graph, &network);
            let graph_path = GraphPath::from_standard_normal(Arc::new(target.clone()));
            let outputs = [false, true].map(|detached| network.divergence(&graph_path, &rows, detached));
            let mut program = compile(&graph, &outputs);
            let ([lower, upper], sign) = (ends(), if is_forward { 1.0 } else { -1.0 });
            let inputs: [&[f64]; 6] =
                [&lower, &upper, &which, &[f64::from(u8::from(is_forward)); ROWS], &starts, &noise];
            program.run(&parameters, ROWS, &inputs).unwrap();
            for k in 0..2 {
                let log_weight: Vec<f64> = program.output(k).iter().map(|d| -sign * d).collect();
                let error = relative_error(&log_weight, &journey.log_weight);
                assert!(error < 1e-11, "{direction:?}, K = {steps}: {error:e}");
            }
        }
    }
}

#[test]
fn losses_hold_the_weights_of_flows() {
    let target = Gmm::paper(3);
    let path = Geometric::from_standard_normal(target.clone());
    let (layout, network) = flow(3);
    let parameters = Parameters::new(lively(&layout));
    let accelerator = flow_accelerator(&network, &parameters);
    let starts = numbers(ROWS * 3, 4, 0.6, 0.0);
    let graph = Graph::new();
    let conditions = Conditions::pair_inputs(&graph);
    let [x, y] = ["x", "y"].map(|name| graph.input(name, 3));
    let graph_path = GraphPath::from_standard_normal(Arc::new(target));
    let mut program = compile(&graph, &flow_divergences(&network, &graph_path, &conditions, x, y));
    let [lower, upper] = ends();
    program.run(&parameters, ROWS, &[&lower, &upper, &starts, &starts]).unwrap();
    for (k, direction, sign) in [(0, Direction::Forward, -1.0), (1, Direction::Backward, 1.0)] {
        let log_weight: Vec<f64> = program.output(k).iter().map(|d| sign * d).collect();
        let journey = travel(&accelerator, &path, direction, &starts);
        assert!(relative_error(&log_weight, &journey.log_weight) < 1e-11, "{direction:?}");
    }
}

#[test]
fn derivatives_along_whole_paths_match_differences() {
    let (layout, network) = cmcd(2, 2);
    let inputs = [numbers(ROWS * 2, 4, 0.6, 0.0), numbers(ROWS * 4, 5, 1.0, 0.0)];
    check_network("cmcd", ROWS, &inputs, &layout, &lively(&layout), 2e-5, |graph, x| {
        let path = GraphPath::from_standard_normal(Arc::new(Normal::isotropic(2, 4.0)));
        let one = x[0].slice(0, 1) * 0.0;
        let rows = CmcdInputs {
            pair: Conditions { lower: one + 0.05, upper: one + 0.3, time: None },
            which: graph.concat(&[one, one + 1.0, one]),
            forward: one + 1.0,
            start: x[0],
            noise: x[1],
        };
        network.divergence(&path, &rows, false)
    });
}

/// Σ r/(1 − r) of rates that are known, and its derivatives along whole paths.
#[test]
fn the_round_trip_loss_is_what_it_says() {
    let graph = Graph::new();
    let (which, divergence) = (graph.input("which", 2), graph.input("divergence", 1));
    let mut program = compile(&graph, &[round_trip_loss(which, divergence)]);
    let rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]].concat();
    program.run(&Parameters::empty(), 3, &[&rows, &[1.0, -3.0, 0.4]]).unwrap();
    let r = [(0.5f64.tanh() + 1.5f64.tanh()) / 2.0, 0.2f64.tanh()];
    let exact: f64 = r.iter().map(|r| r / (1.001 - r)).sum();
    assert!((program.output(0)[0] - exact).abs() < 1e-5, "{} {exact}", program.output(0)[0]);

    // Two journeys of pair 2, one there and one back, in each row of the batch.
    let (layout, network) = cmcd(2, 2);
    let inputs = [numbers(ROWS * 4, 4, 0.6, 0.0), numbers(ROWS * 8, 5, 1.0, 0.0)];
    check_network("round trips", ROWS, &inputs, &layout, &lively(&layout), 2e-5, |graph, x| {
        let path = GraphPath::from_standard_normal(Arc::new(Normal::isotropic(2, 4.0)));
        let one = x[0].slice(0, 1) * 0.0;
        let rows = [0, 1].map(|back| CmcdInputs {
            pair: Conditions { lower: one + 0.05, upper: one + 0.3, time: None },
            which: graph.concat(&[one, one + 1.0, one]),
            forward: one + (1 - back) as f64,
            start: x[0].slice(2 * back, 2),
            noise: x[1].slice(4 * back, 4),
        });
        let [which, divergence] = network.round_trips(&path, &rows);
        round_trip_loss(which, divergence) + one
    });
}

fn settings(chains: usize) -> Settings {
    Settings { chains, rounds: 5, collect: 2000, burn_in: 200, iterations: 10_000, ..Settings::default() }
}

fn completed(path: Arc<dyn AnnealingPath>, settings: Settings, fit: Arc<dyn Fit>) -> Run {
    let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
    run.complete().unwrap();
    run
}

fn results(path: Arc<dyn AnnealingPath>, settings: Settings, fit: Arc<dyn Fit>) -> Results {
    completed(path, settings, fit).results()
}

/// log Z and means within 4.5 standard errors: false alarm below 10⁻⁴ with the few numbers here.
fn assert_right(results: &Results, means: &[f64]) {
    let log_z = &results.log_z;
    let error = log_z.bar - results.log_z_truth.unwrap();
    assert!(error.abs() < 4.5 * log_z.standard_error, "log Z is off by {error} ± {}", log_z.standard_error);
    for ((mean, error), truth) in results.means.iter().zip(means) {
        assert!((mean - truth).abs() < 4.5 * error, "a mean is {mean} ± {error}, not {truth}");
    }
}

fn normal() -> (Normal, Arc<Geometric>) {
    let target = Normal::new(vec![0.5, -0.3], vec![20.0, 5.0]);
    (target.clone(), Arc::new(Geometric::from_standard_normal(target)))
}

fn quick(loss: Loss) -> Training {
    Training { steps: 300, batch: 64, learning_rate: 1e-2, loss, ..Training::default() }
}

const TINY_FLOW: FlowSize = FlowSize::new(4, Hidden::new(1, 16));

#[test]
fn every_loss_trains() {
    let (target, path) = normal();
    for loss in [Loss::Skl, Loss::ForwardKl, Loss::ReverseKl] {
        let fit = TrainFlow::new(path.clone(), Arc::new(target.clone()), TINY_FLOW, quick(loss)).unwrap();
        let run = completed(path.clone(), settings(3), Arc::new(fit));
        assert_right(&run.results(), &[0.5, -0.3]);
        for pair in &run.fit_report().unwrap().pairs {
            assert!(pair.rejection < 0.6 * pair.plain_rejection, "{loss:?}: {pair:?}");
        }
    }
    for loss in [Loss::Skl, Loss::LogVariance] {
        let size = CmcdSize::new(3, Hidden::new(2, 16));
        let fit = TrainCmcd::new(path.clone(), Arc::new(target.clone()), size, quick(loss)).unwrap();
        let run = completed(path.clone(), settings(3), Arc::new(fit));
        assert_right(&run.results(), &[0.5, -0.3]);
        for pair in &run.fit_report().unwrap().pairs {
            assert!(pair.rejection < 0.9 * pair.plain_rejection, "{loss:?}: {pair:?}");
        }
    }
}

/// Σ r/(1 − r) on held-out samples.
fn held_out_loss(run: &Run) -> f64 {
    run.fit_report().unwrap().pairs.iter().map(|p| p.rejection / (1.0 - p.rejection)).sum()
}

#[test]
fn fine_tuning_lowers_the_round_trip_loss_and_stays_exact() {
    let (target, path) = normal();
    let target = Arc::new(target);
    for kind in ["flow", "cmcd"] {
        let [without, with] = [0, 400].map(|fine_tune| {
            let training = Training { fine_tune, steps: 100, ..quick(Loss::Skl) };
            let fit: Arc<dyn Fit> = match kind {
                "flow" => {
                    Arc::new(TrainFlow::new(path.clone(), target.clone(), TINY_FLOW, training).unwrap())
                }
                _ => {
                    let size = CmcdSize::new(2, Hidden::new(2, 16));
                    Arc::new(TrainCmcd::new(path.clone(), target.clone(), size, training).unwrap())
                }
            };
            let run = completed(path.clone(), settings(3), fit);
            assert_right(&run.results(), &[0.5, -0.3]);
            let report = run.fit_report().unwrap();
            assert_eq!(report.steps, 100 + fine_tune);
            assert_eq!(report.fine_tuning_losses.len(), if fine_tune > 0 { 20 } else { 0 });
            held_out_loss(&run)
        });
        assert!(with < 0.8 * without, "{kind}: {with} against {without}");
    }
}

/// DW-4 by an equivariant drift in the mean-free space.
#[test]
fn particles_get_a_drift_that_helps() {
    let path: Arc<dyn AnnealingPath> = Arc::new(Geometric::from_standard_normal(Dw4));
    let size = CmcdSize { particles: Some(Particles::DW4), ..CmcdSize::new(1, Hidden::new(1, 16)) };
    let training =
        Training { steps: 150, fine_tune: 20, batch: 64, learning_rate: 5e-3, ..Training::default() };
    let fit = TrainCmcd::new(path.clone(), Arc::new(Dw4), size, training.clone()).unwrap();
    let run = completed(path.clone(), Settings { iterations: 5000, ..settings(6) }, Arc::new(fit));
    let (found, report) = (run.results(), run.fit_report().unwrap());
    let error = found.log_z.bar - found.log_z_truth.unwrap();
    assert!(error.abs() < 4.5 * found.log_z.standard_error, "log Z is off by {error}");
    let sums = report.pairs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.rejection, s.1 + p.plain_rejection));
    assert!(sums.0 < 0.97 * sums.1, "{sums:?}");
    let refused = TrainCmcd::new(path, Arc::new(Normal::isotropic(5, 1.0)), size, training);
    assert!(refused.err().unwrap().to_string().contains("length 6"));
}

/// A user's target: counts its evaluations.
struct Counted(Normal, AtomicU64);

impl Target for Counted {
    fn dim(&self) -> usize {
        Target::dim(&self.0)
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.1.fetch_add(x.rows() as u64, Ordering::Relaxed);
        Target::evaluate(&self.0, x, out)
    }
}

/// The log-variance loss asks a user's target once at each point of a path; the pathwise loss asks twice
/// more for each derivative of the score. Both train, and so does a flow.
#[test]
fn targets_of_users_are_trained_on_and_counted() {
    let (target, path) = normal();
    let counted = || Arc::new(Counted(target.clone(), AtomicU64::new(0)));
    let report = |target: &Arc<Counted>, fit: &dyn Fit| {
        let mut fitting = fit.begin(collected(), None).unwrap();
        fitting.advance(u64::MAX).unwrap();
        let asked = target.1.load(Ordering::Relaxed);
        (fitting.finish().unwrap().report, asked)
    };
    for (loss, each) in [(Loss::LogVariance, 3), (Loss::Skl, 3 + 2 * 2)] {
        let size = CmcdSize::new(2, Hidden::new(2, 16));
        let training = Training { steps: 20, ..quick(loss) };
        let target = counted();
        let fit = TrainCmcd::new(path.clone(), host_target(target.clone()), size, training).unwrap();
        let (report, asked) = report(&target, &fit);
        assert_eq!(report.target_evaluations, 20 * 2 * 64 * each, "{loss:?}");
        assert_eq!(asked, report.target_evaluations, "{loss:?}");
    }
    let target = counted();
    let training = Training { steps: 20, ..quick(Loss::Skl) };
    let fit = TrainFlow::new(path.clone(), host_target(target.clone()), TINY_FLOW, training).unwrap();
    let (report, asked) = report(&target, &fit);
    // In the first step the flow is the identity, so that journeys end where they start.
    assert_eq!(asked + 2 * 64, report.target_evaluations);

    let size = CmcdSize::new(3, Hidden::new(2, 16));
    let target = host_target(counted());
    let fit = TrainCmcd::new(path.clone(), target, size, quick(Loss::LogVariance)).unwrap();
    let run = completed(path.clone(), settings(3), Arc::new(fit));
    assert_right(&run.results(), &[0.5, -0.3]);
    for pair in &run.fit_report().unwrap().pairs {
        assert!(pair.rejection < 0.9 * pair.plain_rejection, "{pair:?}");
    }
}

fn collected() -> Arc<Collected> {
    let samples = (0..4).map(|c| Batch::from_vec(2, numbers(400, c, 1.0 / (1.0 + c as f64), 0.0))).collect();
    Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(SCHEDULE.to_vec()).unwrap(),
        samples,
        local_barrier: vec![1.0; 4],
        local_variance: Batch::from_vec(2, vec![0.3; 8]),
    })
}

#[test]
fn a_fit_goes_on_where_it_was_left_and_comes_back_from_its_record() {
    let (target, path) = normal();
    let collected = collected();
    let target = Arc::new(target);
    let size = CmcdSize::new(2, Hidden::new(1, 8));
    let training = || Training { steps: 40, fine_tune: 20, ..quick(Loss::Skl) };
    let fits: [Arc<dyn Fit>; 2] = [
        Arc::new(TrainFlow::new(path.clone(), target.clone(), TINY_FLOW, training()).unwrap()),
        Arc::new(TrainCmcd::new(path, target, size, training()).unwrap()),
    ];
    for fit in fits {
        let begin = || fit.begin(collected.clone(), None).unwrap();
        let mut whole = begin();
        whole.advance(u64::MAX).unwrap();
        let whole = whole.finish().unwrap();
        let mut part = begin();
        // Before fine-tuning, at its beginning and in its midst.
        for stop in [21, 40, 47] {
            part.advance(3).unwrap();
            part.advance(stop - part.progress().0).unwrap();
            assert_eq!(part.progress(), (stop, 60));
            let mut rest = begin();
            rest.restore(&part.save().unwrap()).unwrap();
            rest.advance(1000).unwrap();
            let rest = rest.finish().unwrap();
            assert!(whole.record == rest.record, "the weights differ after a stop at {stop}");
            assert_eq!(whole.report, rest.report);
        }
        let mut other = begin();
        assert!(other.restore(&part.save().unwrap()[..100]).is_err());
        let again = fit.rebuild(&whole.record).unwrap();
        assert_eq!(again.accelerator.steps(), whole.accelerator.steps());
        assert!(again.record == whole.record);
    }
}
