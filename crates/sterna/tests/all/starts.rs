//! Starts from which nothing leads away: local moves too long for where a replica lies, journeys that end nowhere.

use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Scratch};
use sterna::explorers::{Hmc, StepSize};
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna::{Batch, Evaluation, Result, Schedule, Target};

/// Journeys far from the target end nowhere; close to it they stay where they are.
struct ShortSighted {
    sight: f64,
}

impl Accelerator for ShortSighted {
    fn steps(&self) -> usize {
        1
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        let before = journey.points.log_density.clone();
        let mut ends = Vec::new();
        direction.ends(&call.rows.interval, &mut ends);
        call.path.evaluate(&ends, &mut journey.points)?;
        for (i, here) in before.into_iter().enumerate() {
            let is_far = journey.points.x.row(i).iter().any(|x| x.abs() > self.sight);
            let weight = direction.log_weight(here, journey.points.log_density[i]);
            journey.log_weight[i] = if is_far { f64::NAN } else { weight };
        }
        Ok(())
    }
}

/// log π = −10⁴ Σ xᵢ⁴: a step that suits the middle is far too long where a start from N(0, I) lies.
struct Quartic;

impl Target for Quartic {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for (i, x) in x.iter_rows().enumerate() {
            out.log_density[i] = x.iter().map(|x| -1e4 * x.powi(4)).sum();
            out.score.row_mut(i).iter_mut().zip(x).for_each(|(score, x)| *score = -4e4 * x.powi(3));
        }
        Ok(())
    }
}

/// How many of 20 ladders have the target chain where it started, after so much burn-in.
fn stranded(burn_in: u64) -> usize {
    let path = Arc::new(Geometric::from_standard_normal(Quartic));
    let schedule = Schedule::new(vec![0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0]).unwrap();
    let ensembles = 20;
    let sizes = vec![0.5, 0.3, 0.15, 0.1, 0.05, 0.03];
    let settings = Settings {
        explorer: std::sync::Arc::new(Hmc { step_size: StepSize::PerChain(sizes), ..Hmc::default() }),
        chains: 6,
        ensembles,
        rounds: 0,
        burn_in,
        iterations: 1,
        ..Settings::default()
    };
    let accelerator = Arc::new(ShortSighted { sight: 0.3 });
    let mut run = Run::accelerated(path, settings, Acceleration::Kept(accelerator, schedule)).unwrap();
    run.complete().unwrap();
    let far = |x: &[f64]| x.iter().any(|x| x.abs() > 0.3);
    run.take_draws().iter().filter(|draws| far(&draws.x)).count()
}

#[test]
fn no_ladder_stays_where_it_started() {
    assert!(stranded(0) > 5);
    assert_eq!(stranded(400), 0);
}
