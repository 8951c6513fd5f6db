//! `traces.json`: what the report draws beyond the summary and the draws.

use serde::{Deserialize, Serialize};
use sterna::run::Run;
use sterna::trace::{LadderTrace, NO_ENERGY, RoundTrace};

/// Bins of a histogram.
const BINS: usize = 48;
/// Works that a histogram looks at, evenly spread over ladders and time.
const VALUES: usize = 200_000;

/// Counts in bins of equal width.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Width of a bin.
    pub width: f64,
    /// Values in each bin.
    pub counts: Vec<u64>,
    /// Finite values below and above all bins.
    pub outside: u64,
    /// Values that were not finite.
    pub not_finite: u64,
}

impl Histogram {
    /// Empty bins that hold all but half a per cent of the values at either end, with a margin.
    pub fn around(values: &[f64]) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return Self::default() };
        let (low, high) = (sorted[last / 200], sorted[last - last / 200]);
        let margin = (0.05 * (high - low)).max(1e-9 * low.abs().max(1.0));
        let width = (high - low + 2.0 * margin) / BINS as f64;
        Self { low: low - margin, width, counts: vec![0; BINS], ..Self::default() }
    }

    /// Adds values.
    pub fn add(&mut self, values: &[f64]) {
        for &x in values {
            let bin = (x - self.low) / self.width;
            if !x.is_finite() {
                self.not_finite += 1;
            } else if bin >= 0.0 && bin < self.counts.len() as f64 {
                self.counts[bin as usize] += 1;
            } else {
                self.outside += 1;
            }
        }
    }

    /// Probability density in each bin, of all finite values.
    pub fn density(&self) -> Vec<f64> {
        let total = (self.counts.iter().sum::<u64>() + self.outside) as f64;
        self.counts.iter().map(|&count| count as f64 / (total * self.width)).collect()
    }

    /// End of the last bin.
    pub fn high(&self) -> f64 {
        self.low + self.width * self.counts.len() as f64
    }
}

/// Chains of some replicas over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexProcess {
    /// The replicas.
    pub replicas: Vec<u32>,
    /// Iterations between two entries; the first entry is at this iteration.
    pub stride: u64,
    /// Chain of each replica at each entry.
    pub chains: Vec<Vec<u32>>,
}

/// Log-weights of a pair in both directions, in the same bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Works {
    /// Of forward paths.
    pub forward: Histogram,
    /// Of backward paths.
    pub backward: Histogram,
}

/// All of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traces {
    /// Replicas of the first ladder in each of the first iterations.
    pub start: IndexProcess,
    /// The same over the whole run.
    pub index: IndexProcess,
    /// Iterations, and round trips of all ladders by then.
    pub round_trips: Vec<(u64, u64)>,
    /// What energies are: "target" for the target's log density, "chain" for the chain's own.
    pub energy: String,
    /// Where chains differ too much for one scale: the highest log density, and histograms are of
    /// ln(1 + how far below it).
    pub energy_top: Option<f64>,
    /// Log densities of each chain's points.
    pub energies: Vec<Histogram>,
    /// Works of each pair.
    pub works: Vec<Works>,
    /// How tuning went.
    pub rounds: Vec<RoundTrace>,
}

impl Traces {
    /// What a run remembers; `diffusion` says that the path is not made of the target's density.
    pub fn new(run: &Run, diffusion: bool) -> Self {
        let ladders: Vec<&LadderTrace> = run.traces().collect();
        let mut out = Self { rounds: run.rounds().to_vec(), ..Self::default() };
        let Some(first) = ladders.first() else { return out };
        let replicas = &first.replicas;
        let by_replica = |rows: &[&[u32]]| -> Vec<Vec<u32>> {
            (0..replicas.len()).map(|m| rows.iter().map(|row| row[m]).collect()).collect()
        };
        let rows: Vec<&[u32]> = first.start.chunks_exact(replicas.len()).collect();
        out.start = IndexProcess { replicas: replicas.clone(), stride: 1, chains: by_replica(&rows) };
        let rows: Vec<&[u32]> = first.index.iter().map(|(_, row)| row).collect();
        out.index = IndexProcess {
            replicas: replicas.clone(),
            stride: first.index.stride(),
            chains: by_replica(&rows),
        };
        out.round_trips = LadderTrace::total_round_trips(ladders.iter().copied());
        out.energy = if diffusion { "chain" } else { "target" }.into();
        let chains = run.settings().chains;
        (out.energy_top, out.energies) = energies(&ladders, chains);
        out.works = (0..chains - 1).map(|pair| works(run, pair)).collect();
        out
    }
}

fn energies(ladders: &[&LadderTrace], chains: usize) -> (Option<f64>, Vec<Histogram>) {
    let number = |e: f64| if e == NO_ENERGY { f64::NEG_INFINITY } else { e };
    let entries = || ladders.iter().filter_map(|ladder| ladder.energies.as_ref()).flat_map(|e| e.iter());
    let mut values: Vec<Vec<f64>> =
        (0..chains).map(|chain| entries().map(|(_, row)| number(row[chain])).collect()).collect();
    let spread = |values: &Vec<f64>| Histogram::around(values).width;
    let widths = || values.iter().map(spread).filter(|w| *w > 0.0);
    let (narrow, broad) = (widths().fold(f64::INFINITY, f64::min), widths().fold(0.0, f64::max));
    let top = values.iter().flatten().copied().filter(|e| e.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let top = Some(top).filter(|top| top.is_finite() && broad > 20.0 * narrow);
    if let Some(top) = top {
        values.iter_mut().flatten().for_each(|e| *e = (top - *e).ln_1p());
    }
    let histogram = |values: &Vec<f64>| {
        let mut histogram = Histogram::around(values);
        histogram.add(values);
        histogram
    };
    (top, values.iter().map(histogram).collect())
}

fn works(run: &Run, pair: usize) -> Works {
    let pairs = run.settings().chains - 1;
    let records = || run.records().flat_map(|r| r.counts.pairs.iter().skip(pair).step_by(pairs));
    let most = (VALUES / run.settings().ensembles).max(100);
    let some = |values: &[f64]| -> Vec<f64> {
        values.iter().step_by(values.len().div_ceil(most).max(1)).copied().collect()
    };
    let forward: Vec<f64> = records().flat_map(|r| some(&r.forward)).collect();
    let backward: Vec<f64> = records().flat_map(|r| some(&r.backward)).collect();
    let empty = Histogram::around(&[&forward[..], &backward[..]].concat());
    let mut out = Works { forward: empty.clone(), backward: empty };
    out.forward.add(&forward);
    out.backward.add(&backward);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let mut values: Vec<f64> = (0..1000).map(|i| f64::from(i) / 10.0).collect();
        values.extend([f64::NAN, f64::NEG_INFINITY, 1e9]);
        let mut histogram = Histogram::around(&values);
        histogram.add(&values);
        assert_eq!(histogram.counts.iter().sum::<u64>() + histogram.outside, 1001);
        assert_eq!(histogram.not_finite, 2);
        assert!(histogram.outside >= 1 && histogram.high() < 200.0);
        let mass: f64 = histogram.density().iter().map(|d| d * histogram.width).sum();
        assert!(mass > 0.98 && mass <= 1.0);
    }

    #[test]
    fn one_value_and_none_are_no_trouble() {
        for values in [&[][..], &[3.0], &[0.0, 0.0], &[f64::NAN]] {
            let mut histogram = Histogram::around(values);
            histogram.add(values);
            assert_eq!(histogram.counts.iter().sum::<u64>() + histogram.not_finite, values.len() as u64);
        }
    }
}
