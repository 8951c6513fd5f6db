//! Plain swaps among those that a transport carries: a point that the transport hardly ever carries is not held for long.

use super::Identity;
use crate::Result;
use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Scratch};
use std::sync::Arc;

/// An accelerator whose turn it is in all but one of so many proposals of a pair; in that one the swap is plain.
///
/// The iteration's number says whose turn it is, so each iteration leaves every law where it was, and so do all of them. A transport
/// that rejects little on the whole may reject nearly all from a few points; plain swaps, which go by heights alone, set these free.
///
/// ```
/// use std::sync::Arc;
/// use sterna::accelerator::{Accelerator, Crossing, Direction};
/// use sterna::accelerators::{FlowAccelerator, InTurn};
/// use sterna::{Batch, Schedule, Streams, paths::Geometric, targets::Normal, transports::Affine};
/// let moments = vec![(vec![0.0], vec![1.0]), (vec![0.0], vec![4.0])];
/// let exact = Affine::diagonal(vec![0.0, 1.0], moments).unwrap();
/// let accelerator = InTurn::new(Arc::new(FlowAccelerator::new(Arc::new(exact))), 3);
/// let path = Geometric::from_standard_normal(Normal::isotropic(1, 4.0));
/// let (schedule, streams) = (Schedule::uniform(2), Streams::new(1));
/// let crossing = Crossing { accelerator: &accelerator, path: &path, schedule: &schedule, streams: &streams };
/// let end = |iteration: u64| {
///     let start = crossing.start(1, Direction::Forward, Batch::from_vec(1, vec![1.0])).unwrap();
///     crossing.cross(1, Direction::Forward, iteration, start).unwrap().points.x.row(0)[0]
/// };
/// // A pair is proposed in every second iteration: two iterations for each turn.
/// assert_eq!([0, 1, 2, 3, 4, 5, 6].map(end), [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
/// ```
pub struct InTurn {
    inner: Arc<dyn Accelerator>,
    every: u64,
}

/// What each of the two keeps.
#[derive(Default)]
struct Memory {
    carried: Scratch,
    plain: Scratch,
}

impl InTurn {
    /// One of `every` proposals is plain.
    ///
    /// # Panics
    /// If `every` is 0.
    pub fn new(inner: Arc<dyn Accelerator>, every: u64) -> Self {
        assert!(every > 0, "one of no proposals cannot be plain");
        Self { inner, every }
    }

    /// Whether proposals of that iteration are plain, where one of `every` is.
    pub(crate) fn is_plain_turn(every: u64, iteration: u64) -> bool {
        (iteration / 2).is_multiple_of(every)
    }
}

impl Accelerator for InTurn {
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
        let Memory { carried, plain } = scratch.get();
        match Self::is_plain_turn(self.every, call.iteration) {
            true => Identity.travel(direction, call, journey, plain),
            false => self.inner.travel(direction, call, journey, carried),
        }
    }
}
