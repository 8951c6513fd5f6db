//! Functions on eight numbers at once, from fused multiply-adds alone: the same bits on every processor.
//!
//! The polynomials interpolate at Chebyshev points; each is exact to below one unit in the last place
//! of its own contribution (remainders: arc tangent 2·10⁻¹⁹, sine and cosine 10⁻²⁰, logarithm 10⁻¹⁹).

use crate::lanes::Lanes;

/// Three coordinates of eight points.
#[derive(Clone, Copy)]
pub(crate) struct Vector<L>(pub L, pub L, pub L);

impl<L: Lanes> Vector<L> {
    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        Self(self.0.sub(b.0), self.1.sub(b.1), self.2.sub(b.2))
    }
    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        Self(self.0.add(b.0), self.1.add(b.1), self.2.add(b.2))
    }
    #[inline(always)]
    pub(crate) fn scale(self, s: L) -> Self {
        Self(self.0.mul(s), self.1.mul(s), self.2.mul(s))
    }
    /// self · s + b.
    #[inline(always)]
    pub(crate) fn mul_add(self, s: L, b: Self) -> Self {
        Self(self.0.mul_add(s, b.0), self.1.mul_add(s, b.1), self.2.mul_add(s, b.2))
    }
    /// b − self · s.
    #[inline(always)]
    pub(crate) fn neg_mul_add(self, s: L, b: Self) -> Self {
        Self(self.0.neg_mul_add(s, b.0), self.1.neg_mul_add(s, b.1), self.2.neg_mul_add(s, b.2))
    }
    #[inline(always)]
    pub(crate) fn dot(self, b: Self) -> L {
        self.2.mul_add(b.2, self.1.mul_add(b.1, self.0.mul(b.0)))
    }
    #[inline(always)]
    pub(crate) fn cross(self, b: Self) -> Self {
        Self(
            self.2.neg_mul_add(b.1, self.1.mul(b.2)),
            self.0.neg_mul_add(b.2, self.2.mul(b.0)),
            self.1.neg_mul_add(b.0, self.0.mul(b.1)),
        )
    }
}

#[inline(always)]
fn polynomial<L: Lanes, const N: usize>(coefficients: &[f64; N], u: L) -> L {
    let mut sum = L::splat(coefficients[N - 1]);
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = sum.mul_add(u, L::splat(coefficients[k]));
    }
    sum
}

/// x^(−½) of positive normal numbers, to about one unit in the last place; at 0 a huge number.
///
/// Two steps of fourth order: with h = 1 − x y², y ← y (1 − h)^(−½) expanded to h³.
#[inline(always)]
pub(crate) fn rsqrt<L: Lanes>(x: L) -> L {
    let mut y = x.rsqrt_estimate();
    let mut step = 0;
    while step < 2 {
        let h = x.mul(y).neg_mul_add(y, L::splat(1.0));
        let p = h.mul_add(h.mul_add(L::splat(0.3125), L::splat(0.375)), L::splat(0.5));
        y = y.mul(h).mul_add(p, y);
        step += 1;
    }
    y
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
pub(crate) fn atan2_right<L: Lanes>(y: L, x: L) -> L {
    const TAN_PI_8: f64 = 0.414_213_562_373_095_03;
    let a = y.abs();
    // Turned by 0, π/4 or π/2 so that the ratio lies in ±tan(π/8).
    let low = L::splat(TAN_PI_8).mul(x);
    let high = L::splat(TAN_PI_8).mul(a);
    let zero = L::splat(0.0);
    let numerator = a.select_less(low, a, x.select_less(high, zero.sub(x), a.sub(x)));
    let denominator = a.select_less(low, x, x.select_less(high, a, a.add(x)));
    let offset = a.select_less(
        low,
        zero,
        x.select_less(high, L::splat(std::f64::consts::FRAC_PI_2), L::splat(std::f64::consts::FRAC_PI_4)),
    );
    let z = numerator.div(denominator);
    let u = z.mul(z);
    let angle = offset.add(z.mul(u).mul_add(polynomial(&ATAN, u), z));
    y.select_less(zero, zero.sub(angle), angle)
}

/// The angle of the point (x, y), in [−π, π].
#[inline(always)]
pub(crate) fn atan2<L: Lanes>(y: L, x: L) -> L {
    let zero = L::splat(0.0);
    let pi = L::splat(std::f64::consts::PI);
    let right = atan2_right(y, x.abs());
    let left = y.select_less(zero, zero.sub(pi).sub(right), pi.sub(right));
    x.select_less(zero, left, right)
}

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

/// x to the nearest whole number, for |x| < 2⁵¹.
#[inline(always)]
pub(crate) fn round<L: Lanes>(x: L) -> L {
    let shift = L::splat(6_755_399_441_055_744.0);
    x.add(shift).sub(shift)
}

/// (sin x, cos x) for angles of a few thousand turns at most.
#[inline(always)]
pub(crate) fn sin_cos<L: Lanes>(x: L) -> (L, L) {
    // π/2 in two pieces: x is reduced to ±π/4.
    const HIGH: f64 = std::f64::consts::FRAC_PI_2;
    const LOW: f64 = 6.123_233_995_736_766e-17;
    let quarter = round(x.mul(L::splat(std::f64::consts::FRAC_2_PI)));
    let r = quarter.neg_mul_add(L::splat(HIGH), x);
    let r = quarter.neg_mul_add(L::splat(LOW), r);
    let u = r.mul(r);
    let sine = r.mul(u).mul_add(polynomial(&SIN, u), r);
    let cosine = u.mul_add(u.mul_add(polynomial(&COS, u), L::splat(-0.5)), L::splat(1.0));
    // The quadrant as −2 … 2.
    let q = round(quarter.mul(L::splat(0.25))).neg_mul_add(L::splat(4.0), quarter);
    let (one, half, zero) = (L::splat(1.0), L::splat(0.5), L::splat(0.0));
    let odd = q.abs().sub(one).abs(); // 0 for ±1, 1 otherwise
    let s = odd.select_less(half, cosine, sine);
    let c = odd.select_less(half, sine, cosine);
    // sin: q = −2, 2 and −1 negate; cos: q = −2, 2 and 1 negate.
    let two = q.abs().sub(L::splat(1.5));
    let s_negative = L::splat(0.0).select_less(two, one, q.select_less(L::splat(-0.5), one, zero));
    let c_negative = L::splat(0.0).select_less(two, one, half.select_less(q, one, zero));
    (half.select_less(s_negative, zero.sub(s), s), half.select_less(c_negative, zero.sub(c), c))
}

const LOG: [f64; 8] = [
    0.6666666666666666,
    0.4000000000000094,
    0.2857142857076445,
    0.2222222240054776,
    0.181817947008978,
    0.15386290534658992,
    0.13267418596474884,
    0.1310072138350349,
];

/// ln x of positive normal numbers.
#[inline(always)]
pub(crate) fn ln<L: Lanes>(x: L) -> L {
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let (m, e) = x.split_exponent();
    let one = L::splat(1.0);
    let z = m.sub(one).div(m.add(one));
    let u = z.mul(z);
    let log_m = z.mul(u).mul_add(polynomial(&LOG, u), z.add(z));
    e.mul_add(L::splat(LN_2_HIGH), e.mul_add(L::splat(LN_2_LOW), log_m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Kernel, Lane, Level, WIDTH, dispatch};

    /// rsqrt, atan2 of (sin, cos), sin, cos, ln of eight numbers.
    struct All<'a>(&'a [Lane; 2], &'a mut [Lane; 5]);

    impl Kernel for All<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self) {
            let (positive, angle) = (L::load(&self.0[0]), L::load(&self.0[1]));
            rsqrt(positive).store(&mut self.1[0]);
            let (s, c) = sin_cos(angle);
            s.store(&mut self.1[1]);
            c.store(&mut self.1[2]);
            atan2(s, c).store(&mut self.1[3]);
            ln(positive).store(&mut self.1[4]);
        }
    }

    #[test]
    fn agrees_with_the_standard_library_and_across_instruction_sets() {
        for k in 0..4000 {
            let positive =
                Lane(std::array::from_fn(|i| 1e-9 * 1.003f64.powi((k * WIDTH + i) as i32 % 14000)));
            let angle = Lane(std::array::from_fn(|i| (k * WIDTH + i) as f64 * 4e-4 - 6.4));
            let mut best = None;
            for level in Level::available() {
                let mut out = [Lane::default(); 5];
                dispatch(level, All(&[positive, angle], &mut out));
                for i in 0..WIDTH {
                    let (p, a) = (positive.0[i], angle.0[i]);
                    assert!((out[0].0[i] * p.sqrt() - 1.0).abs() < 4e-16, "rsqrt {p}");
                    assert!((out[1].0[i] - a.sin()).abs() < 2.3e-16, "sin {a}");
                    assert!((out[2].0[i] - a.cos()).abs() < 2.3e-16, "cos {a}");
                    let turned = a - std::f64::consts::TAU * (a / std::f64::consts::TAU).round();
                    assert!((out[3].0[i] - turned).abs() < 1e-15, "atan2 {a}");
                    assert!((out[4].0[i] - p.ln()).abs() <= 2.3e-16 * p.ln().abs().max(1.0), "ln {p}");
                }
                let bits = out.map(|lane| lane.0.map(f64::to_bits));
                assert_eq!(*best.get_or_insert(bits), bits, "{level:?}");
            }
        }
    }
}
