//! How far a run has come: for the bar, for piped lines, and for watchers in another shell (`progress.json`).

mod goals;

pub use goals::{Goal, Goals};

use crate::error::JobError;
use crate::files::write_in_passing;
use crate::job::{Observer, Progress};
use crate::platform::{is_gone, machine};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use sterna::run::{Run, Stage};

const FILE: &str = "progress.json";

impl Progress {
    /// Where a run stands, on its way to these goals.
    pub fn of(run: &Run, goals: Goals) -> Self {
        let (stage, done, total) = run.progress();
        let rates = run.rejection_rates_so_far();
        let known = rates.iter().all(|rate| rate.is_finite());
        let worst = rates.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        Self {
            stage,
            rounds: run.settings().fit.is_none().then_some(run.settings().rounds),
            done,
            total,
            round_trips: run.round_trips(),
            barrier: known.then(|| rates.iter().sum()),
            worst_pair: worst.filter(|_| known),
            goals,
            number: run.stage_number(),
            ahead: run.ahead(),
            loss: run.loss(),
        }
    }
}

/// One line's worth of progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What is being done.
    pub stage: String,
    /// Iterations or steps done in the stage.
    pub done: u64,
    /// How many it has; 0 if that is not known.
    pub total: u64,
    /// Done per second since the stage began.
    pub rate: f64,
    /// Round trips so far.
    pub round_trips: u64,
    /// Λ in what the stage has seen.
    pub barrier: Option<f64>,
    /// The pair that rejects most, from 0, and its rejection rate.
    pub worst_pair: Option<(usize, f64)>,
    /// How far the goals of sampling are.
    #[serde(default)]
    pub goals: Goals,
    /// Which stage this is, from 1, and how many there are.
    #[serde(default)]
    pub number: (usize, usize),
    /// Round trips since the stage began.
    #[serde(default)]
    pub stage_round_trips: u64,
    /// The tuning round under way, from 1, where nobody knows how many there will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<usize>,
    /// The loss of a training under way.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Seconds until the end of the run, where they can be known: of all stages, at the rates that were seen.
    #[serde(default)]
    pub all_left_s: Option<f64>,
}

impl Snapshot {
    /// Seconds until the end of the stage, at the present rate, or until all minutes are over.
    pub fn left_s(&self) -> Option<f64> {
        let left = self.total.saturating_sub(self.done) as f64 / self.rate;
        let at_this_rate = (self.total > 0 && left.is_finite()).then_some(left);
        [at_this_rate, self.goals.seconds_left()].into_iter().flatten().reduce(f64::min)
    }

    /// The stage with its number and its share, and all that is known of it: `3/6 training 52% · loss 0.61 · 1:40 left in all`.
    pub fn line(&self) -> String {
        let (number, all) = self.number;
        let number = if all > 0 { format!("{number}/{all} ") } else { String::new() };
        let share = match self.total {
            0 => String::new(),
            total => format!(" {:.0}%", 100.0 * self.done.min(total) as f64 / total as f64),
        };
        format!("{number}{}{share} · {}", self.stage, self.details())
    }

    /// Round, loss, goals, time left, round trips of the stage, Λ, rate and the worst pair, as far as they are known; what matters
    /// most comes first, since a terminal may be narrow.
    pub fn details(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.round.map(|round| format!("round {round}")));
        parts.extend(self.loss.map(|loss| format!("loss {loss:.3}")));
        // The time comes before what else is wanted.
        let mut goals = self.goals.phrases().into_iter();
        parts.extend(goals.next());
        match (self.all_left_s, self.left_s()) {
            (Some(all), _) => parts.push(format!("{} left in all", clock(all))),
            (None, Some(left)) => parts.push(format!("{} left of this", clock(left))),
            (None, None) => {}
        }
        parts.extend(goals);
        if self.loss.is_none() {
            let s = if self.stage_round_trips == 1 { "" } else { "s" };
            parts.push(format!("{} round trip{s}", self.stage_round_trips));
            parts.extend(self.barrier.map(|barrier| format!("Λ {barrier:.2}")));
        }
        if self.rate > 0.0 {
            parts.push(format!("{:.*}/s", if self.rate < 10.0 { 1 } else { 0 }, self.rate));
        }
        if let Some((pair, rate)) = self.worst_pair {
            parts.push(format!("worst pair {}–{}: {:.0}%", pair, pair + 1, 100.0 * rate));
        }
        parts.join(" · ")
    }
}

/// Minutes and seconds, with hours where there are some.
fn clock(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Makes snapshots: knows when each stage began.
#[derive(Debug, Default)]
pub struct StageClock {
    began: Option<Began>,
    /// Iterations per second in the last stage that made some.
    pace: Option<f64>,
    /// Seconds that the last training took.
    training_s: Option<f64>,
}

/// The beginning of a stage: its name, when it was, and what was done by then.
#[derive(Clone, Copy, Debug)]
struct Began {
    stage: &'static str,
    time: Instant,
    done: u64,
    round_trips: u64,
}

impl StageClock {
    /// The snapshot of some progress; none once all is done.
    pub fn snapshot(&mut self, progress: &Progress) -> Option<Snapshot> {
        // Tuning is one stage over all its rounds. Nobody knows how many there will be where they double.
        let (stage, done, total) = match progress.stage {
            Stage::Climbing => ("climbing", progress.done, progress.total),
            Stage::Tuning(round) | Stage::Retuning(round) => (
                if matches!(progress.stage, Stage::Tuning(_)) { "tuning" } else { "retuning" },
                match progress.rounds {
                    Some(_) => round as u64 * progress.total,
                    None => progress.total - (progress.total >> round),
                } + progress.done,
                progress.rounds.map_or(0, |rounds| rounds as u64 * progress.total),
            ),
            Stage::Collecting => ("collecting", progress.done, progress.total),
            Stage::Fitting => ("training", progress.done, progress.total),
            Stage::BurnIn => ("burn-in", progress.done, progress.total),
            // With goals, to where they are likely reached; before anyone has looked, nobody knows.
            Stage::Sampling if progress.goals == Goals::default() => {
                ("sampling", progress.done, progress.total)
            }
            Stage::Sampling => ("sampling", progress.done, progress.goals.expected.unwrap_or(0)),
            Stage::Finished => return None,
        };
        let began = self.began_with(stage, done, progress.round_trips);
        let seconds = began.time.elapsed().as_secs_f64();
        let rate = if seconds > 0.0 { (done - began.done) as f64 / seconds } else { 0.0 };
        if rate > 0.0 && progress.stage != Stage::Fitting && progress.stage != Stage::Climbing {
            self.pace = Some(rate);
        }
        let mut snapshot = Snapshot {
            stage: stage.into(),
            done,
            total,
            rate,
            round_trips: progress.round_trips,
            barrier: progress.barrier,
            worst_pair: progress.worst_pair,
            goals: progress.goals,
            number: progress.number,
            stage_round_trips: progress.round_trips.saturating_sub(began.round_trips),
            round: match progress.stage {
                Stage::Tuning(round) | Stage::Retuning(round) if progress.rounds.is_none() => Some(round + 1),
                _ => None,
            },
            loss: progress.loss,
            all_left_s: None,
        };
        snapshot.all_left_s = self.all_left_s(&snapshot, progress.ahead);
        Some(snapshot)
    }

    /// Seconds until the end of the run: those of this stage, and those of all that follow, at the rates that were seen.
    fn all_left_s(&self, now: &Snapshot, (iterations, fits): (Option<u64>, usize)) -> Option<f64> {
        let iterations = match iterations? {
            0 => 0.0,
            some => some as f64 / self.pace?,
        };
        let training = match fits {
            0 => 0.0,
            some => some as f64 * self.training_s?,
        };
        Some(now.left_s()? + iterations + training)
    }

    /// A stage entered again, or a run taken up in its midst, has its own beginning.
    fn began_with(&mut self, stage: &'static str, done: u64, round_trips: u64) -> Began {
        let time = Instant::now();
        let began = match self.began {
            Some(began) if began.stage == stage && began.done <= done => began,
            before => {
                if let Some(training) = before.filter(|began| began.stage == "training") {
                    self.training_s = Some(training.time.elapsed().as_secs_f64());
                }
                Began { stage, time, done, round_trips }
            }
        };
        self.began = Some(began);
        began
    }
}

/// How a run ended, if it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It goes on.
    Running,
    /// To its end.
    Finished,
    /// On request, before its end.
    Stopped,
    /// By an error.
    Failed(String),
}

/// `progress.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressFile {
    /// Number of the process, on its machine.
    pub process: u32,
    /// Name of that machine.
    pub machine: String,
    /// When this was written, in seconds since 1970.
    pub time: f64,
    /// Whether the run goes on.
    pub state: State,
    /// How far it has come.
    pub snapshot: Snapshot,
}

impl ProgressFile {
    /// Reads the file of a run folder.
    pub fn read(folder: &Path) -> Result<Self, JobError> {
        let path = folder.join(FILE);
        let nothing = |why: String| {
            let folder = folder.display();
            JobError::Config(format!("nothing runs in {folder}: {why}"))
        };
        if !folder.exists() {
            return Err(nothing("there is no such folder".into()));
        }
        let text = fs::read_to_string(&path).map_err(|_| nothing(format!("it has no {FILE}")))?;
        serde_json::from_str(&text).map_err(|e| nothing(format!("{FILE} cannot be read: {e}")))
    }

    /// Whether the process that wrote this is known to be gone.
    pub fn is_orphaned(&self) -> bool {
        self.state == State::Running && self.machine == machine() && is_gone(self.process)
    }

    /// Seconds since this was written.
    pub fn age_s(&self) -> f64 {
        now() - self.time
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// Passes progress on to an observer and, about once a second, to `progress.json`.
pub struct Watched<'a> {
    inner: &'a mut dyn Observer,
    path: PathBuf,
    clock: StageClock,
    written: Instant,
    last: Snapshot,
}

impl<'a> Watched<'a> {
    /// Writes nothing yet: a run may still be refused.
    pub fn new(folder: &Path, inner: &'a mut dyn Observer) -> Self {
        let last = Snapshot { stage: "starting".into(), ..Snapshot::default() };
        Self { inner, path: folder.join(FILE), clock: StageClock::default(), written: Instant::now(), last }
    }

    /// Says that the run is under way.
    pub fn begin(&self) {
        self.write(State::Running);
    }

    /// Says how the run ended.
    pub fn end(&self, state: State) {
        self.write(state);
    }

    /// A disk that is full is no reason to stop sampling: errors are passed over, and a reader finds the
    /// file before or the file after, never half of one.
    fn write(&self, state: State) {
        let file = ProgressFile {
            process: std::process::id(),
            machine: machine(),
            time: now(),
            state,
            snapshot: self.last.clone(),
        };
        let text = serde_json::to_string(&file).expect("plain data");
        let _ = write_in_passing(&self.path, text.as_bytes());
    }
}

impl Observer for Watched<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
        if let Some(snapshot) = self.clock.snapshot(progress) {
            let entered = snapshot.stage != self.last.stage;
            self.last = snapshot;
            if entered || self.written.elapsed() > Duration::from_secs(1) {
                self.written = Instant::now();
                self.write(State::Running);
            }
        }
    }

    fn should_stop(&self) -> bool {
        self.inner.should_stop()
    }

    fn wants_files(&mut self) -> bool {
        self.inner.wants_files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(stage: Stage, done: u64) -> Progress {
        Progress {
            stage,
            rounds: Some(4),
            done,
            total: 100,
            round_trips: 3,
            barrier: Some(1.5),
            worst_pair: Some((2, 0.61)),
            goals: Goals::default(),
            number: (2, 4),
            ahead: (Some(0), 0),
            loss: None,
        }
    }

    #[test]
    fn tuning_is_one_stage_and_every_total_a_bar() {
        let mut clock = StageClock::default();
        let at = clock.snapshot(&progress(Stage::Tuning(2), 50)).unwrap();
        assert_eq!((at.stage.as_str(), at.done, at.total), ("tuning", 250, 400));
        let at = clock.snapshot(&progress(Stage::Fitting, 7)).unwrap();
        assert_eq!((at.stage.as_str(), at.done, at.total), ("training", 7, 100));
        assert!(clock.snapshot(&progress(Stage::Finished, 0)).is_none());
        // Rounds of 25, 50, 100 iterations and so on.
        let doubling = Progress { rounds: None, ..progress(Stage::Tuning(2), 50) };
        let at = clock.snapshot(&doubling).unwrap();
        assert_eq!((at.done, at.total), (125, 0));
    }

    #[test]
    fn sampling_with_goals_ends_where_they_are_likely_reached() {
        let minutes = Some(Goal { reached: 1.0, wanted: 1.5 });
        let goals = Goals { minutes, expected: Some(400), ..Goals::default() };
        let mut clock = StageClock::default();
        let mut at = clock.snapshot(&Progress { goals, ..progress(Stage::Sampling, 80) }).unwrap();
        assert_eq!((at.done, at.total), (80, 400));
        for (rate, left) in [(8.0, 30.0), (32.0, 10.0), (0.0, 30.0)] {
            at.rate = rate;
            assert_eq!(at.left_s(), Some(left));
        }
    }

    #[test]
    fn a_line_says_what_is_known() {
        let mut snapshot = Snapshot {
            stage: "sampling".into(),
            done: 100,
            total: 1100,
            rate: 50.0,
            stage_round_trips: 3,
            barrier: Some(1.5),
            worst_pair: Some((2, 0.61)),
            number: (4, 4),
            all_left_s: Some(20.0),
            ..Snapshot::default()
        };
        let details = "0:20 left in all · 3 round trips · Λ 1.50 · 50/s · worst pair 2–3: 61%";
        assert_eq!(snapshot.line(), format!("4/4 sampling 9% · {details}"));
        let goal = |reached, wanted| Some(Goal { reached, wanted });
        let goals = Goals { ess: goal(412.0, 1000.0), log_z_error: goal(0.08, 0.1), ..Goals::default() };
        let wanting = Snapshot { goals, ..snapshot.clone() };
        let begin =
            "4/4 sampling 9% · waits for ESS 412 of 1000 · 0:20 left in all · log Z ± 0.10 reached · 3 round";
        assert!(wanting.line().starts_with(begin), "{}", wanting.line());
        snapshot = Snapshot { stage: "tuning".into(), stage_round_trips: 1, ..Snapshot::default() };
        assert_eq!(snapshot.line(), "tuning · 1 round trip");
        let training = Snapshot {
            stage: "training".into(),
            number: (3, 6),
            done: 52,
            total: 100,
            loss: Some(0.614),
            all_left_s: Some(3700.0),
            ..Snapshot::default()
        };
        assert_eq!(training.line(), "3/6 training 52% · loss 0.614 · 1:01:40 left in all");
    }

    /// What follows a stage takes as long as its iterations do now, and as the training before did.
    #[test]
    fn the_whole_run_is_told_where_it_can_be() {
        let clock = StageClock { began: None, pace: Some(50.0), training_s: None };
        let now = Snapshot { done: 100, total: 200, rate: 10.0, ..Snapshot::default() };
        assert_eq!(clock.all_left_s(&now, (Some(100), 0)), Some(12.0));
        assert_eq!(clock.all_left_s(&now, (None, 0)), None);
        assert_eq!(clock.all_left_s(&now, (Some(100), 1)), None);
        let seen = StageClock { training_s: Some(3.0), ..clock };
        assert_eq!(seen.all_left_s(&now, (Some(100), 2)), Some(18.0));
    }

    #[test]
    fn the_file_says_how_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ProgressFile::read(folder.path()).unwrap_err().to_string().contains("nothing runs"));
        let mut nobody = ();
        let mut watched = Watched::new(folder.path(), &mut nobody);
        watched.begin();
        watched.progress(&progress(Stage::Sampling, 5));
        let file = ProgressFile::read(folder.path()).unwrap();
        assert_eq!((file.state.clone(), file.snapshot.stage.as_str()), (State::Running, "sampling"));
        assert!(!file.is_orphaned() && file.age_s() < 60.0);
        watched.end(State::Failed("no luck".into()));
        assert_eq!(ProgressFile::read(folder.path()).unwrap().state, State::Failed("no luck".into()));
        // No process has the largest number there is.
        let gone = ProgressFile { process: i32::MAX as u32, ..file };
        assert!(gone.is_orphaned());
        assert!(!ProgressFile { machine: "elsewhere".into(), ..gone }.is_orphaned());
    }
}
