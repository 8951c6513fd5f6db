//! Eight numbers at a time, with the widest instructions the CPU has, chosen at run time.
//!
//! Kernels are written once over [`Lanes`] and compiled for AVX-512, AVX2 and plain code. Every
//! operation is an IEEE operation in an order fixed by the source, fused multiply-adds are explicit
//! and the elementary functions are our own, so all three give the same bits. The width is eight
//! everywhere: neither layouts nor sums depend on the machine. (The `pulp` crate's width varies.)

mod functions;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use functions::{cos_sin_turns, exp, ln, sigmoid, tanh_half};
pub use portable::Portable;

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Numbers in a [`Lanes`].
pub const WIDTH: usize = 8;

/// Eight `f64`. Operations act on each lane alone.
pub trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// One truth value per lane.
    type Mask: Copy;
    /// Eight `u64`.
    type Bits: Bits;

    /// The same number in each lane.
    fn splat(x: f64) -> Self;
    /// Reads eight numbers.
    fn load(x: &[f64; WIDTH]) -> Self;
    /// Writes eight numbers.
    fn store(self, x: &mut [f64; WIDTH]);
    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The smaller number; `other` if either is NaN.
    fn min(self, other: Self) -> Self;
    /// The larger number; `other` if either is NaN.
    fn max(self, other: Self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// `self < other`; false for NaN.
    fn lt(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Whether the mask holds in any lane.
    fn any(mask: Self::Mask) -> bool;
    /// The lanes' bits.
    fn to_bits(self) -> Self::Bits;
    /// Numbers from their bits.
    fn from_bits(bits: Self::Bits) -> Self;

    /// Magnitude.
    #[inline(always)]
    fn abs(self) -> Self {
        Self::from_bits(self.to_bits().and(Self::Bits::splat(!(1 << 63))))
    }

    /// Up to eight numbers; missing ones read as zero.
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        if let Ok(full) = x.try_into() {
            return Self::load(full);
        }
        let mut padded = [0.0; WIDTH];
        padded[..x.len()].copy_from_slice(x);
        Self::load(&padded)
    }

    /// Writes the first `x.len()` ≤ 8 lanes.
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        if let Ok(full) = x.try_into() {
            return self.store(full);
        }
        let n = x.len();
        x.copy_from_slice(&self.to_array()[..n]);
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

/// A computation over any [`Lanes`]. Mark `run`, and all it calls, `#[inline(always)]`.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Does the work.
    fn run<L: Lanes>(self) -> Self::Output;
}

/// Runs the kernel with the widest instructions this CPU has.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx512() {
            // SAFETY: the features were found on this CPU.
            return unsafe { x86::run_avx512(kernel) };
        }
        if x86::has_avx2() {
            // SAFETY: as above.
            return unsafe { x86::run_avx2(kernel) };
        }
    }
    kernel.run::<Portable>()
}

/// The instructions in use, in words.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx512() {
            return "AVX-512";
        }
        if x86::has_avx2() {
            return "AVX2 and FMA";
        }
    }
    "portable"
}

/// Runs a block for the ranges of 0..n that lanes take one after the other. The last may be shorter;
/// on the others the compiler sees the full length, and loads and stores need no mask.
///
/// A macro since a closure called from two places is not inlined, and loses the CPU's features.
#[macro_export]
macro_rules! for_each_chunk {
    ($n:expr, |$chunk:ident| $body:block) => {{
        let n = $n;
        let full = n / $crate::lanes::WIDTH * $crate::lanes::WIDTH;
        let mut first = 0;
        while first < full {
            let $chunk = first..first + $crate::lanes::WIDTH;
            $body
            first += $crate::lanes::WIDTH;
        }
        if full < n {
            let $chunk = full..n;
            $body
        }
    }};
}
pub use for_each_chunk;

/// Σ xᵢ² of a slice, summed in an order that depends on its length alone.
#[inline(always)]
pub fn sum_of_squares<L: Lanes>(x: &[f64]) -> f64 {
    let mut sum = L::splat(0.0);
    for_each_chunk!(x.len(), |chunk| {
        let x = L::load_some(&x[chunk]);
        sum = x.mul_add(x, sum);
    });
    sum.sum()
}

/// Runs a kernel on each instruction set this CPU has: what tests compare.
pub fn on_every_instruction_set<K: Kernel + Clone>(kernel: &K) -> Vec<(&'static str, K::Output)> {
    let mut out = vec![("portable", kernel.clone().run::<Portable>())];
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx2() {
            // SAFETY: the features were found on this CPU.
            out.push(("AVX2 and FMA", unsafe { x86::run_avx2(kernel.clone()) }));
        }
        if x86::has_avx512() {
            // SAFETY: as above.
            out.push(("AVX-512", unsafe { x86::run_avx512(kernel.clone()) }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Everything;
    impl Kernel for Everything {
        type Output = Vec<u64>;
        fn run<L: Lanes>(self) -> Vec<u64> {
            let mut bits = Vec::new();
            for i in 0..400 {
                let x: [f64; 8] =
                    std::array::from_fn(|j| (f64::from(8 * i + j as i32) - 1600.0) * 0.37 + 0.013);
                let x = L::load(&x);
                let u = L::splat(0.5) + x * L::splat(1.0 / 1300.0);
                let (cos, sin) = cos_sin_turns(u);
                let pieces = [
                    exp(x),
                    ln(x.abs()),
                    cos,
                    sin,
                    sigmoid(x),
                    tanh_half(x),
                    x.sqrt(),
                    x.round(),
                    x / u,
                    x.min(u),
                    x.max(u),
                    x.mul_add(u, -x),
                    L::select(x.lt(u), x, u),
                ];
                for piece in pieces {
                    bits.extend(piece.to_array().map(|v| if v.is_nan() { 1 } else { v.to_bits() }));
                }
            }
            bits
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let runs = on_every_instruction_set(&Everything);
        for (name, bits) in &runs[1..] {
            assert_eq!(bits, &runs[0].1, "{name} differs from {}", runs[0].0);
        }
    }
}
