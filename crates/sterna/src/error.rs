//! What can stop a run. A bad row is data (rejected and counted); these are not.

/// Result of the library.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the library cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A point has the wrong number of coordinates.
    #[error("{what} has dimension {found}, but {expected} is needed")]
    Dimension {
        /// What was looked at.
        what: &'static str,
        /// The dimension it has.
        found: usize,
        /// The dimension it should have.
        expected: usize,
    },
    /// The density cannot be used where the replicas start.
    #[error(
        "the log density is {value} at a starting point drawn from the reference: replica {replica}, point {point:?}; \
         it must be finite, or -inf where the density vanishes"
    )]
    BadStart {
        /// Which replica of the run.
        replica: usize,
        /// What the target answered.
        value: f64,
        /// Where.
        point: Vec<f64>,
    },
    /// No starting point has a positive density.
    #[error(
        "the density vanishes at all {draws} points drawn from the reference; do their supports overlap?"
    )]
    NoStart {
        /// How many were drawn.
        draws: usize,
    },
    /// A schedule is not 0 = β₀ < β₁ < … = 1.
    #[error("a schedule must increase strictly from 0 to 1; found {0:?}")]
    Schedule(Vec<f64>),
    /// A setting has an impossible value.
    #[error("{field} = {value} is impossible: {cure}")]
    Setting {
        /// Which setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        cure: &'static str,
    },
    /// What a run saved of itself cannot be used.
    #[error("saved state cannot be used: {0}")]
    Saved(String),
    /// A transport could not be made.
    #[error("the transport failed: {0}")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The target itself failed and asked to stop.
    #[error("the target failed: {0}")]
    Target(#[source] Box<dyn std::error::Error + Send + Sync>),
}
