//! Neal's funnel: a scale that is itself random.

use crate::lanes::one::{self, LN_TAU};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, exp};
use crate::streams::RowStream;
use crate::{Batch, Evaluation, Result, Target};

/// x₀ ~ N(0, 3²), xⱼ | x₀ ~ N(0, e^{x₀}); normalised.
///
/// ```
/// use sterna::{Target, targets::Funnel};
/// assert_eq!(Funnel::new(10).log_z(), Some(0.0));
/// ```
#[derive(Clone, Debug)]
pub struct Funnel {
    dim: usize,
}

/// Variance of x₀.
pub const NECK_VARIANCE: f64 = 9.0;

impl Funnel {
    /// # Panics
    /// If `dim` < 2.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2);
        Self { dim }
    }
}

impl Target for Funnel {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Neck { x, out });
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        x[0] = NECK_VARIANCE.sqrt() * stream.normal();
        let width = one::exp(0.5 * x[0]);
        for x in &mut x[1..] {
            *x = width * stream.normal();
        }
        true
    }
}

struct Neck<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Neck<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let dim = self.x.dim();
        let others = (dim - 1) as f64;
        let constant = -0.5 * dim as f64 * LN_TAU - 0.5 * one::ln(NECK_VARIANCE);
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * dim..(first + rows) * dim];
            let score = &mut self.out.score.as_mut_slice()[first * dim..(first + rows) * dim];
            let neck = L::load_column(x, dim, 0);
            let precision = exp(-neck);
            let mut norm = L::splat(0.0);
            for j in 1..dim {
                let x = L::load_column(x, dim, j);
                norm = x.mul_add(x, norm);
                (-x * precision).store_column(score, dim, j);
            }
            let half = L::splat(0.5);
            let energy = half * norm * precision;
            let pull = neck * L::splat(-1.0 / NECK_VARIANCE);
            let log_density = half * neck * (pull - L::splat(others)) - energy + L::splat(constant);
            log_density.store_some(&mut self.out.log_density[first..first + rows]);
            (pull + energy - L::splat(0.5 * others)).store_column(score, dim, 0);
        }
    }
}
