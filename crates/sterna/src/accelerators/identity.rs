//! K = 0: nothing moves. That is parallel tempering.

use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Scratch};

/// The identity: w(x) = π̃ⁿ(x) / π̃ⁿ⁻¹(x) (eq. 3). On the geometric path it asks the target nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl Accelerator for Identity {
    fn steps(&self) -> usize {
        0
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Journey { points, log_weight } = journey;
        let beta = scratch.get::<Vec<f64>>();
        log_weight.copy_from_slice(&points.log_density);
        direction.ends(&call.rows.interval, beta);
        call.path.move_to(beta, points)?;
        for (log_weight, there) in log_weight.iter_mut().zip(&points.log_density) {
            *log_weight = direction.log_weight(*log_weight, *there);
        }
        Ok(())
    }
}
