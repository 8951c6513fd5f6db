//! `kind = "library"`: a target that lives in a shared library and speaks C. The header is `include/sterna.h`.
//!
//! A library may do anything, so it is first loaded and asked for one point in a process of its own: if that
//! one crashes, this one says so and lives on.

use crate::error::JobError;
use libloading::{Library, Symbol};
use serde_json::json;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use sterna::{Batch, Evaluation, Streams, Target};

/// The function's name where none is given.
pub const SYMBOL: &str = "sterna_evaluate";

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
    log_z: Option<f64>,
    path: PathBuf,
    symbol: String,
    /// Keeps the code in memory.
    _library: Library,
}

/// The program that can be asked to load a library in a process of its own: see [`probe`].
static PROBE: OnceLock<PathBuf> = OnceLock::new();

/// Says which program to start, with the arguments `probe-library PATH SYMBOL [DIM]`, before a library is
/// loaded here. Without one, libraries are loaded untried.
pub fn probe_with(program: PathBuf) {
    let _ = PROBE.set(program);
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> JobError {
    JobError::Config(format!("target.library = {:?}: {what}", path.display().to_string()))
}

impl LibraryTarget {
    /// Tries a library, then loads it; the function is [`SYMBOL`] and the dimension the library's own where they are not
    /// given.
    pub fn load(library: &Path, symbol: Option<&str>, dim: Option<usize>) -> Result<Self, JobError> {
        let path = std::path::absolute(library).map_err(JobError::file("find", library))?;
        if !path.is_file() {
            return Err(wrong(&path, "there is no such file"));
        }
        let symbol = symbol.unwrap_or(SYMBOL);
        if let Some(program) = PROBE.get() {
            try_elsewhere(program, &path, symbol, dim)?;
        }
        Self::open(&path, symbol, dim)
    }

    fn open(path: &Path, symbol: &str, dim: Option<usize>) -> Result<Self, JobError> {
        // SAFETY: loading runs the library's own code, which its user vouches for and which was tried.
        let library =
            unsafe { Library::new(path) }.map_err(|e| wrong(path, format_args!("cannot load: {e}")))?;
        // SAFETY: the header says what this function is.
        let evaluate = unsafe { library.get::<Evaluate>(symbol.as_bytes()) };
        let evaluate = *evaluate.map_err(|e| {
            wrong(
                path,
                format_args!("it exports no function `{symbol}` ({e}); name another with target.symbol"),
            )
        })?;
        // SAFETY: the header says what these functions are; without them nothing is called.
        let (own_dim, log_z) = unsafe {
            let dim: Option<Symbol<unsafe extern "C" fn() -> usize>> = library.get(b"sterna_dim").ok();
            let log_z: Option<Symbol<unsafe extern "C" fn() -> f64>> = library.get(b"sterna_log_z").ok();
            (dim.map(|f| f()), log_z.map(|f| f()))
        };
        let dim = match (dim, own_dim) {
            (Some(given), Some(own)) if given != own => {
                return Err(wrong(path, format_args!("it has dimension {own}, but target.dim = {given}")));
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
        let log_z = log_z.filter(|z| z.is_finite());
        Ok(Self { evaluate, dim, log_z, path: path.into(), symbol: symbol.into(), _library: library })
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
        let code = self.call(x.as_slice(), &mut out.log_density, out.score.as_mut_slice());
        if code == 0 {
            return Ok(());
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

    fn log_z(&self) -> Option<f64> {
        self.log_z
    }
}

/// Loads a library in another process and evaluates one point there.
fn try_elsewhere(program: &Path, path: &Path, symbol: &str, dim: Option<usize>) -> Result<(), JobError> {
    let mut command = Command::new(program);
    command.arg("probe-library").arg(path).arg(symbol).args(dim.map(|d| d.to_string()));
    let output = command.stdin(Stdio::null()).output().map_err(JobError::file("start", program))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&output.status) {
        let loaded = String::from_utf8_lossy(&output.stdout).contains(LOADED);
        let when = if loaded { "when it evaluated the origin" } else { "when it was loaded" };
        let what = format!("it crashed {when}, with signal {signal}{}", crate::process::signal_name(signal));
        return Err(wrong(path, what + if errors.is_empty() { "" } else { ":\n" } + errors.trim_end()));
    }
    match errors.trim().strip_prefix("error: ") {
        Some(message) => Err(JobError::Config(message.into())),
        None => Err(wrong(path, format_args!("it ended the program that tried it ({})", output.status))),
    }
}

const LOADED: &str = "loaded";

/// What the other process does: says when the library is loaded, then evaluates the origin.
pub fn probe(path: &Path, symbol: &str, dim: Option<usize>) -> Result<(), JobError> {
    use std::io::Write;
    let target = LibraryTarget::open(path, symbol, dim)?;
    println!("{}", json!({LOADED: true, "dim": target.dim}));
    let _ = std::io::stdout().flush();
    // A failure at the origin is the target's business: it may be nowhere near its support.
    target.call(&vec![0.0; target.dim], &mut [0.0], &mut vec![0.0; target.dim]);
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    unsafe extern "C" fn nothing(_: usize, _: usize, _: *const f64, _: *mut f64, _: *mut f64) -> c_int {
        0
    }

    fn target() -> LibraryTarget {
        LibraryTarget {
            evaluate: nothing,
            dim: 2,
            log_z: None,
            path: "none".into(),
            symbol: "nothing".into(),
            _library: libloading::os::unix::Library::this().into(),
        }
    }

    #[test]
    fn points_of_another_dimension_are_refused() {
        let x = Batch::zeros(3, 2);
        assert!(target().evaluate(&x, &mut Evaluation::zeros(3, 2)).is_ok());
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
