//! The zoo: targets of which the truth is known, run as a user would run them. How often is a wrong result called sound, and
//! how often a right one unsound?
//!
//! Densities and their truth are those of [`sterna_testkit::zoo`]; here they are joined by what a library in C may do wrong, by
//! molecules that fall apart, by posteriors with exchangeable components and by settings that once fooled the program.

mod cases;
mod judge;
mod keep;
mod liars;
pub mod page;
mod results;

pub use cases::{Case, Class, Source, cases};
pub use judge::{Outcome, Told};
pub use results::Results;

use crate::config::Config;
use crate::error::JobError;
use crate::job;
use crate::problem::Problem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Evaluations after which a cell ends, whatever it has reached.
pub const EVALUATIONS: u64 = 400_000;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Seeds of each case: 1, 2, …
    pub seeds: u64,
    /// Cases whose names hold this word.
    pub only: String,
    /// Cells at a time.
    pub jobs: usize,
    /// Where `trust.md` and `trust/zoo.jsonl` are written.
    pub out: PathBuf,
    /// Whether what is there is run again.
    pub again: bool,
    /// Where summaries, draws and weights of each cell are left, if anywhere.
    pub keep: Option<PathBuf>,
}

/// Is told of each cell that has ended: how many have, of how many.
pub trait Keeper: Sync {
    /// One more.
    fn ended(&self, outcome: &Outcome, done: usize, all: usize);
}

/// Tells nobody.
impl Keeper for () {
    fn ended(&self, _outcome: &Outcome, _done: usize, _all: usize) {}
}

/// Runs what is not there yet, and writes the page.
pub fn run(request: &Request, keeper: &dyn Keeper) -> Result<Results, JobError> {
    let mut results = Results::open(request.out.join("trust/zoo.jsonl"))?;
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(&request.only)).collect();
    if cases.is_empty() {
        return Err(JobError::Config(format!("no case of the zoo has \"{}\" in its name", request.only)));
    }
    let cells: Vec<(&Case, u64)> = cases
        .iter()
        .flat_map(|case| (1..=request.seeds).map(move |seed| (case, seed)))
        .filter(|(case, seed)| request.again || !results.has(case, *seed))
        .collect();
    let workplace = Workplace::new()?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let kept = Mutex::new(&mut results);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..request.jobs.clamp(1, cells.len().max(1)) {
            scope.spawn(|| {
                while let Some((case, seed)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = measure(case, *seed, &workplace.0, request.keep.as_deref());
                    keeper.ended(&outcome, done.fetch_add(1, Ordering::Relaxed) + 1, cells.len());
                    let kept = kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).add(outcome);
                    if let Err(error) = kept {
                        *failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                        return;
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(error);
    }
    page::write(&results, &request.out)?;
    Ok(results)
}

/// One cell: a case with a seed, as a user would run it, and what came of it.
pub fn measure(case: &Case, seed: u64, workplace: &Path, kept: Option<&Path>) -> Outcome {
    let sampled = catch_unwind(AssertUnwindSafe(|| sampled(case, seed, workplace, kept)));
    let told = match sampled {
        Ok(Ok(told)) => told,
        Ok(Err(JobError::Panicked(why))) => Told::panicked(why),
        // Names of files of this very sitting say nothing to anybody.
        Ok(Err(error)) => Told::refused(error.to_string().replace(&format!("{}/", workplace.display()), "")),
        Err(_) => Told::panicked("outside its run".into()),
    };
    Outcome::of(case, seed, told)
}

fn sampled(case: &Case, seed: u64, workplace: &Path, kept: Option<&Path>) -> Result<Told, JobError> {
    let (problem, config) = prepared(case, seed, workplace)?;
    let (run, summary) = job::sample_problem(problem, &config, &mut ())?;
    if let Some(folder) = kept {
        keep::keep(&folder.join(format!("{}-{seed}", case.name)), &run, &summary)?;
    }
    Ok(Told::of(case, &run, &summary))
}

/// The problem and the config of a cell.
fn prepared(case: &Case, seed: u64, workplace: &Path) -> Result<(Problem, Config), JobError> {
    let (seed, most) = (seed.to_string(), EVALUATIONS.to_string());
    let made = case.source.overrides(workplace, &format!("{}-{seed}", case.name))?;
    let mut overrides: Vec<(&str, &str)> = vec![("seed", &seed), ("threads", "1")];
    if !case.config.contains("iterations") {
        overrides.push(("run.until.evaluations", &most));
    }
    overrides.extend(made.iter().map(|(key, value)| (*key, value.as_str())));
    let config = Config::parse(case.config, &overrides)?;
    let problem = match &case.source {
        Source::Density(density) => Problem::shared(density.clone()).called(case.name),
        _ => config.problem()?,
    };
    Ok((problem, config))
}

/// A folder for what must be files, which goes with the work.
struct Workplace(PathBuf);

impl Workplace {
    fn new() -> Result<Self, JobError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sterna-zoo-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(JobError::file("create", &folder))?;
        Ok(Self(folder))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
