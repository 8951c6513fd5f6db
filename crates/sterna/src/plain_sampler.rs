//! A trained transport as a sampler of its own, for comparison: no swaps, hence no correction (§6, "CMCD" and
//! "Diffusion").

use crate::accelerator::{Accelerator, Crossing, Direction};
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, Streams};
use crate::{Batch, Result, Schedule};

/// Draws `n` points of the reference and carries each by the forward kernels through all pairs of the schedule.
///
/// The end points follow the target only as well as the kernels do: nothing rejects. Pair n uses the random
/// numbers of iteration n, so the streams should be of another seed than those of a run to compare with.
///
/// ```
/// use std::sync::Arc;
/// use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator};
/// use sterna::{Schedule, Streams, paths::Diffused, plain_sampler, targets::Normal};
///
/// let path = Diffused::exact(Arc::new(Normal::isotropic(1, 4.0))).unwrap();
/// let steps = DiffusionSteps::new(20, Integrator::Exponential).unwrap();
/// let schedule = Schedule::uniform(5);
/// let x = plain_sampler(&path, &schedule, &Diffusion { steps }, &Streams::new(3), 1000).unwrap();
/// let variance = x.as_slice().iter().map(|x| x * x).sum::<f64>() / 1000.0;
/// assert!((variance - 0.25).abs() < 0.08); // six standard errors and the steps' own bias
/// ```
pub fn plain_sampler(
    path: &dyn AnnealingPath,
    schedule: &Schedule,
    accelerator: &dyn Accelerator,
    streams: &Streams,
    n: usize,
) -> Result<Batch> {
    let keys: Vec<u32> = (0..n as u32).collect();
    let mut points = Points::zeros(n, path.dim());
    path.draw_reference(0.0, streams, Phase::Reference.into(), 0, &keys, &mut points.x);
    path.evaluate(&vec![0.0; n], &mut points)?;
    let crossing = Crossing { accelerator, path, schedule, streams };
    for pair in 1..=schedule.pairs() {
        points = crossing.cross(pair, Direction::Forward, pair as u64, points)?.points;
    }
    Ok(points.x)
}
