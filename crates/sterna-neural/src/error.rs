//! What can go wrong: each error names the offending value.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input slice does not hold rows × columns values.
    #[error("input {name:?} needs {rows} rows of {cols}, but has {len} values")]
    InputLength {
        /// Name given when the input was recorded.
        name: String,
        /// Rows of this call.
        rows: usize,
        /// Columns of the input.
        cols: usize,
        /// Values handed over.
        len: usize,
    },
    /// The wrong number of inputs was handed over.
    #[error("the computation has {expected} inputs, but {given} were given")]
    InputCount {
        /// Inputs that were recorded.
        expected: usize,
        /// Inputs handed over.
        given: usize,
    },
    /// Parameters of another layout.
    #[error("the computation reads {expected} parameters, but {given} were given")]
    ParameterCount {
        /// Parameters that the computation reads.
        expected: usize,
        /// Parameters handed over.
        given: usize,
    },
    /// A recorded operation would mix rows of the batch, so it has no meaning row by row.
    #[error("a product of two batches mixes their rows: {what}")]
    MixesRows {
        /// The shapes.
        what: String,
    },
    /// A point has another length than the network.
    #[error("the network works on points of length {expected}, but got {given}")]
    Dimension {
        /// Length of the network's points.
        expected: usize,
        /// Length of the points handed over.
        given: usize,
    },
    /// A function on the host failed.
    #[error("{0}")]
    Host(String),
    /// Gradients stayed NaN or infinite.
    #[error(
        "the gradient was not finite for {consecutive} steps in a row (last at step {step}): lower the learning rate, or check the target's score"
    )]
    Diverged {
        /// Step of the last bad gradient.
        step: u64,
        /// Bad steps in a row.
        consecutive: u64,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is truncated or holds something else.
    #[error("{origin} is no transport file: {reason}")]
    Format {
        /// Where the bytes came from.
        origin: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A file is sound, but belongs to another network.
    #[error("{origin} does not fit this network: {reason}")]
    Mismatch {
        /// Where the bytes came from.
        origin: String,
        /// What differs.
        reason: String,
    },
    /// A GPU was asked for and cannot be had, or failed.
    #[error("CUDA: {what}: {why}")]
    Cuda {
        /// What is missing or failed.
        what: String,
        /// What was looked for where, or what the driver said.
        why: String,
    },
    /// A configuration that no network can have.
    #[error("{field} = {value}: {reason}")]
    Config {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        reason: &'static str,
    },
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
