//! Looks at samples that training does not see, while it goes on: weights that help no journey but those they were shown
//! are not kept, and a training that only learns such things by heart ends early.

use serde::{Deserialize, Serialize};

/// Looks are so many steps apart at least, so shorter trainings have none.
const APART: u64 = 500;

/// So many looks in a row must be worse than the best one for a training to end early.
const PATIENCE: u32 = 4;

/// A look is worse than another where it is so by so many standard errors of the difference.
const SURE: f64 = 2.0;

/// What held-out journeys say of some weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Where so many pairs share them in turn: |tanh(Δ/2)| of each journey there and back, whose mean over those of a pair is its
    /// rejection rate. With no pairs: the loss of each row.
    pub values: Vec<f32>,
    /// Pairs, of which row i belongs to i mod pairs; 0 where a mean is looked at.
    pub pairs: usize,
}

impl Look {
    /// What is made small: Σ r/(1 − r), or the mean; and by how much one row of each group changes it.
    fn figure(&self) -> (f64, Vec<f64>) {
        let groups = self.pairs.max(1);
        let mut sums = vec![(0.0, 0.0); groups];
        for (i, value) in self.values.iter().enumerate() {
            let (sum, n) = &mut sums[i % groups];
            *sum += f64::from(*value);
            *n += 1.0;
        }
        let means = sums.iter().map(|(sum, n): &(f64, f64)| sum / n.max(1.0));
        if self.pairs == 0 {
            return (means.sum(), vec![1.0]);
        }
        // Finite where all is rejected.
        let left = |r: f64| 1.001 - r;
        let slopes = means.clone().map(|r| 1.001 / (left(r) * left(r))).collect();
        (means.map(|r| r / left(r)).sum(), slopes)
    }

    /// By how much this look is worse than another one at the same journeys, and the standard error of that.
    pub fn worse_than(&self, other: &Self) -> (f64, f64) {
        let groups = self.pairs.max(1);
        let [(ours, our_slopes), (theirs, their_slopes)] = [self, other].map(Self::figure);
        let mut sums = vec![[0.0; 3]; groups];
        for (i, (a, b)) in self.values.iter().zip(&other.values).enumerate() {
            let n = i % groups;
            let difference = our_slopes[n] * f64::from(*a) - their_slopes[n] * f64::from(*b);
            let [count, sum, squares] = &mut sums[n];
            *count += 1.0;
            *sum += difference;
            *squares += difference * difference;
        }
        let variance = |[count, sum, squares]: &[f64; 3]| {
            let mean = sum / count.max(1.0);
            (squares / count.max(1.0) - mean * mean).max(0.0) / count.max(1.0)
        };
        (ours - theirs, sums.iter().map(variance).sum::<f64>().sqrt())
    }

    /// Whether it is surely worse than another one.
    fn is_worse(&self, other: &Self) -> bool {
        let (difference, error) = self.worse_than(other);
        difference > SURE * error
    }
}

/// The looks of a training: the best one with its step, the last one, and how many in a row were worse.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Looks {
    best: Option<(u64, Look)>,
    last: Option<Look>,
    worse: u32,
}

impl Looks {
    /// The first step after `done` at whose end a training of so many steps is looked at; none where it is too short.
    pub fn next(done: u64, planned: u64) -> Option<u64> {
        if planned < APART {
            return None;
        }
        // A multiple of ten, as devices make steps in tens.
        let apart = APART.max(planned.div_ceil(20)).next_multiple_of(10);
        Some((done / apart + 1) * apart).filter(|next| *next <= planned)
    }

    /// Notes a look after this many steps; whether its weights are the best so far.
    pub fn note(&mut self, step: u64, look: Look) -> bool {
        let best = self.best.as_ref();
        let is_best = best.is_none_or(|(_, best)| look.worse_than(best).0 < 0.0);
        self.worse = if best.is_some_and(|(_, best)| look.is_worse(best)) { self.worse + 1 } else { 0 };
        if is_best {
            self.best = Some((step, look.clone()));
        }
        self.last = Some(look);
        is_best
    }

    /// Whether going on only makes it worse.
    pub fn is_over(&self) -> bool {
        self.worse >= PATIENCE
    }

    /// The step whose weights are to be kept, where the last ones are surely worse.
    pub fn better_step(&self) -> Option<u64> {
        let (step, best) = self.best.as_ref()?;
        self.last.as_ref()?.is_worse(best).then_some(*step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::streams::{Phase, Streams};

    /// Rejections of `rows` journeys around r in each of two pairs, with noise of the journey that looks share.
    fn look(r: [f64; 2], rows: usize, seed: u64) -> Look {
        let value = |i: usize| {
            let mut stream = Streams::new(1).row(Phase::Check, 0, i as u32);
            let shared = 0.2 * (stream.uniform() - 0.5);
            let own = 0.02 * (Streams::new(seed).row(Phase::Check, 1, i as u32).uniform() - 0.5);
            (r[i % 2] + shared + own) as f32
        };
        Look { values: (0..rows).map(value).collect(), pairs: 2 }
    }

    #[test]
    fn differences_have_their_errors() {
        let (better, worse) = (look([0.3, 0.3], 2000, 2), look([0.31, 0.3], 2000, 3));
        let (difference, error) = worse.worse_than(&better);
        let expected = 0.31 / 0.69 - 0.3 / 0.7;
        assert!(
            (difference - expected).abs() < 4.0 * error && error < 0.3 * expected,
            "{difference} ± {error}"
        );
        assert!(worse.is_worse(&better) && !better.is_worse(&worse) && !better.is_worse(&better));
        // A pair that rejects all is worse than one that rejects nearly all, and a number.
        let all = Look { values: vec![1.0; 10], pairs: 2 };
        assert!(all.is_worse(&look([0.5, 0.9], 10, 4)));
        let (mean, error) =
            Look { values: vec![2.0, 4.0], pairs: 0 }.worse_than(&Look { values: vec![1.0, 2.0], pairs: 0 });
        assert_eq!((mean, error), (1.5, (0.25f64 / 2.0).sqrt()));
    }

    #[test]
    fn trainings_end_where_all_gets_worse() {
        let mut looks = Looks::default();
        assert!(looks.note(500, look([0.5, 0.5], 500, 1)) && looks.note(1000, look([0.4, 0.4], 500, 2)));
        assert_eq!((looks.better_step(), looks.is_over()), (None, false));
        for k in 0..PATIENCE {
            assert!(!looks.is_over());
            assert!(!looks.note(1500, look([0.5, 0.4], 500, 5 + u64::from(k))));
        }
        assert_eq!((looks.better_step(), looks.is_over()), (Some(1000), true));
        // One that is as good ends the row.
        looks.note(4000, look([0.4, 0.4], 500, 3));
        assert_eq!((looks.better_step(), looks.is_over()), (None, false));
    }

    #[test]
    fn looks_are_a_twentieth_apart() {
        assert_eq!(Looks::next(0, 499), None);
        let all = |planned: u64| {
            std::iter::successors(Looks::next(0, planned), |&s| Looks::next(s, planned)).collect::<Vec<_>>()
        };
        assert_eq!(all(1200), [500, 1000]);
        assert_eq!(all(24_000).len(), 20);
        assert_eq!(all(30_011).last(), Some(&28_690));
    }
}
