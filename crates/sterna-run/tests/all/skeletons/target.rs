//! A target: log density and score of whole batches.

use sterna::{Batch, Evaluation, Result, Target};

/// A ring of radius 3 and width 0.5 in the plane.
pub struct Ring;

impl Target for Ring {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for (i, x) in x.iter_rows().enumerate() {
            let radius = x[0].hypot(x[1]);
            let off = (radius - 3.0) / 0.25;
            out.log_density[i] = -0.5 * off * (radius - 3.0);
            // At the centre the density has no gradient: NaN is data, and such a row is rejected and counted.
            let score = out.score.row_mut(i);
            (score[0], score[1]) = (-off * x[0] / radius, -off * x[1] / radius);
        }
        Ok(())
    }
}

/// Largest difference between the score and central differences, relative to 1 + |score|.
fn score_error(target: &dyn Target, x: &[f64]) -> f64 {
    let at = |x: Vec<f64>| {
        let mut out = Evaluation::zeros(1, x.len());
        target.evaluate(&Batch::from_vec(x.len(), x), &mut out).unwrap();
        out
    };
    let score = at(x.to_vec()).score;
    let error = |j: usize| {
        let moved = |h: f64| {
            let mut x = x.to_vec();
            x[j] += h;
            at(x).log_density[0]
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        (score.row(0)[j] - difference).abs() / (1.0 + difference.abs())
    };
    (0..x.len()).map(error).fold(0.0, f64::max)
}

/// The twin: a sign that is easily lost.
struct WrongSign;

impl Target for WrongSign {
    fn dim(&self) -> usize {
        Ring.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        Ring.evaluate(x, out)?;
        out.score.as_mut_slice().iter_mut().for_each(|score| *score = -*score);
        Ok(())
    }
}

#[test]
fn the_score_is_the_gradient() {
    // Differences of step 10⁻⁵ are good to 10⁻¹⁰ h⁻¹ of rounding and h² of curvature: 10⁻⁷ leaves room for neither fault.
    for x in [[3.1, 0.2], [-1.0, 2.0], [0.1, -5.0]] {
        assert!(score_error(&Ring, &x) < 1e-7);
        assert!(score_error(&WrongSign, &x) > 1e-7);
    }
}
