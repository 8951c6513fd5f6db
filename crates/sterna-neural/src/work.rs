//! How much work a computation is, counted rather than timed: the same on any machine.

use crate::graph::{Graph, Value};
use crate::plan::Plan;

/// Multiply-adds that a computation takes for one point of this length, roughly: an elementary function counts as two. A
/// computation that mixes rows, which none of a single point does, counts as nothing.
///
/// ```
/// assert_eq!(sterna_neural::multiply_adds(10, |x| vec![x * 2.0 + 1.0]), 20.0);
/// ```
pub fn multiply_adds(dim: usize, record: impl for<'g> Fn(Value<'g>) -> Vec<Value<'g>>) -> f64 {
    let graph = Graph::new();
    let outputs = record(graph.input("x", dim));
    Plan::new(&graph, &outputs).map_or(0.0, |plan| plan.work)
}
