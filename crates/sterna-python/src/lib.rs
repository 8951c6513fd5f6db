//! The compiled half of the Python package `sterna`: a thin shell over `Problem` and `Job`. The other half, which people call, is in
//! `python/sterna`.

mod callback;
mod errors;
mod handle;
mod problem;
mod ranks;
mod results;

use pyo3::prelude::*;

/// What `python/sterna` stands on; not for direct use.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::errors::{ConfigError, RunError};
    #[pymodule_export]
    use super::handle::Handle;
    #[pymodule_export]
    use super::problem::Problem;
    #[pymodule_export]
    use super::ranks::{leave, of_first, ranks};
    #[pymodule_export]
    use super::results::{read_draws, report_chart, report_page, report_view, target_kinds};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
