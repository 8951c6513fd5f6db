//! Fitting the reference between rounds of tuning: climbs first, then rounds that double, each with a new reference,
//! schedule, masses and number of chains; a second leg to the anchor keeps what the fit has not seen within reach.

use super::climbs::Wanted;
use super::ladder::Ladder;
use super::{Run, Settings};
use crate::acceleration::CollectRecord;
use crate::estimates::bulk_draws;
use crate::explorer::Tuning;
use crate::fitted::{
    Component, Covariance, Drawn, Endless, Found, Mixture, Optimum, Place, Shape, Standouts, Starts, Worth,
    broaden, endless, widen,
};
use crate::lanes::one::{exp, ln};
use crate::path::AnnealingPath;
use crate::paths::{Geometric, Reference};
use crate::records::Counts;
use crate::schedule::{Schedule, chains_for};
use crate::{Batch, Error, Result};
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
    /// At most so many normals; if not given, one for each optimum that climbs find, and more where draws ask for them.
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
    /// What stood out beside the reference as it is now.
    pub standouts: Option<Arc<Standouts>>,
}

/// What is known of the reference so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// None before the climbs.
    pub mixture: Option<Mixture>,
    /// Means and standard deviations of the anchor, widened to what climbs found.
    pub anchor: (Vec<f64>, Vec<f64>),
    /// What climbs found.
    pub found: Found,
    /// Evaluations of climbs after the first ones.
    pub further: u64,
    /// Evaluations at draws of the anchor after the first ones.
    pub sounded: u64,
    /// Where the density does not fall off, if that was seen.
    pub endless: Option<Endless>,
    /// Whether the second leg was given up, since it would take too many chains.
    pub anchor_dropped: bool,
    /// Effective draws of the target in an iteration of all ladders, as the last round counted them.
    pub effective_each: f64,
    /// Barriers of the legs at the end of each round.
    pub barriers: Vec<[f64; 2]>,
    /// Whether tuning has come to rest.
    pub settled: bool,
    /// Where the density was too high for the reference, or too steep; and log Z when the reference was made, if that was known.
    /// Kept up to date where it is saved.
    pub stood_out: (Option<f64>, Vec<Place>),
}

impl State {
    /// Whether all parts belong to points of this length: a file may claim anything.
    pub fn is_sound(&self, dim: usize) -> bool {
        let (mean, deviation) = &self.anchor;
        (mean.len(), deviation.len()) == (dim, dim)
            && deviation.iter().all(|d| *d > 0.0 && d.is_finite())
            && self.mixture.as_ref().is_none_or(|mixture| mixture.dim() == dim)
            && self.found.optima.iter().all(|optimum| optimum.mean.len() == dim)
            && self.stood_out.0.is_none_or(f64::is_finite)
            && self.stood_out.1.iter().all(|place| (place.point.len(), place.score.len()) == (dim, dim))
    }

    /// Whether the mixture leaves out an optimum of weight: then the way from the anchor is all that leads there.
    fn misses_an_optimum(&self) -> bool {
        let Some(mixture) = self.mixture.as_ref().filter(|_| !self.found.has_no_end()) else { return false };
        let (log_z, mut score) = (self.found.log_z(), vec![0.0; mixture.dim()]);
        let mut gap = |o: &Optimum| o.log_density - mixture.evaluate(&o.mean, &mut score, &mut Vec::new());
        self.found.weighty().any(|optimum| gap(optimum) > log_z + MISSED)
    }
}

/// By so many nats log π − log η at an optimum may exceed log Z before the mixture misses it.
const MISSED: f64 = 5.0;

/// Chains of the first leg while nothing is known of it; more where no climb has found an optimum.
pub(super) const FIRST_CHAINS: usize = 3;
pub(super) const FIRST_CHAINS_UNFITTED: usize = 8;
/// Two chains do behind a lower barrier: whatever swaps lose, no chain in between is worth its evaluations.
const TWO_CHAINS: f64 = 1.2;
/// A reference lies behind so many times the barrier that the draws which it was fitted to let expect.
const MORE: f64 = 1.3;
/// A reference behind a lower barrier is good enough as it is.
const WORTH_SPLITTING: f64 = 0.3;
/// A target that is alone with a reference makes local moves in one of so many iterations, fewer where nearly all swaps are
/// accepted: these bring new draws for one evaluation each.
const ALONE: u64 = 4;
const ALONE_AND_NEAR: u64 = 8;
const NEAR: f64 = 0.4;
/// Evaluations of a local move, more or less.
const MOVE: f64 = 2.0;
/// Effective draws in a round that leave little to be gained from another, which would take twice as many; fewer behind a low
/// barrier, and more for each mode. Goals have no say, so that a run goes on to others with the same bits.
const PLENTY: f64 = 400.0;
const GOOD: f64 = 0.5;
const ENOUGH_BEHIND_LITTLE: f64 = 150.0;
const ENOUGH_FOR_EACH: f64 = 10.0;
/// Chains beyond the target while nothing is known of them, and at most.
pub(super) const FIRST_BEYOND: usize = 4;
const MOST_BEYOND: usize = 8;
/// A second leg with a larger barrier cannot be carried by the chains that it may have.
const MOST_BARRIER_BEYOND: f64 = 5.0;
/// So many modes are many.
const MANY: usize = 5;
/// With such a barrier it is given up while others are still tuned.
const HOPELESS_BARRIER_BEYOND: f64 = 20.0;
/// Share of evaluations that the second leg may take where the first one does better.
const SHARE_BEYOND: f64 = 0.25;

impl Fitted {
    pub fn new(ground: Arc<Geometric>) -> Result<Self> {
        let Some((mean, deviation)) = ground.reference().as_normal() else {
            let cure =
                "the anchor of a fitted reference is a normal with a mean and deviation of each coordinate";
            return Err(Error::setting("Settings.fit", "another reference", cure));
        };
        let state = State { anchor: (mean.to_vec(), deviation.to_vec()), ..State::default() };
        Ok(Self { ground, state, standouts: None })
    }

    /// The path between reference and anchor as they are now.
    pub fn path(&self, settings: &Settings) -> Result<Arc<dyn AnnealingPath>> {
        let Some(mixture) = &self.state.mixture else { return Ok(self.ground.clone()) };
        let anchor = self.has_anchor(settings).then(|| {
            let (mean, deviation) = self.state.anchor.clone();
            Reference::normal(mean, deviation)
        });
        let path = self.ground.between(Reference::mixture(mixture.with_rim()), anchor)?;
        Ok(Arc::new(path.keeping(self.standouts.clone())))
    }

    pub fn has_anchor(&self, settings: &Settings) -> bool {
        let wanted = settings.fit.as_ref().is_some_and(|fit| fit.anchor);
        wanted && !self.state.anchor_dropped && self.is_apart()
    }

    /// Whether the reference is another than the anchor: without an optimum it begins there.
    fn is_apart(&self) -> bool {
        let (mean, deviation) = &self.state.anchor;
        let same = |c: &Component| c.mean == *mean && c.shape == Shape::Diagonal(deviation.clone());
        self.state.mixture.as_ref().is_some_and(|mixture| !mixture.components().iter().all(same))
    }

    /// The anchor grows with what draws have shown of the target: a funnel's mouth is far wider than any curvature tells. One behind a
    /// barrier that is too large is drawn in to no more than that, where many modes are known; one behind a hopeless barrier is given
    /// up before it costs more.
    fn broaden_anchor(&mut self, round: usize, barrier: f64) {
        let State { mixture: Some(mixture), anchor: (mean, deviation), found, anchor_dropped, .. } =
            &mut self.state
        else {
            return;
        };
        *anchor_dropped |= round >= 2 && barrier > HOPELESS_BARRIER_BEYOND;
        let whole = Optimum {
            mean: mixture.mean(),
            shape: mixture.whole_shape(),
            log_density: 0.0,
            log_evidence: 0.0,
            climbs: 0,
        };
        if found.that_matter().count() >= MANY && barrier > MOST_BARRIER_BEYOND && round >= 1 {
            // Where there are many modes there may be more: an anchor that is near is worth more than none.
            (*mean, *deviation) = (whole.mean.clone(), whole.shape.deviations());
        }
        let wide = widen(Starts { mean, deviation }, [&whole]);
        *deviation = broaden(&wide, &whole.shape.deviations());
    }

    /// Masses of local moves on each chain: the reference's, on the way to the anchor's beyond the target.
    fn masses(&self, schedule: &Schedule) -> Vec<Shape> {
        let Some(mixture) = &self.state.mixture else { return Vec::new() };
        let (own, anchor) = (mixture.pooled_shape(), Shape::Diagonal(self.state.anchor.1.clone()));
        let at = |&beta: &f64| if beta <= 1.0 { own.clone() } else { own.towards(&anchor, beta - 1.0) };
        schedule.betas().iter().map(at).collect()
    }
}

/// The target's draws of a round.
pub(super) struct RoundDraws {
    pub draws: Batch,
    pub log_density: Vec<f64>,
    /// None where the target has none.
    scores: Option<Batch>,
    /// How many independent ones they are worth.
    effective: f64,
    /// And where a reference is fitted: it changes no result, only what that costs, so that shapes follow draws sooner than
    /// estimates may.
    worth: Worth,
}

impl RoundDraws {
    fn drawn(&self) -> Drawn<'_> {
        let Self { draws, log_density, scores, worth, .. } = self;
        Drawn { draws, log_density, scores: scores.as_ref(), worth: *worth }
    }
}

impl Run {
    /// End of a round: reference, schedule, number of chains and masses follow what it saw.
    pub(super) fn refit(&mut self, round: usize) -> Result<()> {
        self.adapt(1.0);
        self.ladder.measure_barrier();
        let trace = self.trace_round();
        self.progress.rounds.push(trace);
        let balance = self.seen_balance();
        let barriers = self.ladder.barrier.of_legs();
        let seen = self.draws_of_round();
        let acceptance = self.acceptance_of_round();
        let found = self.climb_further(&seen, Wanted::Missed)?;
        let grew = self.follow(&seen, barriers[0])? || found;
        let Some(reference) = &mut self.reference else { return Ok(()) };
        let before = reference.state.barriers.last().copied();
        reference.state.barriers.push(barriers);
        reference.state.effective_each = seen.effective / (0.75 * self.progress.stage_iterations as f64);
        let (modes, misses) = (reference.state.found.weighty().count(), reference.state.misses_an_optimum());
        let last = round + 1 >= self.settings.rounds || self.tuning_is_spent();
        let enough = seen.effective > enough_draws(self.ladder.dim());
        let quiet = before.is_some_and(|before| (before[0] - barriers[0]).abs() < 0.2 + 0.1 * barriers[0]);
        // Another round would cost more than it saves, or change little.
        let for_modes = ENOUGH_FOR_EACH * modes as f64;
        let plenty = seen.effective > PLENTY + for_modes;
        let little = barriers[0] < GOOD && seen.effective > ENOUGH_BEHIND_LITTLE + for_modes;
        let settled = (plenty || little || (enough && quiet && !grew)) && !misses;
        let settled = round >= 2 && acceptance > 0.4 && settled && (plenty || !found);
        let settled = settled && (!self.climb_further(&seen, Wanted::Confirmed)? || plenty);
        if settled || last {
            self.look_outwards(&seen)?;
            self.reach_out(&seen)?;
            self.balance(balance);
        }
        if let Some(reference) = self.reference.as_mut().filter(|_| !(settled || last)) {
            reference.broaden_anchor(round, barriers[1]);
        }
        let barriers = [self.expected_barrier(&seen, barriers[0]), barriers[1]];
        if let Some(reference) = &mut self.reference {
            reference.keep_after(&seen);
        }
        self.lay_out(barriers, settled || last)?;
        if let Some(reference) = &mut self.reference {
            reference.state.settled = settled;
        }
        Ok(())
    }

    /// The reference follows the draws; whether it has more normals now.
    fn follow(&mut self, seen: &RoundDraws, barrier: f64) -> Result<bool> {
        let covariance = self.covariance();
        let (bounded, no_end) = (self.is_bounded(), self.found().has_no_end());
        let state = self.reference.as_mut().map(|reference| &mut reference.state);
        let Some(mixture) = state.and_then(|state| state.mixture.as_mut()) else { return Ok(false) };
        let RoundDraws { draws, worth, .. } = seen;
        if no_end {
            // One normal for more modes than ladders can be in: the optima say better than a few draws how wide it is to be.
            if seen.effective > enough_draws(draws.dim()) {
                *mixture = mixture.refit(draws, worth.weights, covariance);
            }
            return Ok(false);
        }
        *mixture = mixture.following(seen.drawn(), covariance);
        if barrier <= WORTH_SPLITTING || bounded {
            return Ok(false);
        }
        let split = mixture.split(draws, *worth, covariance);
        let grew = split.components().len() > mixture.components().len();
        if grew {
            *mixture = split.refit(draws, *worth, covariance).widened_for(seen.drawn());
        }
        Ok(grew)
    }

    /// Whether the number of normals was given.
    pub(super) fn is_bounded(&self) -> bool {
        self.settings.fit.as_ref().is_some_and(|fit| fit.components.is_some())
    }

    /// The barrier of the first leg with the reference as it is now: as the draws that it was fitted to let expect, or as it was in
    /// the round, if that is less. Where the leg is one pair, its rejections tell that better than λ at its two ends.
    fn expected_barrier(&self, seen: &RoundDraws, measured: f64) -> f64 {
        let of = |rejection: f64| -ln(1.0 - rejection);
        let fitted =
            self.mixture().map(|mixture| mixture.with_rim().rejection(&seen.draws, &seen.log_density));
        let fitted = fitted.map_or(f64::INFINITY, |rejection| MORE * of(rejection));
        let pair = match self.ladder.sampler.schedule.target() {
            1 => of(Counts::rejection_rates(self.ladder.tuning_counts(), self.ladder.chains())[0]),
            _ => f64::INFINITY,
        };
        // What is not known bounds nothing.
        measured.min(fitted).min(pair)
    }

    /// Covariances that the fit keeps.
    pub(super) fn covariance(&self) -> Covariance {
        let given = self.settings.fit.as_ref().and_then(|fit| fit.covariance);
        given.unwrap_or_else(|| Covariance::for_dim(self.ladder.dim()))
    }

    /// Whether the density falls off beyond what draws have seen.
    fn look_outwards(&mut self, seen: &RoundDraws) -> Result<()> {
        let Some(Fitted { ground, state, .. }) = &mut self.reference else { return Ok(()) };
        let (Some(mixture), Some((_, given))) = (&state.mixture, ground.reference().as_normal()) else {
            return Ok(());
        };
        if let Some(highest) = highest(&seen.log_density) {
            let deviations = mixture.whole_shape().deviations();
            state.endless = endless(ground.target(), seen.draws.row(highest), &deviations, given)?;
        }
        Ok(())
    }

    /// Chains and schedule that suit the barriers of both legs.
    fn lay_out(&mut self, barriers: [f64; 2], last: bool) -> Result<()> {
        let Some(reference) = &mut self.reference else { return Ok(()) };
        if last && barriers[1] > MOST_BARRIER_BEYOND {
            reference.state.anchor_dropped = true;
        }
        let path = reference.path(&self.settings)?;
        let two = reference.has_anchor(&self.settings);
        let most = self.settings.chains.max(if two { 3 } else { 2 });
        let (measured, beyond) = (&self.ladder.barrier, self.ladder.sampler.schedule.legs() == 2);
        let first = measured.equalised(0, chains_of_leg(barriers[0], most - usize::from(two)));
        let schedule = match (two, beyond) {
            (true, true) => {
                let beyond = MOST_BEYOND.min(most.saturating_sub(first.chains())).max(1);
                let second = measured.equalised(1, chains_of_leg(barriers[1], beyond + 1));
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
    pub(super) fn rest_second_leg(&mut self, barriers: [f64; 2]) {
        let schedule = &self.ladder.sampler.schedule;
        let pairs = [schedule.target(), schedule.pairs() - schedule.target()];
        let alone = if barriers[0] < NEAR { ALONE_AND_NEAR } else { ALONE };
        let mut cost = pairs.map(|pairs| 1.0 + MOVE * pairs as f64);
        if pairs[0] == 1 {
            cost[0] = 1.0 + MOVE / alone as f64;
        }
        let rate = |leg: usize| {
            let rejection = 1.0 - exp(-barriers[leg] / pairs[leg].max(1) as f64).max(0.02);
            1.0 / (2.0 + 2.0 * pairs[leg] as f64 * rejection / (1.0 - rejection)) / cost[leg]
        };
        let misses = self.reference.as_ref().is_some_and(|reference| reference.state.misses_an_optimum());
        let every = if pairs[1] == 0 || misses || rate(1) > 0.5 * rate(0) {
            1
        } else {
            (cost[1] * (1.0 - SHARE_BEYOND) / (SHARE_BEYOND * cost[0])).ceil().min(99.0) as u64
        };
        self.ladder.rest(every, alone);
    }

    pub(super) fn hand_over_masses(&mut self) {
        let Some(reference) = &self.reference else { return };
        let shapes = reference.masses(&self.ladder.sampler.schedule);
        let doublings = reference.state.mixture.as_ref().map_or(0, Mixture::doublings);
        let reach = vec![1.0; shapes.len()];
        let parts = reference.state.mixture.as_ref().filter(|mixture| mixture.components().len() > 1);
        self.ladder.adapt(&Tuning::Masses { shapes: &shapes, parts, doublings, reach: &reach });
    }

    /// The target's draws of the last three quarters of a round.
    fn draws_of_round(&self) -> RoundDraws {
        let (dim, target) = (self.ladder.dim(), self.ladder.sampler.schedule.target());
        let records = || self.ladder.shards.iter().map(|shard| &shard.collecting);
        let late = |(points, values): (&'_ [f64], &'_ [f64])| {
            let skip = values.len() / 4;
            (points[skip * dim..].to_vec(), values[skip..].to_vec())
        };
        let ladders: Vec<_> = CollectRecord::of_chain(records(), target).into_iter().map(late).collect();
        let late_scores = |scores: &Vec<f64>| scores[scores.len() / dim / 4 * dim..].to_vec();
        let scores: Vec<f64> = records().flat_map(CollectRecord::scores).flat_map(late_scores).collect();
        let of_coordinate = |j: usize| {
            let series = |(points, _): &(Vec<f64>, Vec<f64>)| {
                points.iter().skip(j).step_by(dim).copied().collect::<Vec<f64>>()
            };
            let series: Vec<Vec<f64>> = ladders.iter().map(series).collect();
            let all = bulk_draws(&series.iter().map(|s| &s[..]).collect::<Vec<_>>());
            (all, series.iter().map(|s| bulk_draws(&[s])).sum::<f64>())
        };
        // One that never moves says nothing of the others.
        let known = |(all, each): &(f64, f64)| all.is_finite() && each.is_finite();
        let least = (0..dim).map(of_coordinate).filter(known);
        let least = least.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
        let (effective, each) = least.unwrap_or((ladders.len() as f64, ladders.len() as f64));
        let (points, values): (Vec<_>, Vec<_>) = ladders.into_iter().unzip();
        let draws = Batch::from_vec(dim, points.concat());
        let worth = Worth { weights: effective, shapes: (each * draws.rows() as f64).sqrt() };
        let has_scores = self.reference.as_ref().is_some_and(|r| r.ground.target().has_score());
        let scores = has_scores.then(|| Batch::from_vec(dim, scores)).filter(|s| s.rows() == draws.rows());
        RoundDraws { draws, log_density: values.concat(), scores, effective, worth }
    }

    /// Of the chain of the first leg that moves least.
    fn acceptance_of_round(&self) -> f64 {
        let (chains, target) = (self.ladder.chains(), self.ladder.sampler.schedule.target());
        let all = Counts::acceptance(self.ladder.tuning_counts(), chains);
        all.into_iter().take(target + 1).filter(|a| a.is_finite()).fold(1.0, f64::min)
    }

    /// Iterations that sampling takes at least: as many as the last round of tuning. Where that had to be long, some parts move
    /// slowly, whatever the draws of a short run say of themselves.
    pub(super) fn fewest_iterations(&self) -> u64 {
        let rounds = self.reference.as_ref().map_or(0, |reference| reference.state.barriers.len());
        if rounds == 0 { 0 } else { self.settings.round(rounds - 1).0 }
    }

    /// Optima that climbs found, where a reference was fitted.
    pub fn optima(&self) -> &[Optimum] {
        self.reference.as_ref().map_or(&[], |reference| &reference.state.found.optima)
    }

    /// All that climbs found, where a reference was fitted.
    pub fn found(&self) -> Found {
        self.reference.as_ref().map_or_else(Found::default, |reference| reference.state.found.clone())
    }

    /// The fitted reference, where there is one by now.
    pub fn mixture(&self) -> Option<&Mixture> {
        self.reference.as_ref().and_then(|reference| reference.state.mixture.as_ref())
    }

    /// Where the density was seen not to fall off: it has no integral then.
    pub fn endless(&self) -> Option<Endless> {
        self.reference.as_ref().and_then(|reference| reference.state.endless)
    }

    /// Whether the second leg was given up, since it would have taken too many chains.
    pub fn anchor_dropped(&self) -> bool {
        self.reference.as_ref().is_some_and(|reference| reference.state.anchor_dropped)
    }
}

/// Effective draws that can tell moments.
fn enough_draws(dim: usize) -> f64 {
    40.0 + 3.0 * dim as f64
}

/// Chains of a leg: two where nearly all swaps are accepted.
fn chains_of_leg(barrier: f64, most: usize) -> usize {
    if barrier < TWO_CHAINS { 2 } else { chains_for(barrier).clamp(2, most) }
}

/// The draw of highest density.
fn highest(log_density: &[f64]) -> Option<usize> {
    (0..log_density.len()).reduce(|a, b| if log_density[b] > log_density[a] { b } else { a })
}

/// A first schedule for a broad reference: dense near it, where the density changes fastest.
pub(super) fn steep(chains: usize) -> Schedule {
    let last = (chains - 1) as f64;
    let betas = (0..chains).map(|n| (n as f64 / last).powi(4)).collect();
    Schedule::new(betas).expect("powers increase from 0 to 1")
}

impl Ladder {
    /// The leg beyond the target moves in every so many iterations, and a target that is alone with its reference in one of so many.
    pub(super) fn rest(&mut self, every: u64, alone: u64) {
        self.shards.iter_mut().for_each(|shard| shard.ensemble.rest(every, alone));
    }
}
