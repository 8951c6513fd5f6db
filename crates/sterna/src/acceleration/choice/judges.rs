//! Journeys from held-out samples: how often swaps would be rejected, and how often journeys ask the target.

use crate::acceleration::guarded::{OF_JUDGES, rejections};
use crate::accelerator::{Accelerator, Crossing, Direction};
use crate::path::{AnnealingPath, Points};
use crate::streams::Streams;
use crate::{Batch, Result, Schedule};
use serde::{Deserialize, Serialize};

/// Samples of every chain that no candidate was fitted to, evaluated.
pub(super) struct Judges<'a> {
    path: &'a dyn AnnealingPath,
    schedule: &'a Schedule,
    streams: Streams,
    starts: Vec<Points>,
    /// Evaluations that the starts took.
    asked: u64,
}

/// What they saw of one way to carry swaps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Judged {
    /// K.
    pub steps: usize,
    /// `[pair][judge]`.
    rejections: Vec<Vec<f64>>,
    /// Of a journey.
    pub evaluations: f64,
    /// Of all journeys, and of their starts.
    pub asked: u64,
    /// Why there was nothing to see.
    pub refused: Option<String>,
}

impl<'a> Judges<'a> {
    pub fn new(
        path: &'a dyn AnnealingPath,
        schedule: &'a Schedule,
        held_out: Vec<Batch>,
        seed: u64,
    ) -> Result<Self> {
        let before = path.evaluations();
        let evaluated = |(x, &beta): (Batch, &f64)| -> Result<Points> {
            let mut points = Points::zeros(x.rows(), x.dim());
            points.x = x;
            path.evaluate(&vec![beta; points.rows()], &mut points)?;
            Ok(points)
        };
        let starts = held_out.into_iter().zip(schedule.betas()).map(evaluated).collect::<Result<_>>()?;
        let asked = path.evaluations() - before;
        Ok(Self { path, schedule, streams: Streams::new(seed ^ OF_JUDGES), starts, asked })
    }

    /// Swaps of all pairs.
    pub fn judge(&self, accelerator: &dyn Accelerator) -> Result<Judged> {
        let Self { path, schedule, streams, .. } = self;
        let crossing = Crossing { accelerator, path: *path, schedule, streams };
        let before = path.evaluations();
        let travel = |pair: usize, direction: Direction| -> Result<Vec<f64>> {
            let chain = if direction == Direction::Forward { pair - 1 } else { pair };
            Ok(crossing.cross(pair, direction, pair as u64, self.starts[chain].clone())?.log_weight)
        };
        let of_pair = |pair: usize| -> Result<Vec<f64>> {
            Ok(rejections(&travel(pair, Direction::Forward)?, &travel(pair, Direction::Backward)?))
        };
        let rejections = (1..=schedule.pairs()).map(of_pair).collect::<Result<Vec<_>>>()?;
        let asked = path.evaluations() - before;
        let journeys: usize = rejections.iter().map(|pair| 2 * pair.len()).sum();
        let evaluations = asked as f64 / journeys.max(1) as f64;
        Ok(Judged {
            steps: accelerator.steps(),
            rejections,
            evaluations,
            asked: asked + self.asked,
            refused: None,
        })
    }
}

impl Judged {
    /// One that could not be had.
    pub fn refused(why: String) -> Self {
        Self { refused: Some(why), ..Self::default() }
    }

    /// Rejection rate of each pair.
    pub fn mean(&self) -> Vec<f64> {
        self.rejections.iter().map(|pair| mean(pair.iter().copied())).collect()
    }

    /// Σ r/(1 − r).
    pub fn odds(&self) -> f64 {
        self.mean().iter().map(|r| r.clamp(0.0, 0.999)).map(|r| r / (1.0 - r)).sum()
    }

    /// A standard error of each pair's difference from plain swaps, which the same judges saw.
    pub fn uncertainty(&self, plain: &Self) -> Vec<f64> {
        let of_pair = |(ours, plain): (&Vec<f64>, &Vec<f64>)| {
            let difference = || ours.iter().zip(plain).map(|(a, b)| a - b);
            let centre = mean(difference());
            (mean(difference().map(|d| (d - centre).powi(2))) / ours.len() as f64).sqrt()
        };
        self.rejections.iter().zip(&plain.rejections).map(of_pair).collect()
    }

    /// Whether all belongs to so many pairs: a file may claim anything.
    pub fn is_sound(&self, pairs: usize) -> bool {
        let wanted = if self.refused.is_some() { 0 } else { pairs };
        self.rejections.len() == wanted
    }
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = numbers.len() as f64;
    numbers.sum::<f64>() / n
}
