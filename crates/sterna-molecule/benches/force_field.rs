//! Energy+force evaluations of alanine dipeptide per processor-second, on one thread.
//!
//! `cargo bench -p sterna-molecule` prints a line per batch size; `scripts/molecule/against_openmm.py`
//! runs OpenMM beside it.

use std::hint::black_box;
use std::time::Instant;
use sterna_molecule::{ForceField, System, read_positions};

/// Seconds this thread has computed, where the system tells (others' load does not count); else wall time.
fn processor_seconds(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| 1e-9 * nanoseconds)
}

fn main() {
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/alanine-dipeptide");
    let system = System::read_xml(format!("{assets}/system.xml")).expect("the System of the project");
    let conformations =
        read_positions(format!("{assets}/reference.json"), system.atoms()).expect("its conformations");
    let force_field = ForceField::new(&system).expect("a valid system");
    let dim = 3 * system.atoms();
    let start = Instant::now();
    for rows in [32, 4, 8, 256] {
        let positions: Vec<f64> = conformations.iter().copied().cycle().take(rows * dim).collect();
        let (mut energy, mut forces) = (vec![0.0; rows], vec![0.0; rows * dim]);
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let calls = 40_000 / rows;
            let before = processor_seconds(start);
            for _ in 0..calls {
                force_field.evaluate(black_box(&positions), &mut energy, &mut forces);
                black_box((&energy, &forces));
            }
            best = best.min((processor_seconds(start) - before) / (calls * rows) as f64);
        }
        println!(
            "alanine dipeptide, batches of {rows}: {:.0} energy+force evaluations per processor-second",
            1.0 / best
        );
    }
}
