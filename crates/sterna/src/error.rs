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
    /// The density can be used nowhere that the replicas start.
    #[error(
        "no point drawn from the reference has a density; the log density is {value} for replica {replica}, at the point \
         {point:?}: it must be finite somewhere, and -inf where the density vanishes"
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
        "the density vanishes at all {draws} points drawn from the reference, or is no number there; do their supports overlap?"
    )]
    NoStart {
        /// How many were drawn.
        draws: usize,
    },
    /// A schedule is not 0 = β₀ < β₁ < … = 1.
    #[error("a schedule must increase strictly from 0 to 1; found {0:?}")]
    Schedule(Vec<f64>),
    /// A setting has an impossible value.
    #[error("{setting} = {value} is impossible: {cure}")]
    Setting {
        /// Which setting, by its name in the library: type and field.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        cure: &'static str,
    },
    /// What a run saved of itself cannot be used.
    #[error("saved state cannot be used: {0}")]
    Saved(#[from] BadState),
    /// A transport could not be made.
    #[error("the transport failed: {0}")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A run on several processes failed on another one.
    #[error("{0}")]
    Elsewhere(String),
    /// The target itself failed and asked to stop.
    #[error("the target failed: {0}")]
    Target(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a saved state cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// The bytes are none of a state.
    #[error("it does not read ({0})")]
    Unreadable(String),
    /// More bytes than a state.
    #[error("it is longer than it should be")]
    TooLong,
    /// Of another run.
    #[error("it belongs to a run with other settings")]
    OtherSettings,
    /// Sizes do not agree with each other, or the stage not with what there is.
    #[error("its parts contradict each other")]
    Contradiction,
    /// It holds a fit, or what one made, but the run fits nothing.
    #[error("it holds a fitted accelerator, but none is to be fitted")]
    NothingToFit,
    /// What a fit kept of itself is not what that fit can read.
    #[error("{0}")]
    OfFit(&'static str),
}

impl Error {
    /// A setting with an impossible value.
    pub fn setting(setting: &'static str, value: impl ToString, cure: &'static str) -> Self {
        Self::Setting { setting, value: value.to_string(), cure }
    }
}
