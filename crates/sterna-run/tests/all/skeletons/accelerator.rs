//! An accelerator: carries rows over a pair, and weighs their way.

use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::call::{Call, Scratch};
use sterna::{Result, Schedule};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};

/// Moves the first coordinate by so much for each unit of β. Volumes stay, so the weight has no Jacobian.
pub struct Shift(f64);

impl Accelerator for Shift {
    fn steps(&self) -> usize {
        1
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Journey { points, log_weight } = journey;
        // The density where it starts, before the points move.
        log_weight.copy_from_slice(&points.log_density);
        let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
        for (i, interval) in call.rows.interval.iter().enumerate() {
            points.x.row_mut(i)[0] += sign * self.0 * (interval.upper - interval.lower);
        }
        // End points are evaluated at the chain they would go to. Memory for that is kept by the caller.
        let betas = scratch.get::<Vec<f64>>();
        direction.ends(&call.rows.interval, betas);
        call.path.evaluate(betas, points)?;
        for (log_weight, end) in log_weight.iter_mut().zip(&points.log_density) {
            *log_weight = direction.log_weight(*log_weight, *end);
        }
        Ok(())
    }
}

#[test]
fn the_suite_passes_and_catches() {
    let (ladder, schedule) = (GaussianLadder::uneven(2), Schedule::uniform(3));
    let check =
        |accelerator: &dyn Accelerator| check_accelerator(accelerator, &ladder, &schedule, 1, FALSE_ALARM);
    check(&Shift(0.4)).assert_passed();
    for fault in [Fault::FlippedRatio, Fault::MissingJacobian(0.3), Fault::StaleEnd] {
        check(&Broken { inner: Arc::new(Shift(0.4)), fault }).assert_caught();
    }
}
