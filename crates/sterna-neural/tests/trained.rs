//! Trained transports: losses hold the sampler's own weights, training helps, and whatever becomes of a
//! network, the run stays exact.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{check_network, compile, lively, numbers, relative_error};
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
        network.round_trip_loss(&path, &rows) + one
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

const TINY_FLOW: FlowSize = FlowSize { layers: 4, hidden: Hidden::new(1, 16) };

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
        round: 0,
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

/// Weights of a network that learned nothing but noise.
fn wrecked(layout: &Layout, size: f64) -> Parameters<f64> {
    Parameters::new(numbers(layout.len(), 9, size, 0.0))
}

#[test]
fn a_wrecked_network_stays_exact() {
    // Swaps alone, on exact draws of every chain: the law must not change.
    let ladder = GaussianLadder::uneven(2);
    let schedule = Schedule::new(SCHEDULE.to_vec()).unwrap();
    let (layout, network) = flow(2);
    for size in [0.1, 0.3] {
        let accelerator = flow_accelerator(&network, &wrecked(&layout, size));
        check_accelerator(&accelerator, &ladder, &schedule, 1, FALSE_ALARM).assert_passed();
    }
    let (layout, network) = cmcd(2, 2);
    for size in [0.3, 1.0] {
        let accelerator = cmcd_accelerator(&network, &wrecked(&layout, size));
        check_accelerator(&accelerator, &ladder, &schedule, 1, FALSE_ALARM).assert_passed();
    }
}

/// Hands out a wrecked flow.
struct Wreck;

impl FitAtOnce for Wreck {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        let mut layout = Layout::new();
        let config = RealNvpConfig::small(2, collected.schedule.betas()).unwrap();
        let network = config.build(&mut layout, "flow").unwrap();
        Ok(Arc::new(flow_accelerator(&network, &wrecked(&layout, 0.2))))
    }
}

#[test]
fn a_run_with_a_wrecked_network_is_slow_but_right() {
    let (_, path) = normal();
    let found = results(path, settings(4), Arc::new(Wreck));
    assert!(found.rejection_rates.iter().any(|&r| r > 0.5), "it does harm: {:?}", found.rejection_rates);
    assert_right(&found, &[0.5, -0.3]);
}

#[test]
fn the_guard_replaces_what_does_harm() {
    let (target, path) = normal();
    let plain = results(path.clone(), settings(4), Arc::new(Plain));
    let training = Training { steps: 20, learning_rate: 3.0, clip: 1e6, ..quick(Loss::Skl) };
    let fit = Arc::new(TrainFlow::new(path.clone(), Arc::new(target), TINY_FLOW, training).unwrap());
    let run = completed(path, settings(4), fit);
    let (found, report) = (run.results(), run.fit_report().unwrap());
    assert!(report.pairs.iter().all(|p| p.plain == (p.rejection > p.plain_rejection)));
    assert!(report.pairs.iter().any(|p| p.plain), "{:?}", report.pairs);
    assert!(report.alarms.iter().any(|(code, _)| *code == "transport-replaced"), "{:?}", report.alarms);
    for (ours, plain) in found.rejection_rates.iter().zip(&plain.rejection_rates) {
        assert!(*ours < plain + 0.05, "{ours} against {plain}");
    }
    assert_right(&found, &[0.5, -0.3]);
}

struct Plain;

impl FitAtOnce for Plain {
    fn fit(&self, _: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(Arc::new(Identity))
    }
}

/// A target whose density inside graphs is never a number.
struct Poisoned;

impl GraphTarget for Poisoned {
    fn dim(&self) -> usize {
        2
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        (x.dot(x) * -1.0 - 1.0).log()
    }
}

#[test]
fn a_diverged_training_falls_back_to_plain_swaps() {
    let (_, path) = normal();
    let fit = TrainFlow::new(path.clone(), Arc::new(Poisoned), TINY_FLOW, quick(Loss::Skl)).unwrap();
    let run = completed(path, settings(4), Arc::new(fit));
    assert_right(&run.results(), &[0.5, -0.3]);
    let alarms = &run.fit_report().unwrap().alarms;
    assert!(alarms.iter().any(|(code, _)| *code == "training-diverged"), "{alarms:?}");
}

#[test]
fn pairs_keep_their_bits_beside_plain_ones() {
    let path = Geometric::from_standard_normal(Gmm::paper(3));
    let (layout, network) = cmcd(3, 2);
    let inner: Arc<dyn Accelerator> = Arc::new(cmcd_accelerator(&network, &Parameters::new(lively(&layout))));
    let mixed = PerPair::new(inner.clone(), vec![false, true, false]);
    let starts = numbers(ROWS * 3, 4, 0.6, 0.0);
    for direction in [Direction::Forward, Direction::Backward] {
        let [ours, inner, plain] =
            [&mixed as &dyn Accelerator, &*inner, &Identity].map(|a| travel(a, &path, direction, &starts));
        for (i, &pair) in PAIRS.iter().enumerate() {
            let expected = if pair == 2 { &plain } else { &inner };
            assert_eq!(ours.log_weight[i], expected.log_weight[i]);
            assert_eq!(ours.points.x.row(i), expected.points.x.row(i));
            assert_eq!(ours.points.score.row(i), expected.points.score.row(i));
        }
    }
}

#[test]
fn impossible_settings_are_named() {
    let (target, path) = normal();
    let error = |size: FlowSize, training: Training| {
        let fit = TrainFlow::new(path.clone(), Arc::new(target.clone()), size, training);
        fit.err().expect("refused").to_string()
    };
    let good = Training::default;
    assert!(error(TINY_FLOW, Training { steps: 0, ..good() }).contains("training.steps"));
    assert!(error(TINY_FLOW, Training { ema: 1.0, ..good() }).contains("training.ema"));
    assert!(error(TINY_FLOW, Training { clip: f64::NAN, ..good() }).contains("training.clip"));
    assert!(error(TINY_FLOW, Training { loss: Loss::LogVariance, ..good() }).contains("training.loss"));
    assert!(error(FlowSize { hidden: Hidden::new(1, 0), ..TINY_FLOW }, good()).contains("width"));
}

const TINY_DIFFUSION: DiffusionSize = DiffusionSize {
    steps: 2,
    integrator: Integrator::Exponential,
    hidden: Hidden::new(1, 16),
    waves: 1,
    particles: None,
    apart: false,
};

/// Two modes of unequal weight in the plane: what score matching must find out.
fn two_modes() -> (Gmm, Arc<Geometric>) {
    let target = Gmm::new(2, vec![[0.6, 0.2], [-0.6, -0.1], [-0.5, 0.1]], 0.15);
    (target.clone(), Arc::new(Geometric::from_standard_normal(target)))
}

fn train_diffusion(target: Gmm, path: Arc<Geometric>, steps: usize, training: Training) -> Arc<dyn Fit> {
    let size = DiffusionSize { steps, ..TINY_DIFFUSION };
    Arc::new(TrainDiffusion::new(path, Arc::new(target), size, training).unwrap())
}

/// Largest rejection rate of a run less the smallest.
fn unevenness(results: &Results) -> f64 {
    let rates = &results.rejection_rates;
    let [low, high] = [f64::min, f64::max].map(|pick| rates.iter().copied().reduce(pick).unwrap());
    high - low
}

#[test]
fn chains_move_between_rounds_to_where_rejections_are_even() {
    let (target, path) = two_modes();
    let training = || Training { steps: 300, ..quick(Loss::Skl) };
    let size = CmcdSize::new(2, Hidden::new(2, 16));
    let fits: [Arc<dyn Fit>; 2] = [
        Arc::new(TrainFlow::new(path.clone(), Arc::new(target.clone()), TINY_FLOW, training()).unwrap()),
        Arc::new(TrainCmcd::new(path.clone(), Arc::new(target.clone()), size, training()).unwrap()),
    ];
    for fit in fits {
        let run = |fits: usize, criterion: Criterion| {
            completed(path.clone(), Settings { fits, criterion, ..settings(5) }, fit.clone())
        };
        let [one, two] = [1, 2].map(|fits| run(fits, Criterion::Barrier));
        assert_ne!(one.sampler().schedule, two.sampler().schedule);
        let [before, after] = [&one, &two].map(|run| unevenness(&run.results()));
        assert!(after < 0.7 * before, "rejections differ by {before}, then by {after}");
        assert_right(&two.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
        // The record knows where the chains are now.
        let loaded = load_transport(two.fitted().unwrap().record.to_vec(), "the record").unwrap();
        let Made::Pairs { schedule, .. } = loaded.made else { panic!("it carries pairs") };
        assert_eq!(schedule, two.sampler().schedule);
        // Where the schedule is fixed it stays.
        assert_eq!(run(2, Criterion::Fixed).sampler().schedule, Schedule::uniform(5));
    }
}

#[test]
fn diffusions_train_for_any_number_of_steps() {
    let (target, path) = two_modes();
    let plain = results(path.clone(), settings(4), Arc::new(Plain));
    let mean = [(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0];
    for steps in [0, 1, 5] {
        let fit =
            train_diffusion(target.clone(), path.clone(), steps, Training { steps: 600, ..quick(Loss::Skl) });
        let run = completed(path.clone(), Settings { fits: 2, ..settings(4) }, fit);
        let (found, report) = (run.results(), run.fit_report().unwrap());
        assert_right(&found, &mean);
        assert!(report.alarms.iter().all(|(code, _)| code == "few-training-samples"), "{:?}", report.alarms);
        assert_eq!(report.steps, 1200, "two rounds");
        assert_eq!(run.sampler().accelerator.steps(), steps);
        assert!(
            report.losses.last() < report.losses.first() || report.losses[0] < 0.2,
            "{:?}",
            report.losses
        );
        if steps == 5 {
            let [ours, theirs]: [f64; 2] = [&found, &plain].map(|r| r.rejection_rates.iter().sum());
            assert!(ours < 0.7 * theirs, "training helps: {ours} against {theirs}");
        }
        // The target is asked at s = 1 alone, the network in between: five leapfrog steps on three chains,
        // of which one is the target's, and the swaps.
        assert!(found.sampling_evaluations > found.sampling_network_evaluations);
        assert!(
            found.sampling_network_evaluations >= 10_000 * 5 * 2,
            "{}",
            found.sampling_network_evaluations
        );
    }
}

#[test]
fn a_diffusion_goes_on_where_it_was_left_and_comes_back_from_its_record() {
    let (target, path) = two_modes();
    let collected = collected_from(&target);
    let training = Training { steps: 60, guard: false, ..quick(Loss::Skl) };
    let fit = train_diffusion(target, path, 2, training);
    let begin = || fit.begin(collected.clone(), None).unwrap();
    let mut whole = begin();
    whole.advance(u64::MAX).unwrap();
    let whole = whole.finish().unwrap();
    let mut part = begin();
    part.advance(21).unwrap();
    let mut rest = begin();
    rest.restore(&part.save().unwrap()).unwrap();
    rest.advance(1000).unwrap();
    let rest = rest.finish().unwrap();
    assert!(whole.record == rest.record, "the weights differ");
    assert_eq!(whole.report, rest.report);
    // The same path from its record, to the bit.
    let again = fit.rebuild(&whole.record).unwrap();
    assert_eq!(again.accelerator.steps(), 2);
    let values = [whole, again].map(|fitted| {
        let path = fitted.path.expect("a learned path");
        let mut points = Points::zeros(4, 2);
        points.x.as_mut_slice().copy_from_slice(&numbers(8, 2, 1.0, 0.0));
        path.evaluate(&[0.0, 0.3, 0.97, 1.0], &mut points).unwrap();
        (points.log_density, points.score, path.log_z_reference(), path.first_schedule(SCHEDULE.len()))
    });
    assert_eq!(values[0], values[1]);
    // A record of nothing is a fit that came to nothing.
    assert_eq!(fit.rebuild(&[]).unwrap().accelerator.steps(), 0);
}

/// Exact draws of the target on every chain: enough to train on.
fn collected_from(target: &Gmm) -> Arc<Collected> {
    let draws = |chain: u64| {
        let mut x = Batch::zeros(400, 2);
        for i in 0..400 {
            let mut stream = Streams::new(chain).row(Phase::Exact, 0, i as u32);
            assert!(target.draw(&mut stream, x.row_mut(i)));
        }
        x
    };
    Arc::new(Collected {
        round: 0,
        schedule: Schedule::new(SCHEDULE.to_vec()).unwrap(),
        samples: (0..4).map(draws).collect(),
        local_barrier: vec![1.0; 4],
        local_variance: Batch::from_vec(2, vec![0.03; 8]),
    })
}

/// Hands out a path of noise, as it would come from a training that went wrong unseen.
struct WreckedPath {
    /// Added to the mass that the path says its reference has.
    lie: f64,
}

/// A model that misreports its mass.
struct Lying(NeuralEnergyModel<f64>, f64);

impl EnergyModel for Lying {
    fn evaluate(
        &self,
        times: &[f64],
        x: &Batch,
        out: &mut Evaluation,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.0.evaluate(times, x, out, scratch)
    }

    fn log_z_reference(&self) -> f64 {
        self.0.log_z_reference() + self.1
    }
}

impl Fit for WreckedPath {
    fn begin(&self, _: Arc<Collected>, _: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let (target, _) = two_modes();
        let mut layout = Layout::new();
        let config =
            EnergyConfig { hidden: Hidden::new(1, 8), bound: 3.0, waves: 1, ..EnergyConfig::small(2) };
        let network = config.build(&mut layout, "energy").unwrap();
        let weights = wrecked(&layout, 0.5);
        let device = Arc::new(Cpu::new(1));
        let model = NeuralEnergyModel::new(network, Arc::new(target), weights, device).unwrap();
        let path = Diffused::new(Arc::new(Lying(model, self.lie)), 2, Some(0.0));
        let steps = DiffusionSteps::new(2, Integrator::Exponential)?;
        Ok(Box::new(Done(Fitted {
            accelerator: Arc::new(Diffusion { steps }),
            path: Some(Arc::new(path)),
            record: Arc::new([]),
            report: Default::default(),
        })))
    }

    fn rebuild(&self, _: &[u8]) -> sterna::Result<Fitted> {
        unreachable!("no run stops here")
    }
}

struct Done(Fitted);

impl Fitting for Done {
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }

    fn advance(&mut self, _: u64) -> sterna::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> sterna::Result<Fitted> {
        Ok(self.0)
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: &[u8]) -> sterna::Result<()> {
        Ok(())
    }
}

#[test]
fn a_run_along_a_wrecked_path_is_slow_but_right() {
    let (_, path) = two_modes();
    let long = Settings { iterations: 40_000, guard: false, ..settings(6) };
    let plain = results(path.clone(), long.clone(), Arc::new(Plain));
    let found = results(path.clone(), long.clone(), Arc::new(WreckedPath { lie: 0.0 }));
    let [ours, theirs]: [f64; 2] = [&found, &plain].map(|r| r.rejection_rates.iter().sum());
    assert!(ours > 1.2 * theirs, "it does harm: {ours} against {theirs}");
    assert_right(&found, &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    // By default such a path is given up after tuning.
    let guarded = Settings { guard: true, iterations: 2000, ..long.clone() };
    let run = completed(path.clone(), guarded, Arc::new(WreckedPath { lie: 0.0 }));
    assert!(run.fit_report().unwrap().alarms.iter().any(|(code, _)| code == "transport-replaced"));
    assert!(run.fitted().unwrap().path.is_none());
    // The broken twin: a wrong mass of the reference is noticed.
    let lying = results(path, long, Arc::new(WreckedPath { lie: 0.3 })).log_z;
    assert!((lying.bar - 0.0).abs() > 4.5 * lying.standard_error, "{} ± {}", lying.bar, lying.standard_error);
}

#[test]
fn a_useless_diffusion_is_replaced_and_said_so() {
    let (target, path) = two_modes();
    let training = Training { steps: 20, learning_rate: 3.0, clip: 1e6, ..quick(Loss::Skl) };
    for fits in [1, 2] {
        let fit = train_diffusion(target.clone(), path.clone(), 2, training.clone());
        let run = completed(path.clone(), Settings { fits, ..settings(4) }, fit);
        let report = run.fit_report().unwrap();
        assert!(report.pairs.iter().all(|p| p.plain), "{:?}", report.pairs);
        assert!(report.alarms.iter().any(|(code, _)| code == "transport-replaced"), "{:?}", report.alarms);
        assert_eq!(run.sampler().accelerator.steps(), 0);
        assert_right(&run.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    }
}

/// A target with a score that is no number wherever training looks.
struct Scoreless(Gmm);

impl Target for Scoreless {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        Target::evaluate(&self.0, x, out)?;
        out.score.as_mut_slice().iter_mut().for_each(|s| *s *= 1e30);
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }
}

#[test]
fn a_diverged_diffusion_falls_back_to_plain_swaps() {
    let (target, path) = two_modes();
    let training = quick(Loss::Skl);
    let fit =
        TrainDiffusion::new(path.clone(), Arc::new(Scoreless(target)), TINY_DIFFUSION, training).unwrap();
    let run = completed(path, settings(4), Arc::new(fit));
    assert_right(&run.results(), &[(0.6 - 0.6 - 0.5) / 3.0, (0.2 - 0.1 + 0.1) / 3.0]);
    let alarms = &run.fit_report().unwrap().alarms;
    assert!(alarms.iter().any(|(code, _)| *code == "training-diverged"), "{alarms:?}");
}
