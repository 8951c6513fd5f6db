//! How well chains have mixed, by ranks (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021): effective draws in bulk and
//! tails, and R̂ of halves of chains, with what chance explains of it.

use super::ranks::{bulk_draws, normal_scores, quantile, tail_draws};
use super::series::long_run_variance;

/// How well chains have mixed for one quantity. All are NaN for one that never changes.
///
/// ```
/// use sterna::estimates::mixing;
/// use sterna::streams::{Phase, Streams};
/// let mut stream = Streams::new(1).row(Phase::Check, 0, 0);
/// let chains: Vec<Vec<f64>> = (0..4).map(|_| (0..500).map(|_| stream.normal()).collect()).collect();
/// let chains: Vec<&[f64]> = chains.iter().map(|c| &c[..]).collect();
/// let found = mixing(&chains);
/// assert!(found.bulk > 1500.0 && found.tail > 1200.0 && found.r_hat < 1.01);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    /// Effective draws in the bulk.
    pub bulk: f64,
    /// Effective draws in the tails.
    pub tail: f64,
    /// Rank-normalised R̂ of the halves of chains: the larger of those for place and for spread.
    pub r_hat: f64,
    /// How far the halves are apart against what each says of its own mean: a χ² of [`degrees`](Self::degrees) where they
    /// have one law.
    pub apart: f64,
    /// Halves, less one.
    pub degrees: usize,
}

impl Mixing {
    const UNKNOWN: Self =
        Self { bulk: f64::NAN, tail: f64::NAN, r_hat: f64::NAN, apart: f64::NAN, degrees: 0 };
}

/// Of a quantity's series, chain by chain.
pub fn mixing(chains: &[&[f64]]) -> Mixing {
    let length = chains.iter().map(|c| c.len()).min().unwrap_or(0) / 2;
    let first = chains.first().and_then(|c| c.first()).copied().unwrap_or(f64::NAN);
    if length < 4 || chains.iter().all(|c| c.iter().all(|x| *x == first)) {
        return Mixing::UNKNOWN;
    }
    let halves: Vec<&[f64]> = chains.iter().flat_map(|c| [&c[..length], &c[c.len() - length..]]).collect();
    let place = between(&halves);
    let spread = between(&folded(&halves).iter().map(|h| &h[..]).collect::<Vec<_>>());
    // A quantity with two values has no spread of its own.
    let (r_hat, apart) = if spread.0 > place.0 { spread } else { place };
    Mixing { bulk: bulk_draws(chains), tail: tail_draws(chains), r_hat, apart, degrees: halves.len() - 1 }
}

/// Distances from the median of all.
fn folded(halves: &[&[f64]]) -> Vec<Vec<f64>> {
    let mut all: Vec<f64> = halves.concat();
    all.sort_unstable_by(f64::total_cmp);
    let median = quantile(&all, 0.5);
    halves.iter().map(|h| h.iter().map(|x| (x - median).abs()).collect()).collect()
}

/// R̂ of normal scores, and the χ² of their means.
fn between(halves: &[&[f64]]) -> (f64, f64) {
    let scores = normal_scores(halves);
    let (m, n) = (scores.len() as f64, scores[0].len() as f64);
    let mean = |h: &Vec<f64>| h.iter().sum::<f64>() / n;
    let means: Vec<f64> = scores.iter().map(mean).collect();
    let grand = means.iter().sum::<f64>() / m;
    let between = means.iter().map(|x| (x - grand).powi(2)).sum::<f64>() / (m - 1.0);
    let variance =
        |(h, mean): (&Vec<f64>, &f64)| h.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let within = scores.iter().zip(&means).map(variance).sum::<f64>() / m;
    // The mean of a half has this variance, by what the halves say of themselves.
    let of_mean = scores.iter().map(|h| long_run_variance(h)).sum::<f64>() / (m * n);
    (((n - 1.0) / n + between / within).sqrt(), (m - 1.0) * between / of_mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    /// Chains of an autoregression, each moved and widened.
    fn chains(seed: u64, n: usize, phi: f64, moved: &[(f64, f64)]) -> Vec<Vec<f64>> {
        let chain = |(i, (shift, scale)): (usize, &(f64, f64))| {
            let mut stream = Streams::new(seed).row(Phase::Check, 0, i as u32);
            let mut x = stream.normal();
            let mut next = || {
                x = phi * x + (1.0 - phi * phi).sqrt() * stream.normal();
                shift + scale * x
            };
            (0..n).map(|_| next()).collect()
        };
        moved.iter().enumerate().map(chain).collect()
    }

    fn of(chains: &[Vec<f64>]) -> Mixing {
        mixing(&chains.iter().map(|c| &c[..]).collect::<Vec<_>>())
    }

    /// Values of ArviZ (`az.rhat`, method "rank") for a series that any language writes.
    #[test]
    fn r_hat_is_that_of_arviz() {
        let wave = |shift: f64, speed: f64| -> Vec<f64> {
            (0..60).map(|t| shift + (speed * f64::from(t)).sin() + 0.01 * f64::from(t)).collect()
        };
        let found = of(&[wave(0.0, 1.0), wave(0.5, 1.3), wave(0.2, 0.7)]);
        assert!((found.r_hat - ARVIZ).abs() < 1e-9, "{}", found.r_hat);
    }
    const ARVIZ: f64 = 1.080_808_844_953_517_8;

    /// χ² with 7 degrees of freedom: the mean over 300 sets of chains is 7 to within 0.22, and slow chains, whose halves
    /// underestimate their memory, are a little above.
    #[test]
    fn halves_of_sound_chains_are_as_far_apart_as_chance_has_it() {
        for phi in [0.0, 0.9] {
            let mean = (0..300).map(|seed| of(&chains(seed, 2000, phi, &[(0.0, 1.0); 4])).apart).sum::<f64>()
                / 300.0;
            assert!((6.0..9.0).contains(&mean), "{phi}: {mean}");
        }
    }

    #[test]
    fn chains_that_differ_in_place_or_spread_are_told() {
        let sound = of(&chains(1, 1000, 0.3, &[(0.0, 1.0); 4]));
        assert!(sound.r_hat < 1.01 && sound.apart < 40.0 && sound.degrees == 7, "{sound:?}");
        for moved in [
            [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.7, 1.0)],
            [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 3.0)],
        ] {
            let found = of(&chains(1, 1000, 0.3, &moved));
            assert!(found.r_hat > 1.04 && found.apart > 100.0, "{found:?}");
        }
    }

    #[test]
    fn what_never_changes_or_is_too_short_is_unknown() {
        assert!(of(&[vec![1.0; 100], vec![1.0; 100]]).r_hat.is_nan());
        assert!(of(&[vec![1.0, 2.0, 3.0]]).bulk.is_nan());
        assert!(mixing(&[]).r_hat.is_nan());
    }
}
