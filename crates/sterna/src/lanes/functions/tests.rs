//! Accuracy against the standard library, in both precisions and on every instruction set, and what happens at edges.

use super::super::{Level, Portable, leveled};
use super::*;
use std::f64::consts::TAU;

/// By position, so that a kernel can be told which.
#[inline(always)]
fn apply<V: Vector>(f: usize, x: V) -> V {
    match f {
        0 => exp(x),
        1 => ln(x),
        2 => tanh(x),
        3 => sigmoid(x),
        4 => softplus(x),
        5 => sin_cos(x).0,
        _ => sin_cos(x).1,
    }
}

leveled! {
    /// y = f(x) for n numbers, whole vectors of them.
    fn apply_all<T: Element>(f: usize, n: usize, x: *const T, y: *mut T) = apply_all_with;
}

/// # Safety
/// As for [`apply_all`].
#[inline(always)]
unsafe fn apply_all_with<V: Vector>(f: usize, n: usize, x: *const V::Scalar, y: *mut V::Scalar) {
    for i in (0..n).step_by(V::LANES) {
        // SAFETY: whole vectors are there.
        unsafe { apply(f, V::read(x.add(i))).write(y.add(i)) };
    }
}

/// Name, function, range, and the most ulp that it may be off by, in f64 and in f32; of 1 where results may be near 0.
type Claim = (&'static str, fn(f64) -> f64, [f64; 2], [f64; 2], bool);

const CLAIMS: [Claim; 7] = [
    ("exp", f64::exp, [-85.0, 85.0], [2.0, 1.0], false),
    ("ln", f64::ln, [1e-20, 100.0], [1.0, 1.0], false),
    ("tanh", f64::tanh, [-20.0, 20.0], [3.0, 2.5], false),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), [-60.0, 60.0], [4.0, 2.5], false),
    (
        "softplus",
        |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() },
        [-60.0, 60.0],
        [3.0, 2.5],
        false,
    ),
    ("sin", f64::sin, [-500.0, 500.0], [1.0, 1.0], true),
    ("cos", f64::cos, [-500.0, 500.0], [1.0, 1.0], true),
];

/// The largest error in ulp, `epsilon` being the spacing of numbers after 1.
fn worst<T: Element>(level: Level, f: usize, to_f64: fn(T) -> f64, epsilon: f64) -> f64 {
    let (name, known, [low, high], _, near_one) = CLAIMS[f];
    let near_zero = [0.0, 1e-9, -1e-9, 1e-4, -1e-4, 0.01, -0.3, 0.5].into_iter();
    let spread = (0..79_992).map(|i| low + (high - low) * (f64::from(i) + 0.37) / 79_992.0);
    let x: Vec<T> = near_zero.chain(spread).map(T::nearest).collect();
    let mut y = vec![T::nearest(0.0); x.len()];
    assert_eq!(x.len() % 16, 0);
    // SAFETY: whole vectors, and the level is available.
    unsafe { apply_all(level, f, x.len(), x.as_ptr(), y.as_mut_ptr()) };
    let mut worst = 0.0f64;
    for (x, y) in x.into_iter().map(to_f64).zip(y.into_iter().map(to_f64)) {
        if name == "ln" && x <= 0.0 {
            assert!(if x == 0.0 { y == f64::NEG_INFINITY } else { y.is_nan() }, "ln {x} = {y}");
            continue;
        }
        let known = known(x);
        // The spacing of numbers around the result.
        let scale = if near_one { 1.0 } else { known.abs().max(f64::MIN_POSITIVE) };
        let ulp = epsilon * 2f64.powf(scale.log2().floor());
        worst = worst.max((y - known).abs() / ulp);
    }
    worst
}

#[test]
fn functions_are_as_accurate_as_they_claim() {
    for level in Level::available() {
        for (f, (name, _, range, [double, single], _)) in CLAIMS.into_iter().enumerate() {
            let of_double = worst::<f64>(level, f, |x| x, f64::EPSILON);
            let of_single = worst::<f32>(level, f, f64::from, f64::from(f32::EPSILON));
            println!("{name} on {range:?}, {}: {of_double:.2} and {of_single:.2} ulp", level.name());
            assert!(of_double <= double, "{name}, {}: {of_double} ulp in f64", level.name());
            assert!(of_single <= single, "{name}, {}: {of_single} ulp in f32", level.name());
        }
    }
}

fn one(f: impl Fn(Portable) -> Portable, x: f64) -> f64 {
    f(Portable::splat(x)).to_array()[3]
}

#[test]
fn over_all_of_the_range() {
    let ulps = |a: f64, b: f64| if a == b { 0.0 } else { (a - b).abs() / (b.abs() * f64::EPSILON) };
    for i in 0..200_000 {
        let x = -700.0 + 0.007 * f64::from(i);
        assert!(ulps(one(exp, x), x.exp()) < 2.0, "exp({x})");
        let y = (0.003 * f64::from(i) - 300.0).exp();
        assert!(ulps(one(ln, y), y.ln()) < 2.0 || (one(ln, y) - y.ln()).abs() < 2e-16, "ln({y})");
    }
}

#[test]
fn edges() {
    for level in Level::available() {
        let at = |f: usize, x: f64| {
            let mut y = [0.0; 8];
            // SAFETY: one vector, and the level is available.
            unsafe { apply_all(level, f, 8, [x; 8].as_ptr(), y.as_mut_ptr()) };
            y[5]
        };
        let infinity = f64::INFINITY;
        for (f, x, y) in [
            (0, -1e300, 0.0),
            (0, -infinity, 0.0),
            (0, infinity, infinity),
            (0, 1e4, infinity),
            (0, 0.0, 1.0),
            (1, 1.0, 0.0),
            (1, 0.0, -infinity),
            (1, infinity, infinity),
            (2, 1e4, 1.0),
            (2, -1e4, -1.0),
            (3, -1e4, 0.0),
            (3, 1e4, 1.0),
            (4, 1e4, 1e4),
            (4, -1e4, 0.0),
        ] {
            assert_eq!(at(f, x), y, "{} of {x}, {}", CLAIMS[f].0, level.name());
        }
        assert!((0..CLAIMS.len()).all(|f| at(f, f64::NAN).is_nan()));
        assert!(at(1, -1.0).is_nan());
        assert!((at(1, 1e-310) - 1e-310f64.ln()).abs() < 1e-12, "subnormal");
        assert!((at(0, -740.0) / (-740f64).exp() - 1.0).abs() < 1e-2, "subnormal");
    }
    assert_eq!(one(tanh_half, f64::INFINITY), 1.0);
}

#[test]
fn turns() {
    for i in 0..=80_000 {
        let u = f64::from(i) / 80_000.0;
        let (c, s) = cos_sin_turns(Portable::splat(u));
        let (c, s) = (c.to_array()[0], s.to_array()[0]);
        assert!((c - (TAU * u).cos()).abs() < 1e-15 && (s - (TAU * u).sin()).abs() < 1e-15, "{u}: {c} {s}");
    }
}

#[test]
fn roots_and_angles() {
    for i in 0..32_000 {
        let (p, a) = (1e-9 * 1.003f64.powi(i % 14_000), f64::from(i) * 4e-4 - 6.4);
        assert!((one(rsqrt, p) * p.sqrt() - 1.0).abs() < 4e-16, "rsqrt {p}");
        let (s, c) = sin_cos(Portable::splat(a));
        let (s, c, back) = (s.to_array()[0], c.to_array()[0], atan2(s, c).to_array()[0]);
        assert!((s - a.sin()).abs() < 2.3e-16 && (c - a.cos()).abs() < 2.3e-16, "sin and cos {a}");
        assert!((back - (a - TAU * (a / TAU).round())).abs() < 1e-15, "atan2 {a}");
    }
}
