//! Climbs of a run whose reference is fitted: at its start, and further ones between rounds of tuning, from where hot chains have
//! come to, so that what the first ones missed is found by something else than luck.

use super::reference::{FIRST_BEYOND, FIRST_CHAINS, FIRST_CHAINS_UNFITTED, Fitted, RoundDraws, steep};
use super::{Run, Stage};
use crate::acceleration::CollectRecord;
use crate::fitted::{
    Covariance, Ends, Found, Further, Mixture, Optimum, Place, Shape, Soundings, Starts, broaden,
    find_optima, of_either, places, widen,
};
use crate::lanes::one::{exp, power};
use crate::schedule::Schedule;
use crate::streams::Phase;
use crate::{Batch, Error, Result, Streams};

/// Why climbs go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Optima were found by one climb alone, so that others were missed.
    Missed,
    /// Nothing says so: a last look before all is frozen.
    Confirmed,
}

impl Wanted {
    /// Share of all evaluations that such climbs may take.
    fn share(self) -> f64 {
        match self {
            Self::Missed => 0.08,
            Self::Confirmed => 0.03,
        }
    }
}

/// Further climbs of one round at most.
const MOST_FURTHER: u64 = 64;
/// By so many nats a mixture may be too low at an optimum, compared with how it is at draws, before that becomes a component.
const TOO_LOW: f64 = 3.0;

/// By so many nats log π − log η of a hot chain's point may exceed what it is at draws before that is a reason to climb from there,
/// from so many of them, of so many that are looked at.
const LEFT_OUT: f64 = 5.0;
const CLIMBS_LEFT_OUT: usize = 2;
const MOST_LOOKED_AT: usize = 8000;

/// Share of all evaluations that a look at the ends of the law may take.
const AT_ENDS: f64 = 0.06;

/// Share of all evaluations at draws of the anchor, in so many dimensions at most: in more, no place is come upon by chance.
const SOUNDINGS: f64 = 0.05;
const MOST_SOUNDED: usize = 8;
/// And so many at least within three rounds, by the number of coordinates: a mode so many times narrower than the whole, wherever it lies, is
/// felt in a share of all directions and distances that falls with the power d. Two thousand come upon one of a thirtieth in two coordinates,
/// six thousand upon one of a seventh in four; in five, half as many come upon one of a quarter, and as many upon one of a fifth; in more than
/// five, no number that a run can afford comes upon a narrow one.
fn least_soundings(dim: usize) -> u64 {
    match dim {
        ..=3 => 512 << dim,
        4 => 6144,
        5 => 3072,
        _ => 1500,
    }
}
/// Where evaluations are limited, no more than one part in so many of those that tuning may take.
const PART_SOUNDED: u64 = 4;
/// One in so many is a draw of the anchor. The others lie around the reference, so many times as far out as its draws, as many at every scale
/// between these: nearer the chains are, and farther out climbs begin.
const ANCHORED: usize = 4;
const AROUND: [f64; 2] = [1.5, 4.0];
/// Number of the first such draws.
const AFTER_FIRST: u64 = 16;
/// Climbs to places that stood out while the run was tuned, by each measure of that.
const CLIMBS_TO_STANDOUTS: usize = 2;

impl Run {
    /// Climbs, and the first reference from what they find.
    pub(super) fn climb(&mut self) -> Result<()> {
        let covariance = self.covariance();
        let Some(reference) = &mut self.reference else { return Ok(()) };
        let (mean, deviation) = reference.state.anchor.clone();
        let starts = Starts { mean: &mean, deviation: &deviation };
        let (target, streams) = (reference.ground.target(), &self.ladder.sampler.streams);
        let mut soundings = Soundings::default().and_of(target, starts, streams)?;
        let floor = soundings.log_z();
        let mut found = find_optima(target, starts, streams, covariance, floor)?;
        if let Some(around) = found.spread() {
            soundings = soundings.and_around(target, &around, streams)?;
        }
        found = found.and_left_out(target, starts, covariance, &soundings)?;
        reference.state.anchor.1 = broad_anchor(starts, &found);
        let most = self.settings.fit.as_ref().and_then(|fit| fit.components);
        let mut mixture = first_mixture(&found, most)?;
        if let (Some(known), None) = (&mixture, most)
            && let Some(broad) = soundings.component(known, found.log_z(), covariance)
        {
            mixture = Some(known.with_component(broad)?);
        }
        let fitted = mixture.is_some();
        reference.state.mixture = Some(match mixture {
            Some(mixture) => mixture,
            None => {
                let (mean, deviation) = reference.state.anchor.clone();
                Mixture::normal(mean, Shape::Diagonal(deviation))?
            }
        });
        reference.keep(found.log_z());
        reference.hear(&soundings.into_places());
        reference.state.found = found;
        let path = reference.path(&self.settings)?;
        let first = Schedule::uniform(if fitted { FIRST_CHAINS } else { FIRST_CHAINS_UNFITTED });
        let schedule = match reference.has_anchor(&self.settings) {
            true => Schedule::two_legs(&first, &steep(FIRST_BEYOND + 1)),
            false if fitted => first,
            false => steep(FIRST_CHAINS_UNFITTED),
        };
        self.ladder.begin_again(path, schedule)?;
        let lost = self.ladder.shards.iter().all(|shard| shard.ensemble.is_lost());
        if lost && floor == f64::NEG_INFINITY {
            let draws = usize::try_from(self.asked().target).unwrap_or(usize::MAX);
            return Err(Error::NoStart { draws });
        }
        self.rest_second_leg([1.0, 3.0]);
        self.hand_over_masses();
        self.enter(Stage::Tuning(0));
        Ok(())
    }

    /// Further climbs, from where hot chains are, from what the reference leaves out and from over-dispersed points; whether they
    /// found something of weight, which then is part of the reference.
    pub(super) fn climb_further(&mut self, seen: &RoundDraws, wanted: Wanted) -> Result<bool> {
        let covariance = self.covariance();
        let before = self.asked().target;
        let sounded = if wanted == Wanted::Missed { self.sound_further()? } else { Vec::new() };
        let Some(further) = self.further_starts(seen, wanted, sounded) else { return Ok(false) };
        let Some(reference) = &mut self.reference else { return Ok(false) };
        let (state, target) = (&mut reference.state, reference.ground.target());
        let Some(mixture) = state.mixture.clone() else { return Ok(false) };
        let (mean, deviation) = state.anchor.clone();
        let anchor = Starts { mean: &mean, deviation: &deviation };
        let how = (covariance, &mixture.pooled_shape());
        let known = state.found.optima.clone();
        let found = std::mem::take(&mut state.found);
        state.found = found.and_further(target, anchor, &self.ladder.sampler.streams, how, further)?;
        // log π − log η at most draws is about log Z.
        let usual = mixture.usual_gap(&seen.draws, &seen.log_density);
        let is_new = |optimum: &&Optimum| {
            let log_mixture = mixture.evaluate(&optimum.mean, &mut vec![0.0; mean.len()], &mut Vec::new());
            let covered = usual.is_some_and(|usual| optimum.log_density - log_mixture < usual + TOO_LOW);
            state.found.is_weighty(optimum) && !covered && !known.iter().any(|old| old.mean == optimum.mean)
        };
        let new: Vec<Optimum> = state.found.optima.iter().filter(is_new).cloned().collect();
        let mut grown = mixture.clone();
        let most = self.settings.fit.as_ref().and_then(|fit| fit.components);
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(mixture.components().len()));
        for optimum in new.iter().take(room) {
            let share = usual.map_or(1.0, |log_z| exp(optimum.log_evidence - log_z));
            grown = grown.with_optimum(optimum, share)?;
        }
        if !new.is_empty() {
            state.anchor.1 = broad_anchor(anchor, &state.found);
        }
        state.mixture = Some(grown);
        let after = self.asked().target;
        if let Some(reference) = &mut self.reference {
            reference.state.further += after - before;
        }
        Ok(!new.is_empty())
    }

    /// Normals where the law goes on beyond all draws, as along a ridge that grows thin: no move may get there, and the reference
    /// then does. Those ends come first that draws reach least into.
    pub(super) fn reach_out(&mut self, seen: &RoundDraws) -> Result<()> {
        let (spent, kind, bounded) = (self.asked().target, self.covariance(), self.is_bounded());
        let Some(Fitted { ground, state, .. }) = &self.reference else { return Ok(()) };
        let several = |mixture: &&Mixture| mixture.components().len() > 1;
        let Some(mixture) = state.mixture.as_ref().filter(several) else { return Ok(()) };
        let Some(log_z) = mixture.usual_gap(&seen.draws, &seen.log_density) else { return Ok(()) };
        let target = ground.target();
        if bounded || state.found.has_no_end() || !target.has_score() || kind != Covariance::Dense {
            return Ok(());
        }
        let most = spent + (AT_ENDS * spent as f64) as u64;
        let ends = Ends { target, mixture, points: seen.draws.iter_rows().collect() };
        let mut grown = mixture.clone();
        for end in ends.all() {
            if self.asked().target > most {
                break;
            }
            let Some(outwards) = ends.outwards(&end)? else { continue };
            let room = Mixture::MOST.saturating_sub(grown.components().len());
            for normal in outwards.left_out(&grown.with_rim(), log_z, kind).into_iter().take(room) {
                grown = grown.with_component(normal)?;
            }
        }
        if let Some(reference) = &mut self.reference {
            reference.state.mixture = Some(grown);
        }
        Ok(())
    }

    /// Further draws of the anchor and points around the reference: a share of all evaluations, where coordinates are so few that these
    /// can come upon something.
    fn sound_further(&mut self) -> Result<Vec<Place>> {
        let share = (SOUNDINGS * self.asked().target as f64) as u64;
        let allowed = self.most_of_tuning().map_or(u64::MAX, |most| most / PART_SOUNDED);
        let Some(Fitted { ground, state, .. }) = &mut self.reference else { return Ok(Vec::new()) };
        let (round, dim) = (state.barriers.len() as u64, ground.target().dim());
        let least = least_soundings(dim) * (round + 1).min(3) / 3;
        let count = share.max(least).min(allowed).saturating_sub(state.sounded) as usize;
        let anchored = self.settings.fit.as_ref().is_some_and(|fit| fit.anchor);
        if count == 0 || !anchored || dim > MOST_SOUNDED {
            return Ok(Vec::new());
        }
        state.sounded += count as u64;
        let (mean, deviation) = &state.anchor;
        let (law, number) = (Starts { mean, deviation }, AFTER_FIRST + 2 * round);
        let (target, streams) = (ground.target(), &self.ladder.sampler.streams);
        let around = if state.mixture.is_some() { count - count.div_ceil(ANCHORED) } else { 0 };
        let sounded = Soundings::default().and_draws(target, law, streams, number, count - around)?;
        let mut all = sounded.into_places();
        if let Some(mixture) = &state.mixture {
            all.extend(places(target, around_reference(mixture, streams, number + 1, around))?);
        }
        Ok(all)
    }

    /// Where further climbs start, if there is reason for some and enough has been spent otherwise.
    fn further_starts(&self, seen: &RoundDraws, wanted: Wanted, sounded: Vec<Place>) -> Option<Further> {
        let Fitted { state, standouts, .. } = self.reference.as_ref()?;
        let (found, mixture) = (&state.found, state.mixture.as_ref()?);
        if found.has_no_end() {
            return None;
        }
        let mut points = match wanted {
            Wanted::Missed => self.left_out(seen, mixture, sounded),
            Wanted::Confirmed => Vec::new(),
        };
        let narrow = match standouts {
            Some(standouts) if wanted == Wanted::Confirmed => standouts.to_climb_from(CLIMBS_TO_STANDOUTS),
            _ => Vec::new(),
        };
        let mut others = 0;
        let missed = found.may_have_missed(20, 8);
        if found.that_matter().next().is_some() && (missed || wanted == Wanted::Confirmed) {
            let each = (found.evaluations / found.climbs.max(1) as u64).max(1);
            let allowed = (wanted.share() * self.asked().target as f64) as u64;
            let count = (allowed.saturating_sub(state.further) / each).min(MOST_FURTHER) as usize;
            let hot = self.hot_points();
            let from_hot = hot.len().min(count.div_ceil(2));
            others = count - from_hot;
            let stride = hot.len().div_ceil(from_hot.max(1)).max(1);
            points.extend(hot.into_iter().step_by(stride).take(from_hot));
        }
        (points.len() + narrow.len() + others > 0).then_some(Further { points, narrow, others })
    }

    /// What the reference leaves out: a draw of the target that stands out, and points of other chains where the density is too
    /// high for it.
    fn left_out(&self, seen: &RoundDraws, mixture: &Mixture, sounded: Vec<Place>) -> Vec<Vec<f64>> {
        let of_target = mixture.uncovered(&seen.draws, &seen.log_density);
        let mut points: Vec<Vec<f64>> = of_target.map(|i| seen.draws.row(i).to_vec()).into_iter().collect();
        let Some(usual) = mixture.usual_gap(&seen.draws, &seen.log_density) else { return points };
        let (mut others, mut heights) = self.points_of_others();
        if let Some(reference) = &self.reference {
            reference.hear(&sounded);
        }
        for place in sounded {
            others.append(Batch::from_vec(place.point.len(), place.point));
            heights.push(place.log_density);
        }
        let gaps = mixture.gaps(&others, &heights);
        let out: Vec<usize> =
            (0..gaps.len()).filter(|&i| heights[i].is_finite() && gaps[i] > usual + LEFT_OUT).collect();
        let keyed = |by: &[f64]| out.iter().map(|&i| (by[i], i)).collect();
        let chosen = of_either(keyed(&gaps), keyed(&heights), CLIMBS_LEFT_OUT);
        points.extend(chosen.into_iter().map(|i| others.row(i).to_vec()));
        points
    }

    /// Points of all chains but the target's in a round, or some of them, and the target's log density there.
    fn points_of_others(&self) -> (Batch, Vec<f64>) {
        let (dim, target) = (self.ladder.dim(), self.ladder.sampler.schedule.target());
        let records = || self.ladder.shards.iter().map(|shard| &shard.collecting);
        let others = (0..self.ladder.chains()).filter(|chain| *chain != target);
        let ladders: Vec<_> = others.flat_map(|chain| CollectRecord::of_chain(records(), chain)).collect();
        let count: usize = ladders.iter().map(|(_, values)| values.len()).sum();
        let all = ladders.iter().flat_map(|(points, values)| points.chunks_exact(dim).zip(*values));
        let some = all.step_by(count.div_ceil(MOST_LOOKED_AT).max(1));
        let (points, heights): (Vec<&[f64]>, Vec<f64>) = some.map(|(x, height)| (x, *height)).unzip();
        (Batch::from_vec(dim, points.concat()), heights)
    }

    /// Points of chains that are neither target nor reference: those beyond the target first, from the broad end on.
    fn hot_points(&self) -> Vec<Vec<f64>> {
        let schedule = &self.ladder.sampler.schedule;
        let (target, last) = (schedule.target(), schedule.chains() - 1);
        let chains = (target + 1..last).rev().chain(1..target);
        let of_chain = |chain: usize| {
            self.ladder.shards.iter().flat_map(move |shard| {
                let ensemble = &shard.ensemble;
                (0..ensemble.copies())
                    .map(move |copy| ensemble.points.x.row(ensemble.row(copy, chain)).to_vec())
            })
        };
        chains.flat_map(of_chain).collect()
    }
}

/// Points around a mixture, as many at every scale: something that is so many times narrower than far away is come upon as often
/// wherever between them it lies.
fn around_reference(mixture: &Mixture, streams: &Streams, number: u64, count: usize) -> Vec<Vec<f64>> {
    let (mean, shape) = (mixture.mean(), mixture.whole_shape());
    let mut z = Batch::zeros(count, mean.len());
    streams.normals(Phase::Start, number, &(0..count as u32).collect::<Vec<_>>(), &mut z);
    let point = |(i, z): (usize, &[f64])| {
        let far = AROUND[0] * power(AROUND[1] / AROUND[0], (i as f64 + 0.5) / count as f64);
        let mut x: Vec<f64> = z.iter().map(|z| far * z).collect();
        shape.apply(&mut x);
        x.iter_mut().zip(&mean).for_each(|(x, mean)| *x += mean);
        x
    };
    z.iter_rows().enumerate().map(point).collect()
}

/// Standard deviations of an anchor that all optima lie within, broader than these together.
fn broad_anchor(anchor: Starts, found: &Found) -> Vec<f64> {
    let wide = widen(anchor, found.that_matter());
    match found.spread() {
        Some((_, deviations)) => broaden(&wide, &deviations),
        None => wide,
    }
}

/// The mixture that a run begins with: of all optima that matter or of so many at most.
fn first_mixture(found: &Found, most: Option<usize>) -> Result<Option<Mixture>> {
    // A spike that holds next to nothing, as in the neck of a funnel, is no place to begin.
    let worth = |best: &&Optimum| best.log_evidence > found.floor - 3.0;
    if found.best().filter(worth).is_none() {
        return Ok(None);
    }
    match most {
        // So many more were not found that one broad normal serves better than those that were.
        None if found.has_no_end() => found.as_one().map(Some),
        Some(most) => {
            let matter: Vec<&Optimum> = found.that_matter().take(most).collect();
            if matter.is_empty() { Ok(None) } else { Mixture::of_optima(&matter).map(Some) }
        }
        None => Ok(found.mixture()),
    }
}
