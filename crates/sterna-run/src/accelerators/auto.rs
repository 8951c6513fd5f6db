//! `kind = "auto"`: the transport that pays, pair by pair, chosen on held-out samples of tuning; flows and controlled diffusions are
//! trained as far as that pays.

use super::networks::{Seen, Usual, impossible, particles, size, training};
use super::{Kind, OF_CLOSED_FORMS, Plan, Planned};
use crate::config::{Count, TargetKind};
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::{Density, Ground, Hot};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Candidate, Choose, Fit, FitAffine, FitMonotone, Trainee};
use sterna::path::AnnealingPath;
use sterna_molecule::{FitConditionalAffine, FitScaling, InternalCoordinates};
use sterna_neural::{
    CmcdSize, Compute, FlowSize, Hidden, Loss, TrainCmcd, TrainFlow, Training, multiply_adds,
};

/// Multiply-adds of a second, by which a cost in seconds becomes one in work: the same on any machine. So many a network makes in
/// journeys of a few rows.
const A_SECOND: f64 = 5e9;

/// Multiply-adds that an evaluation is worth beside those of the target, with the local move that asks for it: always, and for each
/// coordinate. A target's own are cheaper than a network's, since vectors of rows share them.
const OF_A_MOVE: (f64, f64) = (350.0, 12.0);
const OF_A_TARGET: f64 = 0.3;

/// Those of a journey in closed form, beside what its map takes.
const OF_A_JOURNEY: f64 = 500.0;

/// Seconds that an evaluation is taken to cost where nothing is known of it: in a library, of a Stan model, and of a function in
/// Python or Rust.
const IN_A_LIBRARY: f64 = 1e-5;
const OF_STAN: f64 = 5e-5;
const OF_A_PROGRAM: f64 = 1e-4;

/// Steps of a flow's first slice, and in a step samples of each chain, where it learns of these alone, or journeys in each direction.
const FIRST_STEPS: u64 = 250;
const SAMPLES: usize = 128;
const JOURNEYS: usize = 256;

/// The same of controlled diffusions, which ask the target.
const FIRST_OF_DRIFTS: u64 = 150;
const DRIFT_BATCH: usize = 32;

/// K, one after the other, as far as the curve of gain against cost promises more.
pub(super) const STEPS_TRIED: [usize; 3] = [1, 2, 5];

/// What is trained where the config does not say.
const USUAL: Usual = Usual { small: (6, 32), paper: (20, 128), steps: FIRST_STEPS };

/// Multiply-adds that one coordinate's map takes, an angle or a logarithm among them, and a monotone one, which looks for its place.
const ELEMENTARY: f64 = 75.0;
const MONOTONE: f64 = 300.0;

/// Covariances are matched in so many dimensions at most: in more, samples say too little of them.
pub const MOST_FULL: usize = 200;

/// Fields of `kind = "auto"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::Auto;
///
/// let config = Config { accelerator: Auto { evaluation_cost_s: Some(1e-3) }.into(), ..Config::default() };
/// assert_eq!(config, Config::parse("[accelerator]\nkind = \"auto\"\nevaluation_cost_s = 0.001", &[])?);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Auto {
    /// Seconds of a processor that an evaluation of the target is taken to cost; if not given, what the work of a built-in
    /// target comes to, and what is usual for others. It is never measured: the same seed makes the same choice anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_cost_s: Option<f64>,
}

impl Auto {
    /// A flow that is trained by journeys between the chains, which ask the target, and one that learns of stored samples alone, where
    /// journeys are too dear to begin with; none in one dimension, where affine maps do as much.
    fn flows(&self, job: &Planned, path: &Arc<dyn AnnealingPath>) -> Result<Vec<Trainee>, JobError> {
        if path.dim() < 2 {
            return Ok(Vec::new());
        }
        let (layers, width) = size(job.config, USUAL)?;
        let size = FlowSize::new(layers, Hidden::new(2, width));
        let settings = Training { compute: Compute::Cpu, ..training(job.config, FIRST_STEPS) };
        let flow =
            |name: &str, instead: Option<usize>, loss: Loss, batch: usize| -> Result<Trainee, JobError> {
                let settings = Training { loss, batch, ..settings.clone() };
                let flow = TrainFlow::new(path.clone(), job.problem.in_graphs(), size, settings);
                let flow = flow.map_err(impossible)?;
                let (operations, (step, asked)) = flow.work().map_err(impossible)?;
                Ok(Trainee {
                    name: name.into(),
                    family: (name.into(), 1),
                    training: Arc::new(flow),
                    instead,
                    operations,
                    evaluations: 1.0,
                    step: (step, asked as f64),
                    first: FIRST_STEPS,
                })
            };
        let of_samples = |instead| flow("flow, of samples", instead, Loss::Likelihood, SAMPLES);
        match job.problem.target.has_score() {
            true => {
                let of_journeys = flow("flow", None, of_journeys(settings.loss), JOURNEYS)?;
                Ok(vec![of_journeys, of_samples(Some(0))?])
            }
            false => Ok(vec![of_samples(None)?]),
        }
    }

    /// Controlled diffusions of few steps and more: their training asks for scores, as their journeys do.
    fn controlled(&self, job: &Planned, path: &Arc<dyn AnnealingPath>) -> Result<Vec<Trainee>, JobError> {
        if !job.problem.target.has_score() {
            return Ok(Vec::new());
        }
        let particles = particles(job)?;
        let (_, width) = size(job.config, USUAL)?;
        let settings = training(job.config, FIRST_OF_DRIFTS);
        let settings = Training {
            loss: of_controls(settings.loss),
            batch: DRIFT_BATCH,
            compute: Compute::Cpu,
            ..settings
        };
        let trainee = |steps: usize| {
            let along_score = job.config.network.along_score.unwrap_or(particles.is_none());
            let hidden = Hidden::new(2, width);
            let size = CmcdSize { particles, along_score, ..CmcdSize::new(steps, hidden) };
            let fit = TrainCmcd::new(path.clone(), job.problem.in_graphs(), size, settings.clone());
            let fit = fit.map_err(impossible)?;
            let (operations, (step, asked)) = fit.work().map_err(impossible)?;
            Ok(Trainee {
                name: format!("cmcd, K = {steps}"),
                family: ("cmcd".into(), steps),
                training: Arc::new(fit),
                instead: None,
                operations,
                evaluations: steps as f64,
                step: (step, asked as f64),
                first: FIRST_OF_DRIFTS,
            })
        };
        STEPS_TRIED.into_iter().map(trainee).collect()
    }

    fn choose(
        &self,
        job: &Planned,
        path: Arc<dyn AnnealingPath>,
        candidates: Vec<Candidate>,
        trainees: Vec<Trainee>,
    ) -> Result<Acceleration, JobError> {
        let evaluation = worth_of_evaluation(job.problem, self.evaluation_cost_s)?;
        let seed = job.config.seed;
        let most_chains = most_chains(job);
        Ok(Acceleration::Fitted(Arc::new(Choose {
            path,
            candidates,
            trainees,
            evaluation,
            seed,
            most_chains,
        })))
    }

    fn on_density(&self, job: &Planned, density: &Density) -> Result<Plan, JobError> {
        let path: Arc<dyn AnnealingPath> = density.path()?;
        let dim = path.dim() as f64;
        let of_coordinates = |each: f64| OF_A_JOURNEY + each * dim;
        let affine = |name, full, each| candidate(name, FitAffine { full }, of_coordinates(each));
        let mut candidates = vec![affine("affine, diagonal", false, ELEMENTARY)];
        if path.dim() <= MOST_FULL {
            candidates.push(affine("affine, full", true, dim + ELEMENTARY));
        }
        candidates.push(candidate("monotone", FitMonotone, of_coordinates(MONOTONE)));
        let mut trainees = self.flows(job, &path)?;
        trainees.extend(self.controlled(job, &path)?);
        density.plan(self.choose(job, path, candidates, trainees)?, 0)
    }

    fn on_molecule(&self, job: &Planned, hot: &Hot) -> Result<Plan, JobError> {
        // Refused here rather than after the samples have been collected.
        InternalCoordinates::new(hot.molecule.system()).map_err(|e| JobError::Config(e.to_string()))?;
        let (molecule, temperatures) = (hot.molecule.clone(), hot.path.temperatures());
        // There and back between positions and internal coordinates, some three angles and what they hang on for each.
        let coordinates = 3.0 * ELEMENTARY * hot.path.dim() as f64;
        let scaling = FitScaling { molecule: molecule.clone(), temperatures };
        let affine = FitConditionalAffine { molecule, temperatures };
        let dim = hot.path.dim() as f64;
        let candidates = vec![
            candidate("scaling", scaling, coordinates),
            candidate("conditional affine", affine, coordinates + dim * dim),
        ];
        let acceleration = self.choose(job, hot.path.clone(), candidates, Vec::new())?;
        Ok(Plan::new(hot.path.clone(), acceleration, 0))
    }
}

/// The loss by which controlled diffusions are trained where this one was asked for.
fn of_controls(loss: Loss) -> Loss {
    if loss.is_of_samples() { Loss::Skl } else { loss }
}

/// That by which a flow learns of journeys: one that flows have.
fn of_journeys(loss: Loss) -> Loss {
    if loss == Loss::LogVariance { Loss::Skl } else { of_controls(loss) }
}

/// Multiply-adds that an evaluation is worth, at so many seconds or at what is usual.
pub(super) fn worth_of_evaluation(problem: &Problem, cost_s: Option<f64>) -> Result<f64, JobError> {
    match (cost_s, &problem.graph) {
        (Some(seconds), _) if !(1e-9..=1e6).contains(&seconds) => {
            let reason = "it must lie between 1e-9 and 1e6; leave it out for what is usual";
            Err(JobError::setting("accelerator.evaluation_cost_s", seconds, reason))
        }
        (Some(seconds), _) => Ok(seconds * A_SECOND),
        (None, Some(graph)) => {
            let (always, each) = OF_A_MOVE;
            let own = multiply_adds(graph.dim(), |x| vec![graph.log_density(x), graph.score(x)]);
            Ok(always + each * graph.dim() as f64 + OF_A_TARGET * own)
        }
        (None, None) => {
            let seconds = match problem.kind {
                TargetKind::Stan(_) => OF_STAN,
                TargetKind::Own(_) => OF_A_PROGRAM,
                _ => IN_A_LIBRARY,
            };
            Ok(seconds * A_SECOND)
        }
    }
}

/// Chains that there may be: twice as many as were asked for, where memory allows. Step sizes that were given one by one belong to
/// chains that were counted.
fn most_chains(job: &Planned) -> Option<usize> {
    let Planned { problem, config, .. } = job;
    let most = match config.chains.count {
        Count::Number(count) => {
            let mut doubled = (*config).clone();
            doubled.chains.count = Count::Number(2 * count);
            if doubled.settings(problem).is_ok() { 2 * count } else { count }
        }
        Count::Auto => config.settings(problem).ok()?.chains,
    };
    config.explorer.step_sizes().is_none().then_some(most)
}

fn candidate(name: &str, fit: impl Fit + 'static, operations: f64) -> Candidate {
    Candidate { name: name.into(), fit: Arc::new(fit), operations }
}

impl Kind for Auto {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        match &job.ground {
            Ground::Density(density) => self.on_density(job, density),
            Ground::Molecule(hot) => self.on_molecule(job, hot),
        }
    }

    /// Whatever is chosen.
    fn steps(&self) -> Option<usize> {
        None
    }

    fn usual_steps(&self) -> Option<usize> {
        None
    }

    fn usual(&self, problem: &Problem, _: Seen) -> Option<Usual> {
        (problem.molecule.is_none() && problem.dim() > 1).then_some(USUAL)
    }

    fn collect(&self, _on_molecule: bool) -> Option<u64> {
        Some(OF_CLOSED_FORMS)
    }

    /// Once: a choice already follows what it has fitted.
    fn fits(&self, _on_molecule: bool) -> usize {
        1
    }
}
