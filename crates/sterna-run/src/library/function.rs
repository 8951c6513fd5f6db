//! A C function as a target: log densities and scores of whole batches, by a pointer.

use crate::trial::{NO_DENSITY, no_score};
use std::ffi::c_int;
use sterna::{Batch, Evaluation, Target};

/// log densities and scores of `rows` points of `dim` coordinates; not 0 stops the run.
pub type Evaluate = unsafe extern "C" fn(
    rows: usize,
    dim: usize,
    points: *const f64,
    log_density: *mut f64,
    score: *mut f64,
) -> c_int;

/// What is not written: filled in before each call with what no computation makes, so that it is never taken for an answer.
const UNWRITTEN: u64 = 0x7ff8_756e_7772_6974;

/// A function with the signature of `sterna_evaluate` in `include/sterna.h`.
#[derive(Clone, Debug)]
pub struct Function {
    evaluate: Evaluate,
    dim: usize,
    has_score: bool,
    /// How messages speak of it.
    name: String,
}

impl Function {
    /// A function that some code vouches for.
    ///
    /// # Safety
    /// It must do what the header says of `sterna_evaluate` for points of this dimension, from any thread, and stay in memory
    /// as long as this value and its clones.
    pub unsafe fn new(evaluate: Evaluate, dim: usize, has_score: bool, name: impl Into<String>) -> Self {
        Self { evaluate, dim, has_score, name: name.into() }
    }

    /// The same, whose scores nobody believes.
    pub fn without_score(self) -> Self {
        Self { has_score: false, ..self }
    }

    /// Calls it for whole rows.
    ///
    /// # Panics
    /// If the lengths are not those of as many points: C would write beyond them.
    pub fn call(&self, x: &[f64], log_density: &mut [f64], score: &mut [f64]) -> c_int {
        let rows = log_density.len();
        assert!(
            rows.checked_mul(self.dim) == Some(x.len()) && score.len() == x.len(),
            "{} coordinates and {} of the score are not {rows} points of dimension {}",
            x.len(),
            score.len(),
            self.dim
        );
        // SAFETY: the slices have the lengths that the header promises, as just checked, and live through the call.
        unsafe { (self.evaluate)(rows, self.dim, x.as_ptr(), log_density.as_mut_ptr(), score.as_mut_ptr()) }
    }

    /// Whether all is there that should be; where there is no density, nobody asks for its score.
    fn check_written(&self, out: &Evaluation) -> sterna::Result<()> {
        let unwritten = |x: &f64| x.to_bits() == UNWRITTEN;
        // Nearly always all is there: looked for without a branch for each number.
        let any = |values: &[f64]| values.iter().fold(false, |seen, x| seen | unwritten(x));
        if !any(&out.log_density) && !any(out.score.as_slice()) {
            return Ok(());
        }
        let what = if out.log_density.iter().any(unwritten) {
            NO_DENSITY.to_string()
        } else {
            let known = out.log_density.iter().zip(out.score.iter_rows()).filter(|(l, _)| l.is_finite());
            match known.filter_map(|(_, score)| score.iter().position(unwritten)).next() {
                Some(coordinate) => no_score(coordinate),
                None => return Ok(()),
            }
        };
        Err(sterna::Error::Target(format!("{}: {what}", self.name).into()))
    }
}

impl Target for Function {
    fn dim(&self) -> usize {
        self.dim
    }

    /// It may share rows out by itself: it has them all at once.
    fn takes_blocks(&self, _rows: usize) -> bool {
        false
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        let found = if x.dim() == self.dim { out.score.dim() } else { x.dim() };
        if found != self.dim {
            return Err(sterna::Error::Dimension { what: "a point", found, expected: self.dim });
        }
        if x.rows() == 0 {
            return Ok(());
        }
        out.log_density.fill(f64::from_bits(UNWRITTEN));
        if self.has_score {
            out.score.as_mut_slice().fill(f64::from_bits(UNWRITTEN));
        }
        let code = self.call(x.as_slice(), &mut out.log_density, out.score.as_mut_slice());
        if code == 0 {
            if !self.has_score {
                out.score.as_mut_slice().fill(0.0);
            }
            return self.check_written(out);
        }
        // Row by row, to name the point.
        let mut score = vec![0.0; self.dim];
        let fails = |x: &&[f64]| self.call(x, &mut [0.0], &mut score) != 0;
        let at = match x.iter_rows().find(fails) {
            Some(point) => format!("the point {point:?}"),
            None => format!("a batch of {} points, but at none of them alone", x.rows()),
        };
        Err(sterna::Error::Target(format!("{} returned {code} at {at}", self.name).into()))
    }

    fn has_score(&self) -> bool {
        self.has_score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn nothing(_: usize, _: usize, _: *const f64, _: *mut f64, _: *mut f64) -> c_int {
        0
    }

    fn target() -> Function {
        // SAFETY: it reads and writes nothing.
        unsafe { Function::new(nothing, 2, true, "`nothing`") }
    }

    #[test]
    fn points_of_another_dimension_are_refused() {
        let x = Batch::zeros(3, 2);
        let error = target().evaluate(&x, &mut Evaluation::zeros(3, 2)).unwrap_err().to_string();
        assert!(error.contains("without having written the log density"), "{error}");
        assert!(target().evaluate(&Batch::zeros(3, 4), &mut Evaluation::zeros(3, 4)).is_err());
        assert!(target().evaluate(&x, &mut Evaluation::zeros(3, 1)).is_err());
    }

    #[test]
    #[should_panic(expected = "are not 5 points of dimension 2")]
    fn room_for_another_number_of_points_never_reaches_the_function() {
        let mut out = Evaluation::zeros(3, 2);
        out.log_density = vec![0.0; 5];
        let _ = target().evaluate(&Batch::zeros(3, 2), &mut out);
    }
}
