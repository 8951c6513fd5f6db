//! A series of any length in bounded memory: whole while it is short, then means of blocks whose length doubles.
//!
//! Means stay exact. Errors come from the block means: a block is short against the whole series and long
//! against what correlates within it, so nothing is lost that matters.

use super::series::{effective_sample_size, long_run_variance};
use serde::{Deserialize, Serialize};

/// Numbers that a series keeps at most.
const MOST: usize = 1 << 17;
/// And at least, however many coordinates there are.
const LEAST: usize = 1 << 12;
/// In more dimensions than this they keep fewer, together so many of all coordinates where neither bound says otherwise.
const WIDE: usize = 128;
const TOGETHER: usize = 1 << 23;

/// Numbers that the series of each of `dim` coordinates keeps: the fewer, the more of them there are, so that a ladder takes no more
/// memory for them in a thousand dimensions than in a hundred.
///
/// ```
/// use sterna::estimates::most_kept;
/// assert_eq!([1, 128, 500, 100_000].map(most_kept), [1 << 17, 1 << 17, 1 << 14, 1 << 12]);
/// ```
pub fn most_kept(dim: usize) -> usize {
    if dim <= WIDE {
        return MOST;
    }
    1 << (TOGETHER / dim).clamp(LEAST, MOST).ilog2()
}

/// A series, or its block means once it is longer than it may be.
///
/// ```
/// use sterna::estimates::Series;
/// let mut series = Series::new(4);
/// (1..=6).for_each(|x| series.push(x as f64));
/// // Four numbers fill it: from then on it keeps means of two.
/// assert_eq!((series.block(), series.means()), (2, &[1.5, 3.5, 5.5][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    most: usize,
    block: u64,
    means: Vec<f64>,
    /// Sum and number of those that do not fill a block yet.
    open: (f64, u64),
    count: u64,
    mean: f64,
    /// Σ (x − mean)² over single numbers.
    squares: f64,
}

impl Series {
    /// Empty, and never longer than `most`, which is even.
    pub fn new(most: usize) -> Self {
        Self { most, block: 1, means: Vec::new(), open: (0.0, 0), count: 0, mean: 0.0, squares: 0.0 }
    }

    /// Room for so many more numbers, as far as they are kept.
    pub fn reserve(&mut self, more: u64) {
        let more = usize::try_from(more / self.block + 1).unwrap_or(self.most);
        self.means.reserve_exact(more.min(self.most.saturating_sub(self.means.len())));
    }

    /// Whether all is as `push` leaves it: a file may claim anything.
    pub(crate) fn is_sound(&self, most: usize) -> bool {
        self.most == most
            && self.count < 1 << 60
            && self.means.len() < most
            && self.block.is_power_of_two()
            && self.open.1 < self.block
            && (self.means.len() as u64).checked_mul(self.block).and_then(|n| n.checked_add(self.open.1))
                == Some(self.count)
    }

    /// Adds a number.
    pub fn push(&mut self, x: f64) {
        self.count += 1;
        let away = x - self.mean;
        self.mean += away / self.count as f64;
        self.squares += away * (x - self.mean);
        if self.block == 1 {
            self.means.push(x);
        } else {
            self.open = (self.open.0 + x, self.open.1 + 1);
            if self.open.1 < self.block {
                return;
            }
            self.means.push(self.open.0 / self.block as f64);
            self.open = (0.0, 0);
        }
        if self.means.len() == self.most {
            for i in 0..self.most / 2 {
                self.means[i] = 0.5 * (self.means[2 * i] + self.means[2 * i + 1]);
            }
            self.means.truncate(self.most / 2);
            self.block *= 2;
        }
    }

    /// Numbers so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Length of a block: 1 while the series is whole.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// The mean of all.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The series itself, or the means of its blocks.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// Mean and its standard error.
    pub fn mean_with_error(&self) -> (f64, f64) {
        if self.block == 1 {
            return super::series::mean_with_error(&self.means);
        }
        (self.mean, self.variance_of_mean().sqrt())
    }

    /// Squared standard error of the mean.
    pub(super) fn variance_of_mean(&self) -> f64 {
        let blocks = self.means.len() as f64;
        // What does not fill a block yet is in the mean as well.
        long_run_variance(&self.means) / blocks * (blocks * self.block as f64 / self.count as f64)
    }
}

/// Effective number of independent draws over several series of one length, as
/// [`effective_sample_size`] counts them.
pub fn effective_draws(ladders: &[&Series]) -> f64 {
    let means: Vec<&[f64]> = ladders.iter().map(|s| s.means()).collect();
    let blocks = effective_sample_size(&means);
    if ladders.iter().all(|s| s.block == 1) {
        return blocks;
    }
    // The error of the mean is the same; the variance it is compared with is that of single draws.
    let n = ladders.len() as f64;
    let single = ladders.iter().map(|s| s.squares / (s.count as f64 - 1.0)).sum::<f64>() / n;
    let of_blocks = |s: &&Series| {
        let mean = s.means.iter().sum::<f64>() / s.means.len() as f64;
        s.means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (s.means.len() as f64 - 1.0)
    };
    let averaged = ladders.iter().map(of_blocks).sum::<f64>() / n;
    let grand = ladders.iter().map(|s| s.mean).sum::<f64>() / n;
    let between = match ladders.len() {
        1 => 0.0,
        _ => ladders.iter().map(|s| (s.mean - grand).powi(2)).sum::<f64>() / (n - 1.0),
    };
    blocks * (single + between) / (averaged + between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn autoregressive(n: usize, phi: f64, seed: u64) -> Vec<f64> {
        let mut stream = Streams::new(seed).row(Phase::Check, 0, 0);
        let mut x = stream.normal() / (1.0 - phi * phi).sqrt();
        (0..n)
            .map(|_| {
                x = phi * x + stream.normal();
                x
            })
            .collect()
    }

    fn kept(values: &[f64], most: usize) -> Series {
        let mut series = Series::new(most);
        values.iter().for_each(|&x| series.push(x));
        assert!(series.is_sound(most));
        series
    }

    #[test]
    fn a_short_series_is_whole() {
        let values = autoregressive(1000, 0.5, 1);
        let series = kept(&values, 1024);
        assert_eq!(series.means(), values);
        assert_eq!(series.mean_with_error(), super::super::series::mean_with_error(&values));
        assert_eq!(effective_draws(&[&series]), effective_sample_size(&[&values]));
    }

    /// Errors and effective sizes of 20 series agree with those of the whole ones to a few per cent, far
    /// less than they are known to; means agree to rounding.
    #[test]
    fn blocks_lose_nothing_that_matters() {
        for phi in [0.0, 0.8] {
            let (mut errors, mut sizes) = (0.0, 0.0);
            for seed in 0..20 {
                let values = autoregressive(100_000, phi, seed);
                let series = kept(&values, 1 << 12);
                assert_eq!(series.block(), 32);
                let (whole, blocks) =
                    (super::super::series::mean_with_error(&values), series.mean_with_error());
                assert!((whole.0 - blocks.0).abs() < 1e-12);
                errors += blocks.1 / whole.1 / 20.0;
                sizes += effective_draws(&[&series]) / effective_sample_size(&[&values]) / 20.0;
            }
            assert!((errors - 1.0).abs() < 0.05 && (sizes - 1.0).abs() < 0.08, "{phi}: {errors} {sizes}");
        }
    }
}
