//! A run on several processes: who holds which ladders, and what the processes tell each other.
//!
//! Every process, a rank, runs the same program on the same run and moves its own ladders alone, or where ranks are more than ladders,
//! its own rows of one. Where something is decided from all ladders, their states and records are gathered first, in the order of
//! ladders; so every rank decides the same, and nothing depends on how many there are.

use crate::{Error, Result};
use std::ops::Range;

/// How ranks speak with each other. All of them make the same calls to all in the same order, and such a call returns once all have
/// made it that it needs to hear from. What one rank tells another comes in the order in which it was told, whatever else is said.
pub trait Exchange: Send + Sync {
    /// Which of the ranks this is, from 0. The first one keeps the books: it trains, judges goals and has all results.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// What each rank says, in their order.
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The same, for the first rank alone; the others get nothing.
    fn gather_to_first(&self, own: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// What the first rank says; what others bring is not heard.
    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>>;

    /// Tells another rank something, without waiting until that hears it.
    fn tell(&self, to: usize, words: &[u8]) -> Result<()>;

    /// What others have told this rank, one after the other, and who it was; where there is nothing more, none, or if it waits, what
    /// comes next.
    ///
    /// # Errors
    /// If a rank has [`warned`](Self::warn) this one, or is gone.
    fn listen(&self, waits: bool) -> Result<Option<(usize, Vec<u8>)>>;

    /// Tells another rank that nothing more comes from this one, and why: it fails with these words where it listens.
    fn warn(&self, to: usize, why: &str);

    /// Who this is, for people.
    fn name(&self) -> String {
        format!("rank {}", self.rank())
    }

    /// Says, in place of the next call, that this rank cannot go on: whatever the others call next fails with these words. Nothing more is
    /// exchanged afterwards; where another rank has failed before, nothing happens.
    fn fail(&self, why: &str) {
        let _ = why;
    }

    /// How many ranks share the cores that this one may use, itself among them.
    fn neighbours(&self) -> usize {
        self.ranks()
    }

    /// How many ranks before this one are on its machine.
    fn place_here(&self) -> usize {
        self.rank()
    }

    /// Whether a rank has died without which the others can [`regroup`](Self::regroup).
    fn is_bereft(&self) -> bool {
        false
    }

    /// Goes on with the ranks that are left, in their old order, where some have died and that is possible: who they were, in a sentence.
    /// Every rank that is left calls it once a piece of work has come to its end, whatever that was, and if there was one, does the work again
    /// from where all of them know it.
    ///
    /// # Errors
    /// If those that are left find no way to go on.
    fn regroup(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

/// The one process of a run that is on no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Exchange for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own.to_vec()])
    }

    fn gather_to_first(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.gather(own)
    }

    fn hear_first(&self, own: &[u8]) -> Result<Vec<u8>> {
        Ok(own.to_vec())
    }

    fn tell(&self, to: usize, _: &[u8]) -> Result<()> {
        Err(nobody(to))
    }

    fn listen(&self, waits: bool) -> Result<Option<(usize, Vec<u8>)>> {
        if waits { Err(nobody(1)) } else { Ok(None) }
    }

    fn warn(&self, _: usize, _: &str) {}
}

fn nobody(rank: usize) -> Error {
    Error::Elsewhere(format!("there is no rank {rank}: this process is alone"))
}

/// The ladders whose records a rank keeps: as many as the others, or one more. With more ranks than ladders several move the rows of
/// one, and the first of them keeps its records.
///
/// ```
/// use sterna::exchange::ladders_of;
/// assert_eq!([0, 1, 2].map(|rank| ladders_of(rank, 3, 7)), [0..2, 2..4, 4..7]);
/// assert_eq!([0, 1, 2].map(|rank| ladders_of(rank, 3, 2)), [0..1, 1..2, 2..2]);
/// ```
pub fn ladders_of(rank: usize, ranks: usize, ladders: usize) -> Range<usize> {
    let moved = ladders_moved_by(rank, ranks, ladders);
    let keeps = ranks <= ladders || team_of(rank, ranks, ladders).start == rank;
    if keeps { moved } else { moved.end..moved.end }
}

/// The ladders that a rank moves, or the one of which it moves rows.
pub(crate) fn ladders_moved_by(rank: usize, ranks: usize, ladders: usize) -> Range<usize> {
    if ranks <= ladders {
        return ladders * rank / ranks..ladders * (rank + 1) / ranks;
    }
    let ladder = ((rank + 1) * ladders - 1) / ranks;
    ladder..ladder + 1
}

/// The ranks that share a ladder with this one, where ranks are more than ladders.
pub(crate) fn team_of(rank: usize, ranks: usize, ladders: usize) -> Range<usize> {
    let ladder = ladders_moved_by(rank, ranks, ladders).start;
    ranks * ladder / ladders..ranks * (ladder + 1) / ladders
}

/// What became of a piece of work on every rank: if it failed on one, it fails on all, and the error says where.
pub(crate) fn agree(exchange: &dyn Exchange, own: Result<()>) -> Result<()> {
    if exchange.ranks() == 1 {
        return own;
    }
    let text = own.as_ref().err().map_or(String::new(), |error| format!("{}: {error}", exchange.name()));
    let all = exchange.gather(text.as_bytes())?;
    own?;
    match all.iter().find(|text| !text.is_empty()) {
        Some(text) => Err(Error::Elsewhere(String::from_utf8_lossy(text).into_owned())),
        None => Ok(()),
    }
}
