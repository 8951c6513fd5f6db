//! Functions that run on the host in f64, inside a graph: a user's own target, for one.

use crate::{Result, Value};

/// A function of batch values, called with the whole batch at once.
///
/// A result for a row must depend on that row alone.
pub trait HostFunction: Send + Sync {
    /// Writes `rows` rows of the result; each input holds `rows` rows.
    fn call(&self, rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> Result<()>;

    /// The derivative rule: for each input gᵀ·∂y/∂input, or none where that vanishes.
    fn pull_back<'g>(&self, inputs: &[Value<'g>], y: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>>;
}
