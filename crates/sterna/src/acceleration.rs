//! How a run comes by its accelerator: none, one given from the start, or one fitted to samples.

use crate::accelerator::Accelerator;
use crate::accelerators::{Cmcd, CmcdSteps, FlowAccelerator, Identity};
use crate::iteration::{Recorder, Step};
use crate::schedule::cumulative_barrier;
use crate::transport::Drift;
use crate::transports::Affine;
use crate::{Batch, Result, Schedule};
use std::sync::Arc;

/// What carries the proposals of swaps.
#[derive(Clone)]
pub enum Acceleration {
    /// Nothing: parallel tempering.
    None,
    /// Known before the run; the schedule is tuned with it, on rejection rates.
    Given(Arc<dyn Accelerator>),
    /// Made from samples of the tuned ladder, then frozen.
    Fitted(Arc<dyn Fit>),
}

impl Acceleration {
    pub(crate) fn at_start(&self) -> Arc<dyn Accelerator> {
        match self {
            Self::Given(accelerator) => accelerator.clone(),
            Self::None | Self::Fitted(_) => Arc::new(Identity),
        }
    }
}

/// Samples of all chains at a frozen schedule, with what tuning learned of them.
pub struct Collected<'a> {
    /// Which fit of the run this is, from 0: later ones see samples that earlier accelerators carried.
    pub round: usize,
    /// The schedule they were drawn at.
    pub schedule: &'a Schedule,
    /// Samples of each chain.
    pub samples: &'a [Batch],
    /// λ(β) at each chain.
    pub local_barrier: &'a [f64],
    /// 1/E(score²) of each coordinate on each chain: its local variance.
    pub local_variance: &'a Batch,
}

/// Makes an accelerator from samples.
pub trait Fit: Send + Sync {
    /// The accelerator for this ladder.
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>>;
}

/// Moment-matched affine maps.
#[derive(Clone, Copy, Debug)]
pub struct FitAffine {
    /// Whether to match covariances, or variances alone.
    pub full: bool,
}

impl Fit for FitAffine {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        let affine = Affine::fit(collected.schedule.betas(), collected.samples, self.full)?;
        Ok(Arc::new(FlowAccelerator::new(Arc::new(affine))))
    }
}

/// A controlled diffusion with a known drift, its noise scaled to the ladder.
#[derive(Clone)]
pub struct FitCmcd {
    /// b.
    pub drift: Arc<dyn Drift>,
    /// K.
    pub steps: usize,
    /// Variance of a step's noise relative to the local variance, per unit of barrier between the
    /// chains of a pair: the accelerator becomes the identity as a pair closes up (errata E9).
    pub noise: f64,
}

impl Fit for FitCmcd {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        // 2σ²/K is the step's variance, between those at the two chains.
        let of = |[lower, upper]: &[f64; 2]| 0.5 * self.steps as f64 * (lower * upper).sqrt();
        let noise: Vec<f64> = collected.step_variances(self.noise).iter().map(of).collect();
        Ok(Arc::new(Cmcd { steps: CmcdSteps::linear(self.drift.clone(), self.steps, &noise)? }))
    }
}

impl Collected<'_> {
    /// Variance of a step of each pair at its lower and at its upper chain: `noise` · (local variance) ·
    /// (barrier of the pair).
    pub fn step_variances(&self, noise: f64) -> Vec<[f64; 2]> {
        let barrier = cumulative_barrier(self.schedule.betas(), self.local_barrier);
        let variance = |chain: usize| {
            let row = self.local_variance.row(chain);
            (row.iter().map(|v| v.ln()).sum::<f64>() / row.len() as f64).exp()
        };
        (1..self.schedule.chains())
            .map(|n| {
                let share = noise * (barrier[n] - barrier[n - 1]).clamp(1e-12, 1.0);
                [n - 1, n].map(|chain| share * variance(chain))
            })
            .collect()
    }
}

/// Keeps every replica's point, by chain.
pub(crate) struct CollectRecord {
    chains: usize,
    /// `[copy · chains + chain]`: points one after the other.
    points: Vec<Vec<f64>>,
}

impl CollectRecord {
    pub(crate) fn new(copies: usize, chains: usize) -> Self {
        Self { chains, points: vec![Vec::new(); copies * chains] }
    }

    /// Samples of each chain, over the given ladders in order.
    pub(crate) fn samples<'a>(
        records: impl Iterator<Item = &'a Self> + Clone,
        chains: usize,
        dim: usize,
    ) -> Vec<Batch> {
        let of =
            |chain| records.clone().flat_map(move |r| r.points.iter().skip(chain).step_by(chains)).flatten();
        (0..chains).map(|chain| Batch::from_vec(dim, of(chain).copied().collect())).collect()
    }
}

impl Recorder for CollectRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        for row in 0..step.ensemble.points.rows() {
            let place = row / self.chains * self.chains + step.ensemble.chain(row);
            self.points[place].extend_from_slice(step.ensemble.points.x.row(row));
        }
        Ok(())
    }
}
