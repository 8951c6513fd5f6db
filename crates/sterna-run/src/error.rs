//! What can go wrong with a job, and whose fault it is.

use std::path::PathBuf;

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The input was wrong: exit code 2.
    #[error("{0}")]
    Config(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Stopped before the first draw.
    #[error("stopped before sampling began: there is nothing to report")]
    Interrupted,
    /// Stopped on request; what had been sampled was written.
    #[error("stopped on request; what had been sampled is in {}", folder.display())]
    Stopped {
        /// The run folder.
        folder: PathBuf,
    },
    /// A run that was watched came to no good end.
    #[error("{0}")]
    Watched(String),
    /// Draws could not be written.
    #[error(transparent)]
    Draws(#[from] crate::draws_file::DrawsFileError),
    /// The sampler could not start or go on.
    #[error(transparent)]
    Sampler(#[from] sterna::Error),
}

impl JobError {
    /// 2 where the input was wrong, 1 where the run failed.
    pub fn exit_code(&self) -> i32 {
        use sterna::Error::*;
        match self {
            Self::Config(_) | Self::File { .. } => 2,
            Self::Draws(_) => 1,
            Self::Sampler(
                Dimension { .. } | BadStart { .. } | NoStart { .. } | Setting { .. } | Schedule(_),
            ) => 2,
            Self::Interrupted | Self::Stopped { .. } | Self::Watched(_) | Self::Sampler(_) => 1,
        }
    }

    /// Wraps an error of the file system.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
