//! Which transport pays, pair by pair: closed forms are judged on samples held out from them and weighed with what they cost; what
//! is trained, is trained in growing slices as long as what it may save covers the next one; the mixture whose draws cost
//! least is frozen.
//!
//! Costs are counted, not timed: evaluations of the target, and multiply-adds at so many an evaluation. So the same seed makes
//! the same choice on any machine, and a run that goes on makes it again.

mod balance;
mod choosing;
mod first_block;
mod following;
mod judges;
mod pick;
mod prospect;
mod slices;

pub use first_block::FirstBlock;
pub use following::Moved;
pub use prospect::Prospect;
pub use slices::{InSlices, Trainee};

use super::{Attempt, Collected, Fit, FitReport, Fitted, Fitting, PairReport, SwapsSeen, Verdict};
use crate::accelerator::Accelerator;
use crate::accelerators::{Identity, InTurn, PerPair};
use crate::error::BadState;
use crate::path::AnnealingPath;
use crate::{Result, Schedule};
use balance::PLAIN_SHARE;
use choosing::Choosing;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A transport in closed form that may pay.
#[derive(Clone)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// Makes it.
    pub fit: Arc<dyn Fit>,
    /// Multiply-adds of a journey, the target's left aside.
    pub operations: f64,
}

/// A fit that chooses among plain swaps and transports, pair by pair.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::{Acceleration, Candidate, Choose, FitAffine};
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(3, 400.0)));
/// let fit = Arc::new(FitAffine { full: false });
/// let affine = Candidate { name: "affine".into(), fit, operations: 6.0 };
/// let (candidates, trainees) = (vec![affine], Vec::new());
/// let choose = Choose { path: path.clone(), candidates, trainees, evaluation: 100.0, seed: 1, most_chains: None };
/// let settings = Settings { chains: 4, collect: 500, iterations: 50_000, ..Settings::default() };
/// let mut run = Run::accelerated(path, settings, Acceleration::Fitted(Arc::new(choose))).unwrap();
/// run.complete().unwrap();
/// // Between normals an affine map rejects nothing.
/// let choice = run.fit_report().unwrap().choice.clone().unwrap();
/// assert_eq!(choice.of_pair, [1, 1, 1]);
/// assert!(choice.gain > 1.1);
/// ```
#[derive(Clone)]
pub struct Choose {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// What may carry swaps beside plain ones.
    pub candidates: Vec<Candidate>,
    /// What may do so once it is trained.
    pub trainees: Vec<Trainee>,
    /// Multiply-adds that an evaluation of the target is worth.
    pub evaluation: f64,
    /// Of the judges' noise, for transports that have some.
    pub seed: u64,
    /// Chains that there may be at most once transports carry their swaps; none where their number is to stay.
    pub most_chains: Option<usize>,
}

/// What was weighed, and what was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Plain swaps, and the transports beside them.
    pub weighed: Vec<Weighed>,
    /// Which of them carries each pair.
    pub of_pair: Vec<usize>,
    /// Draws for their cost, as many times those of plain swaps, that held-out samples promise.
    pub gain: f64,
    /// Multiply-adds that an evaluation of the target was taken to be worth.
    pub evaluation: f64,
    /// Evaluations that judging took.
    pub evaluations: u64,
    /// Why there was nothing to choose.
    pub reason: Option<String>,
    /// Whether chains have moved to where the chosen transports are rejected equally often, and where they were before.
    pub moved: Option<Moved>,
    /// What the run's first block has shown of its swaps, once it is over.
    pub first_block: Option<FirstBlock>,
    /// What plain swaps cost and brought as it was made.
    pub prospect: Prospect,
}

/// A way to carry swaps, weighed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weighed {
    /// What it is called.
    pub name: String,
    /// K.
    pub steps: usize,
    /// Rejection rate of each pair on held-out samples.
    pub rejection_rates: Vec<f64>,
    /// How much worse each may be than it looks: a standard error of its difference from the plain swap.
    pub uncertainty: Vec<f64>,
    /// Evaluations of the target that a journey takes.
    pub evaluations: f64,
    /// Multiply-adds of a journey, the target's left aside.
    pub operations: f64,
    /// Steps that it was trained for.
    pub trained: u64,
    /// Draws for their cost, as many times those of plain swaps, if it carried all pairs.
    pub gain: f64,
    /// Why it could not be had.
    pub refused: Option<String>,
}

impl Weighed {
    /// What a journey costs, in evaluations of the target that are worth so many multiply-adds each.
    fn journey(&self, evaluation: f64) -> f64 {
        self.evaluations + self.operations / evaluation
    }
}

/// What plain swaps are called.
pub const PLAIN: &str = "plain";
/// Nothing is tried where even swaps without rejections would bring less, beside the draws of plain ones.
const WORTH_TRYING: f64 = 1.3;
/// A mixture that promises less than this, beside plain swaps, is not worth the risk that held-out samples flatter it.
const LEAD: f64 = 1.1;
/// Share of the iterations to come in which samples are collected.
const COLLECTING: f64 = 0.05;
/// Samples of a chain below which nothing can be fitted and judged.
const FEWEST_SAMPLES: f64 = 400.0;
/// One of so many proposals is plain where a transport carries the others: held-out samples show how often it rejects on the whole, not
/// the few points from which it hardly ever leaves.
const PLAIN_TURNS: u64 = 8;

/// Samples, of all ladders together, that show how fast local moves are where nobody has counted.
const PILOT: f64 = 200.0;

/// What a choice came to.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Which way carries each pair, from 0 for plain swaps.
    of_pair: Vec<usize>,
    /// The records of those in use.
    ways: Vec<(usize, Vec<u8>)>,
    /// Where chains are and were, if they have moved.
    moved: Option<Moved>,
}

/// What carries the ways in use, by their numbers.
type Made = Vec<(usize, Fitted)>;

impl Choose {
    /// The accelerator of a choice.
    fn mixture(&self, of_pair: &[usize], made: &[(usize, Arc<dyn Accelerator>)]) -> Arc<dyn Accelerator> {
        let ways = std::iter::once(Arc::new(Identity) as Arc<dyn Accelerator>);
        let ways: Vec<_> = ways.chain(made.iter().map(|(_, accelerator)| accelerator.clone())).collect();
        let place =
            |way: &usize| made.iter().position(|(other, _)| other == way).map_or(0, |place| place + 1);
        let of_pair: Vec<usize> = of_pair.iter().map(place).collect();
        let carried = match of_pair.first() {
            None | Some(0) if of_pair.iter().all(|way| *way == 0) => return Arc::new(Identity),
            Some(&first) if of_pair.iter().all(|way| *way == first) => ways[first].clone(),
            _ => Arc::new(PerPair::among(ways, of_pair)),
        };
        Arc::new(InTurn::new(carried, PLAIN_TURNS))
    }

    /// What a finished choice made.
    fn made(&self, choice: Choice, fits: Made, report: FitReport) -> Result<Fitted> {
        let ways = fits.iter().map(|(way, fitted)| (*way, fitted.record.to_vec())).collect();
        let record = Record { of_pair: choice.of_pair.clone(), ways, moved: choice.moved.clone() };
        let record = postcard::to_allocvec(&record).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let made: Vec<_> = fits.into_iter().map(|(way, fitted)| (way, fitted.accelerator)).collect();
        let accelerator = self.mixture(&choice.of_pair, &made);
        let pairs = if choice.moved.is_some() { Vec::new() } else { choice.pairs() };
        let report = FitReport { pairs, choice: Some(choice), ..report };
        Ok(Fitted { accelerator, path: None, record: record.into(), report })
    }

    /// What makes a way again: plain swaps are 0, then come closed forms, then what is trained.
    fn maker(&self, way: usize) -> Result<Arc<dyn Fit>> {
        let trainee = |way: usize| self.trainees.get(way.checked_sub(self.candidates.len() + 1)?);
        match (way.checked_sub(1).and_then(|n| self.candidates.get(n)), trainee(way)) {
            (Some(closed), _) => Ok(closed.fit.clone()),
            (None, Some(trainee)) => trainee.training.slice(1),
            (None, None) => Err(BadState::Contradiction.into()),
        }
    }

    /// Which way carries each pair, and all ways of a record, for the chains where they are.
    fn read(&self, record: &[u8]) -> Result<(Vec<usize>, Made)> {
        let Record { of_pair, ways, moved } = Record::read(record)?;
        let made = match &moved {
            Some(Moved { to, .. }) => self.made_at(&ways, to)?.ok_or(BadState::Contradiction)?,
            None => self.made_again(&ways)?,
        };
        Ok((of_pair, made))
    }

    /// Ways from their records, for the chains that they were fitted to.
    fn made_again(&self, ways: &[(usize, Vec<u8>)]) -> Result<Made> {
        let rebuilt = |(way, record): &(usize, Vec<u8>)| Ok((*way, self.maker(*way)?.rebuild(record)?));
        ways.iter().map(rebuilt).collect()
    }
}

impl Record {
    fn read(record: &[u8]) -> Result<Self> {
        let record: Self = postcard::from_bytes(record).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let kept = |way: &usize| *way == 0 || record.ways.iter().any(|(other, _)| other == way);
        let before = record.moved.iter().flat_map(|moved| &moved.of_pair);
        match record.of_pair.iter().chain(before).all(kept) {
            true => Ok(record),
            false => Err(BadState::Contradiction.into()),
        }
    }
}

impl Choice {
    /// As other fits say it: pairs with the transport that was chosen, or with the one that rejects least.
    fn pairs(&self) -> Vec<PairReport> {
        let pair = |(n, &way): (usize, &usize)| {
            let of = |weighed: &Weighed| weighed.rejection_rates.get(n).copied().unwrap_or(f64::NAN);
            let others = self.weighed.iter().skip(1).map(of);
            let rejection = if way > 0 { of(&self.weighed[way]) } else { others.fold(f64::NAN, f64::min) };
            PairReport { rejection, plain_rejection: of(&self.weighed[0]), plain: way == 0 }
        };
        self.of_pair.iter().enumerate().map(pair).collect()
    }

    /// Nothing was tried.
    fn of_nothing(pairs: usize, evaluation: f64, reason: String) -> Self {
        Self { of_pair: vec![0; pairs], gain: 1.0, evaluation, reason: Some(reason), ..Self::default() }
    }
}

impl Fit for Choose {
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        let on = |candidate: &Candidate| Candidate {
            fit: candidate.fit.on(path).unwrap_or_else(|| candidate.fit.clone()),
            ..candidate.clone()
        };
        let candidates = self.candidates.iter().map(on).collect();
        let trainee = |trainee: &Trainee| Trainee { training: trainee.training.on(path), ..trainee.clone() };
        let trainees = self.trainees.iter().map(trainee).collect();
        Some(Arc::new(Self { path: path.clone(), candidates, trainees, ..self.clone() }))
    }

    fn moves_chains(&self) -> bool {
        false
    }

    fn collects(&self, most: u64, schedule: &Schedule, prospect: &Prospect) -> Attempt {
        let most_gain = prospect.most_gain();
        let wanted = (COLLECTING * prospect.ahead).min(most as f64);
        let reason = if most_gain < WORTH_TRYING {
            format!("without any rejected swap there would be {most_gain:.2} times the draws")
        } else if wanted * (prospect.ladders as f64) < FEWEST_SAMPLES {
            format!("in {:.0} iterations, all that are expected, a choice would not pay", prospect.ahead)
        } else if prospect.effective.is_none() {
            return Attempt::Collect(wanted.min((PILOT / prospect.ladders as f64).ceil()) as u64);
        } else {
            return Attempt::Collect(wanted as u64);
        };
        let choice = Choice::of_nothing(schedule.pairs(), self.evaluation, reason);
        let report = FitReport { choice: Some(choice), ..FitReport::default() };
        let (accelerator, record) = (Arc::new(Identity), Arc::new([]));
        Attempt::Leave(Box::new(Fitted { accelerator, path: None, record, report }))
    }

    fn begin(&self, collected: Arc<Collected>, _earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        Ok(Box::new(Choosing::new(self.clone(), collected)))
    }

    fn rebuild(&self, record: &[u8]) -> Result<Fitted> {
        let (of_pair, fits) = self.read(record)?;
        let made: Vec<_> = fits.into_iter().map(|(way, fitted)| (way, fitted.accelerator)).collect();
        let accelerator = self.mixture(&of_pair, &made);
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }

    fn follow(
        &self,
        fitted: &Fitted,
        schedule: &Schedule,
        seen: Option<&SwapsSeen>,
    ) -> Result<Option<(Schedule, Fitted)>> {
        self.followed(fitted, schedule, seen.map(|seen| seen.mixed(PLAIN_SHARE)))
    }

    fn looks_again(&self) -> bool {
        true
    }

    fn look_again(&self, fitted: &Fitted, schedule: &Schedule, seen: &SwapsSeen) -> Result<Verdict> {
        self.looked_at(fitted, schedule, seen)
    }
}
