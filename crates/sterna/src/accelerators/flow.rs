//! Deterministic transports: an invertible map per pair (§5.1, App. D.1).

use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Scratch};
use crate::transport::Flow;
use std::sync::Arc;

/// Any [`Flow`] as an accelerator of one step:
/// w = π̃ⁿ(T(x)) / π̃ⁿ⁻¹(x) · |det ∂T/∂x|.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{Batch, accelerators::FlowAccelerator, transports::Affine};
/// let samples = [0.0, 1.0].map(|shift| Batch::from_vec(1, vec![shift, shift + 1.0, shift - 1.0]));
/// let affine = Affine::fit(&[0.0, 1.0], &samples, false).unwrap();
/// let accelerator = FlowAccelerator::new(Arc::new(affine));
/// ```
#[derive(Clone)]
pub struct FlowAccelerator {
    flow: Arc<dyn Flow>,
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    beta: Vec<f64>,
    log_det: Vec<f64>,
    of_flow: Scratch,
}

impl FlowAccelerator {
    /// Carries proposals by `flow`.
    pub fn new(flow: Arc<dyn Flow>) -> Self {
        Self { flow }
    }
}

impl Accelerator for FlowAccelerator {
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
        let Memory { beta, log_det, of_flow } = scratch.get();
        log_weight.copy_from_slice(&points.log_density);
        log_det.resize(log_weight.len(), 0.0);
        let pairs = &call.rows.interval;
        direction.ends(pairs, beta);
        match direction {
            Direction::Forward => self.flow.forward(pairs, &mut points.x, log_det, of_flow)?,
            Direction::Backward => self.flow.inverse(pairs, &mut points.x, log_det, of_flow)?,
        }
        call.path.evaluate(beta, points)?;
        for ((log_weight, there), log_det) in log_weight.iter_mut().zip(&points.log_density).zip(log_det) {
            *log_weight = direction.log_weight(*log_weight, *there + *log_det);
        }
        Ok(())
    }
}
