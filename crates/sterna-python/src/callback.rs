//! Functions of Python as targets. A call gets all rows of a batch, so Python is entered once for all ladders of a thread.

use crate::errors::{Raised, annotate};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sterna::{Batch, Evaluation, Target};

/// How a function wants its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// All of them, an array of rows × dim.
    Rows,
    /// One at a time, an array of dim numbers.
    Point,
}

/// A function of points.
#[derive(Debug)]
pub struct Function {
    function: Py<PyAny>,
    /// `numpy.asarray`, for answers that are something else.
    asarray: Py<PyAny>,
    style: Style,
}

impl Function {
    pub fn new(py: Python<'_>, function: Py<PyAny>, style: Style) -> PyResult<Self> {
        let asarray = py.import("numpy")?.getattr("asarray")?.unbind();
        Ok(Self { function, asarray, style })
    }

    /// What the function says of points, which are its own copy: it may keep or change them.
    pub fn call<'py>(&self, py: Python<'py>, x: &[f64], dim: usize) -> PyResult<Bound<'py, PyAny>> {
        let points = PyArray1::from_slice(py, x);
        match self.style {
            Style::Rows => self.function.bind(py).call1((points.reshape([x.len() / dim, dim])?,)),
            Style::Point => self.function.bind(py).call1((points,)),
        }
    }

    /// Copies an answer, of whatever kind of array or list, if it has this shape.
    pub fn read(
        &self,
        answer: &Bound<'_, PyAny>,
        what: &str,
        shape: &[usize],
        out: &mut [f64],
    ) -> PyResult<()> {
        let array = match answer.cast::<PyArrayDyn<f64>>() {
            Ok(array) => array.clone(),
            Err(_) => self.converted(answer, what)?,
        };
        if array.shape() != shape {
            let (found, wanted) = (array.shape(), shape);
            let gets = match self.style {
                Style::Rows => "all points at once, as rows",
                Style::Point => "one point at a time",
            };
            return Err(PyValueError::new_err(format!(
                "{what} has shape {found:?}, but {wanted:?} is needed: the function gets {gets}"
            )));
        }
        let view = array.try_readonly()?;
        match view.as_slice() {
            Ok(values) if array.is_c_contiguous() => out.copy_from_slice(values),
            // Row by row, whatever the order in memory.
            _ => out.iter_mut().zip(view.as_array()).for_each(|(out, value)| *out = *value),
        }
        Ok(())
    }

    /// An answer as numbers, if it is some.
    fn converted<'py>(
        &self,
        answer: &Bound<'py, PyAny>,
        what: &str,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let py = answer.py();
        let plain = self.asarray.bind(py).call1((answer,))?;
        let kind: String = plain.getattr("dtype")?.getattr("kind")?.extract()?;
        if !["f", "i", "u", "b"].contains(&kind.as_str()) {
            let dtype = plain.getattr("dtype")?;
            return Err(PyTypeError::new_err(format!(
                "{what} has dtype {dtype}, but real numbers are needed"
            )));
        }
        let double = PyDict::new(py);
        double.set_item("dtype", "float64")?;
        Ok(self.asarray.bind(py).call((plain,), Some(&double))?.cast_into::<PyArrayDyn<f64>>()?)
    }
}

/// A function of Python that is a log density, with its score where it has one.
#[derive(Debug)]
pub struct Callback {
    pub function: Function,
    pub dim: usize,
    pub has_score: bool,
    pub raised: Raised,
}

impl Callback {
    /// Asks for whole rows.
    fn ask(&self, py: Python<'_>, x: &[f64], log_density: &mut [f64], score: &mut [f64]) -> PyResult<()> {
        let answer = self.function.call(py, x, self.dim)?;
        if self.function.style == Style::Point {
            let number = answer.extract().or_else(|_| answer.call_method0("item")?.extract());
            log_density[0] = number.map_err(|_: PyErr| no_number(&answer))?;
            return Ok(());
        }
        let rows = log_density.len();
        if !self.has_score {
            return self.function.read(&answer, "the log density", &[rows], log_density);
        }
        let pair = answer.try_iter().and_then(Iterator::collect::<PyResult<Vec<_>>>).unwrap_or_default();
        let [first, second] = &pair[..] else {
            let found = answer.get_type();
            let message = format!("the function returned {found}, but (log_density, score) is needed");
            return Err(PyTypeError::new_err(message));
        };
        self.function.read(first, "the log density", &[rows], log_density)?;
        self.function.read(second, "the score", &[rows, self.dim], score)
    }

    /// The first point at which the function raises by itself; an interrupt is nobody's fault.
    fn culprit<'a>(&self, py: Python<'_>, error: &PyErr, x: &'a Batch) -> Option<&'a [f64]> {
        let mut score = vec![0.0; self.dim];
        match x.rows() {
            1 => Some(x.row(0)),
            _ if !error.is_instance_of::<PyException>(py) => None,
            _ => x.iter_rows().find(|point| self.ask(py, point, &mut [0.0], &mut score).is_err()),
        }
    }
}

/// What a function of one point returned that is no number.
fn no_number(answer: &Bound<'_, PyAny>) -> PyErr {
    let shape = answer.getattr("shape").map(|shape| format!(" of shape {shape}")).unwrap_or_default();
    let found = answer.get_type();
    PyTypeError::new_err(format!(
        "the log likelihood of a point is {found}{shape}, but one number is needed; a function of rows wants vectorized=True"
    ))
}

impl Target for Callback {
    fn dim(&self) -> usize {
        self.dim
    }

    /// Each enters Python, and what it calls has its own costs.
    fn takes_blocks(&self, _rows: usize) -> bool {
        false
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let found = if x.dim() == self.dim { out.score.dim() } else { x.dim() };
        if found != self.dim {
            return Err(sterna::Error::Dimension { what: "a point", found, expected: self.dim });
        }
        // What made the points may have raised.
        if self.raised.is_some() {
            return Err(sterna::Error::Target("an exception was raised".into()));
        }
        if !self.has_score {
            out.score.as_mut_slice().fill(0.0);
        }
        let (log_density, score) = (&mut out.log_density[..], out.score.as_mut_slice());
        Python::attach(|py| {
            let asked = match self.function.style {
                Style::Rows => self.ask(py, x.as_slice(), log_density, score),
                Style::Point => {
                    let mut each = x.iter_rows().zip(log_density.chunks_mut(1));
                    each.try_for_each(|(point, out)| self.ask(py, point, out, &mut []))
                }
            };
            asked.map_err(|error| {
                if let Some(point) = self.culprit(py, &error, x) {
                    annotate(py, &error, point);
                }
                let message = error.to_string();
                self.raised.keep(error);
                sterna::Error::Target(message.into())
            })
        })
    }

    fn has_score(&self) -> bool {
        self.has_score
    }
}

/// A target that enters Python once for all that happens in a call.
pub struct Attached<T>(pub T);

impl<T: Target> Target for Attached<T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        Python::attach(|_| self.0.evaluate(x, out))
    }

    fn has_score(&self) -> bool {
        self.0.has_score()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.0.takes_blocks(rows)
    }

    fn log_z(&self) -> Option<f64> {
        self.0.log_z()
    }
}

/// A target with an object that must live as long as it.
pub struct Kept<T>(pub T, #[expect(dead_code, reason = "it is only held")] pub Py<PyAny>);

impl<T: Target> Target for Kept<T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.0.evaluate(x, out)
    }

    fn has_score(&self) -> bool {
        self.0.has_score()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.0.takes_blocks(rows)
    }
}
