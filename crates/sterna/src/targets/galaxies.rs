//! Velocities of 82 galaxies as a mixture of three normals: a posterior with six modes that weigh the same, one for each order
//! of the components.

use crate::lanes::one::{self, LN_TAU};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, exp, ln};
use crate::{Batch, Evaluation, Result, Target};

/// Velocities in 1000 km/s: M. Postman, J. P. Huchra and M. J. Geller, Astronomical Journal 92, 1238 (1986), as K. Roeder,
/// J. Am. Stat. Assoc. 85, 617 (1990) has them (26.690 where the source has 26.960).
pub const VELOCITIES: [f64; 82] = [
    9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552, 18.600, 18.927,
    19.052, 19.070, 19.330, 19.343, 19.349, 19.440, 19.473, 19.529, 19.541, 19.547, 19.663, 19.846, 19.856,
    19.863, 19.914, 19.918, 19.973, 19.989, 20.166, 20.175, 20.179, 20.196, 20.215, 20.221, 20.415, 20.629,
    20.795, 20.821, 20.846, 20.875, 20.986, 21.137, 21.492, 21.701, 21.814, 21.921, 21.960, 22.185, 22.209,
    22.242, 22.249, 22.314, 22.374, 22.495, 22.746, 22.747, 22.888, 22.914, 23.206, 23.241, 23.263, 23.484,
    23.538, 23.542, 23.666, 23.706, 23.711, 24.129, 24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.690,
    26.995, 32.065, 32.789, 34.279,
];

/// Normals of the mixture.
pub const COMPONENTS: usize = 3;
const DIM: usize = 3 * COMPONENTS;
/// Mean and width of the prior of a mean.
const PRIOR: (f64, f64) = (20.0, 10.0);

/// The posterior of three means μ ~ N(20, 10²), three widths with log σ ~ N(0, 1), and three numbers ~ N(0, 1) whose softmax
/// are the weights; points hold them in this order. Prior and likelihood are normalised: log Z is the evidence.
///
/// ```
/// use sterna::{Target, targets::Galaxies};
/// let values = Galaxies::values(&[9.7, 21.3, 33.0, -0.7, 0.7, 0.0, 0.0, 0.0, 0.0]);
/// assert_eq!((values[1], values[5], Galaxies.dim()), (21.3, 1.0, 9));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Galaxies;

impl Galaxies {
    /// What values are called, three of each.
    pub const NAMES: [&str; 3] = ["mu", "sigma", "weight"];

    /// Means, widths and weights at a point.
    pub fn values(point: &[f64]) -> [f64; DIM] {
        let top = point[6..].iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = point[6..].iter().map(|logit| one::exp(logit - top)).sum();
        std::array::from_fn(|j| match j {
            0..3 => point[j],
            3..6 => one::exp(point[j]),
            _ => one::exp(point[j] - top) / sum,
        })
    }
}

impl Target for Galaxies {
    fn dim(&self) -> usize {
        DIM
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Posterior { x, out });
        Ok(())
    }
}

struct Posterior<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Posterior<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * DIM..(first + rows) * DIM];
            let x: [L; DIM] = std::array::from_fn(|j| L::load_column(x, DIM, j));
            let (log_likelihood, slopes) = likelihood(&x);
            let (log_prior, pulls) = prior(&x);
            (log_likelihood + log_prior).store_some(&mut self.out.log_density[first..first + rows]);
            let score = &mut self.out.score.as_mut_slice()[first * DIM..(first + rows) * DIM];
            for j in 0..DIM {
                (slopes[j] + pulls[j]).store_column(score, DIM, j);
            }
        }
    }
}

/// Log density of the prior, and its derivatives.
#[inline(always)]
fn prior<L: Lanes>(x: &[L; DIM]) -> (L, [L; DIM]) {
    let (mean, width) = PRIOR;
    let constant = -0.5 * DIM as f64 * LN_TAU - COMPONENTS as f64 * one::ln(width);
    let mut log_density = L::splat(constant);
    let pulls = std::array::from_fn(|j| {
        let (away, precision) =
            if j < COMPONENTS { (x[j] - L::splat(mean), 1.0 / (width * width)) } else { (x[j], 1.0) };
        let pull = away * L::splat(-precision);
        log_density = log_density + L::splat(0.5) * away * pull;
        pull
    });
    (log_density, pulls)
}

/// Largest of three.
#[inline(always)]
fn top<L: Lanes>(of: &[L; COMPONENTS]) -> L {
    of[0].max(of[1]).max(of[2])
}

/// Numbers as shares of their sum, given as logarithms, and the logarithm of that sum.
#[inline(always)]
fn softmax<L: Lanes>(logs: [L; COMPONENTS]) -> ([L; COMPONENTS], L) {
    let top = top(&logs);
    let parts = logs.map(|log| exp(log - top));
    let sum = parts[0] + parts[1] + parts[2];
    (parts.map(|part| part / sum), top + ln(sum))
}

/// Log likelihood, and its derivatives.
#[inline(always)]
fn likelihood<L: Lanes>(x: &[L; DIM]) -> (L, [L; DIM]) {
    let [mean, log_width, logit]: [[L; COMPONENTS]; 3] =
        std::array::from_fn(|group| std::array::from_fn(|k| x[COMPONENTS * group + k]));
    let per_width = log_width.map(|log_width| exp(-log_width));
    let (weight, log_sum) = softmax(logit);
    let zero = L::splat(0.0);
    let mut slopes = [zero; DIM];
    let mut total = L::splat(-0.5 * VELOCITIES.len() as f64 * LN_TAU);
    for velocity in VELOCITIES {
        let away: [L; COMPONENTS] = std::array::from_fn(|k| (L::splat(velocity) - mean[k]) * per_width[k]);
        let (share, log_density) = softmax(std::array::from_fn(|k| {
            logit[k] - log_sum - log_width[k] - L::splat(0.5) * away[k] * away[k]
        }));
        total = total + log_density;
        for k in 0..COMPONENTS {
            slopes[k] = (share[k] * away[k]).mul_add(per_width[k], slopes[k]);
            slopes[3 + k] = share[k].mul_add(away[k] * away[k] - L::splat(1.0), slopes[3 + k]);
            slopes[6 + k] = slopes[6 + k] + (share[k] - weight[k]);
        }
    }
    (total, slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_the_components_weigh_the_same() {
        let x = [9.7, 21.3, 33.0, -0.7, 0.7, 0.1, -0.5, 1.3, -0.8];
        let order = |k: [usize; 3]| (0..9).map(move |j| x[3 * (j / 3) + k[j % 3]]);
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let points = Batch::from_vec(DIM, orders.into_iter().flat_map(order).collect());
        let mut out = Evaluation::zeros(6, DIM);
        Galaxies.evaluate(&points, &mut out).unwrap();
        for (i, k) in orders.into_iter().enumerate() {
            assert!((out.log_density[i] - out.log_density[0]).abs() < 1e-11);
            for j in 0..DIM {
                let same = out.score.row(0)[3 * (j / 3) + k[j % 3]];
                assert!((out.score.row(i)[j] - same).abs() < 1e-10);
            }
        }
    }
}
