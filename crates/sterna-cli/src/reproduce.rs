//! `sterna reproduce`: what is run, how far it is, what came out.

use crate::progress::Bar;
use crate::{ReproduceArgs, Voice, failed, print};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sterna_run::reproduce::cell::{Cell, Measured};
use sterna_run::reproduce::{Budget, Experiment, Outcome, Request, Watcher, run, store};
use sterna_run::{JobError, Observer};

/// Reproduces; exit code 1 if something that must come out did not.
pub fn reproduce(arguments: &ReproduceArgs, voice: Voice) -> ExitCode {
    match try_reproduce(arguments, voice) {
        Ok(outcome) => {
            match (voice.json, voice.quiet) {
                (true, _) => print::reproduced_json(&outcome),
                (false, true) => {}
                (false, false) => print::reproduced(&outcome),
            }
            let failed = outcome.sections.iter().flat_map(|s| &s.checks).any(|c| c.must && !c.passed);
            ExitCode::from(u8::from(failed))
        }
        Err(error) => failed(&error),
    }
}

fn try_reproduce(arguments: &ReproduceArgs, voice: Voice) -> Result<Outcome, JobError> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let request = Request {
        experiments: Experiment::parse(&arguments.name)?,
        budget: Budget::parse(&arguments.budget)?,
        out: arguments.out.clone(),
        jobs: arguments.jobs.unwrap_or(cores).max(1),
        only: arguments.only.clone(),
        program: std::env::current_exe().map_err(JobError::file("find", Path::new("sterna")))?,
    };
    let mut lines = Lines {
        bar: Bar::new(voice.quiet),
        quiet: voice.quiet,
        begin: Instant::now(),
        cells: Vec::new(),
        ended: Vec::new(),
    };
    run(&request, &mut lines)
}

/// A line for each run that ends, with an estimate of what remains.
struct Lines {
    bar: Bar,
    quiet: bool,
    begin: Instant,
    cells: Vec<Cell>,
    ended: Vec<String>,
}

impl Watcher for Lines {
    fn begin(&mut self, cells: &[Cell]) {
        self.cells = cells.to_vec();
        self.begin = Instant::now();
    }

    fn ended(&mut self, measured: &Measured, time: Duration) {
        self.ended.push(measured.cell.name.clone());
        if self.quiet {
            return;
        }
        let (ended, open): (Vec<&Cell>, Vec<&Cell>) =
            self.cells.iter().partition(|cell| self.ended.contains(&cell.name));
        let cost = |cells: &[&Cell]| cells.iter().map(|cell| cell.cost()).sum::<f64>();
        let left = self.begin.elapsed().as_secs_f64() * cost(&open) / cost(&ended);
        eprintln!(
            "{} of {}  {}: {} round trips in {}; about {} left",
            ended.len(),
            self.cells.len(),
            measured.cell.name,
            measured.summary.round_trips,
            print::minutes(time.as_secs_f64()),
            print::minutes(left.max(0.0))
        );
    }

    fn should_stop(&self) -> bool {
        self.bar.should_stop()
    }
}

/// One cell, in a process of its own.
pub fn measure_cell(folder: &Path, transport: Option<&Path>) -> Result<(), JobError> {
    let flag = Arc::new(AtomicBool::new(false));
    let heard = flag.clone();
    // Without a handler a signal stops at once, which is no reason not to run.
    let _ = ctrlc::set_handler(move || heard.store(true, Ordering::SeqCst));
    store::measure_cell(folder, transport, &mut Stop(flag))
}

/// Stops when told to, and shows nothing.
struct Stop(Arc<AtomicBool>);

impl Observer for Stop {
    fn progress(&mut self, _progress: &sterna_run::Progress) {}

    fn should_stop(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
