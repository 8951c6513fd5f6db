//! The arithmetic of a trajectory, for whole batches.

use crate::Batch;
use crate::lanes::{Kernel, Lanes, WIDTH, exp, for_each_chunk, ln, sum_of_squares};
use crate::path::Points;

/// log π̃ − ½|v|².
pub(super) struct LogJoint<'a> {
    pub points: &'a Points,
    pub momentum: &'a Batch,
    pub out: &'a mut [f64],
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
pub(super) struct Leap<'a> {
    pub points: &'a mut Points,
    pub momentum: &'a mut Batch,
    pub step: &'a Batch,
    pub kick: f64,
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
pub(super) struct LastKick<'a> {
    pub points: &'a Points,
    pub momentum: &'a mut Batch,
    pub step: &'a Batch,
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
pub(super) struct Decide<'a> {
    pub points: &'a Points,
    pub momentum: &'a Batch,
    pub log_joint: &'a mut [f64],
    pub uniforms: &'a mut [f64],
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
