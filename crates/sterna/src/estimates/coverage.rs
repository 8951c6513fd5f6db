//! Mode coverage: do later draws stay where earlier samples were?
//!
//! A point lies *outside* if it is farther from its nearest sample than any sample is from its own nearest
//! (of those that are not its neighbours in time), or if a coordinate leaves the range of the samples. Of n
//! independent samples, each of these 2d + 1 scores is beyond the largest of n with a probability p, for
//! which P(p > c/n) ≤ e⁻ᶜ. So a share of later draws above c/n, by z of its standard errors, means that they
//! come from elsewhere. c and z are such that over all scores the false-alarm level is 10⁻⁴; n is the
//! effective number of samples, that of the slowest coordinate.

use super::series::{effective_sample_size, mean_with_error};
use crate::Batch;
use crate::lanes::one::ln;
use serde::{Deserialize, Serialize};

/// Probability of an alarm where later draws have the samples' law.
const FALSE_ALARM: f64 = 1e-4;
/// Samples that are kept, evenly spread over time.
const KEPT: usize = 1000;
/// Draws that are looked at, evenly spread.
const LOOKED_AT: usize = 5000;

/// Where samples lay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    samples: Batch,
    /// The largest squared distance of a sample to its nearest.
    farthest: f64,
    low: Vec<f64>,
    high: Vec<f64>,
    effective: f64,
}

/// Draws that lie where samples did not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Their share among the draws.
    pub share: f64,
    /// The share that so many samples allow.
    pub allowed: f64,
}

impl Seen {
    /// Looks at samples in their order of time. None if there are too few to say anything.
    pub fn new(samples: &Batch) -> Option<Self> {
        let (n, dim) = (samples.rows(), samples.dim());
        let effective = (0..dim)
            .map(|j| {
                let series: Vec<f64> = samples.iter_rows().map(|row| row[j]).collect();
                effective_sample_size(&[&series])
            })
            .fold(f64::INFINITY, |least, ess| if ess.is_nan() { 0.0 } else { least.min(ess) });
        if effective < 1.0 {
            return None;
        }
        let stride = n.div_ceil(KEPT);
        let kept: Vec<&[f64]> = (0..n).step_by(stride).map(|i| samples.row(i)).collect();
        // Neighbours in time are near for that reason alone.
        let apart = (2.0 * n as f64 / effective / stride as f64).ceil() as usize;
        let nearest = |i: usize| {
            let others = (0..kept.len()).filter(|j| i.abs_diff(*j) > apart.min(kept.len() / 4));
            others.map(|j| distance(kept[i], kept[j])).fold(f64::INFINITY, f64::min)
        };
        let farthest = (0..kept.len()).map(nearest).fold(0.0, f64::max);
        let bound = |pick: fn(f64, f64) -> f64, start: f64| {
            (0..dim).map(|j| samples.iter_rows().map(|row| row[j]).fold(start, pick)).collect()
        };
        Some(Self {
            farthest,
            low: bound(f64::min, f64::INFINITY),
            high: bound(f64::max, f64::NEG_INFINITY),
            effective: effective.min(kept.len() as f64),
            samples: Batch::from_vec(dim, kept.concat()),
        })
    }

    /// What of later draws lies outside, if it is more than chance explains; ladder by ladder, each with its
    /// points one after the other.
    pub fn outside(&self, ladders: &[&[f64]]) -> Option<Outside> {
        let dim = self.samples.dim();
        let draws: usize = ladders.iter().map(|points| points.len() / dim).sum();
        let stride = draws.div_ceil(LOOKED_AT).max(1);
        let looked_at = |points: &[f64]| -> Vec<Vec<f64>> {
            points.chunks_exact(dim).step_by(stride).map(<[f64]>::to_vec).collect()
        };
        let ladders: Vec<Vec<Vec<f64>>> = ladders.iter().map(|points| looked_at(points)).collect();
        let scores = 2 * dim + 1;
        // Half of the level for the samples, half for the draws, shared by the scores.
        let c = ln(scores as f64 / (0.5 * FALSE_ALARM));
        let z = (2.0 * c).sqrt();
        let allowed = c / self.effective;
        let is_outside = |score: usize, x: &[f64]| match score {
            0 => !self.samples.iter_rows().any(|sample| distance(sample, x) <= self.farthest),
            score if score <= dim => x[score - 1] < self.low[score - 1],
            score => x[score - dim - 1] > self.high[score - dim - 1],
        };
        let share = |score: usize| {
            let each: Vec<(f64, f64)> = ladders
                .iter()
                .map(|ladder| {
                    let marks: Vec<f64> =
                        ladder.iter().map(|x| f64::from(u8::from(is_outside(score, x)))).collect();
                    mean_with_error(&marks)
                })
                .collect();
            let n = each.len() as f64;
            let error = each.iter().map(|(_, error)| error * error).sum::<f64>().sqrt() / n;
            (each.iter().map(|(mean, _)| mean).sum::<f64>() / n, error)
        };
        (0..scores)
            .map(share)
            .filter(|(share, error)| share - z * error > allowed)
            .map(|(share, _)| Outside { share, allowed })
            .max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// Series that stay near one of the centres for a while, with normal points around it.
    fn series(seed: u64, n: usize, centres: &[[f64; 2]], stay: f64) -> Vec<f64> {
        let mut stream = Streams::new(seed).row(Phase::Check, 0, 0);
        let mut centre = stream.below(centres.len());
        (0..n)
            .flat_map(|_| {
                if stream.uniform() > stay {
                    centre = stream.below(centres.len());
                }
                centres[centre].map(|c| c + 0.2 * stream.normal())
            })
            .collect()
    }

    const CENTRES: [[f64; 2]; 3] = [[0.0, 0.0], [3.0, 0.0], [1.5, 2.0]];

    /// The level is 10⁻⁴: of 100 comparisons of the same law none may alarm but for 1%.
    #[test]
    fn the_same_law_gives_no_alarm() {
        for seed in 0..100 {
            let seen = Seen::new(&Batch::from_vec(2, series(seed, 2000, &CENTRES, 0.8))).unwrap();
            let later = series(1000 + seed, 10_000, &CENTRES, 0.8);
            assert_eq!(seen.outside(&[&later]), None, "seed {seed}");
            let (a, b) = later.split_at(10_000);
            assert_eq!(seen.outside(&[a, b]), None, "seed {seed}, two ladders");
        }
    }

    /// The broken twin: samples that never saw one of the modes.
    #[test]
    fn a_missing_mode_gives_an_alarm() {
        for missing in 0..3 {
            let some: Vec<[f64; 2]> = (0..3).filter(|&k| k != missing).map(|k| CENTRES[k]).collect();
            let seen = Seen::new(&Batch::from_vec(2, series(1, 2000, &some, 0.8))).unwrap();
            let outside = seen.outside(&[&series(2, 10_000, &CENTRES, 0.8)]).expect("a third is new");
            assert!(outside.share > 0.2 && outside.allowed < 0.2, "{outside:?}");
        }
        // Between the others, so that no coordinate tells.
        let seen = Seen::new(&Batch::from_vec(2, series(3, 2000, &[[0.0, 0.0], [3.0, 3.0]], 0.8))).unwrap();
        assert!(seen.outside(&[&series(4, 10_000, &[[0.0, 3.0], [0.0, 0.0]], 0.8)]).is_some());
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert_eq!(Seen::new(&Batch::from_vec(1, vec![0.0; 3])), None);
        assert_eq!(Seen::new(&Batch::from_vec(1, vec![1.0; 100])), None);
        // Ten independent samples allow any share.
        let seen = Seen::new(&Batch::from_vec(2, series(5, 10, &CENTRES[..1], 0.0))).unwrap();
        assert_eq!(seen.outside(&[&series(6, 1000, &CENTRES[1..], 0.8)]), None);
    }
}
