//! What people look at: bounded memories of sampling, and of tuning round by round.
//!
//! Nothing here is used by an estimate. A memory that is full forgets every other entry and from then on
//! keeps half as many, so it always covers the whole run evenly, whatever its length. Which iterations
//! are kept depends on their number alone: the same bits for any number of threads and any cut of a run.

use crate::Ensemble;
use crate::records::MOST_COUNTED;
use serde::{Deserialize, Serialize};

/// Replicas of the first ladder whose chains are remembered.
const REPLICAS: usize = 12;
/// Iterations at the beginning of sampling that are remembered one by one.
const START: usize = 2048;
/// Entries of the thinned index process, and of round trips.
const ENTRIES: usize = 512;
/// Ladders whose energies are remembered, and how many of each chain.
const ENERGY_LADDERS: usize = 4;
const ENERGIES: usize = 1024;

/// Stands for a log density that is no finite number: files such as JSON have no infinities.
pub const NO_ENERGY: f64 = f64::MIN;

/// A bounded memory of rows over time: evenly spread, whatever the length of the run.
///
/// ```
/// use sterna::trace::Thinned;
/// let mut memory = Thinned::new(1, 4);
/// (1..=10u64).for_each(|time| memory.push(time, [time * time]));
/// // 1, 2, 3, 4 were too many with 5 to come; so were 2, 4, 6, 8 with 10.
/// let kept: Vec<_> = memory.iter().map(|(time, row)| (time, row[0])).collect();
/// assert_eq!(kept, [(4, 16), (8, 64)]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thinned<T> {
    width: usize,
    most: usize,
    stride: u64,
    values: Vec<T>,
}

impl<T: Copy> Thinned<T> {
    /// Room for at most `most` rows of `width` numbers.
    ///
    /// # Panics
    /// If `most` is not even.
    pub fn new(width: usize, most: usize) -> Self {
        assert!(most >= 2 && most.is_multiple_of(2), "halving needs an even number of rows, not {most}");
        Self { width, most, stride: 1, values: Vec::with_capacity(width * most) }
    }

    pub(crate) fn is_sound(&self, width: usize, most: usize) -> bool {
        let rows = self.values.len().checked_div(width).unwrap_or(0);
        (self.width, self.most) == (width, most)
            && self.stride.is_power_of_two()
            && self.values.len() == rows * width
            && rows <= most
    }

    /// Offers the row of a time; times count from 1 and must not leave any out.
    pub fn push(&mut self, time: u64, row: impl IntoIterator<Item = T>) {
        if !time.is_multiple_of(self.stride) {
            return;
        }
        if self.values.len() == self.width * self.most {
            self.halve();
            if !time.is_multiple_of(self.stride) {
                return;
            }
        }
        self.values.extend(row);
    }

    /// Keeps the rows at even multiples of the stride.
    fn halve(&mut self) {
        for kept in 0..self.most / 2 {
            let from = (2 * kept + 1) * self.width;
            self.values.copy_within(from..from + self.width, kept * self.width);
        }
        self.values.truncate(self.width * self.most / 2);
        self.stride *= 2;
    }

    /// Time and row of each entry.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[T])> {
        let rows = self.values.chunks_exact(self.width.max(1));
        rows.enumerate().map(|(i, row)| ((i as u64 + 1) * self.stride, row))
    }

    /// Time between entries.
    pub fn stride(&self) -> u64 {
        self.stride
    }
}

/// What is remembered of one ladder's sampling. Times are iterations since sampling began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderTrace {
    time: u64,
    round_trips_before: u64,
    /// The replicas whose chains are remembered: some of the first ladder's.
    pub replicas: Vec<u32>,
    /// Their chains in each of the first iterations, one row after the other.
    pub start: Vec<u32>,
    /// Their chains over the whole run.
    pub index: Thinned<u32>,
    /// Round trips so far, over the whole run.
    pub round_trips: Thinned<u64>,
    /// The target's log density of each chain's point, in the first few ladders; for a path that is not
    /// made of the target's density, such as a diffusion, the chain's own. [`NO_ENERGY`] where not finite.
    pub energies: Option<Thinned<f64>>,
}

impl LadderTrace {
    /// Whether sizes agree with each other: a file may claim anything.
    pub(crate) fn is_sound(&self, chains: usize) -> bool {
        let shown = self.replicas.len();
        self.replicas.iter().all(|&r| (r as usize) < chains)
            && self.start.len() <= shown * START
            && self.index.is_sound(shown, ENTRIES)
            && self.round_trips.is_sound(1, ENTRIES)
            && self.energies.as_ref().is_none_or(|e| e.is_sound(chains, ENERGIES))
    }

    /// Whether it can have been made by a ladder that has made so many round trips by now.
    pub(crate) fn follows(&self, round_trips: u64) -> bool {
        self.round_trips_before <= round_trips && self.time < MOST_COUNTED
    }

    /// Nothing yet, for one of the ladders of a batch.
    pub fn new(ensemble: &Ensemble, copy: usize) -> Self {
        let (ladder, chains) = (ensemble.first_copy() + copy, ensemble.chains());
        let shown = if ladder == 0 { chains.min(REPLICAS) } else { 0 };
        // Evenly spread, both ends among them.
        let replicas = (0..shown).map(|i| (i * (chains - 1) / (shown - 1).max(1)) as u32).collect();
        Self {
            time: 0,
            round_trips_before: ensemble.index[copy].round_trips(),
            replicas,
            start: Vec::with_capacity(shown * START),
            index: Thinned::new(shown, ENTRIES),
            round_trips: Thinned::new(1, ENTRIES),
            energies: (ladder < ENERGY_LADDERS).then(|| Thinned::new(chains, ENERGIES)),
        }
    }

    /// Looks at the state after an iteration; called once for each.
    pub fn record(&mut self, ensemble: &Ensemble, copy: usize) {
        self.time += 1;
        let index = &ensemble.index[copy];
        if !self.replicas.is_empty() {
            let chains = self.replicas.iter().map(|&replica| index.chain(replica as usize) as u32);
            if self.time <= START as u64 {
                self.start.extend(chains.clone());
            }
            self.index.push(self.time, chains);
        }
        self.round_trips.push(self.time, [index.round_trips() - self.round_trips_before]);
        if let Some(energies) = &mut self.energies {
            let densities = &ensemble.points.target.log_density;
            let of = |chain| Some(densities[ensemble.row(copy, chain)]).filter(|e| e.is_finite());
            energies.push(self.time, (0..ensemble.chains()).map(|chain| of(chain).unwrap_or(NO_ENERGY)));
        }
    }

    /// Iterations seen.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Time of each entry of the whole run, and round trips of all the given ladders by then.
    pub fn total_round_trips<'a>(ladders: impl Iterator<Item = &'a LadderTrace>) -> Vec<(u64, u64)> {
        let mut total: Vec<(u64, u64)> = Vec::new();
        for (i, ladder) in ladders.enumerate() {
            let entries = ladder.round_trips.iter().map(|(time, row)| (time, row[0]));
            if i == 0 {
                total = entries.collect();
            } else {
                total.iter_mut().zip(entries).for_each(|(sum, (_, trips))| sum.1 += trips);
            }
        }
        total
    }
}

/// What one tuning round saw, and with what: how tuning converged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrace {
    /// β of each chain in this round.
    pub schedule: Vec<f64>,
    /// Rejection rate of each pair; none where no swap was proposed.
    pub rejection_rates: Vec<Option<f64>>,
    /// ∫λ(β)dβ: Λ without the saturation of Σr.
    pub barrier: Option<f64>,
    /// Step size of each chain's local moves at the end of the round.
    pub step_size: Vec<f64>,
    /// Their mean acceptance; none where draws are exact.
    pub acceptance: Vec<Option<f64>>,
}

impl RoundTrace {
    /// Numbers that are none become `None`.
    pub(crate) fn new(
        schedule: &[f64],
        rejection_rates: &[f64],
        barrier: f64,
        step_size: &[f64],
        acceptance: &[f64],
    ) -> Self {
        let known = |x: f64| Some(x).filter(|x| x.is_finite());
        Self {
            schedule: schedule.to_vec(),
            rejection_rates: rejection_rates.iter().map(|&r| known(r)).collect(),
            barrier: known(barrier),
            step_size: step_size.to_vec(),
            acceptance: acceptance.iter().map(|&a| known(a)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file may claim round trips before sampling that the ladder has never made.
    #[test]
    fn a_trace_of_another_ladder_is_refused() {
        let trace = |round_trips_before, time| LadderTrace {
            time,
            round_trips_before,
            replicas: Vec::new(),
            start: Vec::new(),
            index: Thinned::new(0, ENTRIES),
            round_trips: Thinned::new(1, ENTRIES),
            energies: None,
        };
        assert!(trace(3, 9).follows(3) && trace(0, 9).follows(3));
        assert!(!trace(4, 9).follows(3) && !trace(0, u64::MAX).follows(3));
    }

    #[test]
    fn a_memory_is_bounded_and_even() {
        for length in [1u64, 7, 8, 9, 100, 1000, 12_345] {
            let mut memory = Thinned::new(2, 8);
            (1..=length).for_each(|t| memory.push(t, [t, 3 * t]));
            let times: Vec<u64> = memory.iter().map(|(t, _)| t).collect();
            assert!(times.len() <= 8 && times.len() >= length.min(4) as usize, "{length}: {times:?}");
            assert!(memory.stride().is_power_of_two());
            // Every multiple of the stride, none left out.
            assert!(times.iter().enumerate().all(|(i, &t)| t == (i as u64 + 1) * memory.stride()));
            assert!(length - times.last().unwrap() < memory.stride());
            assert!(memory.iter().all(|(t, row)| row == [t, 3 * t]));
        }
    }

    #[test]
    fn an_empty_memory_has_no_rows() {
        let mut memory = Thinned::<u32>::new(0, 4);
        (1..100).for_each(|t| memory.push(t, []));
        assert_eq!(memory.iter().count(), 0);
    }
}
