//! Vectors of numbers: AVX-512 registers, and plain arrays that the compiler vectorises.
//!
//! Every kernel is written once over [`Simd`]. Each lane does the same sequence of correctly rounded
//! operations (products and sums always as one fused multiply-add where a kernel says `fma`), so all
//! levels of instruction set give the same bits.

use crate::Real;

/// The instruction sets that kernels are compiled for; the best one is picked at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// 512-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit registers and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the binary was compiled for.
    Baseline,
}

impl Level {
    /// The best level of this machine.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        // Levels are ordered: what a machine has includes all below.
        self as u8 >= Self::detect() as u8
    }

    /// All levels that this machine can run, best first.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::detect()];
        #[cfg(target_arch = "x86_64")]
        if levels[0] == Self::Avx512 {
            levels.push(Self::Avx2);
        }
        if levels[0] != Self::Baseline {
            levels.push(Self::Baseline);
        }
        levels
    }
}

/// One vector register. The methods are safe to call only where the level was checked, which is why
/// the trait never leaves the crate's kernels.
#[allow(clippy::missing_safety_doc)]
pub trait Simd: Copy {
    /// The number in a lane.
    type Scalar: Real;
    /// Lanes.
    const WIDTH: usize;
    /// Rows and vectors of a tile of the product kernel: as many as the registers hold.
    const TILE_ROWS: usize;
    /// Vectors of a tile.
    const TILE_VECTORS: usize;

    fn splat(x: Self::Scalar) -> Self;
    unsafe fn load(from: *const Self::Scalar) -> Self;
    unsafe fn store(self, to: *mut Self::Scalar);
    /// The first `n` < WIDTH lanes, the others zero.
    unsafe fn load_partial(from: *const Self::Scalar, n: usize) -> Self;
    unsafe fn store_partial(self, to: *mut Self::Scalar, n: usize);
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    /// self · b + c, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// The larger one; `b` where either is NaN.
    fn max(self, b: Self) -> Self;
    fn min(self, b: Self) -> Self;
    /// To the nearest whole number, ties to even.
    fn round(self) -> Self;
    /// self · 2ⁿ for whole n.
    fn scale_by_power(self, n: Self) -> Self;
    /// (m, e) with self = m·2ᵉ and m in [1, 2); e = ±∞ at infinity and zero.
    fn mantissa_exponent(self) -> (Self, Self);
    /// yes where a < b, else no.
    fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// Magnitude of self, sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;
    /// Transposes a square of WIDTH × WIDTH numbers, from rows `stride` apart to rows `to_stride` apart.
    #[inline(always)]
    unsafe fn transpose(from: *const Self::Scalar, stride: usize, to: *mut Self::Scalar, to_stride: usize) {
        for r in 0..Self::WIDTH {
            for c in 0..Self::WIDTH {
                unsafe { *to.add(c * to_stride + r) = *from.add(r * stride + c) };
            }
        }
    }
}

/// Shorthand for `V::splat(V::Scalar::from_f64(x))`.
#[inline(always)]
pub fn constant<V: Simd>(x: f64) -> V {
    V::splat(V::Scalar::from_f64(x))
}

macro_rules! plain {
    ($name:ident, $t:ty, $bits:ty, $width:literal, $rows:literal, $mantissa:literal, $bias:literal, $tiny:expr, $lift:literal) => {
        /// A plain array.
        #[derive(Clone, Copy)]
        pub struct $name([$t; $width]);

        impl $name {
            #[inline(always)]
            fn map(self, f: impl Fn($t) -> $t) -> Self {
                let mut out = self.0;
                for x in &mut out {
                    *x = f(*x);
                }
                Self(out)
            }
            #[inline(always)]
            fn zip(self, b: Self, f: impl Fn($t, $t) -> $t) -> Self {
                let mut out = self.0;
                for i in 0..$width {
                    out[i] = f(out[i], b.0[i]);
                }
                Self(out)
            }
        }

        impl Simd for $name {
            type Scalar = $t;
            const WIDTH: usize = $width;
            const TILE_ROWS: usize = $rows;
            const TILE_VECTORS: usize = 1;

            #[inline(always)]
            fn splat(x: $t) -> Self {
                Self([x; $width])
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                Self(unsafe { from.cast::<[$t; $width]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                unsafe { to.cast::<[$t; $width]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const $t, n: usize) -> Self {
                let mut out = [0.0; $width];
                for i in 0..n {
                    out[i] = unsafe { *from.add(i) };
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn store_partial(self, to: *mut $t, n: usize) {
                for i in 0..n {
                    unsafe { *to.add(i) = self.0[i] };
                }
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.zip(b, |a, b| a + b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.zip(b, |a, b| a - b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.zip(b, |a, b| a * b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                self.zip(b, |a, b| a / b)
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                let mut out = self.0;
                for i in 0..$width {
                    out[i] = out[i].mul_add(b.0[i], c.0[i]);
                }
                Self(out)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.map(|x| x.sqrt())
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.map(|x| x.abs())
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                self.zip(b, |a, b| if a > b { a } else { b })
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                self.zip(b, |a, b| if a < b { a } else { b })
            }
            #[inline(always)]
            fn round(self) -> Self {
                // Adding and taking away 1.5·2^mantissa rounds to nearest even; large numbers are whole.
                const SHIFT: $t = 1.5 * ((1 as $bits) << $mantissa) as $t;
                const WHOLE: $t = ((1 as $bits) << ($mantissa - 1)) as $t;
                self.map(|x| if x.abs() < WHOLE { (x + SHIFT) - SHIFT } else { x })
            }
            #[inline(always)]
            fn scale_by_power(self, n: Self) -> Self {
                // In three factors, so that the powers stay finite from overflow down to subnormals.
                const LIMIT: $t = (3 * $bias) as $t;
                let power = |n: $t| <$t>::from_bits(((n as i64 + $bias) as $bits) << $mantissa);
                self.zip(n, |x, n| {
                    let n = if n > LIMIT { LIMIT } else { n };
                    let n = if n > -LIMIT { n } else { -LIMIT };
                    let third = (n / 3.0) as i64 as $t;
                    x * power(third) * power(third) * power(n - third - third)
                })
            }
            #[inline(always)]
            fn mantissa_exponent(self) -> (Self, Self) {
                const MASK: $bits = ((1 as $bits) << $mantissa) - 1;
                const ONE: $bits = ($bias as $bits) << $mantissa;
                let mut m = self.0;
                let mut e = self.0;
                for i in 0..$width {
                    let x = self.0[i];
                    let small = x < $tiny;
                    let lifted = if small { x * ((1u64 << $lift) as $t) } else { x };
                    let bits = lifted.to_bits();
                    m[i] = <$t>::from_bits((bits & MASK) | ONE);
                    e[i] = (bits >> $mantissa) as i64 as $t
                        - $bias as $t
                        - if small { $lift as $t } else { 0.0 };
                    if !(x > 0.0 && x < <$t>::INFINITY) {
                        m[i] = if x >= 0.0 { 1.0 } else { <$t>::NAN };
                        e[i] = if x == 0.0 { -<$t>::INFINITY } else { <$t>::INFINITY };
                    }
                }
                (Self(m), Self(e))
            }
            #[inline(always)]
            fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
                let mut out = no.0;
                for i in 0..$width {
                    out[i] = if a.0[i] < b.0[i] { yes.0[i] } else { no.0[i] };
                }
                Self(out)
            }
            #[inline(always)]
            fn copy_sign(self, sign: Self) -> Self {
                self.zip(sign, |a, s| a.copysign(s))
            }
        }
    };
}
plain!(PlainF32, f32, u32, 16, 6, 23, 127, f32::MIN_POSITIVE, 24);
plain!(PlainF64, f64, u64, 8, 6, 52, 1023, f64::MIN_POSITIVE, 54);

#[cfg(not(target_arch = "x86_64"))]
pub use self::{PlainF32 as WideF32, PlainF64 as WideF64};
#[cfg(target_arch = "x86_64")]
pub use avx512::{F32x16 as WideF32, F64x8 as WideF64};

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Simd;
    use std::arch::x86_64::*;

    macro_rules! wide {
        ($name:ident, $t:ty, $raw:ty, $width:literal, $mask:ty, $set1:ident, $load:ident, $store:ident,
         $maskload:ident, $maskstore:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fma:ident,
         $sqrt:ident, $abs:ident, $max:ident, $min:ident, $round:ident, $scalef:ident, $getmant:ident,
         $getexp:ident, $cmp:ident, $blend:ident, $and:ident, $or:ident, $andnot:ident, $transpose:ident) => {
            /// One 512-bit register.
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub struct $name($raw);

            // Inlined into functions that enable AVX-512 after `Level::detect` found it.
            impl Simd for $name {
                type Scalar = $t;
                const WIDTH: usize = $width;
                const TILE_ROWS: usize = 14;
                const TILE_VECTORS: usize = 2;

                #[inline(always)]
                fn splat(x: $t) -> Self {
                    unsafe { Self($set1(x)) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    unsafe { Self($load(from)) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn load_partial(from: *const $t, n: usize) -> Self {
                    unsafe { Self($maskload(((1u32 << n) - 1) as $mask, from)) }
                }
                #[inline(always)]
                unsafe fn store_partial(self, to: *mut $t, n: usize) {
                    unsafe { $maskstore(to, ((1u32 << n) - 1) as $mask, self.0) }
                }
                #[inline(always)]
                fn add(self, b: Self) -> Self {
                    unsafe { Self($add(self.0, b.0)) }
                }
                #[inline(always)]
                fn sub(self, b: Self) -> Self {
                    unsafe { Self($sub(self.0, b.0)) }
                }
                #[inline(always)]
                fn mul(self, b: Self) -> Self {
                    unsafe { Self($mul(self.0, b.0)) }
                }
                #[inline(always)]
                fn div(self, b: Self) -> Self {
                    unsafe { Self($div(self.0, b.0)) }
                }
                #[inline(always)]
                fn fma(self, b: Self, c: Self) -> Self {
                    unsafe { Self($fma(self.0, b.0, c.0)) }
                }
                #[inline(always)]
                fn sqrt(self) -> Self {
                    unsafe { Self($sqrt(self.0)) }
                }
                #[inline(always)]
                fn abs(self) -> Self {
                    unsafe { Self($abs(self.0)) }
                }
                #[inline(always)]
                fn max(self, b: Self) -> Self {
                    unsafe { Self($max(self.0, b.0)) }
                }
                #[inline(always)]
                fn min(self, b: Self) -> Self {
                    unsafe { Self($min(self.0, b.0)) }
                }
                #[inline(always)]
                fn round(self) -> Self {
                    unsafe { Self($round::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)) }
                }
                #[inline(always)]
                fn scale_by_power(self, n: Self) -> Self {
                    unsafe { Self($scalef(self.0, n.0)) }
                }
                #[inline(always)]
                fn mantissa_exponent(self) -> (Self, Self) {
                    // Interval [1, 2), NaN where negative.
                    unsafe { (Self($getmant::<0, 2>(self.0)), Self($getexp(self.0))) }
                }
                #[inline(always)]
                fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
                    unsafe { Self($blend($cmp::<_CMP_LT_OQ>(a.0, b.0), no.0, yes.0)) }
                }
                #[inline(always)]
                fn copy_sign(self, sign: Self) -> Self {
                    unsafe {
                        let bit = $set1(-0.0);
                        Self($or($andnot(bit, self.0), $and(bit, sign.0)))
                    }
                }
                #[inline(always)]
                unsafe fn transpose(from: *const $t, stride: usize, to: *mut $t, to_stride: usize) {
                    unsafe { $transpose(from, stride, to, to_stride) }
                }
            }
        };
    }
    #[rustfmt::skip]
    wide!(F32x16, f32, __m512, 16, __mmask16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
        _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps,
        _mm512_fmadd_ps, _mm512_sqrt_ps, _mm512_abs_ps, _mm512_max_ps, _mm512_min_ps, _mm512_roundscale_ps,
        _mm512_scalef_ps, _mm512_getmant_ps, _mm512_getexp_ps, _mm512_cmp_ps_mask, _mm512_mask_blend_ps,
        _mm512_and_ps, _mm512_or_ps, _mm512_andnot_ps, transpose_f32);
    #[rustfmt::skip]
    wide!(F64x8, f64, __m512d, 8, __mmask8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
        _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd,
        _mm512_fmadd_pd, _mm512_sqrt_pd, _mm512_abs_pd, _mm512_max_pd, _mm512_min_pd, _mm512_roundscale_pd,
        _mm512_scalef_pd, _mm512_getmant_pd, _mm512_getexp_pd, _mm512_cmp_pd_mask, _mm512_mask_blend_pd,
        _mm512_and_pd, _mm512_or_pd, _mm512_andnot_pd, transpose_f64);

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

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn transpose_f32(from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
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

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn transpose_f64(from: *const f64, stride: usize, to: *mut f64, to_stride: usize) {
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
}
