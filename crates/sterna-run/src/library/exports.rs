//! What a library may export beside its function: what is known of its density, and of its parameters.

use super::{LIKELIHOOD, SYMBOL, wrong};
use crate::error::JobError;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use sterna::supports::{Parameter, Support};

/// Values of `rows` points of the unit cube; not 0 stops the run.
pub type PriorTransform =
    unsafe extern "C" fn(rows: usize, dim: usize, cube: *const f64, values: *mut f64) -> c_int;

/// Functions of `rows` points, as many numbers for each as there are names; not 0 where there are none.
pub type Observe = unsafe extern "C" fn(rows: usize, dim: usize, points: *const f64, out: *mut f64) -> c_int;

/// The functions of `include/sterna.h` that may be missing, as far as they were there.
#[derive(Clone, Debug)]
pub struct Exports {
    /// `sterna_dim`.
    pub dim: Option<usize>,
    /// `sterna_log_z`.
    pub log_z: Option<f64>,
    /// `sterna_has_score`.
    pub has_score: bool,
    /// `sterna_names` and `sterna_supports`.
    pub parameters: Option<Vec<Parameter>>,
    /// Whether there is a likelihood, and no whole density.
    pub is_likelihood_alone: bool,
    /// `sterna_prior_transform`.
    pub prior_transform: Option<PriorTransform>,
    /// `sterna_observable_names` and `sterna_observe`.
    pub observables: Option<(Vec<String>, Observe)>,
}

impl Default for Exports {
    fn default() -> Self {
        Self {
            dim: None,
            log_z: None,
            has_score: true,
            parameters: None,
            is_likelihood_alone: false,
            prior_transform: None,
            observables: None,
        }
    }
}

impl Exports {
    /// Asks a library for all of them.
    pub fn of(library: &Library, path: &Path) -> Result<Self, JobError> {
        // SAFETY: the header says what these functions are; without them nothing is called.
        let (dim, log_z, has_score, prior_transform) = unsafe {
            (
                get::<unsafe extern "C" fn() -> usize>(library, "sterna_dim").map(|f| f()),
                get::<unsafe extern "C" fn() -> f64>(library, "sterna_log_z").map(|f| f()),
                get::<unsafe extern "C" fn() -> c_int>(library, "sterna_has_score").is_none_or(|f| f() != 0),
                get::<PriorTransform>(library, "sterna_prior_transform"),
            )
        };
        // SAFETY: as above; nothing is done with what they are.
        let [whole, likelihood] =
            [SYMBOL, LIKELIHOOD].map(|name| unsafe { get::<*const u8>(library, name) }.is_some());
        let parameters = match (text(library, "sterna_names"), text(library, "sterna_supports")) {
            (None, None) => None,
            (None, Some(_)) => {
                return Err(wrong(
                    path,
                    "it exports `sterna_supports`, but not whose: export `sterna_names` too",
                ));
            }
            (Some(names), supports) => {
                Some(parameters(&names, supports.as_deref()).map_err(|what| wrong(path, what))?)
            }
        };
        Ok(Self {
            dim,
            log_z: log_z.filter(|z| z.is_finite()),
            has_score: has_score && prior_transform.is_none(),
            parameters,
            is_likelihood_alone: likelihood && (!whole || prior_transform.is_some()),
            prior_transform,
            observables: observables(library).map_err(|what| wrong(path, what))?,
        })
    }
}

/// A function, where it is exported.
///
/// # Safety
/// It must be of this type.
unsafe fn get<T: Copy>(library: &Library, name: &str) -> Option<T> {
    // SAFETY: the caller knows the type.
    unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|found| *found)
}

/// What a function says that returns a text.
fn text(library: &Library, name: &str) -> Option<String> {
    // SAFETY: the header says what the function is, and that its text ends with a zero and stays.
    unsafe {
        let said = get::<unsafe extern "C" fn() -> *const c_char>(library, name)?();
        (!said.is_null()).then(|| CStr::from_ptr(said).to_string_lossy().into_owned())
    }
}

/// Observables, if both functions are there.
fn observables(library: &Library) -> Result<Option<(Vec<String>, Observe)>, String> {
    // SAFETY: the header says what this function is.
    let observe = unsafe { get::<Observe>(library, "sterna_observe") };
    match (text(library, "sterna_observable_names"), observe) {
        (None, None) => Ok(None),
        (Some(names), Some(observe)) => {
            Ok(Some((names.split(',').map(|name| name.trim().to_string()).collect(), observe)))
        }
        _ => Err("it exports one of `sterna_observable_names` and `sterna_observe`: export both".into()),
    }
}

/// Names with commas between, `weights[3]` for three values with one name; supports with semicolons between.
fn parameters(names: &str, supports: Option<&str>) -> Result<Vec<Parameter>, String> {
    let names: Vec<(&str, usize)> =
        names.split(',').map(|name| sized(name.trim())).collect::<Result<_, _>>()?;
    let supports: Vec<Support> = match supports {
        None => vec![Support::Real; names.len()],
        Some(list) => list
            .split(';')
            .map(|text| text.parse::<Support>())
            .collect::<Result<_, _>>()
            .map_err(|error| format!("`sterna_supports`: {}", of_library(error)))?,
    };
    if supports.len() != names.len() {
        return Err(format!(
            "`sterna_supports` has {} supports, `sterna_names` {} names: give as many, with semicolons between supports",
            supports.len(),
            names.len()
        ));
    }
    let each = names.into_iter().zip(supports);
    each.map(|((name, size), support)| {
        if size == 0 {
            return Err(format!("`sterna_names` has \"{name}[0]\": a name has at least one value"));
        }
        let refused = |error| format!("`sterna_supports`, {name}: {}", of_library(error));
        support.check(size).map_err(refused)?;
        Ok((name, size, support).into())
    })
    .collect()
}

/// A library's words, without the name that Rust has for the field.
fn of_library(error: sterna::Error) -> String {
    error.to_string().replace("Parameter.support", "support").replace("Parameter.size", "size")
}

/// A name and its number of values.
fn sized(text: &str) -> Result<(&str, usize), String> {
    let wrong = || format!("`sterna_names` has {text:?}: a name is `mu`, or `theta[8]` for eight values");
    let (name, size) = match text.split_once('[') {
        None => (text, 1),
        Some((name, rest)) => {
            let size = rest.strip_suffix(']').and_then(|size| size.trim().parse().ok());
            (name.trim_end(), size.ok_or_else(wrong)?)
        }
    };
    if name.is_empty() { Err(wrong()) } else { Ok((name, size)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_supports_are_read_and_what_is_wrong_is_told() {
        let read = parameters("mu, weights[3],sigma", Some("real; simplex ;interval(0, 2)")).unwrap();
        assert_eq!(read[1], ("weights", 3, Support::Simplex).into());
        assert_eq!(read[2].support, Support::Interval { lower: 0.0, upper: 2.0 });
        assert_eq!(parameters("a,b", None).unwrap()[1].support, Support::Real);
        for (names, supports, part) in [
            ("a,", None, "\"\""),
            ("a[x]", None, "theta[8]"),
            ("a,b", Some("real"), "1 supports, `sterna_names` 2 names"),
            ("a", Some("rael"), "support = \"rael\""),
            ("a", Some("simplex"), "at least 2 values"),
            ("a", Some("interval(3, 2)"), "`sterna_supports`, a: support = interval(3, 2)"),
        ] {
            let message = parameters(names, supports).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
