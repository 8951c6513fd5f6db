//! Members of the family of local moves.

mod auto;
mod followed;
mod hmc;
mod repeated;
mod slice;

pub use auto::{Auto, AutoSizes};
pub use followed::Followed;
pub use hmc::{Hmc, STEP_SIZE_BOUNDS, StepSize, StepSizes};
pub use repeated::{MOVES, Repeated};
pub use slice::Slice;

use crate::Schedule;

/// A place between two chains of a schedule: sizes of moves are known on the chains of one schedule, and read on those of
/// another.
struct Between {
    lower: usize,
    share: f64,
}

impl Between {
    fn new(schedule: &Schedule, beta: f64) -> Self {
        let pair = schedule.betas().partition_point(|&b| b < beta).clamp(1, schedule.pairs());
        let interval = schedule.interval(pair);
        let share = ((beta - interval.lower) / interval.width()).clamp(0.0, 1.0);
        Self { lower: pair - 1, share }
    }

    /// A width there, from that of each chain: squared inverse widths are linear in β, as those of normals are.
    fn width(&self, of_chain: impl Fn(usize) -> f64) -> f64 {
        let (a, b) = (of_chain(self.lower), of_chain(self.lower + 1));
        ((1.0 - self.share) * a.powi(-2) + self.share * b.powi(-2)).sqrt().recip()
    }
}
