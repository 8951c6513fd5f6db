//! Sampling on the GPU: the whole of Algorithm 1 for many ladders of one schedule, without the host.
//!
//! Points, densities and weights are f64; a drift runs in f32, as on the CPU, and each of its values serves both the
//! step that leaves a point and the one that returns to it. Random numbers are those of the library's streams.

use std::sync::Arc;
use sterna::lanes::one;

use sterna::explorers::StepSizes;
use sterna::streams::Phase;
use sterna::{Batch, Ensemble, Evaluation, Schedule};

use super::Cuda;
use super::built::{Built, upload};
use super::compiler::compile_all;
use super::coordinates::Coordinates;
use super::gpu::{Buffer, Gpu, Kernel, Recording, argument};
use super::ladder_parts::{
    Half, LadderPointers, State, half, journeys, pairs, record_drift, record_move, row_blocks, source,
};
use super::log::Log;
use crate::graph::Graph;
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
    /// The number of the first of them among those of the run, which others may move too: their random numbers are its own.
    pub first: usize,
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
    /// What is sampled, on the geometric path from N(0, I): in the coordinates of a frame, where the run's reference is another
    /// normal.
    pub target: Arc<dyn GraphTarget>,
    /// A trained controlled diffusion; plain swaps without one.
    pub transport: Option<LadderTransport>,
}

/// A trained controlled diffusion that carries the swaps of ladders.
pub struct LadderTransport {
    pub(super) network: CmcdNetwork,
    pub(super) weights: Parameters<f32>,
    /// Of each pair; nothing means that none is.
    pub(super) plain: Vec<bool>,
    /// The longest score that it follows, where that is bounded.
    pub(super) steepest: Option<f64>,
    pub(super) has_fault: bool,
}

impl LadderTransport {
    /// For all pairs.
    pub fn new(network: CmcdNetwork, weights: Parameters<f32>) -> Self {
        Self { network, weights, plain: Vec::new(), steepest: None, has_fault: false }
    }

    /// The same, but that it follows no score longer than this: see [`sterna::accelerators::tamed`].
    pub fn with_steepest(self, steepest: Option<f64>) -> Self {
        Self { steepest, ..self }
    }

    /// The same, but that pairs n ∈ 1..=N are swapped plainly where `plain[n − 1]`.
    pub fn except(self, plain: Vec<bool>) -> Self {
        Self { plain, ..self }
    }

    /// The same with a fault, for tests that must notice it: weights leave out the log-ratio of the steps.
    #[doc(hidden)]
    pub fn broken_twin(self) -> Self {
        Self { has_fault: true, ..self }
    }
}

impl LadderPlan {
    /// K.
    pub(super) fn steps(&self) -> usize {
        self.transport.as_ref().map_or(0, |transport| transport.network.steps())
    }

    /// Generates all kernels of the ladders and compiles them for a GPU generation (90 is Hopper), which needs no GPU.
    /// Returns how many sources there are.
    ///
    /// # Errors
    /// If there is no run-time compiler, or it refuses a kernel.
    pub fn compile_only(&self, arch: u32) -> Result<usize> {
        let own = [1, 2].map(|first| source(self, self.steps(), pairs(self, first), first));
        let sources = [&own[0][..], &own[1]];
        let compiled = compile_all(&sources, arch).into_iter().collect::<Result<Vec<_>>>()?.len();
        let graph = Graph::new();
        let outputs = record_move(&graph, &*self.target, self.leapfrog_steps);
        let rows = self.ensembles * self.schedule.chains();
        let mut compiled =
            compiled + Cuda::compile_only::<f64>(&graph, &outputs, rows, Precision::F32, arch)?;
        if let Some(LadderTransport { network, .. }) = &self.transport {
            let graph = Graph::new();
            let drift = [record_drift(&graph, network)];
            compiled += Cuda::compile_only::<f32>(&graph, &drift, journeys(self, 1), Precision::F32, arch)?;
        }
        Ok(compiled)
    }
}

/// Sums over the iterations since the start, or since [`LadderSampler::forget`], ladder by ladder.
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
    halves: [Half; 2],
    /// Where iterations are written down, if they are; statistics are then of no use.
    log: Option<Log>,
    many: Option<Recording>,
    iterations: u64,
    /// Iterations that the statistics have forgotten.
    forgotten: u64,
    _tables: Vec<Buffer>,
}

impl LadderSampler {
    /// Ladders that start from draws of the reference.
    ///
    /// # Errors
    /// If sizes do not fit each other, or the GPU fails.
    pub fn new(device: &Cuda, plan: LadderPlan) -> Result<Self> {
        let mut sampler = Self::build(device, plan, None)?;
        sampler.start()?;
        Ok(sampler)
    }

    /// Ladders that write down what they do, so many iterations at most before they are read; they start nowhere.
    pub(super) fn logged(device: &Cuda, plan: LadderPlan, room: u64) -> Result<Self> {
        Self::build(device, plan, Some(room))
    }

    fn build(device: &Cuda, plan: LadderPlan, log: Option<u64>) -> Result<Self> {
        let gpu = device.gpu.clone();
        let (chains, dim) = (plan.schedule.chains(), plan.target.dim());
        if plan.sizes.step_size.len() != chains || plan.sizes.scale.dim() != dim {
            return Err(Error::Dimension { expected: chains, given: plan.sizes.step_size.len() });
        }
        if let Some(given) = plan.transport.as_ref().map(|t| t.network.dim()).filter(|&given| given != dim) {
            return Err(Error::Dimension { expected: dim, given });
        }
        let judged = plan.transport.as_ref().map_or(0, |t| t.plain.len());
        if judged > 0 && judged != chains - 1 {
            return Err(Error::Dimension { expected: chains - 1, given: judged });
        }
        let steps = plan.steps();
        let rows = plan.ensembles * chains;
        let state = State::new(&gpu, &plan, rows, dim)?;
        let graph = Graph::new();
        let outputs = record_move(&graph, &*plan.target, plan.leapfrog_steps);
        let explore = Built::<f64>::new(&gpu, &graph, &outputs, rows, 0, Precision::F32)?;
        if explore.calls_host() {
            let reason =
                "a GPU samples targets that are written as operations of its own, not those of the host";
            return Err(Error::Config { field: "run.device", value: "cuda".into(), reason });
        }
        let tables = match &plan.transport {
            Some(LadderTransport { network, weights, .. }) => {
                let [interpolation, noise, backward_noise] = network.tables(weights);
                [interpolation, noise, backward_noise, network.score_table(weights)]
                    .map(|table| table.as_slice().to_vec())
            }
            None => std::array::from_fn(|_| vec![0.0]),
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
        let blocks = row_blocks(rows, dim);
        let halves =
            [half(&gpu, device.precision, &plan, steps, 1)?, half(&gpu, device.precision, &plan, steps, 2)?];
        let log = log.map(|room| Log::new(&gpu, &plan, &module, room)).transpose()?;
        Ok(Self {
            log,
            begin: module.kernel("begin", blocks, 128, 0)?,
            settle: module.kernel("settle", blocks, 128, 0)?,
            gpu,
            steps,
            pointers,
            state,
            explore,
            halves,
            many: None,
            iterations: 0,
            forgotten: 0,
            _tables: constants,
            plan,
        })
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

    fn launch_with_log(&self, kernel: &Kernel, log: &Log) -> Result<()> {
        let (mut pointers, mut log) = (self.pointers, log.pointers());
        self.gpu.launch(kernel, &mut [argument(&mut pointers), argument(&mut log)])
    }

    /// Queues one iteration of odd or even number.
    fn queue(&self, odd: bool) -> Result<()> {
        for n in 0..self.plan.moves {
            self.launch(&self.begin, None, Some(n))?; // line 3
            self.explore.queue()?;
            self.launch(&self.settle, None, Some(n))?;
            if let Some(log) = &self.log {
                self.launch_with_log(&log.witness, log)?;
            }
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
        if let Some(stay) = &half.stay {
            self.launch(stay, Some(half), None)?;
        }
        self.launch(&half.decide, Some(half), None)?; // lines 11–13
        if let Some(log) = &self.log {
            self.launch_with_log(&half.note, log)?;
        }
        Ok(())
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

    /// The log, if there is one.
    pub(super) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// What is sampled, and how.
    pub(super) fn plan(&self) -> &LadderPlan {
        &self.plan
    }

    /// Replicas, and the target's answers there.
    pub(super) fn read_points(&self, x: &mut Batch, target: &mut Evaluation) -> Result<()> {
        self.state.x.read(0, x.as_mut_slice())?;
        self.state.log_target.read(0, &mut target.log_density)?;
        self.state.score.read(0, target.score.as_mut_slice())
    }

    /// Goes on from ladders that have made `done` iterations, seen as the GPU sees them.
    pub(super) fn go_on_from(&mut self, done: u64, ladders: &[&Ensemble], seen: &Coordinates) -> Result<()> {
        let (mut row, state) = (0, &self.state);
        let dim = self.plan.target.dim();
        for ensemble in ladders {
            let (points, chains, copies) = (&ensemble.points, ensemble.chains(), ensemble.copies());
            let (mut x, mut target) = (points.x.clone(), points.target.clone());
            seen.enter(&mut x, &mut target);
            state.x.write(row * dim, x.as_slice())?;
            state.log_target.write(row, &target.log_density)?;
            state.score.write(row * dim, target.score.as_slice())?;
            let chain_of: Vec<i32> = (0..points.rows()).map(|row| ensemble.chain(row) as i32).collect();
            let places = (0..copies).flat_map(|copy| (0..chains).map(move |chain| (copy, chain)));
            let replica = |(copy, chain): (usize, usize)| ensemble.index[copy].replica(chain) as i32;
            state.chain_of.write(row, &chain_of)?;
            state.replica_of.write(row, &places.map(replica).collect::<Vec<_>>())?;
            row += points.rows();
        }
        state.iteration.write(0, &[done])?;
        self.iterations = done;
        match &self.log {
            Some(log) => log.open(done),
            None => Ok(()),
        }
    }

    /// Begins the statistics anew, after burn-in.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn forget(&mut self) -> Result<()> {
        self.forgotten = self.iterations;
        self.state.clear_statistics(&self.plan)
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
        let n = self.iterations - self.forgotten;
        // Odd iterations propose odd pairs.
        let so_far = |t: u64, pair: usize| if pair.is_multiple_of(2) { t / 2 } else { t.div_ceil(2) };
        let proposed = |pair: usize| so_far(self.iterations, pair) - so_far(self.forgotten, pair);
        let mean = |values: &[f64], place: usize, stride: usize, each: f64| {
            values.iter().skip(place).step_by(stride).sum::<f64>() / (ladders as f64 * each)
        };
        let moves = n as f64 * self.plan.moves as f64;
        let log_z = |ladder: usize| {
            let mut sums = [0.0; 2];
            for pair in 0..pairs {
                let w = &weights[4 * (ladder * pairs + pair)..][..4];
                let count = one::ln(proposed(pair + 1) as f64);
                sums[0] += w[0] + one::ln(w[1]) - count;
                sums[1] -= w[2] + one::ln(w[3]) - count;
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
