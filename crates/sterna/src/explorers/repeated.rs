//! A kernel made several times an iteration, on each chain as often as is worth it there. Any number leaves π^β invariant.

use super::Between;
use crate::Result;
use crate::call::{Call, Rows, Scratch};
use crate::error::BadState;
use crate::explorer::{Explorer, Moved, Tuning};
use crate::path::Points;
use std::sync::Arc;

/// Moves by `kernel`, on chain n so many times as `moves[n]` says. Their number follows from what tuning sees, and is frozen
/// with all else before burn-in: see [`Balance`](crate::balance::Balance).
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::{Hmc, Repeated};
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 4.0)));
/// let explorer = Arc::new(Repeated::new(Arc::new(Hmc::default())));
/// let settings = Settings { chains: 3, rounds: 3, iterations: 2_000, explorer, ..Settings::default() };
/// let mut run = Run::new(path, settings).unwrap();
/// run.complete().unwrap();
/// let log_z = run.results().log_z;
/// assert!((log_z.bar + 4f64.ln()).abs() < 5.0 * log_z.standard_error);
/// ```
#[derive(Clone, Debug)]
pub struct Repeated {
    /// What is repeated.
    pub kernel: Arc<dyn Explorer>,
    /// How often on each chain. Empty until [`begin`](Explorer::begin) knows how many there are.
    pub moves: Vec<u32>,
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    of_kernel: Scratch,
    /// Rows that move once more, and their places in the call.
    rows: Rows,
    places: Vec<usize>,
    moved: Moved,
}

impl Repeated {
    /// Moves at which tuning stops adding more: what more would leave is not looked at, and no kernel runs out of random numbers.
    pub const MOST: u32 = 16;

    /// Once on each chain, until tuning has seen what is worth it.
    pub fn new(kernel: Arc<dyn Explorer>) -> Self {
        Self { kernel, moves: Vec::new() }
    }

    fn changed(&self, kernel: Option<Arc<dyn Explorer>>, moves: Vec<u32>) -> Option<Arc<dyn Explorer>> {
        Some(Arc::new(Self { kernel: kernel.unwrap_or_else(|| self.kernel.clone()), moves }))
    }
}

impl Explorer for Repeated {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Memory { of_kernel, rows, places, moved: once_more, .. } = scratch.get();
        let wanted = |chain: usize| self.moves[chain];
        let all = call.rows.chain.iter().map(|&chain| wanted(chain)).min().unwrap_or(0);
        let most = call.rows.chain.iter().map(|&chain| wanted(chain)).max().unwrap_or(0);
        for _ in 0..all {
            self.kernel.explore(call, points, moved, of_kernel)?;
        }
        for made in all..most {
            places.clear();
            places.extend((0..call.rows.len()).filter(|&i| wanted(call.rows.chain[i]) > made));
            rows.clear();
            for &i in places.iter() {
                let Rows { row, key, chain, beta, .. } = call.rows;
                rows.push_staying(row[i], key[i], chain[i], beta[i]);
            }
            once_more.begin(rows.len());
            let few = call.of(rows);
            self.kernel.explore(&few, points, once_more, of_kernel)?;
            call.slots.follow(&few.slots);
            moved.add(once_more, places);
        }
        Ok(())
    }

    fn check(&self, chains: usize, rounds: usize) -> Result<()> {
        self.kernel.check(chains, rounds)
    }

    fn begin(&self, chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let moves = if self.moves.is_empty() { vec![1; chains] } else { self.moves.clone() };
        Ok(self.changed(self.kernel.begin(chains, dim)?, moves))
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        match tuning {
            Tuning::Balance(balance) => self.changed(None, balance.best(&self.moves)),
            Tuning::Schedule { from, to } => {
                let at = |&beta: &f64| {
                    let between = Between::new(from, beta);
                    self.moves[between.lower + usize::from(between.share > 0.5)]
                };
                self.changed(self.kernel.adapt(tuning), to.betas().iter().map(at).collect())
            }
            tuning => self.changed(Some(self.kernel.adapt(tuning)?), self.moves.clone()),
        }
    }

    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        let moves = self.moves.iter().map(|&moves| f64::from(moves)).collect();
        [self.kernel.describe(), vec![(MOVES, moves)]].concat()
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&("repeated", self.kernel.save(), &self.moves)).expect("memory is all it needs")
    }

    fn restore(&self, saved: &[u8], chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let (kind, kernel, moves): (&str, Vec<u8>, Vec<u32>) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let sound = moves.len() == chains && moves.iter().all(|moves| (1..=Self::MOST).contains(moves));
        if kind != "repeated" || !sound {
            return Err(BadState::Contradiction.into());
        }
        Ok(self.changed(self.kernel.restore(&kernel, chains, dim)?, moves))
    }
}

/// The name of their number among what an explorer [describes](Explorer::describe).
pub const MOVES: &str = "moves";
