//! Progress on stderr: one line that changes on a terminal, a line now and then when piped.

use crate::ranks::Ranks;
use crate::{Voice, print, terminal};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sterna_run::progress::{ProgressFile, Snapshot, StageClock, State};
use sterna_run::{JobError, Observer, Progress, Summary};

pub struct Bar {
    bar: Option<ProgressBar>,
    /// Whether nothing is to be said.
    silent: bool,
    last_line: Instant,
    clock: StageClock,
    stop: Arc<AtomicBool>,
    ranks: Option<Ranks>,
}

impl Bar {
    /// A line that shows, and stops nothing.
    pub fn watching(silent: bool) -> Self {
        Self {
            bar: (!silent && std::io::stderr().is_terminal()).then(line),
            silent,
            last_line: Instant::now(),
            clock: StageClock::default(),
            stop: Arc::new(AtomicBool::new(false)),
            ranks: None,
        }
    }

    /// A line whose work stops on Ctrl-C.
    pub fn new(silent: bool) -> Self {
        Self::among(silent, &Ranks::alone(), Path::new(""))
    }

    /// The same for a run in a folder, on any of its ranks.
    pub fn among(silent: bool, ranks: &Ranks, folder: &Path) -> Self {
        let bar = Self { ranks: Some(ranks.clone()), ..Self::watching(silent) };
        ranks.begin_in(folder);
        let (flag, ranks) = (bar.stop.clone(), ranks.clone());
        // The second Ctrl-C stops at once.
        let handler = move || {
            if ranks.are_over() {
                return;
            }
            ranks.mind_the_fallen();
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
            if ranks.is_first() {
                eprintln!("\nstopping after this block of iterations; Ctrl-C again stops at once");
            }
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

    /// Shows a snapshot: on a terminal in one line that changes, else in a line now and then.
    pub fn show(&mut self, snapshot: &Snapshot) {
        self.say(|| snapshot.line());
    }

    /// Shows that so much is done of something.
    pub fn step(&mut self, what: &str, done: u64, total: u64) {
        self.say(|| match total {
            0 => format!("{what}: {done} iterations"),
            total => format!("{what} {:.0}%", 100.0 * done as f64 / total as f64),
        });
    }

    /// Whether it is for this rank to say something.
    fn speaks(&self) -> bool {
        !self.silent && self.ranks.as_ref().is_none_or(Ranks::is_first)
    }

    fn say(&mut self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            // Two for the sign before it.
            bar.set_message(fitting(text(), usize::from(terminal::width()).saturating_sub(2)));
            bar.tick();
        } else if self.speaks() && self.last_line.elapsed() >= Duration::from_secs(5) {
            self.last_line = Instant::now();
            eprintln!("{}", text());
        }
    }
}

/// Without the parts at the end that have no room: what matters most comes first.
fn fitting(mut text: String, columns: usize) -> String {
    while text.chars().count() > columns
        && let Some((before, _)) = text.rsplit_once(" · ")
    {
        text.truncate(before.len());
    }
    text
}

/// A line that is cut to the terminal's width and drawn at most ten times a second.
fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("a fixed template");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10)).with_style(style)
}

impl Observer for Bar {
    fn note(&mut self, text: &str) {
        if self.speaks() {
            eprintln!("note: {text}");
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(snapshot) = self.clock.snapshot(progress) {
            self.show(&snapshot);
        }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.ranks.as_ref().is_some_and(Ranks::is_asked_to_stop)
    }
}

/// How a run ended, and what it found, where it sampled at all.
fn ended(how: &str, folder: &Path, voice: Voice) {
    if voice.json {
        println!("{}", json!({"ended": how, "report": folder.join("report.html")}));
    } else if !voice.quiet {
        println!("{how}: {}", folder.join("report.html").display());
        if let Ok(summary) = Summary::read(folder) {
            println!("{}", print::one_line(&summary));
        }
    }
}

/// Shows the progress of a run that another process makes, until it ends; as JSON, a line for each change.
pub fn watch(folder: &Path, voice: Voice) -> Result<(), JobError> {
    let mut bar = Bar::watching(voice.quiet || voice.json);
    // The first line comes at once.
    bar.last_line = Instant::now().checked_sub(Duration::from_secs(10)).unwrap_or(bar.last_line);
    let mut last = None;
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
            State::Running if voice.json && last.as_ref() != Some(&file.snapshot) => {
                println!("{}", json!(file.snapshot));
                last = Some(file.snapshot);
            }
            State::Running => bar.show(&file.snapshot),
            State::Finished => {
                bar.finish();
                ended("finished", folder, voice);
                return Ok(());
            }
            State::Stopped => {
                bar.finish();
                ended("stopped on request; what was sampled", folder, voice);
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

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn what_has_no_room_is_left_out_whole() {
        let line = "5/5 sampling 55% · 0:02 left in all · 1778 round trips";
        assert_eq!(fitting(line.into(), 60), line);
        assert_eq!(fitting(line.into(), 40), "5/5 sampling 55% · 0:02 left in all");
        assert_eq!(fitting(line.into(), 5), "5/5 sampling 55%");
    }
}
