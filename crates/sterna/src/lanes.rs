//! Eight `f64`, or sixteen `f32`, at a time, with the widest instructions the CPU has, chosen at run time.
//!
//! Kernels are written once over [`Lanes`] (or, for networks in either precision, over [`Vector`]) and compiled for
//! AVX-512, AVX2 and plain code. Every operation is an IEEE operation in an order fixed by the source, fused
//! multiply-adds are explicit and the elementary functions are our own, so all three give the same bits. A vector has
//! 64 bytes everywhere: neither layouts nor sums depend on the machine. (The `pulp` crate's width varies.)

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod functions;
mod level;
pub mod one;
mod portable;
mod vector;

pub use functions::{
    atan2, atan2_right, cos_sin_turns, exp, exp_m1, ln, rsqrt, sigmoid, sin_cos, softplus, tanh, tanh_half,
};
pub use level::Level;
pub use portable::Portable;
pub use vector::{Bits, Element, Lanes, Vector};

/// Numbers in a [`Lanes`].
pub const WIDTH: usize = 8;

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
    // SAFETY: the level was found on this CPU.
    unsafe { dispatch_at(Level::detect(), kernel) }
}

/// Runs the kernel with the instructions of a level.
///
/// # Safety
/// The CPU must have it.
#[inline]
unsafe fn dispatch_at<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level {
        // SAFETY: the caller's promise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::run(kernel) },
        // SAFETY: the caller's promise.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2::run(kernel) },
        Level::Baseline => kernel.run::<Portable>(),
    }
}

/// The instructions in use, in words.
pub fn instruction_set() -> &'static str {
    Level::detect().name()
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
pub use crate::leveled;
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

/// Runs a kernel on each instruction set this CPU has, plain code first: what tests compare.
pub fn on_every_instruction_set<K: Kernel + Clone>(kernel: &K) -> Vec<(&'static str, K::Output)> {
    let levels = Level::available().into_iter().rev();
    // SAFETY: these levels are available.
    levels.map(|level| (level.name(), unsafe { dispatch_at(level, kernel.clone()) })).collect()
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
                let ((cos, sin), (sine, cosine)) = (cos_sin_turns(u), sin_cos(x));
                let pieces = [
                    exp(x),
                    ln(x.abs()),
                    cos,
                    sin,
                    sigmoid(x),
                    tanh_half(x),
                    tanh(x),
                    softplus(x),
                    sine,
                    cosine,
                    atan2(sine, cosine),
                    rsqrt(x.abs()),
                    x.scale_by_power(x.round()),
                    x.copy_sign(u),
                    x.mantissa_exponent().0,
                    x.abs().mantissa_exponent().1,
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
            let differs = bits.iter().zip(&runs[0].1).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{name} differs from {}", runs[0].0);
        }
    }
}
