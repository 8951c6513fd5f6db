//! What a run folder holds, for Python.

use crate::errors::{Raised, raise};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use sterna_run::config::TargetKind;
use sterna_run::draws_file::{Numbers, read};
use sterna_run::{JobError, report};

fn raised<T>(result: Result<T, JobError>) -> PyResult<T> {
    result.map_err(|error| raise(&error, &Raised::default()))
}

/// Variables of draws.nc, or of another file of draws: a dictionary of arrays for each group.
#[pyfunction]
pub fn read_draws(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let columns = raised(py.detach(|| read(&path)).map_err(JobError::from))?;
    let groups = PyDict::new(py);
    for column in columns {
        let group = match groups.get_item(column.group)? {
            Some(group) => group.cast_into::<PyDict>()?,
            None => {
                let group = PyDict::new(py);
                groups.set_item(column.group, &group)?;
                group
            }
        };
        match column.values {
            Numbers::Real(values) => {
                group.set_item(column.name, values.into_pyarray(py).reshape(column.shape)?)?
            }
            Numbers::Count(values) => {
                group.set_item(column.name, values.into_pyarray(py).reshape(column.shape)?)?
            }
        }
    }
    Ok(groups)
}

/// The report of a run folder, a whole page.
#[pyfunction]
pub fn report_page(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    raised(py.detach(|| report::page(&folder)))
}

/// Verdict, table and three charts, as a part of a page.
#[pyfunction]
pub fn report_view(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    raised(py.detach(|| report::view(&folder)))
}

/// One chart of the report, as SVG.
#[pyfunction]
pub fn report_chart(py: Python<'_>, folder: PathBuf, name: &str) -> PyResult<String> {
    raised(py.detach(|| report::drawing(&folder, name)))
}

/// Kinds of targets that configs know, with what they are.
#[pyfunction]
pub fn target_kinds() -> Vec<(&'static str, &'static str, &'static str)> {
    let all = TargetKind::all();
    all.iter().map(|kind| (kind.kind(), kind.about().possible, kind.about().about)).collect()
}
