//! How many samples a choice is made from.

use crate::choice::{choose, run_of, settings, wells};
use std::sync::{Arc, Mutex};
use sterna::Result;
use sterna::acceleration::{Candidate, Choose, Collected, FitAffine, FitAtOnce};
use sterna::accelerator::Accelerator;
use sterna::run::Settings;

/// Knows how many samples it was fitted to, fit by fit of a run.
#[derive(Clone, Default)]
struct Samples(Arc<Mutex<Vec<(usize, usize)>>>);

impl FitAtOnce for Samples {
    fn fit(&self, collected: &Collected) -> Result<Arc<dyn Accelerator>> {
        self.0.lock().unwrap().push((collected.round, collected.samples[0].rows()));
        FitAffine { full: false }.fit(collected)
    }
}

/// A first look at few samples is for the first fit alone: later ones have as many as the first came to.
#[test]
fn later_fits_have_as_many_samples_as_the_first() {
    let (path, seen) = (wells(), Samples::default());
    let candidate = Candidate { name: "affine".into(), fit: Arc::new(seen.clone()), operations: 10.0 };
    let settings = Settings { fits: 3, ..settings() };
    run_of(Choose { candidates: vec![candidate], ..choose(&path, 1e3) }, settings).complete().unwrap();
    let seen = seen.0.lock().unwrap();
    let fewest = |round| seen.iter().filter(|(of, _)| *of == round).map(|(_, rows)| *rows).min();
    assert!(fewest(0) > Some(200) && fewest(1) == fewest(0) && fewest(2) == fewest(0), "{seen:?}");
}
