//! Swaps whose two sides move on different ranks: each rank tells the others what its rows weigh, and all of them decide alike
//! (Algorithm 1, lines 11–12).
//!
//! A row tells one number an iteration, as soon as it has it, while other rows still move. It may go on once its partner has told its own, and
//! once all rows are known to have done the iteration before, since that says who its partner is: so no two rows are more than an
//! iteration apart, and none waits for one that is merely slow this once.

use crate::exchange::{Exchange, ladders_moved_by, team_of};
use crate::index_process::IndexProcess;
use crate::streams::Streams;
use crate::swap::{Swap, decide};
use crate::{Ensemble, Error, Result};
use std::ops::Range;
use std::sync::Arc;

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

    /// Rows that this rank moves: as many as the others, or one more.
    pub fn own_rows(&self) -> Range<usize> {
        self.chains * self.own / self.size..self.chains * (self.own + 1) / self.size
    }

    /// Whether this rank keeps the records.
    pub fn keeps_records(&self) -> bool {
        self.own == 0
    }

    /// How many others there are.
    pub fn count_of_others(&self) -> usize {
        self.size - 1
    }

    /// Ranks but this one.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.first + self.own;
        (self.first..self.first + self.size).filter(move |rank| *rank != own)
    }
}

/// What a rank of a team has heard.
pub(crate) struct Talk {
    team: Team,
    exchange: Arc<dyn Exchange>,
    streams: Streams,
    /// Who sat where after `settled` iterations, which all rows are known to have done.
    index: IndexProcess,
    settled: u64,
    /// Iterations of which each row has told.
    told: Vec<u64>,
    /// What is known of the latest iterations, each in its place of the ring.
    ring: [Known; RING],
    work: Deciding,
    /// All swaps that nobody has taken yet, where this rank keeps the records.
    decided: Vec<Swap>,
    /// What others have written down.
    logs: Vec<Vec<u8>>,
}

/// What is known of an iteration.
#[derive(Clone, Default)]
struct Known {
    /// The row on each chain before it.
    seats: Vec<usize>,
    /// What each row weighed.
    weights: Vec<f64>,
}

/// Rows of other ranks may be four iterations beyond what is settled here, and rows of this one at the last that is.
const RING: usize = 8;

/// In place of an iteration: what follows is what a rank has written down.
const LOG: u64 = u64::MAX;

#[derive(Default)]
struct Deciding {
    swaps: Vec<Swap>,
    keys: Vec<u32>,
    uniforms: Vec<f64>,
}

impl Talk {
    /// Begins after `done` iterations of a ladder that all ranks know.
    pub fn new(
        team: Team,
        exchange: Arc<dyn Exchange>,
        streams: Streams,
        ensemble: &Ensemble,
        done: u64,
    ) -> Self {
        let known = Known { seats: vec![0; team.chains], weights: vec![0.0; team.chains] };
        let mut talk = Self {
            exchange,
            streams,
            index: ensemble.index[0].clone(),
            settled: done,
            told: vec![done; team.chains],
            ring: std::array::from_fn(|_| known.clone()),
            work: Deciding::default(),
            decided: Vec::new(),
            logs: Vec::new(),
            team,
        };
        talk.note_seats();
        talk
    }

    /// Who sits where after what is settled.
    pub fn index(&self) -> &IndexProcess {
        &self.index
    }

    /// Swaps of the iterations that were settled since they were last taken.
    pub fn take_decided(&mut self) -> Vec<Swap> {
        std::mem::take(&mut self.decided)
    }

    /// Tells all others what a row weighs in an iteration.
    pub fn tell(&mut self, t: u64, row: usize, weight: f64) -> Result<()> {
        self.note(t, row, weight)?;
        let mut words = [0; 24];
        for (word, number) in words.chunks_exact_mut(8).zip([t, row as u64, weight.to_bits()]) {
            word.copy_from_slice(&number.to_le_bytes());
        }
        self.team.others().try_for_each(|rank| self.exchange.tell(rank, &words))
    }

    /// Tells the rank that keeps the records what was written down here.
    pub fn hand_in(&self, log: &[u8]) -> Result<()> {
        self.exchange.tell(self.team.first, &[&LOG.to_le_bytes(), log].concat())
    }

    /// What all others have written down.
    pub fn collect(&mut self) -> Result<Vec<Vec<u8>>> {
        while self.logs.len() < self.team.count_of_others() {
            self.listen(true)?;
        }
        Ok(std::mem::take(&mut self.logs))
    }

    /// Hears all that has come, or if it waits, one thing at least.
    pub fn listen(&mut self, waits: bool) -> Result<()> {
        let mut waits = waits;
        while let Some((_, words)) = self.exchange.listen(waits)? {
            waits = false;
            let number =
                |k: usize| words.get(8 * k..8 * k + 8).map(|b| u64::from_le_bytes(b.try_into().expect("8")));
            match (number(0), number(1), number(2)) {
                (Some(LOG), _, _) => self.logs.push(words[8..].to_vec()),
                (Some(t), Some(row), Some(weight)) if row < self.team.chains as u64 => {
                    self.note(t, row as usize, f64::from_bits(weight))?;
                }
                _ => return Err(out_of_step()),
            }
        }
        self.settle();
        Ok(())
    }

    fn note(&mut self, t: u64, row: usize, weight: f64) -> Result<()> {
        if self.told[row] + 1 != t || t > self.settled + RING as u64 - 2 {
            return Err(out_of_step());
        }
        self.told[row] = t;
        self.ring[place(t)].weights[row] = weight;
        Ok(())
    }

    /// Whether all rows are known to have done so many iterations.
    pub fn has_settled(&self, t: u64) -> bool {
        self.settled >= t
    }

    /// Completes the swap of a row that sits on this chain, if it has one in the iteration; whether it may go on.
    pub fn is_met(&self, t: u64, chain: usize, swap: Option<&mut Swap>) -> bool {
        if !self.has_settled(t - 1) {
            return false;
        }
        let Some(swap) = swap else { return true };
        let known = &self.ring[place(t)];
        let (other, weight) = match chain == swap.pair {
            true => (swap.pair - 1, &mut swap.log_forward),
            false => (swap.pair, &mut swap.log_backward),
        };
        let partner = known.seats[other];
        *weight = known.weights[partner];
        self.told[partner] >= t
    }

    /// Decides all swaps of the iterations that all rows have told of.
    fn settle(&mut self) {
        let told = self.told.iter().copied().min().unwrap_or(self.settled);
        while self.settled < told {
            self.settle_next();
        }
    }

    fn settle_next(&mut self) {
        let t = self.settled + 1;
        let (index, known) = (&mut self.index, &self.ring[place(t)]);
        let Deciding { swaps, keys, uniforms } = &mut self.work;
        swaps.clear();
        keys.clear();
        for pair in index.legs().pairs(t) {
            let [log_forward, log_backward] =
                [pair - 1, pair].map(|chain| known.weights[index.replica(chain)]);
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
        self.note_seats();
    }

    /// Who sits where before the iteration after what is settled.
    fn note_seats(&mut self) {
        let seats = &mut self.ring[place(self.settled + 1)].seats;
        seats.iter_mut().enumerate().for_each(|(chain, row)| *row = self.index.replica(chain));
    }
}

/// Place in the ring.
fn place(t: u64) -> usize {
    (t % RING as u64) as usize
}

fn out_of_step() -> Error {
    Error::Elsewhere("ranks are out of step: do all of them run the same program?".into())
}
