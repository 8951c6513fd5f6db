//! `sterna baseline`: annealed importance sampling and sequential Monte Carlo, on the ladder that a run would tune.

use crate::config::Config;
use crate::error::JobError;
use crate::job::{Tuned, tuned};
use crate::problem::Problem;
use crate::summary::{Spent, Stopwatch};
use serde::Serialize;
use std::sync::Arc;
use sterna::accelerators::Identity;
use sterna::annealing::{Annealed, Annealing};
use sterna::explorer::Tuning;
use sterna::{Batch, Sampler, Streams};

/// How often chains of a ladder are made more, unless it is said: weights need shorter steps than swaps.
const CHAINS_FOR_EACH: usize = 8;
/// Chains at most.
const MOST_CHAINS: usize = 100_000;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Populations, points, moves, and whether points are drawn anew.
    pub annealing: Annealing,
    /// Steps of the schedule, reference and target included; eight for each pair of the tuned ladder if not said.
    pub chains: Option<usize>,
}

/// What came of it.
///
/// ```
/// use sterna::annealing::Annealing;
/// use sterna_run::{Config, baseline};
///
/// let config = Config::parse("[target]\nkind = \"shells\"", &[])?;
/// let request = baseline::Request { annealing: Annealing::sequential(8, 100), chains: None };
/// let (found, _) = baseline::run(config.problem()?, &config, &request)?;
/// assert!((found.log_z - found.truth.unwrap()).abs() < 6.0 * found.standard_error);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The kind of target.
    pub target: String,
    /// `ais` or `smc`.
    pub method: &'static str,
    /// The seed.
    pub seed: u64,
    /// Steps of the schedule, reference and target included.
    pub chains: usize,
    /// Populations, and points of each.
    pub populations: usize,
    /// Points of each population.
    pub particles: usize,
    /// Moves of each point on each chain.
    pub moves: usize,
    /// log Z of the target.
    pub log_z: f64,
    /// Its standard error, from the spread of populations.
    pub standard_error: f64,
    /// log Z, where it is known.
    pub truth: Option<f64>,
    /// (Σ w)²/Σ w² of all points.
    pub ess: f64,
    /// How often populations were drawn anew.
    pub resampled: usize,
    /// Evaluations of the target.
    pub evaluations: Cost<u64>,
    /// Time.
    pub spent: Cost<Spent>,
    /// Weighted means of the values, by name.
    pub means: Vec<(String, f64)>,
}

/// Of tuning, which other seeds could share, and of the climb itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost<T> {
    /// Schedule and moves, as a run finds them.
    pub tuning: T,
    /// The climb.
    pub annealing: T,
}

/// Values of all points in the problem's own words, with log weights and log densities.
#[derive(Clone, Debug, Serialize)]
pub struct Weighted {
    /// What the values are called; empty where they have no names.
    pub names: Vec<String>,
    /// The values of each point.
    pub values: Vec<Vec<f64>>,
    /// Log weights, whose mean in the weights is Z.
    pub log_weights: Vec<f64>,
    /// Log densities.
    pub log_density: Vec<f64>,
}

/// Tunes a ladder, then climbs it.
pub fn run(problem: Problem, config: &Config, request: &Request) -> Result<(Outcome, Weighted), JobError> {
    if let Some(chains) = request.chains.filter(|chains| !(2..=MOST_CHAINS).contains(chains)) {
        let reason = format!("a schedule has 2 to {MOST_CHAINS} chains");
        return Err(JobError::setting("--chains", chains, reason));
    }
    tuned(problem.clone(), config, |ladder| {
        let sampler = sampler(&ladder, request.chains);
        let before = sampler.path.evaluations();
        let clock = Stopwatch::start();
        let found = request.annealing.climb(&sampler)?;
        let annealing = clock.stop();
        let evaluations = Cost { tuning: before, annealing: sampler.path.evaluations() - before };
        let weighted = weighted(&problem, &found);
        let Annealing { populations, particles, moves, resample_below } = request.annealing;
        let outcome = Outcome {
            target: problem.kind.kind().into(),
            method: if resample_below > 0.0 { "smc" } else { "ais" },
            seed: ladder.config.seed,
            chains: sampler.schedule.chains(),
            populations,
            particles,
            moves,
            log_z: found.log_z,
            standard_error: found.standard_error,
            truth: sampler.path.log_z(),
            ess: found.effective,
            resampled: found.resampled,
            evaluations,
            spent: Cost { tuning: ladder.spent, annealing },
            means: means(&weighted, found.log_z),
        };
        Ok((outcome, weighted))
    })
}

/// The tuned ladder's first leg with more chains, and random numbers of its own.
fn sampler(ladder: &Tuned, chains: Option<usize>) -> Sampler {
    let tuned = ladder.run.sampler();
    let leg = tuned.schedule.leg(0);
    let schedule = leg.resized(chains.unwrap_or(CHAINS_FOR_EACH * leg.pairs() + 1));
    let adapted = tuned.explorer.adapt(&Tuning::Schedule { from: &tuned.schedule, to: &schedule });
    Sampler {
        path: tuned.path.clone(),
        explorer: adapted.unwrap_or_else(|| tuned.explorer.clone()),
        schedule,
        accelerator: Arc::new(Identity),
        // Not the random numbers that the ladder was tuned with.
        streams: Streams::new(ladder.config.seed ^ 0x9216_D5D9_8979_FB1B),
    }
}

fn weighted(problem: &Problem, found: &Annealed) -> Weighted {
    let x: &Batch = &found.points.x;
    let of_point = |point: &[f64]| match &problem.values {
        None => point.to_vec(),
        Some(of) => {
            let mut values = vec![0.0; of.values()];
            of.constrain(point, &mut values);
            values
        }
    };
    Weighted {
        names: problem.value_names(),
        values: x.iter_rows().map(of_point).collect(),
        log_weights: found.log_weights.clone(),
        log_density: found.points.target.log_density.clone(),
    }
}

fn means(weighted: &Weighted, log_z: f64) -> Vec<(String, f64)> {
    let weights: Vec<f64> = weighted.log_weights.iter().map(|weight| (weight - log_z).exp()).collect();
    let all: f64 = weights.iter().sum();
    let mean = |j: usize| {
        let sum: f64 = weighted.values.iter().zip(&weights).map(|(values, weight)| values[j] * weight).sum();
        sum / all
    };
    weighted.names.iter().enumerate().map(|(j, name)| (name.clone(), mean(j))).collect()
}
