//! Progress on stderr: a bar on a terminal, a line now and then when piped.

use crate::print;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sterna_run::progress::{ProgressFile, Snapshot, StageClock, State};
use sterna_run::{JobError, Observer, Progress, Summary};

pub struct Bar {
    bar: Option<ProgressBar>,
    style: Option<(String, bool)>,
    last_line: Instant,
    clock: StageClock,
    stop: Arc<AtomicBool>,
}

impl Bar {
    /// A bar that shows, and stops nothing.
    pub fn quiet() -> Self {
        Self {
            bar: std::io::stderr().is_terminal().then(|| ProgressBar::new(1)),
            style: None,
            last_line: Instant::now(),
            clock: StageClock::default(),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }

    /// A bar whose run stops on Ctrl-C.
    pub fn new() -> Self {
        let bar = Self::quiet();
        let flag = bar.stop.clone();
        // The second Ctrl-C stops at once.
        let handler = move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
            eprintln!("\nstopping after this block of iterations; Ctrl-C again stops at once");
        };
        // Without a handler Ctrl-C stops at once, which is no reason not to run.
        let _ = ctrlc::set_handler(handler);
        bar
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows a snapshot: any stage that knows its total as a bar, others as a turning sign.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let Some(bar) = &self.bar else { return self.line(snapshot) };
        let style = (snapshot.stage.clone(), snapshot.total > 0);
        if self.style.as_ref() != Some(&style) {
            let template = match style.1 {
                true => "{prefix:>10} {bar:16} {percent:>3}%  {wide_msg}",
                false => "{prefix:>10} {spinner}  {wide_msg}",
            };
            bar.set_style(ProgressStyle::with_template(template).expect("a fixed template"));
            bar.set_prefix(snapshot.stage.clone());
            self.style = Some(style);
        }
        bar.set_length(snapshot.total.max(1));
        bar.set_position(snapshot.done.min(snapshot.total));
        bar.set_message(snapshot.details());
        bar.tick();
    }

    fn line(&mut self, snapshot: &Snapshot) {
        if self.last_line.elapsed() < Duration::from_secs(5) {
            return;
        }
        self.last_line = Instant::now();
        let Snapshot { stage, done, total, .. } = snapshot;
        match total {
            0 => eprintln!("{stage}: {}", snapshot.details()),
            total => eprintln!("{stage}: {done} of {total}, {}", snapshot.details()),
        }
    }
}

impl Observer for Bar {
    fn progress(&mut self, progress: &Progress) {
        if let Some(snapshot) = self.clock.snapshot(progress) {
            self.show(&snapshot);
        }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// How a run ended, and what it found, where it sampled at all.
fn ended(how: &str, folder: &Path) {
    println!("{how}: {}", folder.join("report.html").display());
    if let Ok(summary) = Summary::read(folder) {
        println!("{}", print::one_line(&summary));
    }
}

/// Shows the progress of a run that another process makes, until it ends.
pub fn watch(folder: &Path) -> Result<(), JobError> {
    let mut bar = Bar::quiet();
    // The first line comes at once.
    bar.last_line = Instant::now().checked_sub(Duration::from_secs(10)).unwrap_or(bar.last_line);
    loop {
        let file = ProgressFile::read(folder)?;
        match &file.state {
            State::Running if file.is_orphaned() => {
                bar.finish();
                return Err(JobError::Watched(format!(
                    "nothing runs in {} any more: process {} ended without a word in {}",
                    folder.display(),
                    file.process,
                    file.snapshot.stage
                )));
            }
            State::Running => bar.show(&file.snapshot),
            State::Finished => {
                bar.finish();
                ended("finished", folder);
                return Ok(());
            }
            State::Stopped => {
                bar.finish();
                ended("stopped on request; what was sampled", folder);
                return Ok(());
            }
            State::Failed(message) => {
                bar.finish();
                return Err(JobError::Watched(format!("the run in {} failed: {message}", folder.display())));
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
