//! How much of the mass may lie where the target has no answer?
//!
//! From draws, evenly spread, a step is made in the shape of the nearest normal. Where it ends without a density the way is halved
//! until the last point that has one is known to a 256th of it. If the density went on beyond as it is there, a Metropolis move would
//! be accepted with the ratio of the density there and at the draw; by balance, as much mass moves out as would come back, so the mean
//! of these ratios, over the length of the step, tells how much may be out there. Where the density has all but vanished before it
//! ends, that is nothing, however many far points have none.

use crate::fitted::{Mixture, Place, places};
use crate::lanes::one::exp;
use crate::records::Draws;
use crate::streams::Phase;
use crate::{Result, Streams, Target};

/// Halvings of a way that ends nowhere.
const HALVINGS: usize = 8;

/// How much of the mass may lie where the target answers NaN or +∞, or where its score is no number, as far as about so many steps from
/// draws tell; each step costs an evaluation, and each that ends without an answer eight more. None without draws.
///
/// ```
/// use sterna::fitted::{Mixture, Shape};
/// use sterna::{Streams, last_look::unanswered, records::Draws, targets::Normal};
/// let draws = [Draws { x: vec![-0.3, 0.1, 0.5], log_density: vec![-1.0; 3], ..Draws::default() }];
/// let mixture = Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0]))?;
/// let lost = unanswered(&Normal::isotropic(1, 1.0), &mixture, &draws, &Streams::new(1), 100)?;
/// assert_eq!(lost, (Some(0.0), 100));
/// # Ok::<(), sterna::Error>(())
/// ```
///
/// # Errors
/// If the target fails.
pub fn unanswered(
    target: &dyn Target,
    mixture: &Mixture,
    draws: &[Draws],
    streams: &Streams,
    steps: usize,
) -> Result<(Option<f64>, u64)> {
    let dim = mixture.dim();
    let points: Vec<(&[f64], f64)> =
        draws.iter().flat_map(|d| d.x.chunks_exact(dim).zip(d.log_density.iter().copied())).collect();
    if points.is_empty() || steps == 0 {
        return Ok((None, 0));
    }
    // Steps that most coordinates together make about as likely as not.
    let length = (dim as f64).sqrt().recip();
    let from = |i: usize| points[i * points.len() / steps];
    let to = |i: usize| {
        let mut stream = streams.row(Phase::Check, 1, i as u32);
        let mut step: Vec<f64> = (0..dim).map(|_| length * stream.normal()).collect();
        mixture.nearest(from(i).0).shape.apply(&mut step);
        step.iter().zip(from(i).0).map(|(step, x)| x + step).collect::<Vec<f64>>()
    };
    let ends = places(target, (0..steps).map(to).collect())?;
    let mut ways: Vec<Way> = ends
        .into_iter()
        .enumerate()
        .filter(|(_, end)| !is_answer(end))
        .map(|(i, end)| Way { start: from(i), end: end.point, known: (0.0, 1.0), last: from(i).1 })
        .collect();
    for _ in 0..HALVINGS {
        let middles = places(target, ways.iter().map(Way::middle).collect())?;
        ways.iter_mut().zip(middles).for_each(|(way, middle)| way.halve(&middle));
    }
    let asked = (steps + HALVINGS * ways.len()) as u64;
    let accepted: f64 = ways.iter().map(|way| exp((way.last - way.start.1).min(0.0))).sum();
    Ok((Some((accepted / length / steps as f64).min(1.0)), asked))
}

/// Whether a target has said something of a point; that the density vanishes there is an answer.
fn is_answer(place: &Place) -> bool {
    let known = place.log_density < f64::INFINITY;
    known && (place.log_density == f64::NEG_INFINITY || place.score.iter().all(|s| s.is_finite()))
}

/// A way from a draw to where there is no answer.
struct Way<'a> {
    start: (&'a [f64], f64),
    end: Vec<f64>,
    /// Parts of it at which there is an answer, and is none.
    known: (f64, f64),
    /// log density at the former.
    last: f64,
}

impl Way<'_> {
    fn middle(&self) -> Vec<f64> {
        let part = 0.5 * (self.known.0 + self.known.1);
        self.start.0.iter().zip(&self.end).map(|(from, to)| from + part * (to - from)).collect()
    }

    fn halve(&mut self, middle: &Place) {
        let part = 0.5 * (self.known.0 + self.known.1);
        if is_answer(middle) {
            (self.known.0, self.last) = (part, middle.log_density);
        } else {
            self.known.1 = part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fitted::Shape;
    use crate::{Batch, Evaluation};

    /// A standard normal without an answer, or without a score, where the first coordinate is beyond a bound.
    struct Cut {
        dim: usize,
        bound: f64,
        score_alone: bool,
    }

    impl Target for Cut {
        fn dim(&self) -> usize {
            self.dim
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            for row in 0..x.rows() {
                let point = x.row(row);
                let beyond = point[0] > self.bound;
                let log_density = -0.5 * point.iter().map(|x| x * x).sum::<f64>();
                out.log_density[row] = if beyond && !self.score_alone { f64::NAN } else { log_density };
                let score = out.score.row_mut(row).iter_mut().zip(point);
                score.for_each(|(s, x)| *s = if beyond { f64::NAN } else { -x });
            }
            Ok(())
        }
    }

    fn lost(cut: &Cut, steps: usize) -> f64 {
        let mut stream = Streams::new(5).row(Phase::Check, 0, 0);
        let mut draws = Draws::default();
        while draws.log_density.len() < 4000 {
            let x: Vec<f64> = (0..cut.dim).map(|_| stream.normal()).collect();
            if x[0] <= cut.bound {
                draws.log_density.push(-0.5 * x.iter().map(|x| x * x).sum::<f64>());
                draws.x.extend(x);
            }
        }
        let mixture = Mixture::normal(vec![0.0; cut.dim], Shape::Diagonal(vec![1.0; cut.dim])).unwrap();
        unanswered(cut, &mixture, &[draws], &Streams::new(1), steps).unwrap().0.unwrap()
    }

    /// What is beyond 0, 1, 2 and 2.8 of a normal: to a factor of two and a half, in one dimension and in ten. Some sixty steps end beyond
    /// 2.8 in ten, so that chance leads from there to a bound less than once in 100,000 times; the seed is fixed.
    #[test]
    fn what_is_cut_off_is_told_to_a_factor() {
        for dim in [1, 10] {
            for (bound, beyond) in [(0.0, 0.5), (1.0, 0.159), (2.0, 0.0228), (2.8, 0.00256)] {
                let found = lost(&Cut { dim, bound, score_alone: false }, 40_000);
                assert!(found > 0.4 * beyond && found < 2.5 * beyond, "{dim}, {bound}: {found} of {beyond}");
            }
        }
    }

    #[test]
    fn far_points_are_nothing_and_scores_count() {
        assert!(lost(&Cut { dim: 3, bound: 5.0, score_alone: false }, 4000) < 1e-4);
        assert_eq!(lost(&Cut { dim: 3, bound: 9.0, score_alone: false }, 4000), 0.0);
        assert!(lost(&Cut { dim: 3, bound: 1.0, score_alone: true }, 1000) > 0.05);
        let mixture = Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0])).unwrap();
        let cut = Cut { dim: 1, bound: 0.0, score_alone: false };
        assert_eq!(unanswered(&cut, &mixture, &[], &Streams::new(1), 10).unwrap(), (None, 0));
    }
}
