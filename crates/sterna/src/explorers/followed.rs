//! One kernel after another: both leave π^β invariant, so their composition does.

use crate::Result;
use crate::call::{Call, Scratch};
use crate::error::BadState;
use crate::explorer::{Explorer, Moved, Tuning};
use crate::path::Points;
use std::sync::Arc;

/// Moves by `first`, then by `then`. Acceptances are those of `first` alone, since step sizes adapt to them.
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::{Followed, Hmc, Slice};
/// let both = Followed { first: Arc::new(Hmc::default()), then: Arc::new(Slice::default()) };
/// let settings = sterna::run::Settings { explorer: Arc::new(both), ..Default::default() };
/// assert!(settings.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Followed {
    /// Made first, and counted.
    pub first: Arc<dyn Explorer>,
    /// Made after; only bad proposals are counted.
    pub then: Arc<dyn Explorer>,
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    of_first: Scratch,
    of_then: Scratch,
    aside: Moved,
}

impl Explorer for Followed {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Memory { of_first, of_then, aside } = scratch.get();
        self.first.explore(call, points, moved, of_first)?;
        call.slots.begin_next();
        aside.begin(call.rows.len());
        self.then.explore(call, points, aside, of_then)?;
        moved.add_bad_of(aside);
        Ok(())
    }

    fn check(&self, chains: usize, rounds: usize) -> Result<()> {
        self.first.check(chains, rounds)?;
        self.then.check(chains, rounds)
    }

    fn begin(&self, chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        Ok(self.changed(self.first.begin(chains, dim)?, self.then.begin(chains, dim)?))
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        // Acceptances are those of the first.
        let then = match tuning {
            Tuning::Block { .. } => None,
            tuning => self.then.adapt(tuning),
        };
        self.changed(self.first.adapt(tuning), then)
    }

    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        [self.first.describe(), self.then.describe()].concat()
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&(self.first.save(), self.then.save())).expect("memory is all it needs")
    }

    fn restore(&self, saved: &[u8], chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let (first, then): (Vec<u8>, Vec<u8>) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        Ok(self.changed(self.first.restore(&first, chains, dim)?, self.then.restore(&then, chains, dim)?))
    }
}

impl Followed {
    /// The same with other kernels, where there are any.
    fn changed(
        &self,
        first: Option<Arc<dyn Explorer>>,
        then: Option<Arc<dyn Explorer>>,
    ) -> Option<Arc<dyn Explorer>> {
        if first.is_none() && then.is_none() {
            return None;
        }
        let [first, then] = [(first, &self.first), (then, &self.then)]
            .map(|(changed, same)| changed.unwrap_or_else(|| same.clone()));
        Some(Arc::new(Self { first, then }))
    }
}
