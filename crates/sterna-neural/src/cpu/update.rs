//! The optimiser's step over vectors.

use super::simd::{Simd, read, write};
use crate::Real;
use crate::optimiser::AdamStep;
use sterna::lanes::{Level, leveled};

/// One update of a run of parameters.
///
/// # Panics
/// If the parts of the step differ in length, or this machine lacks the level.
pub fn adam<T: Real>(level: Level, step: AdamStep<'_, T>) {
    let n = step.parameters.len();
    assert!([step.average.len(), step.first.len(), step.second.len(), step.gradient.len()] == [n; 4]);
    assert!(level.is_available());
    // SAFETY: lengths and level were checked.
    unsafe { adam_leveled(level, step) }
}

leveled! {
    /// Updates all numbers.
    fn adam_leveled<T: Real>(step: AdamStep<'_, T>) = adam_with;
}

/// # Safety
/// As for the kernel of this name.
#[inline(always)]
unsafe fn adam_with<V: Simd>(step: AdamStep<'_, V::Scalar>) {
    let [b1, b2, epsilon, past] = step.constants;
    let (first_past, first_new) = (V::constant(b1), V::constant(1.0 - b1));
    let (second_past, second_new) = (V::constant(b2), V::constant(1.0 - b2));
    let (epsilon, new) = (V::constant(epsilon), V::constant(1.0 - past));
    let (shrink, scale) = (V::constant(step.shrink), V::constant(step.second_scale));
    let rate = V::constant(-step.rate);
    let mut i = 0;
    while i < step.parameters.len() {
        let n = V::LANES.min(step.parameters.len() - i);
        // SAFETY: `i + n` numbers are in each part.
        unsafe {
            let g = read::<V>(step.gradient.as_ptr().add(i), n).mul(shrink);
            let m = read::<V>(step.first.as_ptr().add(i), n).mul(first_past).add(g.mul(first_new));
            let v = read::<V>(step.second.as_ptr().add(i), n).mul(second_past).add(g.mul(g).mul(second_new));
            let move_by = m.div(v.sqrt().mul_add(scale, epsilon));
            let p = move_by.mul_add(rate, read::<V>(step.parameters.as_ptr().add(i), n));
            let a = read::<V>(step.average.as_ptr().add(i), n);
            write(m, step.first.as_mut_ptr().add(i), n);
            write(v, step.second.as_mut_ptr().add(i), n);
            write(p, step.parameters.as_mut_ptr().add(i), n);
            write(p.sub(a).mul_add(new, a), step.average.as_mut_ptr().add(i), n);
        }
        i += V::LANES;
    }
}

/// Σ x² of one chunk in f64, in an order that only its length decides.
///
/// # Panics
/// If this machine lacks the level.
pub fn square_sum<T: Real>(level: Level, x: &[T]) -> f64 {
    assert!(level.is_available());
    let mut sum = 0.0;
    // SAFETY: the level was checked.
    unsafe { square_sum_leveled(level, x, &mut sum) };
    sum
}

leveled! {
    /// The plain loop, which vectorises at every level.
    fn square_sum_leveled<T: Real>(x: &[T], sum: &mut f64) = square_sum_with;
}

/// # Safety
/// As for the kernel of this name.
#[inline(always)]
unsafe fn square_sum_with<V: Simd>(x: &[V::Scalar], sum: &mut f64) {
    *sum = crate::optimiser::square_sum_chunk(x);
}
