//! Many small runs of simulated data, and how their answers lie around the truth.

use super::models::Model;
use rayon::prelude::*;
use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::accelerators::Identity;
use sterna::streams::{Phase, Streams};
use sterna_run::accelerators::{self, Plan};
use sterna_run::{Config, JobError, Problem};
use sterna_testkit::broken::{Broken, Fault};
use sterna_testkit::p_values::{chi_square_counts, mean_and_error, normal_two_sided};

/// Draws of a run that a parameter is ranked among.
pub const DRAWS: usize = 49;

/// Bars of a histogram of ranks; `DRAWS + 1` ranks share out evenly.
pub const BARS: usize = 10;

/// What carries proposals of swaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// A kind of accelerator, as a config names it.
    Sound(&'static str),
    /// Plain swaps with a fault, which must be noticed.
    Twin(&'static str, Fault),
}

impl Method {
    /// Those that must pass.
    pub const SOUND: [Self; 5] = [
        Self::Sound("none"),
        Self::Sound("affine"),
        Self::Sound("flow"),
        Self::Sound("cmcd"),
        Self::Sound("diffusion"),
    ];

    /// Those that must not: one spoils draws, one log Z alone.
    pub const TWINS: [Self; 2] = [
        Self::Twin("broken twin: swaps upside down", Fault::PrintedRatio),
        Self::Twin("broken twin: a constant lost", Fault::MissingConstant(0.1)),
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound("none") => "PT",
            Self::Sound(kind) => kind,
            Self::Twin(name, _) => name,
        }
    }
}

/// Short, with all stages. Guards are off, so that trained transports are used even if they help nothing; but for `affine`, whose maps
/// of the two modes of a fold overlap with nothing.
const CONFIG: &str = r#"
[reference]
kind = "standard-normal"
[chains]
count = 4
[schedule]
rounds = 4
iterations = 120
burn_in = 20
[network]
layers = 2
width = 8
[training]
collect = 200
steps = 30
batch = 32
learning_rate = 0.005
guard = false
[run]
burn_in = 50
iterations = 1470
thin = 30
"#;

/// What one simulation found: ranks of both parameters and of the log likelihood among the draws; errors of both means and of
/// log Z, in standard errors.
#[derive(Clone, Debug)]
pub struct Outcome {
    ranks: [usize; 3],
    means: [f64; 2],
    log_z: f64,
}

/// One simulation.
pub fn simulate(model: Model, method: Method, seed: u64, number: u64) -> Result<Outcome, JobError> {
    let mut stream = Streams::new(seed).row(Phase::Check, number, 0);
    let (theta, posterior) = model.simulate(&mut stream);
    let kind = match method {
        Method::Sound(kind) => kind,
        Method::Twin(..) => "none",
    };
    let (run_seed, kind) = (format!("{}", (seed << 32) + number), format!("\"{kind}\""));
    let mut overrides = vec![("seed", run_seed.as_str()), ("accelerator.kind", kind.as_str())];
    if kind == "\"affine\"" {
        overrides.push(("training.guard", "true"));
    }
    if ["\"cmcd\"", "\"diffusion\""].contains(&kind.as_str()) {
        overrides.extend([("accelerator.steps", "2"), ("network.coordinates", "together")]);
    }
    let config = Config::parse(CONFIG, &overrides)?;
    let problem = Problem::new(posterior.clone());
    let mut plan = accelerators::plan(&problem, &config)?;
    if let Method::Twin(_, fault) = method {
        let twin = Broken { inner: Arc::new(Identity), fault };
        plan = Plan::new(plan.path, Acceleration::Given(Arc::new(twin)), 0);
    }
    let mut run = plan.begin(config.settings(&problem)?)?;
    run.complete()?;
    let draws = run.take_draws().swap_remove(0);
    let results = run.results();
    let rank = |value: f64, of: &dyn Fn(&[f64]) -> f64| draws.x.chunks(2).filter(|x| of(x) < value).count();
    let likelihood = |x: &[f64]| posterior.log_likelihood(x).0;
    let (log_z, means) = posterior.exact();
    Ok(Outcome {
        ranks: [rank(theta[0], &|x| x[0]), rank(theta[1], &|x| x[1]), rank(likelihood(&theta), &likelihood)],
        means: [0, 1].map(|j| (results.means[j].0 - means[j]) / results.means[j].1),
        log_z: (results.log_z.bar - log_z) / results.log_z.standard_error,
    })
}

/// How the outcomes of one model and method lie.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Ranks of both parameters and of the log likelihood, in bars.
    pub histograms: [[u64; BARS]; 3],
    /// p-values of these being even.
    pub p_ranks: [f64; 3],
    /// Mean and standard deviation of the z-scores of both means, pooled.
    pub means: (f64, f64),
    /// The same of log Z.
    pub log_z: (f64, f64),
    /// p-values of the mean z-scores being zero: of means and of log Z.
    pub p_means: [f64; 2],
}

impl Calibration {
    /// Of many simulations, in any order of work.
    pub fn of(model: Model, method: Method, seed: u64, simulations: u64) -> Result<Self, JobError> {
        let outcomes: Vec<Outcome> = (0..simulations)
            .into_par_iter()
            .map(|number| simulate(model, method, seed, number))
            .collect::<Result<_, _>>()?;
        let histograms = [0, 1, 2].map(|q| {
            let mut bars = [0; BARS];
            outcomes.iter().for_each(|outcome| bars[outcome.ranks[q] * BARS / (DRAWS + 1)] += 1);
            bars
        });
        let even = [1.0 / BARS as f64; BARS];
        // The two means of a run are not independent of each other: each run counts once.
        let pooled: Vec<f64> = outcomes.iter().map(|o| (o.means[0] + o.means[1]) / 2.0).collect();
        let each: Vec<f64> = outcomes.iter().flat_map(|o| o.means).collect();
        let log_z: Vec<f64> = outcomes.iter().map(|o| o.log_z).collect();
        let p_of = |values: &[f64]| {
            let (mean, error) = mean_and_error(values);
            normal_two_sided(mean / error)
        };
        Ok(Self {
            p_ranks: histograms.map(|bars| chi_square_counts(&bars, &even)),
            histograms,
            means: spread(&each),
            p_means: [p_of(&pooled), p_of(&log_z)],
            log_z: spread(&log_z),
        })
    }

    /// The smallest of all p-values.
    pub fn worst(&self) -> f64 {
        self.p_ranks.iter().chain(&self.p_means).copied().fold(1.0, f64::min)
    }
}

/// Mean and standard deviation.
fn spread(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|z| (z - mean).powi(2)).sum::<f64>();
    (mean, (square / (values.len() - 1) as f64).sqrt())
}
