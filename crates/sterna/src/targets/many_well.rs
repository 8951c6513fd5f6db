//! ManyWell-d: d/2 independent copies of a double well times a Gaussian (App. E.1); 32 in the paper.

use crate::lanes::one::{LN_TAU, exp, ln};
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk};
use crate::streams::RowStream;
use crate::{Batch, Evaluation, Result, Target};

/// Unnormalised: Π exp(−x₁⁴ + 6x₁² + ½x₁ − ½x₂²) over consecutive pairs of coordinates.
///
/// ```
/// use sterna::{Target, targets::ManyWell};
/// assert!((ManyWell::new(32).log_z().unwrap() - 164.6956753131819).abs() < 1e-10);
/// ```
#[derive(Clone, Debug)]
pub struct ManyWell {
    dim: usize,
    log_envelope: f64,
}

/// Coefficients of x⁴, x² and x in even coordinates and in odd ones.
pub const QUARTIC: [f64; 2] = [-1.0, 0.0];
/// See [`QUARTIC`].
pub const QUADRATIC: [f64; 2] = [6.0, -0.5];
/// See [`QUARTIC`].
pub const LINEAR: [f64; 2] = [0.5, 0.0];

/// Log density of the double well alone.
fn well(x: f64) -> f64 {
    ((QUARTIC[0] * x * x + QUADRATIC[0]) * x + LINEAR[0]) * x
}

/// Log density of the proposal for exact draws: two normals near the bottoms of the wells.
fn proposal(x: f64) -> f64 {
    let z = |m: f64| (x - m) / PROPOSAL_WIDTH;
    ln(0.5 * exp(-0.5 * z(BOTTOM).powi(2)) + 0.5 * exp(-0.5 * z(-BOTTOM).powi(2)))
        - ln(PROPOSAL_WIDTH * std::f64::consts::TAU.sqrt())
}
const BOTTOM: f64 = 1.75;
const PROPOSAL_WIDTH: f64 = 0.4;

impl ManyWell {
    /// # Panics
    /// If `dim` is odd or zero.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2 && dim.is_multiple_of(2), "ManyWell needs an even dimension");
        // The ratio is smooth, and falls outside ±4; the margin covers the grid.
        let grid = (-40_000..=40_000).map(|i| f64::from(i) * 1e-4);
        let highest = grid.map(|x| well(x) - proposal(x)).fold(f64::NEG_INFINITY, f64::max);
        Self { dim, log_envelope: highest + 1e-4 }
    }
}

impl Target for ManyWell {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Wells { x, out });
        Ok(())
    }

    /// By the trapezoidal rule, whose error for this integrand is below rounding at this step.
    fn log_z(&self) -> Option<f64> {
        let step = 1.0 / 64.0;
        let one = (-384..=384).map(|i| exp(well(f64::from(i) * step))).sum::<f64>() * step;
        Some(0.5 * self.dim as f64 * (ln(one) + 0.5 * LN_TAU))
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        for pair in x.chunks_exact_mut(2) {
            pair[0] = loop {
                let side = if stream.uniform() < 0.5 { BOTTOM } else { -BOTTOM };
                let x = side + PROPOSAL_WIDTH * stream.normal();
                if ln(stream.uniform()) < well(x) - proposal(x) - self.log_envelope {
                    break x;
                }
            };
            pair[1] = stream.normal();
        }
        true
    }
}

struct Wells<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Wells<'_> {
    type Output = ();

    /// Lanes along coordinates: wells sit on even lanes, Gaussians on odd ones.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let alternate = |c: [f64; 2]| L::load(&std::array::from_fn(|i| c[i % 2]));
        let (a4, a2, a1) = (alternate(QUARTIC), alternate(QUADRATIC), alternate(LINEAR));
        let (b3, b1) = (a4 * L::splat(4.0), a2 * L::splat(2.0));
        let scores = self.out.score.as_mut_slice().chunks_exact_mut(self.x.dim());
        for ((x, score), log_density) in self.x.iter_rows().zip(scores).zip(&mut self.out.log_density) {
            let mut sum = L::splat(0.0);
            for_each_chunk!(x.len(), |chunk| {
                let x = L::load_some(&x[chunk.clone()]);
                let square = x * x;
                b3.mul_add(square, b1).mul_add(x, a1).store_some(&mut score[chunk]);
                sum = sum + a4.mul_add(square, a2).mul_add(x, a1) * x;
            });
            *log_density = sum.sum();
        }
    }
}
