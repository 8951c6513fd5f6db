//! `sterna reproduce`: the paper's tables and figures, ours beside the printed ones.
//!
//! An experiment is a list of cells (runs) and a section of the page made from their results. Cells are run in
//! processes of their own and kept as small files, so that an interrupted command goes on where it was, figures
//! share the runs of tables, and the page can be made again from what is kept.

pub mod cell;
mod dimension;
mod free_energy;
mod many_well;
mod neural_samplers;
mod notes;
mod ornstein_uhlenbeck;
mod overview;
pub mod page;
pub mod paper;
pub mod plan;
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

    fn section(&self, budget: Budget, store: &Store) -> Section {
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
    /// Where the page goes; results lie in `reproduction/` there.
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
    let store = store(&request.out, budget);
    let asked: Vec<Cell> = request.experiments.iter().flat_map(|e| e.cells(budget)).collect();
    let is_wanted = |cell: &Cell| asked.contains(cell) && cell.name.contains(&request.only);
    let missing = store.missing(&all_cells(budget), is_wanted);
    watcher.begin(&missing);
    if !missing.is_empty() {
        store.note_machine(request.jobs)?;
    }
    store.fill(&request.program, missing, request.jobs, watcher)?;
    write_page(&request.out)?;
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

fn store(out: &Path, budget: Budget) -> Store {
    Store::new(out.join("reproduction").join(budget.name()))
}

/// Writes the page, its charts and their data, from results that lie in a folder: of the standard and the full
/// budget, or of the quick one where there is nothing else.
pub fn write_page(out: &Path) -> Result<(), JobError> {
    let mut budgets: Vec<Budget> = Budget::ALL.into_iter().filter(|&b| store(out, b).exists()).collect();
    if budgets.len() > 1 {
        budgets.retain(|b| *b != Budget::Quick);
    }
    let mut sections = Vec::new();
    for experiment in Experiment::ALL {
        for &budget in &budgets {
            let store = store(out, budget);
            let cells = experiment.cells(budget);
            // What needs no runs is the same for every budget.
            let is_first = budgets.first() == Some(&budget);
            if (cells.is_empty() && is_first) || cells.iter().any(|c| store.get(c).is_some()) {
                let section = experiment.section(budget, &store);
                section.write_files(store.folder())?;
                sections.push(section);
            }
        }
    }
    let mut introduction = notes::introduction();
    introduction.extend(budgets.iter().filter_map(|&b| store(out, b).machine(b.name())));
    page::write(out, &introduction, &sections)
}

/// A number of a JSON object, or NaN.
fn number_at(value: &serde_json::Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
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
                cell.config.settings(&problem).expect("a cell can be run");
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
    fn results_are_used_again_for_the_same_cell_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), Budget::Quick);
        let cells = Experiment::FreeEnergy.cells(Budget::Quick);
        let all = store.missing(&cells, |_| true);
        assert_eq!(all.len(), cells.len());
        // One that needs a transport brings the run that trains it.
        let some = store.missing(&cells, |c| c.name == "dw-cmcd-k5-n10-s1-independent");
        let names: Vec<&str> = some.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["dw-cmcd-k5-n10-s1", "dw-cmcd-k5-n10-s1-independent"]);

        let done = &some[1];
        let measured = Measured {
            cell: done.clone(),
            sterna: "0".into(),
            summary: serde_json::Value::Null,
            kept: cell::Kept::default(),
        };
        let path = store.folder().join("cells");
        std::fs::create_dir_all(&path).unwrap();
        let file = path.join(format!("{}.json", done.name));
        std::fs::write(&file, serde_json::to_vec(&measured).unwrap()).unwrap();
        assert!(store.get(done).is_some());
        let mut other = done.clone();
        other.config.run.iterations += 1;
        assert!(store.get(&other).is_none());
        let mut trained_otherwise = done.clone();
        trained_otherwise.transport_of.as_mut().unwrap().config.training.steps = Some(7);
        assert!(store.get(&trained_otherwise).is_none());
        std::fs::write(&file, b"{\"cell\": ").unwrap();
        assert!(store.get(done).is_none(), "half a file is no result");
    }
}
