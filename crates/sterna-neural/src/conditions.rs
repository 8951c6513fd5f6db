//! What a network is told besides the point: the pair of chains, and the time along the path.
//!
//! β is a poor coordinate, since tuned schedules crowd where the density changes fast. A network is given
//! the *position* of β instead, which advances by the same amount from chain to chain of the schedule it
//! was made for. Positions and times enter as sines and cosines of several frequencies.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::graph::{Graph, Value};
use crate::{Error, Result};

/// β, β′ and path time of each row, as values of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'g> {
    /// β of the chain nearer the reference: one column.
    pub lower: Value<'g>,
    /// β′ of the chain nearer the target: one column.
    pub upper: Value<'g>,
    /// Path time in [0, 1]: one column. Flows have none.
    pub time: Option<Value<'g>>,
}

impl<'g> Conditions<'g> {
    /// Records the inputs "lower", "upper" and "time".
    pub fn inputs(graph: &'g Graph) -> Self {
        let [lower, upper] = ["lower", "upper"].map(|name| graph.input(name, 1));
        Self { lower, upper, time: Some(graph.input("time", 1)) }
    }

    /// Records the inputs "lower" and "upper".
    pub fn pair_inputs(graph: &'g Graph) -> Self {
        let [lower, upper] = ["lower", "upper"].map(|name| graph.input(name, 1));
        Self { lower, upper, time: None }
    }

    /// The same pairs at another time.
    pub fn at(self, time: Value<'g>) -> Self {
        Self { time: Some(time), ..self }
    }
}

/// How pairs and times become features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditioning {
    /// The schedule that the network was made for: 0 = β₀ < … < β_N = 1, or on to an anchor at 2.
    pub schedule: Vec<f64>,
    /// Frequencies π, 2π, 4π, … of the pair's position.
    pub pair_frequencies: usize,
    /// Frequencies π, 2π, 4π, … of the path time.
    pub time_frequencies: usize,
}

impl Conditioning {
    /// For the chains of a schedule.
    ///
    /// # Errors
    /// Unless 0 = β₀ < … < β_N = 1, or beyond a target at 1 < … < β_N = 2.
    pub fn new(schedule: &[f64]) -> Result<Self> {
        let rising = schedule.windows(2).all(|w| w[0] < w[1]);
        let ends =
            schedule.last() == Some(&1.0) || (schedule.last() == Some(&2.0) && schedule.contains(&1.0));
        if schedule.len() < 2 || !rising || schedule[0] != 0.0 || !ends {
            let value = format!("{schedule:?}");
            let reason = "must rise from 0 to 1, or over 1 to 2";
            return Err(Error::Config { field: "schedule", value, reason });
        }
        Ok(Self { schedule: schedule.to_vec(), pair_frequencies: 6, time_frequencies: 4 })
    }

    /// Number of features.
    pub fn features(&self, with_time: bool) -> usize {
        2 + 2 * self.pair_frequencies + if with_time { 1 + 2 * self.time_frequencies } else { 0 }
    }

    /// Position of β: n at β_n, linear in between.
    pub(crate) fn position<'g>(&self, beta: Value<'g>) -> Value<'g> {
        let graph = beta.graph();
        let slopes: Vec<f64> = self.schedule.windows(2).map(|w| 1.0 / (w[1] - w[0])).collect();
        if slopes.len() == 1 {
            return beta * slopes[0];
        }
        // Σ over knots of (change of slope) · max(β − knot, 0)
        let knots = graph.constant(slopes.len(), &self.schedule[..slopes.len()]);
        let changes: Vec<f64> =
            slopes.iter().scan(0.0, |last, &s| Some(s - std::mem::replace(last, s))).collect();
        let beyond = beta - knots;
        (beyond * beyond.step() * graph.constant(slopes.len(), &changes)).sum_cols()
    }

    /// How many steps of the schedule the pair spans: 1 for a pair of the schedule, and 0 as the pair
    /// closes up. Outputs are multiplied by it, so that an accelerator becomes the identity (errata E9).
    pub fn span<'g>(&self, conditions: &Conditions<'g>) -> Value<'g> {
        self.position(conditions.upper) - self.position(conditions.lower)
    }

    /// The features, one row per row.
    pub fn record<'g>(&self, conditions: &Conditions<'g>) -> Value<'g> {
        let graph = conditions.lower.graph();
        let n = (self.schedule.len() - 1) as f64;
        let lower = self.position(conditions.lower) * (1.0 / n);
        let mut parts = vec![lower, self.span(conditions)];
        parts.extend(waves(lower, self.pair_frequencies));
        if let Some(time) = conditions.time {
            parts.push(time);
            parts.extend(waves(time, self.time_frequencies));
        }
        graph.concat(&parts)
    }
}

/// sin and cos of π 2ʲ x for j below `n`.
pub(crate) fn waves(x: Value<'_>, n: usize) -> Vec<Value<'_>> {
    if n == 0 {
        return vec![];
    }
    let frequencies: Vec<f64> = (0..n).map(|j| PI * 2f64.powi(j as i32)).collect();
    let phase = x * x.graph().constant(n, &frequencies);
    vec![phase.sin(), phase.cos()]
}
