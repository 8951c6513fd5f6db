//! After the first call nothing is allocated: evaluations, transports, torsion moves.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Rows, Scratch};
use sterna::explorer::{Explorer, Moved};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::{Phase, Streams};
use sterna::transport::{Flow, Interval};
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{
    ChainSamples, ConditionalAffine, ControlledDiffusion, Standardised, TemperatureScaling, TemperedPath,
    TorsionMoves, alanine_dipeptide,
};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of the second and third call.
fn allocations(mut work: impl FnMut()) -> usize {
    work();
    let before = COUNT.get();
    work();
    work();
    COUNT.get() - before
}

#[test]
fn hot_loops_do_not_allocate() {
    let molecule = Arc::new(alanine_dipeptide(300.0).unwrap());
    let path = TemperedPath::new(molecule.clone(), 1200.0).unwrap();
    let rows = 13;
    let keys: Vec<u32> = (0..rows as u32).collect();
    let mut points = Points::zeros(rows, 63);
    path.draw_reference(0.0, &Streams::new(1), Phase::Start.into(), 0, &keys, &mut points.x);
    let mut out = Evaluation::zeros(rows, 63);
    assert_eq!(allocations(|| molecule.evaluate(&points.x, &mut out).unwrap()), 0);
    let mut cartesian = Batch::zeros(rows, 66);
    let basis = molecule.mean_free();
    assert_eq!(allocations(|| basis.to_cartesian(points.x.as_slice(), cartesian.as_mut_slice())), 0);
    let mut full = Evaluation::zeros(rows, 66);
    assert_eq!(allocations(|| molecule.evaluate_cartesian(&cartesian, &mut full).unwrap()), 0);

    // Samples only have to be fit for a fit.
    let many: Vec<u32> = (0..600).collect();
    let mut samples = Batch::zeros(600, 63);
    path.draw_reference(0.0, &Streams::new(1), Phase::Start.into(), 0, &many, &mut samples);
    let chains = [0.0, 1.0].map(|beta| ChainSamples { beta, points: &samples });
    let scaling = TemperatureScaling::fit(&molecule, path.temperatures(), &chains).unwrap();
    let affine = ConditionalAffine::fit(&molecule, path.temperatures(), &chains).unwrap();
    let (pairs, mut log_det) = (vec![Interval { lower: 0.2, upper: 0.3 }; rows], vec![0.0; rows]);
    let flows: [&dyn Flow; 2] = [&scaling, &affine];
    for flow in flows {
        let mut x = points.x.clone();
        assert_eq!(
            allocations(|| flow.forward(&pairs, &mut x, &mut log_det, &mut Scratch::default()).unwrap()),
            0
        );
        assert_eq!(
            allocations(|| flow.inverse(&pairs, &mut x, &mut log_det, &mut Scratch::default()).unwrap()),
            0
        );
    }

    let coordinates = Arc::new(Standardised::fit(affine, &chains).unwrap());
    let diffusion = ControlledDiffusion::new(coordinates, 2, vec![0.05]).unwrap();
    let mut travellers = Rows::default();
    for (row, &pair) in pairs.iter().enumerate() {
        travellers.push_leaving(row, row as u32, 1, pair, Direction::Forward);
    }
    path.evaluate(&travellers.beta, &mut points).unwrap();
    let mut journey = Journey::new(rows, 63);
    journey.begin(&points, &travellers.row);
    let mut scratch = Scratch::default();
    let streams = Streams::new(3);
    let travel = || {
        diffusion
            .travel(
                Direction::Forward,
                &Call::new(&path, &streams, 1, &travellers),
                &mut journey,
                &mut scratch,
            )
            .unwrap();
    };
    assert_eq!(allocations(travel), 0);

    let moves = TorsionMoves::new(&molecule, 3).unwrap();
    let which = Rows::of_ladders(&[0.0], rows);
    path.evaluate(&which.beta, &mut points).unwrap();
    let mut happened = Moved::default();
    happened.begin(rows);
    let mut scratch = Scratch::default();
    let streams = Streams::new(2);
    let explore = || {
        moves
            .explore(&Call::new(&path, &streams, 1, &which), &mut points, &mut happened, &mut scratch)
            .unwrap();
    };
    assert_eq!(allocations(explore), 0);
}
