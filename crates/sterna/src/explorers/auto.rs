//! Hamiltonian moves that find their step at each point, along trajectories of random length.
//!
//! **The move.** In the coordinates of a square root F of the chain's covariance ([`Shape`]), a leapfrog step of size ε is
//! p += ½ε Fᵀ∇log π, x += ε F p, p += ½ε Fᵀ∇log π; with H = −log π + ½|p|² it changes energy by ΔH. Each move draws standard
//! normal momenta p, a bound τ, a base step ε (the chain's own, up to a fifth shorter or longer; where the density is known to be
//! of uneven width, in one move of four doubled once or more) and a number of steps L.
//! From z = (x, p), h(z) is the smallest h ≥ 0 for which *one* step of size ε 2⁻ʰ changes energy by at most τ; L·2^min(h, 2)
//! such steps (with h less the doublings, where there are some) lead to z′ = (x′, −p′), the momentum flipped. If h(z′) = h(z), z′ is accepted with probability
//! min(1, e^{H(z) − H(z′)}); otherwise the row stays.
//!
//! **Why it is exact.** p, τ, ε and L are drawn without regard to x: of them, τ, ε and L are held fixed, and p is a fresh
//! draw of its law under e^{−H}. So it is enough that the map T with T(z) = z′ where h(z′) = h(z), and T(z) = z elsewhere,
//! is its own inverse and keeps volume. For every h, so many leapfrog steps followed by a flip are a map R_h that is its own
//! inverse and keeps volume. Let A_h be the points z with h(z) = h and h(R_h z) = h. R_h maps A_h into itself, since R_h R_h z = z;
//! the A_h are disjoint; T is R_h on A_h and the identity elsewhere. So T T = 1, volumes stay, and the Metropolis test with
//! H alone makes the move reversible. Nothing in this asks how long trajectories are, as long as their length is a function
//! of h and of what was drawn: one step, where the step tried and the step made are the same, is no special case. Nor does
//! it matter that h has no value (at most 10 halvings, and as many as doublings, are tried): there T is the identity. A density that is
//! zero, or no number, on the way fails every comparison: such a step is too long, and such a trajectory is rejected
//! whichever end it is seen from.
//!
//! **In the shape of a part.** Where the target is no normal, a mixture of normals may lie all over it, a frozen one. Seven moves of
//! eight then have the shape of one of them, number k, drawn with a probability r_k(x) that is large for those near x. k is held fixed
//! as τ, ε and L are, but its law hangs on x: the law on (x, p, k) is e^{−H} r_k(x), so that the Metropolis test has a factor
//! r_k(x′)/r_k(x). Along a bent ridge, in the neck of a funnel and in a narrow mode, steps are then those that suit there.
//!
//! **What it costs.** The step that is tried is the first of the trajectory. Seen from z′, the last step is the first, with
//! the same change of energy but for its sign: where h = 0 the way back is checked without any evaluation. Where h > 0, h longer steps were
//! tried in vain at z, and as many are tried at z′, the shortest first, once the Metropolis test has passed.
//! With a base step that suits, nearly all moves have h = 0 and cost L evaluations.
//!
//! After Biron-Lattes, Surjanovic, Syed, Campbell, Bouchard-Côté, "autoMALA" (2024), with a search in one direction only.

mod sizes;
mod trajectory;

use crate::call::{Call, EXPLORER_SLOTS, Scratch};
use crate::error::BadState;
use crate::explorer::{Explorer, Moved, Tuning};
use crate::path::Points;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trajectory::{Memory, SLOTS};

pub use sizes::AutoSizes;

/// Moves an iteration that have random numbers.
const MOST_MOVES: usize = EXPLORER_SLOTS / SLOTS;

/// Hamiltonian moves that find their step at each point.
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::Auto;
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Banana};
/// let path = Arc::new(Geometric::from_standard_normal(Banana::new(2)));
/// let explorer = Arc::new(Auto::default());
/// let settings = Settings { chains: 5, rounds: 4, iterations: 5_000, explorer, ..Settings::default() };
/// let mut run = Run::new(path, settings).unwrap();
/// run.complete().unwrap();
/// let log_z = run.results().log_z;
/// assert!(log_z.bar.abs() < 5.0 * log_z.standard_error);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Auto {
    /// Moves an iteration.
    pub steps: usize,
    /// Mean acceptance that base steps adapt to. A move whose step was halved h times counts 2⁻ʰ of it: base steps are to suit
    /// most points by themselves.
    pub acceptance: f64,
    /// Base steps and shapes of the chains. Empty until [`begin`](Explorer::begin) knows how many there are.
    pub sizes: AutoSizes,
}

impl Default for Auto {
    fn default() -> Self {
        Self { steps: 1, acceptance: 0.8, sizes: AutoSizes::default() }
    }
}

impl Auto {
    /// With base steps and shapes that are known.
    pub fn with_sizes(sizes: AutoSizes) -> Self {
        Self { sizes, ..Self::default() }
    }

    fn resized(&self, sizes: AutoSizes) -> Option<Arc<dyn Explorer>> {
        Some(Arc::new(Self { sizes, ..self.clone() }))
    }
}

impl Explorer for Auto {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let memory = scratch.get::<Memory>();
        (0..self.steps).try_for_each(|_| memory.make_move(&self.sizes, call, points, moved))
    }

    fn check(&self, _chains: usize, _rounds: usize) -> Result<()> {
        const { assert!(MOST_MOVES == 63) };
        if self.steps == 0 || self.steps > MOST_MOVES {
            let cure = "between 1 and 63 moves an iteration are possible";
            return Err(Error::setting("Auto.steps", self.steps, cure));
        }
        if !(self.acceptance > 0.0 && self.acceptance < 1.0) {
            let cure = "the wanted acceptance lies strictly between 0 and 1";
            return Err(Error::setting("Auto.acceptance", self.acceptance, cure));
        }
        Ok(())
    }

    fn begin(&self, chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        if self.sizes == AutoSizes::default() {
            return Ok(self.resized(AutoSizes::first(chains, dim)));
        }
        match self.sizes.are_for(chains, dim) {
            true => Ok(None),
            false => {
                let found = self.sizes.shapes.first().map_or(0, |shape| shape.dim());
                Err(Error::Dimension { what: "the shapes of local moves", found, expected: dim })
            }
        }
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        let sizes = &self.sizes;
        self.resized(match tuning {
            Tuning::Block { acceptance, gain } => sizes.followed(acceptance, self.acceptance, *gain),
            Tuning::Round { information, spread } if !sizes.fitted => sizes.scaled(information, spread),
            Tuning::Round { .. } | Tuning::Balance(_) => return None,
            Tuning::Masses { shapes, parts, doublings, reach } => {
                sizes.shaped(shapes, *parts, *doublings, reach)
            }
            Tuning::Schedule { from, to } => sizes.read_at(from, to),
        })
    }

    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        let steps = &self.sizes.step_size;
        let most = (0..steps.len()).map(|chain| self.sizes.most_leaps(chain) as f64).collect();
        vec![("step_size", steps.clone()), ("most_leapfrog_steps", most)]
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&("auto", self)).expect("memory is all it needs")
    }

    fn restore(&self, saved: &[u8], chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let (kind, theirs): (&str, Self) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let same = Self { sizes: self.sizes.clone(), ..theirs.clone() } == *self;
        if kind != "auto" || !same || !theirs.sizes.are_for(chains, dim) {
            return Err(BadState::Contradiction.into());
        }
        Ok(Some(Arc::new(theirs)))
    }
}
