//! `kind = "diffusion"`: a diffusion path, known or learned, and K steps along it (§5.3).

use super::auto::{STEPS_TRIED, worth_of_evaluation};
use super::networks::{APART, Options, Seen, Shape, Usual, impossible, particles, size, training};
use super::{Kind, Plan, Planned, kept, refuse_transport, steps, steps_said};
use crate::config::{Count, TargetKind};
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::{Density, Ground};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit};
use sterna::accelerators::{DiffusionSteps, Framed, Integrator};
use sterna::frame::Frame;
use sterna::path::AnnealingPath;
use sterna::paths::Diffused;
use sterna_neural::{DiffusionSize, Hidden, TrainDiffusion, with_stand_in};

/// K, where the config does not say.
const STEPS: usize = 5;

/// Steps of an energy model's training; half as many where it sees coordinates apart.
const TRAINING_STEPS: u64 = 24_000;

/// How far a path that sees coordinates apart must lead, in round trips on held-out samples, to be preferred. Learned paths
/// did by 1.26 on ManyWell-32 and by 1.01 on GMM-10 after 2000 steps, and there held-out samples flatter the other, whose
/// chains leave them (K = 5, 10 chains, seed 1).
const LEAD: f64 = 1.1;

/// Fields of `kind = "diffusion"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::{Diffusion, ScoreChoice};
///
/// let accelerator = Diffusion { steps: Some(2.into()), score: Some(ScoreChoice::Exact), ..Diffusion::default() };
/// let config = Config { accelerator: accelerator.into(), ..Config::default() };
/// assert!(!config.accelerator.trains());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diffusion {
    /// K, 5 if not given; or "auto": that of a few which allows most round trips for their cost along the path that was learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Count>,
    /// A `transport.safetensors` of an earlier run, used with any K and any number of chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<PathBuf>,
    /// `exact`, where the target knows its own diffusion (gmm, normal); trained if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreChoice>,
    /// `exponential` or `euler`.
    pub integrator: Integrator,
}

/// Scores that are not trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreChoice {
    /// Where the target knows it.
    Exact,
}

impl Kind for Diffusion {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        let Ground::Density(density) = &job.ground else {
            refuse_transport(&self.transport)?;
            return Err(JobError::Config(
                "accelerator.kind = \"diffusion\" is not for molecules; theirs are \"none\", \"scaling\", \"affine\", \
                 \"flow\" and \"cmcd\""
                    .into(),
            ));
        };
        if let Some(file) = &self.transport {
            if self.score.is_some() {
                return Err(JobError::Config(
                    "accelerator.score and accelerator.transport exclude each other".into(),
                ));
            }
            return kept::plan(job, density, file);
        }
        if self.score.is_none() {
            return self.trained(job, density);
        }
        density.must_be_standard("with accelerator.score = \"exact\"", "it starts at N(0, I)")?;
        match Diffused::exact(density.target.clone()) {
            Some(path) => self.along(Arc::new(path), None),
            None => Err(JobError::Config(format!(
                "accelerator.score = \"exact\" needs a target that knows its own diffusion (gmm, normal), not \"{}\"",
                job.problem.kind.kind()
            ))),
        }
    }

    fn steps(&self) -> Option<usize> {
        steps_said(self.steps)
    }

    fn trains(&self) -> bool {
        self.score.is_none() && self.transport.is_none()
    }

    fn usual_steps(&self) -> Option<usize> {
        Some(STEPS)
    }

    fn usual(&self, problem: &Problem, seen: Seen) -> Option<Usual> {
        (self.trains() && problem.molecule.is_none()).then(|| network(problem, seen))
    }

    fn collect(&self, _: bool) -> Option<u64> {
        self.trains().then_some(50_000)
    }

    fn transport(&mut self) -> Option<&mut Option<PathBuf>> {
        Some(&mut self.transport)
    }
}

impl Diffusion {
    /// Along a diffusion path that is known before the run, in coordinates of its own where it has some.
    pub(super) fn along(&self, path: Arc<dyn AnnealingPath>, frame: Option<Frame>) -> Result<Plan, JobError> {
        let steps = self.allowed_steps()?;
        let acceleration = match steps {
            0 => Acceleration::None,
            _ => {
                let steps = DiffusionSteps::new(steps, self.integrator)?;
                let along = Arc::new(sterna::accelerators::Diffusion { steps });
                Acceleration::Given(match frame {
                    Some(frame) => Arc::new(Framed::new(along, Arc::new(frame))),
                    None => along,
                })
            }
        };
        Ok(Plan::new(path, acceleration, steps))
    }

    fn trained(&self, job: &Planned, density: &Density) -> Result<Plan, JobError> {
        let path: Arc<dyn AnnealingPath> = density.path()?;
        let (target, config) = (density.target.clone(), job.config);
        let particles = particles(job)?;
        let graph = job.problem.in_graphs();
        let integrator = self.integrator;
        let open = self.steps == Some(Count::Auto);
        // What a run comes to have is known once it has chosen.
        let (steps, planned) = if open { (STEPS, 0) } else { (self.allowed_steps()?, self.allowed_steps()?) };
        let usual = |apart| network(job.problem, Seen::of(particles, apart));
        // Waves of the coordinates help where modes are many in few dimensions; in more they lead chains astray.
        let waves = if target.dim() > 16 { 0 } else { 3 };
        let settings = |apart: bool| training(config, usual(apart).steps);
        let evaluation = worth_of_evaluation(job.problem, None)?;
        let make = |Shape { apart, .. }: Shape, training| -> Result<Arc<dyn Fit>, JobError> {
            let (layers, width) = size(config, usual(apart))?;
            let hidden = Hidden::new(layers, width);
            let size = DiffusionSize { steps, integrator, hidden, waves, particles, apart };
            let make = |training| {
                let fit = TrainDiffusion::new(path.clone(), target.clone(), size, training)?;
                let fit = fit.with_recorded(graph.clone());
                if !open {
                    return Ok(fit);
                }
                let score = 1.0 + fit.work()? / evaluation;
                let among = [0].into_iter().chain(STEPS_TRIED).map(|steps| (steps, steps as f64 * score));
                Ok(fit.with_steps_among(among.collect()))
            };
            with_stand_in(training, make).map_err(impossible)
        };
        let acceleration =
            Options::new(config, particles, LEAD, &[steps])?.best(settings, |_| Ok(0.0), make)?;
        density.plan(acceleration, planned)
    }

    fn allowed_steps(&self) -> Result<usize, JobError> {
        steps("diffusion", self.steps, STEPS, 0..=10_000)
    }
}

fn network(problem: &Problem, seen: Seen) -> Usual {
    let is_many_well = matches!(problem.kind, TargetKind::ManyWell(_));
    let ([small, paper], steps) = match seen {
        Seen::Particles => ([(3, 16), (3, 128)], TRAINING_STEPS),
        Seen::Apart => (APART, TRAINING_STEPS / 2),
        Seen::Together if is_many_well => ([(3, 128), (3, 256)], TRAINING_STEPS),
        Seen::Together => ([(3, 96), (3, 128)], TRAINING_STEPS),
    };
    Usual { small, paper, steps }
}
