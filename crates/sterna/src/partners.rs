//! Swaps whose two sides move on different ranks: each tells the others what its rows weigh, and all of them decide alike
//! (Algorithm 1, lines 11–12).
//!
//! A rank tells all others of its team one short message an iteration, and goes on as soon as it knows what the partners of its own rows
//! weigh. Who these partners are it knows from the iteration before, of which it has heard everyone; so no two ranks of a team are
//! more than an iteration apart, and none waits for one that is merely slow this once.

use crate::exchange::{Exchange, ladders_moved_by, team_of};
use crate::index_process::IndexProcess;
use crate::streams::Streams;
use crate::swap::{Swap, decide};
use crate::{Ensemble, Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Whoever knows what rows weigh that move elsewhere.
pub(crate) trait Partners {
    /// Completes the log-weights of swaps of which only one side moves here.
    fn meet(&mut self, t: u64, ensemble: &Ensemble, swaps: &mut [Swap]) -> Result<()>;
}

/// All rows move here.
impl Partners for () {
    fn meet(&mut self, _: u64, _: &Ensemble, _: &mut [Swap]) -> Result<()> {
        Ok(())
    }
}

/// Who moves which rows of one ladder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Team {
    /// Which ladder it is.
    pub ladder: usize,
    /// Its first rank, which keeps the records.
    first: usize,
    /// Ranks that have rows.
    size: usize,
    /// This rank's place among them.
    own: usize,
    chains: usize,
}

impl Team {
    /// The team that this rank belongs to; none where it moves whole ladders, or nothing since there are more ranks than rows.
    pub fn of(exchange: &dyn Exchange, ladders: usize, chains: usize) -> Option<Self> {
        let (rank, ranks) = (exchange.rank(), exchange.ranks());
        if ranks <= ladders {
            return None;
        }
        let team = team_of(rank, ranks, ladders);
        let ladder = ladders_moved_by(rank, ranks, ladders).start;
        let (own, size) = (rank - team.start, team.len().min(chains));
        (size > 1 && own < size).then_some(Self { ladder, first: team.start, size, own, chains })
    }

    /// Rows that a member moves: as many as the others, or one more.
    pub fn rows_of(&self, member: usize) -> Range<usize> {
        self.chains * member / self.size..self.chains * (member + 1) / self.size
    }

    pub fn own_rows(&self) -> Range<usize> {
        self.rows_of(self.own)
    }

    /// Whether this rank keeps the records.
    pub fn keeps_records(&self) -> bool {
        self.own == 0
    }

    /// Members but this one.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.own;
        (0..self.size).filter(move |member| *member != own)
    }

    pub fn rank_of(&self, member: usize) -> usize {
        self.first + member
    }

    /// The member that moves a row.
    fn mover(&self, row: usize) -> usize {
        let about = row * self.size / self.chains;
        // Rounding may have put it one further.
        if self.rows_of(about).contains(&row) { about } else { about + 1 }
    }
}

/// What a member of a team has heard of a stretch of iterations.
pub(crate) struct Talk {
    team: Team,
    exchange: Arc<dyn Exchange>,
    streams: Streams,
    /// Who sat where after `settled` iterations.
    index: IndexProcess,
    settled: u64,
    /// Iterations of which each member has been heard.
    heard: Vec<u64>,
    /// What each row weighed in an iteration, even or odd: nobody is heard of a third one while these two are needed.
    weights: [Vec<f64>; 2],
    message: Vec<u8>,
    work: Deciding,
    /// All swaps, where this rank keeps the records.
    decided: Vec<Swap>,
}

#[derive(Default)]
struct Deciding {
    swaps: Vec<Swap>,
    keys: Vec<u32>,
    uniforms: Vec<f64>,
}

impl Talk {
    /// Begins after `done` iterations of a ladder that all members know.
    pub fn new(
        team: Team,
        exchange: Arc<dyn Exchange>,
        streams: Streams,
        ensemble: &Ensemble,
        done: u64,
    ) -> Self {
        Self {
            exchange,
            streams,
            index: ensemble.index[0].clone(),
            settled: done,
            heard: vec![done; team.size],
            weights: [0, 1].map(|_| vec![0.0; team.chains]),
            message: Vec::new(),
            work: Deciding::default(),
            decided: Vec::new(),
            team,
        }
    }

    /// Waits until all members are known to have made `done` iterations: who sits where then, and where this rank keeps the records, all
    /// swaps since the beginning.
    pub fn settle(mut self, done: u64) -> Result<(IndexProcess, Vec<Swap>)> {
        while self.settled < done {
            self.settle_next()?;
        }
        Ok((self.index, self.decided))
    }

    /// Hears the others of the iteration after the last that is settled, and decides all its swaps.
    fn settle_next(&mut self) -> Result<()> {
        let t = self.settled + 1;
        for member in self.team.others() {
            self.hear(member, t)?;
        }
        let (index, weights) = (&mut self.index, &self.weights[parity(t)]);
        let Deciding { swaps, keys, uniforms } = &mut self.work;
        swaps.clear();
        keys.clear();
        for pair in index.legs().pairs(t) {
            let [log_forward, log_backward] = [pair - 1, pair].map(|chain| weights[index.replica(chain)]);
            swaps.push(Swap { pair, log_forward, log_backward, ..Swap::default() });
            keys.push((self.team.ladder * self.team.chains + pair) as u32);
        }
        uniforms.resize(swaps.len(), 0.0);
        decide(&self.streams, t, keys, uniforms, swaps);
        let mut accepted = swaps.iter().map(|swap| swap.accepted);
        index.advance(t, |_pair| accepted.next().unwrap_or(false));
        if self.team.keeps_records() {
            self.decided.extend_from_slice(swaps);
        }
        self.settled = t;
        Ok(())
    }

    /// Hears a member until it has told of an iteration.
    fn hear(&mut self, member: usize, t: u64) -> Result<()> {
        while self.heard[member] < t {
            let words = self.exchange.hear(self.team.rank_of(member))?;
            let next = self.heard[member] + 1;
            let rows = self.team.rows_of(member);
            let numbers = words.chunks_exact(8).map(|bytes| bytes.try_into().expect("eight bytes"));
            let mut numbers = numbers.map(u64::from_le_bytes);
            if numbers.next() != Some(next) || words.len() != 8 * (1 + rows.len()) {
                return Err(Error::Elsewhere(
                    "ranks are out of step: do all of them run the same program?".into(),
                ));
            }
            for (weight, bits) in self.weights[parity(next)][rows].iter_mut().zip(numbers) {
                *weight = f64::from_bits(bits);
            }
            self.heard[member] = next;
        }
        Ok(())
    }

    /// Tells all others what this rank's rows weigh.
    fn tell(&mut self, t: u64) -> Result<()> {
        let weights = &self.weights[parity(t)][self.team.own_rows()];
        self.message.clear();
        self.message.extend(t.to_le_bytes());
        self.message.extend(weights.iter().flat_map(|weight| weight.to_bits().to_le_bytes()));
        self.team.others().try_for_each(|member| self.exchange.tell(self.team.rank_of(member), &self.message))
    }
}

impl Partners for Talk {
    fn meet(&mut self, t: u64, ensemble: &Ensemble, swaps: &mut [Swap]) -> Result<()> {
        let weights = &mut self.weights[parity(t)];
        for swap in &*swaps {
            let ways = [(swap.pair - 1, swap.log_forward), (swap.pair, swap.log_backward)];
            for (chain, weight) in ways {
                if let Some(row) = ensemble.held_row(0, chain) {
                    weights[row] = weight;
                }
            }
        }
        self.tell(t)?;
        // Now that it has told them, it may wait for them.
        while self.settled + 1 < t {
            self.settle_next()?;
        }
        for swap in swaps {
            let ways = [(swap.pair - 1, &mut swap.log_forward), (swap.pair, &mut swap.log_backward)];
            for (chain, weight) in ways {
                let row = self.index.replica(chain);
                if !self.team.own_rows().contains(&row) {
                    self.hear(self.team.mover(row), t)?;
                    *weight = self.weights[parity(t)][row];
                }
            }
        }
        Ok(())
    }
}

fn parity(t: u64) -> usize {
    (t % 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_mover() {
        for chains in 2..40 {
            for size in 2..=chains {
                let team = Team { ladder: 0, first: 0, size, own: 0, chains };
                for row in 0..chains {
                    assert!(team.rows_of(team.mover(row)).contains(&row), "{row} of {chains} on {size}");
                }
                assert!((0..size).all(|member| !team.rows_of(member).is_empty()));
            }
        }
    }
}
