//! `traces.json`: what the report draws beyond the summary and the draws.

use crate::summary::{About, Ess, UNNAMED, number};
use serde::{Deserialize, Serialize};
use sterna::Target;
use sterna::run::Run;
use sterna::streams::{Phase, Streams};
use sterna::trace::{LadderTrace, NO_ENERGY, RoundTrace};

/// Bins of a histogram.
const BINS: usize = 48;
/// Quartiles beyond the middle half that a histogram of works shows.
const REACH: f64 = 6.0;
/// Works that a histogram looks at, evenly spread over ladders and time.
const VALUES: usize = 200_000;
/// Coordinates that a report shows.
const COORDINATES: usize = 6;
/// Exact draws to compare with, and numbers that are drawn for them.
const EXACT: usize = 10_000;
const EXACT_NUMBERS: usize = 5_000_000;

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
        let total: f64 = self.counts.iter().chain([&self.outside]).map(|count| *count as f64).sum();
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

/// log Z after some iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Growing {
    /// So many.
    pub iterations: u64,
    /// From each leg alone.
    #[serde(deserialize_with = "number::list")]
    pub log_z: Vec<f64>,
    /// Its standard error.
    #[serde(deserialize_with = "number::list")]
    pub error: Vec<f64>,
}

/// What energies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Energy {
    /// The target's log density.
    #[default]
    Target,
    /// The chain's own.
    Chain,
}

/// Draws of some coordinates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which coordinates, the slowest first.
    pub coordinates: Vec<usize>,
    /// Values of each, draw by draw.
    pub values: Vec<Vec<f32>>,
}

impl Sample {
    /// Exact draws of the coordinates that a report shows; none if the target cannot draw.
    pub fn exact(target: &dyn Target, seed: u64, ess: &Ess) -> Option<Self> {
        let coordinates = slowest(&ess.coordinates);
        let streams = Streams::new(seed);
        let mut x = vec![0.0; target.dim()];
        let mut values = vec![Vec::new(); coordinates.len()];
        // Not more numbers than the clock allows.
        let draws = EXACT.min(EXACT_NUMBERS / target.dim().max(1)).max(500);
        for i in 0..draws {
            if !target.draw(&mut streams.row(Phase::Exact, 0, i as u32), &mut x) {
                return None;
            }
            values.iter_mut().zip(&coordinates).for_each(|(out, &j)| out.push(x[j] as f32));
        }
        Some(Self { coordinates, values })
    }
}

/// The coordinates that a report shows: those with the fewest effective draws, where trouble shows first.
pub fn slowest(ess: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ess.len()).collect();
    let rank = |i: &usize| if ess[*i].is_nan() { f64::INFINITY } else { ess[*i] };
    order.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    order.truncate(COORDINATES);
    order
}

/// All of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traces {
    /// Replicas of the first ladder in each of the first iterations.
    pub start: IndexProcess,
    /// The same over the whole run.
    pub index: IndexProcess,
    /// Iterations, and round trips of all ladders by then.
    pub round_trips: Vec<(u64, u64)>,
    /// How log Z came to be what it is.
    pub log_z: Vec<Growing>,
    /// What energies are.
    pub energy: Energy,
    /// Where chains differ too much for one scale: the highest log density, and histograms are of
    /// ln(1 + how far below it).
    pub energy_top: Option<f64>,
    /// Log densities of each chain's points.
    pub energies: Vec<Histogram>,
    /// Works of each pair.
    pub works: Vec<Works>,
    /// How tuning went.
    pub rounds: Vec<RoundTrace>,
    /// What it aimed at, and other words of the charts.
    pub labels: Labels,
    /// Exact draws to compare with, where the target can draw.
    pub exact: Option<Sample>,
}

/// What charts say beside numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Names of the target's parameters, one for each coordinate; none if they have none.
    pub parameters: Vec<String>,
    /// Acceptance that step sizes were adapted to, if they were.
    pub wanted_acceptance: Option<f64>,
    /// The loss that networks are trained with.
    pub loss: String,
    /// Rounds of training.
    pub training_rounds: u64,
}

impl Labels {
    fn of(run: &Run, about: &About) -> Self {
        Self {
            parameters: about.parameters.clone(),
            wanted_acceptance: crate::alarms::wanted_acceptance(run),
            loss: about.loss.clone(),
            training_rounds: run.settings().fits as u64,
        }
    }

    /// What a coordinate is called, as in draws.nc.
    pub fn coordinate(&self, i: usize) -> String {
        self.parameters.get(i).cloned().unwrap_or_else(|| format!("{UNNAMED}[{i}]"))
    }
}

impl Traces {
    /// What a run remembers.
    pub fn new(run: &Run, about: &About) -> Self {
        let ladders: Vec<&LadderTrace> = run.traces().collect();
        let labels = Labels::of(run, about);
        let mut out = Self { rounds: run.rounds().to_vec(), labels, ..Self::default() };
        let Some(first) = ladders.first() else { return out };
        (out.start, out.index) = index_processes(first);
        out.round_trips = LadderTrace::total_round_trips(ladders.iter().copied());
        // The path in use: a learned one may have been given up.
        out.energy = if run.sampler().path.keeps_target() { Energy::Target } else { Energy::Chain };
        let chains = run.sampler().schedule.chains();
        (out.energy_top, out.energies) = energies(&ladders, chains);
        let growing = |(iterations, legs): (u64, Vec<(f64, f64)>)| {
            let (log_z, error) = legs.into_iter().unzip();
            Growing { iterations, log_z, error }
        };
        out.log_z = run.log_z_so_far().into_iter().map(growing).collect();
        out.works = (0..chains - 1).map(|pair| works(run, pair)).collect();
        out
    }

    /// Whether lists that belong together are equally long: a file may claim anything.
    pub fn is_sound(&self, chains: usize) -> bool {
        let process = |p: &IndexProcess| {
            let entries = p.chains.first().map_or(0, Vec::len);
            let is_chain = |chain: &u32| (*chain as usize) < chains;
            p.chains.len() == p.replicas.len()
                && p.chains.iter().all(|all| all.len() == entries && all.iter().all(is_chain))
        };
        let legs = self.log_z.first().map_or(0, |first| first.log_z.len());
        let growing = |g: &Growing| g.log_z.len() == legs && g.error.len() == legs;
        let works = |w: &Works| w.forward.counts.len() == w.backward.counts.len();
        let round = |r: &RoundTrace| r.step_size.len() == r.acceptance.len();
        let sample = |s: &Sample| {
            let draws = s.values.first().map_or(0, Vec::len);
            s.values.len() == s.coordinates.len() && s.values.iter().all(|values| values.len() == draws)
        };
        [0, chains].contains(&self.energies.len())
            && self.works.len() < chains
            && process(&self.start)
            && process(&self.index)
            && self.log_z.iter().all(growing)
            && self.works.iter().all(works)
            && self.rounds.iter().all(round)
            && self.exact.iter().all(sample)
    }
}

/// The first iterations one by one, and the whole run.
fn index_processes(ladder: &LadderTrace) -> (IndexProcess, IndexProcess) {
    let replicas = &ladder.replicas;
    let by_replica = |stride: u64, rows: &[&[u32]]| IndexProcess {
        replicas: replicas.clone(),
        stride,
        chains: (0..replicas.len()).map(|m| rows.iter().map(|row| row[m]).collect()).collect(),
    };
    let start: Vec<&[u32]> = ladder.start.chunks_exact(replicas.len()).collect();
    let whole: Vec<&[u32]> = ladder.index.iter().map(|(_, row)| row).collect();
    (by_replica(1, &start), by_replica(ladder.index.stride(), &whole))
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

/// Values within some quartiles of the middle half: a tail that is far longer than all else would leave the rest one bin.
fn near(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return sorted };
    let (low, high) = (sorted[last / 4], sorted[last - last / 4]);
    let reach = REACH * (high - low);
    sorted.retain(|x| (low - reach..=high + reach).contains(x));
    sorted
}

fn works(run: &Run, pair: usize) -> Works {
    let pairs = run.sampler().schedule.pairs();
    let records = || run.records().flat_map(|r| r.counts.pairs.iter().skip(pair).step_by(pairs));
    let most = (VALUES / run.settings().ensembles).max(100);
    let some = |values: &[f64]| -> Vec<f64> {
        values.iter().step_by(values.len().div_ceil(most).max(1)).copied().collect()
    };
    let forward: Vec<f64> = records().flat_map(|r| some(&r.forward)).collect();
    let backward: Vec<f64> = records().flat_map(|r| some(&r.backward)).collect();
    let empty = Histogram::around(&[near(&forward), near(&backward)].concat());
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
    fn long_tails_leave_the_middle_its_bins() {
        let mut values: Vec<f64> = (0..=100).map(f64::from).collect();
        values.extend([-1e6, 380.0, 700.0, f64::NAN]);
        let kept = near(&values);
        assert!(kept.len() == 102 && kept[0] == 0.0 && kept[101] == 380.0, "{kept:?}");
        assert!(near(&[]).is_empty() && near(&[3.0]) == [3.0]);
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
