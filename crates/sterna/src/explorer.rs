//! Local exploration: moves that leave π^β of each row invariant (§2.1; Algorithm 1, line 3).

use crate::balance::Balance;
use crate::call::{Call, Scratch};
use crate::explorers::Hmc;
use crate::fitted::{Mixture, Shape};
use crate::path::Points;
use crate::{Batch, Result, Schedule};
use std::sync::Arc;

/// What happened to one row in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Moves {
    /// Sum of acceptance probabilities.
    pub acceptance: f64,
    /// Moves proposed.
    pub proposed: u32,
    /// Proposals at which the target answered NaN or +∞; they were rejected.
    pub bad: u32,
}

/// What happened to the rows of a call.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Of each row, in the order of the call.
    pub rows: Vec<Moves>,
    /// The bad proposal to the first of the rows that had any: its place, and the point.
    pub bad_point: Option<(usize, Vec<f64>)>,
}

impl Moved {
    /// Nothing yet, for so many rows.
    pub fn begin(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, Moves::default());
        self.bad_point = None;
    }

    /// Counts the bad proposals of further moves of the same rows, and nothing else of them.
    pub fn add_bad_of(&mut self, further: &mut Self) {
        self.rows.iter_mut().zip(&further.rows).for_each(|(moves, further)| moves.bad += further.bad);
        let sooner = |(i, _): &(usize, Vec<f64>)| self.bad_point.as_ref().is_none_or(|(first, _)| i < first);
        if further.bad_point.as_ref().is_some_and(sooner) {
            self.bad_point = further.bad_point.take();
        }
    }

    /// Adds what further moves of some of these rows did, those at `places`.
    pub fn add(&mut self, further: &mut Self, places: &[usize]) {
        for (moves, &i) in further.rows.iter().zip(places) {
            self.rows[i].acceptance += moves.acceptance;
            self.rows[i].proposed += moves.proposed;
            self.rows[i].bad += moves.bad;
        }
        let bad = further.bad_point.take().map(|(i, point)| (places[i], point));
        self.bad_point = match (self.bad_point.take(), bad) {
            (Some(first), Some(bad)) => Some(if bad.0 < first.0 { bad } else { first }),
            (first, bad) => first.or(bad),
        };
    }

    /// Notes a proposal at which the target answered NaN or +∞. Which one is kept does not depend on how ladders share
    /// batches.
    pub fn note_bad(&mut self, i: usize, point: &[f64]) {
        self.rows[i].bad += 1;
        if self.bad_point.as_ref().is_none_or(|(first, _)| i < *first) {
            self.bad_point = Some((i, point.to_vec()));
        }
    }
}

/// What an explorer may adapt to, between blocks of tuning alone.
#[derive(Clone, Copy, Debug)]
pub enum Tuning<'a> {
    /// A block of moves was made.
    Block {
        /// Mean acceptance on each chain; NaN where none was proposed.
        acceptance: &'a [f64],
        /// How boldly to follow it: less from round to round.
        gain: f64,
    },
    /// A round has ended.
    Round {
        /// E(score²) of each coordinate on each chain: one over its local variance.
        information: &'a Batch,
        /// Standard deviation of each coordinate on each chain.
        spread: &'a Batch,
    },
    /// The covariances of the chains are known, such as those of a reference that was fitted.
    Masses {
        /// Their square roots, one for each chain.
        shapes: &'a [Shape],
        /// Normals that lie all over the target, each as wide as it is there; none where one shape serves everywhere.
        parts: Option<&'a Mixture>,
        /// How often a step that suits most places may be doubled where the density is widest.
        doublings: u32,
        /// How far trajectories should reach, in units of the shapes, on each chain.
        reach: &'a [f64],
    },
    /// What moves and swaps of a round were worth, for moves that may be more or fewer.
    Balance(&'a Balance),
    /// Chains move from one schedule to another, which may have more of them or fewer.
    Schedule {
        /// Where they were.
        from: &'a Schedule,
        /// Where they go.
        to: &'a Schedule,
    },
}

/// A Markov kernel for whole batches, which adapts itself: a run hands it what tuning has seen and gets a new kernel.
///
/// Only [`explore`](Self::explore) has to be written; what is left out is a kernel that never changes.
///
/// ```
/// use std::sync::Arc;
/// use sterna::call::{Call, Scratch};
/// use sterna::explorer::{Explorer, Moved};
/// use sterna::{Batch, Points, Result, paths::Geometric, run::{Run, Settings}, targets::Normal};
///
/// /// A random walk of one step size.
/// #[derive(Debug)]
/// struct Walk(f64);
///
/// impl Explorer for Walk {
///     fn explore(&self, call: &Call, points: &mut Points, moved: &mut Moved, scratch: &mut Scratch) -> Result<()> {
///         let (there, steps, uniforms) = scratch.get::<(Points, Batch, Vec<f64>)>();
///         there.gather_state(points, &call.rows.row);
///         steps.set_size(there.rows(), there.x.dim());
///         uniforms.resize(there.rows(), 0.0);
///         call.normals(call.slots.take(), steps);
///         call.uniforms(call.slots.take(), uniforms);
///         for (x, z) in there.x.as_mut_slice().iter_mut().zip(steps.as_slice()) {
///             *x += self.0 * z;
///         }
///         call.path.evaluate(&call.rows.beta, there)?;
///         for (i, &row) in call.rows.row.iter().enumerate() {
///             let log_ratio = there.log_density[i] - points.log_density[row];
///             moved.rows[i].proposed += 1;
///             moved.rows[i].acceptance += log_ratio.min(0.0).exp();
///             uniforms[i] = log_ratio - uniforms[i].ln(); // positive: accepted
///         }
///         points.scatter(&call.rows.row, there, |i| uniforms[i] > 0.0);
///         Ok(())
///     }
/// }
///
/// let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(1, 4.0)));
/// let settings = Settings { chains: 3, iterations: 2_000, explorer: Arc::new(Walk(0.5)), ..Settings::default() };
/// let mut run = Run::new(path, settings).unwrap();
/// run.complete().unwrap();
/// let (mean, error) = run.results().means[0];
/// assert!(mean.abs() < 5.0 * error);
/// ```
pub trait Explorer: Send + Sync + std::fmt::Debug {
    /// Moves the call's rows of `points`, each leaving π^β of its chain invariant; `moved` gains what happened.
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Names the first of its settings that cannot be in a run of so many chains and tuning rounds, with a cure.
    fn check(&self, _chains: usize, _rounds: usize) -> Result<()> {
        Ok(())
    }

    /// The kernel that a run of so many chains begins with, on points of length `dim`; none where this one serves.
    fn begin(&self, _chains: usize, _dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        Ok(None)
    }

    /// The kernel to go on with; none where this one stays.
    fn adapt(&self, _tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        None
    }

    /// What people want to know of it: lists of one number for each chain, by name. The first is the size of its moves.
    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// All that it is, for [`restore`](Self::restore). Explorers of a kind are the same if these bytes are.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// The kernel that saved itself so, where it was made of this one for so many chains and such points; none where
    /// this one never changes.
    fn restore(&self, _saved: &[u8], _chains: usize, _dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        Ok(None)
    }

    /// Its moves as Hamiltonian ones, for engines that know no others.
    fn as_hmc(&self) -> Option<&Hmc> {
        None
    }
}

impl dyn Explorer {
    /// The size of moves on each chain, where the explorer tells it.
    pub fn size_of_moves(&self) -> Vec<f64> {
        self.describe().into_iter().next().map(|(_, sizes)| sizes).unwrap_or_default()
    }
}

/// Explorers are the same if they save the same.
impl PartialEq for dyn Explorer {
    fn eq(&self, other: &Self) -> bool {
        self.save() == other.save()
    }
}
