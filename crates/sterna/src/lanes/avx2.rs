//! Vectors on x86-64 with AVX2 and FMA: eight `f64` in two registers. (Sixteen `f32` are left to the compiler.)
//!
//! The methods are `inline(always)` and reach the CPU only inside [`run`].

use super::{Bits, Kernel, Lanes, Vector, WIDTH};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Instructions of this set. The one place that says why calling them is sound.
macro_rules! avx {
    ($call:expr) => {{
        // SAFETY: vectors of this file are handed only to kernels that `run` or `leveled!` compiled for this
        // instruction set, whose callers found it on the CPU; all here is inlined into those. Memory is touched only by
        // methods that are unsafe themselves, or as far as a slice goes.
        unsafe { $call }
    }};
}

/// Compiles a kernel for these instructions.
///
/// # Safety
/// The CPU must have them.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

/// Two registers.
#[derive(Clone, Copy)]
pub struct Avx2(__m256d, __m256d);

/// Two registers of integers.
#[derive(Clone, Copy)]
pub struct Avx2Bits(__m256i, __m256i);

macro_rules! operator {
    ($trait:ident, $method:ident, $instruction:ident) => {
        impl $trait for Avx2 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(avx!($instruction(self.0, other.0)), avx!($instruction(self.1, other.1)))
            }
        }
    };
}
operator!(Add, add, _mm256_add_pd);
operator!(Sub, sub, _mm256_sub_pd);
operator!(Mul, mul, _mm256_mul_pd);
operator!(Div, div, _mm256_div_pd);

impl Neg for Avx2 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::from_bits(self.to_bits().xor(Bits::splat(1 << 63)))
    }
}

/// Masks of the first `n` ≤ 8 lanes as two registers: a window on eight ones and eight zeros.
#[inline(always)]
fn first_lanes(n: usize) -> (__m256i, __m256i) {
    const WINDOW: [i64; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let window = &WINDOW[WIDTH - n..];
    (avx!(_mm256_loadu_si256(window.as_ptr().cast())), avx!(_mm256_loadu_si256(window[4..].as_ptr().cast())))
}

/// 2⁵² + 1023: added to a whole number, the low bits of the sum are a biased exponent.
const EXPONENT: f64 = 4_503_599_627_370_496.0 + 1023.0;

impl Vector for Avx2 {
    type Scalar = f64;
    type Mask = (__m256d, __m256d);
    const LANES: usize = WIDTH;
    const REGISTERS: usize = 8;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        let x = avx!(_mm256_set1_pd(x));
        Self(x, x)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(avx!(_mm256_fmadd_pd(self.0, a.0, b.0)), avx!(_mm256_fmadd_pd(self.1, a.1, b.1)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(avx!(_mm256_sqrt_pd(self.0)), avx!(_mm256_sqrt_pd(self.1)))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self::from_bits(self.to_bits().and(Bits::splat(!(1 << 63))))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(avx!(_mm256_min_pd(self.0, other.0)), avx!(_mm256_min_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(avx!(_mm256_max_pd(self.0, other.0)), avx!(_mm256_max_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        Self(avx!(_mm256_round_pd::<NEAREST>(self.0)), avx!(_mm256_round_pd::<NEAREST>(self.1)))
    }
    #[inline(always)]
    fn scale_by_power(self, n: Self) -> Self {
        // In two factors, so that both powers are normal numbers: only the last product rounds.
        let limit = Self::splat(2046.0);
        let n = n.min(limit).max(-limit);
        let half = (n * Self::splat(0.5)).round();
        let power = |n: Self| Self::from_bits((n + Self::splat(EXPONENT)).to_bits().shift_left::<52>());
        self * power(half) * power(n - half)
    }
    #[inline(always)]
    fn mantissa_exponent(self) -> (Self, Self) {
        let (zero, one, infinity) = (Self::splat(0.0), Self::splat(1.0), Self::splat(f64::INFINITY));
        // Subnormal numbers are lifted.
        let small = self.lt(Self::splat(f64::MIN_POSITIVE));
        let lifted = Self::select(small, self * Self::splat((1u64 << 54) as f64), self);
        let bits = lifted.to_bits();
        let m = bits.and(Bits::splat(0x000F_FFFF_FFFF_FFFF)).or(Bits::splat(0x3FF0_0000_0000_0000));
        let biased = Self::from_bits(bits.shift_right::<52>().or(Bits::splat(0x4330_0000_0000_0000)));
        let e = biased - Self::splat(EXPONENT) - Self::select(small, Self::splat(54.0), zero);
        // Zero, infinity, and what is neither positive nor zero.
        let (positive, finite) = (zero.lt(self), self.lt(infinity));
        let is_zero = Self::select(self.lt(zero), zero, Self::select(positive, zero, one));
        let not_negative = Self::select(positive, one, Self::splat(f64::NAN));
        let m = Self::select(positive, Self::select(finite, Self::from_bits(m), not_negative), not_negative);
        let m = Self::select(zero.lt(is_zero), Self::select(finite, one, m), m);
        let e = Self::select(positive, Self::select(finite, e, infinity), infinity);
        let e = Self::select(zero.lt(is_zero), Self::select(finite, -infinity, infinity), e);
        (m, e)
    }
    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        Self::from_bits(self.abs().to_bits().or(sign.to_bits().and(Bits::splat(1 << 63))))
    }
    #[inline(always)]
    fn lt(self, other: Self) -> Self::Mask {
        (
            avx!(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0)),
            avx!(_mm256_cmp_pd::<_CMP_LT_OQ>(self.1, other.1)),
        )
    }
    #[inline(always)]
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
        Self(avx!(_mm256_blendv_pd(no.0, yes.0, mask.0)), avx!(_mm256_blendv_pd(no.1, yes.1, mask.1)))
    }
    #[inline(always)]
    fn any(mask: Self::Mask) -> bool {
        avx!(_mm256_movemask_pd(mask.0) | _mm256_movemask_pd(mask.1)) != 0
    }
    #[inline(always)]
    unsafe fn read(from: *const f64) -> Self {
        Self(avx!(_mm256_loadu_pd(from)), avx!(_mm256_loadu_pd(from.add(4))))
    }
    #[inline(always)]
    unsafe fn write(self, to: *mut f64) {
        avx!(_mm256_storeu_pd(to, self.0));
        avx!(_mm256_storeu_pd(to.add(4), self.1));
    }
    #[inline(always)]
    unsafe fn read_first(from: *const f64, n: usize) -> Self {
        let (low, high) = first_lanes(n);
        // The address of lanes that are not there is never used.
        let rest = from.wrapping_add(4);
        Self(avx!(_mm256_maskload_pd(from, low)), avx!(_mm256_maskload_pd(rest, high)))
    }
    #[inline(always)]
    unsafe fn write_first(self, to: *mut f64, n: usize) {
        let (low, high) = first_lanes(n);
        avx!(_mm256_maskstore_pd(to, low, self.0));
        avx!(_mm256_maskstore_pd(to.wrapping_add(4), high, self.1));
    }
}

impl Lanes for Avx2 {
    type Bits = Avx2Bits;

    #[inline(always)]
    fn to_bits(self) -> Avx2Bits {
        Avx2Bits(avx!(_mm256_castpd_si256(self.0)), avx!(_mm256_castpd_si256(self.1)))
    }
    #[inline(always)]
    fn from_bits(bits: Avx2Bits) -> Self {
        Self(avx!(_mm256_castsi256_pd(bits.0)), avx!(_mm256_castsi256_pd(bits.1)))
    }
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        // SAFETY: so many numbers are there.
        unsafe { Self::read_first(x.as_ptr(), x.len()) }
    }
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        // SAFETY: there is room for so many.
        unsafe { self.write_first(x.as_mut_ptr(), x.len()) }
    }
}

impl Bits for Avx2Bits {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        let x = avx!(_mm256_set1_epi64x(x as i64));
        Self(x, x)
    }
    #[inline(always)]
    fn load(x: &[u64; WIDTH]) -> Self {
        Self(avx!(_mm256_loadu_si256(x.as_ptr().cast())), avx!(_mm256_loadu_si256(x[4..].as_ptr().cast())))
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(avx!(_mm256_and_si256(self.0, other.0)), avx!(_mm256_and_si256(self.1, other.1)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(avx!(_mm256_or_si256(self.0, other.0)), avx!(_mm256_or_si256(self.1, other.1)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(avx!(_mm256_xor_si256(self.0, other.0)), avx!(_mm256_xor_si256(self.1, other.1)))
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(avx!(_mm256_add_epi64(self.0, other.0)), avx!(_mm256_add_epi64(self.1, other.1)))
    }
    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        Self(avx!(_mm256_mul_epu32(self.0, other.0)), avx!(_mm256_mul_epu32(self.1, other.1)))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        let n = avx!(_mm_cvtsi32_si128(N as i32));
        Self(avx!(_mm256_srl_epi64(self.0, n)), avx!(_mm256_srl_epi64(self.1, n)))
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        let n = avx!(_mm_cvtsi32_si128(N as i32));
        Self(avx!(_mm256_sll_epi64(self.0, n)), avx!(_mm256_sll_epi64(self.1, n)))
    }
}
