//! Kernels that work within a row or a group of rows: sums over columns, moves of columns and rows.

use super::simd::{Simd, read, write};
use crate::Real;
use sterna::lanes::{self, leveled};

leveled! {
    /// y[r] = Σ over the columns of row r, in an order that only the number of columns decides.
    pub fn sum_cols<T: Real>(rows: usize, cols: usize, x: *const T, y: *mut T) = sum_cols_with;
}

/// # Safety
/// As for the kernel of this name.
#[inline(always)]
unsafe fn sum_cols_with<V: Simd>(rows: usize, cols: usize, x: *const V::Scalar, y: *mut V::Scalar) {
    for r in 0..rows {
        // SAFETY: within the rows that the caller promised.
        unsafe {
            let row = x.add(r * cols);
            let mut sum = V::splat(V::Scalar::ZERO);
            let mut c = 0;
            while c < cols {
                sum = sum.add(read::<V>(row.add(c), V::LANES.min(cols - c)));
                c += V::LANES;
            }
            *y.add(r) = horizontal(sum, V::LANES.min(cols));
        }
    }
}

/// Sum of the first `n` lanes, one after the other.
#[inline(always)]
fn horizontal<V: Simd>(x: V, n: usize) -> V::Scalar {
    let mut lanes = [V::Scalar::ZERO; 16];
    // SAFETY: within the rows that the caller promised.
    unsafe { x.write(lanes.as_mut_ptr()) };
    // Through f64: for f32 that is exact for a few lanes and costs nothing.
    let mut sum = lanes[0].to_f64();
    for x in &lanes[1..n] {
        sum += x.to_f64();
    }
    V::Scalar::from_f64(sum)
}

leveled! {
    /// y[r] = log Σ exp over the columns of row r.
    pub fn log_sum_exp<T: Real>(rows: usize, cols: usize, x: *const T, y: *mut T) = log_sum_exp_with;
}

/// # Safety
/// As for the kernel of this name.
#[inline(always)]
unsafe fn log_sum_exp_with<V: Simd>(rows: usize, cols: usize, x: *const V::Scalar, y: *mut V::Scalar) {
    for r in 0..rows {
        // SAFETY: within the rows that the caller promised.
        unsafe {
            let row = x.add(r * cols);
            let mut top = *row;
            for c in 1..cols {
                let x = *row.add(c);
                // NaN wins, so that a bad row stays visible.
                if x > top || x.to_f64().is_nan() {
                    top = x;
                }
            }
            if top.to_f64().is_infinite() {
                *y.add(r) = top;
                continue;
            }
            let shift = V::splat(top);
            let mut sum = V::splat(V::Scalar::ZERO);
            let mut c = 0;
            while c < cols {
                let n = V::LANES.min(cols - c);
                let e = lanes::exp(read::<V>(row.add(c), n).sub(shift));
                if n == V::LANES {
                    sum = sum.add(e);
                } else {
                    // Lanes past the end must not count.
                    let mut lanes = [V::Scalar::ZERO; 16];
                    e.write_first(lanes.as_mut_ptr(), n);
                    sum = sum.add(V::read(lanes.as_ptr()));
                }
                c += V::LANES;
            }
            let total = lanes::ln(V::splat(horizontal(sum, V::LANES.min(cols)))).add(shift);
            total.write_first(y.add(r), 1);
        }
    }
}

/// Columns `start .. start + cols` of rows of length `from_cols`, to rows of length `cols`.
///
/// # Safety
/// `x` and `y` hold `rows` rows.
pub unsafe fn slice<T: Real>(
    rows: usize,
    cols: usize,
    from_cols: usize,
    start: usize,
    x: *const T,
    y: *mut T,
) {
    for r in 0..rows {
        // SAFETY: within the rows that the caller promised.
        unsafe { std::ptr::copy_nonoverlapping(x.add(r * from_cols + start), y.add(r * cols), cols) };
    }
}

/// Places rows of length `part` at column `start` of rows of length `cols`.
///
/// # Safety
/// `x` and `y` hold `rows` rows.
pub unsafe fn place<T: Real>(rows: usize, part: usize, cols: usize, start: usize, x: *const T, y: *mut T) {
    for r in 0..rows {
        // SAFETY: within the rows that the caller promised.
        unsafe { std::ptr::copy_nonoverlapping(x.add(r * part), y.add(r * cols + start), part) };
    }
}

/// Row j of each group of y is row `index[j]` of the same group of x.
///
/// # Safety
/// `x` holds `groups` groups of `from` rows, `y` as many of `index.len()` rows.
pub unsafe fn gather<T: Real>(
    groups: usize,
    from: usize,
    cols: usize,
    index: &[usize],
    x: *const T,
    y: *mut T,
) {
    for g in 0..groups {
        for (j, &i) in index.iter().enumerate() {
            // SAFETY: within the rows that the caller promised.
            unsafe {
                let (x, y) = (x.add((g * from + i) * cols), y.add((g * index.len() + j) * cols));
                std::ptr::copy_nonoverlapping(x, y, cols);
            }
        }
    }
}

leveled! {
    /// Row j of each group of x is added to row `index[j]` of the same group of y (of `to` rows), in order.
    pub fn scatter<T: Real>(groups: usize, to: usize, cols: usize, index: &[usize], x: *const T, y: *mut T) = scatter_with;
}

/// # Safety
/// As for the kernel of this name.
#[inline(always)]
unsafe fn scatter_with<V: Simd>(
    groups: usize,
    to: usize,
    cols: usize,
    index: &[usize],
    x: *const V::Scalar,
    y: *mut V::Scalar,
) {
    for g in 0..groups {
        // SAFETY: within the rows that the caller promised.
        unsafe {
            let (x, y) = (x.add(g * index.len() * cols), y.add(g * to * cols));
            for i in 0..to * cols {
                *y.add(i) = V::Scalar::ZERO;
            }
            for (j, &i) in index.iter().enumerate() {
                let (x, y) = (x.add(j * cols), y.add(i * cols));
                let mut c = 0;
                while c < cols {
                    let n = V::LANES.min(cols - c);
                    let sum = read::<V>(y.add(c), n).add(read::<V>(x.add(c), n));
                    write(sum, y.add(c), n);
                    c += V::LANES;
                }
            }
        }
    }
}
