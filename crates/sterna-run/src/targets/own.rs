//! `kind = "own"`: a target that lives in a program; a config can only speak of it.

use super::{About, Kind};
use crate::error::JobError;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Fields of `kind = "own"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Own {
    /// What the program calls it.
    pub name: String,
    /// Its dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
}

impl Kind for Own {
    fn about(&self) -> About {
        About {
            possible: "any",
            about: "a target in a Rust program of yours, which makes its own run folders",
        }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        Err(JobError::Config(format!(
            "target.kind = \"own\": the target \"{}\" lives in the program that made this config, not in this one; \
             start that program again, which goes on with Job::start_or_resume or Job::resume \
             (docs/book/rust-target.md shows how to write one)",
            self.name
        )))
    }
}
