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
    packed: *mut V::Scalar,
) {
    if !transposed {
        for i in 0..k {
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
            unsafe {
                if j + c + V::WIDTH <= n {
                    while i + V::WIDTH <= k {
                        let (from, to) = (b.add((j + c) * ldb + i), packed.add(j * k + i * width + c));
                        V::transpose(from, ldb, to, width);
                        i += V::WIDTH;
                    }
                }
                for i in i..k {
                    for c in c..c + V::WIDTH {
                        let x = if j + c < n { *b.add((j + c) * ldb + i) } else { V::Scalar::ZERO };
                        *packed.add(j * k + i * width + c) = x;
                    }
                }
            }
            c += V::WIDTH;
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
    V::TILE_ROWS.next_multiple_of(V::WIDTH)
}

/// Steps of the inner index per turn of the loop: addresses are worked out once a turn, which leaves the
/// ports of the multiply-adds alone.
const UNROLL: usize = 4;

/// R rows by N vectors: C = start + A·B over k.
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
                    *x = V::load(b.add((i * N + v) * V::WIDTH));
                }
                for (r, s) in sum.iter_mut().enumerate() {
                    let x = V::splat(*a.add(r * ra + i * ka));
                    for v in 0..N {
                        s[v] = x.fma(row[v], s[v]);
                    }
                }
            }
        };
    }
    unsafe {
        for _ in 0..k / UNROLL {
            steps!(UNROLL);
            a = a.add(UNROLL * ka);
            b = b.add(UNROLL * N * V::WIDTH);
        }
        steps!(k % UNROLL);
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

/// A tile of `height` rows and at most two vectors of columns.
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
                $($h => unsafe { tile::<V, $h, $n>(k, a, rows, b, start, c, ldc, cols) },)*
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
    16 * T::Wide::WIDTH * T::Wide::TILE_VECTORS
}

/// Numbers of scratch that [`sum_products`] needs for m rows of C.
pub fn sum_scratch<T: Real>(m: usize) -> usize {
    // The plain level has smaller tiles, so more of them.
    let tiles = |rows: usize, spread: usize| m.div_ceil(rows) * spread;
    let wide = tiles(T::Wide::TILE_ROWS, spread::<T::Wide>());
    let plain = tiles(T::Plain::TILE_ROWS, spread::<T::Plain>());
    SUM_BLOCK * (sum_columns::<T>() + wide.max(plain))
}

leveled! {
    /// Columns `from .. to` of C (m × n) += Aᵀ·B over `rows` rows, first to last; C is set, not added to,
    /// where `fresh`. At most [`sum_columns`] columns; `scratch` holds [`sum_scratch`] numbers.
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
#[inline(always)]
unsafe fn pack_row<V: Simd>(r: usize, count: usize, n: usize, b: *const V::Scalar, packed: *mut V::Scalar) {
    let mut j = 0;
    while j < n {
        let width = panel_width::<V>(j, n);
        let to = unsafe { packed.add(j * count + r * width) };
        let mut v = 0;
        while v < width {
            unsafe {
                let x = if j + v + V::WIDTH <= n {
                    V::load(b.add(j + v))
                } else if j + v < n {
                    V::load_partial(b.add(j + v), n - j - v)
                } else {
                    V::splat(V::Scalar::ZERO)
                };
                x.store(to.add(v));
            }
            v += V::WIDTH;
        }
        j += width;
    }
}

/// Row `r` of `count` rows of A into tiles of columns, each contiguous along the rows. Whole vectors are
/// moved where memory allows (`left` numbers of A from this row on): lanes beyond the tile are never read.
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
        let to = unsafe { packed.add((group * count + r) * spread::<V>()) };
        let mut h = 0;
        while h < height {
            unsafe {
                let from = a.add(i + h);
                if i + h + V::WIDTH <= left {
                    V::load(from).store(to.add(h));
                } else {
                    V::load_partial(from, V::WIDTH.min(height - h)).store(to.add(h));
                }
            }
            h += V::WIDTH;
        }
        i += height;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::Level;

    fn number<T: Real>(i: usize) -> T {
        T::from_f64(((i * 7919) % 1009) as f64 / 504.0 - 1.0)
    }

    fn matrix<T: Real>(rows: usize, cols: usize) -> Vec<T> {
        (0..rows * cols).map(number).collect()
    }

    /// The kernel's own definition: one chain of fused multiply-adds per element.
    fn chain<T: Real>(k: usize, start: T, a: impl Fn(usize) -> T, b: impl Fn(usize) -> T) -> f64 {
        (0..k).fold(start.to_f64(), |sum, i| {
            if T::BYTES == 4 {
                (a(i).to_f64() as f32).mul_add(b(i).to_f64() as f32, sum as f32) as f64
            } else {
                a(i).to_f64().mul_add(b(i).to_f64(), sum)
            }
        })
    }

    fn check<T: Real>(level: Level) {
        for (rows, k, n) in [(1, 1, 1), (3, 17, 5), (14, 33, 16), (15, 40, 31), (31, 64, 33), (29, 20, 100)] {
            let (a, b, start) = (matrix::<T>(rows, k), matrix::<T>(k, n), matrix::<T>(1, n));
            let turned: Vec<T> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
            for (source, ldb, transposed) in [(&b, n, false), (&turned, k, true)] {
                let mut packed = vec![T::ZERO; packed_len::<T>(k, n)];
                let mut c = vec![T::ZERO; rows * n];
                unsafe {
                    pack(level, k, n, source.as_ptr(), ldb, transposed, packed.as_mut_ptr());
                    let from = Start::Row(start.as_ptr());
                    product(level, rows, k, n, a.as_ptr(), packed.as_ptr(), from, c.as_mut_ptr());
                }
                for (i, x) in c.iter().enumerate() {
                    let (r, j) = (i / n, i % n);
                    let known = chain(k, start[j], |l| a[r * k + l], |l| b[l * n + j]);
                    assert_eq!(x.to_f64(), known, "{level:?}: {rows}·{k}·{n}, transposed {transposed}");
                }
            }
        }
        // More rows than one block of the sum, in two parts of the columns.
        for (rows, m, n) in [(5, 1, 1), (300, 20, 70), (513, 15, 33)] {
            let (a, b) = (matrix::<T>(rows, m), matrix::<T>(rows, n));
            let mut c = vec![number::<T>(3); m * n];
            let mut scratch = vec![T::ZERO; sum_scratch::<T>(m)];
            let half = n / 2;
            for (from, to) in [(0, half), (half, n)] {
                if from < to {
                    unsafe {
                        let (a, b, s) = (a.as_ptr(), b.as_ptr(), scratch.as_mut_ptr());
                        sum_products(level, rows, m, n, a, b, c.as_mut_ptr(), from, to, true, s);
                    }
                }
            }
            for (i, x) in c.iter().enumerate() {
                let known = chain(rows, T::ZERO, |r| a[r * m + i / n], |r| b[r * n + i % n]);
                assert_eq!(x.to_f64(), known, "{level:?}: sum over {rows}, {m}×{n}");
            }
        }
    }

    #[test]
    fn every_element_is_one_chain_of_multiply_adds() {
        for level in Level::available() {
            check::<f32>(level);
            check::<f64>(level);
        }
    }
}
