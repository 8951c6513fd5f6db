//! A prior as a transform of the unit cube, as nested samplers have it: coordinates are normals, their distribution function
//! leads to the cube, and the transform to values.

use crate::lanes::one::exp;
use crate::{Batch, Error, Evaluation, Result, Target};
use std::cell::Cell;

/// A log likelihood of values, which a transform makes of points of the unit cube. Its prior is N(0, I).
///
/// No score is known: that of the transform is not.
///
/// ```
/// use sterna::{Target, priors::Cube, targets::Normal};
///
/// // A location within ±10, measured as 1 ± ½.
/// let likelihood = Normal::new(vec![1.0], vec![4.0]);
/// let target = Cube::new(likelihood, |cube, values| values[0] = 20.0 * cube[0] - 10.0);
/// assert!(!target.has_score() && target.dim() == 1);
/// ```
#[derive(Clone, Debug)]
pub struct Cube<T, F> {
    likelihood: T,
    transform: F,
}

impl<T: Target, F: Fn(&[f64], &mut [f64]) + Send + Sync> Cube<T, F> {
    /// As many values as coordinates; where there are none, the transform writes NaN.
    pub fn new(likelihood: T, transform: F) -> Self {
        Self { likelihood, transform }
    }

    /// Values at a point.
    pub fn values(&self, point: &[f64], values: &mut [f64]) {
        let mut cube = CUBE.take();
        cube.clear();
        cube.extend(point.iter().map(|x| normal_distribution(*x)));
        (self.transform)(&cube, values);
        CUBE.set(cube);
    }
}

thread_local! {
    /// A point of the cube.
    static CUBE: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
    /// Values of a batch.
    static VALUES: Cell<Batch> = Cell::default();
}

impl<T: Target, F: Fn(&[f64], &mut [f64]) + Send + Sync> Target for Cube<T, F> {
    fn dim(&self) -> usize {
        self.likelihood.dim()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.likelihood.takes_blocks(rows)
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        if x.dim() != self.dim() {
            return Err(Error::Dimension { what: "a point", found: x.dim(), expected: self.dim() });
        }
        let mut values = VALUES.take();
        values.set_size(x.rows(), self.dim());
        for i in 0..x.rows() {
            self.values(x.row(i), values.row_mut(i));
        }
        let evaluated = self.likelihood.evaluate(&values, out);
        for (log_likelihood, values) in out.log_density.iter_mut().zip(values.iter_rows()) {
            if values.iter().any(|value| value.is_nan()) {
                *log_likelihood = f64::NAN;
            }
        }
        out.score.as_mut_slice().fill(0.0);
        VALUES.set(values);
        evaluated
    }

    fn has_score(&self) -> bool {
        false
    }
}

/// c₀ + c₁x + … by Horner's rule, coefficients from the highest power down.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

/// Φ(x), the distribution function of N(0, 1), to a few units in the last place, in both tails as well: the error function by W. J. Cody's
/// rational approximations (Math. Comp. 23, 631 (1969)).
pub fn normal_distribution(x: f64) -> f64 {
    let z = -x * std::f64::consts::FRAC_1_SQRT_2;
    if z.abs() <= 0.46875 {
        return 0.5 - 0.5 * erf_near_zero(z);
    }
    // erfc(|z|)/2, the smaller of the two tails.
    let tail = 0.5 * erfc_far(z.abs());
    if z > 0.0 { tail } else { 1.0 - tail }
}

#[expect(clippy::excessive_precision, reason = "coefficients as they were printed")]
fn erf_near_zero(z: f64) -> f64 {
    const ABOVE: [f64; 5] = [
        1.857_777_061_846_031_53e-1,
        3.161_123_743_870_565_6,
        1.138_641_541_510_501_56e2,
        3.774_852_376_853_020_21e2,
        3.209_377_589_138_469_47e3,
    ];
    const BELOW: [f64; 5] = [
        1.0,
        2.360_129_095_234_412_09e1,
        2.440_246_379_344_441_73e2,
        1.282_616_526_077_372_28e3,
        2.844_236_833_439_170_62e3,
    ];
    z * polynomial(z * z, &ABOVE) / polynomial(z * z, &BELOW)
}

/// erfc(z) for z above 0.46875.
#[expect(clippy::excessive_precision, reason = "coefficients as they were printed")]
fn erfc_far(z: f64) -> f64 {
    const MIDDLE: [f64; 9] = [
        2.153_115_354_744_038_46e-8,
        5.641_884_969_886_700_89e-1,
        8.883_149_794_388_375_94,
        6.611_919_063_714_162_95e1,
        2.986_351_381_974_001_31e2,
        8.819_522_212_417_690_9e2,
        1.712_047_612_634_070_58e3,
        2.051_078_377_826_071_47e3,
        1.230_339_354_797_997_25e3,
    ];
    const MIDDLE_BELOW: [f64; 9] = [
        1.0,
        1.574_492_611_070_983_47e1,
        1.176_939_508_913_124_99e2,
        5.371_811_018_620_098_58e2,
        1.621_389_574_566_690_19e3,
        3.290_799_235_733_459_63e3,
        4.362_619_090_143_247_16e3,
        3.439_367_674_143_721_64e3,
        1.230_339_354_803_749_42e3,
    ];
    const FAR: [f64; 6] = [
        1.631_538_713_730_209_78e-2,
        3.053_266_349_612_323_44e-1,
        3.603_448_999_498_044_39e-1,
        1.257_817_261_112_292_46e-1,
        1.608_378_514_874_227_66e-2,
        6.587_491_615_298_378_03e-4,
    ];
    const FAR_BELOW: [f64; 6] = [
        1.0,
        2.568_520_192_289_822_42,
        1.872_952_849_923_467_25,
        5.279_051_029_514_284_12e-1,
        6.051_834_131_244_131_91e-2,
        2.335_204_976_268_691_85e-3,
    ];
    // exp(−z²) in two parts, the first of which has an exact square.
    let near = (16.0 * z).trunc() / 16.0;
    let gauss = exp(-near * near) * exp(-(z - near) * (z + near));
    if z <= 4.0 {
        return gauss * polynomial(z, &MIDDLE) / polynomial(z, &MIDDLE_BELOW);
    }
    let inverse = 1.0 / (z * z);
    let correction = inverse * polynomial(inverse, &FAR) / polynomial(inverse, &FAR_BELOW);
    gauss * (0.5 * std::f64::consts::FRAC_2_SQRT_PI - correction) / z
}
