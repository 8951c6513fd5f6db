//! exp, ln, sine and cosine on lanes: polynomials with explicit rounding, so no platform's
//! mathematics library decides a bit of a result. Errors are below 2 ulp in the ranges stated.

use super::{Bits, Lanes};
use std::f64::consts::{LN_2, LOG2_E, SQRT_2, TAU};

/// 1/0!, 1/1!, … 1/13!: the Taylor series of exp is exact to rounding on |r| ≤ ln 2 / 2.
const EXP: [f64; 14] = {
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

/// eˣ. Zero below −708 (results would be subnormal), +∞ above 709.
#[inline(always)]
pub fn exp<L: Lanes>(x: L) -> L {
    let n = (x * L::splat(LOG2_E)).round();
    let r = n.mul_add(L::splat(-LN_2_HIGH), x);
    let r = n.mul_add(L::splat(-LN_2_LOW), r);
    let c = |i: usize| L::splat(EXP[i]);
    // Estrin's scheme: short dependency chains.
    let r2 = r * r;
    let r4 = r2 * r2;
    let r8 = r4 * r4;
    let pair = |i: usize| c(i + 1).mul_add(r, c(i));
    let quad = |i: usize| pair(i + 2).mul_add(r2, pair(i));
    let low = quad(4).mul_add(r4, quad(0));
    let high = pair(12).mul_add(r4, quad(8));
    let p = high.mul_add(r8, low);
    // n + 1023 lands in the low mantissa bits of 2⁵² + n + 1023: shifted, it is the exponent of 2ⁿ.
    let shifted = (n + L::splat(4_503_599_627_370_496.0 + 1023.0)).to_bits().shift_left::<52>();
    let p = p * L::from_bits(shifted);
    let p = L::select(x.lt(L::splat(-708.0)), L::splat(0.0), p);
    L::select(L::splat(709.0).lt(x), L::splat(f64::INFINITY), p)
}

/// Natural logarithm of a positive normal number; −∞ at zero, NaN below, +∞ at +∞.
#[inline(always)]
pub fn ln<L: Lanes>(x: L) -> L {
    let bits = x.to_bits();
    // Exponent as a number: the biased exponent in the low bits of 2⁵².
    let biased = bits.shift_right::<52>().or(L::Bits::splat(0x4330_0000_0000_0000));
    let e = L::from_bits(biased) - L::splat(4_503_599_627_370_496.0 + 1023.0);
    let m = bits.and(L::Bits::splat(0x000F_FFFF_FFFF_FFFF)).or(L::Bits::splat(0x3FF0_0000_0000_0000));
    let m = L::from_bits(m);
    // Mantissa into [√½, √2).
    let big = L::splat(SQRT_2).lt(m);
    let m = L::select(big, m * L::splat(0.5), m);
    let e = L::select(big, e + L::splat(1.0), e);
    // ln m = 2 artanh(s), s = f/(2+f), f = m − 1: an odd series in s, |s| ≤ 0.1716.
    let f = m - L::splat(1.0);
    let s = f / (L::splat(2.0) + f);
    let z = s * s;
    let mut p = L::splat(2.0 / 21.0);
    for n in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        p = p.mul_add(z, L::splat(2.0 / n));
    }
    // ln m = f − s·(f − z·p): the rounding of f/(2+f) enters only through small terms.
    let ln_m = f - s * (f - z * p);
    let y = e.mul_add(L::splat(LN_2_LOW), ln_m);
    let y = e.mul_add(L::splat(LN_2_HIGH), y);
    let y = L::select(x.lt(L::splat(f64::MIN_POSITIVE)), L::splat(f64::NEG_INFINITY), y);
    let y = L::select(x.lt(L::splat(0.0)), L::splat(f64::NAN), y);
    L::select(x.lt(L::splat(f64::INFINITY)), y, x)
}

const SIN: [f64; 8] = taylor(1);
const COS: [f64; 9] = taylor(0);

/// (−1)ⁿ/(2n + first)!: Taylor coefficients in x² of cos (first = 0) and sin x / x (first = 1).
const fn taylor<const N: usize>(first: usize) -> [f64; N] {
    let mut c = [1.0; N];
    let mut n = 1;
    while n < N {
        let k = (2 * n + first) as f64;
        c[n] = -c[n - 1] / (k * (k - 1.0));
        n += 1;
    }
    c
}

/// cos 2πu and sin 2πu for u in [0, 1].
#[inline(always)]
pub fn cos_sin_turns<L: Lanes>(u: L) -> (L, L) {
    // u = q/4 + r exactly, |r| ≤ 1/8.
    let q = (u * L::splat(4.0)).round();
    let r = q.mul_add(L::splat(-0.25), u) * L::splat(TAU);
    let z = r * r;
    let mut sin = L::splat(SIN[7]);
    for i in (0..7).rev() {
        sin = sin.mul_add(z, L::splat(SIN[i]));
    }
    let sin = sin * r;
    let mut cos = L::splat(COS[8]);
    for i in (0..8).rev() {
        cos = cos.mul_add(z, L::splat(COS[i]));
    }
    // q mod 4: 0 (c, s), 1 (−s, c), 2 (−c, −s), 3 (s, −c), 4 as 0.
    let q = L::select(L::splat(3.5).lt(q), L::splat(0.0), q);
    let one = L::splat(1.0);
    let odd = ((q - L::splat(2.0)).abs() - one).abs().lt(L::splat(0.5));
    let (c, s) = (L::select(odd, sin, cos), L::select(odd, cos, sin));
    let c_negative = (q - L::splat(1.5)).abs().lt(one);
    let s_negative = L::splat(1.5).lt(q);
    (L::select(c_negative, -c, c), L::select(s_negative, -s, s))
}

/// 1/(1 + e⁻ˣ).
#[inline(always)]
pub fn sigmoid<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let e = exp(-x.abs());
    let small = e / (one + e);
    L::select(x.lt(L::splat(0.0)), small, one / (one + e))
}

/// tanh(x/2), from the side where nothing cancels badly: absolute error below 2⁻⁵².
#[inline(always)]
pub fn tanh_half<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let e = exp(-x.abs());
    let t = (one - e) / (one + e);
    L::select(x.lt(L::splat(0.0)), -t, t)
}

const _: () = assert!(LN_2_HIGH + LN_2_LOW == LN_2);

#[cfg(test)]
mod tests {
    use super::super::{Portable, Vector, WIDTH};
    use super::*;

    fn one(f: impl Fn(Portable) -> Portable, x: f64) -> f64 {
        f(Portable::splat(x)).to_array()[WIDTH - 1]
    }

    fn ulps(a: f64, b: f64) -> f64 {
        if a == b { 0.0 } else { (a - b).abs() / (b.abs() * f64::EPSILON) }
    }

    #[test]
    fn exp_and_ln_agree_with_the_platform() {
        for i in 0..200_000 {
            let x = -700.0 + 0.007 * f64::from(i);
            assert!(ulps(one(exp, x), x.exp()) < 2.0, "exp({x})");
            let y = (0.003 * f64::from(i) - 300.0).exp();
            assert!(ulps(one(ln, y), y.ln()) < 2.0 || (one(ln, y) - y.ln()).abs() < 2e-16, "ln({y})");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(one(exp, -1e300), 0.0);
        assert_eq!(one(exp, f64::NEG_INFINITY), 0.0);
        assert_eq!(one(exp, f64::INFINITY), f64::INFINITY);
        assert_eq!(one(exp, 0.0), 1.0);
        assert!(one(exp, f64::NAN).is_nan());
        assert_eq!(one(ln, 1.0), 0.0);
        assert_eq!(one(ln, 0.0), f64::NEG_INFINITY);
        assert_eq!(one(ln, f64::INFINITY), f64::INFINITY);
        assert!(one(ln, -1.0).is_nan());
        assert!(one(ln, f64::NAN).is_nan());
        assert_eq!(one(tanh_half, f64::INFINITY), 1.0);
        assert_eq!(one(sigmoid, -1e5), 0.0);
    }

    #[test]
    fn turns() {
        for i in 0..=80_000 {
            let u = f64::from(i) / 80_000.0;
            let (c, s) = cos_sin_turns(Portable::splat(u));
            let (c, s) = (c.to_array()[0], s.to_array()[0]);
            assert!(
                (c - (TAU * u).cos()).abs() < 1e-15 && (s - (TAU * u).sin()).abs() < 1e-15,
                "{u}: {c} {s}"
            );
        }
    }
}
