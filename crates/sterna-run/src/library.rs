//! `kind = "library"`: a target that lives in a shared library and speaks C. The header is `include/sterna.h`.
//!
//! A library may do anything, so it is first loaded and asked for one point in a process of its own, and what it should write
//! is filled beforehand with what no computation makes, call by call: what was not written is never taken for an answer.

mod cube;
mod exports;
mod observe;
mod probe;

pub(crate) use cube::cube;
pub use exports::Exports;
pub(crate) use observe::observing;
pub use probe::{probe, probe_with};

use crate::error::JobError;
use crate::trial::{NO_DENSITY, no_score};
use libloading::Library;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use sterna::{Batch, Evaluation, Streams, Target};

/// The function's name where none is given.
pub const SYMBOL: &str = "sterna_evaluate";

/// The function's name where it is a likelihood, and the prior known apart.
pub const LIKELIHOOD: &str = "sterna_log_likelihood";

/// log densities and scores of `rows` points of `dim` coordinates; not 0 stops the run.
type Evaluate = unsafe extern "C" fn(
    rows: usize,
    dim: usize,
    points: *const f64,
    log_density: *mut f64,
    score: *mut f64,
) -> c_int;

/// A target in a shared library.
#[derive(Debug)]
pub struct LibraryTarget {
    evaluate: Evaluate,
    dim: usize,
    /// What else it exports.
    exports: Exports,
    has_score: bool,
    path: PathBuf,
    symbol: String,
    /// Keeps the code in memory.
    _library: Library,
}

/// Why a library cannot be loaded, in the system's own words.
pub(crate) fn why(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string())
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

/// What is not written.
const UNWRITTEN: u64 = 0x7ff8_756e_7772_6974;

fn wrong(path: &Path, what: impl std::fmt::Display) -> JobError {
    JobError::Config(format!("target.library = {:?}: {what}", path.display().to_string()))
}

impl LibraryTarget {
    /// Tries a library, then loads it; the function is [`SYMBOL`] and the dimension the library's own where they are not
    /// given.
    pub fn load(library: &Path, symbol: Option<&str>, dim: Option<usize>) -> Result<Self, JobError> {
        let path = std::path::absolute(library).map_err(JobError::file("find", library))?;
        if !path.is_file() {
            return Err(wrong(&path, if path.is_dir() { "it is a folder" } else { "there is no such file" }));
        }
        let symbol = symbol.unwrap_or(SYMBOL);
        probe::try_elsewhere(&path, symbol, dim)?;
        Self::open(&path, symbol, dim)
    }

    fn open(path: &Path, symbol: &str, dim: Option<usize>) -> Result<Self, JobError> {
        // SAFETY: loading runs the library's own code, which its user vouches for and which was tried.
        let library = unsafe { Library::new(path) }
            .map_err(|e| wrong(path, format_args!("cannot load: {}", why(&e))))?;
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
        let has_score = exports.has_score;
        Ok(Self {
            evaluate,
            dim,
            exports,
            has_score,
            path: path.into(),
            symbol: symbol.into(),
            _library: library,
        })
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
        Self { has_score: false, ..self }
    }

    /// Calls the function for whole rows.
    ///
    /// # Panics
    /// If the lengths are not those of as many points: C would write beyond them.
    fn call(&self, x: &[f64], log_density: &mut [f64], score: &mut [f64]) -> c_int {
        let rows = log_density.len();
        assert!(
            rows.checked_mul(self.dim) == Some(x.len()) && score.len() == x.len(),
            "{} coordinates and {} of the score are not {rows} points of dimension {}",
            x.len(),
            score.len(),
            self.dim
        );
        // SAFETY: the slices have the lengths that the header promises, as just checked, and live through the call.
        unsafe { (self.evaluate)(rows, self.dim, x.as_ptr(), log_density.as_mut_ptr(), score.as_mut_ptr()) }
    }
}

impl LibraryTarget {
    /// Whether all is there that should be; where there is no density, nobody asks for its score.
    fn check_written(&self, out: &Evaluation) -> sterna::Result<()> {
        let unwritten = |x: &f64| x.to_bits() == UNWRITTEN;
        let what = if out.log_density.iter().any(unwritten) {
            NO_DENSITY.to_string()
        } else {
            let known = out.log_density.iter().zip(out.score.iter_rows()).filter(|(l, _)| l.is_finite());
            match known.filter_map(|(_, score)| score.iter().position(unwritten)).next() {
                Some(coordinate) => no_score(coordinate),
                None => return Ok(()),
            }
        };
        let (symbol, path) = (&self.symbol, self.path.display());
        Err(sterna::Error::Target(format!("`{symbol}` of {path}: {what}").into()))
    }
}

impl Target for LibraryTarget {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let found = if x.dim() == self.dim { out.score.dim() } else { x.dim() };
        if found != self.dim {
            return Err(sterna::Error::Dimension { what: "a point", found, expected: self.dim });
        }
        if x.rows() == 0 {
            return Ok(());
        }
        out.log_density.fill(f64::from_bits(UNWRITTEN));
        if self.has_score {
            out.score.as_mut_slice().fill(f64::from_bits(UNWRITTEN));
        }
        let code = self.call(x.as_slice(), &mut out.log_density, out.score.as_mut_slice());
        if code == 0 {
            if !self.has_score {
                out.score.as_mut_slice().fill(0.0);
            }
            return self.check_written(out);
        }
        // Row by row, to name the point.
        let mut score = vec![0.0; self.dim];
        let fails = |x: &&[f64]| self.call(x, &mut [0.0], &mut score) != 0;
        let at = match x.iter_rows().find(fails) {
            Some(point) => format!("the point {point:?}"),
            None => format!("a batch of {} points, but at none of them alone", x.rows()),
        };
        let (symbol, path) = (&self.symbol, self.path.display());
        Err(sterna::Error::Target(format!("`{symbol}` of {path} returned {code} at {at}").into()))
    }

    fn has_score(&self) -> bool {
        self.has_score
    }

    fn log_z(&self) -> Option<f64> {
        self.exports.log_z
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    extern "C" fn nothing(_: usize, _: usize, _: *const f64, _: *mut f64, _: *mut f64) -> c_int {
        0
    }

    fn target() -> LibraryTarget {
        LibraryTarget {
            evaluate: nothing,
            dim: 2,
            exports: Exports::default(),
            has_score: true,
            path: "none".into(),
            symbol: "nothing".into(),
            _library: libloading::os::unix::Library::this().into(),
        }
    }

    #[test]
    fn points_of_another_dimension_are_refused() {
        let x = Batch::zeros(3, 2);
        let error = target().evaluate(&x, &mut Evaluation::zeros(3, 2)).unwrap_err().to_string();
        assert!(error.contains("without having written the log density"), "{error}");
        assert!(target().evaluate(&Batch::zeros(3, 4), &mut Evaluation::zeros(3, 4)).is_err());
        assert!(target().evaluate(&x, &mut Evaluation::zeros(3, 1)).is_err());
    }

    #[test]
    #[should_panic(expected = "are not 5 points of dimension 2")]
    fn room_for_another_number_of_points_never_reaches_the_library() {
        let mut out = Evaluation::zeros(3, 2);
        out.log_density = vec![0.0; 5];
        let _ = target().evaluate(&Batch::zeros(3, 2), &mut out);
    }
}
