//! The mixture that follows draws: by their moments, or by the scores at them, whichever serves draws that it has not seen.

use super::numbers::{ln, shares};
use super::refit::floored;
use super::{Component, Covariance, Mixture, Modes, Worth};
use crate::Batch;
use crate::lanes::one::exp;

/// From so many coordinates on, moments of fewer than two draws for each are mostly noise.
const MANY: usize = 64;

/// Draws of a mode that can say how much mass it has; by how much its weight changes in one round at most, in log.
const ENOUGH_OF_A_MODE: usize = 5;
const MOST_AT_ONCE: f64 = 3.0;

/// How much wider than they were fitted components may become.
const FACTORS: [f64; 6] = [1.0, 0.95, 0.98, 1.04, 1.1, 1.2];

/// Draws of the target, with what it said there.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'a> {
    /// Points, ladder after ladder.
    pub draws: &'a Batch,
    /// log π̃ at each.
    pub log_density: &'a [f64],
    /// ∇ log π̃ at each, where the target has scores.
    pub scores: Option<&'a Batch>,
    /// How many independent ones they are worth.
    pub worth: Worth,
}

impl Mixture {
    /// The mixture refitted to draws. Means and covariances follow from moments or from scores, as half of the draws judge of what
    /// was fitted to the other half.
    ///
    /// ```
    /// use sterna::{Batch, Streams, fitted::{Covariance, Drawn, Mixture, Shape, Worth}, streams::Phase};
    /// // Twenty draws of a normal in ten dimensions: moments would spoil what scores confirm.
    /// let mut draws = Batch::zeros(20, 10);
    /// Streams::new(1).normals(Phase::Check, 0, &(0..20).collect::<Vec<_>>(), &mut draws);
    /// let scores = Batch::from_vec(10, draws.as_slice().iter().map(|x| -x).collect());
    /// let log_density: Vec<f64> = draws.iter_rows().map(|x| -0.5 * x.iter().map(|x| x * x).sum::<f64>()).collect();
    /// let present = Mixture::normal(vec![0.0; 10], Shape::Diagonal(vec![1.1; 10])).unwrap();
    /// let worth = Worth::from(20.0);
    /// let seen = Drawn { draws: &draws, log_density: &log_density, scores: Some(&scores), worth };
    /// let fitted = present.following(seen, Covariance::Dense);
    /// assert!(fitted.rejection(&draws, &log_density) < 0.15);
    /// assert!(present.refit(&draws, worth, Covariance::Dense).rejection(&draws, &log_density) > 0.2);
    /// ```
    pub fn following(&self, seen: Drawn, kind: Covariance) -> Self {
        let by_moments = |seen: Drawn| self.refit(seen.draws, seen.worth, kind);
        let by_scores = |seen: Drawn, scores: &Batch| {
            let fitted = self.refit_by_scores(seen.draws, scores, seen.worth, kind);
            Some(fitted)
                .filter(|fitted| fitted.components().iter().all(|c| c.mean.iter().all(|m| m.is_finite())))
        };
        let Some(scores) = seen.scores else { return by_moments(seen).widened_for(seen) };
        if self.dim() > MANY && seen.worth.shapes < 2.0 * self.dim() as f64 {
            return by_scores(seen, scores).unwrap_or_else(|| by_moments(seen)).widened_for(seen);
        }
        let (first, second) = seen.halves();
        let held_out = |fitted: &dyn Fn(&Part) -> Option<Self>| {
            let judged = [(&first, &second), (&second, &first)].map(|(half, other)| {
                fitted(half).map_or(f64::INFINITY, |fitted| fitted.waiting(&other.draws, &other.log_density))
            });
            judged[0] + judged[1]
        };
        let moments = held_out(&|half| Some(by_moments(half.seen())));
        let of_scores =
            held_out(&|half| half.scores.as_ref().and_then(|scores| by_scores(half.seen(), scores)));
        let better = if of_scores < moments { by_scores(seen, scores) } else { None };
        better.unwrap_or_else(|| by_moments(seen)).weighed(seen).widened_for(seen)
    }

    /// Modes that are apart weighed by what draws of each say of the mass around it, rather than by their number: with the
    /// mixture's density η, that mass is its present weight over the mean of η/π there. Ladders that seldom change modes know next to
    /// nothing of weights by counting, and this from a few draws of each.
    fn weighed(self, seen: Drawn) -> Self {
        let Some(mut modes) = Modes::of(&self) else { return self };
        let mut inverse: Vec<Vec<f64>> = vec![Vec::new(); modes.count()];
        for (x, gap) in seen.draws.iter_rows().zip(self.gaps(seen.draws, seen.log_density)) {
            if gap.is_finite() {
                inverse[modes.at(x)].push(-gap);
            }
        }
        // log of the true mass over the present weight, in each mode of which there are draws.
        let factor = |of: &Vec<f64>| {
            let log_mean = shares(&mut of.clone()) - ln(of.len() as f64);
            (of.len() >= ENOUGH_OF_A_MODE).then_some(-log_mean)
        };
        let factors: Vec<Option<f64>> = inverse.iter().map(factor).collect();
        let mut known: Vec<f64> = factors.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let Some(&usual) = known.get(known.len() / 2) else { return self };
        let weighed = |(i, c): (usize, &Component)| {
            let by = factors[modes.of_component(i)].map_or(0.0, |factor| factor - usual);
            Component { weight: c.weight * exp(by.clamp(-MOST_AT_ONCE, MOST_AT_ONCE)), ..c.clone() }
        };
        let components = self.components().iter().enumerate().map(weighed).collect();
        Self::new(components)
            .and_then(|weighed| Self::new(floored(weighed.components().to_vec(), seen.worth.weights)))
            .unwrap_or(self)
    }

    /// All components so much wider or narrower that draws wait least for an accepted swap.
    pub(crate) fn widened_for(self, seen: Drawn) -> Self {
        let widened = |factor: &f64| {
            let part = |c: &Component| Component { shape: c.shape.clone().widened(*factor), ..c.clone() };
            Self::new(self.components().iter().map(part).collect()).ok()
        };
        let judged = |mixture: Self| (mixture.waiting(seen.draws, seen.log_density), mixture);
        let best =
            FACTORS.iter().filter_map(widened).map(judged).reduce(|a, b| if b.0 < a.0 { b } else { a });
        best.map_or(self, |(_, mixture)| mixture)
    }
}

/// Some of the draws.
struct Part {
    draws: Batch,
    log_density: Vec<f64>,
    scores: Option<Batch>,
    worth: Worth,
}

impl Part {
    fn seen(&self) -> Drawn<'_> {
        let Self { draws, log_density, scores, worth } = self;
        Drawn { draws, log_density, scores: scores.as_ref(), worth: *worth }
    }
}

impl Drawn<'_> {
    /// The first ladders and the last ones.
    fn halves(&self) -> (Part, Part) {
        let (dim, middle) = (self.draws.dim(), self.draws.rows() / 2);
        let Worth { weights, shapes } = self.worth;
        let part = |rows: std::ops::Range<usize>| {
            let of = |batch: &Batch| {
                Batch::from_vec(dim, batch.as_slice()[rows.start * dim..rows.end * dim].to_vec())
            };
            Part {
                draws: of(self.draws),
                log_density: self.log_density[rows.clone()].to_vec(),
                scores: self.scores.map(of),
                worth: Worth { weights: 0.5 * weights, shapes: 0.5 * shapes },
            }
        };
        (part(0..middle), part(middle..self.draws.rows()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::Streams;
    use crate::streams::Phase;

    fn at(weight: f64, x: f64, width: f64) -> Component {
        Component { weight, mean: vec![x; 2], shape: Shape::Diagonal(vec![width; 2]).dense() }
    }

    /// Draws around places, so many around each, with height and score of a mixture there.
    fn seen(truth: &Mixture, places: &[f64], each: u32) -> (Batch, Vec<f64>, Batch) {
        let rows = each * places.len() as u32;
        let mut draws = Batch::zeros(rows as usize, 2);
        Streams::new(5).normals(Phase::Check, 0, &(0..rows).collect::<Vec<_>>(), &mut draws);
        let (mut scores, mut log_density) = (draws.clone(), Vec::new());
        for i in 0..rows as usize {
            draws.row_mut(i).iter_mut().for_each(|x| *x += places[i / each as usize]);
            log_density.push(3.0 + truth.evaluate(draws.row(i), scores.row_mut(i), &mut Vec::new()));
        }
        (draws, log_density, scores)
    }

    #[test]
    fn modes_are_weighed_by_their_mass_however_many_draws_each_has() {
        let truth = Mixture::new(vec![at(0.8, 0.0, 1.0), at(0.2, 20.0, 1.0)]).unwrap();
        let present = Mixture::new(vec![at(0.5, 0.0, 1.1), at(0.5, 20.0, 1.1)]).unwrap();
        let (draws, log_density, scores) = seen(&truth, &[0.0, 20.0], 30);
        let worth = Worth { weights: 2.0, shapes: 60.0 };
        let all = Drawn { draws: &draws, log_density: &log_density, scores: Some(&scores), worth };
        let fitted = present.following(all, Covariance::Dense);
        assert!((fitted.components()[0].weight - 0.8).abs() < 0.02, "{:?}", fitted.components());
        // By their number alone, they would weigh the same.
        let counted = present.refit(&draws, worth, Covariance::Dense);
        assert!((counted.components()[0].weight - 0.5).abs() < 0.05);
    }

    #[test]
    fn a_fit_becomes_widened_for_serves_draws_best() {
        let truth = Mixture::normal(vec![0.0; 2], Shape::Diagonal(vec![1.0; 2])).unwrap();
        let (draws, log_density, scores) = seen(&truth, &[0.0], 200);
        let all =
            Drawn { draws: &draws, log_density: &log_density, scores: Some(&scores), worth: 200.0.into() };
        let width = |of: f64| {
            let present = Mixture::new(vec![at(1.0, 0.0, of)]).unwrap();
            present.widened_for(all).components()[0].shape.deviations()[0]
        };
        assert!((width(0.85) - 1.02).abs() < 0.01 && (width(1.05) - 1.0).abs() < 0.01);
        assert!((width(1.0) - 1.0).abs() < 0.05);
    }

    #[test]
    fn draws_of_which_nothing_is_known_leave_a_fit_alone() {
        let present = Mixture::new(vec![at(0.5, 0.0, 1.0), at(0.5, 20.0, 1.0)]).unwrap();
        let empty = Batch::zeros(0, 2);
        let none = Drawn { draws: &empty, log_density: &[], scores: Some(&empty), worth: 0.0.into() };
        assert_eq!(present.following(none, Covariance::Dense), present);
        let draws = Batch::from_vec(2, vec![f64::NAN; 20]);
        let bad = Drawn { draws: &draws, log_density: &[f64::NAN; 10], scores: None, worth: 10.0.into() };
        assert_eq!(present.following(bad, Covariance::Dense), present);
    }
}
