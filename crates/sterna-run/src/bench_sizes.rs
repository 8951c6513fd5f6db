//! `sterna bench`: whether cost follows the work, in large batches and on two threads.

use crate::platform::processor_s;
use crate::spread::Spread;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use sterna::Target;
use sterna::explorers::{Hmc, StepSize};
use sterna::lanes::WIDTH;
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::targets::{Gmm, ManyWell};
use sterna_molecule::{Angle, Bond, Molecule, Particle, System, TemperedPath};

/// Atoms of a molecule that takes a tenth of a millisecond or so.
const ATOMS: usize = 400;

/// What was measured; the fewest of several tries, since other programs only ever slow one down.
#[derive(Debug, Serialize)]
pub(crate) struct Sizes {
    /// Processor time of a coordinate, 30 chains of ManyWell-3200: 8 ladders to one.
    ladders_8_to_1: f64,
    /// Processor time of a chain, 1,000 chains to 100.
    chains_1000_to_100: [OfChains; 3],
    /// Milliseconds of an evaluation of a molecule …
    molecule_ms: f64,
    /// … of which one ladder of 16 chains is so many times as fast on two threads as on one.
    molecule_two_threads_to_one: f64,
}

#[derive(Debug, Serialize)]
struct OfChains {
    target: &'static str,
    ratio: f64,
}

/// Ladders and how long they run.
#[derive(Clone, Copy)]
struct Size {
    chains: usize,
    ladders: usize,
    iterations: u64,
}

/// Seconds of an iteration of a row, and of a processor.
fn of_a_row(path: &Arc<dyn AnnealingPath>, size: Size, threads: usize) -> (f64, f64) {
    let Size { chains, ladders, iterations } = size;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let explorer = Arc::new(Hmc { step_size: StepSize::Fixed(1e-4), ..Hmc::default() });
        let (rounds, round_iterations, round_burn_in, burn_in) = (1, 4, 1, 2);
        let ensembles = ladders;
        let settings = Settings {
            chains,
            ensembles,
            explorer,
            rounds,
            round_iterations,
            round_burn_in,
            burn_in,
            iterations,
            ..Settings::default()
        };
        let mut run = Run::new(path.clone(), settings).expect("a good start");
        while run.progress().0 != Stage::Sampling {
            run.advance(u64::MAX).expect("a built-in target");
        }
        let (clock, processor) = (Instant::now(), processor_s());
        run.complete().expect("a built-in target");
        let rows = (chains * ladders) as f64 * iterations as f64;
        (clock.elapsed().as_secs_f64() / rows, (processor_s() - processor) / rows)
    })
}

/// The fewest processor-seconds of a row for each of two sizes, tried in turns so that both meet the same neighbours.
fn processor_ratio(path: &Arc<dyn AnnealingPath>, [small, large]: [Size; 2]) -> f64 {
    let fewest = |(a, b): (f64, f64), _| {
        let of = |size| of_a_row(path, size, 1).1;
        (a.min(of(small)), b.min(of(large)))
    };
    let (small, large) = (0..5).fold((f64::INFINITY, f64::INFINITY), fewest);
    large / small
}

impl Sizes {
    pub(crate) fn measured() -> Self {
        let path = |target: Arc<dyn Target>| -> Arc<dyn AnnealingPath> {
            Arc::new(Geometric::from_standard_normal(target))
        };
        let sizes = |chains, ladders, iterations| Size { chains, ladders, iterations };
        let wide = path(Arc::new(ManyWell::new(3200)));
        let ladders_8_to_1 = processor_ratio(&wide, [sizes(30, 1, 160), sizes(30, 8, 20)]);
        let targets: [(&str, Arc<dyn Target>, u64); 3] = [
            ("GMM-10", Arc::new(Gmm::paper(10)), 400),
            ("GMM-100", Arc::new(Gmm::paper(100)), 100),
            ("ManyWell-320", Arc::new(ManyWell::new(320)), 40),
        ];
        let chains_1000_to_100 = targets.map(|(target, density, iterations)| {
            let few = sizes(100, 1, 10 * iterations);
            OfChains { target, ratio: processor_ratio(&path(density), [few, sizes(1000, 1, iterations)]) }
        });
        let (molecule_ms, molecule_two_threads_to_one) = molecule_on_threads();
        Self { ladders_8_to_1, chains_1000_to_100, molecule_ms, molecule_two_threads_to_one }
    }

    pub(crate) fn print(&self) {
        println!(
            "ManyWell-3200, 30 chains: a coordinate costs {:.2} in 8 ladders of what it does in one",
            self.ladders_8_to_1
        );
        for OfChains { target, ratio } in &self.chains_1000_to_100 {
            println!("{target}: a chain costs {ratio:.2} among 1,000 of what it does among 100");
        }
        println!(
            "a molecule of {:.2} ms an evaluation, one ladder of 16 chains: 2 threads to 1 {:.2}",
            self.molecule_ms, self.molecule_two_threads_to_one
        );
    }
}

/// Milliseconds of an evaluation, and two threads to one.
fn molecule_on_threads() -> (f64, f64) {
    let molecule = Arc::new(zigzag(ATOMS));
    let size = Size { chains: 16, ladders: 1, iterations: 40 };
    let (mut one, mut two) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        for (threads, fewest) in [(1, &mut one), (2, &mut two)] {
            let shared = Spread::together(molecule.clone(), 1, WIDTH);
            let path = TemperedPath::new(molecule.clone(), 1200.0).expect("hotter than the target");
            let path: Arc<dyn AnnealingPath> = Arc::new(path.asking(Arc::new(shared)));
            *fewest = fewest.min(of_a_row(&path, size, threads).0);
        }
    }
    (1e3 * one / Hmc::default().leapfrog_steps as f64, one / two)
}

/// A chain of atoms in a plane.
fn zigzag(atoms: usize) -> Molecule {
    let particle = Particle { charge: 0.0, sigma: 0.1, epsilon: 0.1 };
    let system = System {
        masses: vec![12.0; atoms],
        bonds: (1..atoms).map(|i| Bond { atoms: [i - 1, i], length: 0.15, stiffness: 2e5 }).collect(),
        angles: (2..atoms)
            .map(|i| Angle { atoms: [i - 2, i - 1, i], angle: 1.855, stiffness: 400.0 })
            .collect(),
        particles: vec![particle; atoms],
        ..System::default()
    };
    let positions: Vec<f64> =
        (0..atoms).flat_map(|i| [0.12 * i as f64, if i % 2 == 0 { 0.0 } else { 0.09 }, 0.0]).collect();
    Molecule::new(system, &positions, 300.0).expect("atoms apart")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::{Batch, Evaluation};

    #[test]
    fn a_zigzag_is_a_molecule() {
        let molecule = zigzag(7);
        let (x, mut out) = (Batch::from_vec(18, molecule.start().to_vec()), Evaluation::zeros(1, 18));
        molecule.evaluate(&x, &mut out).unwrap();
        assert!(out.log_density[0].is_finite() && out.score.as_slice().iter().all(|s| s.abs() < 10.0));
    }
}
