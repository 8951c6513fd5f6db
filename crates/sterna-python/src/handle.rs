//! A run on a thread of its own, so that Python stays free: to show progress, to hear Ctrl-C, to pause and to look.

use crate::errors::{Raised, RunError, raise};
use crate::problem::{Problem, parse};
use crate::ranks::{Held, is_asked_to_stop};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sterna::exchange::Exchange;
use sterna_run::config::Until;
use sterna_run::progress::{Snapshot, StageClock};
use sterna_run::{Changes, Job, JobError, Observer, Progress, Summary};

/// Between two looks at signals, where Python waits.
const HEARS: Duration = Duration::from_millis(100);

/// What the run and its watchers tell each other.
#[derive(Default)]
struct State {
    snapshot: Option<Snapshot>,
    /// How it ended, once it has.
    outcome: Option<Result<(), JobError>>,
    stop: bool,
    paused: bool,
    /// Whether files are wanted, and how often they were written for that.
    wants_files: bool,
    writing: bool,
    written: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until something holds, or for so many seconds; Python hears signals on the way.
    fn wait_for(
        &self,
        py: Python<'_>,
        seconds: f64,
        holds: impl Fn(&State) -> bool + Sync,
    ) -> PyResult<bool> {
        let mut left = Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
        loop {
            let most = left.min(HEARS);
            let came = py.detach(|| {
                let waited = self.changed.wait_timeout_while(self.lock(), most, |state| !holds(state));
                !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
            });
            left -= most;
            py.check_signals()?;
            if came || left.is_zero() {
                return Ok(came);
            }
        }
    }
}

/// The run's side.
struct Watcher {
    shared: Arc<Shared>,
    clock: StageClock,
    exchange: Arc<dyn Exchange>,
}

impl Observer for Watcher {
    fn progress(&mut self, progress: &Progress) {
        let snapshot = self.clock.snapshot(progress);
        let mut state = self.shared.lock();
        state.snapshot = snapshot.or(state.snapshot.take());
        while state.paused && !state.stop && !state.wants_files {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn should_stop(&self) -> bool {
        let mut state = self.shared.lock();
        // What was wanted is written by now.
        if std::mem::take(&mut state.writing) {
            state.written += 1;
            self.shared.changed.notify_all();
        }
        state.stop || is_asked_to_stop()
    }

    fn note(&mut self, text: &str) {
        if self.exchange.rank() == 0 {
            eprintln!("note: {text}");
        }
    }

    fn wants_files(&mut self) -> bool {
        let mut state = self.shared.lock();
        let wanted = std::mem::take(&mut state.wants_files);
        state.writing |= wanted;
        wanted
    }
}

/// A run that has been started.
#[pyclass(frozen, module = "sterna._core")]
pub struct Handle {
    shared: Arc<Shared>,
    raised: Raised,
    #[pyo3(get)]
    folder: PathBuf,
}

#[pymethods]
impl Handle {
    /// Begins a run in a folder.
    #[staticmethod]
    fn start(
        problem: &Problem,
        text: &str,
        overrides: Vec<(String, String)>,
        folder: PathBuf,
    ) -> PyResult<Self> {
        let raised = problem.raised.clone();
        let config = parse(text, &overrides).map_err(|error| raise(&error, &raised))?;
        let held = Held::take()?;
        let (inner, to) = (problem.inner.clone().among(held.0.clone()), folder.clone());
        Self::spawn(raised, folder, held, move |watcher| Job::new(inner, config, to)?.run(watcher))
    }

    /// Goes on with the run of a folder; a target of this program must be given.
    #[staticmethod]
    #[pyo3(signature = (problem, folder, iterations=None, ess=None, log_z_error=None, minutes=None, evaluations=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn resume(
        problem: Option<&Problem>,
        folder: PathBuf,
        iterations: Option<u64>,
        ess: Option<f64>,
        log_z_error: Option<f64>,
        minutes: Option<f64>,
        evaluations: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let until = Until { ess, log_z_error, minutes, evaluations };
        let until = (!until.is_empty()).then_some(until);
        let changes = Changes { iterations, until, threads };
        let raised = problem.map(|problem| problem.raised.clone()).unwrap_or_default();
        let held = Held::take()?;
        let exchange = held.0.clone();
        let (inner, from) = (problem.map(|problem| problem.inner.clone()), folder.clone());
        Self::spawn(raised, folder, held, move |watcher| match inner {
            Some(inner) => Job::resume(inner.among(exchange), from, &changes)?.run(watcher),
            None => Job::resume_config(from, exchange, &changes)?.run(watcher),
        })
    }

    /// Waits for the end, for so many seconds at most; whether it has come.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        self.shared.wait_for(py, seconds, |state| state.outcome.is_some())
    }

    /// Whether it has ended.
    #[getter]
    fn is_over(&self) -> bool {
        self.shared.lock().outcome.is_some()
    }

    /// Raises what the run ended with, where that is an error.
    fn check(&self) -> PyResult<()> {
        match &self.shared.lock().outcome {
            None => Ok(()),
            // What was raised while values were made of the last draws.
            Some(Err(JobError::Stopped { .. } | JobError::Interrupted) | Ok(())) => {
                self.raised.take().map_or(Ok(()), Err)
            }
            Some(Err(error)) => Err(raise(error, &self.raised)),
        }
    }

    /// Asks it to stop after the present block, with a checkpoint.
    fn stop(&self) {
        self.shared.change(|state| state.stop = true);
    }

    /// Holds it after the present block, or lets it go on.
    fn pause(&self, paused: bool) {
        self.shared.change(|state| state.paused = paused);
    }

    /// Has all files written, and waits for that; whether they are.
    fn write_files(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let before = {
            let mut state = self.shared.lock();
            state.wants_files = true;
            state.written
        };
        self.shared.changed.notify_all();
        let there = |state: &State| state.written > before || state.outcome.is_some();
        self.shared.wait_for(py, seconds, there)
    }

    /// How far it has come: stage, done, total (0 if unknown), details.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(snapshot) = self.shared.lock().snapshot.clone() else { return Ok(None) };
        let out = PyDict::new(py);
        out.set_item("stage", &snapshot.stage)?;
        out.set_item("done", snapshot.done)?;
        out.set_item("total", snapshot.total)?;
        out.set_item("details", snapshot.details())?;
        out.set_item("round_trips", snapshot.round_trips)?;
        out.set_item("barrier", snapshot.barrier)?;
        Ok(Some(out))
    }
}

impl Handle {
    fn spawn(
        raised: Raised,
        folder: PathBuf,
        held: Held,
        work: impl FnOnce(&mut Watcher) -> Result<Summary, JobError> + Send + 'static,
    ) -> PyResult<Self> {
        // Of a run before.
        raised.take();
        let shared = Arc::new(Shared::default());
        let mut watcher =
            Watcher { shared: shared.clone(), clock: StageClock::default(), exchange: held.0.clone() };
        let body = move || {
            let end = catch_unwind(AssertUnwindSafe(|| work(&mut watcher)));
            let end = end.unwrap_or_else(|_| Err(JobError::Panicked("see above".into())));
            drop(held);
            watcher.shared.change(|state| state.outcome = Some(end.map(drop)));
        };
        let started = std::thread::Builder::new().name("sterna".into()).spawn(body);
        started.map_err(|error| RunError::new_err(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, raised, folder })
    }
}

/// Nobody can ask for the results of a run that nobody holds.
impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
