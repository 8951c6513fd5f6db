//! Do ladders that started apart, and the two halves of a run, agree about where the mass is?
//!
//! Every ladder's draws are halved, every half cut into ten batches. For each coordinate and each quartile
//! of all draws together, the share of draws below it is compared: between halves against between batches
//! of the same half, by the F statistic of a one-way analysis of variance. Batch means take the place of
//! a correction for autocorrelation, as long as a batch is longer than the memory of the chain; where it
//! is not, halves that disagree are just what should be told.

use sterna::records::Draws;
use sterna_testkit::p_values::log_gamma;

/// Probability that a run without a fault raises the alarm: shared by all coordinates and quartiles.
pub const FALSE_ALARM: f64 = 1e-4;

const BATCHES: usize = 10;
/// Draws of a coordinate that are looked at, and coordinates: not too many for the clock.
const DRAWS: usize = 100_000;
const COORDINATES: usize = 256;

/// Where halves disagree most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disagreement {
    /// Coordinate, from 0.
    pub coordinate: usize,
    /// The quartile.
    pub threshold: f64,
    /// Smallest share of draws below it, over the halves of all ladders.
    pub lowest: f64,
    /// Largest share.
    pub highest: f64,
    /// Of the whole family of comparisons.
    pub p_value: f64,
}

/// The worst disagreement, if it is beyond chance.
pub fn disagreement(ladders: &[&Draws], dim: usize) -> Option<Disagreement> {
    let draws = ladders.iter().map(|d| d.x.len() / dim.max(1)).min()?;
    let length = draws / (2 * BATCHES);
    if length < 10 {
        return None;
    }
    let stride = length.div_ceil((DRAWS / (2 * BATCHES * ladders.len())).max(10));
    let coordinates: Vec<usize> = (0..dim).step_by(dim.div_ceil(COORDINATES)).collect();
    let comparisons = 3.0 * coordinates.len() as f64;
    let mut worst: Option<Disagreement> = None;
    for &coordinate in &coordinates {
        // Batches of all ladders, one after the other; what does not fill one is left out.
        let batch = |ladder: &Draws, b: usize| -> Vec<f64> {
            let first = b * length;
            (first..first + length).step_by(stride).map(|i| ladder.x[i * dim + coordinate]).collect()
        };
        let batches: Vec<Vec<f64>> =
            ladders.iter().flat_map(|ladder| (0..2 * BATCHES).map(|b| batch(ladder, b))).collect();
        let mut all: Vec<f64> = batches.concat();
        for quarter in 1..4 {
            let place = quarter * all.len() / 4;
            let threshold = *all.select_nth_unstable_by(place, f64::total_cmp).1;
            let below = |batch: &Vec<f64>| {
                batch.iter().filter(|x| **x < threshold).count() as f64 / batch.len() as f64
            };
            let shares: Vec<f64> = batches.iter().map(below).collect();
            let halves: Vec<f64> = shares.chunks(BATCHES).map(mean).collect();
            let p_value = (comparisons * analysis_of_variance(&shares, &halves)).min(1.0);
            if worst.is_none_or(|w| p_value < w.p_value) {
                let lowest = halves.iter().copied().fold(1.0, f64::min);
                let highest = halves.iter().copied().fold(0.0, f64::max);
                worst = Some(Disagreement { coordinate, threshold, lowest, highest, p_value });
            }
        }
    }
    worst.filter(|w| w.p_value < FALSE_ALARM)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// p-value of all groups of [`BATCHES`] values having one mean.
fn analysis_of_variance(values: &[f64], means: &[f64]) -> f64 {
    let grand = mean(means);
    let between: f64 = means.iter().map(|m| BATCHES as f64 * (m - grand).powi(2)).sum();
    let within: f64 =
        values.chunks(BATCHES).zip(means).flat_map(|(c, m)| c.iter().map(move |v| (v - m).powi(2))).sum();
    let (k, n) = (means.len() as f64 - 1.0, (values.len() - means.len()) as f64);
    if between <= 1e-12 {
        return 1.0;
    }
    // P(F > f) = I(n/2, k/2) at n/(n + k f).
    incomplete_beta(0.5 * n, 0.5 * k, within / (within + between))
}

/// Regularised incomplete beta function, by Lentz's continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly on one side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::streams::{Phase, Streams};

    /// I(2, 3) is a polynomial; F with 1 and n degrees is Student's t squared.
    #[test]
    fn incomplete_beta_in_closed_form() {
        for x in [0.01f64, 0.2, 0.5, 0.9] {
            let exact = 6.0 * x.powi(2) - 8.0 * x.powi(3) + 3.0 * x.powi(4);
            assert!((incomplete_beta(2.0, 3.0, x) - exact).abs() < 1e-12, "{x}");
        }
        // P(|t| > 1) with one degree of freedom is one half.
        assert!((incomplete_beta(0.5, 0.5, 0.5) - 0.5).abs() < 1e-12);
    }

    /// A chain between two humps that changes sides with a given probability.
    fn switching(seed: u64, ladder: u32, draws: usize, probability: f64) -> Draws {
        let mut stream = Streams::new(seed).row(Phase::Check, 1, ladder);
        let mut side = if stream.uniform() < 0.5 { 1.0 } else { -1.0 };
        let mut x = Vec::new();
        for _ in 0..draws {
            if stream.uniform() < probability {
                side = -side;
            }
            x.extend([3.0 * side + stream.normal(), stream.normal()]);
        }
        Draws { x, ..Draws::default() }
    }

    fn found(seed: u64, ladders: u32, draws: usize, probability: f64) -> bool {
        let all: Vec<Draws> = (0..ladders).map(|l| switching(seed, l, draws, probability)).collect();
        disagreement(&all.iter().collect::<Vec<_>>(), 2).is_some()
    }

    /// 400 sound runs raise 0.04 alarms on average if the level is right: two or more by chance once in a
    /// thousand. Batches of 200 draws, of a chain that forgets its side in 5.
    #[test]
    fn sound_runs_raise_no_alarm() {
        let alarms = (0..400).filter(|&seed| found(seed, 1 + (seed % 4) as u32, 4000, 0.1)).count();
        assert!(alarms < 2, "{alarms} of 400");
    }

    /// Chains that change sides about once in a run: nearly all are caught.
    #[test]
    fn stuck_ladders_are_found() {
        let alarms = (0..50).filter(|&seed| found(seed, 4, 4000, 0.0003)).count();
        assert!(alarms > 40, "{alarms} of 50");
    }

    #[test]
    fn too_few_draws_say_nothing() {
        assert!(!found(1, 4, 100, 0.0));
        assert!(disagreement(&[], 2).is_none());
        // A coordinate that never moves is no disagreement.
        let still = Draws { x: vec![1.0; 1000], ..Draws::default() };
        assert!(disagreement(&[&still, &still], 1).is_none());
    }
}
