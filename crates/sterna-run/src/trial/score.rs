//! Is the score the gradient of the log density?
//!
//! Along a direction in which every coordinate of the score counts alike, differences at several step sizes are held against
//! it. One that agrees is enough: kinks, rounding and sharp bends spoil some of them, never all at several points.

use super::{FILLS, Fault, Trial};
use sterna::streams::Phase;
use sterna::{Batch, Evaluation, Streams, Target};

/// Steps, as changes of the log density for each coordinate.
const STEPS: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];
/// A difference that is off by no more than this share of all coordinates' changes, and by rounding, agrees.
pub(super) const AGREES: f64 = 1e-4;
/// Points at which the score is looked at.
const MOST_POINTS: usize = 4;
/// Coordinates that are looked at one by one where the whole is wrong.
const MOST_COORDINATES: usize = 64;

impl<T: Target> Trial<T> {
    /// What is wrong with the score, at two points or at the only one that can be judged.
    pub(super) fn check_score(&self, answers: &Evaluation) -> Result<Option<String>, Fault> {
        let dim = self.points.dim();
        let rows =
            (0..self.points.rows()).filter(|&row| answers.log_density[row].is_finite()).take(MOST_POINTS);
        let rows: Vec<usize> = rows.collect();
        let mut stream = Streams::new(23).row(Phase::Check, 0, 0);
        let mut wrong = Vec::new();
        let mut judged = 0;
        for &row in &rows {
            let direction: Vec<f64> = (0..dim)
                .map(|j| (if stream.uniform() < 0.5 { -1.0 } else { 1.0 }) * self.length(answers, row, j))
                .collect();
            if let Some(off) = self.compare(answers, row, &direction)? {
                judged += 1;
                wrong.extend((!off.agrees()).then_some((row, off)));
            }
        }
        if wrong.is_empty() || wrong.len() < judged.min(2) {
            return Ok(None);
        }
        let (row, off) = (wrong[0].0, &wrong[0].1);
        let rows: Vec<usize> = wrong.iter().map(|(row, _)| *row).collect();
        let (what, off) = match self.coordinate(answers, &rows)? {
            Some((j, off)) => (format!("coordinate {j} of the score"), off),
            None => ("the score along a random direction".to_string(), off.clone()),
        };
        let shown: Vec<String> = self.points.row(row).iter().take(6).map(|x| format!("{x:.4}")).collect();
        let more = if dim > 6 { ", …" } else { "" };
        Ok(Some(format!(
            "{what} is not the gradient of the log density at {} of {judged} points: at [{}{more}] it says {:.6e}, differences \
             give {:.6e}; draws stay right but moves fail; mend it (`sterna verify` lists all that is wrong), or sample \
             without it (target.gradient = false, explorer.kind = \"slice\")",
            wrong.len(),
            shown.join(", "),
            off.said,
            off.nearest
        )))
    }

    /// How far to go in a coordinate for a change of about one; a flat one is gone along as far as it is large.
    fn length(&self, answers: &Evaluation, row: usize, j: usize) -> f64 {
        let widest = self.points.row(row)[j].abs().max(1.0);
        let score = answers.score.row(row)[j];
        if score.is_finite() { score.abs().recip().min(widest) } else { widest }
    }

    /// The coordinate that is wrong at all of these points by most.
    fn coordinate(&self, answers: &Evaluation, rows: &[usize]) -> Result<Option<(usize, Off)>, Fault> {
        let dim = self.points.dim();
        for j in (0..dim).step_by(dim.div_ceil(MOST_COORDINATES)) {
            let mut offs = Vec::new();
            for &row in rows {
                let mut direction = vec![0.0; dim];
                direction[j] = self.length(answers, row, j);
                offs.extend(self.compare(answers, row, &direction)?.filter(|off| !off.agrees()).map(|off| {
                    Off { said: off.said / direction[j], nearest: off.nearest / direction[j], ..off }
                }));
            }
            if offs.len() == rows.len() {
                return Ok(offs.into_iter().next().map(|off| (j, off)));
            }
        }
        Ok(None)
    }

    /// The score along a direction against differences; none where these leave the support.
    fn compare(&self, answers: &Evaluation, row: usize, direction: &[f64]) -> Result<Option<Off>, Fault> {
        let x = self.points.row(row);
        let moved = |step: f64| x.iter().zip(direction).map(move |(x, u)| x + step * u);
        let batch: Vec<f64> =
            STEPS.iter().flat_map(|&h| moved(h).chain(moved(-h)).collect::<Vec<_>>()).collect();
        let there = self.evaluate(&Batch::from_vec(x.len(), batch), FILLS[0])?.log_density;
        let terms = || answers.score.row(row).iter().zip(direction).map(|(s, u)| s * u);
        let (said, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        let rounding = rounding(&answers.log_density) * answers.log_density[row].abs().max(1.0);
        let offs = STEPS.iter().zip(there.chunks_exact(2)).map(|(h, both)| {
            let nearest = (both[0] - both[1]) / (2.0 * h);
            Off { said, nearest, allowed: self.agrees * size.max(nearest.abs()) + rounding / h }
        });
        let known = offs.filter(|off| off.nearest.is_finite());
        Ok(known.min_by(|a, b| a.beyond().total_cmp(&b.beyond())))
    }
}

/// What a score says, and the difference that is nearest to it.
#[derive(Clone)]
struct Off {
    said: f64,
    nearest: f64,
    allowed: f64,
}

impl Off {
    fn beyond(&self) -> f64 {
        let off = (self.said - self.nearest).abs() - self.allowed;
        if off.is_nan() { f64::INFINITY } else { off }
    }

    fn agrees(&self) -> bool {
        self.beyond() <= 0.0
    }
}

/// What rounding leaves uncertain of these numbers, relative to their size: they may have been single ones.
fn rounding(answers: &[f64]) -> f64 {
    let single = answers.iter().all(|a| a.is_nan() || f64::from(*a as f32) == *a);
    if single { 4.0 * f64::from(f32::EPSILON) } else { 16.0 * f64::EPSILON }
}
