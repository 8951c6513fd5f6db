//! One kernel after another: both leave π^β invariant, so their composition does.

use crate::Result;
use crate::explorer::{Explorer, Moves, Rows, Scratch};
use crate::path::{AnnealingPath, Points};
use crate::streams::Streams;
use std::sync::Arc;

/// Moves by `first`, then by `then`. Acceptances are those of `first` alone, since step sizes adapt to them.
#[derive(Clone)]
pub struct Followed {
    /// Made first, and counted.
    pub first: Arc<dyn Explorer>,
    /// Made after; only bad proposals are counted.
    pub then: Arc<dyn Explorer>,
}

impl Explorer for Followed {
    fn explore(
        &self,
        path: &dyn AnnealingPath,
        streams: &Streams,
        iteration: u64,
        rows: &Rows,
        points: &mut Points,
        moves: &mut [Moves],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.first.explore(path, streams, iteration, rows, points, moves, scratch)?;
        let mut aside = std::mem::take(&mut scratch.aside);
        aside.clear();
        aside.resize(rows.len(), Moves::default());
        let outcome = self.then.explore(path, streams, iteration, rows, points, &mut aside, scratch);
        moves.iter_mut().zip(&aside).for_each(|(moves, aside)| moves.bad += aside.bad);
        scratch.aside = aside;
        outcome
    }
}
