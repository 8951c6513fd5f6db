//! `sterna reproduce`: the paper's tables and figures, ours beside the printed ones.
//!
//! An experiment is a list of cells (runs) and a section of the page made from their results. Cells are run in
//! processes of their own and kept as lines of one file, so that an interrupted command goes on where it was, figures
//! share the runs of tables, and the page can be made again from what is kept.

pub mod cell;
mod dimension;
pub mod essence;
mod free_energy;
pub mod kept;
mod many_well;
mod neural_samplers;
mod notes;
mod ornstein_uhlenbeck;
mod overview;
pub mod page;
pub mod paper;
pub mod plan;
pub mod results;
pub mod store;
pub mod tables;

use crate::config::known;
use crate::error::JobError;
use cell::{Cell, Measured};
use page::Section;
use plan::Problem;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Store;

/// How much is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// A minute or so: whether the whole machinery still works.
    Quick,
    /// What the docs show: on two cores about 45 minutes for each experiment, given the runs it shares with others.
    Standard,
    /// Networks of the paper's sizes, trained for fewer steps than its 200,000: for a GPU.
    Full,
}

impl Budget {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Full];

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    /// The budget of this name.
    pub fn parse(name: &str) -> Result<Self, JobError> {
        known("--budget", name, &Self::ALL.map(|b| b.name()))?;
        Ok(Self::ALL.into_iter().find(|b| b.name() == name).expect("a known name"))
    }
}

/// A table or figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Round trips of one target.
    Table(Problem),
    /// Draws and round trips of few chains.
    Overview,
    /// Round-trip rates against the dimension.
    Dimension,
    /// Boxes of estimates of log Z.
    FreeEnergy,
    /// Distances in DW-4 by samplers with and without swaps.
    NeuralSamplers,
    /// Draws of ManyWell-32.
    ManyWell,
    /// Euler's steps of the Ornstein–Uhlenbeck process.
    OrnsteinUhlenbeck,
}

impl Experiment {
    /// In the paper's order.
    pub const ALL: [Self; 10] = [
        Self::Overview,
        Self::Table(Problem::Gmm),
        Self::Dimension,
        Self::FreeEnergy,
        Self::NeuralSamplers,
        Self::Table(Problem::Alanine),
        Self::Table(Problem::ManyWell),
        Self::Table(Problem::Dw4),
        Self::ManyWell,
        Self::OrnsteinUhlenbeck,
    ];

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Table(Problem::Gmm) => "table-gmm",
            Self::Table(Problem::ManyWell) => "table-mw",
            Self::Table(Problem::Dw4) => "table-dw",
            Self::Table(Problem::Alanine) => "table-alanine",
            Self::Overview => "fig-overview",
            Self::Dimension => "fig-dimension",
            Self::FreeEnergy => "fig-free-energy",
            Self::NeuralSamplers => "fig-neural-samplers",
            Self::ManyWell => "fig-many-well",
            Self::OrnsteinUhlenbeck => "fig-ou",
        }
    }

    /// Those of this name; "all" is a name too.
    pub fn parse(name: &str) -> Result<Vec<Self>, JobError> {
        if name == "all" {
            return Ok(Self::ALL.to_vec());
        }
        let mut names: Vec<&str> = Self::ALL.iter().map(|e| e.name()).collect();
        names.push("all");
        known("reproduce", name, &names)?;
        Ok(Self::ALL.into_iter().filter(|e| e.name() == name).collect())
    }

    /// The runs it is made of, some of which others are made of too.
    pub fn cells(&self, budget: Budget) -> Vec<Cell> {
        match self {
            Self::Table(problem) => problem.cells(budget),
            Self::Overview => overview::cells(budget),
            Self::Dimension => dimension::cells(budget),
            Self::FreeEnergy => free_energy::cells(budget),
            Self::NeuralSamplers => neural_samplers::cells(budget),
            Self::ManyWell => many_well::cells(budget),
            Self::OrnsteinUhlenbeck => vec![],
        }
    }

    /// Its part of the page, from the results that are there.
    pub fn section(&self, budget: Budget, store: &Store) -> Section {
        match self {
            Self::Table(problem) => tables::section(*problem, budget, store),
            Self::Overview => overview::section(budget, store),
            Self::Dimension => dimension::section(budget, store),
            Self::FreeEnergy => free_energy::section(budget, store),
            Self::NeuralSamplers => neural_samplers::section(budget, store),
            Self::ManyWell => many_well::section(budget, store),
            Self::OrnsteinUhlenbeck => ornstein_uhlenbeck::section(budget),
        }
    }
}

/// What `sterna reproduce` was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to reproduce.
    pub experiments: Vec<Experiment>,
    /// How much to spend.
    pub budget: Budget,
    /// Where the page goes; results lie in `reproduction/` there, a file for each budget.
    pub out: PathBuf,
    /// Runs at a time.
    pub jobs: usize,
    /// Only runs whose names hold this word.
    pub only: String,
    /// The program that runs a cell.
    pub program: PathBuf,
}

/// What a request has come to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The experiments' parts of the page.
    pub sections: Vec<Section>,
    /// The page.
    pub page: PathBuf,
}

/// Hears how far an experiment is, and may stop it.
pub trait Watcher {
    /// What is to be run.
    fn begin(&mut self, cells: &[Cell]);
    /// A run ended after this time.
    fn ended(&mut self, measured: &Measured, time: Duration);
    /// Whether to stop.
    fn should_stop(&self) -> bool;
}

/// Runs what lacks, and writes the page from all that is there.
pub fn run(request: &Request, watcher: &mut dyn Watcher) -> Result<Outcome, JobError> {
    let budget = request.budget;
    let mut store = store(&request.out, budget)?;
    let asked: Vec<Cell> = request.experiments.iter().flat_map(|e| e.cells(budget)).collect();
    let is_wanted = |cell: &Cell| asked.contains(cell) && cell.name.contains(&request.only);
    let missing = store.missing(&all_cells(budget), is_wanted);
    watcher.begin(&missing);
    if !missing.is_empty() {
        store.note_machine(request.jobs)?;
    }
    store.fill(&request.program, missing, request.jobs, watcher)?;
    write_page(&request.out, budget)?;
    let sections = request.experiments.iter().map(|e| e.section(budget, &store)).collect();
    Ok(Outcome { sections, page: request.out.join("reproduction.html") })
}

/// The runs of all experiments, each once: a run that one asks for may need a transport of another's.
fn all_cells(budget: Budget) -> Vec<Cell> {
    let mut out: Vec<Cell> = Vec::new();
    for cell in Experiment::ALL.iter().flat_map(|e| e.cells(budget)) {
        if !out.iter().any(|c| c.name == cell.name) {
            out.push(cell);
        }
    }
    out
}

fn store(out: &Path, budget: Budget) -> Result<Store, JobError> {
    Store::open(out.join("reproduction").join(budget.name()))
}

/// Writes the page, its charts and their data, from results that lie in a folder: of the standard and the full
/// budget, or else of the quick one; where there are none, what `asked` needs no runs for.
pub fn write_page(out: &Path, asked: Budget) -> Result<(), JobError> {
    let mut stores = Vec::new();
    for budget in Budget::ALL {
        stores.push((budget, store(out, budget)?));
    }
    let is_empty = stores.iter().all(|(_, store)| !store.has_results());
    stores.retain(|(budget, store)| store.has_results() || (is_empty && *budget == asked));
    if stores.len() > 1 {
        stores.retain(|(budget, _)| *budget != Budget::Quick);
    }
    let mut sections = Vec::new();
    for experiment in Experiment::ALL {
        for (index, (budget, store)) in stores.iter().enumerate() {
            let cells = experiment.cells(*budget);
            // What needs no runs is the same for every budget.
            if (cells.is_empty() && index == 0) || cells.iter().any(|c| store.get(c).is_some()) {
                sections.push(experiment.section(*budget, store));
            }
        }
    }
    let mut introduction = notes::introduction();
    introduction.extend(stores.iter().filter_map(|(budget, store)| store.machine(budget.name())));
    page::write(out, &introduction, &sections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerators;

    #[test]
    fn a_name_means_one_cell_whoever_asks_for_it() {
        for budget in Budget::ALL {
            let all = all_cells(budget);
            let named = |name: &str| all.iter().find(|c| c.name == name);
            for cell in Experiment::ALL.iter().flat_map(|e| e.cells(budget)) {
                assert!(named(&cell.name) == Some(&cell), "{} is two things", cell.name);
                let problem = cell.config.problem().expect("a target of the paper");
                let mut config = cell.config.clone();
                config.run.memory_gib = cell::MEMORY_GIB;
                config.settings(&problem).expect("a cell can be run");
                if cell.transport_of.is_none() {
                    accelerators::plan(&problem, &cell.config).map(drop).expect("a cell can be run");
                }
                let Some(source) = &cell.transport_of else { continue };
                let maker = named(&source.cell).expect("made by some experiment");
                assert!(maker.config.accelerator.trains() && maker.as_source() == *source, "{}", cell.name);
            }
        }
    }

    #[test]
    fn what_lacks_brings_the_run_that_trains_its_transport() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(folder.path(), Budget::Quick).unwrap();
        let cells = Experiment::FreeEnergy.cells(Budget::Quick);
        assert_eq!(store.missing(&cells, |_| true).len(), cells.len());
        let wanted = |c: &Cell| c.name == "dw-cmcd-k5-n10-s1-independent";
        let some = store.missing(&cells, wanted);
        let names: Vec<&str> = some.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["dw-cmcd-k5-n10-s1", "dw-cmcd-k5-n10-s1-independent"]);
        let mut done = Measured::of(some[1].clone());
        store.add(done.clone()).unwrap();
        assert_eq!(store.missing(&cells, wanted).len(), 2, "it has not kept what it was to keep");
        done.kept.ladders = vec![[0.0, 0.0]];
        store.add(done).unwrap();
        assert!(store.missing(&cells, wanted).is_empty());
    }
}
