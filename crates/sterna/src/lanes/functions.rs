//! Elementary functions on vectors: polynomials with explicit rounding, so no platform's mathematics library decides a
//! bit of a result. One set for both precisions; each function says how far off it may be, in units of the last place
//! (of the result, where nothing else is said), and `functions/tests.rs` holds it to that.

mod angles;
#[cfg(test)]
mod tests;

pub use angles::{atan2, atan2_right, cos_sin_turns, sin_cos};

use super::{Element, Lanes, Vector};
use crate::lanes::Bits;
use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// c₀ + c₁x + … by Horner's rule.
#[inline(always)]
fn polynomial<V: Vector>(x: V, coefficients: &[f64]) -> V {
    let (last, others) = coefficients.split_last().expect("a polynomial has coefficients");
    let mut sum = V::constant(*last);
    for &c in others.iter().rev() {
        sum = sum.mul_add(x, V::constant(c));
    }
    sum
}

/// 1/0!, 1/1!, … 1/13!: the Taylor series of exp is exact to rounding on |r| ≤ ln 2 / 2.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut c = [1.0; 14];
    let mut n = 1;
    while n < 14 {
        c[n] = c[n - 1] / n as f64;
        n += 1;
    }
    c
};

/// High part of ln 2 with trailing zero bits, and what it lacks.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
const _: () = assert!(LN_2_HIGH + LN_2_LOW == LN_2);

/// (n, r) with x = n·ln 2 + r and |r| ≤ ln 2 / 2; x is first brought to where exp is neither 0 nor ∞ by far.
#[inline(always)]
fn reduced<V: Vector>(x: V) -> (V, V) {
    // ln 2 in two parts, the first with so few bits that n times it is exact.
    let (limit, high, low) = if V::Scalar::IS_SINGLE {
        (120.0, 0.693_359_375, -2.121_944_400_546_905_8e-4)
    } else {
        (800.0, LN_2_HIGH, LN_2_LOW)
    };
    // min and max give their second argument on NaN.
    let x = V::constant(limit).min(V::constant(-limit).max(x));
    let n = (x * V::constant(LOG2_E)).round();
    let r = n.mul_add(V::constant(-high), x);
    (n, n.mul_add(V::constant(-low), r))
}

/// eʳ − 1 of a reduced argument: r + r²(1/2 + r/6 + …).
#[inline(always)]
fn exp_minus_one_reduced<V: Vector>(r: V) -> V {
    let terms = if V::Scalar::IS_SINGLE { 8 } else { 14 };
    (r * r).mul_add(polynomial(r, &INVERSE_FACTORIALS[2..terms]), r)
}

/// eˣ, to 2 ulp (`f32`: 1); subnormal results to one ulp of theirs. Of `f64` every density is made: the order of its
/// sum stays as it is, though another would be off by 1 ulp only, since the last bit decides which draws a seed gives.
#[inline(always)]
pub fn exp<V: Vector>(x: V) -> V {
    let (n, r) = reduced(x);
    let p = if V::Scalar::IS_SINGLE {
        exp_minus_one_reduced(r) + V::constant(1.0)
    } else {
        // Estrin's scheme: short dependency chains.
        let c = |i: usize| V::constant(INVERSE_FACTORIALS[i]);
        let r2 = r * r;
        let r4 = r2 * r2;
        let r8 = r4 * r4;
        let pair = |i: usize| c(i + 1).mul_add(r, c(i));
        let quad = |i: usize| pair(i + 2).mul_add(r2, pair(i));
        let low = quad(4).mul_add(r4, quad(0));
        let high = pair(12).mul_add(r4, quad(8));
        high.mul_add(r8, low)
    };
    p.scale_by_power(n)
}

/// eˣ − 1, precise near 0: to 3 ulp.
#[inline(always)]
pub fn exp_m1<V: Vector>(x: V) -> V {
    let (n, r) = reduced(x);
    let power = V::constant(1.0).scale_by_power(n);
    exp_minus_one_reduced(r).mul_add(power, power - V::constant(1.0))
}

/// Natural logarithm, to 1 ulp; −∞ at zero, NaN below, +∞ at +∞.
#[inline(always)]
pub fn ln<V: Vector>(x: V) -> V {
    /// 2/3, 2/5, … of the odd series of 2 artanh.
    const ODD: [f64; 10] = {
        let mut c = [0.0; 10];
        let mut n = 0;
        while n < 10 {
            c[n] = 2.0 / (2 * n + 3) as f64;
            n += 1;
        }
        c
    };
    let (terms, high, low) = if V::Scalar::IS_SINGLE {
        (4, 0.693_145_751_953_125, 1.428_606_820_309_417_3e-6)
    } else {
        (10, LN_2_HIGH, LN_2_LOW)
    };
    let (m, e) = x.mantissa_exponent();
    // Mantissa into [√½, √2).
    let root = V::constant(SQRT_2);
    let e = V::select_less(m, root, e, e + V::constant(1.0));
    let m = V::select_less(m, root, m, m * V::constant(0.5));
    // ln m = 2 artanh(s), s = f/(2+f), f = m − 1: an odd series in s, |s| ≤ 0.1716.
    let f = m - V::constant(1.0);
    let s = f / (V::constant(2.0) + f);
    let z = s * s;
    // ln m = f − s·(f − z·p): the rounding of f/(2+f) enters only through small terms.
    let ln_m = f - s * (f - z * polynomial(z, &ODD[..terms]));
    // ±∞ in e gives ±∞ here; −∞ + ∞ cannot occur.
    e.mul_add(V::constant(high), e.mul_add(V::constant(low), ln_m))
}

/// ln(1 + u) for u in [0, 1].
#[inline(always)]
fn ln_one_plus<V: Vector>(u: V) -> V {
    let one = V::constant(1.0);
    let w = one + u;
    // What rounding lost from 1 + u.
    let lost = u - (w - one);
    ln(w) + lost / w
}

/// 1/(1 + e⁻ˣ), to 4 ulp (`f32`: 2.5).
#[inline(always)]
pub fn sigmoid<V: Vector>(x: V) -> V {
    let one = V::constant(1.0);
    one / (one + exp(V::constant(0.0) - x))
}

/// ln(1 + eˣ), to 3 ulp (`f32`: 2.5).
#[inline(always)]
pub fn softplus<V: Vector>(x: V) -> V {
    let zero = V::constant(0.0);
    zero.max(x) + ln_one_plus(exp(zero - x.abs()))
}

/// tanh x, to 3 ulp (`f32`: 2.5).
#[inline(always)]
pub fn tanh<V: Vector>(x: V) -> V {
    let t = exp_m1(x.abs() * V::constant(-2.0));
    ((V::constant(0.0) - t) / (t + V::constant(2.0))).copy_sign(x)
}

/// tanh(x/2) to within 2⁻⁵², which near zero is less than [`tanh`] gives and costs a third less: for probabilities.
#[inline(always)]
pub fn tanh_half<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let e = exp(-x.abs());
    let t = (one - e) / (one + e);
    L::select(x.lt(L::splat(0.0)), -t, t)
}

/// x^(−½) of positive normal numbers, to about one unit in the last place; at 0 a huge number.
///
/// The exponent is halved and negated as an integer, which is right to 3.5%. Then two steps of fourth
/// order: with h = 1 − x y², y ← y (1 − h)^(−½) expanded to h³.
#[inline(always)]
pub fn rsqrt<L: Lanes>(x: L) -> L {
    /// Fitted to the mantissa's range.
    const MAGIC: u64 = 0x5fe6_eb50_c7b5_37a9;
    // MAGIC − bits/2, as the sum with the complement.
    let half = x.to_bits().shift_right::<1>();
    let mut y = L::from_bits(half.xor(L::Bits::splat(u64::MAX)).plus(L::Bits::splat(MAGIC + 1)));
    let minus_x = -x;
    let mut step = 0;
    while step < 2 {
        let h = (minus_x * y).mul_add(y, L::splat(1.0));
        let p = h.mul_add(h.mul_add(L::splat(0.3125), L::splat(0.375)), L::splat(0.5));
        y = (y * h).mul_add(p, y);
        step += 1;
    }
    y
}
