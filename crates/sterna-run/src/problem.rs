//! What is sampled: a density with what is known of it. A config makes one, and so does a program.

use crate::config::TargetKind;
use crate::error::JobError;
use crate::posterior::Posterior;
use crate::targets::Own;
use crate::trial::Tried;
use std::fmt;
use std::sync::Arc;
use sterna::Target;
use sterna::exchange::{Alone, Exchange};
use sterna::paths::Reference;
use sterna::priors::{Cube, Independent};
use sterna::supports::{Constrained, Parameters};
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
    /// What its coordinates are called, in their order, or its values where it has some; empty where they have no names.
    pub parameters: Vec<Parameter>,
    /// The values that draws, summary and report speak of, where those are not the coordinates themselves.
    pub values: Option<Arc<dyn Constrain>>,
    /// Where replicas start anew, if not from what the config says.
    pub reference: Option<NormalReference>,
    /// Its prior, where likelihood and prior are known apart.
    pub prior: Option<Reference>,
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
    /// What its trial found, once it was tried.
    pub tried: Tried,
    /// What the target says of a point where it has no density, if it can tell.
    pub says: Option<Arc<Says>>,
    /// The processes that sample it together.
    pub exchange: Arc<dyn Exchange>,
}

/// From the coordinates that are sampled, which are free, to the values that people speak of: within bounds, in order,
/// with a sum of one.
///
/// ```
/// use sterna_run::{Problem, problem::Constrain};
///
/// struct Positive;
/// impl Constrain for Positive {
///     fn values(&self) -> usize {
///         1
///     }
///     fn constrain(&self, point: &[f64], values: &mut [f64]) {
///         values[0] = point[0].exp();
///     }
/// }
/// let problem = Problem::new(sterna::targets::Banana::new(2)).with_values(Positive, ["sigma"]);
/// assert_eq!((problem.dim(), problem.value_names()), (2, vec!["sigma".to_string()]));
/// ```
pub trait Constrain: Send + Sync {
    /// How many values a point has.
    fn values(&self) -> usize;

    /// The values at a point; NaN where it has none.
    fn constrain(&self, point: &[f64], values: &mut [f64]);
}

impl fmt::Debug for dyn Constrain + '_ {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} values", self.values())
    }
}

/// One or more coordinates with one name.
///
/// ```
/// use sterna::targets::Funnel;
/// use sterna_run::{Parameter, Problem};
///
/// let problem = Problem::new(Funnel::new(9)).named([Parameter::scalar("tau"), Parameter::vector("theta", 8)]);
/// assert_eq!(problem.parameters.iter().map(Parameter::coordinates).sum::<usize>(), problem.dim());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// What it is called in draws.nc, summary and report.
    pub name: String,
    /// Lengths of its axes, the last of which changes fastest; none for a single number.
    pub shape: Vec<usize>,
    /// The number of the first place on each axis, as in `theta[0]`.
    pub first: usize,
}

impl Parameter {
    /// A single number.
    pub fn scalar(name: impl Into<String>) -> Self {
        Self::array(name, [])
    }

    /// Several numbers with one name.
    pub fn vector(name: impl Into<String>, size: usize) -> Self {
        Self::array(name, [size])
    }

    /// Numbers with one name on several axes; the last one changes fastest.
    pub fn array(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> Self {
        Self { name: name.into(), shape: shape.into(), first: 0 }
    }

    /// That of values with a support; a single one has its name alone.
    pub(crate) fn supported(parameter: &sterna::supports::Parameter) -> Self {
        match parameter.size {
            1 => Self::scalar(&parameter.name),
            size => Self::vector(&parameter.name, size),
        }
    }

    /// Counts places from another number than 0, as those do that count from 1.
    pub fn counted_from(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Coordinates that it takes.
    pub fn coordinates(&self) -> usize {
        self.shape.iter().product()
    }

    /// A name for each coordinate: `mu`, `theta[2]`, `omega[0,1]`.
    pub fn names(&self) -> Vec<String> {
        let name = |flat: usize| {
            let mut rest = flat;
            let mut places: Vec<String> = Vec::new();
            for length in self.shape.iter().rev() {
                places.push((self.first + rest % length).to_string());
                rest /= length;
            }
            places.reverse();
            format!("{}[{}]", self.name, places.join(","))
        };
        match self.shape.is_empty() {
            true => vec![self.name.clone()],
            false => (0..self.coordinates()).map(name).collect(),
        }
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

/// The values of a likelihood in the cube.
struct InCube<T, F>(Arc<Cube<T, F>>);

impl<T: Target, F: Fn(&[f64], &mut [f64]) + Send + Sync> Constrain for InCube<T, F> {
    fn values(&self) -> usize {
        self.0.dim()
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        self.0.values(point, values);
    }
}

impl Constrain for Parameters {
    fn values(&self) -> usize {
        Parameters::values(self)
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        Parameters::constrain(self, point, values);
    }
}

/// A normal with a mean and a standard deviation of each coordinate.
///
/// ```
/// use sterna::targets::Banana;
/// use sterna_run::Problem;
/// use sterna_run::problem::NormalReference;
///
/// let reference = NormalReference { mean: vec![0.0, 2.0], deviation: vec![1.0, 3.0] };
/// let problem = Problem { reference: Some(reference), ..Problem::new(Banana::new(2)) };
/// assert_eq!(problem.dim(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NormalReference {
    /// Mean of each coordinate.
    pub mean: Vec<f64>,
    /// Standard deviation of each coordinate.
    pub deviation: Vec<f64>,
}

/// A function of a point.
pub type Function = dyn Fn(&[f64]) -> f64 + Send + Sync;

/// Why a point has no density, in the target's own words.
pub type Says = dyn Fn(&[f64]) -> Option<String> + Send + Sync;

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
            values: None,
            reference: None,
            prior: None,
            graph: None,
            observables: Vec::new(),
            particles: None,
            exact_drift: None,
            molecule: None,
            tried: Tried::default(),
            says: None,
            exchange: Arc::new(Alone),
        }
    }

    /// The same, to be sampled by several ranks, each of which calls the same functions of a [`Job`](crate::Job): the first one writes
    /// all files, and all of them come to the same result. Draws have the same bits for any number of ranks.
    ///
    /// ```
    /// use sterna::exchange::Alone;
    /// use sterna_run::Problem;
    ///
    /// // With MPI, what `sterna_mpi::World::start` gives.
    /// let problem = Problem::new(sterna::targets::Banana::new(2)).among(std::sync::Arc::new(Alone));
    /// assert_eq!(problem.exchange.ranks(), 1);
    /// ```
    pub fn among(self, exchange: Arc<dyn Exchange>) -> Self {
        Self { exchange, ..self }
    }

    /// A posterior, from its log likelihood with its score and its prior, which is normalised: chain 0 draws from the prior, the
    /// path tempers the likelihood, and log Z is the log evidence.
    ///
    /// ```
    /// use sterna::{paths::Reference, targets::Normal};
    /// use sterna_run::Problem;
    ///
    /// // An observation at 1 of each of two means, and what was known of them before.
    /// let likelihood = Normal::new(vec![1.0, 1.0], vec![4.0, 4.0]);
    /// let problem = Problem::from_likelihood(likelihood, Reference::normal(vec![0.0; 2], vec![3.0; 2]))?;
    /// assert!(problem.prior.is_some());
    /// # Ok::<(), sterna_run::JobError>(())
    /// ```
    ///
    /// # Errors
    /// If the two have points of different lengths.
    pub fn from_likelihood(likelihood: impl Target + 'static, prior: Reference) -> Result<Self, JobError> {
        let (found, expected) = (prior.dim(), likelihood.dim());
        if found != expected {
            return Err(sterna::Error::Dimension { what: "the prior", found, expected }.into());
        }
        let target = Posterior { likelihood: Arc::new(likelihood), prior: prior.clone() };
        Ok(Self { prior: Some(prior), ..Self::new(target) })
    }

    /// A posterior, from its log likelihood in the values of parameters and their laws: chain 0 draws from the prior, the path tempers
    /// the likelihood, and log Z is the log evidence.
    ///
    /// ```
    /// use sterna::priors::Independent;
    /// use sterna::targets::Normal;
    /// use sterna_run::Problem;
    ///
    /// // A width, measured as 2 ± ½.
    /// let prior = Independent::new([("width", 1, "half-normal(3)".parse()?)])?;
    /// let problem = Problem::posterior(Normal::new(vec![2.0], vec![4.0]), prior)?;
    /// assert_eq!(problem.value_names(), ["width"]);
    /// # Ok::<(), sterna_run::JobError>(())
    /// ```
    ///
    /// # Errors
    /// If the likelihood is of another number of values.
    pub fn posterior(likelihood: impl Target + 'static, prior: Independent) -> Result<Self, JobError> {
        let parameters = prior.parameters().clone();
        let likelihood = Constrained::new(parameters.clone(), likelihood)?.without_volume();
        Ok(Self::from_likelihood(likelihood, Reference::prior(prior))?.speaking_of(parameters))
    }

    /// A posterior, from its log likelihood in values and the transform that makes these of points of the unit cube, as nested samplers
    /// have it. Coordinates are normals whose distribution function leads to the cube; no score is known.
    ///
    /// ```
    /// use sterna::targets::Normal;
    /// use sterna_run::Problem;
    ///
    /// // A location within ±10, measured as 1 ± ½.
    /// let to_values = |cube: &[f64], values: &mut [f64]| values[0] = 20.0 * cube[0] - 10.0;
    /// let problem = Problem::from_prior_transform(Normal::new(vec![1.0], vec![4.0]), to_values, ["location"]);
    /// assert!(!problem.target.has_score());
    /// ```
    pub fn from_prior_transform<P: Into<Parameter>>(
        likelihood: impl Target + 'static,
        transform: impl Fn(&[f64], &mut [f64]) + Send + Sync + 'static,
        parameters: impl IntoIterator<Item = P>,
    ) -> Self {
        let cube = Arc::new(Cube::new(likelihood, transform));
        let prior = Reference::standard_normal(cube.dim());
        let target = Posterior { likelihood: cube.clone(), prior: prior.clone() };
        Self { prior: Some(prior), ..Self::new(target) }.with_values(InCube(cube), parameters)
    }

    /// A density in parameters with supports: free coordinates are sampled, and draws, summary and report are of the
    /// parameters' values, by their names.
    ///
    /// ```
    /// use sterna::supports::{Constrained, Parameters, Support};
    /// use sterna_run::Problem;
    ///
    /// // Counts of three kinds, with uniform shares.
    /// let parameters = Parameters::new([("share", 3, Support::Simplex).into()])?;
    /// let problem = Problem::constrained(Constrained::row_by_row(parameters, |share, gradient| {
    ///     let counts = [4.0, 1.0, 2.0];
    ///     (0..3).for_each(|k| gradient[k] = counts[k] / share[k]);
    ///     (0..3).map(|k| counts[k] * share[k].ln()).sum()
    /// }));
    /// assert_eq!((problem.dim(), problem.value_names().len()), (2, 3));
    /// # Ok::<(), sterna::Error>(())
    /// ```
    pub fn constrained<T: Target + 'static>(target: Constrained<T>) -> Self {
        let parameters = target.parameters().clone();
        Self::new(target).speaking_of(parameters)
    }

    /// Values and names of parameters with supports.
    fn speaking_of(self, parameters: Parameters) -> Self {
        let names: Vec<Parameter> = parameters.each().iter().map(Parameter::supported).collect();
        self.with_values(parameters, names)
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

    /// Speaks of these values, with these names, in place of the coordinates that are sampled.
    pub fn with_values<P: Into<Parameter>>(
        self,
        values: impl Constrain + 'static,
        parameters: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { values: Some(Arc::new(values)), ..self.named(parameters) }
    }

    /// Gives the log density as operations of a graph.
    pub fn with_graph(mut self, graph: impl GraphTarget + 'static) -> Self {
        self.graph = Some(Arc::new(graph));
        self
    }

    /// Keeps a function of each draw: a variable of draws.nc, and its mean in the summary. It gets the coordinates of a point, or
    /// its values where the problem speaks of some, which are to be said before.
    pub fn observe(
        mut self,
        name: impl Into<String>,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let value: Arc<Function> = match self.values.clone() {
            None => Arc::new(value),
            Some(values) => Arc::new(move |point| {
                let mut of_point = vec![0.0; values.values()];
                values.constrain(point, &mut of_point);
                value(&of_point)
            }),
        };
        self.observables.push(Observable { name: name.into(), value });
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

    /// A name for each value, which are the coordinates if nothing else was said, as `theta[2]` where several have one; empty
    /// where they have none.
    pub fn value_names(&self) -> Vec<String> {
        self.parameters.iter().flat_map(Parameter::names).collect()
    }

    /// How many values a draw has that people speak of.
    pub fn value_count(&self) -> usize {
        self.values.as_ref().map_or(self.dim(), |values| values.values())
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
