//! Accelerators with one fault each: a suite that lets them pass is no suite.

use std::sync::Arc;
use sterna::accelerator::{Accelerator, Direction, Journey};
use sterna::accelerators::{CmcdSteps, GaussianSteps};
use sterna::call::{Call, Rows, Scratch};
use sterna::path::Points;
use sterna::{Batch, Result};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Backward paths are weighed the wrong way round.
    FlippedRatio,
    /// All paths are, so that a swap accepts by w(x′)/w(x), as printed (errata E1).
    PrintedRatio,
    /// Forward log-weights are off by this much times the first coordinate of the end point, as by a
    /// forgotten log-determinant.
    MissingJacobian(f64),
    /// All log-weights are off by this constant. Swaps do not notice; log Z does.
    MissingConstant(f64),
    /// Forward end points are off by this much in the first coordinate, and the weight is not told.
    BiasedEnd(f64),
    /// End points are not evaluated at the chain they go to.
    StaleEnd,
    /// A row's weight depends on its neighbour in the batch, by a trifle.
    LeakyRows,
    /// One weight in a hundred is not a number.
    NotANumber,
}

impl Fault {
    /// One of each, of sizes that matter.
    pub const ALL: [Fault; 8] = [
        Fault::FlippedRatio,
        Fault::PrintedRatio,
        Fault::MissingJacobian(0.3),
        Fault::MissingConstant(0.1),
        Fault::BiasedEnd(0.15),
        Fault::StaleEnd,
        Fault::LeakyRows,
        Fault::NotANumber,
    ];
}

/// An accelerator with a fault.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{Schedule, accelerators::Identity};
/// use sterna_testkit::broken::{Broken, Fault};
/// use sterna_testkit::{FALSE_ALARM, GaussianLadder, check_accelerator};
///
/// let twin = Broken { inner: Arc::new(Identity), fault: Fault::FlippedRatio };
/// check_accelerator(&twin, &GaussianLadder::uneven(2), &Schedule::uniform(3), 1, FALSE_ALARM).assert_caught();
/// ```
pub struct Broken {
    /// The sound one.
    pub inner: Arc<dyn Accelerator>,
    /// What is wrong with this one.
    pub fault: Fault,
}

impl Accelerator for Broken {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let before = journey.points.log_density.clone();
        self.inner.travel(direction, call, journey, scratch)?;
        let Journey { points, log_weight, .. } = journey;
        let rows = points.rows();
        match self.fault {
            Fault::FlippedRatio if direction == Direction::Forward => {}
            Fault::FlippedRatio | Fault::PrintedRatio => log_weight.iter_mut().for_each(|w| *w = -*w),
            Fault::MissingJacobian(_) | Fault::BiasedEnd(_) if direction == Direction::Backward => {}
            Fault::MissingJacobian(size) => {
                log_weight.iter_mut().zip(points.x.iter_rows()).for_each(|(w, x)| *w += size * x[0]);
            }
            Fault::MissingConstant(size) => log_weight.iter_mut().for_each(|w| *w += size),
            Fault::BiasedEnd(shift) => {
                (0..rows).for_each(|i| points.x.row_mut(i)[0] += shift);
                let betas: Vec<f64> = call.rows.interval.iter().map(|interval| interval.upper).collect();
                call.path.evaluate(&betas, points)?;
            }
            Fault::StaleEnd => points.log_density = before,
            Fault::LeakyRows => {
                (0..rows).for_each(|i| log_weight[i] += 1e-12 * points.x.row((i + 1) % rows)[0]);
            }
            Fault::NotANumber => {
                log_weight.iter_mut().zip(&call.rows.key).for_each(|(w, key)| {
                    if key % 100 == 1 {
                        *w = f64::NAN;
                    }
                });
            }
        }
        Ok(())
    }
}

/// Goes up by the kernels of one accelerator and down by those of another. Each may be sound; what is
/// weighed on the way up is not what is done on the way down.
pub struct Mismatched {
    /// Travels forward.
    pub forward: Arc<dyn Accelerator>,
    /// Travels backward.
    pub backward: Arc<dyn Accelerator>,
}

impl Accelerator for Mismatched {
    fn steps(&self) -> usize {
        self.forward.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let one = match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        };
        one.travel(direction, call, journey, scratch)
    }
}

/// The printed backward mean x − Δs (σ² ∇U − b) in place of x + Δs (σ² ∇U − b) (errata E6).
///
/// Still exact, so that no test of invariance objects: it is what a swap gains that it takes away.
pub struct PrintedSign(pub CmcdSteps);

impl GaussianSteps for PrintedSign {
    fn steps(&self) -> usize {
        self.0.steps()
    }

    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.0.betas(rows, k, out);
    }

    fn variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.0.variances(rows, k, out);
    }

    fn backward_variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.0.backward_variances(rows, k, out);
    }

    fn control(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.0.control(rows, k, points, out, scratch)
    }

    fn forward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.0.forward_means(rows, k, points, control, out)
    }

    fn backward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.0.backward_means(rows, k, points, control, out)?;
        for (out, x) in out.as_mut_slice().iter_mut().zip(points.x.as_slice()) {
            *out = 2.0 * x - *out;
        }
        Ok(())
    }
}
