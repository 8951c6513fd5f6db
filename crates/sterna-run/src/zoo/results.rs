//! The file of the zoo's results: a line of JSON for each cell, sorted, so that a run that was stopped goes on and a diff shows
//! what changed.

use super::{Case, Outcome};
use crate::error::JobError;
use crate::files::write_whole;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All cells that were run, in memory and in their file.
#[derive(Clone, Debug)]
pub struct Results {
    path: PathBuf,
    cells: BTreeMap<(String, u64), Outcome>,
}

impl Results {
    /// Those of a file, which need not exist; what is no result, such as half a line, is passed over.
    pub fn open(path: PathBuf) -> Result<Self, JobError> {
        let text = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.map_err(JobError::file("read", &path))?,
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
        Ok(Self {
            cells: lines.map(|outcome| ((outcome.case.clone(), outcome.seed), outcome)).collect(),
            path,
        })
    }

    /// Whether a cell was run as it would be now.
    pub fn has(&self, case: &Case, seed: u64) -> bool {
        self.cells.get(&(case.name.to_string(), seed)).is_some_and(|outcome| outcome.config == case.config)
    }

    /// Keeps a cell.
    pub fn add(&mut self, outcome: Outcome) -> Result<(), JobError> {
        self.cells.insert((outcome.case.clone(), outcome.seed), outcome);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(JobError::file("create", folder))?;
        let line = |outcome: &Outcome| serde_json::to_string(outcome).expect("plain data") + "\n";
        write_whole(&self.path, self.cells.values().map(line).collect::<String>().as_bytes())
    }

    /// The cells of a case, by their seeds.
    pub fn of<'a>(&'a self, case: &'a str) -> impl Iterator<Item = &'a Outcome> + Clone {
        self.cells.values().filter(move |outcome| outcome.case == case)
    }

    /// All cells.
    pub fn all(&self) -> impl Iterator<Item = &Outcome> + Clone {
        self.cells.values()
    }
}
