//! Why there is no new `draws.nc`, or an old one cannot be read.

use rust_hdf5::Hdf5Error;
use std::path::PathBuf;

const BAD_NAME: &str = "cannot name a variable: use the letters a to z, digits and _";

/// Why there is no new `draws.nc`.
#[derive(Debug, thiserror::Error)]
pub enum DrawsFileError {
    /// Nothing to write.
    #[error("no draws to write: {ensembles} ensembles, {draws} draws, dimension {dim}")]
    Empty {
        /// Number of ensembles.
        ensembles: usize,
        /// Draws in the first.
        draws: usize,
        /// Coordinates of a point.
        dim: usize,
    },
    /// Ensembles differ in length, or a variable does not fit the draws.
    #[error("`{variable}` of ensemble {ensemble} has {found} numbers, not {expected}")]
    Length {
        /// Name in the file.
        variable: String,
        /// Where.
        ensemble: usize,
        /// Its length.
        found: usize,
        /// What the first ensemble asks for.
        expected: usize,
    },
    /// A statistic has too few or too many ensembles.
    #[error("statistic `{variable}` has {found} ensembles, the draws have {expected}")]
    Ensembles {
        /// Name in the file.
        variable: String,
        /// Ensembles of the statistic.
        found: usize,
        /// Ensembles of the draws.
        expected: usize,
    },
    /// A statistic is real in one ensemble and a count in another.
    #[error("statistic `{variable}` changes its type at ensemble {ensemble}")]
    Mixed {
        /// Name in the file.
        variable: String,
        /// The first that differs.
        ensemble: usize,
    },
    /// A statistic's name is taken, or not letters, digits and underscores.
    #[error("`{name}` {}", if *taken { "is in the file already" } else { BAD_NAME })]
    Name {
        /// The name.
        name: String,
        /// Whether another variable has it.
        taken: bool,
    },
    /// Names do not cover the coordinates.
    #[error(
        "the parameters have {found} coordinates, the target {expected}: name all, or several by Parameter::vector"
    )]
    Parameters {
        /// Coordinates with a name.
        found: usize,
        /// Coordinates of a point.
        expected: usize,
    },
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The HDF5 library refused, mostly because the system did.
    #[error("cannot write {}: {}", path.display(), cause(source))]
    Hdf5 {
        /// The file that was asked for.
        path: PathBuf,
        /// What was said.
        source: Hdf5Error,
    },
    /// The file is not as it was written, or of another program.
    #[error("cannot read {}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what way.
        why: String,
    },
    /// A file cannot be read back.
    #[error("cannot read {}: {}", path.display(), cause(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was said.
        source: Hdf5Error,
    },
}

/// What happened, without the layers it came through.
fn cause(error: &Hdf5Error) -> String {
    let text = error.to_string();
    let text = text.trim_start_matches("hdf5-io error: ").trim_start_matches("I/O error: ");
    text.into()
}
