//! Every target of a user is tried before it is trusted.
//!
//! At some points of the reference, and at points nearer to the origin: is all written that should be, is the input left alone,
//! does a point's answer depend on that point alone (alone or in a batch, in any order, at any time, on any thread), and is
//! the score the gradient of the log density? What is certain is an error before anything is written; what is suspicious, an
//! alarm. The run's own random numbers are not touched.

mod score;

use crate::accelerators::Plan;
use crate::alarms::{Alarm, Code};
use crate::config::TargetKind;
use crate::error::JobError;
use crate::problem::Problem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use sterna::streams::Phase;
use sterna::{Batch, Counted, Evaluation, Streams, Target};

/// What a trial found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// Points at which the target was evaluated.
    pub evaluations: u64,
    /// What is suspicious.
    pub alarms: Vec<Alarm>,
}

/// Points that are tried.
const POINTS: usize = 8;
/// Of these, the ones that are tried alone.
const ALONE: usize = 4;
/// Answers that differ by no more than this, relative to their size or to one, are one answer, rounded in two ways …
const ROUNDING: f64 = 1e-9;
/// … and those that differ by more than this are two: single precision has a ten-thousandth of it.
const TWO_ANSWERS: f64 = 1e-3;

/// What rooms for answers are filled with: numbers that no computation makes.
const FILLS: [u64; 2] = [0x7ff8_7374_6572_6e61, 0xfff8_616e_7265_7473];

/// Tries the target of a user.
pub fn tried(problem: &Problem, plan: &Plan) -> Result<Tried, JobError> {
    if !is_of_a_user(problem) {
        return Ok(Tried::default());
    }
    let agrees = if is_of_stan(problem) { OF_STAN } else { score::AGREES };
    let trial = Trial { target: Counted::new(problem.target.clone()), points: points(plan), agrees };
    // A target that fails, or panics, at a point of the trial does so in a run as well, which then says where.
    let outcome = catch_unwind(AssertUnwindSafe(|| trial.run())).unwrap_or(Ok(Vec::new()));
    match outcome {
        Ok(alarms) => Ok(Tried { evaluations: trial.target.evaluations(), alarms }),
        Err(Fault::Certain(what)) => Err(JobError::Config(format!("{}: {what}", name(problem)))),
        Err(Fault::Failed) => Ok(Tried { evaluations: trial.target.evaluations(), ..Tried::default() }),
    }
}

/// Built-in targets are tested with the program.
pub(crate) fn is_of_a_user(problem: &Problem) -> bool {
    matches!(problem.kind, TargetKind::Library(_) | TargetKind::Stan(_) | TargetKind::Own(_))
}

/// Whether it is a model of Stan, whose compiler makes the score.
pub(crate) fn is_of_stan(problem: &Problem) -> bool {
    matches!(problem.kind, TargetKind::Stan(_))
}

/// A share of the change by which a score of Stan's may differ from differences: solvers of differential equations stop where their
/// tolerance lets them, elsewhere for each density and each of its derivatives.
const OF_STAN: f64 = 1e-2;

/// How messages speak of the target.
fn name(problem: &Problem) -> String {
    match &problem.kind {
        TargetKind::Library(library) => {
            let path = library.library.as_deref().unwrap_or("".as_ref());
            format!("target.library = {:?}", path.display().to_string())
        }
        TargetKind::Own(own) => format!("the target \"{}\"", own.name),
        kind => format!("target.kind = \"{}\"", kind.kind()),
    }
}

/// Draws of the reference, half of them drawn in to a tenth.
fn points(plan: &Plan) -> Batch {
    let rows: Vec<u32> = (0..POINTS as u32).collect();
    let mut x = Batch::zeros(POINTS, plan.path.dim());
    plan.path.draw_reference(0.0, &Streams::new(19), Phase::Check.into(), 0, &rows, &mut x);
    (POINTS / 2..POINTS).for_each(|i| x.row_mut(i).iter_mut().for_each(|x| *x *= 0.1));
    x
}

/// Why a trial ends early.
enum Fault {
    /// The target is not what it should be.
    Certain(String),
    /// It said itself that it failed.
    Failed,
}

struct Trial<T> {
    target: Counted<T>,
    points: Batch,
    /// The share of a change by which score and differences may differ.
    agrees: f64,
}

impl<T: Target> Trial<T> {
    fn run(&self) -> Result<Vec<Alarm>, Fault> {
        let first = self.evaluate(&self.points, FILLS[0])?;
        self.check_written(&first, &self.evaluate(&self.points, FILLS[1])?)?;
        let mut worst = Differs::default();
        worst.see(differ(&first, &self.evaluate(&self.points, FILLS[0])?, |i| i), "twice the same batch");
        let reversed: Vec<usize> = (0..POINTS).rev().collect();
        worst
            .see(differ(&self.of_rows(&reversed)?, &first, |i| POINTS - 1 - i), "the batch in another order");
        for row in 0..ALONE {
            worst.see(differ(&self.of_rows(&[row])?, &first, |_| row), "a point alone and in a batch");
        }
        let together: Vec<Evaluation> = std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..2).map(|_| scope.spawn(|| self.evaluate(&self.points, FILLS[0]))).collect();
            calls.into_iter().map(|call| call.join().unwrap_or(Err(Fault::Failed))).collect::<Result<_, _>>()
        })?;
        for answer in &together {
            worst.see(differ(answer, &first, |i| i), "one thread and two at once");
        }
        let unsteady = worst.judge(&self.points)?;
        let score = if self.target.has_score() { self.check_score(&first)? } else { None };
        Ok([(Code::UnsteadyTarget, unsteady), (Code::ScoreNotGradient, score)]
            .into_iter()
            .filter_map(|(code, message)| message.map(|message| Alarm { code, message }))
            .collect())
    }

    /// Answers in rooms that were filled so; the points must stay what they are.
    fn evaluate(&self, x: &Batch, fill: u64) -> Result<Evaluation, Fault> {
        let mut out = Evaluation::zeros(x.rows(), x.dim());
        out.log_density.fill(f64::from_bits(fill));
        out.score.as_mut_slice().fill(f64::from_bits(fill));
        let before: Vec<u64> = x.as_slice().iter().map(|x| x.to_bits()).collect();
        self.target.evaluate(x, &mut out).map_err(|error| match unwritten(&error) {
            Some(what) => Fault::Certain(what),
            None => Fault::Failed,
        })?;
        if x.as_slice().iter().zip(before).any(|(x, before)| x.to_bits() != before) {
            return Err(Fault::Certain(
                "it writes to the points that it is given: they are the replicas' own; work on a copy".into(),
            ));
        }
        Ok(out)
    }

    fn of_rows(&self, rows: &[usize]) -> Result<Evaluation, Fault> {
        let x: Vec<f64> = rows.iter().flat_map(|&row| self.points.row(row)).copied().collect();
        self.evaluate(&Batch::from_vec(self.points.dim(), x), FILLS[0])
    }

    /// What kept both of its fillings was never written.
    fn check_written(&self, first: &Evaluation, second: &Evaluation) -> Result<(), Fault> {
        let kept = |a: &f64, b: &f64| a.to_bits() == FILLS[0] && b.to_bits() == FILLS[1];
        for row in 0..POINTS {
            if kept(&first.log_density[row], &second.log_density[row]) {
                return Err(Fault::Certain(NO_DENSITY.into()));
            }
            // Where there is no density, nobody asks for its score.
            let mut both = first.score.row(row).iter().zip(second.score.row(row));
            let coordinate = both.position(|(a, b)| kept(a, b));
            if let Some(j) =
                coordinate.filter(|_| self.target.has_score() && first.log_density[row].is_finite())
            {
                return Err(Fault::Certain(no_score(j)));
            }
        }
        Ok(())
    }
}

/// What is said of a density that is never written.
pub(crate) const NO_DENSITY: &str = "it returns without having written the log density of all points: write one number for each, \
                                     -inf where the density vanishes";

/// What is said of a score that is not written.
pub(crate) fn no_score(coordinate: usize) -> String {
    format!(
        "it returns without having written coordinate {coordinate} of the score: write the gradient of the log density, one number \
         for each coordinate of each point, or say that there is none (sterna_has_score, target.gradient = false)"
    )
}

/// A library finds by itself what it has not written.
fn unwritten(error: &sterna::Error) -> Option<String> {
    let text = error.to_string();
    text.contains("returns without having written").then_some(text)
}

/// Where two answers differ most: by how much, and in which row.
fn differ(a: &Evaluation, b: &Evaluation, row_of: impl Fn(usize) -> usize) -> (f64, usize) {
    let mut worst = (0.0, 0);
    for i in 0..a.log_density.len() {
        let row = row_of(i);
        let (mut most, is_finite) =
            (apart(a.log_density[i], b.log_density[row]), a.log_density[i].is_finite());
        if is_finite {
            let size = a.score.row(i).iter().fold(1.0, |most: f64, s| most.max(s.abs()));
            let each = a.score.row(i).iter().zip(b.score.row(row));
            most = each.fold(most, |most, (a, b)| most.max(apart(*a, *b) * (a.abs().max(1.0) / size)));
        }
        if most > worst.0 {
            worst = (most, row);
        }
    }
    worst
}

/// Difference of two numbers relative to their size, or to one; infinite where only one of them is a number.
fn apart(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        0.0
    } else if a.is_finite() && b.is_finite() {
        (a - b).abs() / a.abs().max(b.abs()).max(1.0)
    } else {
        f64::INFINITY
    }
}

/// The worst disagreement of answers that should be one.
#[derive(Default)]
struct Differs {
    by: f64,
    row: usize,
    between: &'static str,
}

impl Differs {
    fn see(&mut self, (by, row): (f64, usize), between: &'static str) {
        if by > self.by {
            *self = Self { by, row, between };
        }
    }

    fn judge(&self, points: &Batch) -> Result<Option<String>, Fault> {
        if self.by <= ROUNDING {
            return Ok(None);
        }
        let shown: Vec<String> = points.row(self.row).iter().take(6).map(|x| format!("{x:.4}")).collect();
        let more = if points.dim() > 6 { ", …" } else { "" };
        let what = format!(
            "its answer is no function of the point: at [{}{more}] answers differ between {} (by {:.1e} of their size)",
            shown.join(", "),
            self.between,
            self.by
        );
        let cure = "what is written for a point may depend on that point alone: keep no state between calls, share no memory \
                    between threads, and loop over all rows";
        match self.by > TWO_ANSWERS {
            true => Err(Fault::Certain(format!("{what}; {cure}"))),
            false => Ok(Some(format!("{what}; {cure}, and draw no random numbers"))),
        }
    }
}

#[cfg(test)]
mod tests;
