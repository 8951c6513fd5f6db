//! Geometry on eight conformations at once: the functions that `sterna::lanes` lacks, from fused
//! multiply-adds alone, so that every processor gives the same bits.
//!
//! The polynomials interpolate at Chebyshev points; their remainders are 2·10⁻¹⁹ (arc tangent) and
//! 10⁻²⁰ (sine and cosine) of the leading term.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI};
use sterna::lanes::{Bits, Lanes, WIDTH};

/// Eight numbers in memory, one per conformation, aligned with the processor's vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lane(pub [f64; WIDTH]);

/// Three coordinates of eight points.
#[derive(Clone, Copy)]
pub(crate) struct Vector<L>(pub L, pub L, pub L);

impl<L: Lanes> Vector<L> {
    #[inline(always)]
    pub(crate) fn sub(self, b: Self) -> Self {
        Self(self.0 - b.0, self.1 - b.1, self.2 - b.2)
    }
    #[inline(always)]
    pub(crate) fn add(self, b: Self) -> Self {
        Self(self.0 + b.0, self.1 + b.1, self.2 + b.2)
    }
    #[inline(always)]
    pub(crate) fn scale(self, s: L) -> Self {
        Self(self.0 * s, self.1 * s, self.2 * s)
    }
    /// self · s + b.
    #[inline(always)]
    pub(crate) fn mul_add(self, s: L, b: Self) -> Self {
        Self(self.0.mul_add(s, b.0), self.1.mul_add(s, b.1), self.2.mul_add(s, b.2))
    }
    #[inline(always)]
    pub(crate) fn dot(self, b: Self) -> L {
        self.2.mul_add(b.2, self.1.mul_add(b.1, self.0 * b.0))
    }
    #[inline(always)]
    pub(crate) fn cross(self, b: Self) -> Self {
        let (nx, ny, nz) = (-b.0, -b.1, -b.2);
        Self(
            self.2.mul_add(ny, self.1 * b.2),
            self.0.mul_add(nz, self.2 * b.0),
            self.1.mul_add(nx, self.0 * b.1),
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
/// The exponent is halved and negated as an integer, which is right to 3.5%. Then two steps of fourth
/// order: with h = 1 − x y², y ← y (1 − h)^(−½) expanded to h³.
#[inline(always)]
pub(crate) fn rsqrt<L: Lanes>(x: L) -> L {
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
    let shallow = a.lt(L::splat(TAN_PI_8) * x);
    let steep = x.lt(L::splat(TAN_PI_8) * a);
    let numerator = L::select(shallow, a, L::select(steep, -x, a - x));
    let denominator = L::select(shallow, x, L::select(steep, a, a + x));
    let turned = L::select(steep, L::splat(FRAC_PI_2), L::splat(FRAC_PI_4));
    let offset = L::select(shallow, L::splat(0.0), turned);
    let z = numerator / denominator;
    let u = z * z;
    let angle = offset + (z * u).mul_add(polynomial(&ATAN, u), z);
    L::select(y.lt(L::splat(0.0)), -angle, angle)
}

/// The angle of the point (x, y), in [−π, π].
#[inline(always)]
pub(crate) fn atan2<L: Lanes>(y: L, x: L) -> L {
    let zero = L::splat(0.0);
    let right = atan2_right(y, x.abs());
    let half_turn = L::select(y.lt(zero), L::splat(-PI), L::splat(PI));
    L::select(x.lt(zero), half_turn - right, right)
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

/// (sin x, cos x) for angles of a few thousand turns at most.
#[inline(always)]
pub(crate) fn sin_cos<L: Lanes>(x: L) -> (L, L) {
    // What the double closest to π/2 lacks.
    const LOW: f64 = 6.123_233_995_736_766e-17;
    let quarter = (x * L::splat(FRAC_2_PI)).round();
    let r = quarter.mul_add(L::splat(-FRAC_PI_2), x);
    let r = quarter.mul_add(L::splat(-LOW), r);
    let u = r * r;
    let sine = (r * u).mul_add(polynomial(&SIN, u), r);
    let cosine = u.mul_add(u.mul_add(polynomial(&COS, u), L::splat(-0.5)), L::splat(1.0));
    // The quadrant q = −2 … 2: odd ones exchange sine and cosine; −2, −1 and 2 negate the sine,
    // −2, 1 and 2 the cosine.
    let q = (quarter * L::splat(0.25)).round().mul_add(L::splat(-4.0), quarter);
    let (half, one) = (L::splat(0.5), L::splat(1.0));
    let odd = (q.abs() - one).abs().lt(half);
    let far = L::splat(1.5).lt(q.abs());
    let (s, c) = (L::select(odd, cosine, sine), L::select(odd, sine, cosine));
    let minus_s = L::select(q.lt(-half), -s, s);
    let minus_c = L::select(half.lt(q), -c, c);
    (L::select(far, -s, minus_s), L::select(far, -c, minus_c))
}

/// An angle brought to [−π, π].
#[inline(always)]
pub(crate) fn wrap_lanes<L: Lanes>(angle: L) -> L {
    (angle * L::splat(0.5 / PI)).round().mul_add(L::splat(-2.0 * PI), angle)
}

/// Up to eight rows into lanes; missing rows repeat the first.
pub(crate) fn gather(rows: &[f64], dim: usize, lanes: &mut [Lane]) {
    let count = rows.len() / dim;
    let rows: [&[f64]; WIDTH] = std::array::from_fn(|lane| {
        let row = if lane < count { lane } else { 0 };
        &rows[row * dim..(row + 1) * dim]
    });
    for (c, lane) in lanes[..dim].iter_mut().enumerate() {
        for (value, row) in lane.0.iter_mut().zip(&rows) {
            *value = row[c];
        }
    }
}

/// Lanes back into as many rows as there are.
pub(crate) fn scatter(lanes: &[Lane], dim: usize, rows: &mut [f64]) {
    for (lane, row) in rows.chunks_exact_mut(dim).enumerate() {
        for (value, values) in row.iter_mut().zip(lanes) {
            *value = values.0[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::lanes::{Kernel, on_every_instruction_set};

    /// rsqrt of positive numbers; sine, cosine and, back from these, the angle.
    #[derive(Clone)]
    struct All {
        positive: [f64; WIDTH],
        angle: [f64; WIDTH],
    }

    impl Kernel for All {
        type Output = [[f64; WIDTH]; 4];
        #[inline(always)]
        fn run<L: Lanes>(self) -> Self::Output {
            let (s, c) = sin_cos(L::load(&self.angle));
            [rsqrt(L::load(&self.positive)), s, c, atan2(s, c)].map(L::to_array)
        }
    }

    #[test]
    fn agrees_with_the_standard_library_and_across_instruction_sets() {
        for k in 0..4000 {
            let positive = std::array::from_fn(|i| 1e-9 * 1.003f64.powi((k * WIDTH + i) as i32 % 14000));
            let angle = std::array::from_fn(|i| (k * WIDTH + i) as f64 * 4e-4 - 6.4);
            let runs = on_every_instruction_set(&All { positive, angle });
            for (name, [rsqrt, sin, cos, back]) in &runs {
                for i in 0..WIDTH {
                    let (p, a) = (positive[i], angle[i]);
                    assert!((rsqrt[i] * p.sqrt() - 1.0).abs() < 4e-16, "rsqrt {p}");
                    assert!((sin[i] - a.sin()).abs() < 2.3e-16, "sin {a}");
                    assert!((cos[i] - a.cos()).abs() < 2.3e-16, "cos {a}");
                    let turned = a - 2.0 * PI * (a / (2.0 * PI)).round();
                    assert!((back[i] - turned).abs() < 1e-15, "atan2 {a}");
                }
                assert_eq!(
                    [rsqrt, sin, cos, back].map(|x| x.map(f64::to_bits)),
                    {
                        let [a, b, c, d] = &runs[0].1;
                        [a, b, c, d].map(|x| x.map(f64::to_bits))
                    },
                    "{name}"
                );
            }
        }
    }
}
