//! Transports from any reference: losses hold the sampler's weights, on both legs, and swaps keep their law.

mod runs;

use std::sync::Arc;

use crate::common::{compile, lively, numbers, relative_error};
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{Cmcd, FlowAccelerator, Framed};
use sterna::call::{Call, Rows, Scratch};
use sterna::fitted::{Component, Mixture, Shape};
use sterna::frame::Frame;
use sterna::path::{AnnealingPath, Points};
use sterna::paths::{Geometric, Prior, Reference};
use sterna::streams::{Phase, RowStream};
use sterna::targets::Gmm;
use sterna::{Batch, Schedule, Streams};
use sterna_neural::{
    CmcdInputs, CmcdNetwork, Conditions, Cpu, Graph, GraphPath, GraphTarget, Hidden, Layout, MlpDriftConfig,
    NeuralDrift, NeuralFlow, Parameters, RealNvp, RealNvpConfig, flow_divergences, host_target,
};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{BetweenLadder, FALSE_ALARM, check_accelerator};

const DIM: usize = 3;
/// Two pairs before the target, two beyond it.
const BETAS: [f64; 5] = [0.0, 0.4, 1.0, 1.3, 2.0];
const PAIRS: [usize; 6] = [1, 2, 3, 4, 2, 1];
const ROWS: usize = PAIRS.len();

/// Priors are asked on the host: independent logistic laws.
#[derive(Debug)]
struct Logistic;

impl Prior for Logistic {
    fn dim(&self) -> usize {
        DIM
    }
    fn evaluate(&self, x: &[f64], score: &mut [f64]) -> f64 {
        score.iter_mut().zip(x).for_each(|(score, x)| *score = -(0.5 * x).tanh());
        x.iter().map(|x| -x.abs() - 2.0 * (-x.abs()).exp().ln_1p()).sum()
    }
    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = (stream.uniform().recip() - 1.0).ln());
    }
}

fn correlated() -> Shape {
    Shape::of_covariance(&[1.0, 0.5, 0.1, 0.5, 0.8, -0.2, 0.1, -0.2, 0.5], DIM).unwrap()
}

fn low_rank() -> Shape {
    Shape::LowRank { deviations: vec![0.5, 2.0, 1.0], directions: vec![0.6, 0.8, 0.0], stretches: vec![3.0] }
}

fn mixture(shapes: Vec<Shape>) -> Reference {
    let component = |(k, shape): (usize, Shape)| Component {
        weight: 1.0 + k as f64,
        mean: vec![0.3 * k as f64, -0.2, 0.5],
        shape,
    };
    Reference::mixture(Mixture::new(shapes.into_iter().enumerate().map(component).collect()).unwrap())
}

/// Every kind of reference, with a name.
fn references() -> Vec<(&'static str, Reference)> {
    let diagonal = || Shape::Diagonal(vec![0.4, 1.5, 0.7]);
    vec![
        ("N(0, I)", Reference::standard_normal(DIM)),
        ("a normal", Reference::normal(vec![0.5, -1.0, 0.0], vec![0.4, 2.0, 1.0])),
        ("one dense normal", mixture(vec![correlated()])),
        ("one normal of low rank", mixture(vec![low_rank()])),
        ("dense normals", mixture(vec![correlated(), correlated().widened(0.5)])),
        ("normals of low rank", mixture(vec![low_rank(), diagonal()])),
        ("diagonal normals", mixture(vec![diagonal(), diagonal().widened(2.0)])),
        ("a prior", Reference::prior(Logistic)),
    ]
}

/// With and without the leg beyond the target: recorded, or on the host.
fn paths(reference: &Reference) -> Vec<(Geometric, Arc<dyn GraphTarget>)> {
    let target = Gmm::paper(DIM);
    let ground = Geometric::new(reference.clone(), Arc::new(target.clone())).unwrap();
    let anchor = Reference::normal(vec![0.1; DIM], vec![3.0, 2.0, 4.0]);
    let both = ground.between(reference.clone(), Some(anchor)).unwrap();
    vec![(ground, Arc::new(target.clone())), (both, host_target(Arc::new(target)))]
}

/// The frame of a reference; of a prior, some other.
fn frame(reference: &Reference) -> Option<Arc<Frame>> {
    let of_prior = || Frame::new(vec![0.2; DIM], Shape::Diagonal(vec![1.5, 0.5, 2.0])).unwrap();
    (!reference.is_standard()).then(|| Arc::new(reference.frame().unwrap_or_else(of_prior)))
}

fn framed(accelerator: impl Accelerator + 'static, frame: &Option<Arc<Frame>>) -> Arc<dyn Accelerator> {
    match frame {
        Some(frame) => Arc::new(Framed::new(Arc::new(accelerator), frame.clone())),
        None => Arc::new(accelerator),
    }
}

fn flow(dim: usize, betas: &[f64]) -> (RealNvp, Layout) {
    let mut layout = Layout::new();
    let config = RealNvpConfig { layers: 4, ..RealNvpConfig::small(dim, betas).unwrap() };
    (config.build(&mut layout, "flow").unwrap(), layout)
}

fn flow_of(network: &RealNvp, parameters: &Parameters<f64>) -> FlowAccelerator {
    let flow = NeuralFlow::<f64>::new(network.clone(), parameters.clone(), Arc::new(Cpu::new(1)));
    FlowAccelerator::new(Arc::new(flow.unwrap()))
}

fn cmcd(dim: usize, betas: &[f64], steps: usize) -> (CmcdNetwork, Layout) {
    let mut layout = Layout::new();
    let config = MlpDriftConfig { hidden: Hidden::new(1, 8), ..MlpDriftConfig::small(dim, betas).unwrap() };
    let drift = config.build(&mut layout, "drift").unwrap();
    let start: Vec<[f64; 2]> = (1..betas.len()).map(|n| [0.1 / n as f64, 0.05]).collect();
    (CmcdNetwork::new(&mut layout, drift.into(), steps, &start).with_score(&mut layout), layout)
}

fn cmcd_of(network: &CmcdNetwork, parameters: &Parameters<f64>) -> Cmcd {
    let drift = NeuralDrift::<f64>::new(network.drift().clone(), parameters.clone(), Arc::new(Cpu::new(1)));
    Cmcd { steps: network.kernels(parameters, Arc::new(drift.unwrap())).unwrap() }
}

/// Pairs of a path: those beyond the target are on the first leg where there is no other.
fn pairs(path: &Geometric) -> Vec<usize> {
    PAIRS.iter().map(|&pair| if path.anchor().is_some() { pair } else { (pair - 1) % 2 + 1 }).collect()
}

fn travel(accelerator: &dyn Accelerator, path: &Geometric, direction: Direction, starts: &[f64]) -> Journey {
    let schedule = Schedule::new(BETAS.to_vec()).unwrap();
    let mut rows = Rows::default();
    for (row, pair) in pairs(path).into_iter().enumerate() {
        rows.push_leaving(row, row as u32, pair, schedule.interval(pair), direction);
    }
    let mut points = Points::zeros(ROWS, DIM);
    points.x.as_mut_slice().copy_from_slice(starts);
    path.evaluate(&rows.beta, &mut points).unwrap();
    let mut journey = Journey::new(ROWS, DIM);
    journey.begin(&points, &rows.row);
    let streams = Streams::new(3);
    let call = Call::new(path, &streams, 1, &rows);
    accelerator.travel(direction, &call, &mut journey, &mut Scratch::default()).unwrap();
    // End points are evaluated where they end.
    let mut again = Points::zeros(ROWS, DIM);
    again.x = journey.points.x.clone();
    let mut ends = Vec::new();
    direction.ends(&rows.interval, &mut ends);
    path.evaluate(&ends, &mut again).unwrap();
    assert_eq!(again.log_density, journey.points.log_density);
    assert_eq!(again.score.as_slice(), journey.points.score.as_slice());
    journey
}

/// β and β′ of the rows, and the starts as the network sees them.
fn inputs(path: &Geometric, frame: &Option<Arc<Frame>>, starts: &[f64]) -> [Vec<f64>; 3] {
    let of = |back: usize| pairs(path).iter().map(|pair| BETAS[pair - back]).collect();
    let mut seen = starts.to_vec();
    if let Some(frame) = frame {
        seen.chunks_exact_mut(DIM).for_each(|x| frame.standardise(x));
    }
    [of(1), of(0), seen]
}

#[test]
fn losses_hold_the_weights_of_flows_from_every_reference() {
    let (network, layout) = flow(DIM, &BETAS);
    let parameters = Parameters::new(lively(&layout));
    let starts = numbers(ROWS * DIM, 4, 0.6, 0.0);
    for (name, reference) in references() {
        let frame = frame(&reference);
        let accelerator = framed(flow_of(&network, &parameters), &frame);
        for (path, target) in paths(&reference) {
            let inside = GraphPath::between(&path, target, frame.as_ref());
            let graph = Graph::new();
            let conditions = Conditions::pair_inputs(&graph);
            let [x, y] = ["x", "y"].map(|name| graph.input(name, DIM));
            let mut program = compile(&graph, &flow_divergences(&network, &inside, &conditions, x, y));
            let [lower, upper, seen] = inputs(&path, &frame, &starts);
            program.run(&parameters, ROWS, &[&lower, &upper, &seen, &seen]).unwrap();
            for (k, direction, sign) in [(0, Direction::Forward, -1.0), (1, Direction::Backward, 1.0)] {
                let ours: Vec<f64> = program.output(k).iter().map(|d| sign * d).collect();
                let journey = travel(&*accelerator, &path, direction, &starts);
                let error = relative_error(&ours, &journey.log_weight);
                assert!(error < 1e-11, "{name}, {direction:?}: {error:e}");
            }
        }
    }
}

#[test]
fn losses_hold_the_weights_of_controlled_diffusions_from_every_reference() {
    let steps = 2;
    let (network, layout) = cmcd(DIM, &BETAS, steps);
    let parameters = Parameters::new(lively(&layout));
    let starts = numbers(ROWS * DIM, 4, 0.6, 0.0);
    for (name, reference) in references() {
        let frame = frame(&reference);
        // Short enough to matter.
        let steepest = frame.as_ref().map(|_| 3.0);
        let cmcd = Arc::new(cmcd_of(&network, &parameters));
        let accelerator: Arc<dyn Accelerator> = match &frame {
            Some(frame) => Arc::new(Framed::new(cmcd, frame.clone()).with_steepest(3.0)),
            None => cmcd,
        };
        for (path, target) in paths(&reference) {
            let inside = GraphPath::between(&path, target, frame.as_ref()).with_steepest(steepest);
            for (direction, phase) in
                [(Direction::Forward, Phase::Forward), (Direction::Backward, Phase::Backward)]
            {
                let is_forward = direction == Direction::Forward;
                let mut noise = vec![0.0; ROWS * steps * DIM];
                for n in 1..=steps {
                    let k = if is_forward { n } else { steps + 1 - n };
                    let mut z = Batch::zeros(ROWS, DIM);
                    Streams::new(3).normals(phase.number(k), 1, &[0, 1, 2, 3, 4, 5], &mut z);
                    for i in 0..ROWS {
                        noise[(i * steps + n - 1) * DIM..][..DIM].copy_from_slice(z.row(i));
                    }
                }
                let which: Vec<f64> = pairs(&path)
                    .iter()
                    .flat_map(|&pair| (1..BETAS.len()).map(move |n| f64::from(u8::from(n == pair))))
                    .collect();
                let graph = Graph::new();
                let rows = CmcdInputs::record(&graph, &network);
                let outputs = [false, true].map(|detached| network.divergence(&inside, &rows, detached));
                let mut program = compile(&graph, &outputs);
                let ([lower, upper, seen], sign) =
                    (inputs(&path, &frame, &starts), if is_forward { 1.0 } else { -1.0 });
                let ways = [f64::from(u8::from(is_forward)); ROWS];
                program.run(&parameters, ROWS, &[&lower, &upper, &which, &ways, &seen, &noise]).unwrap();
                let journey = travel(&*accelerator, &path, direction, &starts);
                for k in 0..2 {
                    let ours: Vec<f64> = program.output(k).iter().map(|d| -sign * d).collect();
                    let error = relative_error(&ours, &journey.log_weight);
                    assert!(error < 1e-11, "{name}, {direction:?}: {error:e}");
                }
            }
        }
    }
}

/// Lively transports between mixtures, over both legs, in the coordinates of the reference.
fn between() -> (BetweenLadder, Schedule, Vec<Arc<dyn Accelerator>>) {
    let ladder = BetweenLadder::three_ends();
    let frame = ladder.geometric().reference().frame().map(Arc::new);
    let (network, layout) = flow(2, &BETAS);
    let flow = framed(flow_of(&network, &Parameters::new(lively(&layout))), &frame);
    let (network, layout) = cmcd(2, &BETAS, 2);
    let cmcd = framed(cmcd_of(&network, &Parameters::new(lively(&layout))), &frame);
    (ladder, Schedule::new(BETAS.to_vec()).unwrap(), vec![flow, cmcd])
}

/// Each suite fails with probability 10⁻⁵ on a fresh seed.
#[test]
fn transports_from_a_mixture_keep_the_law_on_both_legs() {
    let (ladder, schedule, transports) = between();
    for transport in transports {
        check_accelerator(&*transport, &ladder, &schedule, 21, FALSE_ALARM).assert_passed();
    }
}

#[test]
fn broken_transports_from_a_mixture_are_caught() {
    let (ladder, schedule, transports) = between();
    for (fault, inner) in [Fault::MissingJacobian(0.3), Fault::StaleEnd].into_iter().zip(transports.clone()) {
        check_accelerator(&Broken { inner, fault }, &ladder, &schedule, 21, FALSE_ALARM).assert_caught();
    }
    // The leg beyond the target weighed as if it led to the reference.
    let one_leg = Geometric::clone(&ladder.geometric());
    let one_leg = one_leg.between(one_leg.reference().clone(), None).unwrap();
    for inner in transports {
        let twin = WrongLeg { inner, path: one_leg.clone() };
        check_accelerator(&twin, &ladder, &schedule, 21, FALSE_ALARM).assert_caught();
    }
}

/// Knows no anchor: beyond the target it evaluates the path of one leg at 2 − β.
struct WrongLeg {
    inner: Arc<dyn Accelerator>,
    path: Geometric,
}

impl Accelerator for WrongLeg {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        let start = journey.points.log_density.clone();
        self.inner.travel(direction, call, journey, scratch)?;
        let mut betas = Vec::new();
        direction.ends(&call.rows.interval, &mut betas);
        betas.iter_mut().for_each(|beta| *beta = beta.min(2.0 - *beta));
        let mut ends = Points::zeros(journey.points.rows(), self.path.dim());
        ends.x = journey.points.x.clone();
        self.path.evaluate(&betas, &mut ends)?;
        for (i, start) in start.into_iter().enumerate() {
            let log_ratio = match direction {
                Direction::Forward => journey.log_weight[i] - (journey.points.log_density[i] - start),
                Direction::Backward => (start - journey.log_weight[i]) - journey.points.log_density[i],
            };
            journey.log_weight[i] = direction.log_weight(start, ends.log_density[i] + log_ratio);
        }
        Ok(())
    }
}
