//! `kind = "flow"`: a trained normalising flow (§5.1); on molecules, inside the affine transport.

use super::networks::{Seen, Usual, impossible, size, training};
use super::{Kind, OF_NETWORKS, Plan, Planned, fitted_to, kept, refuse_transport, steps};
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::{Density, Ground, Hot};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use sterna::acceleration::Acceleration;
use sterna::path::AnnealingPath;
use sterna_molecule_neural::TrainMoleculeFlow;
use sterna_neural::{Compute, Coupling, FlowSize, Hidden, TrainFlow, with_stand_in};

/// What is trained, and on molecules in each round.
const USUAL: Usual = Usual { small: (8, 48), paper: (20, 128), steps: 6000 };
const ON_MOLECULES: Usual = Usual { small: (3, 24), paper: (9, 128), steps: 2500 };

/// Splines bend to whatever they are shown: of fewer samples they learn the samples by heart.
const OF_SPLINES: u64 = 60_000;

/// Fields of `kind = "flow"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::accelerators::Flow;
///
/// let again = Flow { transport: Some("runs/first/transport.safetensors".into()), ..Flow::default() };
/// let config = Config { accelerator: again.into(), ..Config::default() };
/// assert!(!config.accelerator.trains());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flow {
    /// K, which is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// A `transport.safetensors` of an earlier run, used on the schedule it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<PathBuf>,
    /// What a layer does to the coordinates that it moves: `affine`, a scale and a shift, or `spline`, a monotone spline
    /// before them, on coordinates standardised chain by chain.
    pub coupling: Coupling,
}

impl Kind for Flow {
    fn plan(&self, job: &Planned) -> Result<Plan, JobError> {
        match &job.ground {
            Ground::Molecule(hot) => self.on_molecule(job, hot),
            Ground::Density(density) => match &self.transport {
                Some(file) => kept::plan(job, density, file),
                None => self.trained(job, density),
            },
        }
    }

    fn steps(&self) -> Option<usize> {
        self.steps
    }

    fn trains(&self) -> bool {
        self.transport.is_none()
    }

    fn usual_steps(&self) -> Option<usize> {
        self.trains().then_some(1)
    }

    fn usual(&self, problem: &Problem, _: Seen) -> Option<Usual> {
        self.trains().then_some(if problem.molecule.is_some() { ON_MOLECULES } else { USUAL })
    }

    fn collect(&self, _: bool) -> Option<u64> {
        self.trains().then_some(if self.coupling.is_affine() { OF_NETWORKS } else { OF_SPLINES })
    }

    fn transport(&mut self) -> Option<&mut Option<PathBuf>> {
        Some(&mut self.transport)
    }
}

impl Flow {
    fn trained(&self, job: &Planned, density: &Density) -> Result<Plan, JobError> {
        let steps = steps("flow", self.steps, 1, 1..=1)?;
        let path: Arc<dyn AnnealingPath> = density.path()?;
        let (layers, width) = size(job.config, USUAL)?;
        let size = FlowSize { coupling: self.coupling, ..FlowSize::new(layers, Hidden::new(2, width)) };
        let graph = job.problem.in_graphs();
        let training = training(job.config, USUAL.steps);
        let fit = with_stand_in(training, |t| TrainFlow::new(path.clone(), graph.clone(), size, t));
        density.plan(Acceleration::Fitted(fit.map_err(impossible)?), steps)
    }

    fn on_molecule(&self, job: &Planned, hot: &Hot) -> Result<Plan, JobError> {
        refuse_transport(&self.transport)?;
        if !self.coupling.is_affine() {
            return Err(JobError::combination(
                "accelerator.coupling",
                "\"spline\"",
                "for molecules",
                "their flows bend angles with affine couplings; use \"affine\"",
            ));
        }
        let steps = steps("flow", self.steps, 1, 1..=1)?;
        let (layers, width) = size(job.config, ON_MOLECULES)?;
        let training = training(job.config, ON_MOLECULES.steps);
        if training.compute != Compute::Cpu {
            // They have no recorded target.
            return Err(JobError::combination(
                "training.device",
                "\"cuda\"",
                "for molecules",
                "their flows are trained on the CPU",
            ));
        }
        let fit = TrainMoleculeFlow {
            molecule: hot.molecule.clone(),
            temperatures: hot.path.temperatures(),
            path: hot.path.clone(),
            layers,
            hidden: Hidden::new(2, width),
            training,
        };
        fitted_to(hot, Arc::new(fit), steps)
    }
}
