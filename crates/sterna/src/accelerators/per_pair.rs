//! An accelerator on some pairs, plain swaps on the others: what is left of a transport where it does harm.

use super::Identity;
use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey, Travellers};
use crate::path::AnnealingPath;
use crate::streams::Streams;
use std::sync::{Arc, Mutex};

/// Carries pairs by an accelerator, except those where the plain swap is better.
///
/// A journey has the same bits as if the accelerator, or the plain swap, had made it alone.
///
/// ```
/// use std::sync::Arc;
/// use sterna::accelerator::Accelerator;
/// use sterna::accelerators::{FlowAccelerator, PerPair};
/// use sterna::{Batch, transports::Affine};
/// let samples = [0.0, 1.0, 2.0].map(|shift| Batch::from_vec(1, vec![shift, shift + 1.0, shift - 1.0]));
/// let affine = Affine::fit(&[0.0, 0.5, 1.0], &samples, false).unwrap();
/// let accelerator = PerPair::new(Arc::new(FlowAccelerator::new(Arc::new(affine))), vec![false, true]);
/// assert_eq!(accelerator.steps(), 1);
/// ```
pub struct PerPair {
    inner: Arc<dyn Accelerator>,
    /// Whether pair n ∈ 1..=N is swapped plainly, at n − 1.
    plain: Vec<bool>,
    scratch: Mutex<Vec<Scratch>>,
}

/// Some of the travellers, and where they were among all.
#[derive(Default)]
struct Scratch {
    travellers: Travellers,
    journey: Journey,
    places: Vec<usize>,
}

impl PerPair {
    /// `plain[n − 1]` says whether pair n is swapped plainly.
    pub fn new(inner: Arc<dyn Accelerator>, plain: Vec<bool>) -> Self {
        Self { inner, plain, scratch: Mutex::default() }
    }

    fn is_plain(&self, pair: usize) -> bool {
        self.plain.get(pair - 1).copied().unwrap_or(false)
    }
}

impl Accelerator for PerPair {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        path: &dyn AnnealingPath,
        streams: &Streams,
        iteration: u64,
        travellers: &Travellers,
        journey: &mut Journey,
    ) -> Result<()> {
        let plain = travellers.pair.iter().filter(|&&pair| self.is_plain(pair)).count();
        if plain == 0 {
            return self.inner.travel(direction, path, streams, iteration, travellers, journey);
        }
        if plain == travellers.len() {
            return Identity.travel(direction, path, streams, iteration, travellers, journey);
        }
        let mut scratch = self.scratch.lock().expect("no panic inside").pop().unwrap_or_default();
        for (accelerator, wanted) in [(&*self.inner, false), (&Identity as &dyn Accelerator, true)] {
            let Scratch { travellers: some, journey: part, places } = &mut scratch;
            if part.points.x.dim() != journey.points.x.dim() {
                *part = Journey::new(travellers.len(), journey.points.x.dim());
            }
            some.clear();
            places.clear();
            for i in (0..travellers.len()).filter(|&i| self.is_plain(travellers.pair[i]) == wanted) {
                let Travellers { row, key, pair, interval } = travellers;
                some.push(row[i], key[i], pair[i], interval[i]);
                places.push(i);
            }
            part.begin(&journey.points, places);
            accelerator.travel(direction, path, streams, iteration, some, part)?;
            journey.points.scatter(places, &part.points, |_| true);
            for (&place, log_weight) in places.iter().zip(&part.log_weight) {
                journey.log_weight[place] = *log_weight;
            }
        }
        self.scratch.lock().expect("no panic inside").push(scratch);
        Ok(())
    }
}
