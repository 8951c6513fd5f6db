//! Libraries in C that lie, each in its own way.

use crate::error::JobError;
use crate::files::write_whole;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A way to be wrong.
pub(super) struct Lie {
    pub name: &'static str,
    pub about: &'static str,
    /// `LIE` of the source.
    pub number: usize,
    pub dim: usize,
    /// Whether a sound result is possible all the same: the density is right, or right where it is a number.
    pub harmless: bool,
}

const fn lie(number: usize, name: &'static str, about: &'static str) -> Lie {
    Lie { name, about, number, dim: 3, harmless: false }
}

/// With a wrong score moves are exact, only slow.
const fn wrong_score(number: usize, dim: usize, name: &'static str, about: &'static str) -> Lie {
    Lie { name, about, number, dim, harmless: true }
}

pub(super) const LIES: [Lie; 14] = [
    lie(1, "no-density", "never writes the density"),
    lie(13, "no-score", "never writes the score"),
    lie(2, "part-of-score", "writes the first coordinate of the score alone"),
    lie(3, "of-batch", "its answer depends on the size of the batch"),
    lie(4, "of-row", "its answer depends on the row"),
    lie(5, "of-call", "its answer depends on the call"),
    lie(6, "overwrites", "writes to the points"),
    wrong_score(7, 2, "flipped-2", "the sign of the score is flipped, d = 2"),
    wrong_score(7, 20, "flipped-20", "the sign of the score is flipped, d = 20"),
    lie(8, "nan-half", "NaN where x0 < 0"),
    wrong_score(9, 3, "twice-score", "the score is twice the gradient"),
    lie(10, "noisy", "a random number of a hundredth in the density"),
    lie(11, "last-row", "leaves out the last row of a batch"),
    wrong_score(12, 3, "zero-score", "a score of zero everywhere"),
];

const SOURCE: &str = include_str!("liars.c");

/// Whether there is a compiler for C.
pub(super) fn there_is_a_compiler() -> bool {
    let asked = Command::new("cc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// The library of a lie.
pub(super) fn compiled(workplace: &Path, name: &str, lie: usize, dim: usize) -> Result<PathBuf, JobError> {
    let (source, library) = (workplace.join(format!("{name}.c")), workplace.join(format!("lib{name}.so")));
    write_whole(&source, SOURCE.as_bytes())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC"]).arg(format!("-DLIE={lie}")).arg(format!("-DDIM={dim}"));
    compiler.arg("-o").arg(&library).arg(&source).arg("-lm");
    let done = compiler.output().map_err(JobError::file("compile", &source))?;
    match done.status.success() {
        true => Ok(library),
        false => Err(JobError::Config(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}
