//! Fitting the reference between rounds of tuning: climbs first, then rounds that double, each with a new reference,
//! schedule, masses and number of chains; a second leg to the anchor keeps what the fit has not seen within reach.

use super::ladder::Ladder;
use super::{Run, Settings, Stage};
use crate::acceleration::CollectRecord;
use crate::estimates::effective_sample_size;
use crate::explorer::Tuning;
use crate::fitted::{
    Component, Covariance, Found, Mixture, Optimum, Shape, Starts, find_optima, optimum_near, widen,
};
use crate::path::AnnealingPath;
use crate::paths::{Geometric, Reference};
use crate::records::Counts;
use crate::schedule::Schedule;
use crate::streams::{Phase, Streams};
use crate::{Batch, Error, Evaluation, Result, Target};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a reference is fitted.
///
/// ```
/// use sterna::run::FitReference;
/// let alone = FitReference { anchor: false, ..FitReference::default() };
/// assert!(FitReference::default().anchor && !alone.anchor);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitReference {
    /// Covariances of its normals; if not given, what suits the dimension.
    pub covariance: Option<Covariance>,
    /// At most so many normals; if not given, one for each optimum that climbs find.
    pub components: Option<usize>,
    /// Whether a second leg leads to the broad reference that the path was given with.
    pub anchor: bool,
}

impl Default for FitReference {
    fn default() -> Self {
        Self { covariance: None, components: None, anchor: true }
    }
}

/// A reference on its way, and what it is made of.
pub(super) struct Fitted {
    /// From the anchor to the target, as the run was given it.
    pub ground: Arc<Geometric>,
    pub state: State,
}

/// What is known of the reference so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// None before the climbs.
    pub mixture: Option<Mixture>,
    /// Means and standard deviations of the anchor, widened to what climbs found.
    pub anchor: (Vec<f64>, Vec<f64>),
    /// What climbs found.
    pub optima: Vec<Optimum>,
    /// Whether the second leg was given up, since it would take too many chains.
    pub anchor_dropped: bool,
    /// Barriers of the legs at the end of each round.
    pub barriers: Vec<[f64; 2]>,
    /// Whether tuning has come to rest.
    pub settled: bool,
}

impl State {
    /// Whether all parts belong to points of this length: a file may claim anything.
    pub fn is_sound(&self, dim: usize) -> bool {
        let (mean, deviation) = &self.anchor;
        (mean.len(), deviation.len()) == (dim, dim)
            && deviation.iter().all(|d| *d > 0.0 && d.is_finite())
            && self.mixture.as_ref().is_none_or(|mixture| mixture.dim() == dim)
            && self.optima.iter().all(|optimum| optimum.mean.len() == dim)
    }
}

/// Chains of the first leg while nothing is known of it; more where no climb has found an optimum.
const FIRST_CHAINS: usize = 3;
const FIRST_CHAINS_UNFITTED: usize = 8;
/// Chains beyond the target while nothing is known of them, and at most.
const FIRST_BEYOND: usize = 4;
const MOST_BEYOND: usize = 8;
/// A second leg with a larger barrier cannot be carried by the chains that it may have.
const MOST_BARRIER_BEYOND: f64 = 7.0;
/// Share of evaluations that the second leg may take where the first one does better.
const SHARE_BEYOND: f64 = 0.35;
/// Draws of the anchor that tell whether most of the mass lies there rather than around the optima.
const SOUNDINGS: usize = 64;

impl Fitted {
    pub fn new(ground: Arc<Geometric>) -> Result<Self> {
        let Some((mean, deviation)) = ground.reference().as_normal() else {
            let cure =
                "the anchor of a fitted reference is a normal with a mean and deviation of each coordinate";
            return Err(Error::setting("Settings.fit", "another reference", cure));
        };
        let state = State { anchor: (mean.to_vec(), deviation.to_vec()), ..State::default() };
        Ok(Self { ground, state })
    }

    /// The path between reference and anchor as they are now.
    pub fn path(&self, settings: &Settings) -> Result<Arc<dyn AnnealingPath>> {
        let Some(mixture) = &self.state.mixture else { return Ok(self.ground.clone()) };
        let anchor = self.has_anchor(settings).then(|| {
            let (mean, deviation) = self.state.anchor.clone();
            Reference::normal(mean, deviation)
        });
        Ok(Arc::new(self.ground.between(Reference::mixture(mixture.clone()), anchor)?))
    }

    fn has_anchor(&self, settings: &Settings) -> bool {
        let wanted = settings.fit.as_ref().is_some_and(|fit| fit.anchor);
        wanted && !self.state.anchor_dropped && self.is_apart()
    }

    /// Whether the reference is another than the anchor: without an optimum it begins there.
    fn is_apart(&self) -> bool {
        let (mean, deviation) = &self.state.anchor;
        let same = |c: &Component| c.mean == *mean && c.shape == Shape::Diagonal(deviation.clone());
        self.state.mixture.as_ref().is_some_and(|mixture| !mixture.components().iter().all(same))
    }

    /// Masses of local moves on each chain: the reference's, on the way to the anchor's beyond the target.
    fn masses(&self, schedule: &Schedule) -> Vec<Shape> {
        let Some(mixture) = &self.state.mixture else { return Vec::new() };
        let (own, anchor) = (mixture.pooled_shape(), Shape::Diagonal(self.state.anchor.1.clone()));
        let at = |&beta: &f64| if beta <= 1.0 { own.clone() } else { own.towards(&anchor, beta - 1.0) };
        schedule.betas().iter().map(at).collect()
    }
}

impl Run {
    /// Climbs, and the first reference from what they find.
    pub(super) fn climb(&mut self) -> Result<()> {
        let Some(reference) = &mut self.reference else { return Ok(()) };
        let fit = self.settings.fit.clone().unwrap_or_default();
        let (mean, deviation) = reference.state.anchor.clone();
        let starts = Starts { mean: &mean, deviation: &deviation };
        let covariance = fit.covariance.unwrap_or_else(|| Covariance::for_dim(mean.len()));
        let streams = &self.ladder.sampler.streams;
        let found = find_optima(reference.ground.target(), starts, streams, covariance)?;
        let sounded = sound(reference.ground.target(), reference.ground.reference(), streams)?;
        reference.state.anchor.1 = widen(starts, found.that_matter());
        let Found { mixture, optima, .. } = found;
        let mixture = match fit.components {
            Some(most) if most < optima.len() => Some(Mixture::of_optima(&optima[..most])?),
            _ => mixture,
        };
        let evidence = optima.iter().fold(f64::NEG_INFINITY, |most, optimum| most.max(optimum.log_evidence));
        // A spike that holds next to nothing, as in the neck of a funnel, is no place to begin.
        let mixture = mixture.filter(|_| evidence > sounded - 3.0);
        let found = mixture.is_some();
        reference.state.mixture = Some(match mixture {
            Some(mixture) => mixture,
            None => {
                let (mean, deviation) = reference.state.anchor.clone();
                Mixture::normal(mean, Shape::Diagonal(deviation))?
            }
        });
        reference.state.optima = optima;
        let path = reference.path(&self.settings)?;
        let first = Schedule::uniform(if found { FIRST_CHAINS } else { FIRST_CHAINS_UNFITTED });
        let schedule = match reference.has_anchor(&self.settings) {
            true => Schedule::two_legs(&first, &steep(FIRST_BEYOND + 1)),
            false if found => first,
            false => steep(FIRST_CHAINS_UNFITTED),
        };
        self.ladder.begin_again(path, schedule)?;
        let lost = self.ladder.shards.iter().all(|shard| shard.ensemble.is_lost());
        if lost && sounded == f64::NEG_INFINITY {
            let draws = usize::try_from(self.asked().target).unwrap_or(usize::MAX);
            return Err(Error::NoStart { draws });
        }
        self.rest_second_leg([1.0, 3.0]);
        self.hand_over_masses();
        self.enter(Stage::Tuning(0));
        Ok(())
    }

    /// End of a round: reference, schedule, number of chains and masses follow what it saw.
    pub(super) fn refit(&mut self, round: usize) -> Result<()> {
        self.adapt(1.0);
        self.ladder.measure_barrier();
        let trace = self.trace_round();
        self.progress.rounds.push(trace);
        let barriers = self.ladder.barrier.of_legs();
        let (draws, log_density, effective) = self.draws_of_round();
        let dim = self.ladder.dim();
        let acceptance = self.acceptance_of_round();
        let Some(reference) = &mut self.reference else { return Ok(()) };
        let covariance = self.settings.fit.as_ref().and_then(|fit| fit.covariance);
        let covariance = covariance.unwrap_or_else(|| Covariance::for_dim(dim));
        let before = reference.state.barriers.last().copied();
        reference.state.barriers.push(barriers);
        if let Some(mixture) = &mut reference.state.mixture {
            if let Some(place) = mixture.uncovered(&draws, &log_density) {
                let target = reference.ground.target();
                if let (Some(optimum), _) = optimum_near(target, draws.row(place), mixture, covariance)? {
                    *mixture = mixture.with_optimum(&optimum)?;
                    reference.state.optima.push(optimum);
                }
            }
            *mixture = mixture.refit(&draws, effective, covariance);
        }
        let enough = effective > 40.0 + 3.0 * dim as f64 || round + 1 >= self.settings.rounds;
        let quiet = before.is_some_and(|before| (before[0] - barriers[0]).abs() < 0.1 + 0.1 * barriers[0]);
        reference.state.settled = round >= 2 && enough && quiet && acceptance > 0.4;
        self.lay_out(barriers)
    }

    /// Chains and schedule that suit the barriers of both legs.
    fn lay_out(&mut self, barriers: [f64; 2]) -> Result<()> {
        let Some(reference) = &mut self.reference else { return Ok(()) };
        let last = reference.state.settled;
        if last && barriers[1] > MOST_BARRIER_BEYOND {
            reference.state.anchor_dropped = true;
        }
        let path = reference.path(&self.settings)?;
        let two = reference.has_anchor(&self.settings);
        let most = self.settings.chains.max(if two { 3 } else { 2 });
        let (measured, beyond) = (&self.ladder.barrier, self.ladder.sampler.schedule.legs() == 2);
        let first = measured.equalised(0, chains_for(barriers[0], most - usize::from(two)));
        let schedule = match (two, beyond) {
            (true, true) => {
                let beyond = MOST_BEYOND.min(most.saturating_sub(first.chains())).max(1);
                let second = measured.equalised(1, chains_for(barriers[1], beyond + 1));
                Schedule::two_legs(&first, &second)
            }
            (true, false) => Schedule::two_legs(&first, &steep(FIRST_BEYOND + 1)),
            _ => first,
        };
        self.ladder.lay_out(path, schedule)?;
        self.rest_second_leg(barriers);
        self.hand_over_masses();
        Ok(())
    }

    /// The second leg moves seldom where the first one brings more restarts for its evaluations.
    fn rest_second_leg(&mut self, barriers: [f64; 2]) {
        let schedule = &self.ladder.sampler.schedule;
        let pairs = [schedule.target(), schedule.pairs() - schedule.target()];
        let cost = pairs.map(|pairs| 1.0 + 2.0 * pairs as f64);
        let rate = |leg: usize| {
            let rejection = (barriers[leg] / pairs[leg].max(1) as f64).min(0.98);
            1.0 / (2.0 + 2.0 * pairs[leg] as f64 * rejection / (1.0 - rejection)) / cost[leg]
        };
        let every = if pairs[1] == 0 || rate(1) > 0.5 * rate(0) {
            1
        } else {
            (cost[1] * (1.0 - SHARE_BEYOND) / (SHARE_BEYOND * cost[0])).ceil().min(99.0) as u64
        };
        self.ladder.rest(every);
    }

    fn hand_over_masses(&mut self) {
        let Some(reference) = &self.reference else { return };
        let shapes = reference.masses(&self.ladder.sampler.schedule);
        self.ladder.adapt(&Tuning::Masses { shapes: &shapes });
    }

    /// The target's draws of the last three quarters of a round, their log densities, and how many they are worth.
    fn draws_of_round(&self) -> (Batch, Vec<f64>, f64) {
        let (dim, target) = (self.ladder.dim(), self.ladder.sampler.schedule.target());
        let records = self.ladder.shards.iter().map(|shard| &shard.collecting);
        let late = |(points, values): (&'_ [f64], &'_ [f64])| {
            let skip = values.len() / 4;
            (points[skip * dim..].to_vec(), values[skip..].to_vec())
        };
        let ladders: Vec<_> = CollectRecord::of_target(records, target).into_iter().map(late).collect();
        let of_coordinate = |j: usize| {
            let series = |(points, _): &(Vec<f64>, Vec<f64>)| {
                points.iter().skip(j).step_by(dim).copied().collect::<Vec<f64>>()
            };
            let series: Vec<Vec<f64>> = ladders.iter().map(series).collect();
            effective_sample_size(&series.iter().map(|s| &s[..]).collect::<Vec<_>>())
        };
        // One that never moves says nothing of the others.
        let known = (0..dim).map(of_coordinate).filter(|effective| effective.is_finite());
        let effective = known.fold(f64::INFINITY, f64::min);
        let effective = if effective.is_finite() { effective } else { ladders.len() as f64 };
        let (points, values): (Vec<_>, Vec<_>) = ladders.into_iter().unzip();
        (Batch::from_vec(dim, points.concat()), values.concat(), effective)
    }

    /// Of the chain of the first leg that moves least.
    fn acceptance_of_round(&self) -> f64 {
        let (chains, target) = (self.ladder.chains(), self.ladder.sampler.schedule.target());
        let all = Counts::acceptance(self.ladder.tuning_counts(), chains);
        all.into_iter().take(target + 1).filter(|a| a.is_finite()).fold(1.0, f64::min)
    }

    /// Optima that climbs found, where a reference was fitted.
    pub fn optima(&self) -> &[Optimum] {
        self.reference.as_ref().map_or(&[], |reference| &reference.state.optima)
    }

    /// The fitted reference, where there is one by now.
    pub fn mixture(&self) -> Option<&Mixture> {
        self.reference.as_ref().and_then(|reference| reference.state.mixture.as_ref())
    }

    /// Whether the second leg was given up, since it would have taken too many chains.
    pub fn anchor_dropped(&self) -> bool {
        self.reference.as_ref().is_some_and(|reference| reference.state.anchor_dropped)
    }
}

/// log of the mean weight of some draws of a reference: a lower bound of log Z, more or less.
fn sound(target: &dyn Target, reference: &Reference, streams: &Streams) -> Result<f64> {
    let mut x = Batch::zeros(SOUNDINGS, target.dim());
    let keys: Vec<u32> = (0..SOUNDINGS as u32).collect();
    reference.draw(streams, Phase::Start.into(), 2, &keys, &mut x);
    let mut answer = Evaluation::zeros(SOUNDINGS, target.dim());
    target.evaluate(&x, &mut answer)?;
    let (mut score, mut work) = (vec![0.0; target.dim()], Vec::new());
    let weights = x.iter_rows().zip(&answer.log_density);
    let weights = weights.map(|(x, log_target)| log_target - reference.evaluate(x, &mut score, &mut work));
    let weights: Vec<f64> = weights.filter(|w| *w < f64::INFINITY).collect();
    let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return Ok(top);
    }
    Ok(top + (weights.iter().map(|w| (w - top).exp()).sum::<f64>() / SOUNDINGS as f64).ln())
}

/// Half of all swaps are accepted with twice the barrier in chains: the most round trips per chain.
fn chains_for(barrier: f64, most: usize) -> usize {
    let wanted = if barrier < 0.5 { 2.0 } else { (2.0 * barrier).ceil() + 1.0 };
    if wanted.is_finite() { (wanted as usize).clamp(2, most) } else { most }
}

/// A first schedule for a broad reference: dense near it, where the density changes fastest.
fn steep(chains: usize) -> Schedule {
    let last = (chains - 1) as f64;
    let betas = (0..chains).map(|n| (n as f64 / last).powi(4)).collect();
    Schedule::new(betas).expect("powers increase from 0 to 1")
}

impl Ladder {
    /// The leg beyond the target moves in every so many iterations.
    fn rest(&mut self, every: u64) {
        self.shards.iter_mut().for_each(|shard| shard.ensemble.rest(every));
    }
}
