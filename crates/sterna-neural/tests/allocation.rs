//! Once a program has seen its largest batch, running it allocates nothing; nor does a training step.

#[path = "all/common.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout as MemoryLayout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{FlowAccelerator, Framed};
use sterna::call::{Call, Rows, Scratch};
use sterna::fitted::{Component, Mixture, Shape};
use sterna::path::AnnealingPath;
use sterna::paths::{Geometric, Reference};
use sterna::targets::Normal;
use sterna::transport::{Drift, Flow, Interval};
use sterna::{Batch, Schedule, Streams};
use sterna_neural::{
    AdamConfig, Cpu, Graph, Layout, MlpDriftConfig, NeuralDrift, NeuralFlow, RealNvpConfig, Trainer,
};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: MemoryLayout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: MemoryLayout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(p, layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: MemoryLayout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.load(Ordering::Relaxed);
    f();
    COUNT.load(Ordering::Relaxed) - before
}

/// The same flow as an accelerator in the coordinates of a mixture.
fn journeys_in_a_frame(flow: NeuralFlow<f64>) {
    let normal = |mean: f64, width: f64| Component {
        weight: 0.5,
        mean: vec![mean; 4],
        shape: Shape::Diagonal(vec![width; 4]),
    };
    let reference = Reference::mixture(Mixture::new(vec![normal(0.0, 1.0), normal(3.0, 2.0)]).unwrap());
    let frame = Arc::new(reference.frame().unwrap());
    let framed = Framed::new(Arc::new(FlowAccelerator::new(Arc::new(flow))), frame).with_steepest(9.0);
    let path = Geometric::new(reference, Arc::new(Normal::isotropic(4, 2.0))).unwrap();
    let (schedule, streams) = (Schedule::new(vec![0.0, 0.2, 1.0]).unwrap(), Streams::new(1));
    let rows = Rows::over_pair(&schedule, 1, Direction::Forward, 40);
    let (mut journey, mut scratch) = (Journey::new(40, 4), Scratch::default());
    path.evaluate(&rows.beta, &mut journey.points).unwrap();
    let call = Call::new(&path, &streams, 1, &rows);
    let mut travel = || framed.travel(Direction::Forward, &call, &mut journey, &mut scratch).unwrap();
    travel();
    assert_eq!(allocations(travel), 0, "a journey in a frame");
}

#[test]
fn nothing_is_allocated_per_call() {
    let schedule = [0.0, 0.2, 1.0];
    let pairs = [Interval { lower: 0.0, upper: 0.2 }; 40];
    let times = [0.5; 40];

    let mut layout = Layout::new();
    let network = MlpDriftConfig::small(4, &schedule).unwrap().build(&mut layout, "drift").unwrap();
    let drift =
        NeuralDrift::<f32>::new(network.clone(), layout.initialise(1), Arc::new(Cpu::new(2))).unwrap();
    let mut scratch = Scratch::default();
    let (x, mut b) = (Batch::zeros(40, 4), Batch::zeros(40, 4));
    drift.drift(&pairs, &times, &x, &mut b, &mut scratch).unwrap();
    let (few, mut b_few) = (Batch::zeros(7, 4), Batch::zeros(7, 4));
    assert_eq!(allocations(|| drift.drift(&pairs, &times, &x, &mut b, &mut scratch).unwrap()), 0, "drift");
    let fewer = || drift.drift(&pairs[..7], &times[..7], &few, &mut b_few, &mut scratch).unwrap();
    assert_eq!(allocations(fewer), 0, "drift with fewer rows");

    let mut flow_layout = Layout::new();
    let flow = RealNvpConfig::small(4, &schedule).unwrap().build(&mut flow_layout, "flow").unwrap();
    let flow = NeuralFlow::<f64>::new(flow, flow_layout.initialise(1), Arc::new(Cpu::new(1))).unwrap();
    let (mut x, mut log_det) = (Batch::zeros(40, 4), vec![0.0; 40]);
    flow.forward(&pairs, &mut x, &mut log_det, &mut scratch).unwrap();
    assert_eq!(allocations(|| flow.forward(&pairs, &mut x, &mut log_det, &mut scratch).unwrap()), 0, "flow");

    journeys_in_a_frame(flow);

    // Two threads and enough work for both.
    let (graph, inputs) =
        (Graph::new(), vec![vec![0.1f32; 400], vec![0.3; 400], vec![0.5; 400], vec![0.7; 1600]]);
    let conditions = sterna_neural::Conditions::inputs(&graph);
    let x = graph.input("x", 4);
    let loss = (network.record(&conditions, x) - x).square().sum_cols().mean_rows();
    let start = layout.initialise::<f32>(1);
    let device = Arc::new(Cpu::new(2));
    let mut trainer = Trainer::new(device, &graph, loss, &[], &layout, start, AdamConfig::default()).unwrap();
    let slices: Vec<&[f32]> = inputs.iter().map(|x| &x[..]).collect();
    let mut steps = || {
        for _ in 0..5 {
            trainer.step(400, &slices).unwrap();
        }
    };
    // Inside a pool, as in a run; calls from outside are handed over, for which rayon allocates now and then. So do its
    // queues when they grow, at moments that hang on how busy the machine is: what a step itself allocates shows in every try.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let fewest = pool.install(|| (0..20).map(|_| allocations(&mut steps)).min());
    assert_eq!(fewest, Some(0), "training");
}
