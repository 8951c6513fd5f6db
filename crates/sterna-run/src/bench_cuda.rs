//! `sterna bench --device cuda`: training and sampling on a GPU, as in the table of docs/cuda.md.
//!
//! `scripts/cuda_against_jax.py` measures the same computations in JAX.

use crate::error::JobError;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use sterna::acceleration::{Collected, Fit};
use sterna::accelerators::{Cmcd, Integrator};
use sterna::explorers::{Hmc, StepSizes};
use sterna::iteration::{Sampler, Workspace, iterate};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::streams::{Phase, Streams};
use sterna::targets::Gmm;
use sterna::{Batch, Ensemble, Schedule, Target};
use sterna_neural::{
    AdamConfig, BatchField, CmcdNetwork, CmcdSize, Compute, Cpu, Cuda, Device, DiffusionSize, FlowSize,
    Graph, Hidden, Init, LadderPlan, LadderSampler, LadderTransport, Layout, MlpDriftConfig, NeuralDrift,
    PairChoice, Parameters, Precision, Recipe, TrainCmcd, TrainDiffusion, TrainFlow, Trainer, Training,
    Value, Way,
};

const DIM: usize = 10;
const ROWS: usize = 512;
const CHAINS: usize = 10;

/// What was measured in one precision and the other.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    title: String,
    f32: f64,
    tf32: f64,
    /// The same on one core, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_a_core: Option<f64>,
}

impl Row {
    fn measured(name: &'static str, title: &str, measure: impl FnMut(Precision) -> f64) -> Self {
        let [f32, tf32] = [Precision::F32, Precision::Tf32].map(measure);
        Self { name, title: title.into(), f32, tf32, of_a_core: None }
    }

    fn print(&self) {
        let Self { name, title, f32, tf32, of_a_core } = self;
        match of_a_core {
            None => println!("{title:<44}{f32:>10.1}{tf32:>10.1}  {name}"),
            Some(core) => {
                println!("{title}\n{:<44}{f32:>10.0}{tf32:>10.0}  {name}", "");
                println!("{:<44}{core:>10.0}", "the same on one core of the CPU");
            }
        }
    }
}

/// Prints all measurements, or one, as they come; as JSON, once all are there.
pub fn print(only: Option<&str>, json: bool) -> Result<(), JobError> {
    let wanted = |name: &str| only.is_none_or(|only| name.starts_with(only));
    let gpu = Cuda::open(Precision::F32).map_err(|e| JobError::Config(e.to_string()))?;
    if !json {
        println!("{}, median of 5 bursts", gpu.name());
        println!("{:<44}{:>10}{:>10}", "", "f32", "TF32");
    }
    type Measure = fn(Precision) -> f64;
    let all: [(&'static str, &str, Measure); 6] = [
        ("step-mlp", "training step, MLP 4×512, 512 rows (µs)", |p| mlp_step(p, false)),
        ("step-score", "training step, score matching 3×128 (µs)", |p| mlp_step(p, true)),
        ("train-cmcd1", "CMCD 4×512, batch 512, K = 1 (steps/s)", |p| cmcd_steps(p, 1)),
        ("train-cmcd5", "CMCD 4×512, batch 512, K = 5 (steps/s)", |p| cmcd_steps(p, 5)),
        ("train-flow", "RealNVP 20 layers, batch 512 (steps/s)", flow_steps),
        ("train-diffusion", "energy model 3×128, batch 512 (steps/s)", diffusion_steps),
    ];
    let steps = all.into_iter().filter(|(name, ..)| wanted(name));
    let steps = steps.map(|(name, title, measure)| Row::measured(name, title, measure));
    let mut rows = Vec::new();
    for row in steps.chain(wanted("sample-cmcd1").then_some(()).into_iter().map(|()| sampling())) {
        if !json {
            row.print();
        }
        rows.push(row);
    }
    if json {
        println!("{:#}", serde_json::json!({"gpu": gpu.name(), "measured": rows}));
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds of one step: five bursts of about 0.3 s after a warm-up.
fn seconds_of_a_step(mut steps: impl FnMut(u64)) -> f64 {
    steps(50);
    let begin = Instant::now();
    steps(100);
    let count = ((0.3 / (begin.elapsed().as_secs_f64() / 100.0)) as u64).clamp(100, 10_000) / 10 * 10;
    let burst = |_| {
        let begin = Instant::now();
        steps(count);
        begin.elapsed().as_secs_f64() / count as f64
    };
    median((0..5).map(burst).collect())
}

fn mlp<'g>(graph: &'g Graph, layout: &mut Layout, x: Value<'g>, hidden: Hidden, out: usize) -> Value<'g> {
    let (mut h, mut from) = (x, x.cols());
    for layer in 0..=hidden.layers {
        let to = if layer == hidden.layers { out } else { hidden.width };
        let w = layout.add(format!("{layer}.weight"), from, to, Init::FanIn).record(graph);
        let b = layout.add(format!("{layer}.bias"), 1, to, Init::Constant(0.0)).record(graph);
        h = h.matmul(w) + b;
        h = if layer < hidden.layers { h.silu() } else { h };
        from = to;
    }
    h
}

/// Microseconds of a step on fresh normal inputs.
fn mlp_step(precision: Precision, score: bool) -> f64 {
    let (graph, mut layout) = (Graph::new(), Layout::new());
    let cols = if score { 2 * DIM } else { DIM };
    let noise = graph.input("noise", cols);
    let x = noise.slice(0, DIM);
    let loss = if score {
        let energy = mlp(&graph, &mut layout, x, Hidden::new(3, 128), 1);
        (graph.gradient(energy, &[x])[0] - noise.slice(DIM, DIM)).square().sum_cols().mean_rows()
    } else {
        mlp(&graph, &mut layout, x, Hidden::new(4, 512), DIM).square().sum_cols().mean_rows()
    };
    let device: Arc<dyn Device<f32>> = Arc::new(Cuda::open(precision).expect("opened before"));
    let start = layout.initialise(1);
    let mut trainer =
        Trainer::new(device, &graph, loss, &[], &layout, start, AdamConfig::default()).expect("compiles");
    trainer.draw_from(|| {
        Some(Recipe {
            journeys: ROWS,
            rows: ROWS,
            choices_seed: 1,
            noise_seed: 2,
            first_step: 0,
            dim: DIM,
            trained: 1,
            samples: vec![0.0; 2 * DIM],
            betas: vec![0.0, 1.0],
            pair: PairChoice::Drawn,
            way: Way::Forward,
            fields: vec![BatchField::Noise(cols)],
        })
    });
    1e6 * seconds_of_a_step(|n| drop(trainer.steps(n).expect("runs")))
}

/// Samples of a ladder that is none: enough for timing.
fn collected() -> Arc<Collected> {
    let rows = 20_000;
    let gmm = Gmm::paper(DIM);
    let betas: Vec<f64> = (0..CHAINS).map(|n| (n as f64 / (CHAINS - 1) as f64).powi(3)).collect();
    let streams = Streams::new(5);
    let of_chain = |(chain, beta): (usize, &f64)| {
        let mut x = Batch::zeros(rows, DIM);
        for row in 0..rows {
            let mut stream = streams.row(Phase::Check, chain as u64, row as u32);
            gmm.draw(&mut stream, x.row_mut(row));
            x.row_mut(row).iter_mut().for_each(|x| *x += (1.0 - beta) * stream.normal());
        }
        x
    };
    Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        samples: betas.iter().enumerate().map(of_chain).collect(),
        local_barrier: vec![8.0; CHAINS],
        local_variance: Batch::from_vec(DIM, vec![0.01; CHAINS * DIM]),
        schedule: Schedule::new(betas).expect("rises from 0 to 1"),
    })
}

fn training(precision: Precision) -> Training {
    let compute = Compute::Cuda { precision, fall_back: false };
    Training { steps: 1_000_000, batch: ROWS, learning_rate: 1e-4, compute, ..Training::default() }
}

fn steps_per_second(fit: &dyn Fit) -> f64 {
    let mut fitting = fit.begin(collected(), None).expect("begins");
    1.0 / seconds_of_a_step(|n| fitting.advance(n).expect("trains"))
}

fn path() -> Arc<dyn AnnealingPath> {
    Arc::new(Geometric::from_standard_normal(Gmm::paper(DIM)))
}

fn cmcd_steps(precision: Precision, steps: usize) -> f64 {
    let size = CmcdSize::new(steps, Hidden::new(4, 512));
    let fit = TrainCmcd::new(path(), Arc::new(Gmm::paper(DIM)), size, training(precision));
    steps_per_second(&fit.expect("settings of the paper"))
}

fn flow_steps(precision: Precision) -> f64 {
    let size = FlowSize::new(20, Hidden::new(2, 128));
    let fit = TrainFlow::new(path(), Arc::new(Gmm::paper(DIM)), size, training(precision));
    steps_per_second(&fit.expect("settings of the paper"))
}

fn diffusion_steps(precision: Precision) -> f64 {
    let size = DiffusionSize {
        steps: 1,
        integrator: Integrator::Exponential,
        hidden: Hidden::new(3, 128),
        waves: 3,
        particles: None,
        apart: false,
    };
    let target = Arc::new(Gmm::paper(DIM));
    let fit = TrainDiffusion::new(path(), target.clone(), size, training(precision));
    steps_per_second(&fit.expect("settings of the paper").with_recorded(target))
}

/// Ladders of the GPU's sampling.
const LADDERS: usize = 1024;

fn step_sizes(betas: &[f64]) -> StepSizes {
    StepSizes::per_chain(betas.iter().map(|b| 0.3 / (1.0 + 1600.0 * b).sqrt()).collect(), DIM)
}

/// The paper's drift with K = 1, untrained but for weights that do no harm.
fn transport(betas: &[f64]) -> (CmcdNetwork, Parameters<f32>) {
    let mut layout = Layout::new();
    let drift = MlpDriftConfig::paper(DIM, betas).expect("a schedule").build(&mut layout, "drift");
    let start: Vec<[f64; 2]> =
        betas.windows(2).map(|b| [b[0], b[1]].map(|b| 0.1 / (1.0 + 1600.0 * b))).collect();
    let network = CmcdNetwork::new(&mut layout, drift.expect("the paper's").into(), 1, &start);
    let weights = layout.initialise(1);
    (network, weights)
}

/// Ladder iterations a second: GMM-10, 10 chains, HMC with 5 leapfrog steps, CMCD K = 1 with a 4×512 drift.
fn sampling_rate(precision: Precision) -> f64 {
    let schedule = collected().schedule.clone();
    let betas = schedule.betas().to_vec();
    let (network, weights) = transport(&betas);
    let carrier = LadderTransport::new(network, weights);
    let plan = LadderPlan {
        seed: 1,
        ensembles: LADDERS,
        first: 0,
        sizes: step_sizes(&betas),
        moves: 1,
        leapfrog_steps: 5,
        jitter: 0.0,
        target: Arc::new(Gmm::paper(DIM)),
        transport: Some(carrier),
        schedule,
    };
    let device = Cuda::open(precision).expect("opened before");
    let mut sampler = LadderSampler::new(&device, plan).expect("a built-in target");
    LADDERS as f64 / seconds_of_a_step(|n| sampler.advance(n).expect("runs"))
}

/// The same on one core of this machine's CPU, one ladder.
fn sampling_rate_of_a_core() -> f64 {
    let schedule = collected().schedule.clone();
    let betas = schedule.betas().to_vec();
    let (network, weights) = transport(&betas);
    let drift = NeuralDrift::<f32>::new(network.drift().clone(), weights.clone(), Arc::new(Cpu::new(1)));
    let drift = Arc::new(drift.expect("compiles"));
    let accelerator = Arc::new(Cmcd { steps: network.kernels(&weights, drift).expect("positive variances") });
    let explorer = Arc::new(Hmc::with_sizes(1, 5, step_sizes(&betas), 0.0));
    let (path, streams) = (path(), Streams::new(1));
    let mut ensemble = Ensemble::start(&*path, &streams, &schedule, 0, 1).expect("a good start");
    let mut work = Workspace::new(&ensemble);
    let sampler = Sampler { path, schedule, explorer, accelerator, streams };
    let mut t = 0;
    1.0 / seconds_of_a_step(|n| {
        for _ in 0..n {
            t += 1;
            iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).expect("a built-in target");
        }
    })
}

fn sampling() -> Row {
    let title = format!("GMM-10, CMCD K = 1, {LADDERS} ladders (ladder iterations/s)");
    let of_a_core = Some(sampling_rate_of_a_core());
    Row { of_a_core, ..Row::measured("sample-cmcd1", &title, sampling_rate) }
}
