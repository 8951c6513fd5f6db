//! Lanes on x86-64: one AVX-512 register, or two of AVX2.
//!
//! The methods are `inline(always)` and reach the CPU only inside [`run_avx512`] and [`run_avx2`],
//! whose callers have looked for the features: that is what makes each `unsafe` here sound.

use super::{Bits, Kernel, Lanes, WIDTH};
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") && has_avx2()
}

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Avx512(__m512d);

/// One 512-bit register of integers.
#[derive(Clone, Copy)]
pub struct Avx512Bits(__m512i);

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub struct Avx2(__m256d, __m256d);

/// Two 256-bit registers of integers.
#[derive(Clone, Copy)]
pub struct Avx2Bits(__m256i, __m256i);

macro_rules! operators {
    ($($trait:ident $method:ident $wide:ident $half:ident,)*) => {$(
        impl $trait for Avx512 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(unsafe { $wide(self.0, other.0) })
            }
        }
        impl $trait for Avx2 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                unsafe { Self($half(self.0, other.0), $half(self.1, other.1)) }
            }
        }
    )*};
}
operators! {
    Add add _mm512_add_pd _mm256_add_pd,
    Sub sub _mm512_sub_pd _mm256_sub_pd,
    Mul mul _mm512_mul_pd _mm256_mul_pd,
    Div div _mm512_div_pd _mm256_div_pd,
}

impl Neg for Avx512 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::from_bits(self.to_bits().xor(Bits::splat(1 << 63)))
    }
}

impl Neg for Avx2 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::from_bits(self.to_bits().xor(Bits::splat(1 << 63)))
    }
}

/// Mask of the first `n` ≤ 8 lanes.
#[inline(always)]
fn first_lanes(n: usize) -> __mmask8 {
    ((1u32 << n) - 1) as __mmask8
}

/// Masks of the first `n` ≤ 8 lanes as two registers: a window on eight ones and eight zeros.
#[inline(always)]
fn first_lanes_avx2(n: usize) -> (__m256i, __m256i) {
    const WINDOW: [i64; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    let window = &WINDOW[WIDTH - n..];
    unsafe { (_mm256_loadu_si256(window.as_ptr().cast()), _mm256_loadu_si256(window[4..].as_ptr().cast())) }
}

impl Lanes for Avx512 {
    type Mask = __mmask8;
    type Bits = Avx512Bits;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self(unsafe { _mm512_set1_pd(x) })
    }
    #[inline(always)]
    fn load(x: &[f64; WIDTH]) -> Self {
        Self(unsafe { _mm512_loadu_pd(x.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, x: &mut [f64; WIDTH]) {
        unsafe { _mm512_storeu_pd(x.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        debug_assert!(x.len() <= WIDTH);
        // SAFETY: only the first `x.len()` lanes are touched.
        Self(unsafe { _mm512_maskz_loadu_pd(first_lanes(x.len()), x.as_ptr()) })
    }
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        debug_assert!(x.len() <= WIDTH);
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_pd(x.as_mut_ptr(), first_lanes(x.len()), self.0) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_fmadd_pd(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm512_sqrt_pd(self.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(unsafe { _mm512_min_pd(self.0, other.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(unsafe { _mm512_max_pd(self.0, other.0) })
    }
    #[inline(always)]
    fn round(self) -> Self {
        Self(unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn lt(self, other: Self) -> __mmask8 {
        unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn select(mask: __mmask8, yes: Self, no: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_pd(mask, no.0, yes.0) })
    }
    #[inline(always)]
    fn any(mask: __mmask8) -> bool {
        mask != 0
    }
    #[inline(always)]
    fn to_bits(self) -> Avx512Bits {
        Avx512Bits(unsafe { _mm512_castpd_si512(self.0) })
    }
    #[inline(always)]
    fn from_bits(bits: Avx512Bits) -> Self {
        Self(unsafe { _mm512_castsi512_pd(bits.0) })
    }
}

impl Bits for Avx512Bits {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        Self(unsafe { _mm512_set1_epi64(x as i64) })
    }
    #[inline(always)]
    fn load(x: &[u64; WIDTH]) -> Self {
        Self(unsafe { _mm512_loadu_si512(x.as_ptr().cast()) })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        Self(unsafe { _mm512_mul_epu32(self.0, other.0) })
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        Self(unsafe { _mm512_srli_epi64::<N>(self.0) })
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        Self(unsafe { _mm512_slli_epi64::<N>(self.0) })
    }
}

impl Lanes for Avx2 {
    type Mask = (__m256d, __m256d);
    type Bits = Avx2Bits;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        let x = unsafe { _mm256_set1_pd(x) };
        Self(x, x)
    }
    #[inline(always)]
    fn load(x: &[f64; WIDTH]) -> Self {
        unsafe { Self(_mm256_loadu_pd(x.as_ptr()), _mm256_loadu_pd(x[4..].as_ptr())) }
    }
    #[inline(always)]
    fn store(self, x: &mut [f64; WIDTH]) {
        unsafe {
            _mm256_storeu_pd(x.as_mut_ptr(), self.0);
            _mm256_storeu_pd(x[4..].as_mut_ptr(), self.1);
        }
    }
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        debug_assert!(x.len() <= WIDTH);
        let (low, high) = first_lanes_avx2(x.len());
        // SAFETY: only the first `x.len()` lanes are touched; the address of the rest is never used.
        unsafe {
            Self(_mm256_maskload_pd(x.as_ptr(), low), _mm256_maskload_pd(x.as_ptr().wrapping_add(4), high))
        }
    }
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        debug_assert!(x.len() <= WIDTH);
        let (low, high) = first_lanes_avx2(x.len());
        // SAFETY: as above.
        unsafe {
            _mm256_maskstore_pd(x.as_mut_ptr(), low, self.0);
            _mm256_maskstore_pd(x.as_mut_ptr().wrapping_add(4), high, self.1);
        }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe { Self(_mm256_fmadd_pd(self.0, a.0, b.0), _mm256_fmadd_pd(self.1, a.1, b.1)) }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        unsafe { Self(_mm256_sqrt_pd(self.0), _mm256_sqrt_pd(self.1)) }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        unsafe { Self(_mm256_min_pd(self.0, other.0), _mm256_min_pd(self.1, other.1)) }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        unsafe { Self(_mm256_max_pd(self.0, other.0), _mm256_max_pd(self.1, other.1)) }
    }
    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        unsafe { Self(_mm256_round_pd::<NEAREST>(self.0), _mm256_round_pd::<NEAREST>(self.1)) }
    }
    #[inline(always)]
    fn lt(self, other: Self) -> Self::Mask {
        unsafe {
            (_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0), _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, other.1))
        }
    }
    #[inline(always)]
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
        unsafe { Self(_mm256_blendv_pd(no.0, yes.0, mask.0), _mm256_blendv_pd(no.1, yes.1, mask.1)) }
    }
    #[inline(always)]
    fn any(mask: Self::Mask) -> bool {
        unsafe { _mm256_movemask_pd(mask.0) | _mm256_movemask_pd(mask.1) != 0 }
    }
    #[inline(always)]
    fn to_bits(self) -> Avx2Bits {
        unsafe { Avx2Bits(_mm256_castpd_si256(self.0), _mm256_castpd_si256(self.1)) }
    }
    #[inline(always)]
    fn from_bits(bits: Avx2Bits) -> Self {
        unsafe { Self(_mm256_castsi256_pd(bits.0), _mm256_castsi256_pd(bits.1)) }
    }
}

impl Bits for Avx2Bits {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        let x = unsafe { _mm256_set1_epi64x(x as i64) };
        Self(x, x)
    }
    #[inline(always)]
    fn load(x: &[u64; WIDTH]) -> Self {
        unsafe { Self(_mm256_loadu_si256(x.as_ptr().cast()), _mm256_loadu_si256(x[4..].as_ptr().cast())) }
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        unsafe { Self(_mm256_and_si256(self.0, other.0), _mm256_and_si256(self.1, other.1)) }
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        unsafe { Self(_mm256_or_si256(self.0, other.0), _mm256_or_si256(self.1, other.1)) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        unsafe { Self(_mm256_xor_si256(self.0, other.0), _mm256_xor_si256(self.1, other.1)) }
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        unsafe { Self(_mm256_add_epi64(self.0, other.0), _mm256_add_epi64(self.1, other.1)) }
    }
    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        unsafe { Self(_mm256_mul_epu32(self.0, other.0), _mm256_mul_epu32(self.1, other.1)) }
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        unsafe {
            let n = _mm_cvtsi32_si128(N as i32);
            Self(_mm256_srl_epi64(self.0, n), _mm256_srl_epi64(self.1, n))
        }
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        unsafe {
            let n = _mm_cvtsi32_si128(N as i32);
            Self(_mm256_sll_epi64(self.0, n), _mm256_sll_epi64(self.1, n))
        }
    }
}
