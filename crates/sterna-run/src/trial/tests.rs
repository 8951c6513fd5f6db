//! Liars of every kind are found; honest targets, kinks and single precision among them, are not.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use sterna::targets::{Banana, Funnel, Normal};

/// A target that answers as an honest one does, once this has changed what it writes: (call, batch, answers).
struct Changed<F>(usize, F, AtomicU64);

impl<F: Fn(u64, &Batch, &mut Evaluation) + Send + Sync> Target for Changed<F> {
    fn dim(&self) -> usize {
        self.0
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let call = self.2.fetch_add(1, Ordering::Relaxed);
        let mut honest = Evaluation::zeros(x.rows(), x.dim());
        Banana::new(self.0).evaluate(x, &mut honest)?;
        (self.1)(call, x, &mut honest);
        for row in 0..x.rows() {
            // A number of its own stands for what is left as it was.
            if honest.log_density[row] != LEFT {
                out.log_density[row] = honest.log_density[row];
            }
            let both = out.score.row_mut(row).iter_mut().zip(honest.score.row(row));
            both.filter(|(_, honest)| **honest != LEFT).for_each(|(out, honest)| *out = *honest);
        }
        Ok(())
    }
}

const LEFT: f64 = 12_345.678;

fn tries(target: impl Target) -> Result<Vec<Alarm>, String> {
    let mut points = Batch::zeros(POINTS, target.dim());
    let rows: Vec<u32> = (0..POINTS as u32).collect();
    Streams::new(3).normals(Phase::Check, 0, &rows, &mut points);
    let trial = Trial { target: Counted::new(target), points, agrees: score::AGREES };
    trial.run().map_err(|fault| match fault {
        Fault::Certain(what) => what,
        Fault::Failed => "failed".into(),
    })
}

fn changed(change: impl Fn(u64, &Batch, &mut Evaluation) + Send + Sync) -> Result<Vec<Alarm>, String> {
    tries(Changed(3, change, AtomicU64::new(0)))
}

#[test]
fn honest_targets_raise_nothing() {
    assert_eq!(tries(Banana::new(2)), Ok(vec![]));
    assert_eq!(tries(Funnel::new(10)), Ok(vec![]));
    assert_eq!(tries(Normal::isotropic(300, 1e-4)), Ok(vec![]));
    assert_eq!(changed(|_, _, _| {}), Ok(vec![]));
}

/// Rounded to single precision, with a kink, nowhere, and without a score where there is no density.
#[test]
fn what_is_unusual_is_no_lie() {
    let single = |_: u64, _: &Batch, out: &mut Evaluation| {
        out.log_density.iter_mut().for_each(|l| *l = f64::from(*l as f32));
        out.score.as_mut_slice().iter_mut().for_each(|s| *s = f64::from(*s as f32));
    };
    assert_eq!(changed(single), Ok(vec![]));
    let kink = |_: u64, x: &Batch, out: &mut Evaluation| {
        for row in 0..x.rows() {
            out.log_density[row] -= 30.0 * x.row(row)[0].abs();
            out.score.row_mut(row)[0] -= 30.0 * x.row(row)[0].signum();
        }
    };
    assert_eq!(changed(kink), Ok(vec![]));
    let half = |_: u64, x: &Batch, out: &mut Evaluation| {
        for row in (0..x.rows()).filter(|&row| x.row(row)[0] < 0.0) {
            out.log_density[row] = f64::NEG_INFINITY;
            out.score.row_mut(row).fill(LEFT);
        }
    };
    assert_eq!(changed(half), Ok(vec![]));
    let nowhere = |_: u64, _: &Batch, out: &mut Evaluation| out.log_density.fill(f64::NAN);
    assert_eq!(changed(nowhere), Ok(vec![]));
}

#[test]
fn what_is_not_written_is_named() {
    let density = changed(|_, _, out| out.log_density.fill(LEFT)).unwrap_err();
    assert!(density.contains("written the log density"), "{density}");
    let last = changed(|_, x, out| out.log_density[x.rows() - 1] = LEFT).unwrap_err();
    assert!(last.contains("written the log density"), "{last}");
    let score = changed(|_, _, out| (0..out.score.rows()).for_each(|i| out.score.row_mut(i)[2] = LEFT));
    assert!(score.unwrap_err().contains("coordinate 2 of the score"));
}

#[test]
fn what_is_no_function_is_an_error() {
    let of_batch = changed(|_, x, out| out.log_density.iter_mut().for_each(|l| *l += 0.1 * x.rows() as f64));
    let of_row =
        changed(|_, _, out| out.log_density.iter_mut().enumerate().for_each(|(i, l)| *l += 0.1 * i as f64));
    let of_call = changed(|call, _, out| out.log_density.iter_mut().for_each(|l| *l += 0.1 * call as f64));
    let of_score = changed(|call, _, out| out.score.row_mut(0)[1] += call as f64);
    for (liar, part) in [(of_batch, "alone"), (of_row, "order"), (of_call, "differ"), (of_score, "differ")] {
        let what = liar.unwrap_err();
        assert!(what.contains("no function of the point") && what.contains(part), "{what}");
    }
    // A little noise is told, and no more.
    let noisy = changed(|call, _, out| out.log_density.iter_mut().for_each(|l| *l += 1e-6 * call as f64));
    assert_eq!(noisy.unwrap()[0].code, Code::UnsteadyTarget);
}

/// The whole score, one coordinate of many, and one by a few percent.
#[test]
fn a_score_that_is_no_gradient_is_an_alarm() {
    let flipped = changed(|_, _, out| out.score.as_mut_slice().iter_mut().for_each(|s| *s = -*s));
    let one = changed(|_, _, out| (0..out.score.rows()).for_each(|i| out.score.row_mut(i)[1] = 0.0));
    let little = changed(|_, _, out| (0..out.score.rows()).for_each(|i| out.score.row_mut(i)[1] *= 1.05));
    for (found, part) in [(flipped, "coordinate 0"), (one, "coordinate 1"), (little, "coordinate 1")] {
        let alarms = found.unwrap();
        assert_eq!(alarms.len(), 1);
        assert!(alarms[0].code == Code::ScoreNotGradient && alarms[0].message.contains(part), "{alarms:?}");
    }
}
