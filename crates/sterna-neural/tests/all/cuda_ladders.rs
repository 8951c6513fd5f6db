//! Ladders on the GPU against the library's own iterations on the CPU.
use std::sync::Arc;

use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{Cmcd, CmcdSteps, Identity, PerPair};
use sterna::call::{Call, Scratch};
use sterna::explorers::{Hmc, StepSizes};
use sterna::iteration::{Recorder, Sampler, Step, Workspace, iterate};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Ensemble, Schedule, Streams};
use sterna_neural::{
    CmcdNetwork, Cpu, Cuda, GraphTarget, Hidden, LadderPlan, LadderSampler, LadderTransport, Layout,
    MlpDriftConfig, NeuralDrift, Parameters, Precision,
};
use sterna_testkit::moves::{exact_ensemble, ladders_of, sampler};
use sterna_testkit::{ExactLadder, FALSE_ALARM, GaussianLadder, Statistic, Verdict, check_invariance};

const DIM: usize = 10;
const CHAINS: usize = 6;

/// What is sampled: a mixture on a ladder that is too short, or a normal on a good one.
#[derive(Clone, Copy)]
enum Kind {
    Mixture,
    /// Of this precision.
    Normal(f64),
}

impl Kind {
    /// Precision of a mode, or of the normal.
    fn precision(self) -> f64 {
        match self {
            Self::Mixture => 1600.0,
            Self::Normal(precision) => precision,
        }
    }

    /// Equal steps in the logarithm of the path's precision.
    fn betas(self) -> Vec<f64> {
        let p = self.precision();
        let beta = |n: usize| (p.powf(n as f64 / (CHAINS - 1) as f64) - 1.0) / (p - 1.0);
        (0..CHAINS).map(|n| if n + 1 == CHAINS { 1.0 } else { beta(n) }).collect()
    }

    fn schedule(self) -> Schedule {
        Schedule::new(self.betas()).unwrap()
    }

    fn target(self) -> Arc<dyn GraphTarget> {
        match self {
            Self::Mixture => Arc::new(Gmm::paper(DIM)),
            Self::Normal(precision) => Arc::new(Normal::isotropic(DIM, precision)),
        }
    }

    fn path(self) -> Geometric {
        match self {
            Self::Mixture => Geometric::from_standard_normal(Gmm::paper(DIM)),
            Self::Normal(precision) => Geometric::from_standard_normal(Normal::isotropic(DIM, precision)),
        }
    }

    fn widths(self) -> Vec<f64> {
        self.betas().iter().map(|b| 1.0 / (1.0 + (self.precision() - 1.0) * b)).collect()
    }

    fn sizes(self) -> StepSizes {
        StepSizes::per_chain(self.widths().iter().map(|v| 0.3 * v.sqrt()).collect(), DIM)
    }
}

fn gpu() -> Option<Cuda> {
    match Cuda::open(Precision::F32) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// A controlled diffusion with lively weights, small enough to do no harm.
fn transport(kind: Kind, steps: usize) -> (CmcdNetwork, Parameters<f32>) {
    transport_of_size(kind, steps, 0.003)
}

/// A controlled diffusion whose weights that would be zero are of this size.
fn transport_of_size(kind: Kind, steps: usize, size: f32) -> (CmcdNetwork, Parameters<f32>) {
    let mut layout = Layout::new();
    let config =
        MlpDriftConfig { hidden: Hidden::new(2, 160), ..MlpDriftConfig::small(DIM, &kind.betas()).unwrap() };
    let drift = config.build(&mut layout, "drift").unwrap();
    let start: Vec<[f64; 2]> = kind.widths().windows(2).map(|v| [0.1 * v[0], 0.1 * v[1]]).collect();
    let network = CmcdNetwork::new(&mut layout, drift.into(), steps, &start).with_score(&mut layout);
    let mut weights = layout.initialise::<f32>(2);
    // The multiples of the score come last.
    let network_ends = weights.values().len() - start.len() * (steps + 1);
    for (i, w) in weights.values_mut().iter_mut().enumerate().filter(|(_, w)| **w == 0.0) {
        let size = if i < network_ends { size } else { 0.1 };
        *w = size * ((i as f32 * 0.754_877_7).fract() - 0.5);
    }
    (network, weights)
}

fn plan(kind: Kind, ensembles: usize, steps: usize, seed: u64) -> LadderPlan {
    LadderPlan {
        seed,
        ensembles,
        first: 0,
        schedule: kind.schedule(),
        sizes: kind.sizes(),
        moves: 1,
        leapfrog_steps: 5,
        jitter: 0.5,
        target: kind.target(),
        transport: (steps > 0).then(|| transport(kind, steps)).map(|(n, w)| LadderTransport::new(n, w)),
    }
}

/// The same diffusion on the CPU.
fn kernels((network, weights): &(CmcdNetwork, Parameters<f32>)) -> CmcdSteps {
    let drift = NeuralDrift::<f32>::new(network.drift().clone(), weights.clone(), Arc::new(Cpu::new(1)));
    network.kernels(weights, Arc::new(drift.unwrap())).unwrap()
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
    fn new(kind: Kind, ensembles: usize, steps: usize, seed: u64) -> Self {
        let path = Arc::new(kind.path());
        let accelerator: Arc<dyn Accelerator> = match steps {
            0 => Arc::new(Identity),
            _ => Arc::new(Cmcd { steps: kernels(&transport(kind, steps)) }),
        };
        let explorer = Arc::new(Hmc::with_sizes(1, 5, kind.sizes(), 0.5));
        let streams = Streams::new(seed);
        let ensemble = Ensemble::start(&*path, &streams, &kind.schedule(), 0, ensembles).unwrap();
        let work = Workspace::new(&ensemble);
        let sampler = Sampler { path, schedule: kind.schedule(), explorer, accelerator, streams };
        let zeros = || vec![0.0; CHAINS];
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
fn the_kernels_compile() {
    if let Err(error) = Cuda::compiler_version() {
        return println!("skipped: {error}");
    }
    for (kind, steps, ladders) in
        [(Kind::Mixture, 0, 20), (Kind::Normal(20.0), 2, 20), (Kind::Mixture, 1, 1000)]
    {
        println!("{} sources", plan(kind, ladders, steps, 1).compile_only(90).unwrap());
    }
    // Pairs that are swapped plainly, a fault, and a ladder whose even iterations propose nothing.
    let mut plan = plan(Kind::Normal(20.0), 20, 2, 1);
    let changed = |t: LadderTransport| {
        t.except(vec![false, true, false, true, false]).with_steepest(Some(40.0)).broken_twin()
    };
    plan.transport = plan.transport.map(changed);
    plan.compile_only(90).unwrap();
    let (schedule, transport) = (Schedule::uniform(2), None);
    LadderPlan { schedule, transport, sizes: StepSizes::fixed(2, DIM, 0.1), ..plan }
        .compile_only(90)
        .unwrap();
}

#[test]
fn iterations_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    // The same random numbers and the same formulas: points differ by rounding, f32's where a drift moves them. A
    // swap whose log ratio lies within that of its threshold may go the other way: one in a thousand at most.
    let cases = [
        (Kind::Mixture, 0, 50, 1e-9),
        (Kind::Mixture, 1, 50, 1e-5),
        // So many that other kernels do the products.
        (Kind::Mixture, 1, 1000, 1e-5),
        (Kind::Normal(20.0), 1, 50, 1e-5),
        (Kind::Normal(20.0), 3, 50, 1e-5),
    ];
    for (kind, steps, ladders, tolerance) in cases {
        let mut cpu = OnCpu::new(kind, ladders, steps, 7);
        let mut ours = LadderSampler::new(&gpu, plan(kind, ladders, steps, 7)).unwrap();
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
    let (kind, ladders, iterations) = (Kind::Normal(20.0), 64, 400);
    let mut cpu = OnCpu::new(kind, ladders, 1, 1);
    cpu.advance(0, iterations);
    // Other random numbers: a comparison of laws.
    let run = |seed: u64| {
        let mut sampler = LadderSampler::new(&gpu, plan(kind, ladders, 1, seed)).unwrap();
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
    // Proposals of spread below ½, ten of them worth one independent one at least: six standard errors.
    let bound = |n: f64| 6.0 * 0.5 * (2.0 * 10.0 / n).sqrt();
    for pair in 0..CHAINS - 1 {
        let n = cpu.sums.proposed[pair];
        let theirs = cpu.sums.rejection[pair] / n;
        println!("pair {pair}: {:.4} and {theirs:.4}, {:.4} allowed", ours.rejection_rates[pair], bound(n));
        assert!((ours.rejection_rates[pair] - theirs).abs() < bound(n));
    }
    for chain in 1..CHAINS {
        let n = cpu.sums.tried[chain];
        let theirs = cpu.sums.acceptance[chain] / n;
        assert!((ours.acceptance[chain] - theirs).abs() < bound(n), "chain {chain}");
    }
    // Round trips come in tens a ladder; ladders are independent.
    let trips: i64 = ours.round_trips.iter().sum();
    let theirs = cpu.ensemble.round_trips();
    println!("round trips {trips} and {theirs}");
    assert!(trips > 200 && (trips as f64 - theirs as f64).abs() < 6.0 * (2.0 * theirs as f64).sqrt());
}

#[test]
fn log_z_is_right() {
    let Some(gpu) = gpu() else { return };
    let (ladders, iterations) = (256, 2000);
    let mut sampler = LadderSampler::new(&gpu, plan(Kind::Normal(3.0), ladders, 0, 3)).unwrap();
    // Replicas start where the reference is, which the upper chains forget within tens of iterations.
    sampler.advance(201).unwrap();
    sampler.forget().unwrap();
    sampler.advance(iterations).unwrap();
    let log_z = sampler.statistics().unwrap().log_z;
    // log Z = −½ d log λ, from independent ladders: five standard errors. The logarithm of a mean is too low by half its
    // variance, which is added.
    let truth = -0.5 * DIM as f64 * 3f64.ln();
    for side in 0..2 {
        let all: Vec<f64> = log_z.iter().map(|z| z[side]).collect();
        let mean = all.iter().sum::<f64>() / ladders as f64;
        let variance = all.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (ladders - 1) as f64;
        let (error, bias) = ((variance / ladders as f64).sqrt(), 0.5 * variance);
        println!("log Z {mean:.4} ± {error:.4}, bias {bias:.4}, in truth {truth:.4}");
        assert!(variance < 0.1 && (mean - truth).abs() < 5.0 * error + bias);
    }
}

/// A ladder whose swaps are accepted more often than not, and its diffusion: the law is asked of these.
const ASKED: Kind = Kind::Normal(3.0);

fn lively() -> (CmcdNetwork, Parameters<f32>) {
    transport_of_size(ASKED, 2, 0.01)
}

/// Two iterations of Algorithm 1 for exact draws of a ladder of normals: is their law the same afterwards? A sound
/// sampler fails with probability 10⁻⁵ on a fresh seed; the seed is fixed.
fn keeps_its_law(two_iterations: impl FnMut(&Streams, Batch) -> Batch) -> Verdict {
    let ladder = GaussianLadder::new(Normal::isotropic(DIM, ASKED.precision()));
    let path: Arc<dyn AnnealingPath> = ladder.path();
    check_invariance(
        |streams| ladder.draw_ladder(&ASKED.schedule(), streams, 4000),
        two_iterations,
        &Statistic::ladder(&path, &ASKED.betas()),
        5,
        FALSE_ALARM,
    )
}

/// The fault of the GPU's broken twin, on the CPU: the log-ratio of the steps is left out of the weight.
struct BrokenTwin(Cmcd);

impl Accelerator for BrokenTwin {
    fn steps(&self) -> usize {
        self.0.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        let start = journey.points.log_density.clone();
        self.0.travel(direction, call, journey, scratch)?;
        for (i, start) in start.into_iter().enumerate() {
            journey.log_weight[i] = direction.log_weight(start, journey.points.log_density[i]);
        }
        Ok(())
    }
}

/// What the GPU is asked below, asked of the CPU: the check lets the sound sampler pass and catches its twin.
#[test]
fn the_check_of_the_law_has_power() {
    let cmcd = || Cmcd { steps: kernels(&lively()) };
    let both: [Arc<dyn Accelerator>; 2] = [Arc::new(cmcd()), Arc::new(BrokenTwin(cmcd()))];
    for (accelerator, is_sound) in both.into_iter().zip([true, false]) {
        let explorer = Hmc::with_sizes(1, 5, ASKED.sizes(), 0.5);
        let mut sampler = sampler(Arc::new(ASKED.path()), ASKED.schedule(), explorer, Identity);
        sampler.accelerator = accelerator;
        let verdict = keeps_its_law(|streams, ladders| {
            sampler.streams = *streams;
            let mut ensemble = exact_ensemble(&sampler, &ladders);
            let mut work = Workspace::new(&ensemble);
            for t in 1..=2 {
                iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).unwrap();
            }
            ladders_of(&ensemble)
        });
        let smallest = verdict.checks.iter().map(|check| check.p_value).fold(1.0, f64::min);
        println!("smallest p {smallest:.1e} of {}, level {:.1e}", verdict.checks.len(), verdict.level());
        assert_eq!(verdict.passed(), is_sound, "{verdict}");
    }
}

#[test]
fn ladders_keep_their_law_and_a_broken_twin_does_not() {
    let Some(gpu) = gpu() else { return };
    let law_of = |transport: LadderTransport| {
        let mut transport = Some(transport);
        keeps_its_law(|streams, ladders| {
            let transport = transport.take();
            let plan = LadderPlan { transport, ..plan(ASKED, ladders.rows(), 0, streams.seed()) };
            let mut sampler = LadderSampler::new(&gpu, plan).unwrap();
            sampler.set_points(&Batch::from_vec(DIM, ladders.as_slice().to_vec())).unwrap();
            sampler.advance(2).unwrap();
            let (x, chain) = sampler.points().unwrap();
            let mut out = Batch::zeros(ladders.rows(), ladders.dim());
            for (row, &chain) in chain.iter().enumerate() {
                let to = &mut out.row_mut(row / CHAINS)[chain * DIM..(chain + 1) * DIM];
                to.copy_from_slice(x.row(row));
            }
            out
        })
    };
    let transport = || {
        let (network, weights) = lively();
        LadderTransport::new(network, weights)
    };
    law_of(transport()).assert_passed();
    law_of(transport().except(vec![false, true, true, false, true])).assert_passed();
    law_of(transport().broken_twin()).assert_caught();
}

#[test]
fn pairs_that_are_swapped_plainly_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let (kind, ladders, plain) = (Kind::Normal(20.0), 50, vec![true, false, true, true, false]);
    let mut cpu = OnCpu::new(kind, ladders, 2, 7);
    cpu.sampler.accelerator = Arc::new(PerPair::new(cpu.sampler.accelerator.clone(), plain.clone()));
    let mut plan = plan(kind, ladders, 2, 7);
    plan.transport = plan.transport.map(|transport| transport.except(plain));
    let mut ours = LadderSampler::new(&gpu, plan).unwrap();
    cpu.advance(0, 6);
    ours.advance(6).unwrap();
    let (near, same) = agreement(&cpu.ensemble, &ours.points().unwrap(), 1e-5);
    assert!(near >= 0.99 && same >= 0.99, "{near}, {same}");
}
