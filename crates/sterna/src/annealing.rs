//! Annealed importance sampling and sequential Monte Carlo on the schedule and with the moves of a ladder: what parallel tempering is held
//! against.
//!
//! Points of the reference climb the chains. At each they gain the weight π̃^β′/π̃^β and are then moved there. Where weights have become uneven,
//! a population is drawn anew from itself (sequential Monte Carlo; Del Moral, Doucet and Jasra 2006), or it never is (annealed importance
//! sampling; Neal 2001). Either way the mean weight is an unbiased estimate of Z, whatever schedule and moves are, as long as both were
//! chosen without looking at these very points.

use crate::call::Rows;
use crate::estimates::log_mean_exp;
use crate::iteration::{LocalWork, Sampler, move_locally};
use crate::lanes::one::exp;
use crate::path::Points;
use crate::streams::Phase;
use crate::{Error, Result};
use rayon::prelude::*;

/// Populations of points that climb from reference to target.
///
/// ```
/// use std::sync::Arc;
/// use sterna::annealing::Annealing;
/// use sterna::explorers::{Hmc, StepSizes};
/// use sterna::{Sampler, Schedule, Streams, accelerators::Identity, paths::Geometric, targets::Normal};
/// let sampler = Sampler {
///     path: Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 9.0))),
///     schedule: Schedule::uniform(8),
///     explorer: Arc::new(Hmc::with_sizes(1, 5, StepSizes::fixed(8, 2, 0.2), 0.0)),
///     accelerator: Arc::new(Identity), // nothing is swapped
///     streams: Streams::new(1),
/// };
/// let found = Annealing::sequential(16, 100).climb(&sampler).unwrap();
/// assert!((found.log_z + 9f64.ln()).abs() < 5.0 * found.standard_error); // −½ log 9 for each coordinate
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annealing {
    /// Populations that know nothing of each other: their spread is the error of log Z.
    pub populations: usize,
    /// Points of each.
    pub particles: usize,
    /// Moves of each point on each chain.
    pub moves: usize,
    /// A population whose effective points are a smaller share than this is drawn anew from itself; 0 for never.
    pub resample_below: f64,
}

/// What reached the target.
#[derive(Clone, Debug)]
pub struct Annealed {
    /// The points, population after population.
    pub points: Points,
    /// Their log weights: the log of the weights' mean is `log_z`.
    pub log_weights: Vec<f64>,
    /// log Z of the target.
    pub log_z: f64,
    /// Its standard error, from the spread of populations.
    pub standard_error: f64,
    /// (Σ w)²/Σ w² over all points.
    pub effective: f64,
    /// How often a population was drawn anew, over all of them.
    pub resampled: usize,
}

impl Annealing {
    /// Annealed importance sampling.
    pub fn importance(populations: usize, particles: usize) -> Self {
        Self { populations, particles, moves: 1, resample_below: 0.0 }
    }

    /// Sequential Monte Carlo.
    pub fn sequential(populations: usize, particles: usize) -> Self {
        Self { resample_below: 0.5, ..Self::importance(populations, particles) }
    }

    /// Climbs the first leg of a sampler's schedule. Its streams must not be those that the schedule was tuned with.
    ///
    /// # Errors
    /// If a number is impossible, the reference cannot be drawn from, or no point has a weight.
    pub fn climb(&self, sampler: &Sampler) -> Result<Annealed> {
        self.check(sampler)?;
        let climbs = (0..self.populations).into_par_iter().map(|number| self.climb_once(sampler, number));
        let mut all: Vec<Population> = climbs.collect::<Result<_>>()?;
        let log_means: Vec<f64> = all.iter().map(Population::log_mean).collect();
        let log_z = log_mean_exp(&log_means);
        if log_z == f64::NEG_INFINITY {
            return Err(Error::NoStart { draws: self.populations * self.particles });
        }
        let mut points = Points::default();
        points.set_size(0, sampler.path.dim());
        let mut log_weights = Vec::new();
        for population in &mut all {
            log_weights.extend(population.log_weights.iter().map(|w| w + population.log_mean));
            points.append(std::mem::take(&mut population.points));
        }
        Ok(Annealed {
            points,
            effective: effective(&log_weights),
            log_weights,
            log_z,
            standard_error: relative_error(&log_means, log_z),
            resampled: all.iter().map(|population| population.resampled).sum(),
        })
    }

    fn check(&self, sampler: &Sampler) -> Result<()> {
        let Self { populations, particles, moves, resample_below } = *self;
        if populations < 2 {
            return Err(Error::setting(
                "Annealing.populations",
                populations,
                "their spread is the error: two at least",
            ));
        }
        if particles == 0 || populations.saturating_mul(particles) > u32::MAX as usize {
            return Err(Error::setting("Annealing.particles", particles, "1 to 4·10⁹ over all populations"));
        }
        if moves == 0 {
            return Err(Error::setting("Annealing.moves", moves, "points must move on each chain"));
        }
        if !(0.0..=1.0).contains(&resample_below) {
            return Err(Error::setting("Annealing.resample_below", resample_below, "a share from 0 to 1"));
        }
        if !sampler.path.draws_reference() {
            return Err(Error::setting(
                "Annealing",
                "a reference without exact draws",
                "choose a normal or a prior",
            ));
        }
        Ok(())
    }

    fn climb_once(&self, sampler: &Sampler, number: usize) -> Result<Population> {
        let betas = &sampler.schedule.betas()[..=sampler.schedule.target()];
        let mut population = Population::draw(sampler, number, self.particles)?;
        let mut work = LocalWork::default();
        for (chain, &beta) in betas.iter().enumerate().skip(1) {
            population.weigh(sampler, beta)?;
            if effective(&population.log_weights) < self.resample_below * self.particles as f64 {
                let uniform = sampler.streams.row(Phase::Swap, chain as u64, number as u32).uniform();
                population.draw_anew(uniform);
            }
            let mut rows = Rows::default();
            for (row, &key) in population.keys.iter().enumerate() {
                rows.push_staying(row, key, chain, beta);
            }
            for again in 0..self.moves {
                let t = ((chain - 1) * self.moves + again + 1) as u64;
                work.moved.begin(rows.len());
                move_locally(t, &mut population.points, sampler, &rows, &mut work)?;
            }
        }
        Ok(population)
    }
}

/// Points on their way, all on one chain.
struct Population {
    points: Points,
    /// Keys of their random numbers: of places, not of points, so that two copies of a point part.
    keys: Vec<u32>,
    log_weights: Vec<f64>,
    /// log of the mean weight when it was last drawn anew, and of the reference's Z.
    log_mean: f64,
    resampled: usize,
}

impl Population {
    fn draw(sampler: &Sampler, number: usize, particles: usize) -> Result<Self> {
        let path = &*sampler.path;
        let keys: Vec<u32> = (number * particles..(number + 1) * particles).map(|key| key as u32).collect();
        let mut points = Points::zeros(particles, path.dim());
        path.draw_reference(0.0, &sampler.streams, Phase::Reference.into(), 0, &keys, &mut points.x);
        path.evaluate(&vec![0.0; particles], &mut points)?;
        let log_mean = path.log_z_reference();
        Ok(Self { points, keys, log_weights: vec![0.0; particles], log_mean, resampled: 0 })
    }

    /// Goes to another β, and weighs what that changes.
    fn weigh(&mut self, sampler: &Sampler, beta: f64) -> Result<()> {
        let before = self.points.log_density.clone();
        sampler.path.move_to(&vec![beta; before.len()], &mut self.points)?;
        for ((weight, before), now) in self.log_weights.iter_mut().zip(before).zip(&self.points.log_density) {
            // What had no density has no weight, and never gets any.
            *weight = if before > f64::NEG_INFINITY { *weight + (now - before) } else { f64::NEG_INFINITY };
        }
        Ok(())
    }

    /// Draws the population anew from itself, by its weights.
    fn draw_anew(&mut self, uniform: f64) {
        let log_mean = log_mean_exp(&self.log_weights);
        if log_mean == f64::NEG_INFINITY {
            return; // nobody is left
        }
        let weights: Vec<f64> = self.log_weights.iter().map(|weight| exp(weight - log_mean)).collect();
        let mut points = Points::default();
        points.gather(&self.points, &ancestors(&weights, uniform));
        self.points = points;
        self.log_mean += log_mean;
        self.log_weights.fill(0.0);
        self.resampled += 1;
    }

    fn log_mean(&self) -> f64 {
        self.log_mean + log_mean_exp(&self.log_weights)
    }
}

/// Who comes from whom: as many places as weights, one every Σw/n from a uniform share of that on (systematic resampling), so that
/// each point gets n w/Σw places in the mean.
///
/// ```
/// use sterna::annealing::ancestors;
/// assert_eq!(ancestors(&[1.0, 0.0, 2.0, 1.0], 0.5), [0, 2, 2, 3]);
/// ```
pub fn ancestors(weights: &[f64], uniform: f64) -> Vec<usize> {
    let step = weights.iter().sum::<f64>() / weights.len() as f64;
    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
    let (mut from, mut up_to) = (0, weights[0]);
    let place = |i: usize| {
        let here = (i as f64 + uniform) * step;
        while up_to <= here && from < last {
            from += 1;
            up_to += weights[from];
        }
        from
    };
    (0..weights.len()).map(place).collect()
}

/// (Σ w)²/Σ w², from log weights.
fn effective(log_weights: &[f64]) -> f64 {
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return 0.0;
    }
    let weights = || log_weights.iter().map(|weight| exp(weight - top));
    weights().sum::<f64>().powi(2) / weights().map(|weight| weight * weight).sum::<f64>()
}

/// Standard error of the mean of exp(values), as a share of it: that of its logarithm, where it is small.
fn relative_error(values: &[f64], log_mean: f64) -> f64 {
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (exp(value - log_mean) - 1.0).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt()
}
