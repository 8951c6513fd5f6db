//! A target whose evaluations may take so many seconds: one that hangs ends the run with a word, and does not hold up all ranks.

use crate::error::JobError;
use crate::problem::Problem;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sterna::streams::RowStream;
use sterna::transport::EnergyModel;
use sterna::{Batch, Error, Evaluation, Result, Target};

/// The target, asked by threads of its own: one that does not answer in time is left where it is.
struct Timed {
    target: Arc<dyn Target>,
    seconds: f64,
    /// Threads that have nothing to do.
    idle: Mutex<Vec<Helper>>,
}

/// A thread that asks the target.
struct Helper {
    ask: Sender<Room>,
    answer: Receiver<Answer>,
}

/// Points and what the target writes of them, which go to a helper and come back.
type Room = (Batch, Evaluation);

/// What came of it, or the panic that it came to.
type Answer = std::result::Result<(Room, Result<()>), Box<dyn Any + Send>>;

/// The problem, each of whose evaluations may take so many seconds.
pub(crate) fn limited(problem: &mut Problem, seconds: Option<f64>) -> std::result::Result<(), JobError> {
    let Some(seconds) = seconds else { return Ok(()) };
    if !(seconds > 0.0 && seconds <= 1e9) {
        let reason = "it must be positive, and no more than a thousand million seconds";
        return Err(JobError::setting("run.evaluation_seconds", seconds, reason));
    }
    problem.target = Arc::new(Timed { target: problem.target.clone(), seconds, idle: Mutex::default() });
    Ok(())
}

impl Timed {
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread that hangs in a target is left behind, which no pool can do without"
    )]
    fn helper(&self) -> Helper {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            let (ask, asked) = channel::<Room>();
            let (answered, answer) = channel();
            let target = self.target.clone();
            std::thread::spawn(move || {
                for (x, mut out) in asked {
                    let outcome = catch_unwind(AssertUnwindSafe(|| target.evaluate(&x, &mut out)));
                    if answered.send(outcome.map(|outcome| ((x, out), outcome))).is_err() {
                        return;
                    }
                }
            });
            Helper { ask, answer }
        })
    }

    /// What is said of an evaluation that did not end.
    fn hangs(&self, x: &Batch) -> Error {
        let at = match x.rows() {
            1 => format!("the point {:?}", x.row(0)),
            rows => format!("one of {rows} points, the first of which is {:?}", x.row(0)),
        };
        Error::Target(
            format!(
                "it did not answer within run.evaluation_seconds = {} for each point, at {at}; if it may take longer, allow more in the \
                 config.toml of the run's folder",
                self.seconds
            )
            .into(),
        )
    }
}

impl Target for Timed {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    /// Each wakes a thread.
    fn takes_blocks(&self, _rows: usize) -> bool {
        false
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        if x.rows() == 0 {
            return Ok(());
        }
        let helper = self.helper();
        let gone = |_| Error::Target("the thread that asks it has ended".into());
        helper.ask.send((x.clone(), std::mem::take(out))).map_err(|error| gone(error.to_string()))?;
        let limit = Duration::from_secs_f64(self.seconds * x.rows() as f64);
        match helper.answer.recv_timeout(limit) {
            Ok(Ok(((_, written), outcome))) => {
                *out = written;
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(helper);
                outcome
            }
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {
                *out = Evaluation::zeros(x.rows(), x.dim());
                Err(self.hangs(x))
            }
            Err(error) => Err(gone(error.to_string())),
        }
    }

    fn has_score(&self) -> bool {
        self.target.has_score()
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        self.target.diffused()
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        self.target.draw(stream, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Job};
    use std::time::Instant;
    use sterna::targets::Normal;

    /// Beyond a limit it hangs.
    struct Hangs(f64);

    impl Target for Hangs {
        fn dim(&self) -> usize {
            1
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            if x.as_slice().iter().any(|x| *x > self.0) {
                std::thread::sleep(Duration::from_secs(3600));
            }
            Target::evaluate(&Normal::isotropic(1, 1.0), x, out)
        }
    }

    fn config(limit: &str) -> Config {
        let changes = [
            ("chains.count", "3"),
            ("seed", "4"),
            ("run.iterations", "300"),
            ("run.evaluation_seconds", limit),
        ];
        Config::parse("", &changes).unwrap()
    }

    #[test]
    fn a_target_that_hangs_ends_the_run_with_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let begin = Instant::now();
        let job = Job::new(Problem::new(Hangs(2.5)), config("0.2"), folder.path()).unwrap();
        let error = job.run(&mut ()).unwrap_err().to_string();
        assert!(error.contains("run.evaluation_seconds = 0.2") && error.contains("Job::resume"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_limit_changes_no_bit_and_is_checked() {
        let draws = |changed: Config| {
            let folder = tempfile::tempdir().unwrap();
            Job::new(Problem::new(Hangs(f64::INFINITY)), changed, folder.path())
                .unwrap()
                .run(&mut ())
                .unwrap();
            std::fs::read(folder.path().join("draws.nc")).unwrap()
        };
        let mut without = config("100");
        without.run.evaluation_seconds = None;
        assert!(draws(config("100")) == draws(without));
        let folder = tempfile::tempdir().unwrap();
        let refused = Job::new(Problem::new(Hangs(2.5)), config("0"), folder.path()).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("run.evaluation_seconds = 0 is impossible"), "{refused}");
    }
}
