//! What can go wrong with a job, and whose fault it is.

use std::path::PathBuf;

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The input was wrong: exit code 2.
    #[error("{0}")]
    Config(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), cure(source))]
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
    /// Stopped on request, with a checkpoint.
    #[error("stopped on request; go on with: sterna resume {}", folder.display())]
    Stopped {
        /// The run folder.
        folder: PathBuf,
    },
    /// The target, or a transport, panicked.
    #[error("the target or the transport panicked: {0}")]
    Panicked(String),
    /// A run under way came to grief.
    #[error("{cause}\nwhat was checkpointed is safe; once the cause is gone, go on with: sterna resume {}", folder.display())]
    Halted {
        /// The run folder.
        folder: PathBuf,
        /// What happened.
        cause: Box<JobError>,
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
                Dimension { .. } | BadStart { .. } | NoStart { .. } | Setting { .. } | Schedule(_) | Saved(_),
            ) => 2,
            Self::Interrupted | Self::Stopped { .. } | Self::Watched(_) | Self::Sampler(_) => 1,
            Self::Panicked(_) | Self::Halted { .. } => 1,
        }
    }

    /// Wraps an error of the file system.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

/// What to do about an error of the file system, where that is known.
fn cure(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::*;
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "; make room there, or choose another place with --out",
        PermissionDenied | ReadOnlyFilesystem => "; choose a place that you may write to with --out",
        _ => "",
    }
}
