//! Hamiltonian Monte Carlo with a diagonal mass and a step size per chain. One leapfrog step is MALA.

mod leapfrog;
mod sizes;

use crate::call::{Call, EXPLORER_SLOTS, Scratch};
use crate::error::BadState;
use crate::explorer::{Explorer, Moved, Tuning};
use crate::lanes::dispatch;
use crate::path::Points;
use crate::{Batch, Error, Result};
use leapfrog::{Decide, LastKick, Leap, LogJoint};
use serde::{Deserialize, Serialize};
use sizes::{adapt_by_paper, adapt_scales, adapt_step_sizes, move_sizes, shape_scales};
use std::sync::Arc;

pub use sizes::{STEP_SIZE_BOUNDS, StepSize, StepSizes};
pub(super) use sizes::{first_step, follow_acceptance};

/// Slots of a proposal: jitter, momenta, acceptance.
const SLOTS: usize = 3;

/// Hamiltonian Monte Carlo.
///
/// ```
/// use sterna::explorers::{Hmc, StepSize};
/// // The paper's local move on GMM-10.
/// let hmc = Hmc { steps: 1, leapfrog_steps: 5, step_size: StepSize::Fixed(0.03), ..Hmc::default() };
/// // Metropolis-adjusted Langevin is HMC with one leapfrog step.
/// let mala = Hmc { leapfrog_steps: 1, ..hmc };
/// # assert_eq!(mala.steps, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hmc {
    /// Proposals an iteration.
    pub steps: usize,
    /// Leapfrog steps a proposal; 1 is MALA.
    pub leapfrog_steps: usize,
    /// Where step sizes come from.
    pub step_size: StepSize,
    /// Whether an adapted step size comes with an adapted mass of each coordinate.
    pub adapt_masses: bool,
    /// Each proposal's step is shortened by a uniform share of up to this much, so that no
    /// trajectory length resonates with the target's own periods. If not given: half of a step that adapts to an
    /// acceptance, nothing of any other.
    pub jitter: Option<f64>,
    /// Step sizes of the chains. Empty until [`begin`](Explorer::begin) knows how many there are.
    pub sizes: StepSizes,
}

/// One trajectory of five leapfrog steps, its step sizes and masses adapted.
impl Default for Hmc {
    fn default() -> Self {
        Self {
            steps: 1,
            leapfrog_steps: 5,
            step_size: StepSize::Adapt { acceptance: 0.92 },
            adapt_masses: true,
            jitter: None,
            sizes: StepSizes::default(),
        }
    }
}

impl Hmc {
    /// With sizes that are known and stay.
    pub fn with_sizes(steps: usize, leapfrog_steps: usize, sizes: StepSizes, jitter: f64) -> Self {
        let step_size = StepSize::PerChain(sizes.step_size.clone());
        Self { steps, leapfrog_steps, step_size, adapt_masses: false, jitter: Some(jitter), sizes }
    }

    /// The share of a step that may be cut off.
    pub fn jitter(&self) -> f64 {
        let adapts = matches!(self.step_size, StepSize::Adapt { .. });
        self.jitter.unwrap_or(if adapts { 0.5 } else { 0.0 })
    }

    fn resized(&self, sizes: StepSizes) -> Option<Arc<dyn Explorer>> {
        Some(Arc::new(Self { sizes, ..self.clone() }))
    }

    fn has_sizes_for(&self, chains: usize, dim: usize) -> bool {
        let StepSizes { step_size, scale } = &self.sizes;
        step_size.len() == chains && (scale.rows(), scale.dim()) == (chains, dim)
    }
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    /// Proposals.
    points: Points,
    momentum: Batch,
    /// Step size of each coordinate of each row.
    step: Batch,
    /// Log density of the extended target at the start, one per row.
    log_joint: Vec<f64>,
    uniforms: Vec<f64>,
}

impl Explorer for Hmc {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (rows, slots) = (call.rows, &call.slots);
        let Memory { points: proposal, momentum, step, log_joint, uniforms } = scratch.get();
        momentum.set_size(rows.len(), points.x.dim());
        step.set_size(rows.len(), points.x.dim());
        log_joint.resize(rows.len(), 0.0);
        uniforms.resize(rows.len(), 0.0);
        let jitter = self.jitter();
        for _ in 0..self.steps {
            call.uniforms(slots.take(), uniforms);
            for (i, &chain) in rows.chain.iter().enumerate() {
                let size = self.sizes.step_size[chain] * (1.0 - jitter * uniforms[i]);
                for (step, scale) in step.row_mut(i).iter_mut().zip(self.sizes.scale.row(chain)) {
                    *step = size * scale;
                }
            }
            proposal.gather_state(points, &rows.row);
            call.normals(slots.take(), momentum);
            call.uniforms(slots.take(), uniforms);
            dispatch(LogJoint { points: proposal, momentum, out: log_joint });
            dispatch(Leap { points: proposal, momentum, step, kick: 0.5 });
            for leap in 1..=self.leapfrog_steps {
                call.path.evaluate(&rows.beta, proposal)?;
                if leap < self.leapfrog_steps {
                    dispatch(Leap { points: proposal, momentum, step, kick: 1.0 });
                }
            }
            dispatch(LastKick { points: proposal, momentum, step });
            // The uniforms become log acceptance ratio minus log u, the log joints acceptance probabilities.
            dispatch(Decide { points: proposal, momentum, log_joint, uniforms });
            for i in 0..rows.len() {
                moved.rows[i].proposed += 1;
                moved.rows[i].acceptance += log_joint[i];
                // What the path makes of it decides: at β = 0 of a geometric path the target has no say.
                let log_density = proposal.log_density[i];
                if log_density.is_nan() || log_density == f64::INFINITY {
                    uniforms[i] = f64::NEG_INFINITY;
                }
                if proposal.is_bad(i) {
                    moved.note_bad(i, proposal.x.row(i));
                }
            }
            points.scatter(&rows.row, proposal, |i| uniforms[i] > 0.0);
        }
        Ok(())
    }

    fn check(&self, chains: usize, rounds: usize) -> Result<()> {
        let wrong = |setting, value: String, cure| Err(Error::Setting { setting, value, cure });
        let is_bad = |s: &f64| !(*s > 0.0 && s.is_finite());
        if self.steps == 0 || self.steps > 60 {
            let cure = "between 1 and 60 moves an iteration are possible";
            return wrong("Hmc.steps", self.steps.to_string(), cure);
        }
        const { assert!(60 * SLOTS <= EXPLORER_SLOTS) };
        if self.leapfrog_steps == 0 || self.leapfrog_steps > 10_000 {
            let cure = "between 1 and 10000 leapfrog steps a move are possible";
            return wrong("Hmc.leapfrog_steps", self.leapfrog_steps.to_string(), cure);
        }
        match &self.step_size {
            StepSize::Fixed(s) if is_bad(s) => {
                wrong("Hmc.step_size", s.to_string(), "a step size is a positive number")
            }
            StepSize::PerChain(all) if all.iter().any(is_bad) => {
                wrong("Hmc.step_size", format!("{all:?}"), "step sizes are positive numbers")
            }
            StepSize::PerChain(all) if all.len() != chains => {
                let cure = "one step size per chain is needed";
                wrong("Hmc.step_size", format!("{} numbers", all.len()), cure)
            }
            StepSize::Adapt { acceptance } if !(*acceptance > 0.0 && *acceptance < 1.0) => {
                let cure = "the wanted acceptance lies strictly between 0 and 1";
                wrong("Hmc.acceptance", acceptance.to_string(), cure)
            }
            sizes if sizes.adapts() && rounds == 0 => {
                let cure = "step sizes adapt during tuning: give at least 1 round, or a number as step size";
                wrong("Settings.rounds", "0".into(), cure)
            }
            _ => Ok(()),
        }
    }

    fn begin(&self, chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        if self.sizes != StepSizes::default() {
            let (found, expected) = (self.sizes.scale.dim(), dim);
            return match self.has_sizes_for(chains, dim) {
                true => Ok(None),
                false => Err(Error::Dimension { what: "the step sizes", found, expected }),
            };
        }
        Ok(self.resized(match &self.step_size {
            StepSize::Fixed(size) => StepSizes::fixed(chains, dim, *size),
            StepSize::PerChain(sizes) if sizes.len() != chains => {
                let cure = "where the number of chains follows from tuning, give one step size, or adapt it";
                return Err(Error::setting("Hmc.step_size", format!("{} numbers", sizes.len()), cure));
            }
            StepSize::PerChain(sizes) => StepSizes::per_chain(sizes.clone(), dim),
            StepSize::Adapt { .. } | StepSize::Paper => StepSizes::fixed(chains, dim, 0.1),
        }))
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        let sizes = &self.sizes;
        self.resized(match (tuning, &self.step_size) {
            (Tuning::Block { acceptance, gain }, StepSize::Adapt { acceptance: wanted }) => {
                adapt_step_sizes(sizes, acceptance, *wanted, *gain)
            }
            (Tuning::Block { acceptance, .. }, StepSize::Paper) => adapt_by_paper(sizes, acceptance),
            (Tuning::Round { information, .. }, StepSize::Adapt { .. }) if self.adapt_masses => {
                adapt_scales(sizes, information)
            }
            (Tuning::Masses { shapes, .. }, StepSize::Adapt { .. }) if self.adapt_masses => {
                shape_scales(sizes, shapes)
            }
            (Tuning::Schedule { from, to }, rule) if rule.adapts() => move_sizes(sizes, from, to),
            // Sizes that were given stay what they are, on as many chains as there are.
            (Tuning::Schedule { from, to }, rule) if to.chains() != from.chains() => {
                let moved = move_sizes(sizes, from, to);
                match rule {
                    StepSize::Fixed(size) => StepSizes { step_size: vec![*size; to.chains()], ..moved },
                    _ => moved,
                }
            }
            _ => return None,
        })
    }

    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        vec![("step_size", self.sizes.step_size.clone())]
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&("hmc", self)).expect("memory is all it needs")
    }

    fn restore(&self, saved: &[u8], chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let (kind, theirs): (&str, Self) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let same = Self { sizes: self.sizes.clone(), ..theirs.clone() } == *self;
        if kind != "hmc" || !same || !theirs.has_sizes_for(chains, dim) {
            return Err(BadState::Contradiction.into());
        }
        Ok(Some(Arc::new(theirs)))
    }

    fn as_hmc(&self) -> Option<&Hmc> {
        Some(self)
    }
}
