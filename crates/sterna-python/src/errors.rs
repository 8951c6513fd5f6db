//! Errors of jobs as exceptions, and exceptions of targets on their way through a job.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, create_exception};
use std::sync::{Arc, Mutex, PoisonError};
use sterna_run::JobError;

create_exception!(sterna, ConfigError, PyValueError, "What was asked for is impossible; nothing was run.");
create_exception!(
    sterna,
    RunError,
    PyRuntimeError,
    "A run came to no good end; what was checkpointed is safe."
);

/// The exception that a target raised, kept while the job ends for it: a job knows errors of Rust alone.
#[derive(Clone, Debug, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The first is kept: others follow from it.
    pub fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Takes what there is.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Says more about an exception: a note where Python has them (3.11), and an attribute in any case.
pub fn annotate(py: Python<'_>, error: &PyErr, point: &[f64]) {
    let value = error.value(py);
    let note = format!("raised by the target at the point {point:?}");
    // An exception that takes neither stays as it is.
    let _ = value.call_method1("add_note", (note,));
    let _ = point.into_py_any(py).and_then(|point| value.setattr("sterna_point", point));
}

/// An error of a job as an exception: of a target as itself, else by whose fault it is.
pub fn raise(error: &JobError, raised: &Raised) -> PyErr {
    if let Some(own) = raised.take() {
        return own;
    }
    let message = in_python(error);
    match error.exit_code() {
        2 => ConfigError::new_err(message),
        _ => RunError::new_err(message),
    }
}

/// The message, where it speaks of the command line, in words of the package.
fn in_python(error: &JobError) -> String {
    if let JobError::Halted { cause, .. } = error {
        return in_python(cause);
    }
    let text = error.to_string();
    let text = text.strip_prefix("--set ").unwrap_or(&text);
    text.replace("choose another folder with --out", "choose another store")
        .replace("choose another place with --out", "choose another store")
        .replace("with another --out", "with another store")
        .replace("with --out", "with store=")
}
