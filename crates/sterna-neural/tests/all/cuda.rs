//! The GPU against the CPU. Where there is no GPU the generated kernels are still compiled, if NVRTC is there;
//! where there is neither, the tests say so and pass.
use std::sync::Arc;

use crate::common::{numbers, pseudo, relative_error};
use sterna::acceleration::{Collected, Fit};
use sterna::accelerators::Integrator;
use sterna::fitted::{Component, Mixture, Shape};
use sterna::paths::{Geometric, Reference};
use sterna::streams::{Phase, Streams};
use sterna::targets::{Dw4, Gmm, ManyWell, Normal};
use sterna::{Batch, Schedule, Target};
use sterna_neural::{
    AdamConfig, BatchField, CmcdInputs, CmcdNetwork, CmcdSize, Compute, Conditions, Cpu, Cuda, Decay, Device,
    DiffusionSize, EgnnDriftConfig, EnergyConfig, FlowSize, Graph, GraphPath, GraphTarget, Hidden, Init,
    Layout, Loss, MlpDriftConfig, PairChoice, Parameters, Particles, Precision, RealNvpConfig, Recipe,
    TrainCmcd, TrainDiffusion, TrainFlow, Trainer, Training, Value, Way, flow_divergences, host_target,
};

const SCHEDULE: [f64; 4] = [0.0, 0.05, 0.4, 1.0];

/// Two normals, a target of three coordinates, and an anchor beyond it.
fn from_mixture() -> (Geometric, Arc<dyn GraphTarget>) {
    let normal = |weight, shift: f64, deviations: [f64; 3]| Component {
        weight,
        mean: vec![shift, 0.3, -shift],
        shape: Shape::Diagonal(deviations.to_vec()),
    };
    let dense = Shape::of_covariance(&[0.8, 0.3, 0.0, 0.3, 0.5, 0.1, 0.0, 0.1, 0.9], 3).unwrap();
    let first = Component { shape: dense, ..normal(0.6, 0.4, [1.0; 3]) };
    let mixture = Mixture::new(vec![first, normal(0.4, -0.5, [0.6, 0.9, 1.2])]).unwrap();
    let (reference, target) = (Reference::mixture(mixture), Normal::isotropic(3, 4.0));
    let ground = Geometric::new(reference.clone(), Arc::new(target.clone())).unwrap();
    let anchor = Reference::normal(vec![0.0; 3], vec![3.0; 3]);
    (ground.between(reference, Some(anchor)).unwrap(), Arc::new(target))
}

type Record = dyn for<'g> Fn(&'g Graph, &mut Layout) -> Vec<Value<'g>>;

/// A computation: its name, the batch, what it records, and how far f32 and TF32 may be off (relative to the
/// largest number of an output). f64 may be off by 1e-10 everywhere.
struct Case {
    name: &'static str,
    rows: usize,
    f32: f64,
    tf32: f64,
    record: Box<Record>,
}

fn case(
    name: &'static str,
    rows: usize,
    [f32, tf32]: [f64; 2],
    record: impl for<'g> Fn(&'g Graph, &mut Layout) -> Vec<Value<'g>> + 'static,
) -> Case {
    Case { name, rows, f32, tf32, record: Box::new(record) }
}

/// An MLP's output at the input "x".
fn mlp<'g>(
    graph: &'g Graph,
    layout: &mut Layout,
    [dim, layers, width, out]: [usize; 4],
) -> (Value<'g>, Value<'g>) {
    let x = graph.input("x", dim);
    let (mut h, mut from) = (x, dim);
    for layer in 0..=layers {
        let to = if layer == layers { out } else { width };
        let w = layout.add(format!("{layer}.weight"), from, to, Init::FanIn).record(graph);
        let b = layout.add(format!("{layer}.bias"), 1, to, Init::FanIn).record(graph);
        h = h.matmul(w) + b;
        h = if layer < layers { h.silu() } else { h };
        from = to;
    }
    (x, h)
}

fn with_gradient<'g>(graph: &'g Graph, layout: &Layout, loss: Value<'g>) -> Vec<Value<'g>> {
    let mut all = graph.gradient(loss, &layout.record(graph));
    all.push(loss);
    all
}

fn cmcd_loss<'g>(
    graph: &'g Graph,
    layout: &mut Layout,
    target: Arc<dyn GraphTarget>,
    particles: bool,
    hidden: Hidden,
    loss: Loss,
) -> Vec<Value<'g>> {
    let dim = target.dim();
    let conditioning = MlpDriftConfig::small(dim, &SCHEDULE).unwrap().conditioning;
    let drift = if particles {
        let config = EgnnDriftConfig { particles: Particles::DW4, hidden, species: vec![], conditioning };
        config.build(layout, "drift").unwrap().into()
    } else {
        MlpDriftConfig { dim, hidden, conditioning }.build(layout, "drift").unwrap().into()
    };
    let network = CmcdNetwork::new(layout, drift, 2, &[[0.3, 0.2], [0.1, 0.1], [0.03, 0.01]]);
    let inputs = CmcdInputs::record(graph, &network);
    let loss = network.loss(loss, &GraphPath::from_standard_normal(target), &inputs);
    with_gradient(graph, layout, loss)
}

fn cases() -> Vec<Case> {
    vec![
        case("elementwise", 37, [2e-6, 2e-6], |g, layout| {
            let (x, y) = (g.input("x", 5), g.input("y", 5) * 0.4 + 1.0);
            let p = layout.add("p", 1, 12, Init::FanIn).record(g);
            let all = [x.exp(), y.log(), x.tanh(), x.sigmoid(), x.softplus(), x.silu(), y.sqrt(), y.recip()];
            let more = [x.sin(), x.cos(), x.abs(), x.sign(), x.step(), x * y, x - y, x + y, 2.0 * x - 0.5];
            let row = x * p.slice(2, 5) + p.slice(1, 1);
            let column = x.slice(3, 1) * y;
            let known = [x.log().finite_or_zero(), x.log().is_finite(), x.finite_or_zero()];
            all.into_iter().chain(more).chain(known).chain([row, column]).collect()
        }),
        case("sums and moves", 45, [2e-6, 1e-3], |g, layout| {
            let (x, y) = (g.input("x", 6), g.input("y", 6));
            let p = layout.add("p", 1, 12, Init::FanIn).record(g);
            let w = p.reshape(4, 3);
            vec![
                x.sum_cols(),
                (x * 9.0).log_sum_exp(),
                x.sum_rows(),
                y.mean_rows(),
                x.slice(1, 2).tanh().pad(1, 4),
                g.concat(&[x.slice(2, 2), y, x * x]),
                x.slice(0, 4).reshape(2, 2).matmul(p.slice(0, 6).reshape(2, 3)).tanh().reshape(1, 6),
                x.reshape(6, 1).gather(&[3, 1, 1, 5]).tanh(),
                x.reshape(6, 1).scatter(&[1, 0, 1, 1, 0, 0], 2),
                x.transposed_matmul(y) + y.transposed_matmul(x * x),
                x.slice(1, 4).matmul(w.matmul(p.reshape(3, 4))),
                x.slice(0, 3).matmul(w.transposed_matmul(w)) + p.slice(1, 3),
                x.slice(1, 3).matmul_transposed(w),
                p.reshape(3, 4).sum_rows() + x.slice(0, 4).sum_rows(),
                x,
                p,
                g.scalar(2.5).broadcast(x.shape()),
            ]
        }),
        case("large network", 512, [1e-5, 3e-3], |g, layout| {
            let (_, y) = mlp(g, layout, [10, 4, 512, 10]);
            with_gradient(g, layout, y.square().sum_cols().mean_rows())
        }),
        case("large network, many rows", 4150, [1e-5, 3e-3], |g, layout| {
            let (x, y) = mlp(g, layout, [10, 3, 256, 10]);
            let mut all = with_gradient(g, layout, y.square().sum_cols().mean_rows());
            all.push(g.gradient(y.square().sum_cols(), &[x])[0]);
            all
        }),
        case("large network, forth alone", 4150, [1e-5, 3e-3], |g, layout| {
            let (_, y) = mlp(g, layout, [33, 3, 512, 10]);
            vec![y * g.input("span", 1)]
        }),
        case("large network, forth alone, odd sizes", 8200, [1e-5, 3e-3], |g, layout| {
            let (_, y) = mlp(g, layout, [7, 2, 160, 3]);
            vec![y]
        }),
        case("large network, odd sizes", 131, [1e-5, 3e-3], |g, layout| {
            let (_, y) = mlp(g, layout, [7, 3, 211, 5]);
            with_gradient(g, layout, y.square().sum_cols().mean_rows())
        }),
        case("score matching", 512, [1e-5, 3e-3], |g, layout| {
            let (x, energy) = mlp(g, layout, [10, 3, 128, 1]);
            let score = g.gradient(energy, &[x])[0];
            with_gradient(g, layout, (score - g.input("v", 10)).square().sum_cols().mean_rows())
        }),
        case("controlled diffusion", 96, [1e-4, 3e-3], |g, layout| {
            let target = Arc::new(ManyWell::new(10));
            cmcd_loss(g, layout, target, false, Hidden::new(2, 192), Loss::Skl)
        }),
        case("controlled diffusion of particles", 40, [1e-4, 3e-3], |g, layout| {
            cmcd_loss(g, layout, Arc::new(Dw4), true, Hidden::new(2, 32), Loss::Skl)
        }),
        case("host target", 33, [1e-4, 3e-3], |g, layout| {
            let target = host_target(Arc::new(Normal::isotropic(3, 4.0)));
            cmcd_loss(g, layout, target, false, Hidden::new(1, 16), Loss::LogVariance)
        }),
        case("flow", 64, [3e-4, 3e-3], |g, layout| {
            let config = RealNvpConfig { layers: 6, ..RealNvpConfig::small(10, &SCHEDULE).unwrap() };
            let network = config.build(layout, "flow").unwrap();
            let path = GraphPath::from_standard_normal(Arc::new(Normal::isotropic(10, 4.0)));
            let conditions = Conditions::pair_inputs(g);
            let [lower, upper] = ["lower", "upper"].map(|name| g.input(name, 10));
            let [up, down] = flow_divergences(&network, &path, &conditions, lower, upper);
            with_gradient(g, layout, (up + down).mean_rows())
        }),
        // Scores, since the losses of the networks above are made of these.
        case("a path from a mixture over two legs", 60, [1e-4, 3e-3], |g, _| {
            let (path, target) = from_mixture();
            let frame = path.reference().frame().map(Arc::new);
            let inside = GraphPath::between(&path, target, frame.as_ref()).with_steepest(Some(20.0));
            let (x, beta) = (g.input("x", 3), g.input("lower", 1) * 2.0);
            let score = inside.score(beta, x);
            let turned = g.gradient((score * g.input("v", 3)).sum_cols(), &[x])[0];
            vec![inside.log_density(beta, x), score, turned]
        }),
        case("mixture", 50, [3e-6, 3e-6], |g, _| {
            let x = g.input("x", 10);
            let gmm = Gmm::paper(10);
            vec![gmm.log_density(x * 0.3), gmm.score(x * 0.3)]
        }),
        case("energy model", 70, [1e-5, 3e-3], |g, layout| {
            let network = EnergyConfig::small(6).build(layout, "energy").unwrap();
            let (time, x) = (g.input("time", 1) * 0.4 + 0.5, g.input("x", 6));
            let energy = network.record(&ManyWell::new(6), time, x);
            with_gradient(g, layout, g.gradient(energy, &[x])[0].square().sum_cols().mean_rows())
        }),
    ]
}

/// Inputs in (0, 1) where they are chances or temperatures, in (−1, 1) elsewhere.
fn inputs(graph: &Graph, rows: usize) -> Vec<Vec<f64>> {
    let of = |(k, (name, cols)): (usize, (String, usize))| {
        let n = rows * cols;
        match name.as_str() {
            "lower" if cols == 1 => (0..rows).map(|i| SCHEDULE[i % 3]).collect(),
            "upper" if cols == 1 => (0..rows).map(|i| SCHEDULE[i % 3 + 1]).collect(),
            "which" => (0..n).map(|i| f64::from(u8::from(i / cols % 3 == i % cols))).collect(),
            "forward" => (0..rows).map(|i| f64::from(u8::from(i % 2 == 0))).collect(),
            _ => numbers(n, k, 1.0, 0.0),
        }
    };
    graph.recorded_inputs().into_iter().enumerate().map(of).collect()
}

/// Lively weights: nothing is zero.
fn weights(layout: &Layout) -> Vec<f64> {
    let start = layout.initialise::<f64>(3);
    start.values().iter().enumerate().map(|(i, w)| if *w == 0.0 { 0.1 * pseudo(i) } else { *w }).collect()
}

fn gpu(precision: Precision) -> Option<Cuda> {
    match Cuda::open(precision) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

#[test]
fn every_generated_kernel_compiles() {
    match Cuda::compiler_version() {
        Ok((major, minor)) => println!("NVRTC {major}.{minor}"),
        Err(error) => return println!("skipped: {error}"),
    }
    for case in cases() {
        let (graph, mut layout) = (Graph::new(), Layout::new());
        let outputs = (case.record)(&graph, &mut layout);
        // Every kernel once, and each number type and generation on the networks that differ most.
        let mut compiled = vec![Cuda::compile_only::<f32>(&graph, &outputs, case.rows, Precision::Tf32, 90)];
        if case.name.starts_with("large network, ") {
            compiled.push(Cuda::compile_only::<f32>(&graph, &outputs, case.rows, Precision::F32, 90));
            compiled.push(Cuda::compile_only::<f32>(&graph, &outputs, case.rows, Precision::F32, 80));
            compiled.push(Cuda::compile_only::<f64>(&graph, &outputs, case.rows, Precision::F32, 90));
        }
        for made in compiled {
            println!("{}: {} kernels", case.name, made.unwrap_or_else(|e| panic!("{}: {e}", case.name)));
        }
    }
}

#[test]
fn batches_and_the_optimiser_compile() {
    if let Err(error) = Cuda::compiler_version() {
        return println!("skipped: {error}");
    }
    use BatchField::*;
    let times = Times { seed: 3, shortest: 1e-6 };
    let fields = vec![Lower, Upper, Which, Forward, Start, AtLower, AtUpper, Noise(7), times];
    for (pair, way) in [(PairChoice::Drawn, Way::Alternating), (PairChoice::Spread(2), Way::Backward)] {
        let recipe = Recipe {
            journeys: 40,
            rows: 20,
            choices_seed: 1,
            noise_seed: u64::MAX,
            first_step: 5,
            dim: 3,
            trained: 9,
            samples: vec![],
            betas: SCHEDULE.to_vec(),
            pair,
            way,
            fields: fields.clone(),
        };
        let decay = Decay::Cosine { steps: 10, floor: 0.02 };
        for config in [AdamConfig::default(), AdamConfig { decay, warm_up: 3, ..AdamConfig::default() }] {
            Cuda::compile_training_only(&recipe, &config, 90).unwrap();
        }
    }
}

fn run<T: sterna_neural::Real>(device: &dyn Device<T>, case: &Case) -> Vec<Vec<f64>> {
    let (graph, mut layout) = (Graph::new(), Layout::new());
    let outputs = (case.record)(&graph, &mut layout);
    let mut program = device.compile(&graph, &outputs).unwrap();
    let inputs = inputs(&graph, case.rows);
    let convert = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
    let inputs: Vec<Vec<T>> = inputs.iter().map(|v| convert(v)).collect();
    let slices: Vec<&[T]> = inputs.iter().map(|v| &v[..]).collect();
    let parameters = Parameters::new(convert(&weights(&layout)));
    program.run(&parameters, case.rows, &slices).unwrap();
    // Twice, for what a first run leaves behind.
    program.run(&parameters, case.rows, &slices).unwrap();
    (0..outputs.len()).map(|k| program.output(k).iter().map(|x| x.to_f64()).collect()).collect()
}

#[test]
fn the_gpu_agrees_with_the_cpu() {
    let (Some(f32), Some(tf32)) = (gpu(Precision::F32), gpu(Precision::Tf32)) else { return };
    for case in cases() {
        let truth = run::<f64>(&Cpu::new(1), &case);
        let found = [
            (run::<f64>(&f32, &case), 1e-10),
            (run::<f32>(&f32, &case), case.f32),
            (run::<f32>(&tf32, &case), case.tf32),
        ];
        for (found, tolerance) in found {
            let off: Vec<f64> = found.iter().zip(&truth).map(|(a, b)| relative_error(a, b)).collect();
            let worst = off.iter().copied().fold(0.0, f64::max);
            println!("{}: off by {worst:.1e}, {tolerance:.0e} allowed", case.name);
            assert!(worst <= tolerance, "{}: {off:?} beyond {tolerance}", case.name);
        }
        assert_eq!(run::<f32>(&f32, &case), run::<f32>(&f32, &case), "{}: same bits twice", case.name);
    }
}

#[test]
fn training_goes_the_same_way_on_both() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let train = |device: Arc<dyn Device<f64>>| {
        let (graph, mut layout) = (Graph::new(), Layout::new());
        let (x, y) = mlp(&graph, &mut layout, [3, 2, 160, 2]);
        let loss = (y - x.slice(0, 2).sin()).square().sum_cols().mean_rows();
        let config = AdamConfig { learning_rate: 1e-2, warm_up: 5, ..AdamConfig::default() };
        let start = layout.initialise(5);
        let mut trainer = Trainer::new(device, &graph, loss, &[y], &layout, start, config).unwrap();
        let losses: Vec<f64> =
            (0..40).map(|k| trainer.step(64, &[&numbers(192, k, 1.0, 0.0)]).unwrap().loss).collect();
        let state = trainer.state();
        trainer.restore(&state).unwrap();
        assert_eq!(trainer.state(), state);
        (losses, trainer.averaged().values().to_vec(), trainer.watched(0).to_vec())
    };
    let (cpu, gpu) = (train(Arc::new(Cpu::new(1))), train(Arc::new(gpu)));
    for (ours, theirs) in [(&gpu.0, &cpu.0), (&gpu.1, &cpu.1), (&gpu.2, &cpu.2)] {
        let off = relative_error(ours, theirs);
        println!("off by {off:.1e}");
        assert!(off < 1e-7, "{off}");
    }
}

/// Samples of a ladder that is none.
fn collected(dim: usize, variance: f64, of_chain: impl Fn(usize) -> Batch) -> Arc<Collected> {
    let chains = SCHEDULE.len();
    Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(SCHEDULE.to_vec()).unwrap(),
        samples: (0..chains).map(of_chain).collect(),
        local_barrier: vec![1.0; chains],
        local_variance: Batch::from_vec(dim, vec![variance; chains * dim]),
    })
}

fn scattered(dim: usize) -> Arc<Collected> {
    collected(dim, 0.3, |chain| Batch::from_vec(dim, numbers(200 * dim, chain, 1.0, 0.0)))
}

/// Draws of a mixture.
fn drawn(gmm: &Gmm) -> Arc<Collected> {
    let dim = Target::dim(gmm);
    collected(dim, gmm.standard_deviation().powi(2), |chain| {
        let mut x = Batch::zeros(200, dim);
        let stream = |row| Streams::new(5).row(Phase::Check, chain as u64, row as u32);
        for row in 0..200 {
            gmm.draw(&mut stream(row), x.row_mut(row));
        }
        x
    })
}

const GPU: Compute = Compute::Cuda { precision: Precision::F32, fall_back: false };

/// Losses of a training that is stopped in between, on the CPU and on the GPU.
fn assert_same_batches(name: &str, samples: &Arc<Collected>, fit: impl Fn(Training) -> Box<dyn Fit>) {
    let losses = |compute: Compute, stop: u64| {
        let fit = fit(Training { steps: 60, fine_tune: 20, batch: 64, compute, ..Training::default() });
        let mut fitting = fit.begin(samples.clone(), None).unwrap();
        fitting.advance(stop).unwrap();
        // A stop in between changes nothing.
        let saved = fitting.save().unwrap();
        let mut fitting = fit.begin(samples.clone(), None).unwrap();
        fitting.restore(&saved).unwrap();
        fitting.advance(1000).unwrap();
        let report = fitting.finish().unwrap().report;
        report.losses.into_iter().chain(report.fine_tuning_losses).collect::<Vec<f64>>()
    };
    // Stopped within either loss.
    for stop in [17, 70] {
        let (cpu, gpu) = (losses(Compute::Cpu, stop), losses(GPU, stop));
        let off = relative_error(&gpu, &cpu);
        println!("{name}, stopped after {stop} steps: losses off by {off:.1e}");
        // One wrong sample in a batch of 64 would be off by a hundredth.
        assert!(off < 1e-4, "{name}: {gpu:?} against {cpu:?}");
    }
}

#[test]
fn the_gpu_draws_the_batches_of_the_cpu() {
    if gpu(Precision::F32).is_none() {
        return;
    }
    let target = Normal::isotropic(3, 4.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let target: Arc<dyn GraphTarget> = Arc::new(target);
    let hidden = Hidden::new(1, 16);
    assert_same_batches("flow", &scattered(3), |training| {
        let size = FlowSize::new(3, hidden);
        Box::new(TrainFlow::new(path.clone(), target.clone(), size, training).unwrap())
    });
    assert_same_batches("controlled diffusion", &scattered(3), |training| {
        let size = CmcdSize::new(2, hidden);
        Box::new(TrainCmcd::new(path.clone(), target.clone(), size, training).unwrap())
    });
    // In the coordinates of a mixture.
    let (path, target) = from_mixture();
    let path = Arc::new(path);
    assert_same_batches("flow from a mixture", &scattered(3), |training| {
        let size = FlowSize::new(3, hidden);
        Box::new(TrainFlow::new(path.clone(), target.clone(), size, training).unwrap())
    });
    assert_same_batches("controlled diffusion from a mixture", &scattered(3), |training| {
        let size = CmcdSize::new(2, hidden);
        Box::new(TrainCmcd::new(path.clone(), target.clone(), size, training).unwrap())
    });
}

fn diffusion<T: Target + GraphTarget + Clone + 'static>(
    target: &T,
    size: DiffusionSize,
    training: Training,
) -> TrainDiffusion {
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let target = Arc::new(target.clone());
    TrainDiffusion::new(path, target.clone(), size, training).unwrap().with_recorded(target)
}

const SMALL_DIFFUSION: DiffusionSize = DiffusionSize {
    steps: 1,
    integrator: Integrator::Exponential,
    hidden: Hidden::new(1, 16),
    waves: 1,
    particles: None,
    apart: false,
};

#[test]
fn the_gpu_draws_the_batches_of_diffusions() {
    if gpu(Precision::F32).is_none() {
        return;
    }
    let gmm = Gmm::paper(10);
    assert_same_batches("diffusion on GMM-10", &drawn(&gmm), |training| {
        Box::new(diffusion(&gmm, SMALL_DIFFUSION, training))
    });
    assert_same_batches("diffusion on ManyWell-6", &scattered(6), |training| {
        Box::new(diffusion(&ManyWell::new(6), SMALL_DIFFUSION, training))
    });
    assert_same_batches("diffusion of particles", &scattered(6), |training| {
        let size = DiffusionSize { particles: Some(Particles::DW4), waves: 0, ..SMALL_DIFFUSION };
        Box::new(diffusion(&Dw4, size, training))
    });
}
