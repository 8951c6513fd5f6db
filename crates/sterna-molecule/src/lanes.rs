//! Eight numbers at once: one instruction set each for AVX-512, AVX2 and any other processor, chosen
//! at run time. Every operation here rounds once and correctly, so all three give the same bits.
//!
//! Code that runs on lanes is written once, generic over [`Lanes`], and started by [`dispatch`].

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Conformations per block.
pub(crate) const WIDTH: usize = 8;

/// Eight numbers in memory, one per conformation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lane(pub [f64; WIDTH]);

/// Start of the integer estimate of x^(−½) (the exponent halved and negated, the mantissa fitted).
const RSQRT_MAGIC: u64 = 0x5fe6_eb50_c7b5_37a9;
/// Bits of 2⁵², whose lowest bit counts ones.
const TWO_52_BITS: u64 = 0x4330_0000_0000_0000;
const TWO_52: f64 = 4_503_599_627_370_496.0;
/// Bits of √½: where a mantissa range [√½, √2) begins.
const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;

/// Arithmetic on eight numbers.
pub(crate) trait Lanes: Copy {
    fn splat(x: f64) -> Self;
    fn load(x: &Lane) -> Self;
    fn store(self, x: &mut Lane);
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    /// self · b + c, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// c − self · b, rounded once.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// `yes` where self < b, else `no` (also for NaN).
    fn select_less(self, b: Self, yes: Self, no: Self) -> Self;
    /// x^(−½) of positive numbers to 3.5%.
    fn rsqrt_estimate(self) -> Self;
    /// A positive normal number as m · 2^e with m in [√½, √2): (m, e).
    fn split_exponent(self) -> (Self, Self);
}

/// Plain arrays: correct everywhere, quick where the compiler finds vectors in them.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f64; WIDTH]);

impl Portable {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x; WIDTH])
    }
    #[inline(always)]
    fn load(x: &Lane) -> Self {
        Self(x.0)
    }
    #[inline(always)]
    fn store(self, x: &mut Lane) {
        x.0 = self.0;
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
    fn mul_add(self, b: Self, c: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].mul_add(b.0[i], c.0[i])))
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        Self(std::array::from_fn(|i| (-self.0[i]).mul_add(b.0[i], c.0[i])))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f64::sqrt))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.map(f64::abs))
    }
    #[inline(always)]
    fn select_less(self, b: Self, yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(|i| if self.0[i] < b.0[i] { yes.0[i] } else { no.0[i] }))
    }
    #[inline(always)]
    fn rsqrt_estimate(self) -> Self {
        Self(self.0.map(|x| f64::from_bits(RSQRT_MAGIC.wrapping_sub(x.to_bits() >> 1))))
    }
    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        let shifted = self.0.map(|x| x.to_bits().wrapping_sub(SQRT_HALF_BITS));
        // Biased by 2048 so that the count of twos is never negative.
        let exponent = shifted.map(|s| {
            let count = s.wrapping_add(2048 << 52) >> 52;
            f64::from_bits(count | TWO_52_BITS) - (TWO_52 + 2048.0)
        });
        let mantissa = shifted.map(|s| f64::from_bits((s & MANTISSA).wrapping_add(SQRT_HALF_BITS)));
        (Self(mantissa), Self(exponent))
    }
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512d);

// SAFETY throughout: values of this type exist only inside `dispatch`, after AVX-512F was detected.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self(unsafe { _mm512_set1_pd(x) })
    }
    #[inline(always)]
    fn load(x: &Lane) -> Self {
        Self(unsafe { _mm512_load_pd(x.0.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, x: &mut Lane) {
        unsafe { _mm512_store_pd(x.0.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self(unsafe { _mm512_add_pd(self.0, b.0) })
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self(unsafe { _mm512_sub_pd(self.0, b.0) })
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self(unsafe { _mm512_mul_pd(self.0, b.0) })
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Self(unsafe { _mm512_div_pd(self.0, b.0) })
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        Self(unsafe { _mm512_fmadd_pd(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        Self(unsafe { _mm512_fnmadd_pd(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm512_sqrt_pd(self.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm512_abs_pd(self.0) })
    }
    #[inline(always)]
    fn select_less(self, b: Self, yes: Self, no: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, b.0), no.0, yes.0) })
    }
    #[inline(always)]
    fn rsqrt_estimate(self) -> Self {
        Self(unsafe {
            let half = _mm512_srli_epi64::<1>(_mm512_castpd_si512(self.0));
            _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_set1_epi64(RSQRT_MAGIC as i64), half))
        })
    }
    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        unsafe {
            let begin = _mm512_set1_epi64(SQRT_HALF_BITS as i64);
            let shifted = _mm512_sub_epi64(_mm512_castpd_si512(self.0), begin);
            let count = _mm512_srli_epi64::<52>(_mm512_add_epi64(shifted, _mm512_set1_epi64(2048 << 52)));
            let count = _mm512_castsi512_pd(_mm512_or_si512(count, _mm512_set1_epi64(TWO_52_BITS as i64)));
            let exponent = _mm512_sub_pd(count, _mm512_set1_pd(TWO_52 + 2048.0));
            let mantissa = _mm512_and_si512(shifted, _mm512_set1_epi64(MANTISSA as i64));
            (Self(_mm512_castsi512_pd(_mm512_add_epi64(mantissa, begin))), Self(exponent))
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256d, __m256d);

#[cfg(target_arch = "x86_64")]
macro_rules! halves {
    ($f:ident($($x:expr),*)) => {
        Avx2(unsafe { $f($($x.0),*) }, unsafe { $f($($x.1),*) })
    };
}

// SAFETY throughout: values of this type exist only inside `dispatch`, after AVX2 and FMA were detected.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(x: f64) -> Self {
        let x = unsafe { _mm256_set1_pd(x) };
        Self(x, x)
    }
    #[inline(always)]
    fn load(x: &Lane) -> Self {
        unsafe { Self(_mm256_load_pd(x.0.as_ptr()), _mm256_load_pd(x.0.as_ptr().add(4))) }
    }
    #[inline(always)]
    fn store(self, x: &mut Lane) {
        unsafe {
            _mm256_store_pd(x.0.as_mut_ptr(), self.0);
            _mm256_store_pd(x.0.as_mut_ptr().add(4), self.1);
        }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        halves!(_mm256_add_pd(self, b))
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        halves!(_mm256_sub_pd(self, b))
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        halves!(_mm256_mul_pd(self, b))
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        halves!(_mm256_div_pd(self, b))
    }
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        halves!(_mm256_fmadd_pd(self, b, c))
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        halves!(_mm256_fnmadd_pd(self, b, c))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        halves!(_mm256_sqrt_pd(self))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        let sign = Self::splat(-0.0);
        halves!(_mm256_andnot_pd(sign, self))
    }
    #[inline(always)]
    fn select_less(self, b: Self, yes: Self, no: Self) -> Self {
        let less = unsafe {
            Self(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, b.0), _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, b.1))
        };
        halves!(_mm256_blendv_pd(no, yes, less))
    }
    #[inline(always)]
    fn rsqrt_estimate(self) -> Self {
        #[inline(always)]
        unsafe fn half(x: __m256d) -> __m256d {
            unsafe {
                let half = _mm256_srli_epi64::<1>(_mm256_castpd_si256(x));
                _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_set1_epi64x(RSQRT_MAGIC as i64), half))
            }
        }
        halves!(half(self))
    }
    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        #[inline(always)]
        unsafe fn half(x: __m256d) -> (__m256d, __m256d) {
            unsafe {
                let begin = _mm256_set1_epi64x(SQRT_HALF_BITS as i64);
                let shifted = _mm256_sub_epi64(_mm256_castpd_si256(x), begin);
                let count =
                    _mm256_srli_epi64::<52>(_mm256_add_epi64(shifted, _mm256_set1_epi64x(2048 << 52)));
                let count = _mm256_or_si256(count, _mm256_set1_epi64x(TWO_52_BITS as i64));
                let exponent = _mm256_sub_pd(_mm256_castsi256_pd(count), _mm256_set1_pd(TWO_52 + 2048.0));
                let mantissa = _mm256_and_si256(shifted, _mm256_set1_epi64x(MANTISSA as i64));
                (_mm256_castsi256_pd(_mm256_add_epi64(mantissa, begin)), exponent)
            }
        }
        let ((m0, e0), (m1, e1)) = unsafe { (half(self.0), half(self.1)) };
        (Self(m0, m1), Self(e0, e1))
    }
}

/// Work written for any instruction set. `run` must be `#[inline(always)]`, and so all it calls.
pub(crate) trait Kernel {
    fn run<L: Lanes>(self);
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Those this processor has, the best last.
    pub(crate) fn available() -> impl Iterator<Item = Level> {
        let mut found = [Some(Level::Portable), None, None];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            found[1] = Some(Level::Avx2);
            if is_x86_feature_detected!("avx512f") {
                found[2] = Some(Level::Avx512);
            }
        }
        found.into_iter().flatten()
    }

    /// The best this processor has.
    pub(crate) fn best() -> Level {
        Self::available().last().unwrap_or(Level::Portable)
    }
}

/// Runs `kernel` with the given instruction set, which must be one of [`Level::available`].
pub(crate) fn dispatch<K: Kernel>(level: Level, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn avx512<K: Kernel>(kernel: K) {
        kernel.run::<Avx512>()
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<K: Kernel>(kernel: K) {
        kernel.run::<Avx2>()
    }
    match level {
        Level::Portable => kernel.run::<Portable>(),
        // SAFETY: `Level::available` has seen these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(kernel) },
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(kernel) },
    }
}
