//! Asking for a GPU: what is missing is named, and the CPU takes over only where that is allowed.

use std::sync::Arc;

use sterna::paths::Geometric;
use sterna::targets::Normal;
use sterna_neural::{Compute, FlowSize, Hidden, Precision, TrainFlow, Training};

fn asked(fall_back: bool) -> Compute {
    Compute::Cuda { precision: Precision::Tf32, fall_back }
}

#[test]
fn the_cpu_takes_over_only_if_it_may() {
    let error = match asked(false).open(1) {
        Ok(_) => return println!("skipped: there is a GPU"),
        Err(error) => error.to_string(),
    };
    assert!(error.starts_with("CUDA: "), "{error}");
    let cure = if cfg!(feature = "cuda") { "looked for" } else { "--features cuda" };
    assert!(error.contains(cure), "{error}");
    let opened = asked(true).open(1).unwrap();
    assert!(opened.note.is_some_and(|note| note.contains(&error)));
}

#[test]
fn a_missing_gpu_is_known_before_anything_is_sampled() {
    let target = Normal::isotropic(2, 20.0);
    let path = Arc::new(Geometric::from_standard_normal(target.clone()));
    let size = FlowSize { layers: 2, hidden: Hidden::new(1, 8) };
    let training = Training { compute: asked(false), ..Training::default() };
    let made = TrainFlow::new(path, Arc::new(target), size, training);
    if asked(false).open(1).is_err() {
        assert!(made.is_err_and(|e| e.to_string().starts_with("CUDA: ")));
    }
}
