//! A last look, once all draws are there: does the density rise where no draw came near?
//!
//! Points all around the draws, from once to twelve times as far as these lie, are asked once each. Where the score there is
//! that of a mixture which looks like the draws, they tell nothing new; from the others, from draws that the mixture does
//! not explain, and from all that stood out while the run went on, climbs go uphill. An optimum was missed if mass lies around it, as draws
//! of its normal tell, and the draws have hardly any there. And does the density end where the draws do?

mod left_out;
mod tails;
mod unanswered;

use crate::lanes::one::{exp, ln, power};
pub use left_out::LeftOut;
pub use tails::CutTail;
pub use unanswered::unanswered;

use crate::fitted::{
    Covariance, Found, Further, MOST_COORDINATES, Mixture, Optimum, Place, Shape, Standouts, Starts, places,
};
use crate::records::Draws;
use crate::streams::Phase;
use crate::{Batch, Counted, Result, Streams, Target};
use left_out::{Around, left_out};
use std::sync::Arc;
use tails::Tails;

/// How many times as far as the draws the farthest points lie.
const FARTHEST: f64 = 12.0;

/// Points that are asked before climbs begin: at least, at most, and at least where there are more than so many coordinates: few of many
/// come near to anything there.
const POINTS: (u64, u64) = (1024, 8192);
const POINTS_OF_MANY: u64 = 256;
const MANY: usize = 10;

/// Climbs at least and at most.
const CLIMBS: (u64, u64) = (8, 32);

/// A score this near to that of the mixture, relative to its length, is explained by it.
const EXPLAINED: f64 = 0.5;

/// Climbs from what stood out, by each measure of that.
const CLIMBS_TO_STANDOUTS: usize = 4;

/// An optimum was missed if draws have less than this part of the share of the mass that lies around it.
const VISITED: f64 = 0.1;

/// Where curvature says so, draws of its normal are asked: so many, of so many optima, and their mean has to be so many standard
/// errors above what it is compared with.
const ASKED: u32 = 64;
const OPTIMA_ASKED: usize = 8;
const SURE: f64 = 2.0;
/// Numbers of the first of these draws.
const AROUND_OPTIMA: u64 = 1000;

/// What a last look begins with.
pub struct LastLook<'a> {
    /// The density.
    pub target: Arc<dyn Target>,
    /// What the draws look like.
    pub mixture: &'a Mixture,
    /// What earlier climbs found.
    pub found: Found,
    /// Places that stood out while the run went on.
    pub stood_out: Vec<Place>,
    /// The broad normal that the run began from, where there is one.
    pub begun: Option<Starts<'a>>,
    /// Draws of the target, ladder after ladder.
    pub draws: &'a [Draws],
    /// Covariances that are kept of optima.
    pub covariance: Covariance,
    /// Randomness of its own.
    pub streams: Streams,
}

/// When an optimum is one that should have been visited.
#[derive(Clone, Copy, Debug)]
pub struct Weighty {
    /// log Z, as the run has it.
    pub log_z: f64,
    /// The least share of the mass around an optimum, by its curvature.
    pub share: f64,
    /// Effective draws.
    pub effective: f64,
}

/// What a last look saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Optima that no draw came near, the one with most mass first.
    pub unvisited: Vec<Optimum>,
    /// A tail that draws do not reach, though some of the mass should lie there.
    pub cut_tail: Option<CutTail>,
    /// Mass that the reference leaves out and draws have not found.
    pub left_out: Option<LeftOut>,
    /// Share of the mass that may lie where the target has no answer, where somebody [asked](unanswered()).
    pub unanswered: Option<f64>,
    /// Points at which the target was evaluated.
    pub evaluations: u64,
}

impl LastLook<'_> {
    /// Looks, for about so many evaluations.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sterna::fitted::{Covariance, Found, Mixture, Shape};
    /// use sterna::last_look::{LastLook, Weighty};
    /// use sterna::{Streams, records::Draws, targets::Normal};
    /// // Draws of N(0, 1), which is what the target is: nothing else is there.
    /// let x: Vec<f64> = (0..400).map(|i| ((i * 61 % 401) as f64 / 100.0) - 2.0).collect();
    /// let draws = [Draws { log_density: vec![-1.0; 400], x, ..Draws::default() }];
    /// let seen = LastLook {
    ///     target: Arc::new(Normal::isotropic(1, 1.0)),
    ///     mixture: &Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0]))?,
    ///     found: Found::default(),
    ///     stood_out: Vec::new(),
    ///     begun: None,
    ///     draws: &draws,
    ///     covariance: Covariance::Dense,
    ///     streams: Streams::new(1),
    /// }
    /// .look(1000, Weighty { log_z: 0.9, share: 0.01, effective: 400.0 })?;
    /// assert!(seen.unvisited.is_empty() && seen.evaluations > 256);
    /// # Ok::<(), sterna::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the target fails.
    pub fn look(self, budget: u64, weighty: Weighty) -> Result<Seen> {
        let target = Arc::new(Counted::new(self.target.clone()));
        let (mean, deviation) = spread(self.draws, self.mixture.dim());
        let around = Starts { mean: &mean, deviation: &deviation };
        let count = self.count(budget);
        let asked = places(&*target, self.around(around, count))?;
        let law = Around { centres: [around, self.begun.unwrap_or(around)], farthest: FARTHEST };
        let by_draws = (self.points(), weighty.effective);
        let left_out = left_out(self.mixture, weighty.log_z, (&law, &asked), by_draws);
        let further = self.starts(&*target, asked, budget, weighty.log_z);
        let shape = self.mixture.pooled_shape();
        let anchor = self.begun.unwrap_or(around);
        let found = self.found.clone();
        let found = found.and_further(&*target, anchor, &self.streams, (self.covariance, &shape), further)?;
        let mut seldom: Vec<(Optimum, f64)> = Vec::new();
        for optimum in found.optima {
            let (expected, seen) = (weighty.share_of(optimum.log_evidence), self.share_near(&optimum));
            if expected > weighty.share && seen < VISITED * expected {
                seldom.push((optimum, seen));
            }
        }
        seldom.sort_by(|a, b| b.0.log_evidence.total_cmp(&a.0.log_evidence));
        let mut unvisited = Vec::new();
        for (number, (optimum, seen)) in seldom.into_iter().take(OPTIMA_ASKED).enumerate() {
            let expected = weighty.share_of(self.log_mass_near(&*target, &optimum, number as u64)?);
            if expected > weighty.share && seen < VISITED * expected {
                unvisited.push(optimum);
            }
        }
        let spent = target.evaluations();
        let tails = Tails { target: &*target, mixture: self.mixture, draws: self.draws, weighty };
        let cut_tail = tails.cut(|| target.evaluations() - spent < budget)?;
        Ok(Seen { unvisited, cut_tail, left_out, unanswered: None, evaluations: target.evaluations() })
    }

    /// Points that are asked before climbs begin.
    fn count(&self, budget: u64) -> usize {
        let least = if self.mixture.dim() > MANY { POINTS_OF_MANY } else { POINTS.0 };
        (2 * budget / 3).clamp(least, POINTS.1) as usize
    }

    fn points(&self) -> impl Iterator<Item = (&[f64], f64)> + Clone {
        let dim = self.mixture.dim();
        self.draws.iter().flat_map(move |d| d.x.chunks_exact(dim).zip(d.log_density.iter().copied()))
    }

    /// Where climbs start, and where those do that look for something narrow, by what was said of points all around.
    fn starts(&self, target: &dyn Target, asked: Vec<Place>, budget: u64, log_z: f64) -> Further {
        let (dim, count) = (self.mixture.dim(), asked.len());
        let each = match self.found.climbs {
            0 => 20 + dim as u64,
            climbs => (self.found.evaluations / climbs as u64).max(1),
        };
        let climbs = (budget / 3 / each).clamp(CLIMBS.0, CLIMBS.1) as usize;
        // Of points at one distance the highest say most; a quarter of the climbs goes from each four of the distances.
        let strange: Vec<(usize, &Place)> = asked
            .iter()
            .enumerate()
            .filter(|(_, p)| p.log_density.is_finite() && !self.explains(p, target))
            .collect();
        let mut starts: Vec<Vec<f64>> = Vec::new();
        for part in 0..4 {
            let mut here: Vec<&Place> =
                strange.iter().filter(|(i, _)| 4 * i / count == part).map(|(_, place)| *place).collect();
            here.sort_by(|a, b| b.log_density.total_cmp(&a.log_density));
            let (high, rest) = here.split_at((climbs / 8).min(here.len()));
            let stride = rest.len().div_ceil((climbs / 16).max(1)).max(1);
            starts.extend(high.iter().chain(rest.iter().step_by(stride)).map(|place| place.point.clone()));
        }
        starts.extend(self.strange_draws(climbs - starts.len().min(climbs)));
        if dim > MOST_COORDINATES {
            return Further { points: starts, ..Further::default() };
        }
        let seen = self.stood_out.iter().chain(&asked).cloned().collect();
        let standouts = Standouts::beside(self.mixture.with_rim(), target.has_score(), log_z, seen);
        let narrow = standouts.to_climb_from(CLIMBS_TO_STANDOUTS);
        Further { points: starts, narrow, others: 0 }
    }

    /// Points around the draws and, in turn, around where the run began, farther and farther.
    fn around(&self, around: Starts, count: usize) -> Vec<Vec<f64>> {
        let dim = self.mixture.dim();
        let mut z = Batch::zeros(count, dim);
        self.streams.normals(Phase::Climb, 1, &(0..count as u32).collect::<Vec<_>>(), &mut z);
        let point = |i: usize| {
            let far = power(FARTHEST, (i as f64 + 0.5) / count as f64);
            let Starts { mean, deviation } =
                if i.is_multiple_of(2) { around } else { self.begun.unwrap_or(around) };
            let coordinates = mean.iter().zip(deviation).zip(z.row(i));
            coordinates.map(|((mean, deviation), z)| mean + far * deviation * z).collect()
        };
        (0..count).map(point).collect()
    }

    /// Whether the mixture has the score of a place: then it leads to what is known.
    fn explains(&self, place: &Place, target: &dyn Target) -> bool {
        if !target.has_score() {
            return false;
        }
        let mut score = vec![0.0; place.point.len()];
        self.mixture.evaluate(&place.point, &mut score, &mut Vec::new());
        let deviations = self.mixture.whole_shape().deviations();
        let square = |of: &dyn Fn(usize) -> f64| {
            (0..score.len()).map(|j| (of(j) * deviations[j]).powi(2)).sum::<f64>()
        };
        let (off, length) = (square(&|j| place.score[j] - score[j]), square(&|j| score[j]));
        off <= EXPLAINED * EXPLAINED * length
    }

    /// Draws at which the mixture is lowest beside the density.
    fn strange_draws(&self, count: usize) -> Vec<Vec<f64>> {
        const LOOKED_AT: usize = 2000;
        let stride = self.points().count().div_ceil(LOOKED_AT).max(1);
        let (mut score, mut work) = (vec![0.0; self.mixture.dim()], Vec::new());
        let gap = |(x, log_density): (&[f64], f64)| {
            (log_density - self.mixture.evaluate(x, &mut score, &mut work), x.to_vec())
        };
        let mut gaps: Vec<(f64, Vec<f64>)> = self.points().step_by(stride).map(gap).collect();
        gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
        gaps.into_iter().take(count).map(|(_, x)| x).collect()
    }

    /// Share of the draws that lie where those of an optimum's normal do.
    fn share_near(&self, optimum: &Optimum) -> f64 {
        let (mut near, mut all) = (0.0, 0.0);
        for (x, _) in self.points() {
            all += 1.0;
            near += f64::from(u8::from(distance(x, &optimum.mean, &optimum.shape) < core(x.len())));
        }
        near / all
    }

    /// log of the mass that lies there, at least: by draws of the normal, whatever curvature has made of it.
    fn log_mass_near(&self, target: &dyn Target, optimum: &Optimum, number: u64) -> Result<f64> {
        let normal = Mixture::normal(optimum.mean.clone(), optimum.shape.clone())?;
        let dim = optimum.mean.len();
        let mut z = Batch::zeros(ASKED as usize, dim);
        self.streams.normals(Phase::Climb, AROUND_OPTIMA + number, &(0..ASKED).collect::<Vec<_>>(), &mut z);
        let points = z.iter_rows().map(|z| {
            let mut x = z.to_vec();
            normal.draw(0.0, &mut x);
            x
        });
        let (mut score, mut work) = (vec![0.0; dim], Vec::new());
        let weights: Vec<f64> = places(target, points.collect())?
            .iter()
            .map(|place| {
                let weight = place.log_density
                    - normal.evaluate(&place.point, &mut score, &mut work)
                    - optimum.log_evidence;
                let near = distance(&place.point, &optimum.mean, &optimum.shape) < core(dim);
                if near && weight < f64::INFINITY { exp(weight) } else { 0.0 }
            })
            .collect();
        let count = f64::from(ASKED);
        let mean = weights.iter().sum::<f64>() / count;
        let square: f64 = weights.iter().map(|w| (w - mean) * (w - mean)).sum();
        let least = mean - SURE * (square / (count * (count - 1.0))).sqrt();
        Ok(optimum.log_evidence + ln(least.max(0.0)))
    }
}

impl Weighty {
    /// Share of all mass, were so much there and not yet counted.
    fn share_of(&self, log_mass: f64) -> f64 {
        1.0 / (1.0 + exp(self.log_z - log_mass))
    }
}

/// The normal that draws look like, coordinate by coordinate.
///
/// # Errors
/// If there are no draws, or none that are numbers.
pub fn normal_of(draws: &[Draws], dim: usize) -> Result<Mixture> {
    let (mean, deviation) = spread(draws, dim);
    Mixture::normal(mean, Shape::Diagonal(deviation))
}

/// Mean and standard deviations of the draws; a coordinate that never moved is given a small one.
fn spread(draws: &[Draws], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut count, mut mean, mut square) = (0.0, vec![0.0; dim], vec![0.0; dim]);
    for x in draws.iter().flat_map(|d| d.x.chunks_exact(dim)) {
        count += 1.0;
        for j in 0..dim {
            let off = x[j] - mean[j];
            mean[j] += off / count;
            square[j] += off * (x[j] - mean[j]);
        }
    }
    let deviation = square.iter().zip(&mean).map(|(s, m)| match (s / count).sqrt() {
        d if d > 0.0 && d.is_finite() => d,
        _ => 1e-6 * m.abs().max(1.0),
    });
    let deviation = deviation.collect();
    (mean, deviation)
}

/// Squared distance in the coordinates of a shape.
fn distance(x: &[f64], from: &[f64], shape: &Shape) -> f64 {
    let mut away: Vec<f64> = x.iter().zip(from).map(|(x, m)| x - m).collect();
    shape.solve(&mut away);
    away.iter().map(|a| a * a).sum()
}

/// Squared distance from its middle that nearly all draws of a normal have less of.
fn core(dim: usize) -> f64 {
    let dim = dim as f64;
    dim + 3.0 * (2.0 * dim).sqrt() + 3.0
}

/// Squared distance from its middle that draws of a normal never have.
pub fn reach(dim: usize) -> f64 {
    let dim = dim as f64;
    dim + 8.0 * (2.0 * dim).sqrt() + 8.0
}
