//! DW-4: four particles in the plane with double-well pair interactions (App. E.1).
//!
//! The density is translation invariant, hence improper on ℝ⁸ (errata E11). We work on the
//! mean-free subspace, six coordinates in an orthonormal (Helmert) basis: particle i of a point y
//! is at Σₖ `BASIS[k][i]` · (y₂ₖ, y₂ₖ₊₁).

use crate::lanes::{Kernel, Lanes, WIDTH, dispatch};
use crate::{Batch, Evaluation, Result, Target};

/// Orthonormal rows that sum to zero.
pub const BASIS: [[f64; 4]; 3] = [
    [std::f64::consts::FRAC_1_SQRT_2, -std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0],
    [SIXTH, SIXTH, -2.0 * SIXTH, 0.0],
    [TWELFTH, TWELFTH, TWELFTH, -3.0 * TWELFTH],
];
const SIXTH: f64 = 0.408_248_290_463_863; // 1/√6
const TWELFTH: f64 = 0.288_675_134_594_812_9; // 1/√12

/// The six pairs of particles.
pub const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

/// log π̃ = −Σ_{i<j} b u² + c u⁴, u = dᵢⱼ − d₀, with b = −4, c = 0.9, d₀ = 4 (a = 0, τ = 1).
///
/// ```
/// use sterna::{Target, targets::Dw4};
/// assert_eq!(Dw4.dim(), 6); // four particles in the plane, without their centre
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Dw4;

impl Dw4 {
    /// Coefficient b of u².
    pub const QUADRATIC: f64 = -4.0;
    /// Coefficient c of u⁴.
    pub const QUARTIC: f64 = 0.9;
    /// d₀.
    pub const DISTANCE: f64 = 4.0;

    /// Planar positions of the four particles of a mean-free point, centre of mass at zero.
    pub fn particles(y: &[f64]) -> [[f64; 2]; 4] {
        std::array::from_fn(|i| {
            std::array::from_fn(|axis| (0..3).map(|k| BASIS[k][i] * y[2 * k + axis]).sum())
        })
    }

    /// The six distances between particles.
    pub fn distances(y: &[f64]) -> [f64; 6] {
        let p = Self::particles(y);
        PAIRS.map(|[i, j]| ((p[i][0] - p[j][0]).powi(2) + (p[i][1] - p[j][1]).powi(2)).sqrt())
    }
}

impl Target for Dw4 {
    fn dim(&self) -> usize {
        6
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Particles { x, out });
        Ok(())
    }

    /// By quadrature in relative coordinates, to 10⁻⁹.
    fn log_z(&self) -> Option<f64> {
        Some(29.667_232_232_904_28)
    }
}

struct Particles<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Particles<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        const DIM: usize = 6;
        let zero = L::splat(0.0);
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * DIM..(first + rows) * DIM];
            let y: [L; DIM] = std::array::from_fn(|j| L::load_column(x, DIM, j));
            let mut log_density = zero;
            let mut score = [zero; DIM];
            for [i, j] in PAIRS {
                // xᵢ − xⱼ in the basis; half of the coefficients vanish and are dropped by the compiler.
                let c: [f64; 3] = std::array::from_fn(|k| BASIS[k][i] - BASIS[k][j]);
                let (mut dx, mut dy) = (zero, zero);
                for k in 0..3 {
                    if c[k] != 0.0 {
                        dx = L::splat(c[k]).mul_add(y[2 * k], dx);
                        dy = L::splat(c[k]).mul_add(y[2 * k + 1], dy);
                    }
                }
                let distance = dy.mul_add(dy, dx * dx).sqrt();
                let u = distance - L::splat(Dw4::DISTANCE);
                let u2 = u * u;
                let quartic = L::splat(-Dw4::QUARTIC).mul_add(u2, L::splat(-Dw4::QUADRATIC));
                log_density = quartic.mul_add(u2, log_density);
                let slope = L::splat(-4.0 * Dw4::QUARTIC).mul_add(u2, L::splat(-2.0 * Dw4::QUADRATIC)) * u;
                // Two particles in one place have no direction to part in: no force rather than NaN.
                let along = slope / distance;
                let along = L::select(zero.lt(distance), along, zero);
                for k in 0..3 {
                    if c[k] != 0.0 {
                        let pull = L::splat(c[k]) * along;
                        score[2 * k] = pull.mul_add(dx, score[2 * k]);
                        score[2 * k + 1] = pull.mul_add(dy, score[2 * k + 1]);
                    }
                }
            }
            log_density.store_some(&mut self.out.log_density[first..first + rows]);
            let out = &mut self.out.score.as_mut_slice()[first * DIM..(first + rows) * DIM];
            for (j, score) in score.into_iter().enumerate() {
                score.store_column(out, DIM, j);
            }
        }
    }
}
