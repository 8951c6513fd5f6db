//! Lanes in plain Rust: what every CPU can do, and what the wider sets are compared with.

use super::{Bits, Lanes, WIDTH};
use std::array::from_fn;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Eight numbers in an array.
#[derive(Clone, Copy, Debug)]
pub struct Portable([f64; WIDTH]);

/// Eight words in an array.
#[derive(Clone, Copy, Debug)]
pub struct PortableBits([u64; WIDTH]);

macro_rules! operator {
    ($trait:ident, $method:ident, $operation:tt) => {
        impl $trait for Portable {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(from_fn(|i| self.0[i] $operation other.0[i]))
            }
        }
    };
}
operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);
operator!(Div, div, /);

impl Neg for Portable {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.map(|x| -x))
    }
}

impl Lanes for Portable {
    type Mask = [bool; WIDTH];
    type Bits = PortableBits;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x; WIDTH])
    }
    #[inline(always)]
    fn load(x: &[f64; WIDTH]) -> Self {
        Self(*x)
    }
    #[inline(always)]
    fn store(self, x: &mut [f64; WIDTH]) {
        *x = self.0;
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i].mul_add(a.0[i], b.0[i])))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f64::sqrt))
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
        Self(self.0.map(f64::round_ties_even))
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
    fn any(mask: Self::Mask) -> bool {
        mask.iter().any(|&m| m)
    }
    #[inline(always)]
    fn to_bits(self) -> PortableBits {
        PortableBits(self.0.map(f64::to_bits))
    }
    #[inline(always)]
    fn from_bits(bits: PortableBits) -> Self {
        Self(bits.0.map(f64::from_bits))
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
