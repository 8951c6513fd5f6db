//! An explorer: a Markov kernel that leaves π^β of each row alone, and adapts itself between rounds.

use std::sync::Arc;
use sterna::call::{Call, Scratch};
use sterna::explorer::{Explorer, Moved, Tuning};
use sterna::{Batch, Points, Result, Schedule};
use sterna_testkit::moves::explore;
use sterna_testkit::{ExactLadder, FALSE_ALARM, GaussianLadder, Statistic, Verdict, check_invariance};

/// A random walk whose step size follows the acceptance.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Standard deviation of a step.
    pub step: f64,
    /// The twin accepts every step.
    greedy: bool,
}

impl Explorer for Walk {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        // Memory is kept by the caller: the loop allocates nothing.
        let (there, steps, uniforms) = scratch.get::<(Points, Batch, Vec<f64>)>();
        there.gather_state(points, &call.rows.row);
        steps.set_size(there.rows(), there.x.dim());
        uniforms.resize(there.rows(), 0.0);
        // The library hands out random numbers, each slot once.
        call.normals(call.slots.take(), steps);
        call.uniforms(call.slots.take(), uniforms);
        for (x, z) in there.x.as_mut_slice().iter_mut().zip(steps.as_slice()) {
            *x += self.step * z;
        }
        call.path.evaluate(&call.rows.beta, there)?;
        for (i, &row) in call.rows.row.iter().enumerate() {
            let log_ratio = there.log_density[i] - points.log_density[row];
            moved.rows[i].proposed += 1;
            moved.rows[i].acceptance += log_ratio.min(0.0).exp();
            // A NaN compares as false, so that such a proposal is rejected.
            uniforms[i] = log_ratio - uniforms[i].ln();
        }
        points.scatter(&call.rows.row, there, |i| self.greedy || uniforms[i] > 0.0);
        Ok(())
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        let Tuning::Block { acceptance, gain } = tuning else { return None };
        let seen: Vec<f64> = acceptance.iter().copied().filter(|a| a.is_finite()).collect();
        let mean = seen.iter().sum::<f64>() / seen.len().max(1) as f64;
        Some(Arc::new(Self { step: self.step * (gain * (mean - 0.3)).exp(), ..self.clone() }))
    }
}

fn check(explorer: &Walk) -> Verdict {
    let (ladder, schedule) = (GaussianLadder::uneven(2), Schedule::uniform(3));
    let path = ladder.path();
    check_invariance(
        |streams| ladder.draw_ladder(&schedule, streams, 6000),
        explore(&*path, schedule.betas(), explorer),
        &Statistic::ladder(&path, schedule.betas()),
        1,
        FALSE_ALARM,
    )
}

#[test]
fn it_keeps_its_law_and_the_twin_does_not() {
    check(&Walk { step: 0.7, greedy: false }).assert_passed();
    check(&Walk { step: 0.7, greedy: true }).assert_caught();
}

#[test]
fn steps_grow_where_most_are_accepted() {
    let walk = Walk { step: 0.7, greedy: false };
    let sizes = |acceptance: f64| {
        let adapted = walk.adapt(&Tuning::Block { acceptance: &[f64::NAN, acceptance], gain: 1.0 });
        format!("{:?}", adapted.expect("it adapts"))
    };
    assert!(sizes(0.3).contains("step: 0.7,"), "{}", sizes(0.3));
    assert_ne!(sizes(0.9), sizes(0.3));
}
