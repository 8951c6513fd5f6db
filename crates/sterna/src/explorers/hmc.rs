//! Hamiltonian Monte Carlo with a diagonal mass and a step size per chain. One leapfrog step is MALA.

use crate::explorer::{Explorer, Moves, Rows, Scratch};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, exp, for_each_chunk, ln, sum_of_squares};
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, Streams};
use crate::{Batch, Result};

/// Step sizes of all chains.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StepSizes {
    /// Overall step size ε of each chain.
    pub step_size: Vec<f64>,
    /// Scale of each coordinate on each chain (chains × dim): one over the square root of the mass.
    pub scale: Batch,
}

impl StepSizes {
    /// One step size for all chains, unit mass.
    pub fn fixed(chains: usize, dim: usize, step_size: f64) -> Self {
        Self::per_chain(vec![step_size; chains], dim)
    }

    /// A step size for each chain, unit mass.
    pub fn per_chain(step_size: Vec<f64>, dim: usize) -> Self {
        let ones = vec![1.0; step_size.len() * dim];
        Self { scale: Batch::from_vec(dim, ones), step_size }
    }
}

/// Hamiltonian Monte Carlo.
///
/// ```
/// use sterna::explorers::{Hmc, StepSizes};
/// // The paper's local move on GMM-10 with 30 chains.
/// let hmc = Hmc { steps: 1, leapfrog_steps: 5, sizes: StepSizes::fixed(30, 10, 0.03), jitter: 0.0 };
/// // Metropolis-adjusted Langevin is HMC with one leapfrog step.
/// let mala = Hmc { leapfrog_steps: 1, ..hmc };
/// # assert_eq!(mala.steps, 1);
/// ```
#[derive(Clone, Debug)]
pub struct Hmc {
    /// Proposals an iteration.
    pub steps: usize,
    /// Leapfrog steps a proposal.
    pub leapfrog_steps: usize,
    /// Step sizes of the chains.
    pub sizes: StepSizes,
    /// Each proposal's step is shortened by a uniform share of up to this much, so that no
    /// trajectory length resonates with the target's own periods. Zero: always the full step.
    pub jitter: f64,
}

impl Explorer for Hmc {
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
        let Scratch { points: proposal, momentum, step, log_joint, uniforms, bad_point, .. } = scratch;
        momentum.set_rows(rows.len());
        log_joint.resize(rows.len(), 0.0);
        uniforms.resize(rows.len(), 0.0);
        step.set_rows(rows.len());
        for n in 0..self.steps {
            streams.uniforms(Phase::Local.number(3 * n), iteration, &rows.key, uniforms);
            for (i, &chain) in rows.chain.iter().enumerate() {
                let size = self.sizes.step_size[chain] * (1.0 - self.jitter * uniforms[i]);
                for (step, scale) in step.row_mut(i).iter_mut().zip(self.sizes.scale.row(chain)) {
                    *step = size * scale;
                }
            }
            proposal.gather_state(points, &rows.row);
            streams.normals(Phase::Local.number(3 * n + 1), iteration, &rows.key, momentum);
            streams.uniforms(Phase::Local.number(3 * n + 2), iteration, &rows.key, uniforms);
            dispatch(LogJoint { points: proposal, momentum, out: log_joint });
            dispatch(Leap { points: proposal, momentum, step, kick: 0.5 });
            for leap in 1..=self.leapfrog_steps {
                path.evaluate(&rows.beta, proposal)?;
                if leap < self.leapfrog_steps {
                    dispatch(Leap { points: proposal, momentum, step, kick: 1.0 });
                }
            }
            dispatch(LastKick { points: proposal, momentum, step });
            // The uniforms become log acceptance ratio minus log u, the log joints acceptance probabilities.
            dispatch(Decide { points: proposal, momentum, log_joint, uniforms });
            for i in 0..rows.len() {
                let bad = proposal.is_bad(i);
                moves[i].proposed += 1;
                moves[i].acceptance += log_joint[i];
                moves[i].bad += u32::from(bad);
                // What the path makes of it decides: at β = 0 of a geometric path the target has no say.
                let log_density = proposal.log_density[i];
                if log_density.is_nan() || log_density == f64::INFINITY {
                    uniforms[i] = f64::NEG_INFINITY;
                }
                // The first of the batch: which one that is does not depend on how ladders share batches.
                if bad && bad_point.as_ref().is_none_or(|(first, _)| i < *first) {
                    *bad_point = Some((i, proposal.x.row(i).to_vec()));
                }
            }
            points.scatter(&rows.row, proposal, |i| uniforms[i] > 0.0);
        }
        Ok(())
    }
}

/// log π̃ − ½|v|².
struct LogJoint<'a> {
    points: &'a Points,
    momentum: &'a Batch,
    out: &'a mut [f64],
}
impl Kernel for LogJoint<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (i, out) in self.out.iter_mut().enumerate() {
            *out = self.points.log_density[i] - 0.5 * sum_of_squares::<L>(self.momentum.row(i));
        }
    }
}

/// v += kick · h ∘ score, then x += h ∘ v.
struct Leap<'a> {
    points: &'a mut Points,
    momentum: &'a mut Batch,
    step: &'a Batch,
    kick: f64,
}
impl Kernel for Leap<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let kick = L::splat(self.kick);
        let (h, score) = (self.step.as_slice(), self.points.score.as_slice());
        let (x, v) = (self.points.x.as_mut_slice(), self.momentum.as_mut_slice());
        for_each_chunk!(h.len(), |chunk| {
            let h = L::load_some(&h[chunk.clone()]);
            let score = L::load_some(&score[chunk.clone()]);
            let new_v = (h * kick).mul_add(score, L::load_some(&v[chunk.clone()]));
            new_v.store_some(&mut v[chunk.clone()]);
            h.mul_add(new_v, L::load_some(&x[chunk.clone()])).store_some(&mut x[chunk]);
        });
    }
}

/// v += ½ h ∘ score.
struct LastKick<'a> {
    points: &'a Points,
    momentum: &'a mut Batch,
    step: &'a Batch,
}
impl Kernel for LastKick<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let half = L::splat(0.5);
        let (h, score) = (self.step.as_slice(), self.points.score.as_slice());
        let v = self.momentum.as_mut_slice();
        for_each_chunk!(h.len(), |chunk| {
            let h = L::load_some(&h[chunk.clone()]) * half;
            let score = L::load_some(&score[chunk.clone()]);
            h.mul_add(score, L::load_some(&v[chunk.clone()])).store_some(&mut v[chunk]);
        });
    }
}

/// log_joint ← min(1, ratio), uniforms ← log ratio − log u: positive means accept. NaN is a rejection.
struct Decide<'a> {
    points: &'a Points,
    momentum: &'a Batch,
    log_joint: &'a mut [f64],
    uniforms: &'a mut [f64],
}
impl Kernel for Decide<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (i, log_joint) in self.log_joint.iter_mut().enumerate() {
            let end = self.points.log_density[i] - 0.5 * sum_of_squares::<L>(self.momentum.row(i));
            let log_ratio = end - *log_joint;
            *log_joint = if log_ratio.is_nan() { f64::NEG_INFINITY } else { log_ratio };
        }
        for (log_ratio, u) in self.log_joint.chunks_mut(WIDTH).zip(self.uniforms.chunks_mut(WIDTH)) {
            let n = u.len();
            let ratio = L::load_some(log_ratio);
            (ratio - ln(L::load_some(u))).store_some(u);
            exp(ratio.min(L::splat(0.0))).store_some(&mut log_ratio[..n]);
        }
    }
}
