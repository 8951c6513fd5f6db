//! Coordinates that a transport learns and travels in: those in which the run's reference is N(0, I), or nearly so.

use std::sync::Arc;
use sterna::lanes::one;

use sterna::Batch;
use sterna::acceleration::Collected;
use sterna::accelerator::Accelerator;
use sterna::accelerators::Framed;
use sterna::fitted::Shape;
use sterna::frame::Frame;
use sterna::path::{AnnealingPath, Points};

use crate::{Error, Result};

/// The frame of a path's reference; none where that is N(0, I), or not known. The one of a prior is that of the samples. Of
/// particles all coordinates have one width and no place, so that they can still be turned and exchanged.
pub(crate) fn frame_of(
    path: &dyn AnnealingPath,
    collected: &Collected,
    particles: bool,
) -> Result<Option<Arc<Frame>>> {
    let Some(reference) = path.as_geometric().map(|path| path.reference()) else { return Ok(None) };
    if reference.is_standard() {
        return Ok(None);
    }
    let frame = match reference.frame() {
        Some(frame) => frame,
        None => Frame::of_samples(&collected.samples).map_err(of_library)?,
    };
    let dim = frame.dim();
    let frame = match particles {
        true => {
            let width = one::exp(frame.log_volume() / dim as f64);
            Frame::new(vec![0.0; dim], Shape::Diagonal(vec![width; dim])).map_err(of_library)?
        }
        false => frame,
    };
    Ok(Some(Arc::new(frame)))
}

/// The same samples in the coordinates of a frame.
pub(crate) fn seen_from(
    frame: Option<&Arc<Frame>>,
    path: &dyn AnnealingPath,
    collected: &Arc<Collected>,
) -> Result<Arc<Collected>> {
    let Some(frame) = frame else { return Ok(collected.clone()) };
    Ok(Arc::new(Collected {
        samples: collected.samples.iter().map(|samples| frame.standardised(samples)).collect(),
        local_variance: local_variance(frame, path, collected)?,
        ..(**collected).clone()
    }))
}

fn of_library(error: sterna::Error) -> Error {
    Error::Host(error.to_string())
}

/// Samples of a chain at which its score is asked for.
const ASKED: usize = 64;

/// 1/E(score²) of each coordinate of z on each chain.
fn local_variance(frame: &Frame, path: &dyn AnnealingPath, collected: &Collected) -> Result<Batch> {
    let mut out = collected.local_variance.clone();
    if let Shape::Diagonal(deviations) = frame.shape() {
        for i in 0..out.rows() {
            out.row_mut(i).iter_mut().zip(deviations).for_each(|(v, s)| *v /= s * s);
        }
        return Ok(out);
    }
    let dim = frame.dim();
    for (chain, (&beta, samples)) in collected.schedule.betas().iter().zip(&collected.samples).enumerate() {
        let stride = samples.rows().div_ceil(ASKED);
        let rows: Vec<f64> =
            (0..samples.rows()).step_by(stride).flat_map(|i| samples.row(i)).copied().collect();
        let mut points = Points::zeros(rows.len() / dim, dim);
        points.x = Batch::from_vec(dim, rows);
        path.evaluate(&vec![beta; points.rows()], &mut points).map_err(of_library)?;
        (0..points.rows()).for_each(|i| frame.standardise_score(points.score.row_mut(i)));
        for (j, variance) in out.row_mut(chain).iter_mut().enumerate() {
            let squares: f64 = points.score.iter_rows().map(|score| score[j] * score[j]).sum();
            let found = points.rows() as f64 / squares;
            *variance = if found.is_finite() && found > 0.0 { found } else { 1.0 };
        }
    }
    Ok(out)
}

/// How far beyond their typical length scores may go before they are shortened.
const MUCH_STEEPER: f64 = 30.0;

/// The longest score that steps follow: so many times the typical length at the target, as samples seen from a frame tell it.
pub(crate) fn steepest(seen: &Collected) -> f64 {
    let at_target = seen.local_variance.row(seen.schedule.target());
    let square: f64 = at_target.iter().map(|variance| variance.recip()).sum();
    MUCH_STEEPER * if square.is_finite() { square.sqrt().max(1.0) } else { 1.0 }
}

/// An accelerator of a frame's coordinates, for points.
pub(crate) fn framed(accelerator: Arc<dyn Accelerator>, frame: Option<&Frame>) -> Arc<dyn Accelerator> {
    match frame {
        Some(frame) => Arc::new(Framed::new(accelerator, Arc::new(frame.clone()))),
        None => accelerator,
    }
}
