//! What is sampled, as Python holds it.

use crate::callback::{Attached, Callback, Function, Kept, Style};
use crate::errors::{ConfigError, Raised, annotate, raise};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::Arc;
use sterna::{Batch, Target};
use sterna_run::config::{Config, ParameterConfig, TargetKind, described};
use sterna_run::evaluate::evaluate;
use sterna_run::library;
use sterna_run::problem::{Constrain, Parameter, Problem as Inner};

/// Name, shape, support and prior of a parameter.
type Described = (String, Vec<usize>, Option<String>, Option<String>);

/// A target with what is known of it.
#[pyclass(frozen, module = "sterna._core")]
pub struct Problem {
    pub inner: Inner,
    pub raised: Raised,
}

#[pymethods]
impl Problem {
    /// What a config says is sampled: its text, and overrides of keys.
    #[staticmethod]
    fn configured(py: Python<'_>, text: &str, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let raised = Raised::default();
        let inner = py.detach(|| parse(text, &overrides).and_then(|config| config.problem()));
        Ok(Self { inner: inner.map_err(|error| raise(&error, &raised))?, raised })
    }

    /// A function of points, which gets all rows at once.
    #[staticmethod]
    fn callback(
        py: Python<'_>,
        function: Py<PyAny>,
        dim: usize,
        has_score: bool,
        parameters: Vec<Described>,
        name: &str,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let function = Function::new(py, function, Style::Rows)?;
        let target = Callback { function, dim, has_score, raised: raised.clone() };
        Self::own(target, &parameters, name, raised)
    }

    /// A C function by its address, with the signature of include/sterna.h; `keep` is what it belongs to.
    #[staticmethod]
    fn address(
        address: usize,
        dim: usize,
        has_score: bool,
        parameters: Vec<Described>,
        name: &str,
        keep: Py<PyAny>,
    ) -> PyResult<Self> {
        if address == 0 {
            return Err(ConfigError::new_err("the function has no address"));
        }
        // SAFETY: an address that is not 0 is a valid pointer to a function of any type; that there is one of this type, its
        // caller vouches for, as the package's documentation says.
        let evaluate = unsafe { std::mem::transmute::<usize, library::Evaluate>(address) };
        // SAFETY: as above; what it belongs to is kept beside it.
        let function = unsafe { library::Function::new(evaluate, dim, has_score, format!("`{name}`")) };
        Self::own(Kept(function, keep), &parameters, name, Raised::default())
    }

    /// A log likelihood and the transform of the unit cube that is its prior, as nested samplers have them.
    #[staticmethod]
    fn likelihood(
        py: Python<'_>,
        log_likelihood: Py<PyAny>,
        prior_transform: Py<PyAny>,
        dim: usize,
        vectorized: bool,
        parameters: Vec<Described>,
        name: &str,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let style = if vectorized { Style::Rows } else { Style::Point };
        let function = Function::new(py, log_likelihood, style)?;
        let likelihood = Callback { function, dim, has_score: false, raised: raised.clone() };
        let transform = transform(Function::new(py, prior_transform, style)?, style, raised.clone());
        let names = match parameters.is_empty() {
            true => vec![Parameter::vector("x", dim)],
            false => shapes(&parameters),
        };
        let found: usize = names.iter().map(Parameter::coordinates).sum();
        if found != dim {
            return Err(ConfigError::new_err(format!(
                "the parameters have {found} values, but ndim = {dim}"
            )));
        }
        let inner = Inner::from_prior_transform(likelihood, transform, names).called(name);
        let target: Arc<dyn Target> = Arc::new(Attached(inner.target.clone()));
        Ok(Self { inner: Inner { target, ..inner }, raised })
    }

    /// The same, speaking of values that a function makes of rows of points, by these names.
    fn speaking_of(&self, py: Python<'_>, function: Py<PyAny>, parameters: Vec<Described>) -> PyResult<Self> {
        let names = shapes(&parameters);
        let count = names.iter().map(Parameter::coordinates).sum();
        let function = Function::new(py, function, Style::Rows)?;
        let values = Values { function, count, raised: self.raised.clone() };
        Ok(Self { inner: self.inner.clone().with_values(values, names), raised: self.raised.clone() })
    }

    /// Coordinates that are sampled.
    #[getter]
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    /// Whether it knows its score.
    #[getter]
    fn has_score(&self) -> bool {
        self.inner.target.has_score()
    }

    /// A name for each value; empty where they have none.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.value_names()
    }

    /// Whether it lives in this program, so that no other can go on with its runs.
    #[getter]
    fn is_own(&self) -> bool {
        matches!(self.inner.kind, TargetKind::Own(_))
    }

    /// Log density and score at points, in the coordinates that are sampled.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
        let batch = rows(&points)?;
        let (rows, dim) = (batch.rows(), batch.dim());
        let answer = py.detach(|| evaluate(&self.inner, &batch));
        let answer = answer.map_err(|error| raise(&error, &self.raised))?;
        let score = answer.score.as_slice().to_vec().into_pyarray(py).reshape([rows, dim])?;
        Ok((answer.log_density.into_pyarray(py), score))
    }

    /// The values that people speak of, at points in the coordinates that are sampled.
    fn values<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let batch = rows(&points)?;
        if batch.dim() != self.inner.dim() {
            let (found, dim) = (batch.dim(), self.inner.dim());
            return Err(ConfigError::new_err(format!("points have dimension {found}, but {dim} is needed")));
        }
        let count = self.inner.value_count();
        let mut values = Batch::zeros(batch.rows(), count);
        py.detach(|| {
            for (i, point) in batch.iter_rows().enumerate() {
                match &self.inner.values {
                    Some(constrain) => constrain.constrain(point, values.row_mut(i)),
                    None => values.row_mut(i).copy_from_slice(point),
                }
            }
        });
        match self.raised.take() {
            Some(error) => Err(error),
            None => values.as_slice().to_vec().into_pyarray(py).reshape([batch.rows(), count]),
        }
    }
}

impl Problem {
    /// A target of this program, with its parameters.
    fn own(
        target: impl Target + 'static,
        parameters: &[Described],
        name: &str,
        raised: Raised,
    ) -> PyResult<Self> {
        let given: Vec<ParameterConfig> = parameters
            .iter()
            .map(|(name, shape, support, prior)| ParameterConfig {
                support: support.clone(),
                prior: prior.clone(),
                ..ParameterConfig::new(name, shape.iter().product())
            })
            .collect();
        let inner = described(target, &given).map_err(|error| raise(&error, &raised))?.called(name);
        Ok(Self { inner: inner.named(shapes(parameters)), raised })
    }
}

/// Values of points that a function of Python makes; NaN where it raises, which the run is told of when it next looks.
struct Values {
    function: Function,
    count: usize,
    raised: Raised,
}

impl Constrain for Values {
    fn values(&self) -> usize {
        self.count
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        Python::attach(|py| {
            let answer = self.function.call(py, point, point.len());
            let shape = [1, self.count];
            if let Err(error) = answer.and_then(|a| self.function.read(&a, "the values", &shape, values)) {
                annotate(py, &error, point);
                self.raised.keep(error);
                values.fill(f64::NAN);
            }
        });
    }
}

fn shapes(parameters: &[Described]) -> Vec<Parameter> {
    parameters.iter().map(|(name, shape, ..)| Parameter::array(name, shape.clone())).collect()
}

/// Values of a point of the unit cube; NaN where the function raises, which ends the run at the next evaluation.
fn transform(function: Function, style: Style, raised: Raised) -> impl Fn(&[f64], &mut [f64]) + Send + Sync {
    move |cube, values| {
        Python::attach(|py| {
            let dim = cube.len();
            let shape = [1, dim];
            let shape = if style == Style::Rows { &shape[..] } else { &shape[1..] };
            let answer = function.call(py, cube, dim);
            let read = answer.and_then(|answer| function.read(&answer, "the prior transform", shape, values));
            if let Err(error) = read {
                annotate(py, &error, cube);
                raised.keep(error);
                values.fill(f64::NAN);
            }
        });
    }
}

fn rows(points: &PyReadonlyArray2<'_, f64>) -> PyResult<Batch> {
    let dim = points.shape()[1];
    if dim == 0 {
        return Err(ConfigError::new_err("points have no coordinates"));
    }
    Ok(Batch::from_vec(dim, points.as_array().iter().copied().collect()))
}

/// A config from text and overrides.
pub fn parse(text: &str, overrides: &[(String, String)]) -> Result<Config, sterna_run::JobError> {
    let overrides: Vec<(&str, &str)> = overrides.iter().map(|(key, value)| (&**key, &**value)).collect();
    Config::parse(text, &overrides)
}
