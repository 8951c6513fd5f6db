//! `kind = "library"`: a target that lives in a shared library and speaks C. The header is `include/sterna.h`.
//!
//! A library may do anything, so it is first loaded and asked for one point in a process of its own.

mod cube;
mod exports;
mod function;
mod observe;
mod probe;

pub(crate) use cube::cube;
pub use exports::Exports;
pub use function::{Evaluate, Function};
pub(crate) use observe::observing;
pub use probe::{probe, probe_with};

use crate::error::JobError;
use libloading::Library;
use std::path::Path;
use sterna::{Batch, Evaluation, Streams, Target};

/// The function's name where none is given.
pub const SYMBOL: &str = "sterna_evaluate";

/// The function's name where it is a likelihood, and the prior known apart.
pub const LIKELIHOOD: &str = "sterna_log_likelihood";

/// A target in a shared library.
#[derive(Debug)]
pub struct LibraryTarget {
    function: Function,
    /// What else it exports.
    exports: Exports,
    symbol: String,
    /// Keeps the code in memory.
    _library: Library,
}

/// A library in memory, or why it cannot be there, in the system's own words.
pub(crate) fn loaded(path: &Path) -> Result<Library, String> {
    if cfg!(all(target_os = "linux", target_feature = "crt-static")) {
        let why = "this program is linked statically, and such a program can load none: use the release for linux-gnu, or build it yourself";
        return Err(why.into());
    }
    // SAFETY: loading runs the library's own code, which its user vouches for and which was tried.
    unsafe { Library::new(path) }.map_err(|error| {
        std::error::Error::source(&error).map_or_else(|| error.to_string(), |source| source.to_string())
    })
}

/// What is said of a function that is not there.
fn no_function(library: &Library, symbol: &str) -> String {
    let exports = |name: &str| {
        // SAFETY: nothing is done with what it is.
        unsafe { library.get::<*const u8>(name.as_bytes()) }.is_ok()
    };
    if symbol == LIKELIHOOD && exports(SYMBOL) {
        return format!(
            "it exports `{SYMBOL}`, a whole density, but no `{LIKELIHOOD}`, which a prior of [[parameters]] belongs to: export the \
             likelihood apart, or leave the prior out"
        );
    }
    if exports("bs_model_construct") {
        return "it is a model of Stan: say target.kind = \"stan\" and target.model".into();
    }
    format!("it exports no function `{symbol}`; name another with target.symbol")
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> JobError {
    JobError::Config(format!("target.library = {:?}: {what}", path.display().to_string()))
}

impl LibraryTarget {
    /// Tries a library, then loads it; the function is [`SYMBOL`] and the dimension the library's own where they are not
    /// given.
    pub fn load(library: &Path, symbol: Option<&str>, dim: Option<usize>) -> Result<Self, JobError> {
        let path = std::path::absolute(library).map_err(|error| {
            JobError::setting("target.library", format_args!("{library:?}"), error.to_string())
        })?;
        if !path.is_file() {
            return Err(wrong(&path, if path.is_dir() { "it is a folder" } else { "there is no such file" }));
        }
        let symbol = symbol.unwrap_or(SYMBOL);
        probe::try_elsewhere(&path, symbol, dim)?;
        Self::open(&path, symbol, dim)
    }

    fn open(path: &Path, symbol: &str, dim: Option<usize>) -> Result<Self, JobError> {
        let library = loaded(path).map_err(|why| wrong(path, format_args!("cannot load: {why}")))?;
        let exports = Exports::of(&library, path)?;
        let symbol = if symbol == SYMBOL && exports.is_likelihood_alone { LIKELIHOOD } else { symbol };
        // SAFETY: the header says what this function is.
        let evaluate = unsafe { library.get::<Evaluate>(symbol.as_bytes()) };
        let evaluate = *evaluate.map_err(|_| wrong(path, no_function(&library, symbol)))?;
        let values = exports.parameters.as_ref().map(|all| all.iter().map(|p| p.size).sum());
        let dim = match (dim, exports.dim.or(values)) {
            (Some(given), Some(own)) if given != own => {
                let what = format_args!(
                    "it has dimension {own}, but the config speaks of {given} (target.dim, or the sizes of [[parameters]])"
                );
                return Err(wrong(path, what));
            }
            (Some(dim), _) | (None, Some(dim)) => dim,
            (None, None) => {
                return Err(wrong(path, "it does not export `sterna_dim`: give target.dim"));
            }
        };
        if dim == 0 || dim > Streams::MOST_NORMALS {
            let most = Streams::MOST_NORMALS;
            return Err(wrong(path, format_args!("a dimension of {dim} is impossible: 1 to {most} are")));
        }
        if let Some(values) = values.filter(|values| *values != dim) {
            let what = format_args!("`sterna_names` names {values} values, but its dimension is {dim}");
            return Err(wrong(path, what));
        }
        let name = format!("`{symbol}` of {}", path.display());
        // SAFETY: as above; the library stays in memory as long as the function, which is beside it.
        let function = unsafe { Function::new(evaluate, dim, exports.has_score, name) };
        Ok(Self { function, exports, symbol: symbol.into(), _library: library })
    }

    /// What it exports beside the function.
    pub fn exports(&self) -> &Exports {
        &self.exports
    }

    /// Whether what it computes is a likelihood.
    pub fn is_likelihood(&self) -> bool {
        self.symbol == LIKELIHOOD
    }

    /// The same, whose scores nobody believes.
    pub fn without_score(self) -> Self {
        Self { function: self.function.without_score(), ..self }
    }
}

impl Target for LibraryTarget {
    fn dim(&self) -> usize {
        self.function.dim()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.function.takes_blocks(rows)
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        self.function.evaluate(x, out)
    }

    fn has_score(&self) -> bool {
        self.function.has_score()
    }

    fn log_z(&self) -> Option<f64> {
        self.exports.log_z
    }
}
