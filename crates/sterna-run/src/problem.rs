//! What is sampled: a density with what is known of it. A config makes one, and so does a program.

use crate::config::TargetKind;
use crate::targets::Own;
use std::fmt;
use std::sync::Arc;
use sterna::Target;
use sterna::transport::Drift;
use sterna_molecule::Molecule;
use sterna_neural::{GraphTarget, Particles, host_target};

/// A target with what is known of it.
///
/// ```
/// use sterna::targets::Banana;
/// use sterna_run::Problem;
///
/// let problem = Problem::new(Banana::new(2)).named(["across", "along"]).observe("radius", |x| x[0].hypot(x[1]));
/// assert_eq!(problem.parameters[1].name, "along");
/// ```
#[derive(Clone)]
pub struct Problem {
    /// How a config speaks of it: a kind of target, or `own` where it lives in a program.
    pub kind: TargetKind,
    /// Its log density and score.
    pub target: Arc<dyn Target>,
    /// What its coordinates are called, in their order; empty where they have no names.
    pub parameters: Vec<Parameter>,
    /// Where replicas start anew, if not from what the config says.
    pub reference: Option<NormalReference>,
    /// Its log density as operations of a graph, where it is known so: networks train faster, and GPUs can sample it.
    pub graph: Option<Arc<dyn GraphTarget>>,
    /// Functions of a point that are kept of each draw.
    pub observables: Vec<Observable>,
    /// The particles whose mean-free positions its points are, if they are that.
    pub particles: Option<Particles>,
    /// The drift that carries N(0, I) to it exactly, where it is known.
    pub exact_drift: Option<Arc<dyn Drift>>,
    /// The molecule that it is.
    pub molecule: Option<Arc<Molecule>>,
}

/// One or more coordinates with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// What it is called in draws.nc, summary and report.
    pub name: String,
    /// How many coordinates it has; a single number if none is said.
    pub size: Option<usize>,
}

impl Parameter {
    /// A single number.
    pub fn scalar(name: impl Into<String>) -> Self {
        Self { name: name.into(), size: None }
    }

    /// Several numbers with one name.
    pub fn vector(name: impl Into<String>, size: usize) -> Self {
        Self { name: name.into(), size: Some(size) }
    }

    /// Coordinates that it takes.
    pub fn coordinates(&self) -> usize {
        self.size.unwrap_or(1)
    }
}

impl fmt::Debug for Observable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Observable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Into<String>> From<T> for Parameter {
    fn from(name: T) -> Self {
        Self::scalar(name)
    }
}

/// A normal with a mean and a standard deviation of each coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalReference {
    /// Mean of each coordinate.
    pub mean: Vec<f64>,
    /// Standard deviation of each coordinate.
    pub deviation: Vec<f64>,
}

/// A function of a point.
pub type Function = dyn Fn(&[f64]) -> f64 + Send + Sync;

/// A function of a point that is kept of each draw.
#[derive(Clone)]
pub struct Observable {
    /// What it is called in draws.nc and the summary.
    pub name: String,
    /// Its value at a point.
    pub value: Arc<Function>,
}

impl Problem {
    /// A target that lives in this program.
    pub fn new(target: impl Target + 'static) -> Self {
        Self::shared(Arc::new(target))
    }

    /// The same for a target that others hold as well.
    pub fn shared(target: Arc<dyn Target>) -> Self {
        Self {
            kind: Own { name: "own".into(), dim: Some(target.dim()) }.into(),
            target,
            parameters: Vec::new(),
            reference: None,
            graph: None,
            observables: Vec::new(),
            particles: None,
            exact_drift: None,
            molecule: None,
        }
    }

    /// A target that is a graph as well.
    pub(crate) fn recorded<T: Target + GraphTarget + 'static>(target: T) -> Self {
        let target = Arc::new(target);
        Self { graph: Some(target.clone()), ..Self::shared(target) }
    }

    /// Says what the target is called in config.toml, summary and report; "own" if it is not said.
    pub fn called(mut self, name: impl Into<String>) -> Self {
        if let TargetKind::Own(own) = &mut self.kind {
            own.name = name.into();
        }
        self
    }

    /// Names the coordinates, in their order: a name for each, or [`Parameter::vector`] for several.
    pub fn named<P: Into<Parameter>>(mut self, parameters: impl IntoIterator<Item = P>) -> Self {
        self.parameters = parameters.into_iter().map(Into::into).collect();
        self
    }

    /// Gives the log density as operations of a graph.
    pub fn with_graph(mut self, graph: impl GraphTarget + 'static) -> Self {
        self.graph = Some(Arc::new(graph));
        self
    }

    /// Keeps a function of each draw: a variable of draws.nc, and its mean in the summary.
    pub fn observe(
        mut self,
        name: impl Into<String>,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        self.observables.push(Observable { name: name.into(), value: Arc::new(value) });
        self
    }

    /// Replicas start anew from a normal with this mean and standard deviation of each coordinate.
    pub fn reference(mut self, mean: Vec<f64>, deviation: Vec<f64>) -> Self {
        self.reference = Some(NormalReference { mean, deviation });
        self
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.target.dim()
    }

    /// A name for each coordinate, as `theta[2]` where several have one; empty where they have none.
    pub fn coordinate_names(&self) -> Vec<String> {
        let names = |p: &Parameter| match p.size {
            None => vec![p.name.clone()],
            Some(size) => (0..size).map(|i| format!("{}[{i}]", p.name)).collect(),
        };
        self.parameters.iter().flat_map(names).collect()
    }

    /// The target inside graphs, for losses: as operations where it is known so, else called on the host.
    pub fn in_graphs(&self) -> Arc<dyn GraphTarget> {
        self.graph.clone().unwrap_or_else(|| host_target(self.target.clone()))
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Problem").field("kind", &self.kind).field("parameters", &self.parameters).finish()
    }
}
