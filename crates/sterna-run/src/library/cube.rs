//! A library's likelihood under its own transform of the unit cube.

use super::LibraryTarget;
use crate::problem::{Parameter, Problem, Says};
use std::sync::Arc;
use sterna::Target;
use sterna::priors::normal_distribution;
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
        // What is not written is no value.
        values.fill(f64::NAN);
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
    let says: Arc<Says> =
        Arc::new(move |point| said(&point.iter().map(|x| normal_distribution(*x)).collect::<Vec<_>>(), call));
    Problem { says: Some(says), ..Problem::from_prior_transform(target, call, names) }
}

/// What is wrong with a point of the cube, where that is the transform's doing.
fn said(cube: &[f64], call: impl Fn(&[f64], &mut [f64])) -> Option<String> {
    let mut values = vec![0.0; cube.len()];
    call(cube, &mut values);
    let shown = |all: &[f64]| all.iter().take(6).map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(", ");
    let none = values.iter().position(|value| value.is_nan())?;
    Some(format!(
        "`sterna_prior_transform` makes no value {none} of the point [{}] of the unit cube",
        shown(cube)
    ))
}
