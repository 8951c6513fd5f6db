//! Matrix products: one register tile, used both for rows times a packed matrix and for sums over rows.
//!
//! Each element of the result is one chain of fused multiply-adds over the inner index, first to last,
//! whatever the tile's size: so a row's result does not depend on the rows around it, nor on threads.

use super::simd::{Plain, Simd, Wide, read, write};
use crate::Real;
use sterna::lanes::{Vector, leveled};

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
    n.next_multiple_of(Wide::<T>::LANES) * k
}

/// Width of the panel at column `j` of `n`: as many vectors as a tile has, or one for a narrow rest.
#[inline(always)]
fn panel_width<V: Simd>(j: usize, n: usize) -> usize {
    if n - j > V::LANES { V::LANES * V::TILE_VECTORS } else { V::LANES }
}

leveled! {
    /// Lays out B (k × n, row stride `ldb`; or its transpose) as panels of some columns, each contiguous
    /// along k and padded with zeros.
    pub fn pack<T: Real>(k: usize, n: usize, b: *const T, ldb: usize, transposed: bool, packed: *mut T) = pack_with;
}

/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
unsafe fn pack_with<V: Simd>(
    k: usize,
    n: usize,
    b: *const V::Scalar,
    ldb: usize,
    transposed: bool,
    packed: *mut V::Scalar,
) {
    if !transposed {
        for i in 0..k {
            // SAFETY: within the shapes that the caller promised.
            unsafe { pack_row::<V>(i, k, n, b.add(i * ldb), packed) };
        }
        return;
    }
    let mut j = 0;
    while j < n {
        let width = panel_width::<V>(j, n);
        let mut c = 0;
        while c < width {
            // Square blocks while there are any, single numbers (or zeros) at the edges.
            let mut i = 0;
            // SAFETY: within the shapes that the caller promised.
            unsafe {
                if j + c + V::LANES <= n {
                    while i + V::LANES <= k {
                        let (from, to) = (b.add((j + c) * ldb + i), packed.add(j * k + i * width + c));
                        V::transpose(from, ldb, to, width);
                        i += V::LANES;
                    }
                }
                for i in i..k {
                    for c in c..c + V::LANES {
                        let x = if j + c < n { *b.add((j + c) * ldb + i) } else { V::Scalar::ZERO };
                        *packed.add(j * k + i * width + c) = x;
                    }
                }
            }
            c += V::LANES;
        }
        j += width;
    }
}

/// Where a tile's rows of A lie.
#[derive(Clone, Copy)]
enum Rows {
    /// As a matrix with this row stride.
    Apart(usize),
    /// Packed: one number of each row, then the next of each, [`spread`] apart.
    Together,
}

/// Whole vectors for the rows of a tile, so that packing writes nothing else.
#[inline(always)]
fn spread<V: Simd>() -> usize {
    V::TILE_ROWS.next_multiple_of(V::LANES)
}

/// Steps of the inner index per turn of the loop: addresses are worked out once a turn, which leaves the
/// ports of the multiply-adds alone.
const UNROLL: usize = 4;

/// R rows by N vectors: C = start + A·B over k.
///
/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn tile<V: Simd, const R: usize, const N: usize>(
    k: usize,
    a: *const V::Scalar,
    rows: Rows,
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
    let last = cols - (N - 1) * V::LANES;
    match start {
        Start::Zero => {}
        Start::Row(row) => {
            for v in 0..N {
                // SAFETY: within the shapes that the caller promised.
                let x = unsafe { read::<V>(row.add(v * V::LANES), if v + 1 < N { V::LANES } else { last }) };
                for s in &mut sum {
                    s[v] = x;
                }
            }
        }
        Start::Full(from, stride) => {
            for (r, s) in sum.iter_mut().enumerate() {
                for (v, s) in s.iter_mut().enumerate() {
                    let at = r * stride + v * V::LANES;
                    // SAFETY: within the shapes that the caller promised.
                    *s = unsafe { read::<V>(from.add(at), if v + 1 < N { V::LANES } else { last }) };
                }
            }
        }
    }
    // Element (r, i) of A lies at r·ra + i·ka.
    let (ra, ka) = match rows {
        Rows::Apart(stride) => (stride, 1),
        Rows::Together => (1, spread::<V>()),
    };
    let (mut a, mut b) = (a, b);
    macro_rules! steps {
        ($count:expr) => {
            for i in 0..$count {
                let mut row = [zero; N];
                for (v, x) in row.iter_mut().enumerate() {
                    *x = V::read(b.add((i * N + v) * V::LANES));
                }
                for (r, s) in sum.iter_mut().enumerate() {
                    let x = V::splat(*a.add(r * ra + i * ka));
                    for v in 0..N {
                        s[v] = x.mul_add(row[v], s[v]);
                    }
                }
            }
        };
    }
    // SAFETY: within the shapes that the caller promised.
    unsafe {
        for _ in 0..k / UNROLL {
            steps!(UNROLL);
            a = a.add(UNROLL * ka);
            b = b.add(UNROLL * N * V::LANES);
        }
        steps!(k % UNROLL);
    }
    for (r, s) in sum.iter().enumerate() {
        for (v, s) in s.iter().enumerate() {
            // SAFETY: within the shapes that the caller promised.
            unsafe {
                let to = c.add(r * ldc + v * V::LANES);
                write(*s, to, if v + 1 < N { V::LANES } else { last });
            }
        }
    }
}

/// A tile of `height` rows and at most two vectors of columns.
///
/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn one_tile<V: Simd>(
    height: usize,
    k: usize,
    a: *const V::Scalar,
    rows: Rows,
    b: *const V::Scalar,
    start: Start<V::Scalar>,
    c: *mut V::Scalar,
    ldc: usize,
    cols: usize,
) {
    macro_rules! by_height {
        ($n:literal, $($h:literal)*) => {
            match height {
                // SAFETY: within the shapes that the caller promised.
                $($h => unsafe { tile::<V, $h, $n>(k, a, rows, b, start, c, ldc, cols) },)*
                _ => unreachable!("tile of {height} rows"),
            }
        };
    }
    if cols > V::LANES {
        by_height!(2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    } else {
        by_height!(1, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    }
}

leveled! {
    /// C (rows × n) = start + A (rows × k) · B, with B packed.
    pub fn product<T: Real>(rows: usize, k: usize, n: usize, a: *const T, packed: *const T, start: Start<T>, c: *mut T)
        = product_with;
}

/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
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
        // SAFETY: within the shapes that the caller promised.
        unsafe {
            let start = match start {
                Start::Zero => Start::Zero,
                Start::Row(row) => Start::Row(row.add(j)),
                Start::Full(from, stride) => Start::Full(from.add(j), stride),
            };
            // Rows are split evenly, so that no tile is thin.
            let groups = rows.div_ceil(V::TILE_ROWS);
            let mut r = 0;
            for group in 0..groups {
                let height = (rows - r) / (groups - group);
                let start = match start {
                    Start::Full(from, stride) => Start::Full(from.add(r * stride), stride),
                    other => other,
                };
                let (a, c) = (a.add(r * k), c.add(r * n + j));
                let (rows, panel) = (Rows::Apart(k), packed.add(j * k));
                one_tile::<V>(height, k, a, rows, panel, start, c, n, width.min(n - j));
                r += height;
            }
        }
        j += width;
    }
}

/// Rows that [`sum_products`] lays out at a time: what it keeps of them stays in the second cache.
pub const SUM_BLOCK: usize = 256;

/// Most columns of C per task of [`sum_products`].
pub fn sum_columns<T: Real>() -> usize {
    16 * Wide::<T>::LANES * Wide::<T>::TILE_VECTORS
}

/// Numbers of scratch that [`sum_products`] needs for m rows of C.
pub fn sum_scratch<T: Real>(m: usize) -> usize {
    // The plain level has smaller tiles, so more of them.
    let tiles = |rows: usize, spread: usize| m.div_ceil(rows) * spread;
    let wide = tiles(Wide::<T>::TILE_ROWS, spread::<Wide<T>>());
    let plain = tiles(Plain::<T>::TILE_ROWS, spread::<Plain<T>>());
    SUM_BLOCK * (sum_columns::<T>() + wide.max(plain))
}

leveled! {
    /// Columns `from .. to` of C (m × n) += Aᵀ·B over `rows` rows, first to last; C is set, not added to,
    /// where `fresh`. At most [`sum_columns`] columns; `scratch` holds [`sum_scratch`] numbers.
    pub fn sum_products<T: Real>(rows: usize, m: usize, n: usize, a: *const T, b: *const T, c: *mut T,
        from: usize, to: usize, fresh: bool, scratch: *mut T) = sum_products_with;
}

/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
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
        // SAFETY: within the shapes that the caller promised.
        unsafe {
            // Both factors row by row, as they lie in memory, into panels that are contiguous along the sum.
            let a_packed = scratch.add(SUM_BLOCK * sum_columns::<V::Scalar>());
            for r in 0..count {
                pack_row::<V>(r, count, to - from, b.add((row + r) * n + from), scratch);
                let left = (rows - row - r) * m;
                pack_tiles::<V>(r, count, m, a.add((row + r) * m), left, a_packed);
            }
            let mut j = from;
            while j < to {
                let width = panel_width::<V>(j, to);
                let (cols, panel_at) = (width.min(to - j), scratch.add((j - from) * count));
                let groups = m.div_ceil(V::TILE_ROWS);
                let mut i = 0;
                for group in 0..groups {
                    let height = (m - i) / (groups - group);
                    let c = c.add(i * n + j);
                    let start = if fresh && row == 0 { Start::Zero } else { Start::Full(c.cast_const(), n) };
                    let a = a_packed.add(group * count * spread::<V>());
                    one_tile::<V>(height, count, a, Rows::Together, panel_at, start, c, n, cols);
                    i += height;
                }
                j += width;
            }
        }
        row += count;
        if row >= rows {
            return;
        }
    }
}

/// Row `r` of `count` rows of B into panels.
///
/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
unsafe fn pack_row<V: Simd>(r: usize, count: usize, n: usize, b: *const V::Scalar, packed: *mut V::Scalar) {
    let mut j = 0;
    while j < n {
        let width = panel_width::<V>(j, n);
        // SAFETY: within the shapes that the caller promised.
        let to = unsafe { packed.add(j * count + r * width) };
        let mut v = 0;
        while v < width {
            // SAFETY: as above.
            unsafe {
                let x = if j + v + V::LANES <= n {
                    V::read(b.add(j + v))
                } else if j + v < n {
                    V::read_first(b.add(j + v), n - j - v)
                } else {
                    V::splat(V::Scalar::ZERO)
                };
                x.write(to.add(v));
            }
            v += V::LANES;
        }
        j += width;
    }
}

/// Row `r` of `count` rows of A into tiles of columns, each contiguous along the rows. Whole vectors are
/// moved where memory allows (`left` numbers of A from this row on): lanes beyond the tile are never read.
///
/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
unsafe fn pack_tiles<V: Simd>(
    r: usize,
    count: usize,
    m: usize,
    a: *const V::Scalar,
    left: usize,
    packed: *mut V::Scalar,
) {
    let groups = m.div_ceil(V::TILE_ROWS);
    let mut i = 0;
    for group in 0..groups {
        let height = (m - i) / (groups - group);
        // SAFETY: within the shapes that the caller promised.
        let to = unsafe { packed.add((group * count + r) * spread::<V>()) };
        let mut h = 0;
        while h < height {
            // SAFETY: as above.
            unsafe {
                let from = a.add(i + h);
                if i + h + V::LANES <= left {
                    V::read(from).write(to.add(h));
                } else {
                    V::read_first(from, V::LANES.min(height - h)).write(to.add(h));
                }
            }
            h += V::LANES;
        }
        i += height;
    }
}

leveled! {
    /// c (n) += Σ of the rows of b (rows × n), first to last; set, not added to, where `fresh`.
    pub fn sum_rows<T: Real>(rows: usize, n: usize, b: *const T, c: *mut T, fresh: bool) = sum_rows_with;
}

/// # Safety
/// As for the kernel that it belongs to: pointers must be valid for the shapes.
#[inline(always)]
unsafe fn sum_rows_with<V: Simd>(rows: usize, n: usize, b: *const V::Scalar, c: *mut V::Scalar, fresh: bool) {
    let mut j = 0;
    while j < n {
        let cols = (n - j).min(V::LANES);
        // SAFETY: within the shapes that the caller promised.
        unsafe {
            let mut sum = if fresh { V::splat(V::Scalar::ZERO) } else { read(c.add(j), cols) };
            for r in 0..rows {
                sum = sum.add(read(b.add(r * n + j), cols));
            }
            write(sum, c.add(j), cols);
        }
        j += V::LANES;
    }
}

#[cfg(test)]
mod tests;
