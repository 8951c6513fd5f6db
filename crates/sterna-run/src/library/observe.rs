//! A library's observables: functions of a point's values.

use super::Exports;
use super::exports::Observe;
use crate::problem::{Constrain, Observable, Problem};
use std::sync::Arc;
use sterna::Target;

/// What a library computes of a point, one number for each name.
struct Observer {
    /// Keeps the code in memory.
    _target: Arc<dyn Target>,
    observe: Observe,
    values: Option<Arc<dyn Constrain>>,
    names: usize,
}

impl Observer {
    fn value(&self, point: &[f64], which: usize) -> f64 {
        let mut out = vec![f64::NAN; self.names];
        let code = match &self.values {
            Some(values) => {
                let mut of_point = vec![0.0; values.values()];
                values.constrain(point, &mut of_point);
                self.call(&of_point, &mut out)
            }
            None => self.call(point, &mut out),
        };
        if code == 0 { out[which] } else { f64::NAN }
    }

    fn call(&self, values: &[f64], out: &mut [f64]) -> std::ffi::c_int {
        // SAFETY: one point of as many values as there are, and room for as many numbers as the library has names for; its
        // code is in memory as long as the target.
        unsafe { (self.observe)(1, values.len(), values.as_ptr(), out.as_mut_ptr()) }
    }
}

/// The problem, with the library's observables.
pub(crate) fn observing(mut problem: Problem, exports: &Exports) -> Problem {
    let Some((names, observe)) = &exports.observables else { return problem };
    let observer = Arc::new(Observer {
        _target: problem.target.clone(),
        observe: *observe,
        values: problem.values.clone(),
        names: names.len(),
    });
    problem.observables = names
        .iter()
        .enumerate()
        .map(|(which, name)| {
            let observer = observer.clone();
            Observable { name: name.clone(), value: Arc::new(move |point| observer.value(point, which)) }
        })
        .collect();
    problem
}
