//! What a run has found.

use super::Run;
use crate::estimates::{LogZ, Series, effective_draws, log_z_of, round_trip_rate};
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
    /// log Z in all its estimates.
    pub log_z: LogZ,
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

impl Run {
    /// Estimates from the sampling so far.
    ///
    /// # Panics
    /// If sampling has not begun.
    pub fn results(&self) -> Results {
        let chains = self.settings.chains;
        let counts = self.records().map(|r| &r.counts);
        let iterations = self.records().next().expect("sampling has begun").counts.iterations;
        let rejection_rates = Counts::rejection_rates(counts.clone(), chains);
        let round_trips = self.round_trips();
        let weights: Vec<_> = self.records().flat_map(|r| r.weights()).collect();
        let series = self.coordinate_series();
        let path = &self.ladder.sampler.path;
        let (asked, before) = (self.asked(), self.progress.before_sampling);
        Results {
            iterations,
            schedule: self.ladder.sampler.schedule.clone(),
            local_barrier: self.ladder.barrier.local().collect(),
            round_trips,
            round_trip_rate: round_trips as f64 / (iterations * self.settings.ensembles as u64) as f64,
            round_trip_rate_predicted: round_trip_rate(&rejection_rates),
            rejection_rates,
            log_z: log_z_of(path.log_z_reference(), &weights),
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

    /// `[coordinate][ladder]` of the target chain.
    fn coordinate_series(&self) -> Vec<Vec<&Series>> {
        let dim = self.ladder.dim();
        let all = || self.records().flat_map(|r| &r.series);
        (0..dim).map(|j| all().skip(j).step_by(dim).collect()).collect()
    }
}

/// Mean over independent ladders of equal length, and its standard error.
fn pooled_mean(ladders: &[&Series]) -> (f64, f64) {
    let each: Vec<_> = ladders.iter().map(|l| l.mean_with_error()).collect();
    let n = each.len() as f64;
    let variance: f64 = each.iter().map(|(_, e)| e * e).sum();
    (each.iter().map(|(m, _)| m).sum::<f64>() / n, variance.sqrt() / n)
}
