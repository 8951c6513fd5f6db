//! Vectors as networks use them: [`sterna::lanes`] with numbers of a graph, and the tiles that registers hold.

use sterna::lanes::{Element, Vector};

use crate::Real;

/// A vector of [`Real`] numbers.
pub trait Simd: Vector<Scalar: Real> {
    /// Rows and vectors of a tile of the product kernel: as many as the registers hold.
    const TILE_ROWS: usize;
    /// Vectors of a tile.
    const TILE_VECTORS: usize;
}

impl<V: Vector<Scalar: Real>> Simd for V {
    const TILE_ROWS: usize = if V::REGISTERS < 32 { 6 } else { 14 };
    const TILE_VECTORS: usize = if V::REGISTERS < 32 { 1 } else { 2 };
}

/// The widest vector of a number.
pub type Wide<T> = <T as Element>::Avx512;
/// The same in plain Rust.
pub type Plain<T> = <T as Element>::Portable;

/// The first `n` ≤ LANES numbers as a vector.
///
/// # Safety
/// So many numbers must be there.
#[inline(always)]
pub unsafe fn read<V: Simd>(from: *const V::Scalar, n: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe { if n == V::LANES { V::read(from) } else { V::read_first(from, n) } }
}

/// Writes the first `n` ≤ LANES lanes.
///
/// # Safety
/// There must be room for so many numbers.
#[inline(always)]
pub unsafe fn write<V: Simd>(x: V, to: *mut V::Scalar, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { if n == V::LANES { x.write(to) } else { x.write_first(to, n) } }
}
