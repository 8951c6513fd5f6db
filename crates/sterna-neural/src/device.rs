//! Where computations run: one trait for all devices; nothing above it knows which one it is.

use crate::graph::{Graph, Value};
use crate::parameters::Parameters;
use crate::{Real, Result};

/// Something that runs recorded computations in numbers of type `T`.
pub trait Device<T: Real>: Send + Sync {
    /// Prepares the computation of `outputs`.
    fn compile(&self, graph: &Graph, outputs: &[Value]) -> Result<Box<dyn Program<T>>>;

    /// Calls `f(k)` for every k below `n`, perhaps on several threads: for work beside the graph, such as
    /// an optimiser's step. What `f` writes for different k must not overlap.
    fn for_each(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(f);
    }
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
