//! What a folder was before a run: wrong input leaves it so.

use crate::error::JobError;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that a run is about to begin in.
pub(super) struct Before {
    path: PathBuf,
    was_there: bool,
    was_empty: bool,
}

impl Before {
    pub fn look(path: &Path) -> Self {
        let entries = fs::read_dir(path);
        let was_there = entries.is_ok();
        let was_empty = entries.map_or(true, |mut entries| entries.next().is_none());
        Self { path: path.into(), was_there, was_empty }
    }

    /// Takes away what a run has left that could not begin, since its input was wrong. A folder that held something is not touched.
    pub fn restore(&self, error: &JobError) {
        if error.exit_code() != 2 || !self.was_empty {
            return;
        }
        // What cannot be taken away does no harm.
        let _ = fs::remove_dir_all(&self.path);
        if self.was_there {
            let _ = fs::create_dir(&self.path);
        }
    }
}
