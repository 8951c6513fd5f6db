//! Sines, cosines and angles.
//!
//! The polynomials interpolate at Chebyshev points; their remainders are 2·10⁻¹⁹ (arc tangent) and 10⁻²⁰ (sine and
//! cosine) of the leading term.

use super::polynomial;
use crate::lanes::{Element, Lanes, Vector};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI, TAU};

const SIN: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333331,
    -0.00019841269841264821,
    2.7557319219150783e-06,
    -2.5052106167335705e-08,
    1.6058521349954986e-10,
    -7.586094789672621e-13,
];
const COS: [f64; 7] = [
    0.041666666666666664,
    -0.0013888888888888887,
    2.480158730158451e-05,
    -2.755731922129809e-07,
    2.0876755754879594e-09,
    -1.1470455178216906e-11,
    4.745537017319258e-14,
];

/// As many terms as `f32` can tell, of the Taylor series.
const SINGLE_SIN: [f64; 4] = [-1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0];
const SINGLE_COS: [f64; 3] = [1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0];

/// (sin x, cos x) for angles of a few thousand turns at most, to 1 ulp of 1.
#[inline(always)]
pub fn sin_cos<V: Vector>(x: V) -> (V, V) {
    let quarter = (x * V::constant(FRAC_2_PI)).round();
    // π/2 in parts: of f64 the nearest and what it lacks, of f32 three with few bits.
    let r = if V::Scalar::IS_SINGLE {
        let r = quarter.mul_add(V::constant(-1.570_312_5), x);
        let r = quarter.mul_add(V::constant(-4.837_512_969_970_703e-4), r);
        quarter.mul_add(V::constant(-7.549_789_948_768_648e-8), r)
    } else {
        let r = quarter.mul_add(V::constant(-FRAC_PI_2), x);
        quarter.mul_add(V::constant(-6.123_233_995_736_766e-17), r)
    };
    let u = r * r;
    let (sin, cos): (&[f64], &[f64]) =
        if V::Scalar::IS_SINGLE { (&SINGLE_SIN, &SINGLE_COS) } else { (&SIN, &COS) };
    let (half, one) = (V::constant(0.5), V::constant(1.0));
    let sine = (r * u).mul_add(polynomial(u, sin), r);
    let cosine = u.mul_add(u.mul_add(polynomial(u, cos), -half), one);
    // The quadrant q = −2 … 2: odd ones exchange sine and cosine; −2, −1 and 2 negate the sine,
    // −2, 1 and 2 the cosine.
    let q = (quarter * V::constant(0.25)).round().mul_add(V::constant(-4.0), quarter);
    let odd = (q.abs() - one).abs().lt(half);
    let far = V::constant(1.5).lt(q.abs());
    let (s, c) = (V::select(odd, cosine, sine), V::select(odd, sine, cosine));
    let minus_s = V::select(q.lt(-half), -s, s);
    let minus_c = V::select(half.lt(q), -c, c);
    (V::select(far, -s, minus_s), V::select(far, -c, minus_c))
}

const TURN_SIN: [f64; 8] = taylor(1);
const TURN_COS: [f64; 9] = taylor(0);

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

/// cos 2πu and sin 2πu for u in [0, 1], within 10⁻¹⁵. Normal draws are made of it: series and order are their own, since
/// another last bit here would be other draws of every run.
#[inline(always)]
pub fn cos_sin_turns<L: Lanes>(u: L) -> (L, L) {
    // u = q/4 + r exactly, |r| ≤ 1/8.
    let q = (u * L::splat(4.0)).round();
    let r = q.mul_add(L::splat(-0.25), u) * L::splat(TAU);
    let z = r * r;
    let mut sin = L::splat(TURN_SIN[7]);
    for i in (0..7).rev() {
        sin = sin.mul_add(z, L::splat(TURN_SIN[i]));
    }
    let sin = sin * r;
    let mut cos = L::splat(TURN_COS[8]);
    for i in (0..8).rev() {
        cos = cos.mul_add(z, L::splat(TURN_COS[i]));
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

const ATAN: [f64; 12] = [
    -0.3333333333333333,
    0.19999999999999804,
    -0.14285714285659828,
    0.11111111105155447,
    -0.09090908753500877,
    0.07692296375032143,
    -0.06666424885738255,
    0.05878928997834775,
    -0.05230454270650244,
    0.04551593220626549,
    -0.034570561981427744,
    0.016285756855221028,
];

/// The angle of the point (x, y) with x ≥ 0: in [−π/2, π/2].
#[inline(always)]
pub fn atan2_right<L: Lanes>(y: L, x: L) -> L {
    const TAN_PI_8: f64 = 0.414_213_562_373_095_03;
    let a = y.abs();
    // Turned by 0, π/4 or π/2 so that the ratio lies in ±tan(π/8).
    let shallow = a.lt(L::splat(TAN_PI_8) * x);
    let steep = x.lt(L::splat(TAN_PI_8) * a);
    let numerator = L::select(shallow, a, L::select(steep, -x, a - x));
    let denominator = L::select(shallow, x, L::select(steep, a, a + x));
    let turned = L::select(steep, L::splat(FRAC_PI_2), L::splat(FRAC_PI_4));
    let offset = L::select(shallow, L::splat(0.0), turned);
    let z = numerator / denominator;
    let u = z * z;
    let angle = offset + (z * u).mul_add(polynomial(u, &ATAN), z);
    L::select(y.lt(L::splat(0.0)), -angle, angle)
}

/// The angle of the point (x, y), in [−π, π].
#[inline(always)]
pub fn atan2<L: Lanes>(y: L, x: L) -> L {
    let zero = L::splat(0.0);
    let right = atan2_right(y, x.abs());
    let half_turn = L::select(y.lt(zero), L::splat(-PI), L::splat(PI));
    L::select(x.lt(zero), half_turn - right, right)
}
