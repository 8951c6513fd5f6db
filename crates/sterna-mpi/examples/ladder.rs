//! One ladder on all ranks: what an iteration takes, and a number made of all draws, which must not hang on how many ranks there are.
//!
//! `mpirun -n 4 target/debug/examples/ladder CHAINS MICROSECONDS ITERATIONS`: so many chains, each of whose evaluations sleeps so long,
//! which stands for ranks with a machine each.

#![expect(clippy::disallowed_methods, reason = "it measures time, and its target takes some")]

use std::sync::Arc;
use std::time::{Duration, Instant};
use sterna::exchange::Exchange;
use sterna::explorers::{Hmc, StepSize};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings, Stage};
use sterna::targets::Normal;
use sterna::{Batch, Evaluation, Result, Target};

/// A normal that takes its time.
struct Sleeps(Normal, Duration);

impl Target for Sleeps {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        if !self.1.is_zero() {
            std::thread::sleep(self.1 * x.rows() as u32);
        }
        self.0.evaluate(x, out)
    }
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let mut next = |otherwise| numbers.next().unwrap_or(otherwise);
    let (chains, sleep, iterations) = (next(16), Duration::from_micros(next(5000)), next(200));
    let world = Arc::new(sterna_mpi::World::start()?);
    let step = Hmc { leapfrog_steps: 1, step_size: StepSize::Fixed(0.3), ..Hmc::default() };
    let settings = Settings {
        chains: chains as usize,
        explorer: Arc::new(step),
        rounds: 0,
        burn_in: 20,
        iterations,
        ..Settings::default()
    };
    let path = Geometric::from_standard_normal(Sleeps(Normal::isotropic(4, 4.0), sleep));
    let mut run = Run::new(Arc::new(path), settings)?.among(world.clone())?;
    while run.progress().0 != Stage::Sampling {
        run.advance(u64::MAX)?;
    }
    let clock = Instant::now();
    run.complete()?;
    let seconds = clock.elapsed().as_secs_f64();
    run.gather()?;
    if world.rank() == 0 {
        let draws = run.records().flat_map(|record| &record.draws).flat_map(|draws| &draws.x);
        let all = draws.fold(0u64, |all, x| all.rotate_left(5) ^ x.to_bits());
        let each = 1e3 * seconds / iterations as f64;
        println!("{:3} ranks: {each:8.4} ms an iteration; draws {all:016x}", world.ranks());
    }
    world.end(0);
    Ok(())
}
