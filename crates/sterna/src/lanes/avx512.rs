//! Vectors on x86-64 with AVX-512: one register.
//!
//! The methods are `inline(always)` and reach the CPU only inside [`run`] and [`leveled!`](crate::leveled).

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
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}

/// Eight `f64` in a register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx512(__m512d);

/// Sixteen `f32` in a register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx512Single(__m512);

/// Eight words in a register.
#[derive(Clone, Copy)]
pub struct Avx512Bits(__m512i);

macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident, $instruction:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(avx!($instruction(self.0, other.0)))
            }
        }
    };
}

macro_rules! vector {
    ($name:ident, $t:ty, $lanes:expr, $mask:ty, $set1:ident, $load:ident, $store:ident, $maskload:ident,
     $maskstore:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fma:ident, $sqrt:ident, $abs:ident, $max:ident,
     $min:ident, $round:ident, $scalef:ident, $getmant:ident, $getexp:ident, $cmp:ident, $blend:ident, $and:ident,
     $or:ident, $xor:ident, $andnot:ident, $transpose:ident) => {
        operator!($name, Add, add, $add);
        operator!($name, Sub, sub, $sub);
        operator!($name, Mul, mul, $mul);
        operator!($name, Div, div, $div);

        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self(avx!($xor(self.0, $set1(-0.0))))
            }
        }

        impl Vector for $name {
            type Scalar = $t;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const REGISTERS: usize = 32;

            #[inline(always)]
            fn splat(x: $t) -> Self {
                Self(avx!($set1(x)))
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Self(avx!($fma(self.0, a.0, b.0)))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(avx!($sqrt(self.0)))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self(avx!($abs(self.0)))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self(avx!($min(self.0, other.0)))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(avx!($max(self.0, other.0)))
            }
            #[inline(always)]
            fn round(self) -> Self {
                Self(avx!($round::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)))
            }
            #[inline(always)]
            fn scale_by_power(self, n: Self) -> Self {
                Self(avx!($scalef(self.0, n.0)))
            }
            #[inline(always)]
            fn mantissa_exponent(self) -> (Self, Self) {
                // Interval [1, 2), NaN where negative.
                (Self(avx!($getmant::<0, 2>(self.0))), Self(avx!($getexp(self.0))))
            }
            #[inline(always)]
            fn copy_sign(self, sign: Self) -> Self {
                let bit = Self::splat(-0.0);
                Self(avx!($or($andnot(bit.0, self.0), $and(bit.0, sign.0))))
            }
            #[inline(always)]
            fn lt(self, other: Self) -> $mask {
                avx!($cmp::<_CMP_LT_OQ>(self.0, other.0))
            }
            #[inline(always)]
            fn select(mask: $mask, yes: Self, no: Self) -> Self {
                Self(avx!($blend(mask, no.0, yes.0)))
            }
            #[inline(always)]
            fn any(mask: $mask) -> bool {
                mask != 0
            }
            #[inline(always)]
            unsafe fn read(from: *const $t) -> Self {
                Self(avx!($load(from)))
            }
            #[inline(always)]
            unsafe fn write(self, to: *mut $t) {
                avx!($store(to, self.0))
            }
            #[inline(always)]
            unsafe fn read_first(from: *const $t, n: usize) -> Self {
                Self(avx!($maskload(((1u32 << n) - 1) as $mask, from)))
            }
            #[inline(always)]
            unsafe fn write_first(self, to: *mut $t, n: usize) {
                avx!($maskstore(to, ((1u32 << n) - 1) as $mask, self.0))
            }
            #[inline(always)]
            unsafe fn transpose(from: *const $t, stride: usize, to: *mut $t, to_stride: usize) {
                avx!($transpose(from, stride, to, to_stride))
            }
        }
    };
}
#[rustfmt::skip]
vector!(Avx512Single, f32, 2 * WIDTH, __mmask16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps,
    _mm512_fmadd_ps, _mm512_sqrt_ps, _mm512_abs_ps, _mm512_max_ps, _mm512_min_ps, _mm512_roundscale_ps,
    _mm512_scalef_ps, _mm512_getmant_ps, _mm512_getexp_ps, _mm512_cmp_ps_mask, _mm512_mask_blend_ps,
    _mm512_and_ps, _mm512_or_ps, _mm512_xor_ps, _mm512_andnot_ps, transpose_f32);
#[rustfmt::skip]
vector!(Avx512, f64, WIDTH, __mmask8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
    _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd,
    _mm512_fmadd_pd, _mm512_sqrt_pd, _mm512_abs_pd, _mm512_max_pd, _mm512_min_pd, _mm512_roundscale_pd,
    _mm512_scalef_pd, _mm512_getmant_pd, _mm512_getexp_pd, _mm512_cmp_pd_mask, _mm512_mask_blend_pd,
    _mm512_and_pd, _mm512_or_pd, _mm512_xor_pd, _mm512_andnot_pd, transpose_f64);

/// Mask of the first `n` ≤ 8 lanes.
#[inline(always)]
fn first_lanes(n: usize) -> __mmask8 {
    debug_assert!(n <= WIDTH);
    ((1u32 << n) - 1) as __mmask8
}

impl Lanes for Avx512 {
    type Bits = Avx512Bits;

    #[inline(always)]
    fn to_bits(self) -> Avx512Bits {
        Avx512Bits(avx!(_mm512_castpd_si512(self.0)))
    }
    #[inline(always)]
    fn from_bits(bits: Avx512Bits) -> Self {
        Self(avx!(_mm512_castsi512_pd(bits.0)))
    }
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        // Only the first `x.len()` lanes are touched.
        Self(avx!(_mm512_maskz_loadu_pd(first_lanes(x.len()), x.as_ptr())))
    }
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        avx!(_mm512_mask_storeu_pd(x.as_mut_ptr(), first_lanes(x.len()), self.0))
    }
}

impl Bits for Avx512Bits {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        Self(avx!(_mm512_set1_epi64(x as i64)))
    }
    #[inline(always)]
    fn load(x: &[u64; WIDTH]) -> Self {
        Self(avx!(_mm512_loadu_si512(x.as_ptr().cast())))
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(avx!(_mm512_and_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(avx!(_mm512_or_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(avx!(_mm512_xor_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(avx!(_mm512_add_epi64(self.0, other.0)))
    }
    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        Self(avx!(_mm512_mul_epu32(self.0, other.0)))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        Self(avx!(_mm512_srli_epi64::<N>(self.0)))
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        Self(avx!(_mm512_slli_epi64::<N>(self.0)))
    }
}

/// Four registers of four 128-bit lanes as a matrix of lanes, transposed.
macro_rules! transpose_lanes {
    ($shuffle:ident, $v:expr) => {{
        let v = $v;
        let (s0, s1) = ($shuffle::<0x88>(v[0], v[1]), $shuffle::<0xDD>(v[0], v[1]));
        let (s2, s3) = ($shuffle::<0x88>(v[2], v[3]), $shuffle::<0xDD>(v[2], v[3]));
        [
            $shuffle::<0x88>(s0, s2),
            $shuffle::<0x88>(s1, s3),
            $shuffle::<0xDD>(s0, s2),
            $shuffle::<0xDD>(s1, s3),
        ]
    }};
}

/// # Safety
/// The squares must be there, and the CPU must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_f32(from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
    // SAFETY: within the caller's squares.
    unsafe {
        // Within each lane: rows 4q … 4q + 3 of column j, for j = 0 … 3.
        let mut u = [_mm512_setzero_ps(); 16];
        for q in 0..4 {
            let row = |r: usize| _mm512_castps_pd(_mm512_loadu_ps(from.add((4 * q + r) * stride)));
            let pair = |a: __m512d, b: __m512d| {
                let (a, b) = (_mm512_castpd_ps(a), _mm512_castpd_ps(b));
                (_mm512_castps_pd(_mm512_unpacklo_ps(a, b)), _mm512_castps_pd(_mm512_unpackhi_ps(a, b)))
            };
            let ((a, b), (c, d)) = (pair(row(0), row(1)), pair(row(2), row(3)));
            u[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
            u[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
            u[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
            u[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
        }
        for j in 0..4 {
            let columns = transpose_lanes!(_mm512_shuffle_f32x4, [u[j], u[4 + j], u[8 + j], u[12 + j]]);
            for (lane, column) in columns.into_iter().enumerate() {
                _mm512_storeu_ps(to.add((4 * lane + j) * to_stride), column);
            }
        }
    }
}

/// # Safety
/// The squares must be there, and the CPU must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transpose_f64(from: *const f64, stride: usize, to: *mut f64, to_stride: usize) {
    // SAFETY: within the caller's squares.
    unsafe {
        let mut u = [_mm512_setzero_pd(); 8];
        for q in 0..4 {
            let a = _mm512_loadu_pd(from.add(2 * q * stride));
            let b = _mm512_loadu_pd(from.add((2 * q + 1) * stride));
            u[2 * q] = _mm512_unpacklo_pd(a, b);
            u[2 * q + 1] = _mm512_unpackhi_pd(a, b);
        }
        for j in 0..2 {
            let columns = transpose_lanes!(_mm512_shuffle_f64x2, [u[j], u[2 + j], u[4 + j], u[6 + j]]);
            for (lane, column) in columns.into_iter().enumerate() {
                _mm512_storeu_pd(to.add((2 * lane + j) * to_stride), column);
            }
        }
    }
}
