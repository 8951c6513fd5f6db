//! What a run has found.

use super::Run;
use crate::estimates::{
    LogZ, Series, effective_draws, log_z_of, log_z_of_beginning, log_z_of_parts, round_trip_rate,
};
use crate::records::{BadPoint, Counts};
use crate::schedule::Schedule;
use rayon::prelude::*;

/// What a finished (or interrupted) run has found.
#[derive(Clone, Debug)]
pub struct Results {
    /// Sampling iterations so far.
    pub iterations: u64,
    /// The schedule in use.
    pub schedule: Schedule,
    /// Rejection rate of each pair, by the tanh estimator.
    pub rejection_rates: Vec<f64>,
    /// λ(β) on the schedule of the last tuning round: (β, λ).
    pub local_barrier: Vec<(f64, f64)>,
    /// Round trips of all ladders.
    pub round_trips: u64,
    /// Round trips per iteration and ladder.
    pub round_trip_rate: f64,
    /// What the rejection rates allow.
    pub round_trip_rate_predicted: f64,
    /// log Z in all its estimates; of two legs, both by the weight of their errors.
    pub log_z: LogZ,
    /// What each leg found: one from the reference to the target, and one from the anchor where there is one.
    pub legs: Vec<Leg>,
    /// Its true value, where known.
    pub log_z_truth: Option<f64>,
    /// Mean of each coordinate on the target chain with its standard error.
    pub means: Vec<(f64, f64)>,
    /// Effective sample size of each coordinate on the target chain.
    pub ess: Vec<f64>,
    /// Mean acceptance of local moves of each chain; NaN where draws are exact.
    pub acceptance: Vec<f64>,
    /// Size of each chain's local moves, as their explorer tells it.
    pub step_size: Vec<f64>,
    /// Proposals at which the target answered NaN or +∞, and the first of them.
    pub bad: (u64, Option<BadPoint>),
    /// Target evaluations, tuning included.
    pub evaluations: u64,
    /// Target evaluations of sampling alone.
    pub sampling_evaluations: u64,
    /// Points at which a learned path asked its network, tuning included; transports count for themselves.
    pub network_evaluations: u64,
    /// Those of sampling alone.
    pub sampling_network_evaluations: u64,
}

/// What a leg found.
#[derive(Clone, Debug)]
pub struct Leg {
    /// Its chains, the target among them.
    pub chains: usize,
    /// It moves in every so many iterations.
    pub every: u64,
    /// Σ of its rejection rates.
    pub barrier: f64,
    /// Round trips that began at its reference.
    pub round_trips: u64,
    /// log Z from it alone.
    pub log_z: LogZ,
    /// log Z from parts of it: halves of ladders.
    pub parts: Vec<f64>,
}

impl Run {
    /// log Z from each leg alone.
    fn log_z_of_legs(&self) -> Vec<LogZ> {
        let legs = self.records().next().map_or(1, |record| record.legs().count());
        let of = |leg| {
            let weights: Vec<_> = self.records().flat_map(|r| r.weights(leg)).collect();
            log_z_of(self.ladder.sampler.path.log_z_reference(), &weights)
        };
        (0..legs).map(of).collect()
    }

    /// log Z from parts of a leg.
    fn log_z_of_parts(&self, leg: usize) -> Vec<f64> {
        let weights: Vec<_> = self.records().flat_map(|r| r.weights(leg)).collect();
        log_z_of_parts(self.ladder.sampler.path.log_z_reference(), &weights)
    }

    /// How log Z came to be what it is: after each half of the iterations so far, half of that half and so on, log Z with its
    /// error from each leg alone. Empty once the weights of a long run are folded.
    pub fn log_z_so_far(&self) -> Vec<(u64, Vec<(f64, f64)>)> {
        let Some(record) = self.records().next() else { return Vec::new() };
        let (iterations, legs) = (record.counts.iterations, record.legs().count());
        let reference = self.ladder.sampler.path.log_z_reference();
        let after = |halvings: i32| {
            let share = 0.5f64.powi(halvings);
            let of = |leg| {
                let weights: Vec<_> = self.records().flat_map(|r| r.weights(leg)).collect();
                let z = log_z_of_beginning(reference, &weights, share);
                z.map_or((f64::NAN, f64::NAN), |z| (z.bar, z.standard_error))
            };
            ((share * iterations as f64) as u64, (0..legs).map(of).collect::<Vec<_>>())
        };
        let known = |legs: &[(f64, f64)]| legs.iter().any(|(z, _)| z.is_finite());
        (0..8).rev().map(after).filter(|(_, legs)| known(legs)).collect()
    }

    /// log Z from all legs.
    pub(super) fn log_z(&self) -> LogZ {
        joined(&self.log_z_of_legs(), |leg| self.round_trips_of(leg))
    }

    /// Round trips of sampling that began at the reference of a leg.
    pub fn round_trips_of(&self, leg: usize) -> u64 {
        self.records().map(|record| record.round_trips_of(leg)).sum()
    }

    fn legs(&self, rejection_rates: &[f64], log_z: &[LogZ]) -> Vec<Leg> {
        let Some(legs) = self.records().next().map(|record| record.legs()) else { return Vec::new() };
        let of = |(leg, log_z): (usize, &LogZ)| Leg {
            chains: legs.pairs_of(leg).len() + 1,
            every: if leg == 0 { 1 } else { legs.every() },
            barrier: rejection_rates[legs.pairs_of(leg)].iter().sum(),
            round_trips: self.round_trips_of(leg),
            log_z: log_z.clone(),
            parts: self.log_z_of_parts(leg),
        };
        log_z.iter().enumerate().map(of).collect()
    }

    /// Estimates from the sampling so far.
    ///
    /// # Panics
    /// If sampling has not begun.
    pub fn results(&self) -> Results {
        let chains = self.ladder.chains();
        let counts = self.records().map(|r| &r.counts);
        let iterations = self.records().next().expect("sampling has begun").counts.iterations;
        let rejection_rates = Counts::rejection_rates(counts.clone(), chains);
        let round_trips = self.round_trips();
        let log_z = self.log_z_of_legs();
        let legs = self.legs(&rejection_rates, &log_z);
        let series = self.coordinate_series();
        let path = &self.ladder.sampler.path;
        let (asked, before) = (self.asked(), self.progress.before_sampling);
        Results {
            iterations,
            schedule: self.ladder.sampler.schedule.clone(),
            local_barrier: self.ladder.barrier.local().collect(),
            round_trips,
            round_trip_rate: round_trips as f64 / (iterations * self.settings.ensembles as u64) as f64,
            round_trip_rate_predicted: predicted(&rejection_rates, &legs, self.turns_of_a_lone_pair()),
            rejection_rates,
            log_z: joined(&log_z, |leg| legs[leg].round_trips),
            legs,
            log_z_truth: path.log_z(),
            means: series.par_iter().map(|s| pooled_mean(s)).collect(),
            ess: series.par_iter().map(|s| effective_draws(s)).collect(),
            acceptance: Counts::acceptance(counts.clone(), chains),
            step_size: self.ladder.sampler.explorer.size_of_moves(),
            bad: (
                counts.clone().flat_map(|c| &c.local).map(|l| l.bad).sum(),
                Counts::first_bad_point(counts.clone()).cloned(),
            ),
            evaluations: asked.target,
            sampling_evaluations: asked.target - before.target,
            network_evaluations: asked.network,
            sampling_network_evaluations: asked.network - before.network,
        }
    }

    /// Share of the iterations in which a first leg of one pair that takes no turns is proposed: in all but those of the other
    /// leg's even pairs.
    fn turns_of_a_lone_pair(&self) -> Option<f64> {
        let legs = self.records().next()?.legs();
        let (mut turns, cycle) = (0, 2 * legs.every());
        for iteration in 1..=cycle {
            turns += u64::from(legs.pairs(iteration).any(|pair| pair == 1));
        }
        let share = turns as f64 / cycle as f64;
        (legs.target() == 1 && share > 0.5).then_some(share)
    }

    /// `[coordinate][ladder]` of the target chain.
    pub(super) fn coordinate_series(&self) -> Vec<Vec<&Series>> {
        let dim = self.ladder.dim();
        let all = || self.records().flat_map(|r| &r.series);
        (0..dim).map(|j| all().skip(j).step_by(dim).collect()).collect()
    }
}

/// A leg with fewer round trips does not know its own error.
const FEW_TRIPS: u64 = 10;

/// Estimates of one number, each weighed by its error. The first stays alone where the second is not known well enough.
fn joined(legs: &[LogZ], round_trips: impl Fn(usize) -> u64) -> LogZ {
    let [first, second] = legs else { return legs[0].clone() };
    let known = |z: &LogZ| z.bar.is_finite() && z.standard_error > 0.0 && z.standard_error.is_finite();
    if !known(second) || round_trips(1) < FEW_TRIPS {
        return LogZ { pairs: [&first.pairs[..], &second.pairs[..]].concat(), ..first.clone() };
    }
    if !known(first) || round_trips(0) < FEW_TRIPS {
        return LogZ { pairs: [&first.pairs[..], &second.pairs[..]].concat(), ..second.clone() };
    }
    let precision = [first, second].map(|z| z.standard_error.powi(-2));
    let share = precision[1] / (precision[0] + precision[1]);
    LogZ {
        bar: (1.0 - share) * first.bar + share * second.bar,
        standard_error: (precision[0] + precision[1]).sqrt().recip(),
        pairs: [&first.pairs[..], &second.pairs[..]].concat(),
        // An anchor's draws may have weights beyond all bounds, which one-sided means cannot bear.
        ..first.clone()
    }
}

/// Round trips an iteration that the rejections of all legs allow: they add up. A first leg of one pair that takes no turns makes one
/// with every swap that is accepted.
fn predicted(rejection_rates: &[f64], legs: &[Leg], turns_of_a_lone_pair: Option<f64>) -> f64 {
    let mut rest = rejection_rates;
    let of = |(number, leg): (usize, &Leg)| {
        let (own, others) = rest.split_at(leg.chains - 1);
        rest = others;
        match turns_of_a_lone_pair {
            Some(turns) if number == 0 => turns * (1.0 - own[0]),
            _ => round_trip_rate(own) / leg.every as f64,
        }
    };
    legs.iter().enumerate().map(of).sum()
}

/// Mean over independent ladders of equal length, and its standard error.
fn pooled_mean(ladders: &[&Series]) -> (f64, f64) {
    let each: Vec<_> = ladders.iter().map(|l| l.mean_with_error()).collect();
    let n = each.len() as f64;
    let variance: f64 = each.iter().map(|(_, e)| e * e).sum();
    (each.iter().map(|(m, _)| m).sum::<f64>() / n, variance.sqrt() / n)
}
