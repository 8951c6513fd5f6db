//! `kind = "cmcd"`: a controlled diffusion of K steps (§5.2); on molecules, with a drift in closed form.

use super::auto::{STEPS_TRIED, worth_of_evaluation};
use super::networks::{APART, Options, Seen, Shape, Usual, impossible, particles, size, training};
use super::{
    BATCH, GpuCannot, Kind, OF_CLOSED_FORMS, OF_NETWORKS, Plan, Planned, fitted_to, kept, refuse_transport,
    steps, steps_said,
};
use crate::config::{Count, word};
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::{Density, Ground, Hot};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit, FitCmcd};
use sterna::accelerators::NoDrift;
use sterna::transport::Drift;
use sterna_molecule_neural::FitControlled;
use sterna_neural::{CmcdSize, Compute, Hidden, POSSIBLE_NOISE, TrainCmcd, Training, with_stand_in};

/// K, where the config does not say.
const STEPS: usize = 5;

/// Pairs that share the usual batch.
const FEW: usize = 9;

/// How far a drift that sees coordinates apart must lead, in round trips on held-out samples, to be preferred. Drifts did
/// by 2.1 on ManyWell-32 and by 1.3 on GMM-10 after 667 steps (K = 5, 10 chains, seed 1); by 1.51 on GMM-10 with 30 chains, whose
/// trials are longer therefore.
const LEAD: f64 = 1.5;

/// Fields of `kind = "cmcd"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::Cmcd;
///
/// let config = Config { accelerator: Cmcd { steps: Some(2.into()), ..Cmcd::default() }.into(), ..Config::default() };
/// assert!(config.accelerator.trains());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cmcd {
    /// K, 5 if not given; or "auto": that of a few which allows most round trips for their cost, after a short training of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Count>,
    /// `none` for no drift, `exact` where it is known (normals); trained if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftChoice>,
    /// Variance of a step's noise relative to the local variance, per unit of barrier.
    pub noise: f64,
    /// A `transport.safetensors` of an earlier run, used on the schedule it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<PathBuf>,
}

/// Drifts that are not trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftChoice {
    /// No drift: the ablation.
    None,
    /// Where it is known.
    Exact,
}

impl Default for Cmcd {
    fn default() -> Self {
        Self { steps: None, drift: None, noise: 0.1, transport: None }
    }
}

impl Kind for Cmcd {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        match (&job.ground, &self.transport, self.drift) {
            (Ground::Molecule(hot), ..) => self.on_molecule(job, hot),
            (Ground::Density(_), Some(_), Some(_)) => {
                Err(JobError::Config("accelerator.drift and accelerator.transport exclude each other".into()))
            }
            (Ground::Density(density), Some(file), None) => kept::plan(job, density, file),
            (Ground::Density(density), None, None) => self.trained(job, density),
            (Ground::Density(density), None, Some(drift)) => self.with_drift(job, density, drift),
        }
    }

    fn steps(&self) -> Option<usize> {
        steps_said(self.steps)
    }

    fn trains(&self) -> bool {
        self.drift.is_none() && self.transport.is_none()
    }

    fn usual_steps(&self) -> Option<usize> {
        self.transport.is_none().then_some(STEPS)
    }

    fn usual(&self, problem: &Problem, seen: Seen) -> Option<Usual> {
        (self.trains() && problem.molecule.is_none()).then(|| self.network(seen))
    }

    /// Noise, interpolation and multiples of the score belong to a pair each, and learn from its rows of a batch alone.
    fn batch(&self, chains: Count) -> usize {
        let pairs = if let Count::Number(chains) = chains { chains.saturating_sub(1) } else { FEW };
        BATCH.saturating_mul(pairs.max(FEW)) / FEW
    }

    fn collect(&self, on_molecule: bool) -> Option<u64> {
        let all = if on_molecule || self.trains() { OF_NETWORKS } else { OF_CLOSED_FORMS };
        self.transport.is_none().then_some(all)
    }

    fn transport(&mut self) -> Option<&mut Option<PathBuf>> {
        Some(&mut self.transport)
    }

    fn on_gpu(&self) -> Result<(), GpuCannot> {
        self.drift.map_or(Ok(()), |drift| Err(GpuCannot::Drift(drift)))
    }
}

impl Cmcd {
    fn trained(&self, job: &Planned, density: &Density) -> Result<Plan, JobError> {
        let path = density.path()?;
        let particles = particles(job)?;
        let (config, graph) = (job.config, job.problem.in_graphs());
        let usual = |apart| self.network(Seen::of(particles, apart));
        let settings = |apart| training(config, usual(apart).steps);
        let sized = |Shape { apart, on_trial, steps }: Shape| -> Result<CmcdSize, JobError> {
            let (layers, width) = size(config, usual(apart))?;
            Ok(CmcdSize {
                steps,
                hidden: Hidden::new(layers, width),
                particles,
                apart,
                // On DW-4 it brought nothing. A trial compares what the networks see by themselves.
                along_score: !on_trial && config.network.along_score.unwrap_or(particles.is_none()),
                noise: self.noise,
            })
        };
        let new = |size: CmcdSize, training| TrainCmcd::new(path.clone(), graph.clone(), size, training);
        let make = |shape: Shape, training| -> Result<Arc<dyn Fit>, JobError> {
            let size = sized(shape)?;
            with_stand_in(training, |t| new(size, t)).map_err(impossible)
        };
        let evaluation = worth_of_evaluation(job.problem, None)?;
        let journey = |shape: Shape| -> Result<f64, JobError> {
            let on_cores = Training { compute: Compute::Cpu, ..settings(shape.apart) };
            let (operations, _) =
                new(sized(shape)?, on_cores).and_then(|fit| fit.work()).map_err(impossible)?;
            Ok(shape.steps as f64 + operations / evaluation)
        };
        let tried = match self.steps {
            Some(Count::Auto) => STEPS_TRIED.to_vec(),
            _ => vec![self.allowed_steps()?],
        };
        // What a run comes to have is known once it has chosen.
        let planned = if let [steps] = tried[..] { steps } else { 0 };
        density.plan(Options::new(config, particles, LEAD, &tried)?.best(settings, journey, make)?, planned)
    }

    fn with_drift(&self, job: &Planned, density: &Density, drift: DriftChoice) -> Result<Plan, JobError> {
        let drift: Arc<dyn Drift> = match (drift, &job.problem.exact_drift) {
            (DriftChoice::None, _) => Arc::new(NoDrift),
            (DriftChoice::Exact, Some(drift)) => {
                density.must_be_standard("with accelerator.drift = \"exact\"", "it starts at N(0, I)")?;
                drift.clone()
            }
            (DriftChoice::Exact, None) => {
                return Err(JobError::Config(format!(
                    "accelerator.drift = \"exact\" is known for target.kind = \"normal\" alone, not \"{}\"",
                    job.problem.kind.kind()
                )));
            }
        };
        if !POSSIBLE_NOISE.contains(&self.noise) {
            return Err(JobError::setting(
                "accelerator.noise",
                self.noise,
                "it must lie between 1e-6 and 1e3",
            ));
        }
        let steps = self.allowed_steps()?;
        let fit = FitCmcd { drift, steps, noise: self.noise };
        density.plan(Acceleration::Fitted(Arc::new(fit)), steps)
    }

    fn on_molecule(&self, job: &Planned, hot: &Hot) -> Result<Plan, JobError> {
        refuse_transport(&self.transport)?;
        if let Some(drift) = self.drift {
            return Err(JobError::Config(format!(
                "accelerator.drift = \"{}\" is not known for molecules: theirs follows from their coordinates",
                word(&drift)
            )));
        }
        let steps = self.allowed_steps()?;
        let fit = FitControlled {
            molecule: hot.molecule.clone(),
            temperatures: hot.path.temperatures(),
            path: hot.path.clone(),
            steps,
            seed: job.config.seed,
            guard: job.config.training.guard,
        };
        fitted_to(hot, Arc::new(fit), steps)
    }

    fn allowed_steps(&self) -> Result<usize, JobError> {
        steps("cmcd", self.steps, STEPS, 1..=10_000)
    }

    /// A step of training costs about K + 1 calls of the drift, forth and back; an EGNN costs some five times as much as an MLP,
    /// and so does a network for each of 32 coordinates, which learns in fewer steps. So trainings take one to four minutes of
    /// one core.
    fn network(&self, seen: Seen) -> Usual {
        let k = self.steps().unwrap_or(STEPS).max(1) as u64;
        let ([small, paper], steps) = match seen {
            Seen::Particles => ([(2, 32), (4, 64)], (12_500 / k).clamp(500, 6000)),
            Seen::Apart => (APART, (20_000 / k).clamp(1000, 8000)),
            Seen::Together => ([(3, 96), (4, 512)], (120_000 / k).clamp(1000, 30_000)),
        };
        Usual { small, paper, steps }
    }
}
