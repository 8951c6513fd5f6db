//! Speed on alanine dipeptide per processor-second, on one thread: energy+force evaluations, the molecule as a
//! target (the same without its centre of mass), and the transport by temperature scaling.
//!
//! `cargo bench -p sterna-molecule` prints a line per batch size; `scripts/molecule/against_openmm.py`
//! runs OpenMM beside it.

#![expect(clippy::disallowed_methods, reason = "measures time")]

use std::hint::black_box;
use std::time::Instant;
use sterna::call::Scratch;
use sterna::transport::{Flow, Interval};
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{ChainSamples, TemperatureScaling, Temperatures, alanine_dipeptide, read_positions};

/// Seconds this thread has computed, where the system tells (others' load does not count); else wall time.
fn processor_seconds(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| 1e-9 * nanoseconds)
}

/// The best of several seconds per row.
fn seconds_per_row(rows: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let calls = 40_000 / rows;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let before = processor_seconds(start);
        for _ in 0..calls {
            work();
        }
        best = best.min((processor_seconds(start) - before) / (calls * rows) as f64);
    }
    best
}

fn main() {
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
    let molecule = alanine_dipeptide(300.0).expect("built in");
    let conformations = read_positions(format!("{assets}/reference.json"), 22).expect("its conformations");
    for rows in [32, 4, 8, 256] {
        let positions: Vec<f64> = conformations.iter().copied().cycle().take(rows * 66).collect();
        let (mut energy, mut forces) = (vec![0.0; rows], vec![0.0; rows * 66]);
        let seconds = seconds_per_row(rows, || {
            molecule.force_field().evaluate(black_box(&positions), &mut energy, &mut forces);
            black_box((&energy, &forces));
        });
        println!(
            "alanine dipeptide, batches of {rows}: {:.0} energy+force evaluations per processor-second",
            1.0 / seconds
        );
    }
    let rows = 32;
    let mut x = Batch::zeros(rows, 63);
    molecule.mean_free().to_mean_free(&conformations[..rows * 66], x.as_mut_slice());
    let mut out = Evaluation::zeros(rows, 63);
    let seconds =
        seconds_per_row(rows, || molecule.evaluate(black_box(&x), &mut out).expect("a valid batch"));
    println!("as a target, batches of {rows}: {:.0} evaluations per processor-second", 1.0 / seconds);

    let path = Temperatures { reference: 1200.0, target: 300.0 };
    let samples = [ChainSamples { beta: 1.0, points: &x }];
    let flow = TemperatureScaling::fit(&molecule, path, &samples).expect("means");
    let (pairs, mut log_det) = (vec![Interval { lower: 0.5, upper: 0.6 }; rows], vec![0.0; rows]);
    let seconds = seconds_per_row(rows, || {
        flow.forward(&pairs, &mut x, &mut log_det, &mut Scratch::default()).expect("a valid batch");
        flow.inverse(&pairs, &mut x, &mut log_det, &mut Scratch::default()).expect("a valid batch");
    });
    println!("temperature scaling, batches of {rows}: {:.0} transports per processor-second", 2.0 / seconds);
}
