//! Scores by differences, for a target that has none: where only their direction counts, as in climbs, or their average, as in
//! training. Moves of a sampler never ask for them.

use crate::streams::RowStream;
use crate::{Batch, Error, Evaluation, Result, Target};

/// A target whose scores are central differences of its log density; each costs two evaluations for every coordinate.
///
/// ```
/// use sterna::{Batch, Differences, Evaluation, Target, targets::Banana};
/// let (x, mut exact) = (Batch::from_vec(2, vec![0.3, -0.4]), Evaluation::zeros(1, 2));
/// Banana::new(2).evaluate(&x, &mut exact)?;
/// let mut found = Evaluation::zeros(1, 2);
/// Differences::new(Banana::new(2)).evaluate(&x, &mut found)?;
/// assert!((exact.score.row(0)[1] - found.score.row(0)[1]).abs() < 1e-6);
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Differences<T> {
    target: T,
}

impl<T: Target> Differences<T> {
    /// The score that the target may have is not asked for.
    pub fn new(target: T) -> Self {
        Self { target }
    }

    /// Evaluations of the target that one score takes.
    pub fn evaluations(&self) -> u64 {
        2 * self.target.dim() as u64
    }
}

/// A step that balances rounding against the third derivative, for a coordinate of this size.
fn step(x: f64) -> f64 {
    /// The cube root of the spacing of numbers.
    const SHARE: f64 = 6.055_454_452_393_343e-6;
    let step = SHARE * x.abs().max(1.0);
    // What is added is what is divided by.
    (x + step) - x
}

/// The slope between two neighbours, or between a point and the one of them that has a density; 0 without any.
fn slope(below: f64, here: f64, above: f64, step: f64) -> f64 {
    match (below.is_finite(), above.is_finite()) {
        _ if !here.is_finite() => 0.0,
        (true, true) => (above - below) / (2.0 * step),
        (true, false) => (here - below) / step,
        (false, true) => (above - here) / step,
        (false, false) => 0.0,
    }
}

/// Log densities of a target, with scores by differences of them.
pub(crate) fn by_differences(target: &dyn Target, x: &Batch, out: &mut Evaluation) -> Result<()> {
    let dim = target.dim();
    if x.dim() != dim {
        return Err(Error::Dimension { what: "a point", found: x.dim(), expected: dim });
    }
    target.evaluate(x, out)?;
    let (mut near, mut there) = (Batch::zeros(2 * dim, dim), Evaluation::zeros(2 * dim, dim));
    for (i, point) in x.iter_rows().enumerate() {
        for j in 0..dim {
            for (row, sign) in [(2 * j, -1.0), (2 * j + 1, 1.0)] {
                near.row_mut(row).copy_from_slice(point);
                near.row_mut(row)[j] += sign * step(point[j]);
            }
        }
        target.evaluate(&near, &mut there)?;
        for (j, score) in out.score.row_mut(i).iter_mut().enumerate() {
            let [below, above] = [there.log_density[2 * j], there.log_density[2 * j + 1]];
            *score = slope(below, out.log_density[i], above, step(point[j]));
        }
    }
    Ok(())
}

impl<T: Target> Target for Differences<T> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        by_differences(&self.target, x, out)
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        self.target.draw(stream, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};
    use crate::targets::Galaxies;

    /// Without a density beyond 1, and with none of its own score.
    struct Bounded;

    impl Target for Bounded {
        fn dim(&self) -> usize {
            1
        }

        fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
            for (log_density, x) in out.log_density.iter_mut().zip(x.as_slice()) {
                *log_density = if *x < 1.0 { 3.0 * x } else { f64::NEG_INFINITY };
            }
            Ok(())
        }
    }

    #[test]
    fn they_are_scores() {
        let target = Galaxies;
        let mut x = Batch::zeros(5, target.dim());
        Streams::new(2).normals(Phase::Check, 0, &[0, 1, 2, 3, 4], &mut x);
        let (mut exact, mut found) = (Evaluation::zeros(5, x.dim()), Evaluation::zeros(5, x.dim()));
        target.evaluate(&x, &mut exact).unwrap();
        Differences::new(target).evaluate(&x, &mut found).unwrap();
        assert_eq!(exact.log_density, found.log_density);
        for (exact, found) in exact.score.as_slice().iter().zip(found.score.as_slice()) {
            // Rounding of log densities of some thousand, over the step; third derivatives of some ten thousand, times its square.
            assert!((exact - found).abs() < 1e-6 * exact.abs().max(1.0), "{exact} and {found}");
        }
    }

    #[test]
    fn at_an_edge_they_look_inside() {
        let x = Batch::from_vec(1, vec![1.0 - 1e-9, 0.0, 2.0]);
        let mut out = Evaluation::zeros(3, 1);
        Differences::new(Bounded).evaluate(&x, &mut out).unwrap();
        let [edge, inside, outside] = [0, 1, 2].map(|i| out.score.row(i)[0]);
        assert!((edge - 3.0).abs() < 1e-9 && (inside - 3.0).abs() < 1e-9 && outside == 0.0);
        assert!(
            Differences::new(Bounded).evaluate(&Batch::zeros(1, 2), &mut Evaluation::zeros(1, 2)).is_err()
        );
    }
}
