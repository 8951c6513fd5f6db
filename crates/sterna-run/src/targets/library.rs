//! `kind = "library"`: a target in a shared library that speaks C.

use super::{About, Kind};
use crate::error::JobError;
use crate::library::LibraryTarget;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Fields of `kind = "library"`.
///
/// ```
/// use sterna_run::targets::{Library, TargetKind};
///
/// let library = Library { library: Some("./libmine.so".into()), ..Library::default() };
/// let error = TargetKind::from(library).problem().unwrap_err();
/// assert!(error.to_string().contains("there is no such file"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Library {
    /// Dimension, where the library does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// The shared library, from the current folder if the path is not absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
    /// The function that it exports, `sterna_evaluate` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

impl Kind for Library {
    fn about(&self) -> About {
        let about = "your own, in C: library = \"./libmine.so\" exports sterna_evaluate (include/sterna.h)";
        About { possible: "what it says", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        let Some(library) = &self.library else {
            return Err(JobError::Config(
                "target.kind = \"library\" needs target.library, the path of a shared library".into(),
            ));
        };
        Ok(Problem::new(LibraryTarget::load(library, self.symbol.as_deref(), self.dim)?))
    }
}

impl Library {
    /// Named from the root, so that a run goes on from any folder.
    pub fn with_absolute_path(mut self) -> Self {
        if let Some(library) = &mut self.library
            && let Ok(path) = std::path::absolute(&*library)
            // A config is text.
            && path.to_str().is_some()
        {
            *library = path;
        }
        self
    }
}
