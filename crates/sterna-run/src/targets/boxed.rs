//! Kinds whose likelihood is on a box (`sterna::targets::boxed`): the prior is uniform there, and draws are values in the box.

use crate::problem::{Constrain, Parameter, Problem};
use sterna::Target;
use sterna::paths::Reference;
use sterna::targets::{Boxed, Likelihood};

/// The posterior, with its prior known apart: chain 0 draws from it, and log Z is the log evidence.
pub(super) fn problem(likelihood: impl Likelihood + Copy + 'static) -> Problem {
    let target = Boxed::new(likelihood);
    let dim = target.dim();
    let prior = Some(Reference::standard_normal(dim));
    let values = Values(target.clone());
    Problem { prior, ..Problem::new(target).with_values(values, [Parameter::vector("x", dim)]) }
}

struct Values<T>(Boxed<T>);

impl<T: Likelihood> Constrain for Values<T> {
    fn values(&self) -> usize {
        self.0.dim()
    }

    fn constrain(&self, point: &[f64], values: &mut [f64]) {
        self.0.values(point, values);
    }
}
