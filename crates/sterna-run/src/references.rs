//! `[reference]`: where replicas start anew, one file for each kind.

mod auto;
mod fitted;
mod prior;
mod standard_normal;
mod tempered;

pub use auto::Auto;
pub use fitted::{Anchor, Components, Fitted};
pub use prior::Prior;
pub use standard_normal::StandardNormal;
pub use tempered::{PeptideBonds, TEMPERATURE, Tempered};

use crate::accelerators::Plan;
use crate::config::Config;
use crate::config::kinds::kinds;
use crate::error::JobError;
use crate::problem::Problem;
use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::Acceleration;
use sterna::paths::{Geometric, Reference, Spline};
use sterna_molecule::{Molecule, TemperedPath};

/// What a kind of reference does.
pub trait Kind {
    /// Where the ladders of a problem stand.
    fn ground(&self, problem: &Problem, config: &Config) -> Result<Ground, JobError>;

    /// The kind that it comes to for a problem.
    fn settled(&self, problem: &Problem, config: &Config) -> Result<ReferenceKind, JobError>;
}

kinds! {
    /// Where replicas start anew.
    pub enum ReferenceKind: dyn Kind, by default Auto {
        /// What suits the target.
        Auto(Auto) = "auto",
        /// A normal.
        StandardNormal(StandardNormal) = "standard-normal",
        /// Normals that are fitted to the target.
        Fitted(Fitted) = "fitted",
        /// A model's own prior.
        Prior(Prior) = "prior",
        /// The same energy at a higher temperature.
        Tempered(Tempered) = "tempered",
    }
}

impl ReferenceKind {
    /// Where the ladders of a problem stand.
    pub fn ground(&self, problem: &Problem, config: &Config) -> Result<Ground, JobError> {
        self.role().ground(problem, config)
    }

    /// The kind that it comes to for a problem.
    pub fn settled(&self, problem: &Problem, config: &Config) -> Result<Self, JobError> {
        self.role().settled(problem, config)
    }
}

/// Where ladders stand: what leads from a reference to the target.
pub enum Ground {
    /// From a normal, or a prior, to any density.
    Density(Density),
    /// From a molecule to itself when it is hot.
    Molecule(Hot),
}

/// A density and what it is reached from.
pub struct Density {
    /// What is sampled.
    pub target: Arc<dyn Target>,
    /// Where replicas start anew.
    pub reference: Reference,
    /// What makes it another than N(0, I): a field and its value.
    pub unusual: Option<(&'static str, String)>,
    /// Whether the reference is only where a fitted one begins.
    pub is_anchor: bool,
}

impl Density {
    /// The geometric path between them.
    pub fn path(&self) -> Result<Arc<Geometric>, JobError> {
        Ok(Arc::new(Geometric::new(self.reference.clone(), self.target.clone())?))
    }

    /// A plan on the path over exponents that tuning moves.
    pub fn spline_plan(&self) -> Result<Plan, JobError> {
        Ok(Plan::new(Arc::new(Spline::new(self.path()?, Vec::new())?), Acceleration::None, 0))
    }

    /// A plan on this path, whose reference may be fitted.
    pub fn plan(&self, acceleration: Acceleration, steps: usize) -> Result<Plan, JobError> {
        let path = self.path()?;
        let from_anchor = self.is_anchor.then(|| path.clone());
        Ok(Plan { from_anchor, ..Plan::new(path, acceleration, steps) })
    }

    /// Refuses any reference but N(0, I), `with` something that knows no other.
    pub fn must_be_standard(&self, with: &str, reason: &str) -> Result<(), JobError> {
        match &self.unusual {
            Some((key, value)) => Err(JobError::combination(key, value, with, reason)),
            None => Ok(()),
        }
    }
}

/// A molecule in the coordinates of the run, and its path to a higher temperature.
pub struct Hot {
    /// In the coordinates that the run uses: weighted by masses where the moves are to have them.
    pub molecule: Arc<Molecule>,
    /// Its path.
    pub path: Arc<TemperedPath>,
}
