//! Deterministic transports: an invertible map per pair (§5.1, App. D.1).

use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey, Travellers};
use crate::path::AnnealingPath;
use crate::streams::Streams;
use crate::transport::Flow;
use std::sync::Arc;

/// Any [`Flow`] as an accelerator of one step:
/// w = π̃ⁿ(T(x)) / π̃ⁿ⁻¹(x) · |det ∂T/∂x|.
#[derive(Clone)]
pub struct FlowAccelerator {
    flow: Arc<dyn Flow>,
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
        path: &dyn AnnealingPath,
        _streams: &Streams,
        _iteration: u64,
        travellers: &Travellers,
        journey: &mut Journey,
    ) -> Result<()> {
        let Journey { points, log_weight, beta, log_det, .. } = journey;
        log_weight.copy_from_slice(&points.log_density);
        direction.ends(&travellers.interval, beta);
        match direction {
            Direction::Forward => self.flow.forward(&travellers.interval, &mut points.x, log_det)?,
            Direction::Backward => self.flow.inverse(&travellers.interval, &mut points.x, log_det)?,
        }
        path.evaluate(beta, points)?;
        for ((log_weight, there), log_det) in log_weight.iter_mut().zip(&points.log_density).zip(log_det) {
            *log_weight = direction.log_weight(*log_weight, *there + *log_det);
        }
        Ok(())
    }
}
