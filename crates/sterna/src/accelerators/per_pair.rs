//! An accelerator on some pairs, plain swaps on the others: what is left of a transport where it does harm.

use super::Identity;
use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Rows, Scratch};
use std::sync::Arc;

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
}

/// Some of the rows, where they were among all, and what the two ways of travelling keep.
#[derive(Default)]
struct Memory {
    rows: Rows,
    journey: Journey,
    places: Vec<usize>,
    of_inner: Scratch,
    of_plain: Scratch,
}

impl PerPair {
    /// `plain[n − 1]` says whether pair n is swapped plainly.
    pub fn new(inner: Arc<dyn Accelerator>, plain: Vec<bool>) -> Self {
        Self { inner, plain }
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
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Memory { rows, journey: part, places, of_inner, of_plain } = scratch.get();
        let pairs = &call.rows.pair;
        let plain = pairs.iter().filter(|&&pair| self.is_plain(pair)).count();
        if plain == 0 {
            return self.inner.travel(direction, call, journey, of_inner);
        }
        if plain == call.rows.len() {
            return Identity.travel(direction, call, journey, of_plain);
        }
        if part.points.x.dim() != journey.points.x.dim() {
            *part = Journey::new(call.rows.len(), journey.points.x.dim());
        }
        let ways = [(&*self.inner, of_inner, false), (&Identity as &dyn Accelerator, of_plain, true)];
        for (accelerator, scratch, wanted) in ways {
            places.clear();
            places.extend((0..pairs.len()).filter(|&i| self.is_plain(pairs[i]) == wanted));
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
