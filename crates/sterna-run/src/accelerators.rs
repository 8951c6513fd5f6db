//! `[accelerator]`: what carries the proposals of swaps, one file for each kind.

mod affine;
mod auto;
mod cmcd;
mod diffusion;
mod flow;
mod gpu;
mod kept;
mod monotone;
mod networks;
mod none;
mod scaling;

pub use affine::{Affine, Covariance};
pub use auto::{Auto, MOST_FULL};
pub use cmcd::{Cmcd, DriftChoice};
pub use diffusion::{Diffusion, ScoreChoice};
pub use flow::Flow;
pub use gpu::engine_maker;
pub use monotone::Monotone;
pub(crate) use networks::{Seen, Usual};
pub use none::NoAccelerator;
pub use scaling::Scaling;

use crate::config::kinds::kinds;
use crate::config::{Config, Count};
use crate::error::JobError;
use crate::molecules;
use crate::problem::Problem;
use crate::references::{Ground, Hot};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit, Guarded};
use sterna::path::AnnealingPath;
use sterna::paths::Geometric;
use sterna::run::{Run, Settings};
use sterna_molecule::InternalCoordinates;

/// Path and accelerator of a job, and K.
pub struct Plan {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// What carries the proposals of swaps.
    pub acceleration: Acceleration,
    /// K.
    pub steps: usize,
    /// Where the reference is fitted: from its anchor to the target, which is then `path` too.
    pub from_anchor: Option<Arc<Geometric>>,
}

impl Plan {
    /// On a path that stays what it is until a transport is fitted.
    pub fn new(path: Arc<dyn AnnealingPath>, acceleration: Acceleration, steps: usize) -> Self {
        Self { path, acceleration, steps, from_anchor: None }
    }

    /// The run.
    pub fn begin(self, settings: Settings) -> sterna::Result<Run> {
        match self.from_anchor {
            Some(ground) => Run::from_anchor(ground, settings, self.acceleration),
            None => Run::accelerated(self.path, settings, self.acceleration),
        }
    }

    /// The run, where it was when it saved itself so.
    pub fn restore(self, settings: Settings, state: &[u8]) -> sterna::Result<Run> {
        match self.from_anchor {
            Some(ground) => Run::restore_from_anchor(ground, settings, self.acceleration, state),
            None => Run::restore(self.path, settings, self.acceleration, state),
        }
    }
}

/// Iterations whose samples closed forms are fitted to, and those for networks and molecules.
const OF_CLOSED_FORMS: u64 = 5000;
const OF_NETWORKS: u64 = 20_000;

/// Journeys of a step of training in each direction, and noised samples of a diffusion.
const BATCH: usize = 256;

/// What a kind of accelerator does.
pub trait Kind {
    /// Path and accelerator, or why they cannot be had.
    fn plan(&self, job: &Planned) -> Result<Plan, JobError>;

    /// K, where it is said.
    fn steps(&self) -> Option<usize>;

    /// Whether a network is trained, on targets that are no molecules.
    fn trains(&self) -> bool {
        false
    }

    /// K where the config does not say; none where that follows from a file, or where there are no steps.
    fn usual_steps(&self) -> Option<usize>;

    /// What is trained where the config does not say; none where nothing is.
    fn usual(&self, _problem: &Problem, _seen: Seen) -> Option<Usual> {
        None
    }

    /// Journeys of a step of training, in each direction, where the config does not say.
    fn batch(&self, _chains: Count) -> usize {
        BATCH
    }

    /// Iterations whose samples it is fitted to, where the config does not say; none where nothing is fitted.
    fn collect(&self, on_molecule: bool) -> Option<u64> {
        Some(if on_molecule { OF_NETWORKS } else { OF_CLOSED_FORMS })
    }

    /// How often it is fitted, where the config does not say.
    fn fits(&self, on_molecule: bool) -> usize {
        if on_molecule { 3 } else { 1 }
    }

    /// The file of a trained transport that is used again.
    fn transport(&mut self) -> Option<&mut Option<PathBuf>> {
        None
    }

    /// Whether a GPU can make its swaps; if not, what stands in the way.
    fn on_gpu(&self) -> Result<(), GpuCannot> {
        Err(GpuCannot::Kind)
    }
}

/// Why a GPU cannot make swaps.
pub enum GpuCannot {
    /// Those of the kind.
    Kind,
    /// Those of a drift that is not trained.
    Drift(DriftChoice),
}

kinds! {
    /// What carries the proposals of swaps.
    pub enum AcceleratorKind: dyn Kind, by default None {
        /// Plain swaps.
        None(NoAccelerator) = "none",
        /// What pays, pair by pair.
        Auto(Auto) = "auto",
        /// Molecules: displacements scaled by the root of the temperatures' ratio.
        Scaling(Scaling) = "scaling",
        /// Means and covariances are matched.
        Affine(Affine) = "affine",
        /// Each coordinate's own laws are matched.
        Monotone(Monotone) = "monotone",
        /// A trained flow.
        Flow(Flow) = "flow",
        /// A controlled diffusion.
        Cmcd(Cmcd) = "cmcd",
        /// A diffusion path.
        Diffusion(Diffusion) = "diffusion",
    }
}

impl AcceleratorKind {
    /// K, where it is said.
    pub fn steps(&self) -> Option<usize> {
        self.role().steps()
    }

    /// Whether a network is trained, on targets that are no molecules.
    pub fn trains(&self) -> bool {
        self.role().trains()
    }

    /// K where the config does not say; none where that follows from a file, or where there are no steps.
    pub fn usual_steps(&self) -> Option<usize> {
        self.role().usual_steps()
    }

    /// What is trained where the config does not say; none where nothing is.
    pub(crate) fn usual(&self, problem: &Problem, seen: Seen) -> Option<Usual> {
        self.role().usual(problem, seen)
    }

    /// Journeys of a step of training for so many chains, in each direction, where the config does not say.
    pub(crate) fn batch(&self, chains: Count) -> usize {
        self.role().batch(chains)
    }

    /// Iterations whose samples it is fitted to, where the config does not say; none where nothing is fitted.
    pub fn collect(&self, on_molecule: bool) -> Option<u64> {
        self.role().collect(on_molecule)
    }

    /// How often it is fitted, where the config does not say.
    pub fn fits(&self, on_molecule: bool) -> usize {
        self.role().fits(on_molecule)
    }

    /// The file of a trained transport that is used again.
    pub fn transport(&self) -> Option<PathBuf> {
        self.clone().as_mut().transport()?.clone()
    }

    /// The same, to be changed.
    pub(crate) fn transport_mut(&mut self) -> Option<&mut PathBuf> {
        self.as_mut().transport()?.as_mut()
    }

    /// So that a run goes on from any folder.
    pub(crate) fn name_transport_from_the_root(&mut self) {
        if let Some(path) = self.transport_mut()
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            *path = absolute;
        }
    }

    /// Uses this transport, or trains one; kinds that have none stay as they are.
    pub fn use_transport(&mut self, file: Option<PathBuf>) {
        if let Some(place) = self.as_mut().transport() {
            *place = file;
        }
    }
}

/// What a kind of accelerator sees when it plans.
pub struct Planned<'a> {
    /// What is sampled.
    pub problem: &'a Problem,
    /// How.
    pub config: &'a Config,
    /// Where its ladders stand.
    pub ground: Ground,
}

/// What a job's problem and config ask for, or why it cannot be had.
pub fn plan(problem: &Problem, config: &Config) -> Result<Plan, JobError> {
    molecules::check_output(problem, config)?;
    let ground = config.reference.ground(problem, config)?;
    config.accelerator.role().plan(&Planned { problem, config, ground })
}

/// K, where a number was said.
fn steps_said(given: Option<Count>) -> Option<usize> {
    match given {
        Some(Count::Number(steps)) => Some(steps),
        Some(Count::Auto) | None => None,
    }
}

/// K as given, or the default; the kind must allow it.
fn steps(
    kind: &str,
    given: Option<impl Into<Count>>,
    default: usize,
    allowed: RangeInclusive<usize>,
) -> Result<usize, JobError> {
    let steps = match given.map(Into::into) {
        Some(Count::Auto) => {
            let reason = "K is chosen where its network is trained on a density; give a number";
            return Err(JobError::setting("accelerator.steps", Count::Auto, reason));
        }
        Some(Count::Number(steps)) => steps,
        None => default,
    };
    if allowed.contains(&steps) {
        return Ok(steps);
    }
    let reason = match (allowed.start(), allowed.end()) {
        (least, most) if least == most => format!("it must be {least}"),
        (least, most) => format!("it must lie between {least} and {most}"),
    };
    Err(JobError::combination("accelerator.steps", steps, format!("for kind = \"{kind}\""), reason))
}

/// A molecule with a transport that is fitted to it.
fn fitted_to(hot: &Hot, fit: Arc<dyn Fit>, steps: usize) -> Result<Plan, JobError> {
    // Refused here rather than after the samples have been collected.
    InternalCoordinates::new(hot.molecule.system()).map_err(|e| JobError::Config(e.to_string()))?;
    Ok(Plan::new(hot.path.clone(), Acceleration::Fitted(fit), steps))
}

/// A transport in closed form, which stays only where it is better than plain swaps.
fn under_guard(fit: impl Fit + 'static, config: &Config) -> Arc<dyn Fit> {
    let fit = Arc::new(fit);
    match config.training.guard {
        true => Arc::new(Guarded { fit, seed: config.seed }),
        false => fit,
    }
}

/// Transports of molecules come from no file.
fn refuse_transport(transport: &Option<PathBuf>) -> Result<(), JobError> {
    match transport {
        Some(_) => Err(JobError::Config(
            "accelerator.transport is not known for molecules: their transports are fitted anew".into(),
        )),
        None => Ok(()),
    }
}
