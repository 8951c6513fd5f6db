//! A run on several processes: who holds which ladders, and what the processes tell each other.
//!
//! Every process, a rank, runs the same program on the same run and moves its own ladders alone. Where something is decided from all
//! ladders, their states and records are gathered first, in the order of ladders; so every rank decides the same, and nothing
//! depends on how many there are.

use crate::{Error, Result};
use std::ops::Range;

/// How ranks speak with each other. All of them make the same calls in the same order; a call returns once all have made it that it
/// needs to hear from.
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
}

/// The ladders that a rank moves: as many as the others, or one more. With more ranks than ladders some have none.
///
/// ```
/// use sterna::exchange::ladders_of;
/// assert_eq!([0, 1, 2].map(|rank| ladders_of(rank, 3, 7)), [0..2, 2..4, 4..7]);
/// ```
pub fn ladders_of(rank: usize, ranks: usize, ladders: usize) -> Range<usize> {
    ladders * rank / ranks..ladders * (rank + 1) / ranks
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
