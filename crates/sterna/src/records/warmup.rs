//! What the target's chain did before sampling: a bounded memory for people to look at. No estimate uses it.

use super::{Draws, Ladders, MOST_COUNTED, sampling::moves_before};
use crate::Result;
use crate::iteration::{Recorder, Step};
use crate::trace::Thinned;
use serde::{Deserialize, Serialize};

/// Iterations of a ladder that are remembered at most, and at least; and numbers of all ladders together.
const ROWS: usize = 512;
const FEWEST: usize = 8;
const NUMBERS: usize = 1 << 22;

/// Log density, replica, acceptance, whether moves diverged: what a row has beside its point.
const BESIDE: usize = 4;

/// Tuning, collecting and burn-in as the target's chain of each ladder went through them: evenly spread iterations, whatever their
/// number. Times are iterations since the run began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WarmupRecord {
    time: u64,
    most: usize,
    ladders: Vec<Thinned<f64>>,
}

impl WarmupRecord {
    /// Nothing yet, for `copies` of `ensembles` ladders.
    pub fn new(copies: usize, ensembles: usize, dim: usize) -> Self {
        let fit = NUMBERS / (ensembles * (dim + BESIDE)).max(1);
        let most = fit.clamp(FEWEST, ROWS) / 2 * 2;
        Self { time: 0, most, ladders: (0..copies).map(|_| Thinned::new(dim + BESIDE, most)).collect() }
    }

    /// What is remembered of each ladder, and the iteration of each.
    pub fn draws(&self) -> impl Iterator<Item = (Vec<u32>, Draws)> {
        self.ladders.iter().map(|memory| {
            let (mut iterations, mut draws) = (Vec::new(), Draws::default());
            for (time, row) in memory.iter() {
                let (x, beside) = row.split_at(row.len() - BESIDE);
                iterations.push(u32::try_from(time).unwrap_or(u32::MAX));
                draws.x.extend_from_slice(x);
                draws.log_density.push(beside[0]);
                draws.replica.push(beside[1] as u32);
                draws.acceptance.push(beside[2] as f32);
                draws.diverging.push(beside[3] > 0.0);
            }
            (iterations, draws)
        })
    }
}

impl Recorder for WarmupRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.time += 1;
        let (ensemble, target) = (step.ensemble, step.ensemble.legs().target());
        for (copy, memory) in self.ladders.iter_mut().enumerate() {
            let row = ensemble.row(copy, target);
            let (acceptance, diverging) = moves_before(step, copy, target);
            let beside = [
                ensemble.points.log_density[row],
                ensemble.index[copy].replica(target) as f64,
                f64::from(acceptance),
                f64::from(u8::from(diverging)),
            ];
            memory.push(self.time, ensemble.points.x.row(row).iter().copied().chain(beside));
        }
        Ok(())
    }
}

impl Ladders for WarmupRecord {
    fn append(&mut self, other: Self) {
        self.ladders.extend(other.ladders);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        Self { ladders: self.ladders.split_off(copies), ..*self }
    }

    fn is_sound(&self, copies: usize, _chains: usize, dim: usize) -> bool {
        self.time < MOST_COUNTED
            && (FEWEST..=ROWS).contains(&self.most)
            && self.most.is_multiple_of(2)
            && self.ladders.len() == copies
            && self.ladders.iter().all(|memory| memory.is_sound(dim + BESIDE, self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_for_many_ladders_and_many_coordinates() {
        for (ensembles, dim) in [(1, 1), (4, 30), (100_000, 2), (4, 131_072)] {
            let record = WarmupRecord::new(3, ensembles, dim);
            let numbers = record.most * (dim + BESIDE) * ensembles;
            assert!(numbers <= NUMBERS.max(FEWEST * (dim + BESIDE) * ensembles), "{ensembles} x {dim}");
            assert!(
                record.is_sound(3, 2, dim) && !record.is_sound(2, 2, dim) && !record.is_sound(3, 2, dim + 1)
            );
        }
        assert_eq!(WarmupRecord::new(1, 4, 30).most, ROWS);
    }
}
