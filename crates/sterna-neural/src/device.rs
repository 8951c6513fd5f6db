//! Where computations run: one trait for all devices; nothing above it knows which one it is.

use crate::graph::{Graph, Value};
use crate::optimiser::{AdamConfig, AdamStep, CHUNK, Progress, StepReport, adam_chunk, square_sum_chunk};
use crate::parameters::Parameters;
use crate::recipe::Recipe;
use crate::training::TrainingState;
use crate::{Real, Result};

/// Something that runs recorded computations in numbers of type `T`.
pub trait Device<T: Real>: Send + Sync {
    /// Prepares the computation of `outputs`.
    fn compile(&self, graph: &Graph, outputs: &[Value]) -> Result<Box<dyn Program<T>>>;

    /// Σ x², summed in f64 chunk by chunk in a fixed order. `partial` has room for one number per
    /// [`CHUNK`](crate::CHUNK) numbers.
    fn square_sum(&self, x: &[T], partial: &mut [f64]) -> f64 {
        for (sum, chunk) in partial.iter_mut().zip(x.chunks(CHUNK)) {
            *sum = square_sum_chunk(chunk);
        }
        partial.iter().sum()
    }

    /// One step of Adam and of the average over steps, element by element.
    fn adam(&self, step: AdamStep<'_, T>) {
        adam_chunk(step);
    }

    /// A training whose parameters stay on the device, where the device has one: the first `gradients` outputs
    /// are the gradient, the next is the loss, others are watched.
    fn train(
        &self,
        _graph: &Graph,
        _outputs: &[Value],
        _gradients: usize,
        _parameters: &Parameters<T>,
        _config: AdamConfig,
    ) -> Option<Result<Box<dyn TrainingLoop<T>>>> {
        None
    }
}

/// A training on a device, with its optimiser.
pub trait TrainingLoop<T: Real>: Send {
    /// From now on batches are drawn on the device.
    fn draw_from(&mut self, recipe: Recipe);
    /// Whether they are.
    fn draws(&self) -> bool;
    /// One step on a batch of the host.
    fn step(&mut self, rows: usize, inputs: &[&[T]]) -> Result<StepReport>;
    /// So many steps on batches drawn on the device; returns their losses.
    fn steps(&mut self, count: u64) -> Result<Vec<f64>>;
    /// The loss on a batch of the host, without a step.
    fn evaluate(&mut self, rows: usize, inputs: &[&[T]]) -> Result<f64>;
    /// Watched value `k` of the last step on a batch of the host.
    fn watched(&self, k: usize) -> &[T];
    /// Counters.
    fn progress(&self) -> Progress;
    /// All that is needed to go on later.
    fn state(&self) -> Result<TrainingState<T>>;
    /// Goes on from a state.
    fn restore(&mut self, state: &TrainingState<T>) -> Result<()>;
}

/// A compiled computation with memory of its own: run it many times with new inputs.
///
/// Once it has run with the largest number of rows, nothing is allocated any more.
pub trait Program<T: Real>: Send {
    /// Computes all outputs for `rows` rows. `inputs` come in the order in which they were recorded, each
    /// with `rows` rows. Weights are laid out anew only when `parameters` have changed since the last run.
    fn run(&mut self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()>;

    /// The values of output `k` after a run, row after row.
    fn output(&self, k: usize) -> &[T];

    /// Outputs `first .. last` as one slice. They must all be fixed (gradients of parameters are).
    fn fixed_outputs(&self, first: usize, last: usize) -> &[T];
}
