//! The sampling loop allocates nothing: an allocator that counts says so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use sterna::accelerator::Accelerator;
use sterna::accelerators::{
    Cmcd, CmcdSteps, Diffusion, DiffusionSteps, FlowAccelerator, Identity, Integrator, NoDrift,
};
use sterna::explorer::Explorer;
use sterna::explorers::{Auto, AutoSizes, Hmc, StepSizes};
use sterna::fitted::Shape;
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::records::SamplingRecord;
use sterna::supports::{Constrained, Parameters, Support};
use sterna::targets::{Banana, Dw4, Gmm, ManyWell};
use sterna::transports::Affine;
use sterna::{Ensemble, Schedule, Target, Workspace, iterate};
use sterna_testkit::moves::sampler;

struct Counting;

thread_local! {
    // Each test has a thread, so what the others allocate does not matter.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is passed on to the system's allocator; counting touches a cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of_the_loop(target: Arc<dyn Target>, step: f64, chains: usize, copies: usize) -> u64 {
    let path = Arc::new(Geometric::new(Reference::standard_normal(target.dim()), target).unwrap());
    allocations_with(path, Arc::new(Identity), step, chains, copies)
}

fn allocations_with(
    path: Arc<dyn AnnealingPath>,
    accelerator: Arc<dyn Accelerator>,
    step: f64,
    chains: usize,
    copies: usize,
) -> u64 {
    let sizes = StepSizes::fixed(chains, path.dim(), step);
    allocations_by(path, accelerator, Hmc::with_sizes(2, 5, sizes, 0.1), chains, copies)
}

/// Allocations of 1000 iterations after two that find the buffers' sizes.
fn allocations_by(
    path: Arc<dyn AnnealingPath>,
    accelerator: Arc<dyn Accelerator>,
    explorer: impl Explorer + 'static,
    chains: usize,
    copies: usize,
) -> u64 {
    let mut sampler = sampler(path, Schedule::uniform(chains), explorer, Identity);
    sampler.accelerator = accelerator;
    let mut ensemble =
        Ensemble::start(&*sampler.path, &sampler.streams, &sampler.schedule, 0, copies).unwrap();
    let mut work = Workspace::new(&ensemble);
    for t in 1..=2 {
        iterate(t, &mut ensemble, &sampler, &mut work, &mut ()).unwrap();
    }
    let mut record = SamplingRecord::new(&ensemble, 1000, 3);
    let before = ALLOCATIONS.get();
    for t in 3..=1002 {
        iterate(t, &mut ensemble, &sampler, &mut work, &mut record).unwrap();
    }
    assert_eq!(record.counts.iterations, 1000);
    ALLOCATIONS.get() - before
}

#[test]
fn the_sampling_loop_allocates_nothing() {
    for (chains, copies) in [(30, 1), (5, 3)] {
        assert_eq!(allocations_of_the_loop(Arc::new(Gmm::paper(10)), 0.03, chains, copies), 0);
        assert_eq!(allocations_of_the_loop(Arc::new(Dw4), 0.22, chains, copies), 0);
        assert_eq!(allocations_of_the_loop(Arc::new(ManyWell::new(32)), 0.22, chains, copies), 0);
    }
    // A block of eight rows, and one of the rest.
    assert_eq!(allocations_of_the_loop(Arc::new(ManyWell::new(1000)), 0.1, 11, 1), 0);
}

#[test]
fn accelerated_loops_allocate_nothing() {
    let (dim, chains) = (10, 6);
    let geometric = || Arc::new(Geometric::from_standard_normal(Gmm::paper(dim)));
    let diffused = Arc::new(Diffused::exact(Arc::new(Gmm::paper(dim))).unwrap());
    let diffusion = Arc::new(Diffusion { steps: DiffusionSteps::new(5, Integrator::Exponential).unwrap() });
    assert_eq!(allocations_with(diffused, diffusion, 0.03, chains, 2), 0);
    let cmcd = Cmcd { steps: CmcdSteps::linear(Arc::new(NoDrift), 3, &vec![0.01; chains - 1]).unwrap() };
    assert_eq!(allocations_with(geometric(), Arc::new(cmcd), 0.03, chains, 2), 0);
    let betas = Schedule::uniform(chains).betas().to_vec();
    let mut unit = vec![0.0; dim * dim];
    unit.iter_mut().step_by(dim + 1).for_each(|x| *x = 1.0);
    let full = Affine::full(betas.clone(), vec![(vec![0.1; dim], unit); chains]).unwrap();
    let diagonal = Affine::diagonal(betas, vec![(vec![0.1; dim], vec![1.0; dim]); chains]).unwrap();
    for affine in [full, diagonal] {
        let flow = FlowAccelerator::new(Arc::new(affine));
        assert_eq!(allocations_with(geometric(), Arc::new(flow), 0.03, chains, 2), 0);
    }
}

/// Parameters of all supports, over and over from the same memory.
#[test]
fn parameters_with_supports_allocate_nothing() {
    let interval = Support::Interval { lower: 0.0, upper: 3.0 };
    let supports = [
        Support::Positive,
        interval,
        Support::Simplex,
        Support::Ordered,
        Support::UnitVector,
        Support::Circle,
    ];
    let parameters = Parameters::new(supports.map(|support| ("x", 3, support).into())).unwrap();
    let target = Constrained::row_by_row(parameters, |values, gradient| {
        gradient.iter_mut().zip(values).for_each(|(slope, x)| *slope = -x);
        -0.5 * values.iter().map(|x| x * x).sum::<f64>()
    });
    assert_eq!(allocations_of_the_loop(Arc::new(target), 0.1, 5, 3), 0);
}

/// Steps of which some are halved, dense shapes and diagonal ones.
#[test]
fn moves_that_find_their_step_allocate_nothing() {
    let covariance = [1.0, 0.5, 0.5, 1.0];
    let shapes = vec![
        Shape::Diagonal(vec![1.0, 2.0]),
        Shape::of_covariance(&covariance, 2).unwrap(),
        Shape::of_covariance(&covariance, 2).unwrap(),
    ];
    let auto = Auto { steps: 2, ..Auto::with_sizes(AutoSizes::new(vec![0.9, 1.0, 0.4], shapes)) };
    let path = Arc::new(Geometric::from_standard_normal(Banana::new(2)));
    assert_eq!(allocations_by(path, Arc::new(Identity), auto, 3, 4), 0);
}

/// The counter counts: a target that allocates is seen.
#[test]
fn an_allocating_target_is_caught() {
    struct Wasteful(Gmm);
    impl Target for Wasteful {
        fn dim(&self) -> usize {
            self.0.dim()
        }
        fn evaluate(&self, x: &sterna::Batch, out: &mut sterna::Evaluation) -> sterna::Result<()> {
            self.0.evaluate(&x.clone(), out)
        }
    }
    // Two moves of five leapfrog steps, and one evaluation of the exact draws.
    assert_eq!(allocations_of_the_loop(Arc::new(Wasteful(Gmm::paper(3))), 0.03, 4, 1), 11_000);
}
