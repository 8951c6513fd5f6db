//! The optimiser's step over vectors.

use super::level::leveled;
use super::product::{read, write};
use super::simd::{Simd, constant};

/// Raw parts of an [`AdamStep`](crate::optimiser::AdamStep).
#[derive(Clone, Copy)]
pub struct Parts<T> {
    pub parameters: *mut T,
    pub average: *mut T,
    pub first: *mut T,
    pub second: *mut T,
    pub gradient: *const T,
    pub shrink: f64,
    pub rate: f64,
    pub second_scale: f64,
    pub constants: [f64; 4],
}

// SAFETY: chunks are disjoint.
unsafe impl<T: Send> Send for Parts<T> {}
unsafe impl<T: Sync> Sync for Parts<T> {}

leveled! {
    /// Updates numbers `from .. to`.
    pub fn adam(parts: &Parts<T>, from: usize, to: usize) = adam_with;
}

#[inline(always)]
unsafe fn adam_with<V: Simd>(parts: &Parts<V::Scalar>, from: usize, to: usize) {
    let [b1, b2, epsilon, past] = parts.constants;
    let (first_past, first_new) = (constant::<V>(b1), constant::<V>(1.0 - b1));
    let (second_past, second_new) = (constant::<V>(b2), constant::<V>(1.0 - b2));
    let (epsilon, new) = (constant::<V>(epsilon), constant::<V>(1.0 - past));
    let (shrink, scale) = (constant::<V>(parts.shrink), constant::<V>(parts.second_scale));
    let rate = constant::<V>(-parts.rate);
    let mut i = from;
    while i < to {
        let n = V::WIDTH.min(to - i);
        unsafe {
            let g = read::<V>(parts.gradient.add(i), n).mul(shrink);
            let m = read::<V>(parts.first.add(i), n).mul(first_past).add(g.mul(first_new));
            let v = read::<V>(parts.second.add(i), n).mul(second_past).add(g.mul(g).mul(second_new));
            let move_by = m.div(v.sqrt().fma(scale, epsilon));
            let p = move_by.fma(rate, read::<V>(parts.parameters.add(i), n));
            let a = read::<V>(parts.average.add(i), n);
            write(m, parts.first.add(i), n);
            write(v, parts.second.add(i), n);
            write(p, parts.parameters.add(i), n);
            write(p.sub(a).fma(new, a), parts.average.add(i), n);
        }
        i += V::WIDTH;
    }
}

leveled! {
    /// Adds Σ x² over `n` numbers to `sum`, in f64, in an order that only `n` decides.
    pub fn square_sum(x: *const T, n: usize, sum: &mut f64) = square_sum_with;
}

#[inline(always)]
unsafe fn square_sum_with<V: Simd>(x: *const V::Scalar, n: usize, sum: &mut f64) {
    // SAFETY: the caller's range; the plain loop vectorises at every level.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    *sum += crate::optimiser::square_sum_chunk(x);
}
