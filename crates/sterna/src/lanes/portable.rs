//! Vectors in plain Rust: what every CPU can do, and what the wider sets are compared with.

use super::{Bits, Element, Lanes, Vector, WIDTH};
use std::array::from_fn;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Eight `f64` in an array.
#[derive(Clone, Copy, Debug)]
pub struct Portable([f64; WIDTH]);

/// Sixteen `f32` in an array.
#[derive(Clone, Copy, Debug)]
pub struct PortableSingle([f32; 2 * WIDTH]);

/// Eight words in an array.
#[derive(Clone, Copy, Debug)]
pub struct PortableBits([u64; WIDTH]);

macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident, $operation:tt) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(from_fn(|i| self.0[i] $operation other.0[i]))
            }
        }
    };
}

/// The `Vector` of an array; the last numbers say how a float is laid out in bits.
macro_rules! vector {
    ($name:ident, $t:ty, $lanes:expr, $bits:ty, $mantissa:literal, $bias:literal, $lift:literal) => {
        operator!($name, Add, add, +);
        operator!($name, Sub, sub, -);
        operator!($name, Mul, mul, *);
        operator!($name, Div, div, /);

        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self(self.0.map(|x| -x))
            }
        }

        impl Vector for $name {
            type Scalar = $t;
            type Mask = [bool; $lanes];
            const LANES: usize = $lanes;
            // Sixteen registers of 256 bits, where there are so many.
            const REGISTERS: usize = 8;

            #[inline(always)]
            fn splat(x: $t) -> Self {
                Self([x; $lanes])
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Self(from_fn(|i| self.0[i].mul_add(a.0[i], b.0[i])))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(self.0.map(<$t>::sqrt))
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self(self.0.map(<$t>::abs))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self(from_fn(|i| if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            fn round(self) -> Self {
                // Adding and taking away 1.5·2^mantissa rounds to nearest even, without a call where the CPU has no
                // instruction for it; large numbers are whole.
                const SHIFT: $t = 1.5 * ((1 as $bits) << $mantissa) as $t;
                const WHOLE: $t = ((1 as $bits) << ($mantissa - 1)) as $t;
                Self(self.0.map(|x| if x.abs() < WHOLE { ((x + SHIFT) - SHIFT).copysign(x) } else { x }))
            }
            #[inline(always)]
            fn scale_by_power(self, n: Self) -> Self {
                // In two factors, so that both powers are normal numbers: only the last product rounds.
                const LIMIT: $t = (2 * $bias) as $t;
                // The sum has n + bias in its low bits: shifted, they are the exponent of 2ⁿ.
                const ONE: $t = ((1 as $bits) << $mantissa) as $t + $bias as $t;
                let power = |n: $t| <$t>::from_bits((n + ONE).to_bits() << $mantissa);
                let n = n.min(Self::splat(LIMIT)).max(Self::splat(-LIMIT));
                let half = (n * Self::splat(0.5)).round();
                let rest = n - half;
                Self(from_fn(|i| self.0[i] * power(half.0[i]) * power(rest.0[i])))
            }
            #[inline(always)]
            fn mantissa_exponent(self) -> (Self, Self) {
                const MASK: $bits = ((1 as $bits) << $mantissa) - 1;
                const ONE: $bits = ($bias as $bits) << $mantissa;
                let mut m = self.0;
                let mut e = self.0;
                for i in 0..$lanes {
                    let x = self.0[i];
                    let small = x < <$t>::MIN_POSITIVE;
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
            fn copy_sign(self, sign: Self) -> Self {
                Self(from_fn(|i| self.0[i].copysign(sign.0[i])))
            }
            #[inline(always)]
            fn lt(self, other: Self) -> Self::Mask {
                from_fn(|i| self.0[i] < other.0[i])
            }
            #[inline(always)]
            fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
                Self(from_fn(|i| if mask[i] { yes.0[i] } else { no.0[i] }))
            }
            #[inline(always)]
            fn select_less(a: Self, b: Self, yes: Self, no: Self) -> Self {
                Self(from_fn(|i| if a.0[i] < b.0[i] { yes.0[i] } else { no.0[i] }))
            }
            #[inline(always)]
            fn any(mask: Self::Mask) -> bool {
                mask.iter().any(|&m| m)
            }
            #[inline(always)]
            unsafe fn read(from: *const $t) -> Self {
                // SAFETY: the caller's promise.
                Self(unsafe { from.cast::<[$t; $lanes]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn write(self, to: *mut $t) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<[$t; $lanes]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn read_first(from: *const $t, n: usize) -> Self {
                let mut out = [0.0; $lanes];
                for (i, x) in out.iter_mut().enumerate().take(n) {
                    // SAFETY: the caller's promise.
                    *x = unsafe { *from.add(i) };
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn write_first(self, to: *mut $t, n: usize) {
                for (i, x) in self.0.iter().enumerate().take(n) {
                    // SAFETY: the caller's promise.
                    unsafe { *to.add(i) = *x };
                }
            }
        }
    };
}
vector!(Portable, f64, WIDTH, u64, 52, 1023, 54);
vector!(PortableSingle, f32, 2 * WIDTH, u32, 23, 127, 24);

macro_rules! element {
    ($t:ty, $single:literal, $avx512:ident, $portable:ident) => {
        impl Element for $t {
            const IS_SINGLE: bool = $single;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = super::avx512::$avx512;
            #[cfg(not(target_arch = "x86_64"))]
            type Avx512 = $portable;
            type Portable = $portable;
            #[inline(always)]
            fn nearest(x: f64) -> Self {
                x as $t
            }
        }
    };
}
element!(f32, true, Avx512Single, PortableSingle);
element!(f64, false, Avx512, Portable);

impl Lanes for Portable {
    type Bits = PortableBits;

    #[inline(always)]
    fn to_bits(self) -> PortableBits {
        PortableBits(self.0.map(f64::to_bits))
    }
    #[inline(always)]
    fn from_bits(bits: PortableBits) -> Self {
        Self(bits.0.map(f64::from_bits))
    }
    #[inline(always)]
    fn load_some(x: &[f64]) -> Self {
        if let Ok(full) = x.try_into() {
            return Self(full);
        }
        let mut padded = [0.0; WIDTH];
        padded[..x.len()].copy_from_slice(x);
        Self(padded)
    }
    #[inline(always)]
    fn store_some(self, x: &mut [f64]) {
        let n = x.len();
        x.copy_from_slice(&self.0[..n]);
    }
}

impl Bits for PortableBits {
    #[inline(always)]
    fn splat(x: u64) -> Self {
        Self([x; WIDTH])
    }
    #[inline(always)]
    fn load(x: &[u64; WIDTH]) -> Self {
        Self(*x)
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] & other.0[i]))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] | other.0[i]))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] ^ other.0[i]))
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }
    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        const LOW: u64 = u32::MAX as u64;
        Self(from_fn(|i| (self.0[i] & LOW) * (other.0[i] & LOW)))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        Self(self.0.map(|x| x >> N))
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        Self(self.0.map(|x| x << N))
    }
}
