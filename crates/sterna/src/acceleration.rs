//! How a run comes by its accelerator: none, one given from the start, or one fitted to samples.

mod choice;
mod collecting;
mod guarded;

use crate::lanes::one::{exp, ln};
pub use crate::records::{Rate, SwapsSeen};
pub use choice::{Candidate, Choice, Choose, FirstBlock, InSlices, Moved, PLAIN, Prospect, Trainee, Weighed};
pub(crate) use collecting::CollectRecord;
pub use guarded::{Guarded, JUDGES, judged_rejections, partly_plain};

use crate::accelerator::Accelerator;
use crate::accelerators::{Cmcd, CmcdSteps, FlowAccelerator, Identity};
use crate::error::BadState;
use crate::estimates::Seen;
use crate::path::AnnealingPath;
use crate::schedule::cumulative_barrier;
use crate::transport::Drift;
use crate::transports::{Affine, Monotone};
use crate::{Batch, Result, Schedule};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What carries the proposals of swaps.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::{Acceleration, FitAffine};
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Gmm};
/// let path = Arc::new(Geometric::from_standard_normal(Gmm::paper(2)));
/// let acceleration = Acceleration::Fitted(Arc::new(FitAffine { full: true }));
/// let run = Run::accelerated(path, Settings::default(), acceleration).unwrap();
/// assert_eq!(run.sampler().accelerator.steps(), 0); // plain swaps until there are samples
/// ```
#[derive(Clone)]
pub enum Acceleration {
    /// Nothing: parallel tempering.
    None,
    /// Known before the run; the schedule is tuned with it, on rejection rates.
    Given(Arc<dyn Accelerator>),
    /// Made earlier for one schedule, which the run then keeps: tuning adapts local moves alone.
    Kept(Arc<dyn Accelerator>, Schedule),
    /// Made from samples of the tuned ladder, then frozen.
    Fitted(Arc<dyn Fit>),
}

impl Acceleration {
    pub(crate) fn at_start(&self) -> Arc<dyn Accelerator> {
        match self {
            Self::Given(accelerator) | Self::Kept(accelerator, _) => accelerator.clone(),
            Self::None | Self::Fitted(_) => Arc::new(Identity),
        }
    }

    /// The same, for swaps on a path.
    pub(crate) fn on(&self, path: &Arc<dyn AnnealingPath>) -> Self {
        match self {
            Self::Fitted(fit) => Self::Fitted(fit.on(path).unwrap_or_else(|| fit.clone())),
            other => other.clone(),
        }
    }
}

/// Samples of all chains at a frozen schedule, with what tuning learned of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collected {
    /// Which fit of the run this is, from 0: later ones see samples that earlier accelerators carried.
    pub round: usize,
    /// The schedule they were drawn at.
    pub schedule: Schedule,
    /// Samples of each chain.
    pub samples: Vec<Batch>,
    /// The path's score at each of them, where the fit asked for scores; empty else.
    pub scores: Vec<Batch>,
    /// λ(β) at each chain.
    pub local_barrier: Vec<f64>,
    /// 1/E(score²) of each coordinate on each chain: its local variance.
    pub local_variance: Batch,
    /// What swaps cost and brought meanwhile, and how long the run is to go on.
    pub prospect: Prospect,
}

/// Whether a fit is worth its samples.
pub enum Attempt {
    /// Collects so many iterations.
    Collect(u64),
    /// Leaves it at this, without samples.
    Leave(Box<Fitted>),
}

/// Makes an accelerator from samples, step by step. It remembers nothing: all that a fit knows is in the
/// samples, in what the round before made, and in the fit under way, so that a run can stop at any step.
pub trait Fit: Send + Sync {
    /// The same fit for swaps on another path: that which a run has come to, where its reference was fitted. None where it
    /// makes no difference to the fit.
    fn on(&self, _path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        None
    }

    /// Whether chains may move between its rounds, to where the swaps so far would be rejected equally often.
    fn moves_chains(&self) -> bool {
        true
    }

    /// Whether samples are to come with the path's scores at them.
    fn wants_scores(&self) -> bool {
        false
    }

    /// Iterations of which samples are worth collecting, at most so many: asked at the end of tuning, on its schedule, and again whenever
    /// as many have been collected.
    fn collects(&self, most: u64, _schedule: &Schedule, _prospect: &Prospect) -> Attempt {
        Attempt::Collect(most)
    }

    /// Begins a fit; `earlier` is what the round before made of its own samples.
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>>;

    /// What a finished fit made, again from its record. The report comes back empty.
    fn rebuild(&self, record: &[u8]) -> Result<Fitted>;

    /// The same for chains that lie elsewhere; none where it cannot be had there.
    fn rebuild_at(&self, _record: &[u8], _schedule: &Schedule) -> Result<Option<Fitted>> {
        Ok(None)
    }

    /// Where chains are to move from their schedule, for what was made to be rejected equally often by all pairs, and what was made for
    /// chains there: by the swaps that burn-in has seen or, before it, by what held-out samples promise.
    fn follow(
        &self,
        _fitted: &Fitted,
        _schedule: &Schedule,
        _seen: Option<&SwapsSeen>,
    ) -> Result<Option<(Schedule, Fitted)>> {
        Ok(None)
    }

    /// Whether what the run's first block shows of its swaps may change it once more.
    fn looks_again(&self) -> bool {
        false
    }

    /// What goes on by what the first block has shown.
    fn look_again(&self, fitted: &Fitted, _schedule: &Schedule, _seen: &SwapsSeen) -> Result<Verdict> {
        Ok(Verdict::Here(fitted.clone()))
    }
}

/// What follows from a run's first block, whose draws do not count.
pub enum Verdict {
    /// Chains stay, and this carries their swaps.
    Here(Fitted),
    /// Chains had moved in vain: they go back to where this was made for, and burn-in begins anew.
    Back(Schedule, Fitted),
}

/// A fit under way.
pub trait Fitting: Send {
    /// Steps made and steps in all.
    fn progress(&self) -> (u64, u64);

    /// The loss that the steps so far came to, where there is one.
    fn loss(&self) -> Option<f64> {
        None
    }

    /// Makes at most so many steps. How they are cut never changes a bit.
    fn advance(&mut self, most: u64) -> Result<()>;

    /// What the steps came to.
    fn finish(self: Box<Self>) -> Result<Fitted>;

    /// The same, for swaps on a path, by which a guard may judge it.
    fn finish_on(self: Box<Self>, _path: &dyn AnnealingPath) -> Result<Fitted> {
        self.finish()
    }

    /// All that is needed to go on later from the beginning of a fit to the same samples.
    fn save(&self) -> Result<Vec<u8>>;

    /// Goes on from there.
    fn restore(&mut self, saved: &[u8]) -> Result<()>;
}

/// What a fit made.
#[derive(Clone)]
pub struct Fitted {
    /// Carries the proposals of swaps from now on.
    pub accelerator: Arc<dyn Accelerator>,
    /// A learned path in place of the old one; the schedule is then tuned again.
    pub path: Option<Arc<dyn AnnealingPath>>,
    /// Enough for [`Fit::rebuild`]. Of a trained transport: its weights, as a file holds them.
    pub record: Arc<[u8]>,
    /// What the fit did.
    pub report: FitReport,
}

/// What a fit did, over all rounds so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// Steps of the optimiser, where there is one.
    pub steps: u64,
    /// Mean loss of each twentieth of the last round's steps.
    pub losses: Vec<f64>,
    /// Likewise of the steps that made the round-trip loss small, where there were any.
    pub fine_tuning_losses: Vec<f64>,
    /// The step of the last round whose weights were kept, or from which the round-trip loss went on, where held-out samples found later
    /// ones surely worse.
    pub kept_step: Option<u64>,
    /// Each pair on held-out samples, after the last round.
    pub pairs: Vec<PairReport>,
    /// Where the samples of the target chain lay that the last round was trained on.
    pub seen: Option<Seen>,
    /// Points at which the target was evaluated inside losses.
    pub target_evaluations: u64,
    /// Points at which a network was evaluated inside losses.
    pub network_evaluations: u64,
    /// What a person should know: a short name, and what was seen.
    pub alarms: Vec<(String, String)>,
    /// What was weighed, where there was a choice.
    pub choice: Option<Choice>,
}

/// Rejection rates of a pair on samples that the fit did not see.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// With the transport.
    pub rejection: f64,
    /// With the plain swap.
    pub plain_rejection: f64,
    /// Whether the plain swap was chosen.
    pub plain: bool,
}

impl PairReport {
    /// The rejection rate of what was chosen.
    pub fn used(&self) -> f64 {
        if self.plain { self.plain_rejection } else { self.rejection }
    }
}

/// A fit by formula, in one go. Its record is the samples themselves.
pub trait FitAtOnce: Send + Sync {
    /// The accelerator for this ladder.
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>>;

    /// That for chains on another schedule, where the samples tell enough of it.
    fn fit_at(&self, _collected: &Collected, _schedule: &Schedule) -> Result<Option<Arc<dyn Accelerator>>> {
        Ok(None)
    }
}

/// The samples that are the record of a fit by formula.
fn recorded(record: &[u8]) -> Result<Collected> {
    let collected: Collected =
        postcard::from_bytes(record).map_err(|e| BadState::Unreadable(e.to_string()))?;
    match collected.is_sound(collected.schedule.chains(), collected.local_variance.dim()) {
        true => Ok(collected),
        false => Err(BadState::Contradiction.into()),
    }
}

impl<F: FitAtOnce> Fit for F {
    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let record = postcard::to_allocvec(&*collected).map_err(|e| BadState::Unreadable(e.to_string()))?;
        Ok(Box::new(AtOnce(self.rebuild(&record)?)))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let accelerator = self.fit(&recorded(record)?)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }

    fn rebuild_at(&self, record: &[u8], schedule: &Schedule) -> Result<Option<Fitted>> {
        let report = FitReport::default();
        let made = self.fit_at(&recorded(record)?, schedule)?;
        Ok(made.map(|accelerator| Fitted { accelerator, path: None, record: record.into(), report }))
    }
}

/// Was done when it began.
struct AtOnce(Fitted);

impl Fitting for AtOnce {
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }

    fn advance(&mut self, _most: u64) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Fitted> {
        Ok(self.0)
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _saved: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Moment-matched affine maps.
#[derive(Clone, Copy, Debug)]
pub struct FitAffine {
    /// Whether to match covariances, or variances alone.
    pub full: bool,
}

impl FitAtOnce for FitAffine {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        let affine = Affine::fit(collected.schedule.betas(), &collected.samples, self.full)?;
        Ok(Arc::new(FlowAccelerator::new(Arc::new(affine))))
    }

    fn fit_at(&self, collected: &Collected, schedule: &Schedule) -> Result<Option<Arc<dyn Accelerator>>> {
        let affine = Affine::fit(collected.schedule.betas(), &collected.samples, self.full)?;
        Ok(Some(Arc::new(FlowAccelerator::new(Arc::new(affine.at(schedule.betas())?)))))
    }
}

/// Monotone maps of each coordinate.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::{Acceleration, FitMonotone};
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::ManyWell};
/// let path = Arc::new(Geometric::from_standard_normal(ManyWell::new(4)));
/// let run = Run::accelerated(path, Settings::default(), Acceleration::Fitted(Arc::new(FitMonotone))).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FitMonotone;

impl FitAtOnce for FitMonotone {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        let maps = Monotone::fit(collected.schedule.betas(), &collected.samples)?;
        Ok(Arc::new(FlowAccelerator::new(Arc::new(maps))))
    }
}

/// A controlled diffusion with a known drift, its noise scaled to the ladder.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::{Acceleration, FitCmcd};
/// use sterna::accelerators::NoDrift;
/// let fit = FitCmcd { drift: Arc::new(NoDrift), steps: 2, noise: 0.1 };
/// let acceleration = Acceleration::Fitted(Arc::new(fit));
/// ```
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

impl FitAtOnce for FitCmcd {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        // 2σ²/K is the step's variance, between those at the two chains.
        let of = |[lower, upper]: &[f64; 2]| 0.5 * self.steps as f64 * (lower * upper).sqrt();
        let noise: Vec<f64> = collected.step_variances(self.noise).iter().map(of).collect();
        Ok(Arc::new(Cmcd { steps: CmcdSteps::linear(self.drift.clone(), self.steps, &noise)? }))
    }
}

impl Collected {
    /// Some of the samples, one in so many, with all else as it was.
    pub(crate) fn of_rows(&self, rows: std::ops::Range<usize>, stride: usize) -> Self {
        let of = |samples: &Batch| {
            let chosen = rows.clone().step_by(stride).flat_map(|i| samples.row(i)).copied();
            Batch::from_vec(samples.dim(), chosen.collect())
        };
        let [samples, scores] = [&self.samples, &self.scores].map(|all| all.iter().map(of).collect());
        Self { samples, scores, ..self.clone() }
    }

    /// Whether all parts belong to so many chains: a file may claim anything.
    pub(crate) fn is_sound(&self, chains: usize, dim: usize) -> bool {
        let rows = self.samples.first().map_or(0, Batch::rows);
        self.schedule.chains() == chains
            && self.samples.len() == chains
            && rows > 1
            && dim > 0
            && [0, chains].contains(&self.scores.len())
            && self.samples.iter().chain(&self.scores).all(|b| b.dim() == dim && b.rows() == rows)
            && self.local_barrier.len() == chains
            && (self.local_variance.rows(), self.local_variance.dim()) == (chains, dim)
    }

    /// Variance of a step of each pair at its lower and at its upper chain: `noise` · (local variance) ·
    /// (barrier of the pair).
    pub fn step_variances(&self, noise: f64) -> Vec<[f64; 2]> {
        let barrier = cumulative_barrier(self.schedule.betas(), &self.local_barrier);
        let variance = |chain: usize| {
            let row = self.local_variance.row(chain);
            exp(row.iter().map(|v| ln(*v)).sum::<f64>() / row.len() as f64)
        };
        (1..self.schedule.chains())
            .map(|n| {
                let share = noise * (barrier[n] - barrier[n - 1]).clamp(1e-12, 1.0);
                [n - 1, n].map(|chain| share * variance(chain))
            })
            .collect()
    }
}
