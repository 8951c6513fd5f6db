//! Matrix products: one register tile, used both for rows times a packed matrix and for sums over rows.
//!
//! Each element of the result is one chain of fused multiply-adds over the inner index, first to last,
//! whatever the tile's size: so a row's result does not depend on the rows around it, nor on threads.

use super::level::leveled;
use super::simd::Simd;
use crate::Real;

/// What the accumulators start from.
#[derive(Clone, Copy, Debug)]
pub enum Start<T> {
    /// Zero.
    Zero,
    /// One row for all rows: a bias.
    Row(*const T),
    /// A matrix with this row stride.
    Full(*const T, usize),
}

/// Numbers that a packed k × n matrix takes.
pub fn packed_len<T: Real>(k: usize, n: usize) -> usize {
    n.next_multiple_of(T::Wide::WIDTH.max(T::Plain::WIDTH)) * k
}

/// Width of the panel at column `j` of `n`: as many vectors as a tile has, or one for a narrow rest.
#[inline(always)]
fn panel_width<V: Simd>(j: usize, n: usize) -> usize {
    if n - j > V::WIDTH { V::WIDTH * V::TILE_VECTORS } else { V::WIDTH }
}

leveled! {
    /// Lays out B (k × n, row stride `ldb`; or its transpose) as panels of some columns, each contiguous
    /// along k and padded with zeros.
    pub fn pack(k: usize, n: usize, b: *const T, ldb: usize, transposed: bool, packed: *mut T) = pack_with;
}

#[inline(always)]
unsafe fn pack_with<V: Simd>(
    k: usize,
    n: usize,
    b: *const V::Scalar,
    ldb: usize,
    transposed: bool,
    mut packed: *mut V::Scalar,
) {
    let mut j = 0;
    while j < n {
        let width = panel_width::<V>(j, n);
        let filled = width.min(n - j);
        for i in 0..k {
            unsafe {
                if transposed {
                    for c in 0..filled {
                        *packed.add(c) = *b.add((j + c) * ldb + i);
                    }
                } else {
                    std::ptr::copy_nonoverlapping(b.add(i * ldb + j), packed, filled);
                }
                for c in filled..width {
                    *packed.add(c) = V::Scalar::ZERO;
                }
                packed = packed.add(width);
            }
        }
        j += width;
    }
}

/// The first `n` ≤ WIDTH numbers as a vector.
#[inline(always)]
pub unsafe fn read<V: Simd>(from: *const V::Scalar, n: usize) -> V {
    unsafe { if n == V::WIDTH { V::load(from) } else { V::load_partial(from, n) } }
}

/// Writes the first `n` ≤ WIDTH lanes.
#[inline(always)]
pub unsafe fn write<V: Simd>(x: V, to: *mut V::Scalar, n: usize) {
    unsafe { if n == V::WIDTH { x.store(to) } else { x.store_partial(to, n) } }
}

/// R rows by N vectors: C = start + A·B over k. A's element (r, i) lies at `a + r·ra + i·ka`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn tile<V: Simd, const R: usize, const N: usize>(
    k: usize,
    a: *const V::Scalar,
    ra: usize,
    ka: usize,
    b: *const V::Scalar,
    start: Start<V::Scalar>,
    c: *mut V::Scalar,
    ldc: usize,
    cols: usize,
) {
    if R > V::TILE_ROWS || N > V::TILE_VECTORS {
        unreachable!("tiles of this size are not asked for");
    }
    let zero = V::splat(V::Scalar::ZERO);
    let mut sum = [[zero; N]; R];
    // The last vector may be partly outside the matrix.
    let last = cols - (N - 1) * V::WIDTH;
    match start {
        Start::Zero => {}
        Start::Row(row) => {
            for v in 0..N {
                let x = unsafe { read::<V>(row.add(v * V::WIDTH), if v + 1 < N { V::WIDTH } else { last }) };
                for s in &mut sum {
                    s[v] = x;
                }
            }
        }
        Start::Full(from, stride) => {
            for (r, s) in sum.iter_mut().enumerate() {
                for (v, s) in s.iter_mut().enumerate() {
                    let at = r * stride + v * V::WIDTH;
                    *s = unsafe { read::<V>(from.add(at), if v + 1 < N { V::WIDTH } else { last }) };
                }
            }
        }
    }
    let (mut a, mut b) = (a, b);
    for _ in 0..k {
        unsafe {
            let mut row = [zero; N];
            for (v, x) in row.iter_mut().enumerate() {
                *x = V::load(b.add(v * V::WIDTH));
            }
            for (r, s) in sum.iter_mut().enumerate() {
                let x = V::splat(*a.add(r * ra));
                for v in 0..N {
                    s[v] = x.fma(row[v], s[v]);
                }
            }
            a = a.add(ka);
            b = b.add(N * V::WIDTH);
        }
    }
    for (r, s) in sum.iter().enumerate() {
        for (v, s) in s.iter().enumerate() {
            unsafe {
                let to = c.add(r * ldc + v * V::WIDTH);
                write(*s, to, if v + 1 < N { V::WIDTH } else { last });
            }
        }
    }
}

/// Tiles down the rows of C for one panel of B; rows are split evenly, so no tile is thin.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn panel<V: Simd>(
    rows: usize,
    k: usize,
    a: *const V::Scalar,
    ra: usize,
    ka: usize,
    b: *const V::Scalar,
    start: Start<V::Scalar>,
    c: *mut V::Scalar,
    ldc: usize,
    cols: usize,
) {
    let groups = rows.div_ceil(V::TILE_ROWS);
    let mut r = 0;
    for group in 0..groups {
        let height = (rows - r) / (groups - group);
        unsafe {
            let (a, c) = (a.add(r * ra), c.add(r * ldc));
            let start = match start {
                Start::Full(from, stride) => Start::Full(from.add(r * stride), stride),
                other => other,
            };
            macro_rules! by_height {
                ($n:literal, $($h:literal)*) => {
                    match height {
                        $($h => tile::<V, $h, $n>(k, a, ra, ka, b, start, c, ldc, cols),)*
                        _ => unreachable!("tile of {height} rows"),
                    }
                };
            }
            if cols > V::WIDTH {
                by_height!(2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
            } else {
                by_height!(1, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
            }
        }
        r += height;
    }
}

leveled! {
    /// C (rows × n) = start + A (rows × k) · B, with B packed.
    pub fn product(rows: usize, k: usize, n: usize, a: *const T, packed: *const T, start: Start<T>, c: *mut T)
        = product_with;
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn product_with<V: Simd>(
    rows: usize,
    k: usize,
    n: usize,
    a: *const V::Scalar,
    packed: *const V::Scalar,
    start: Start<V::Scalar>,
    c: *mut V::Scalar,
) {
    let mut j = 0;
    while j < n {
        let width = panel_width::<V>(j, n);
        unsafe {
            let start = match start {
                Start::Zero => Start::Zero,
                Start::Row(row) => Start::Row(row.add(j)),
                Start::Full(from, stride) => Start::Full(from.add(j), stride),
            };
            panel::<V>(rows, k, a, k, 1, packed.add(j * k), start, c.add(j), n, width.min(n - j));
        }
        j += width;
    }
}

/// Rows of B that are packed at a time in [`sum_products`]: a panel of them stays in the first cache.
pub const SUM_BLOCK: usize = 256;

/// Columns of C that [`sum_products`] treats as one unit.
pub fn sum_unit<T: Real>() -> usize {
    T::Wide::WIDTH * T::Wide::TILE_VECTORS
}

/// Most columns of C per task.
pub fn sum_columns<T: Real>() -> usize {
    4 * sum_unit::<T>()
}

/// Numbers of scratch that [`sum_products`] needs.
pub fn sum_scratch<T: Real>() -> usize {
    SUM_BLOCK * sum_unit::<T>()
}

leveled! {
    /// Columns `from .. to` of C (m × n) += Aᵀ·B over `rows` rows, first to last; C is set, not added to,
    /// where `fresh`. `from` is a multiple of the panel width. `scratch` holds [`sum_scratch`] numbers.
    pub fn sum_products(rows: usize, m: usize, n: usize, a: *const T, b: *const T, c: *mut T,
        from: usize, to: usize, fresh: bool, scratch: *mut T) = sum_products_with;
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn sum_products_with<V: Simd>(
    rows: usize,
    m: usize,
    n: usize,
    a: *const V::Scalar,
    b: *const V::Scalar,
    c: *mut V::Scalar,
    from: usize,
    to: usize,
    fresh: bool,
    scratch: *mut V::Scalar,
) {
    let mut row = 0;
    loop {
        let count = (rows - row).min(SUM_BLOCK);
        let mut j = from;
        while j < to {
            let width = panel_width::<V>(j, to);
            let cols = width.min(to - j);
            unsafe {
                pack_with::<V>(count, cols, b.add(row * n + j), n, false, scratch);
                let start =
                    if fresh && row == 0 { Start::Zero } else { Start::Full(c.add(j).cast_const(), n) };
                panel::<V>(m, count, a.add(row * m), 1, m, scratch, start, c.add(j), n, cols);
            }
            j += width;
        }
        row += count;
        if row >= rows {
            return;
        }
    }
}

leveled! {
    /// c (n) += Σ of the rows of b (rows × n), first to last; set, not added to, where `fresh`.
    pub fn sum_rows(rows: usize, n: usize, b: *const T, c: *mut T, fresh: bool) = sum_rows_with;
}

#[inline(always)]
unsafe fn sum_rows_with<V: Simd>(rows: usize, n: usize, b: *const V::Scalar, c: *mut V::Scalar, fresh: bool) {
    let mut j = 0;
    while j < n {
        let cols = (n - j).min(V::WIDTH);
        unsafe {
            let mut sum = if fresh { V::splat(V::Scalar::ZERO) } else { read(c.add(j), cols) };
            for r in 0..rows {
                sum = sum.add(read(b.add(r * n + j), cols));
            }
            write(sum, c.add(j), cols);
        }
        j += V::WIDTH;
    }
}
