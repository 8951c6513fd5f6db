//! The file of a budget's results: a line of JSON for each run, sorted by name, so that it can be read by people, grows
//! by whole lines and shows in a diff what was made anew. The first line tells of the machine.
//!
//! A line is added under a lock and the file replaced whole, so that processes may add to one file and a stop at any
//! moment leaves all that was there.

use super::cell::{Cell, Measured};
use crate::error::JobError;
use crate::files::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// On what results were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor.
    pub processor: String,
    /// How many cores it has.
    pub cores: usize,
    /// Its GPU, if the program used one.
    #[serde(default)]
    pub gpu: Option<String>,
    /// Runs at a time.
    pub runs_at_a_time: usize,
    /// The program's version.
    pub sterna: String,
    /// Operating system.
    pub system: String,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Machine { machine: Machine },
    Result(Box<Measured>),
}

/// All results of a budget, in memory and in their file.
#[derive(Clone, Debug)]
pub struct Results {
    path: PathBuf,
    machine: Option<Machine>,
    by_name: BTreeMap<String, Measured>,
}

impl Results {
    /// Those of a file, which need not exist. What is no result, such as half a line, is passed over.
    pub fn open(path: PathBuf) -> Result<Self, JobError> {
        let mut out = Self { path, machine: None, by_name: BTreeMap::new() };
        out.read()?;
        Ok(out)
    }

    fn read(&mut self) -> Result<(), JobError> {
        let text = match fs::read_to_string(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(JobError::file("read", &self.path))?,
        };
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            match line {
                Line::Machine { machine } => self.machine = Some(machine),
                Line::Result(result) => _ = self.by_name.insert(result.cell.name.clone(), *result),
            }
        }
        Ok(())
    }

    /// Reads what others have added, adds to it, and replaces the file; nobody else does so meanwhile.
    fn change(&mut self, add: impl FnOnce(&mut Self)) -> Result<(), JobError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(JobError::file("create", folder))?;
        let lock_path = self.path.with_extension("lock");
        let lock = File::create(&lock_path).map_err(JobError::file("create", &lock_path))?;
        lock.lock().map_err(JobError::file("lock", &lock_path))?;
        self.read()?;
        add(self);
        write_whole(&self.path, self.text().as_bytes())
    }

    fn text(&self) -> String {
        let line = |line: &Line| serde_json::to_string(line).expect("plain data") + "\n";
        let machine = self.machine.iter().map(|m| Line::Machine { machine: m.clone() });
        let results = self.by_name.values().map(|m| Line::Result(Box::new(m.clone())));
        machine.chain(results).map(|l| line(&l)).collect()
    }

    /// Adds a result, in place of any of that name.
    pub fn add(&mut self, measured: Measured) -> Result<(), JobError> {
        self.change(|all| _ = all.by_name.insert(measured.cell.name.clone(), measured))
    }

    /// Notes on what machine results are made.
    pub fn note_machine(&mut self, machine: Machine) -> Result<(), JobError> {
        self.change(|all| all.machine = Some(machine))
    }

    /// On what machine they were made, where that was noted.
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Measured> {
        self.by_name.values()
    }

    /// The one of that name.
    pub fn named(&self, name: &str) -> Option<&Measured> {
        self.by_name.get(name)
    }

    /// The result of a cell, if there is one of just this cell.
    pub fn get(&self, cell: &Cell) -> Option<&Measured> {
        self.named(&cell.name).filter(|found| found.cell == *cell)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, Experiment};
    use super::*;

    fn measured(cell: Cell, round_trips: u64) -> Measured {
        let mut out = Measured::of(cell);
        out.summary.round_trips = round_trips;
        out
    }

    #[test]
    fn two_who_add_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reproduction/quick.jsonl");
        let cells = Experiment::FreeEnergy.cells(Budget::Quick);
        std::thread::scope(|scope| {
            for half in 0..2 {
                let (path, cells) = (path.clone(), &cells);
                scope.spawn(move || {
                    // Opened before the other has written.
                    let mut results = Results::open(path).unwrap();
                    for cell in cells.iter().skip(half).step_by(2) {
                        results.add(measured(cell.clone(), 1)).unwrap();
                    }
                });
            }
        });
        let results = Results::open(path.clone()).unwrap();
        assert!(cells.iter().all(|cell| results.get(cell).is_some()));
        let text = fs::read_to_string(&path).unwrap();
        let names: Vec<&str> = text.lines().map(|l| l.split('"').nth(5).unwrap()).collect();
        assert!(names.is_sorted() && names.len() == cells.len(), "{names:?}");
    }

    #[test]
    fn lines_are_results_of_just_their_cells() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quick.jsonl");
        let mut results = Results::open(path.clone()).unwrap();
        let cells = Experiment::FreeEnergy.cells(Budget::Quick);
        let done = cells.iter().find(|c| c.transport_of.is_some()).unwrap();
        results.add(measured(done.clone(), 1)).unwrap();
        results.add(measured(done.clone(), 2)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Results::open(path.clone()).unwrap()
        };
        assert_eq!(read(&whole).get(done).unwrap().summary.round_trips, 2);
        assert_eq!(read(&whole).text(), whole);
        let mut other = done.clone();
        other.config.run.iterations += 1;
        assert!(read(&whole).get(&other).is_none());
        let mut trained_otherwise = done.clone();
        trained_otherwise.transport_of.as_mut().unwrap().config.training.steps = Some(7);
        assert!(read(&whole).get(&trained_otherwise).is_none());
        assert!(read(&whole[..whole.len() / 2]).get(done).is_none(), "half a line is no result");
        assert!(read(&format!("<<<<<<<\n{whole}")).get(done).is_some());
    }
}
