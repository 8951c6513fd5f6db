//! What a device computes of its own draws is what the host computes.

use sterna::streams::{Phase, Streams};
use sterna::targets::{Dw4, Gmm, ManyWell};

use super::*;
use crate::course::Lesson;
use crate::device::Device;
use crate::graph::Value;
use crate::real::Real;

const ROWS: usize = 256;
const STEP: u64 = 3;

/// A mixture times exp √x₀, which is nothing where x₀ < 0.
struct Half(Gmm);

impl Target for Half {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.0.evaluate(x, out)?;
        for row in 0..x.rows() {
            let root = x.row(row)[0].sqrt();
            out.log_density[row] += root;
            out.score.row_mut(row)[0] += 0.5 / root;
        }
        Ok(())
    }
}

impl GraphTarget for Half {
    fn dim(&self) -> usize {
        2
    }

    fn log_density<'g>(&self, x: Value<'g>) -> Value<'g> {
        GraphTarget::log_density(&self.0, x) + x.slice(0, 1).sqrt()
    }
}

fn lesson<T: Target + GraphTarget + 'static>(target: T, spread: f64) -> DiffusionLesson {
    let dim = Target::dim(&target);
    let mut samples = Batch::zeros(400, dim);
    let keys: Vec<u32> = (0..400).collect();
    Streams::new(5).normals(Phase::Check, 0, &keys, &mut samples);
    samples.as_mut_slice().iter_mut().for_each(|x| *x *= spread);
    let collected = Arc::new(Collected {
        scores: Vec::new(),
        round: 0,
        prospect: Default::default(),
        schedule: Schedule::new(vec![0.0, 1.0]).unwrap(),
        samples: vec![samples.clone(), samples],
        local_barrier: vec![1.0; 2],
        local_variance: Batch::from_vec(dim, vec![0.1; 2 * dim]),
    });
    let target = Arc::new(target);
    let path = Arc::new(Geometric::new(Reference::standard_normal(dim), target.clone()).unwrap());
    let size = DiffusionSize {
        steps: 1,
        integrator: Integrator::Exponential,
        hidden: Hidden::new(1, 16),
        waves: 1,
        particles: None,
        apart: false,
    };
    let training = Training { batch: ROWS, ..Training::default() };
    let fit = TrainDiffusion::new(path, target.clone(), size, training).unwrap().with_recorded(target);
    fit.lesson(collected, None).unwrap().0
}

fn run<T: Real>(
    graph: &Graph,
    outputs: &[Value],
    weights: &Parameters<f64>,
    inputs: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let mut program = Device::<T>::compile(&Cpu::new(1), graph, outputs).unwrap();
    let inputs: Vec<Vec<T>> = inputs.iter().map(|v| v.iter().map(|&x| T::from_f64(x)).collect()).collect();
    let slices: Vec<&[T]> = inputs.iter().map(|v| &v[..]).collect();
    program.run(&weights.convert(), ROWS, &slices).unwrap();
    (0..outputs.len()).map(|k| program.output(k).iter().map(|x| x.to_f64()).collect()).collect()
}

/// The inputs that were recorded, or the gradient and the loss on them.
fn outputs<'g>(lesson: &DiffusionLesson, inputs: Inputs<'g>, loss: bool) -> Vec<Value<'g>> {
    let Inputs { time, x, target_score, wanted, scale, log_density, wanted_slope, slope_scale } = inputs;
    if !loss {
        return vec![time, x, target_score, wanted, scale, log_density, wanted_slope, slope_scale];
    }
    let loss = record_loss(&lesson.network, inputs);
    let mut all = time.graph().gradient(loss, &lesson.layout.record(time.graph()));
    all.push(loss);
    all
}

/// Holds what a device computes against what the host does; returns how many rows teach nothing.
fn check(name: &str, mut lesson: DiffusionLesson, recorded: &dyn GraphTarget) -> usize {
    let mut filled = vec![vec![]; 8];
    lesson.fill(STEP, &mut filled);
    let filled: Vec<Vec<f64>> = filled.iter().map(|v| v.iter().map(|&x| f64::from(x)).collect()).collect();
    let weights = lesson.layout.initialise::<f64>(1).values().to_vec();
    let lively = weights.iter().enumerate().map(|(i, w)| w + 0.1 * (i as f64).sin()).collect();
    let weights = Parameters::new(lively);
    // s and 1 − s, samples, noise.
    let draws = lesson.batches.draw(STEP).to_vec();

    // In f64 they are what the host computes, which then rounds to f32.
    let graph = Graph::new();
    let inputs = Inputs::of_draws(&graph, recorded, &lesson.units);
    let ours = run::<f64>(&graph, &outputs(&lesson, inputs, false), &weights, &draws);
    for (k, (ours, theirs)) in ours.iter().zip(&filled).enumerate() {
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() <= 1e-7 * b.abs() + 1e-9, "{name}, input {k}: {a} against {b}");
        }
    }

    // In f32 the loss and its gradient, relative to their largest entries, are as precise as with the host's inputs.
    let host = Graph::new();
    let host_outputs = outputs(&lesson, Inputs::record(&host, lesson.network.dim()), true);
    let truth = run::<f64>(&host, &host_outputs, &weights, &filled);
    let theirs = run::<f32>(&host, &host_outputs, &weights, &filled);
    let ours = run::<f32>(&graph, &outputs(&lesson, inputs, true), &weights, &draws);
    let off = |found: &[Vec<f64>]| {
        let off_one = |(a, b): (&Vec<f64>, &Vec<f64>)| {
            let largest = b.iter().fold(0.0f64, |m, b| m.max(b.abs()));
            assert!(a.iter().all(|a| a.is_finite()));
            a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / largest
        };
        found.iter().zip(&truth).map(off_one).fold(0.0, f64::max)
    };
    println!("{name}: off by {:.1e}, the host's by {:.1e}", off(&ours), off(&theirs));
    assert!(off(&ours) < 3.0 * off(&theirs), "{name}");
    filled[4].chunks(lesson.network.dim()).filter(|scale| scale[0] == 0.0).count()
}

#[test]
fn a_device_computes_the_inputs_of_the_host() {
    let half = || Half(Gmm::new(2, vec![[0.6, 0.2], [-0.6, -0.1]], 0.15));
    assert_eq!(check("GMM-10", lesson(Gmm::paper(10), 0.3), &Gmm::paper(10)), 0);
    assert_eq!(check("ManyWell-6", lesson(ManyWell::new(6), 1.5), &ManyWell::new(6)), 0);
    assert_eq!(check("DW-4", lesson(Dw4, 1.5), &Dw4), 0);
    let unknown = check("half a plane", lesson(half(), 0.5), &half());
    assert!((64..256).contains(&unknown), "{unknown} rows teach nothing");
}

#[test]
fn targets_that_call_the_host_are_left_to_it() {
    let size = lesson(Dw4, 1.0).fit.size;
    let path = Arc::new(Geometric::from_standard_normal(Dw4));
    let fit = || TrainDiffusion::new(path.clone(), Arc::new(Dw4), size, Training::default()).unwrap();
    assert!(fit().with_recorded(Arc::new(Dw4)).recorded.is_some());
    assert!(fit().with_recorded(crate::host_target(Arc::new(Dw4))).recorded.is_none());
}

#[cfg(feature = "cuda")]
#[test]
fn the_loss_of_drawn_batches_compiles_for_a_gpu() {
    use crate::{Cuda, Precision};
    if let Err(error) = Cuda::compiler_version() {
        return println!("skipped: {error}");
    }
    let (lesson, graph) = (lesson(Gmm::paper(10), 0.3), Graph::new());
    let inputs = Inputs::of_draws(&graph, &Gmm::paper(10), &lesson.units);
    let outputs = outputs(&lesson, inputs, true);
    let made = Cuda::compile_only::<f32>(&graph, &outputs, ROWS, Precision::F32, 90).unwrap();
    println!("{made} kernels");
}
