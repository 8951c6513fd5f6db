//! What a vector of numbers can do: [`Vector`] for both precisions, [`Lanes`] for eight `f64`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::WIDTH;

/// A number that vectors hold: `f32` or `f64`.
pub trait Element: Copy + PartialOrd + Send + Sync + 'static {
    /// Whether it is `f32`, which decides how many terms a series gets.
    const IS_SINGLE: bool;
    /// 512 bits of them in one register: only for kernels on a CPU that has these.
    #[doc(hidden)]
    type Avx512: Vector<Scalar = Self>;
    /// As many in an array.
    #[doc(hidden)]
    type Portable: Vector<Scalar = Self>;
    /// The nearest number.
    fn nearest(x: f64) -> Self;
}

/// 64 bytes of numbers: sixteen `f32` or eight `f64`. Operations act on each lane alone, and are rounded once.
///
/// Types for instructions that not every CPU has are handed to kernels by [`dispatch`](super::dispatch) and
/// [`leveled!`](crate::leveled) alone, which look for them first.
pub trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number in a lane.
    type Scalar: Element;
    /// One truth value per lane.
    type Mask: Copy;
    /// Lanes.
    const LANES: usize;
    /// Vectors that the CPU's registers hold.
    const REGISTERS: usize;

    /// The same number in each lane.
    fn splat(x: Self::Scalar) -> Self;
    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Magnitude.
    fn abs(self) -> Self;
    /// The smaller number; `other` if either is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger number; `other` if either is NaN.
    fn max(self, other: Self) -> Self;
    /// Nearest whole number, ties to even.
    fn round(self) -> Self;
    /// self · 2ⁿ for whole n, down to subnormal results.
    fn scale_by_power(self, n: Self) -> Self;
    /// (m, e) with self = m·2ᵉ and m in [1, 2); e is ±∞ at infinity and zero, m is NaN below zero.
    fn mantissa_exponent(self) -> (Self, Self);
    /// Magnitude of self, sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;
    /// `self < other`; false for NaN.
    fn lt(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Whether the mask holds in any lane.
    fn any(mask: Self::Mask) -> bool;

    /// Reads all lanes from memory.
    ///
    /// # Safety
    /// So many numbers must be there.
    unsafe fn read(from: *const Self::Scalar) -> Self;
    /// Writes all lanes to memory.
    ///
    /// # Safety
    /// There must be room for so many numbers.
    unsafe fn write(self, to: *mut Self::Scalar);
    /// Reads the first `n` < LANES lanes; the others are zero.
    ///
    /// # Safety
    /// `n` numbers must be there.
    unsafe fn read_first(from: *const Self::Scalar, n: usize) -> Self;
    /// Writes the first `n` < LANES lanes.
    ///
    /// # Safety
    /// There must be room for `n` numbers.
    unsafe fn write_first(self, to: *mut Self::Scalar, n: usize);
    /// Transposes a square of LANES × LANES numbers, from rows `stride` apart to rows `to_stride` apart.
    ///
    /// # Safety
    /// The squares must be there, and apart.
    #[inline(always)]
    unsafe fn transpose(from: *const Self::Scalar, stride: usize, to: *mut Self::Scalar, to_stride: usize) {
        for r in 0..Self::LANES {
            for c in 0..Self::LANES {
                // SAFETY: within the squares.
                unsafe { *to.add(c * to_stride + r) = *from.add(r * stride + c) };
            }
        }
    }

    /// `yes` where a < b, else `no`.
    #[inline(always)]
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self::select(a.lt(b), yes, no)
    }

    /// The number nearest to `x` in each lane.
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Self::splat(Self::Scalar::nearest(x))
    }
}

/// Eight `f64`.
pub trait Lanes: Vector<Scalar = f64> {
    /// Eight `u64`.
    type Bits: Bits;

    /// The lanes' bits.
    fn to_bits(self) -> Self::Bits;
    /// Numbers from their bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Up to eight numbers; missing ones read as zero.
    fn load_some(x: &[f64]) -> Self;
    /// Writes the first `x.len()` ≤ 8 lanes.
    fn store_some(self, x: &mut [f64]);

    /// Reads eight numbers.
    #[inline(always)]
    fn load(x: &[f64; WIDTH]) -> Self {
        // SAFETY: eight numbers are there.
        unsafe { Self::read(x.as_ptr()) }
    }

    /// Writes eight numbers.
    #[inline(always)]
    fn store(self, x: &mut [f64; WIDTH]) {
        // SAFETY: there is room for eight.
        unsafe { self.write(x.as_mut_ptr()) }
    }

    /// The lanes as an array.
    #[inline(always)]
    fn to_array(self) -> [f64; WIDTH] {
        let mut out = [0.0; WIDTH];
        self.store(&mut out);
        out
    }

    /// Sum of the lanes, as a fixed tree.
    #[inline(always)]
    fn sum(self) -> f64 {
        let x = self.to_array();
        ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
    }

    /// Column `j` of up to eight rows of length `dim`; missing rows repeat the last.
    #[inline(always)]
    fn load_column(rows: &[f64], dim: usize, j: usize) -> Self {
        let n = rows.len() / dim;
        let mut out = [0.0; WIDTH];
        if n >= WIDTH {
            for (lane, value) in out.iter_mut().enumerate() {
                *value = rows[lane * dim + j];
            }
        } else {
            for (lane, value) in out.iter_mut().enumerate() {
                *value = rows[lane.min(n - 1) * dim + j];
            }
        }
        Self::load(&out)
    }

    /// Writes column `j` of up to eight rows of length `dim`.
    #[inline(always)]
    fn store_column(self, rows: &mut [f64], dim: usize, j: usize) {
        let n = (rows.len() / dim).min(WIDTH);
        let out = self.to_array();
        for lane in 0..n {
            rows[lane * dim + j] = out[lane];
        }
    }
}

/// Eight `u64`.
pub trait Bits: Copy {
    /// The same bits in each lane.
    fn splat(x: u64) -> Self;
    /// Reads eight numbers.
    fn load(x: &[u64; WIDTH]) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Wrapping sum.
    fn plus(self, other: Self) -> Self;
    /// Product of the low 32 bits of each lane, all 64 bits of it.
    fn times_low(self, other: Self) -> Self;
    /// Shift towards the low end, zeros coming in.
    fn shift_right<const N: u32>(self) -> Self;
    /// Shift towards the high end, zeros coming in.
    fn shift_left<const N: u32>(self) -> Self;
}
