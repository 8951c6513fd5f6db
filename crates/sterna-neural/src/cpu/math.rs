//! exp, log, tanh and their kin over vectors: range reduction and a Taylor polynomial, to within about
//! two units in the last place. Accuracy is checked against the standard library in this file's tests.

use super::simd::Simd;
use sterna::lanes::Element;

/// Whether the scalar is f32: decides how many terms a series gets.
#[inline(always)]
fn single<V: Simd>() -> bool {
    V::Scalar::IS_SINGLE
}

/// c₀ + c₁x + … by Horner's rule.
#[inline(always)]
fn polynomial<V: Simd>(x: V, coefficients: &[f64]) -> V {
    let mut sum = V::constant(coefficients[coefficients.len() - 1]);
    for &c in coefficients[..coefficients.len() - 1].iter().rev() {
        sum = sum.mul_add(x, V::constant(c));
    }
    sum
}

/// 1/n! from 1/1!.
const INVERSE_FACTORIALS: [f64; 19] = {
    let mut out = [1.0; 19];
    let mut n = 1;
    while n < 19 {
        out[n] = out[n - 1] / (n + 1) as f64;
        n += 1;
    }
    out
};

/// (n, e^r − 1) with x = n·log 2 + r, |r| ≤ log 2 / 2.
#[inline(always)]
fn exp_reduced<V: Simd>(x: V) -> (V, V) {
    let n = x.mul(V::constant(std::f64::consts::LOG2_E)).round();
    // log 2 in two parts: the first has so few bits that n times it is exact.
    let (high, low) = if single::<V>() {
        (0.693_359_375, -2.121_944_400_546_905_8e-4)
    } else {
        (f64::from_bits(0x3FE6_2E42_FEE0_0000), f64::from_bits(0x3DEA_39EF_3579_3C76))
    };
    let r = n.mul_add(V::constant(-high), x);
    let r = n.mul_add(V::constant(-low), r);
    let terms = if single::<V>() { 7 } else { 13 };
    // r + r²(1/2 + r/6 + …)
    let tail = polynomial::<V>(r, &INVERSE_FACTORIALS[1..terms]);
    (n, r.mul(r).mul_add(tail, r))
}

/// Keeps exp's argument where n fits the exponent; NaN passes.
#[inline(always)]
fn clamp_exponent<V: Simd>(x: V) -> V {
    let limit = if single::<V>() { 120.0 } else { 800.0 };
    // max and min return their second argument on NaN.
    V::constant(limit).min(V::constant(-limit).max(x))
}

/// eˣ.
#[inline(always)]
pub fn exp<V: Simd>(x: V) -> V {
    let (n, q) = exp_reduced(clamp_exponent(x));
    q.add(V::constant(1.0)).scale_by_power(n)
}

/// eˣ − 1 for x ≤ 0, precise near 0.
#[inline(always)]
fn exp_minus_one<V: Simd>(x: V) -> V {
    let (n, q) = exp_reduced(clamp_exponent(x));
    let power = V::constant(1.0).scale_by_power(n);
    q.mul_add(power, power.sub(V::constant(1.0)))
}

/// log x.
#[inline(always)]
pub fn log<V: Simd>(x: V) -> V {
    let (m, e) = x.mantissa_exponent();
    // m into [1/√2, √2)
    let high = V::constant(std::f64::consts::SQRT_2);
    let half = m.mul(V::constant(0.5));
    let e = V::select_less(m, high, e, e.add(V::constant(1.0)));
    let m = V::select_less(m, high, m, half);
    // log m = 2 artanh(s), s = (m − 1)/(m + 1)
    let f = m.sub(V::constant(1.0));
    let s = f.div(m.add(V::constant(1.0)));
    let s2 = s.mul(s);
    const ODD: [f64; 11] = [
        2.0 / 3.0,
        2.0 / 5.0,
        2.0 / 7.0,
        2.0 / 9.0,
        2.0 / 11.0,
        2.0 / 13.0,
        2.0 / 15.0,
        2.0 / 17.0,
        2.0 / 19.0,
        2.0 / 21.0,
        2.0 / 23.0,
    ];
    let terms = if single::<V>() { 4 } else { 11 };
    let series = polynomial::<V>(s2, &ODD[..terms]).mul(s2);
    // 2s = f − s·f, so that f enters unrounded
    let log_m = f.sub(s.mul(f.sub(series)));
    let (high, low) = (0.693_145_751_953_125, 1.428_606_820_309_417_3e-6);
    let small = e.mul_add(V::constant(low), log_m);
    // ±∞ in e gives ±∞ here; −∞ + ∞ cannot occur
    e.mul_add(V::constant(high), small)
}

/// log(1 + u) for u in [0, 1].
#[inline(always)]
fn log_one_plus<V: Simd>(u: V) -> V {
    let one = V::constant(1.0);
    let w = one.add(u);
    // what rounding lost from 1 + u
    let lost = u.sub(w.sub(one));
    log(w).add(lost.div(w))
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub fn sigmoid<V: Simd>(x: V) -> V {
    let one = V::constant(1.0);
    one.div(one.add(exp(V::constant(0.0).sub(x))))
}

/// log(1 + eˣ).
#[inline(always)]
pub fn softplus<V: Simd>(x: V) -> V {
    let zero = V::constant(0.0);
    let tail = log_one_plus(exp(zero.sub(x.abs())));
    zero.max(x).add(tail)
}

/// tanh x.
#[inline(always)]
pub fn tanh<V: Simd>(x: V) -> V {
    let t = exp_minus_one(x.abs().mul(V::constant(-2.0)));
    V::constant(0.0).sub(t).div(t.add(V::constant(2.0))).copy_sign(x)
}

/// (sin x, cos x); meant for arguments up to some thousands.
#[inline(always)]
fn sin_cos<V: Simd>(x: V) -> (V, V) {
    let n = x.mul(V::constant(std::f64::consts::FRAC_2_PI)).round();
    let r = if single::<V>() {
        let r = n.mul_add(V::constant(-1.570_312_5), x);
        let r = n.mul_add(V::constant(-4.837_512_969_970_703e-4), r);
        n.mul_add(V::constant(-7.549_789_948_768_648e-8), r)
    } else {
        let r = n.mul_add(V::constant(-f64::from_bits(0x3FF9_21FB_5440_0000)), x);
        let r = n.mul_add(V::constant(-f64::from_bits(0x3DD0_B461_1A60_0000)), r);
        n.mul_add(V::constant(-f64::from_bits(0x3BA3_198A_2E03_7073)), r)
    };
    let r2 = r.mul(r);
    let (f, terms) = (&INVERSE_FACTORIALS, if single::<V>() { 4 } else { 8 });
    let odd = [-f[2], f[4], -f[6], f[8], -f[10], f[12], -f[14], f[16]];
    let even = [-f[1], f[3], -f[5], f[7], -f[9], f[11], -f[13], f[15]];
    let sin = r2.mul(r).mul_add(polynomial::<V>(r2, &odd[..terms]), r);
    let cos = r2.mul_add(polynomial::<V>(r2, &even[..terms]), V::constant(1.0));
    // quadrant n mod 4 in {−2, −1, 0, 1, 2}
    let quadrant = n.mul(V::constant(0.25)).round().mul_add(V::constant(-4.0), n);
    let zero = V::constant(0.0);
    let odd_quadrant = quadrant.abs().sub(V::constant(1.0)).abs(); // 0 where odd, 1 where even
    let half = V::constant(0.5);
    let s = V::select_less(odd_quadrant, half, cos, sin);
    let c = V::select_less(odd_quadrant, half, sin, cos);
    // sine: minus in quadrants −1 and ±2; cosine: minus in 1 and ±2
    let two = V::constant(1.5);
    let s = V::select_less(
        two,
        quadrant.abs(),
        zero.sub(s),
        V::select_less(quadrant, zero.sub(half), zero.sub(s), s),
    );
    let c = V::select_less(two, quadrant.abs(), zero.sub(c), V::select_less(half, quadrant, zero.sub(c), c));
    (s, c)
}

/// sin x.
#[inline(always)]
pub fn sin<V: Simd>(x: V) -> V {
    sin_cos(x).0
}

/// cos x.
#[inline(always)]
pub fn cos<V: Simd>(x: V) -> V {
    sin_cos(x).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;
    use sterna::lanes::{Level, leveled};

    leveled! {
        /// y = f(x) for a few numbers, f by position.
        pub fn apply<T: Real>(f: usize, n: usize, x: *const T, y: *mut T) = apply_with;
    }

    /// # Safety
    /// As for [`apply`].
    #[inline(always)]
    unsafe fn apply_with<V: Simd>(f: usize, n: usize, x: *const V::Scalar, y: *mut V::Scalar) {
        let mut i = 0;
        while i < n {
            let count = V::LANES.min(n - i);
            // SAFETY: so many numbers are there, and the level is available.
            unsafe {
                let x = crate::cpu::simd::read::<V>(x.add(i), count);
                let y_at = match f {
                    0 => exp(x),
                    1 => log(x),
                    2 => tanh(x),
                    3 => sigmoid(x),
                    4 => softplus(x),
                    5 => sin(x),
                    _ => cos(x),
                };
                crate::cpu::simd::write(y_at, y.add(i), count);
            }
            i += V::LANES;
        }
    }

    /// Name, function, and the range it is checked on.
    type Checked = (&'static str, fn(f64) -> f64, f64, f64);

    fn functions() -> Vec<Checked> {
        vec![
            ("exp", f64::exp, -80.0, 80.0),
            ("log", f64::ln, 1e-20, 100.0),
            ("tanh", f64::tanh, -20.0, 20.0),
            ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), -60.0, 60.0),
            ("softplus", |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }, -60.0, 60.0),
            ("sin", f64::sin, -500.0, 500.0),
            ("cos", f64::cos, -500.0, 500.0),
        ]
    }

    fn check<T: Real>(level: Level, tolerance: f64) {
        for (k, (name, f, low, high)) in functions().into_iter().enumerate() {
            let near_zero = [0.0, 1e-9, -1e-9, 1e-4, -1e-4, 0.01, -0.3, 0.5, 1.0];
            let spread = (0..4001).map(|i| low + (high - low) * i as f64 / 4000.0);
            let x: Vec<T> = near_zero.into_iter().chain(spread).map(T::from_f64).collect();
            let mut y = vec![T::ZERO; x.len()];
            // SAFETY: so many numbers are there, and the level is available.
            unsafe { apply(level, k, x.len(), x.as_ptr(), y.as_mut_ptr()) };
            for (x, y) in x.iter().zip(&y) {
                let (x, y) = (x.to_f64(), y.to_f64());
                if name == "log" && x <= 0.0 {
                    assert!(if x == 0.0 { y == f64::NEG_INFINITY } else { y.is_nan() }, "log {x} = {y}");
                    continue;
                }
                let known = f(x);
                // Sines near their zeros: absolute error of the reduction.
                let scale = if k >= 5 { known.abs().max(0.05) } else { known.abs() };
                assert!((y - known).abs() <= tolerance * scale, "{name}({x}) = {y}, not {known}");
            }
        }
    }

    #[test]
    fn functions_agree_with_the_standard_library() {
        for level in Level::available() {
            check::<f32>(level, 3e-7);
            check::<f64>(level, 1e-15);
        }
    }

    #[test]
    fn extremes() {
        for level in Level::available() {
            let at = |k: usize, x: f64| {
                let mut y = 0.0;
                // SAFETY: so many numbers are there, and the level is available.
                unsafe { apply(level, k, 1, &x, &mut y) };
                y
            };
            assert_eq!((at(0, 1e4), at(0, -1e4), at(0, f64::INFINITY)), (f64::INFINITY, 0.0, f64::INFINITY));
            assert_eq!((at(0, f64::NEG_INFINITY), at(1, f64::INFINITY)), (0.0, f64::INFINITY));
            assert_eq!((at(2, 1e4), at(2, -1e4), at(3, -1e4), at(3, 1e4)), (1.0, -1.0, 0.0, 1.0));
            assert_eq!((at(4, 1e4), at(4, -1e4)), (1e4, 0.0));
            assert!((0..7).all(|k| at(k, f64::NAN).is_nan()));
            assert!((at(1, 1e-310) - 1e-310f64.ln()).abs() < 1e-12, "subnormal");
            assert!((at(0, -740.0) / (-740f64).exp() - 1.0).abs() < 1e-2, "subnormal");
        }
    }
}
