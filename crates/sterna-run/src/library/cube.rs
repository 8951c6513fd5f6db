//! A library's likelihood under its own transform of the unit cube.

use super::LibraryTarget;
use crate::problem::{Parameter, Problem};
use sterna::Target;
use sterna::supports;

/// The posterior, in coordinates whose prior is N(0, I); its values are those that the transform makes.
///
/// # Panics
/// If the library has no transform.
pub(crate) fn cube(target: LibraryTarget, parameters: Option<&[supports::Parameter]>) -> Problem {
    let transform = target.exports().prior_transform.expect("a library with a transform");
    let dim = target.dim();
    let call = move |cube: &[f64], values: &mut [f64]| {
        assert!(cube.len() == dim && values.len() == dim, "a point has {dim} values");
        // SAFETY: there are as many numbers as the header promises, as just checked; the code is in memory as long as the
        // library, which the target beside this keeps.
        let code = unsafe { transform(1, dim, cube.as_ptr(), values.as_mut_ptr()) };
        if code != 0 {
            values.fill(f64::NAN);
        }
    };
    let names: Vec<Parameter> = match parameters {
        Some(all) => all.iter().map(Parameter::supported).collect(),
        None => vec![Parameter::vector("x", dim)],
    };
    Problem::from_prior_transform(target, call, names)
}
