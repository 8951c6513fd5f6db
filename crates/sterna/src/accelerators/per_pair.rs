//! A way of its own for each pair: an accelerator on some, plain swaps on the others, or any mixture of transports.

use super::Identity;
use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Rows, Scratch};
use std::sync::Arc;

/// Carries each pair its own way.
///
/// A journey has the same bits as if the accelerator of its pair had made it alone.
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
    ways: Vec<Arc<dyn Accelerator>>,
    /// Which of them carries pair n ∈ 1..=N, at n − 1.
    of_pair: Vec<usize>,
}

/// Some of the rows, where they were among all, and what the ways of travelling keep.
#[derive(Default)]
struct Memory {
    rows: Rows,
    journey: Journey,
    places: Vec<usize>,
    of_ways: Vec<Scratch>,
}

impl PerPair {
    /// An accelerator, but plain swaps where they are better: `plain[n − 1]` says whether pair n is swapped plainly.
    pub fn new(inner: Arc<dyn Accelerator>, plain: Vec<bool>) -> Self {
        Self { ways: vec![inner, Arc::new(Identity)], of_pair: plain.into_iter().map(usize::from).collect() }
    }

    /// Any ways, counted from 0: `of_pair[n − 1]` carries pair n.
    ///
    /// # Panics
    /// If a pair is to go a way that there is not.
    pub fn among(ways: Vec<Arc<dyn Accelerator>>, of_pair: Vec<usize>) -> Self {
        assert!(!ways.is_empty() && of_pair.iter().all(|way| *way < ways.len()), "a way for each pair");
        Self { ways, of_pair }
    }

    /// A pair of which nothing was said goes the first way.
    fn way(&self, pair: usize) -> usize {
        self.of_pair.get(pair - 1).copied().unwrap_or(0)
    }
}

impl Accelerator for PerPair {
    fn steps(&self) -> usize {
        self.ways.iter().map(|way| way.steps()).max().unwrap_or(0)
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Memory { rows, journey: part, places, of_ways } = scratch.get();
        of_ways.resize_with(self.ways.len(), Scratch::default);
        let pairs = &call.rows.pair;
        let first = pairs.first().map_or(0, |&pair| self.way(pair));
        if pairs.iter().all(|&pair| self.way(pair) == first) {
            return self.ways[first].travel(direction, call, journey, &mut of_ways[first]);
        }
        if part.points.x.dim() != journey.points.x.dim() {
            *part = Journey::new(call.rows.len(), journey.points.x.dim());
        }
        for (way, (accelerator, scratch)) in self.ways.iter().zip(of_ways).enumerate() {
            places.clear();
            places.extend((0..pairs.len()).filter(|&i| self.way(pairs[i]) == way));
            if places.is_empty() {
                continue;
            }
            rows.choose(call.rows, places);
            part.begin(&journey.points, places);
            accelerator.travel(direction, &call.of(rows), part, scratch)?;
            journey.points.scatter(places, &part.points, |_| true);
            for (&place, log_weight) in places.iter().zip(&part.log_weight) {
                journey.log_weight[place] = *log_weight;
            }
        }
        Ok(())
    }
}
