//! What ladders on a GPU are made of: their state, the recorded local move, and the journeys of odd and even iterations.

use std::sync::Arc;

use sterna::engine::Page;
use sterna::path_formula::{path_log_density, path_score};
use sterna::streams::Phase;

use super::batches::PHILOX;
use super::built::{Built, upload};
use super::emit;
use super::formulas;
use super::gpu::{Buffer, Gpu, Kernel};
use super::ladders::{LadderPlan, LadderTransport};
use crate::conditions::Conditions;
use crate::graph::{Graph, Value};
use crate::losses::CmcdNetwork;
use crate::target::GraphTarget;
use crate::{Precision, Result};

/// Pointers of `kernels/ladders.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct LadderPointers(pub [u64; 31]);
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct JourneyPointers([u64; 18]);

/// What odd, or even, iterations need for their journeys.
pub(super) struct Half {
    pub pointers: JourneyPointers,
    pub depart: Kernel,
    pub walk: Option<(Kernel, Kernel)>,
    /// Where some pairs are swapped plainly.
    pub stay: Option<Kernel>,
    pub decide: Kernel,
    pub note: Kernel,
    pub target: Option<Built<f64>>,
    pub drift: Option<Built<f32>>,
    _buffers: Vec<Buffer>,
}

/// What changes from iteration to iteration.
pub(super) struct State {
    pub x: Buffer,
    pub log_target: Buffer,
    pub score: Buffer,
    pub chain_of: Buffer,
    pub replica_of: Buffer,
    pub direction: Buffer,
    pub leg: Buffer,
    pub round_trips: Buffer,
    pub acceptance: Buffer,
    pub rejection: Buffer,
    pub weights: Buffer,
    pub bad: Buffer,
    pub accepted: Buffer,
    pub iteration: Buffer,
}

/// Sums of e to the log-weights that are zero: largest exponents −∞, sums 0.
fn no_weights(plan: &LadderPlan) -> Vec<f64> {
    let count = 4 * plan.ensembles * (plan.schedule.chains() - 1);
    (0..count).map(|i| if i % 2 == 0 { f64::NEG_INFINITY } else { 0.0 }).collect()
}

impl State {
    pub fn new(gpu: &Arc<Gpu>, plan: &LadderPlan, rows: usize, dim: usize) -> Result<Self> {
        let (chains, ladders) = (plan.schedule.chains(), plan.ensembles);
        let pairs = chains - 1;
        let own: Vec<i32> = (0..rows).map(|row| (row % chains) as i32).collect();
        let direction: Vec<i32> = own.iter().map(|m| if m % 2 == 0 { 1 } else { -1 }).collect();
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
            weights: upload(gpu, &no_weights(plan))?,
            bad: gpu.allocate(8 * rows)?,
            accepted: gpu.allocate(8 * ladders * pairs)?,
            iteration: gpu.allocate(8)?,
        })
    }

    /// Sums start anew; points, chains and legs stay.
    pub fn clear_statistics(&self, plan: &LadderPlan) -> Result<()> {
        let (chains, ladders) = (plan.schedule.chains(), plan.ensembles);
        let pairs = chains - 1;
        self.acceptance.write(0, &vec![0.0f64; ladders * chains])?;
        self.rejection.write(0, &vec![0.0f64; ladders * pairs])?;
        self.weights.write(0, &no_weights(plan))?;
        self.bad.write(0, &vec![0i64; ladders * chains])?;
        self.accepted.write(0, &vec![0i64; ladders * pairs])?;
        self.round_trips.write(0, &vec![0i64; ladders])
    }

    /// In the order of the kernels' structure.
    pub fn pointers(&self) -> Vec<u64> {
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
pub(super) fn record_move<'g>(
    graph: &'g Graph,
    target: &dyn GraphTarget,
    leapfrog_steps: usize,
) -> Vec<Value<'g>> {
    let dim = target.dim();
    let (mut x, beta) = (graph.input("x", dim), graph.input("beta", 1));
    let (h, mut v) = (graph.input("step", dim), graph.input("momentum", dim));
    let (mut log_target, mut score) = (graph.input("log_target", 1), graph.input("score", dim));
    let log_joint = |x: Value<'g>, v: Value<'g>, log_target: Value<'g>| {
        path_log_density(beta, x.dot(x) * -0.5, log_target) - v.dot(v) * 0.5
    };
    let start = log_joint(x, v, log_target);
    for leap in 0..leapfrog_steps {
        v = v + h * path_score(beta, x, score) * if leap == 0 { 0.5 } else { 1.0 };
        x = x + h * v;
        (log_target, score) = (target.log_density(x), target.score(x));
    }
    v = v + h * path_score(beta, x, score) * 0.5;
    vec![x, log_target, score, log_joint(x, v, log_target) - start]
}

/// Records the drift at the inputs of a journey: its pair, the time, and a point.
pub(super) fn record_drift<'g>(graph: &'g Graph, network: &CmcdNetwork) -> Value<'g> {
    let conditions = Conditions::inputs(graph);
    network.drift().record(&conditions, graph.input("x", network.dim()))
}

/// Journeys of an iteration whose first pair is `first`.
pub(super) fn journeys(plan: &LadderPlan, first: usize) -> usize {
    (2 * plan.ensembles * pairs(plan, first)).max(1)
}

/// Blocks of 128 threads for so many replicas or journeys: a thread for two coordinates, as `kernels/ladders.cu` has it.
pub(super) fn row_blocks(rows: usize, dim: usize) -> [usize; 2] {
    let lanes = dim.div_ceil(2).next_power_of_two().min(32);
    [(rows * lanes).div_ceil(128), 1]
}

/// Source of the kernels for halves that propose `pairs` pairs from `first` on.
pub(super) fn source(plan: &LadderPlan, steps: usize, pairs: usize, first: usize) -> String {
    let mut text = emit::preamble::<f64>(Precision::F32, true);
    let mut define = |name: &str, value: String| text += &format!("#define {name} {value}\n");
    define("D", plan.target.dim().to_string());
    define("CHAINS", plan.schedule.chains().to_string());
    define("LADDERS", plan.ensembles.to_string());
    define("KEY", (plan.first * plan.schedule.chains()).to_string());
    define("STEPS", steps.to_string());
    define("SEED", format!("{}ull", plan.seed));
    define("JITTER", format!("{:e}", plan.jitter));
    define("P", pairs.to_string());
    define("FIRST", first.to_string());
    define("PAGE", Page { chains: plan.schedule.chains(), dim: plan.target.dim() }.len().to_string());
    if let Some(steepest) = plan.transport.as_ref().and_then(|transport| transport.steepest) {
        define("STEEPEST", format!("{steepest:e}"));
    }
    let plain = plan.transport.iter().flat_map(|t| &t.plain).map(|&plain| u8::from(plain).to_string());
    define("PLAIN", plain.collect::<Vec<_>>().join(", "));
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
    text += &formulas::source(plan.target.dim());
    if plan.transport.as_ref().is_some_and(|transport| transport.has_fault) {
        text += "#define step_log_ratio(...) 0.0\n";
    }
    text + PHILOX + include_str!("kernels/ladders.cu") + include_str!("kernels/log.cu")
}

/// Pairs that a half proposes, `first` being the first of them.
pub(super) fn pairs(plan: &LadderPlan, first: usize) -> usize {
    (first..plan.schedule.chains()).step_by(2).count()
}

pub(super) fn half(
    gpu: &Arc<Gpu>,
    precision: Precision,
    plan: &LadderPlan,
    steps: usize,
    first: usize,
) -> Result<Half> {
    let (dim, ladders, pairs) = (plan.target.dim(), plan.ensembles, pairs(plan, first));
    let journeys = journeys(plan, first);
    let (target, drift) = match &plan.transport {
        None => (None, None),
        Some(LadderTransport { network, weights, .. }) => {
            let graph = Graph::new();
            let x = graph.input("x", dim);
            let outputs = [plan.target.log_density(x), plan.target.score(x)];
            let target = Built::<f64>::new(gpu, &graph, &outputs, journeys, 0, Precision::F32)?;
            let graph = Graph::new();
            let outputs = [record_drift(&graph, network)];
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
    let blocks = row_blocks(journeys, dim);
    let walk = match steps {
        0 => None,
        _ => Some((module.kernel("walk", blocks, 128, 0)?, module.kernel("weigh", blocks, 128, 0)?)),
    };
    let some_plain = plan.transport.as_ref().is_some_and(|t| t.plain.contains(&true));
    let stay = some_plain.then(|| module.kernel("stay", blocks, 128, 0)).transpose()?;
    Ok(Half {
        pointers: JourneyPointers(pointers.try_into().expect("one for each field")),
        depart: module.kernel("depart", blocks, 128, 0)?,
        walk,
        stay,
        decide: module.kernel("decide", [ladders.div_ceil(4), 1], 128, 0)?,
        note: module.kernel("note", [ladders.div_ceil(4), 1], 128, 0)?,
        target,
        drift,
        _buffers: buffers,
    })
}
