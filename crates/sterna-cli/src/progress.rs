//! Progress on stderr: a bar on a terminal, a line now and then when piped.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sterna::run::Stage;
use sterna_run::{Observer, Progress};

pub struct Bar {
    bar: Option<ProgressBar>,
    stage: Option<String>,
    last_line: Instant,
    stage_began: Instant,
    stop: Arc<AtomicBool>,
}

impl Bar {
    pub fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        // The second Ctrl-C stops at once.
        let handler = move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(1);
            }
            eprintln!("\nstopping after this block of iterations; Ctrl-C again stops at once");
        };
        // Without a handler Ctrl-C stops at once, which is no reason not to run.
        let _ = ctrlc::set_handler(handler);
        let now = Instant::now();
        Self {
            bar: std::io::stderr().is_terminal().then(|| ProgressBar::new(1)),
            stage: None,
            last_line: now,
            stage_began: now,
            stop,
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn enter(&mut self, name: &str, total: u64) {
        self.stage_began = Instant::now();
        self.stage = Some(name.to_string());
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.set_length(total);
            let style = ProgressStyle::with_template(
                "{prefix:>12} {bar:32} {percent:>3}%  {per_sec}  {eta} left  {msg}",
            );
            bar.set_style(style.expect("a fixed template"));
            bar.set_prefix(name.to_string());
        }
    }
}

impl Observer for Bar {
    fn progress(&mut self, progress: &Progress) {
        // Tuning is one bar over all its rounds.
        let (name, done, total) = match progress.stage {
            Stage::Tuning(round) | Stage::Retuning(round) => (
                if matches!(progress.stage, Stage::Tuning(_)) { "tuning" } else { "retuning" },
                round as u64 * progress.total + progress.done,
                progress.rounds as u64 * progress.total,
            ),
            Stage::Collecting => ("collecting", progress.done, progress.total),
            Stage::Fitting => ("training", progress.done, progress.total),
            Stage::BurnIn => ("burn-in", progress.done, progress.total),
            Stage::Sampling => ("sampling", progress.done, progress.total),
            Stage::Finished => return,
        };
        if self.stage.as_deref() != Some(name) {
            self.enter(name, total);
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(format!("{} round trips", progress.round_trips));
            }
            None if self.last_line.elapsed() > Duration::from_secs(5) => {
                self.last_line = Instant::now();
                let left =
                    self.stage_began.elapsed().as_secs_f64() * (total - done) as f64 / done.max(1) as f64;
                eprintln!(
                    "{name}: {done} of {total} iterations, {} round trips, about {left:.0} s left",
                    progress.round_trips
                );
            }
            None => {}
        }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
