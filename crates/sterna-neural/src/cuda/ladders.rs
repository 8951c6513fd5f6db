//! Sampling on the GPU: the whole of Algorithm 1 for many ladders of one schedule, without the host.
//!
//! Points, densities and weights are f64; a drift runs in f32, as on the CPU, and each of its values serves both the
//! step that leaves a point and the one that returns to it. Random numbers are those of the library's streams.

use std::sync::Arc;

use sterna::explorers::StepSizes;
use sterna::streams::Phase;
use sterna::{Batch, Schedule};

use super::built::{Built, upload};
use super::gpu::{Buffer, Gpu, Kernel, Recording, argument};
use super::{Cuda, batches::PHILOX, emit};
use crate::conditions::Conditions;
use crate::graph::{Graph, Value};
use crate::losses::CmcdNetwork;
use crate::parameters::Parameters;
use crate::target::GraphTarget;
use crate::{Error, Precision, Result};

/// Iterations of one recorded graph; even, since odd and even pairs take turns.
const AT_ONCE: u64 = 8;

/// What ladders on a GPU are made of; everything is frozen.
pub struct LadderPlan {
    /// Seed of all randomness.
    pub seed: u64,
    /// Independent ladders.
    pub ensembles: usize,
    /// β of each chain.
    pub schedule: Schedule,
    /// Step sizes of local moves.
    pub sizes: StepSizes,
    /// Moves of an iteration.
    pub moves: usize,
    /// Leapfrog steps of a move.
    pub leapfrog_steps: usize,
    /// Share by which a move's step may be shortened.
    pub jitter: f64,
    /// What is sampled, on the geometric path from N(0, I).
    pub target: Arc<dyn GraphTarget>,
    /// A trained controlled diffusion; plain swaps without one.
    pub transport: Option<(CmcdNetwork, Parameters<f32>)>,
}

/// Sums over the iterations so far, ladder by ladder.
#[derive(Clone, Debug)]
pub struct LadderStatistics {
    /// Iterations.
    pub iterations: u64,
    /// Round trips of each ladder.
    pub round_trips: Vec<i64>,
    /// Mean acceptance of the local moves of each chain; NaN on chain 0, where draws are exact.
    pub acceptance: Vec<f64>,
    /// Rejection rate of each pair.
    pub rejection_rates: Vec<f64>,
    /// log Z from forward weights, and from backward ones, of each ladder.
    pub log_z: Vec<[f64; 2]>,
    /// Proposals at which the target answered NaN or +∞.
    pub bad: i64,
}

/// Pointers of `kernels/ladders.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LadderPointers([u64; 30]);
#[repr(C)]
#[derive(Clone, Copy)]
struct JourneyPointers([u64; 18]);

/// What odd, or even, iterations need for their journeys.
struct Half {
    pointers: JourneyPointers,
    depart: Kernel,
    walk: Option<(Kernel, Kernel)>,
    decide: Kernel,
    target: Option<Built<f64>>,
    drift: Option<Built<f32>>,
    _buffers: Vec<Buffer>,
}

/// Ladders on a GPU.
pub struct LadderSampler {
    gpu: Arc<Gpu>,
    plan: LadderPlan,
    steps: usize,
    pointers: LadderPointers,
    state: State,
    explore: Built<f64>,
    begin: Kernel,
    settle: Kernel,
    tick: Kernel,
    halves: [Half; 2],
    many: Option<Recording>,
    iterations: u64,
    _tables: Vec<Buffer>,
}

/// What changes from iteration to iteration.
struct State {
    x: Buffer,
    log_target: Buffer,
    score: Buffer,
    chain_of: Buffer,
    replica_of: Buffer,
    direction: Buffer,
    leg: Buffer,
    round_trips: Buffer,
    acceptance: Buffer,
    rejection: Buffer,
    weights: Buffer,
    bad: Buffer,
    accepted: Buffer,
    iteration: Buffer,
}

impl LadderSampler {
    /// Ladders that start from draws of the reference.
    ///
    /// # Errors
    /// If sizes do not fit each other, or the GPU fails.
    pub fn new(device: &Cuda, plan: LadderPlan) -> Result<Self> {
        let gpu = device.gpu.clone();
        let (chains, dim) = (plan.schedule.chains(), plan.target.dim());
        if plan.sizes.step_size.len() != chains || plan.sizes.scale.dim() != dim {
            return Err(Error::Dimension { expected: chains, given: plan.sizes.step_size.len() });
        }
        if let Some((network, _)) = &plan.transport
            && network.dim() != dim
        {
            return Err(Error::Dimension { expected: dim, given: network.dim() });
        }
        let steps = plan.transport.as_ref().map_or(0, |(network, _)| network.steps());
        let rows = plan.ensembles * chains;
        let state = State::new(&gpu, &plan, rows, dim)?;
        let graph = Graph::new();
        let outputs = record_move(&graph, &*plan.target, plan.leapfrog_steps);
        let explore = Built::<f64>::new(&gpu, &graph, &outputs, rows, 0, Precision::F32)?;
        let tables = match &plan.transport {
            Some((network, weights)) => network.tables(weights).map(|table| table.as_slice().to_vec()),
            None => [vec![0.0], vec![0.0], vec![0.0]],
        };
        let mut constants = vec![
            plan.schedule.betas().to_vec(),
            plan.sizes.step_size.clone(),
            plan.sizes.scale.as_slice().to_vec(),
        ];
        constants.extend(tables);
        let constants = constants.iter().map(|table| upload(&gpu, table)).collect::<Result<Vec<_>>>()?;
        let at = |offset: usize| explore.arena().pointer() + 8 * offset as u64;
        let mut pointers = state.pointers();
        pointers.extend(constants.iter().map(Buffer::pointer));
        pointers.extend((0..6).map(|k| at(explore.input(k))));
        pointers.extend((0..4).map(|k| at(explore.output(k).0)));
        let pointers = LadderPointers(pointers.try_into().expect("one for each field"));
        let module = gpu.load(&source(&plan, steps, 1, 1))?;
        let warps = |rows: usize| [rows.div_ceil(4), 1];
        let halves =
            [half(&gpu, device.precision, &plan, steps, 1)?, half(&gpu, device.precision, &plan, steps, 2)?];
        let mut sampler = Self {
            begin: module.kernel("begin", warps(rows), 128, 0)?,
            settle: module.kernel("settle", warps(rows), 128, 0)?,
            tick: module.kernel("tick", [1, 1], 1, 0)?,
            gpu,
            steps,
            pointers,
            state,
            explore,
            halves,
            many: None,
            iterations: 0,
            _tables: constants,
            plan,
        };
        sampler.start()?;
        Ok(sampler)
    }

    /// Draws from the reference, as [`Ensemble::start`](sterna::Ensemble::start) does, and what the target says there.
    fn start(&mut self) -> Result<()> {
        let (rows, dim) = (self.plan.ensembles * self.plan.schedule.chains(), self.plan.target.dim());
        let mut x = Batch::zeros(rows, dim);
        let keys: Vec<u32> = (0..rows as u32).collect();
        sterna::Streams::new(self.plan.seed).normals(Phase::Start, 0, &keys, &mut x);
        self.set_points(&x)
    }

    /// Puts the replicas elsewhere.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn set_points(&mut self, x: &Batch) -> Result<()> {
        let graph = Graph::new();
        let point = graph.input("x", x.dim());
        let outputs = [self.plan.target.log_density(point), self.plan.target.score(point)];
        let target = Built::<f64>::new(&self.gpu, &graph, &outputs, x.rows(), 0, Precision::F32)?;
        target.arena().write(target.input(0), x.as_slice())?;
        target.queue()?;
        self.state.x.write(0, x.as_slice())?;
        for (k, buffer) in [&self.state.log_target, &self.state.score].into_iter().enumerate() {
            let (at, len) = target.output(k);
            self.gpu.copy(target.arena().pointer() + 8 * at as u64, buffer.pointer(), 8 * len)?;
        }
        self.gpu.synchronise()
    }

    fn launch(&self, kernel: &Kernel, half: Option<&Half>, number: Option<usize>) -> Result<()> {
        let mut pointers = self.pointers;
        let mut journeys = half.map(|half| half.pointers);
        let mut number = number.map(|n| n as i32);
        let mut arguments = vec![argument(&mut pointers)];
        arguments.extend(journeys.as_mut().map(argument));
        arguments.extend(number.as_mut().map(argument));
        self.gpu.launch(kernel, &mut arguments)
    }

    /// Queues one iteration of odd or even number.
    fn queue(&self, odd: bool) -> Result<()> {
        for n in 0..self.plan.moves {
            self.launch(&self.begin, None, Some(n))?; // line 3
            self.explore.queue()?;
            self.launch(&self.settle, None, Some(n))?;
        }
        let half = &self.halves[usize::from(!odd)];
        self.launch(&half.depart, Some(half), None)?; // line 4
        if let (Some((walk, weigh)), Some(target), Some(drift)) = (&half.walk, &half.target, &half.drift) {
            drift.queue()?; // lines 5–10
            for n in 1..=self.steps {
                self.launch(walk, Some(half), Some(n))?;
                target.queue()?;
                drift.queue()?;
                self.launch(weigh, Some(half), Some(n))?;
            }
        }
        self.launch(&half.decide, Some(half), None)?; // lines 11–13
        self.launch(&self.tick, None, None)
    }

    /// Goes on by so many iterations.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn advance(&mut self, iterations: u64) -> Result<()> {
        self.gpu.enter()?;
        if self.many.is_none() {
            self.many = Some(self.gpu.record(|| (0..AT_ONCE).try_for_each(|k| self.queue(k % 2 == 0)))?);
        }
        let end = self.iterations + iterations;
        while self.iterations < end {
            // A recording begins with an odd iteration; the first one is number 1.
            if self.iterations.is_multiple_of(2) && end - self.iterations >= AT_ONCE {
                self.many.as_ref().expect("just made").replay()?;
                self.iterations += AT_ONCE;
            } else {
                self.queue(self.iterations.is_multiple_of(2))?;
                self.iterations += 1;
            }
        }
        self.gpu.synchronise()
    }

    /// All replicas' points, and the chain that each sits on.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn points(&self) -> Result<(Batch, Vec<usize>)> {
        let (rows, dim) = (self.plan.ensembles * self.plan.schedule.chains(), self.plan.target.dim());
        let (mut x, mut chain) = (vec![0.0; rows * dim], vec![0i32; rows]);
        self.state.x.read(0, &mut x)?;
        self.state.chain_of.read(0, &mut chain)?;
        Ok((Batch::from_vec(dim, x), chain.iter().map(|&c| c as usize).collect()))
    }

    /// The sums so far.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn statistics(&self) -> Result<LadderStatistics> {
        let (chains, ladders) = (self.plan.schedule.chains(), self.plan.ensembles);
        let pairs = chains - 1;
        let read = |buffer: &Buffer, n: usize| {
            let mut values = vec![0.0f64; n];
            buffer.read(0, &mut values).map(|()| values)
        };
        let acceptance = read(&self.state.acceptance, ladders * chains)?;
        let rejection = read(&self.state.rejection, ladders * pairs)?;
        let weights = read(&self.state.weights, 4 * ladders * pairs)?;
        let (mut round_trips, mut bad) = (vec![0i64; ladders], vec![0i64; ladders * chains]);
        self.state.round_trips.read(0, &mut round_trips)?;
        self.state.bad.read(0, &mut bad)?;
        let n = self.iterations;
        // Odd iterations propose odd pairs.
        let proposed = |pair: usize| if pair.is_multiple_of(2) { n / 2 } else { n.div_ceil(2) };
        let mean = |values: &[f64], place: usize, stride: usize, each: f64| {
            values.iter().skip(place).step_by(stride).sum::<f64>() / (ladders as f64 * each)
        };
        let moves = n as f64 * self.plan.moves as f64;
        let log_z = |ladder: usize| {
            let mut sums = [0.0; 2];
            for pair in 0..pairs {
                let w = &weights[4 * (ladder * pairs + pair)..][..4];
                let count = (proposed(pair + 1) as f64).ln();
                sums[0] += w[0] + w[1].ln() - count;
                sums[1] -= w[2] + w[3].ln() - count;
            }
            sums
        };
        Ok(LadderStatistics {
            iterations: n,
            round_trips,
            acceptance: (0..chains)
                .map(|c| if c == 0 { f64::NAN } else { mean(&acceptance, c, chains, moves) })
                .collect(),
            rejection_rates: (0..pairs).map(|p| mean(&rejection, p, pairs, proposed(p + 1) as f64)).collect(),
            log_z: (0..ladders).map(log_z).collect(),
            bad: bad.iter().sum(),
        })
    }
}

impl State {
    fn new(gpu: &Arc<Gpu>, plan: &LadderPlan, rows: usize, dim: usize) -> Result<Self> {
        let (chains, ladders) = (plan.schedule.chains(), plan.ensembles);
        let pairs = chains - 1;
        let own: Vec<i32> = (0..rows).map(|row| (row % chains) as i32).collect();
        let direction: Vec<i32> = own.iter().map(|m| if m % 2 == 0 { 1 } else { -1 }).collect();
        let no_weight: Vec<f64> =
            (0..4 * ladders * pairs).map(|i| if i % 2 == 0 { f64::NEG_INFINITY } else { 0.0 }).collect();
        Ok(Self {
            x: gpu.allocate(8 * rows * dim)?,
            log_target: gpu.allocate(8 * rows)?,
            score: gpu.allocate(8 * rows * dim)?,
            chain_of: upload(gpu, &own)?,
            replica_of: upload(gpu, &own)?,
            direction: upload(gpu, &direction)?,
            leg: gpu.allocate(4 * rows)?,
            round_trips: gpu.allocate(8 * ladders)?,
            acceptance: gpu.allocate(8 * rows)?,
            rejection: gpu.allocate(8 * ladders * pairs)?,
            weights: upload(gpu, &no_weight)?,
            bad: gpu.allocate(8 * rows)?,
            accepted: gpu.allocate(8 * ladders * pairs)?,
            iteration: gpu.allocate(8)?,
        })
    }

    /// In the order of the kernels' structure.
    fn pointers(&self) -> Vec<u64> {
        let all = [
            &self.x,
            &self.log_target,
            &self.score,
            &self.chain_of,
            &self.replica_of,
            &self.direction,
            &self.leg,
            &self.round_trips,
            &self.acceptance,
            &self.rejection,
            &self.weights,
            &self.bad,
            &self.accepted,
            &self.iteration,
        ];
        all.into_iter().map(Buffer::pointer).collect()
    }
}

/// Records a trajectory of leapfrog steps: inputs x, β, steps, momentum, and the target's answer at x; outputs the
/// end, the target's answer there, and the log acceptance ratio.
fn record_move<'g>(graph: &'g Graph, target: &dyn GraphTarget, leapfrog_steps: usize) -> Vec<Value<'g>> {
    let dim = target.dim();
    let (mut x, beta) = (graph.input("x", dim), graph.input("beta", 1));
    let (h, mut v) = (graph.input("step", dim), graph.input("momentum", dim));
    let (mut log_target, mut score) = (graph.input("log_target", 1), graph.input("score", dim));
    let log_joint = |x: Value<'g>, v: Value<'g>, log_target: Value<'g>| {
        (x.dot(x) * (beta - 1.0) - v.dot(v)) * 0.5 + beta * log_target
    };
    let path_score = |x: Value<'g>, score: Value<'g>| beta * (score + x) - x;
    let start = log_joint(x, v, log_target);
    for leap in 0..leapfrog_steps {
        v = v + h * path_score(x, score) * if leap == 0 { 0.5 } else { 1.0 };
        x = x + h * v;
        (log_target, score) = (target.log_density(x), target.score(x));
    }
    v = v + h * path_score(x, score) * 0.5;
    vec![x, log_target, score, log_joint(x, v, log_target) - start]
}

/// Source of the kernels for halves that propose `pairs` pairs from `first` on.
fn source(plan: &LadderPlan, steps: usize, pairs: usize, first: usize) -> String {
    let mut text = emit::preamble::<f64>(Precision::F32, true);
    let mut define = |name: &str, value: String| text += &format!("#define {name} {value}\n");
    define("D", plan.target.dim().to_string());
    define("CHAINS", plan.schedule.chains().to_string());
    define("LADDERS", plan.ensembles.to_string());
    define("STEPS", steps.to_string());
    define("SEED", format!("{}ull", plan.seed));
    define("JITTER", format!("{:e}", plan.jitter));
    define("P", pairs.to_string());
    define("FIRST", first.to_string());
    let phases = [
        ("REFERENCE", Phase::Reference),
        ("SWAP", Phase::Swap),
        ("LOCAL", Phase::Local),
        ("FORWARD", Phase::Forward),
        ("BACKWARD", Phase::Backward),
    ];
    for (name, phase) in phases {
        define(name, format!("{}u", phase as u16));
    }
    text + PHILOX + include_str!("kernels/ladders.cu")
}

fn half(gpu: &Arc<Gpu>, precision: Precision, plan: &LadderPlan, steps: usize, first: usize) -> Result<Half> {
    let (chains, dim, ladders) = (plan.schedule.chains(), plan.target.dim(), plan.ensembles);
    let pairs = (first..chains).step_by(2).count();
    let journeys = (2 * ladders * pairs).max(1);
    let (target, drift) = match &plan.transport {
        None => (None, None),
        Some((network, weights)) => {
            let graph = Graph::new();
            let x = graph.input("x", dim);
            let outputs = [plan.target.log_density(x), plan.target.score(x)];
            let target = Built::<f64>::new(gpu, &graph, &outputs, journeys, 0, Precision::F32)?;
            let graph = Graph::new();
            let conditions = Conditions::inputs(&graph);
            let outputs = [network.drift().record(&conditions, graph.input("x", dim))];
            let count = weights.values().len();
            let drift = Built::<f32>::new(gpu, &graph, &outputs, journeys, count, precision)?;
            drift.arena().write(0, weights.values())?;
            drift.queue_weights()?;
            (Some(target), Some(drift))
        }
    };
    let at = |offset: usize| target.as_ref().map_or(0, |t| t.arena().pointer() + 8 * offset as u64);
    let drift_at = |offset: usize| drift.as_ref().map_or(0, |d| d.arena().pointer() + 4 * offset as u64);
    let mut pointers = vec![0u64; 8];
    if let (Some(target), Some(drift)) = (&target, &drift) {
        pointers[0] = at(target.input(0));
        pointers[1] = at(target.output(0).0);
        pointers[2] = at(target.output(1).0);
        for k in 0..4 {
            pointers[3 + k] = drift_at(drift.input(k));
        }
        pointers[7] = drift_at(drift.output(0).0);
    }
    let matrix = 8 * journeys * dim;
    let vector = 8 * journeys;
    let sizes = [vector, matrix, matrix, matrix, vector, vector, vector, vector, vector, matrix];
    // row, x, before, score, start, squares, log_ratio, log_weight, log_target, end_score
    let buffers = sizes.map(|bytes| gpu.allocate(bytes)).into_iter().collect::<Result<Vec<_>>>()?;
    pointers.extend(buffers.iter().map(Buffer::pointer));
    let module = gpu.load(&source(plan, steps, pairs, first))?;
    let warps = |rows: usize| [rows.div_ceil(4), 1];
    let walk = match steps {
        0 => None,
        _ => Some((
            module.kernel("walk", warps(journeys), 128, 0)?,
            module.kernel("weigh", warps(journeys), 128, 0)?,
        )),
    };
    Ok(Half {
        pointers: JourneyPointers(pointers.try_into().expect("one for each field")),
        depart: module.kernel("depart", warps(journeys), 128, 0)?,
        walk,
        decide: module.kernel("decide", warps(ladders), 128, 0)?,
        target,
        drift,
        _buffers: buffers,
    })
}
