//! A curved ridge: a normal bent along a parabola.

use crate::lanes::one::{LN_TAU, ln};
use crate::streams::RowStream;
use crate::{Batch, Evaluation, Result, Target};

/// x₀ ~ N(0, w²), x₁ | x₀ ~ N(c (x₀² − w²), 1), the others standard normal; normalised.
///
/// ```
/// use sterna::{Target, targets::Banana};
/// assert_eq!(Banana::new(3).log_z(), Some(0.0));
/// ```
#[derive(Clone, Debug)]
pub struct Banana {
    dim: usize,
    width: f64,
    curvature: f64,
}

impl Banana {
    /// Width w = 3, curvature c = 0.5.
    ///
    /// # Panics
    /// If `dim` < 2.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2);
        Self { dim, width: 3.0, curvature: 0.5 }
    }

    /// Standard deviation w of x₀.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Curvature c of the ridge.
    pub fn curvature(&self) -> f64 {
        self.curvature
    }

    fn ridge(&self, x0: f64) -> f64 {
        self.curvature * (x0 * x0 - self.width * self.width)
    }
}

impl Target for Banana {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let variance = self.width * self.width;
        let constant = -0.5 * self.dim as f64 * LN_TAU - ln(self.width);
        for i in 0..x.rows() {
            let (x, score) = (x.row(i), out.score.row_mut(i));
            let off_ridge = x[1] - self.ridge(x[0]);
            let mut norm = x[0] * x[0] / variance + off_ridge * off_ridge;
            score[0] = 2.0 * self.curvature * x[0] * off_ridge - x[0] / variance;
            score[1] = -off_ridge;
            for (x, score) in x[2..].iter().zip(&mut score[2..]) {
                norm += x * x;
                *score = -x;
            }
            out.log_density[i] = constant - 0.5 * norm;
        }
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        for x in x.iter_mut() {
            *x = stream.normal();
        }
        x[0] *= self.width;
        x[1] += self.ridge(x[0]);
        true
    }
}
