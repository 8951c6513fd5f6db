//! Ladders on the GPU against the library's own iterations on the CPU.
#![cfg(feature = "cuda")]

use std::sync::Arc;

use sterna::accelerator::Accelerator;
use sterna::accelerators::{Cmcd, Identity};
use sterna::explorers::{Hmc, StepSizes};
use sterna::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use sterna::paths::Geometric;
use sterna::targets::Gmm;
use sterna::{Batch, Ensemble, Schedule, Streams};
use sterna_neural::{
    CmcdNetwork, Cpu, Cuda, Hidden, LadderPlan, LadderSampler, Layout, MlpDriftConfig, NeuralDrift,
    Parameters, Precision,
};

const BETAS: [f64; 6] = [0.0, 0.004, 0.02, 0.1, 0.4, 1.0];
const DIM: usize = 10;

fn gpu() -> Option<Cuda> {
    match Cuda::open(Precision::F32) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn schedule() -> Schedule {
    Schedule::new(BETAS.to_vec()).unwrap()
}

fn sizes() -> StepSizes {
    let sizes = BETAS.iter().map(|b| 0.3 / (1.0 + 1600.0 * b).sqrt()).collect();
    StepSizes::per_chain(sizes, DIM)
}

/// A controlled diffusion with lively weights, small enough to do no harm.
fn transport(steps: usize) -> (CmcdNetwork, Parameters<f32>) {
    let mut layout = Layout::new();
    let config =
        MlpDriftConfig { hidden: Hidden::new(2, 160), ..MlpDriftConfig::small(DIM, &BETAS).unwrap() };
    let drift = config.build(&mut layout, "drift").unwrap();
    let start: Vec<[f64; 2]> =
        BETAS.windows(2).map(|b| [0.1 / (1.0 + 1600.0 * b[0]), 0.1 / (1.0 + 1600.0 * b[1])]).collect();
    let network = CmcdNetwork::new(&mut layout, drift.into(), steps, &start);
    let mut weights = layout.initialise::<f32>(2);
    for (i, w) in weights.values_mut().iter_mut().enumerate().filter(|(_, w)| **w == 0.0) {
        *w = 0.003 * ((i as f32 * 0.754_877_7).fract() - 0.5);
    }
    (network, weights)
}

fn plan(ensembles: usize, steps: usize, seed: u64) -> LadderPlan {
    LadderPlan {
        seed,
        ensembles,
        schedule: schedule(),
        sizes: sizes(),
        moves: 1,
        leapfrog_steps: 5,
        jitter: 0.5,
        target: Arc::new(Gmm::paper(DIM)),
        transport: (steps > 0).then(|| transport(steps)),
    }
}

/// What the CPU found.
#[derive(Default)]
struct Sums {
    rejection: Vec<f64>,
    proposed: Vec<f64>,
    acceptance: Vec<f64>,
    tried: Vec<f64>,
}

impl Recorder for Sums {
    fn record(&mut self, step: &Step) -> sterna::Result<()> {
        for swap in step.swaps {
            self.rejection[swap.pair - 1] += swap.rejection;
            self.proposed[swap.pair - 1] += 1.0;
        }
        for (moves, &chain) in step.moves.iter().zip(step.explored_chain) {
            self.acceptance[chain] += moves.acceptance;
            self.tried[chain] += f64::from(moves.proposed);
        }
        Ok(())
    }
}

struct OnCpu {
    ensemble: Ensemble,
    sampler: Sampler,
    work: Workspace,
    sums: Sums,
}

impl OnCpu {
    fn new(ensembles: usize, steps: usize, seed: u64) -> Self {
        let path = Arc::new(Geometric::from_standard_normal(Gmm::paper(DIM)));
        let accelerator: Arc<dyn Accelerator> = match steps {
            0 => Arc::new(Identity),
            _ => {
                let (network, weights) = transport(steps);
                let drift =
                    NeuralDrift::<f32>::new(network.drift().clone(), weights.clone(), Arc::new(Cpu::new(1)));
                Arc::new(Cmcd { steps: network.kernels(&weights, Arc::new(drift.unwrap())).unwrap() })
            }
        };
        let explorer = Arc::new(Hmc { steps: 1, leapfrog_steps: 5, sizes: sizes(), jitter: 0.5 });
        let streams = Streams::new(seed);
        let ensemble = Ensemble::start(&*path, &streams, &schedule(), 0, ensembles).unwrap();
        let work = Workspace::new(&ensemble);
        let sampler = Sampler { path, schedule: schedule(), explorer, accelerator, streams };
        let zeros = || vec![0.0; BETAS.len()];
        let sums = Sums { rejection: zeros(), proposed: zeros(), acceptance: zeros(), tried: zeros() };
        Self { ensemble, sampler, work, sums }
    }

    fn advance(&mut self, from: u64, to: u64) {
        for t in from + 1..=to {
            iterate(t, &mut self.ensemble, &self.sampler, &mut self.work, &mut self.sums).unwrap();
        }
    }
}

/// Rows whose points agree within `tolerance`, and rows on the same chain, as shares of all.
fn agreement(cpu: &Ensemble, (x, chain): &(Batch, Vec<usize>), tolerance: f64) -> (f64, f64) {
    let rows = x.rows();
    let near =
        |row: usize| cpu.points.x.row(row).iter().zip(x.row(row)).all(|(a, b)| (a - b).abs() <= tolerance);
    let share = |n: usize| n as f64 / rows as f64;
    let same = (0..rows).filter(|&row| cpu.chain(row) == chain[row]).count();
    (share((0..rows).filter(|&row| near(row)).count()), share(same))
}

#[test]
fn iterations_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    // The same random numbers and the same formulas: points differ by rounding, f32's where a drift moves them. A
    // swap whose log ratio lies within that of its threshold may go the other way: one in a thousand at most.
    for (steps, tolerance) in [(0, 1e-9), (1, 1e-5), (3, 1e-5)] {
        let ladders = 50;
        let mut cpu = OnCpu::new(ladders, steps, 7);
        let mut ours = LadderSampler::new(&gpu, plan(ladders, steps, 7)).unwrap();
        for (from, to) in [(0, 1), (1, 2), (2, 13)] {
            cpu.advance(from, to);
            ours.advance(to - from).unwrap();
            let (near, same) = agreement(&cpu.ensemble, &ours.points().unwrap(), tolerance);
            println!("K = {steps}, iteration {to}: {near:.4} of the points, {same:.4} of the chains agree");
            let needed = if to < 13 { 0.999 } else { 0.98 };
            assert!(near >= needed && same >= needed, "K = {steps}, iteration {to}: {near}, {same}");
        }
    }
}

#[test]
fn statistics_are_those_of_the_cpu_and_the_same_twice() {
    let Some(gpu) = gpu() else { return };
    let (ladders, iterations) = (64, 400);
    let mut cpu = OnCpu::new(ladders, 1, 1);
    cpu.advance(0, iterations);
    // Other random numbers: a comparison of laws.
    let run = |seed: u64| {
        let mut sampler = LadderSampler::new(&gpu, plan(ladders, 1, seed)).unwrap();
        sampler.advance(iterations).unwrap();
        (sampler.statistics().unwrap(), sampler.points().unwrap())
    };
    let (ours, points) = run(2);
    let (again, points_again) = run(2);
    assert_eq!(
        (&ours.rejection_rates, points.0.as_slice()),
        (&again.rejection_rates, points_again.0.as_slice())
    );
    assert_eq!(ours.bad, 0);
    for pair in 0..BETAS.len() - 1 {
        let theirs = cpu.sums.rejection[pair] / cpu.sums.proposed[pair];
        // 64 · 200 proposals of spread below ½, worth at least one independent one in ten each: six standard errors.
        let bound = 6.0 * 0.5 * (2.0 * 10.0 / cpu.sums.proposed[pair]).sqrt();
        println!("pair {pair}: {:.4} and {theirs:.4}, {bound:.4} allowed", ours.rejection_rates[pair]);
        assert!((ours.rejection_rates[pair] - theirs).abs() < bound);
    }
    for chain in 1..BETAS.len() {
        let theirs = cpu.sums.acceptance[chain] / cpu.sums.tried[chain];
        let bound = 6.0 * 0.5 * (2.0 * 10.0 / cpu.sums.tried[chain]).sqrt();
        assert!((ours.acceptance[chain] - theirs).abs() < bound, "chain {chain}");
    }
    let trips: i64 = ours.round_trips.iter().sum();
    let theirs = cpu.ensemble.round_trips() as f64;
    println!("round trips {trips} and {theirs}");
    assert!(
        (trips as f64 - theirs).abs() < 6.0 * (2.0 * theirs.max(trips as f64) + 1.0).sqrt() + 0.2 * theirs
    );
}
