//! The loss of an energy model: see [`TrainDiffusion`](crate::TrainDiffusion).
//!
//! Its inputs are computed on the host, in f64, or recorded as operations of what a device draws.

use crate::energy_model::{EnergyNetwork, Parts};
use crate::graph::{Graph, Value};
use crate::target::GraphTarget;

/// What the loss is measured in.
pub struct Units {
    /// Eᵢ of a mode, as first guessed.
    pub precisions: Vec<f64>,
    /// Times with 1 − s below this look alike.
    pub shortest: f64,
    /// Log density of one sample: others are told relative to it, lest a large constant drown them in f32.
    pub log_level: f64,
}

/// What the loss is made of, beside the network.
#[derive(Clone, Copy)]
pub struct Inputs<'g> {
    /// s.
    pub time: Value<'g>,
    /// √s x₀ + √(1 − s) z.
    pub x: Value<'g>,
    /// The target's at √s x.
    pub target_score: Value<'g>,
    /// What the model's score is held against.
    pub wanted: Value<'g>,
    /// In units of one over this; 0 for points that teach nothing.
    pub scale: Value<'g>,
    /// The target's at √s x, relative to a level.
    pub log_density: Value<'g>,
    /// What the model's slope in s is held against.
    pub wanted_slope: Value<'g>,
    /// In units of one over this.
    pub slope_scale: Value<'g>,
}

impl<'g> Inputs<'g> {
    /// As the host fills them.
    pub fn record(graph: &'g Graph, dim: usize) -> Self {
        let (time, x) = (graph.input("time", 1), graph.input("x", dim));
        let [target_score, wanted, scale] =
            ["target_score", "wanted", "scale"].map(|name| graph.input(name, dim));
        let [log_density, wanted_slope, slope_scale] =
            ["log_density", "wanted_slope", "slope_scale"].map(|name| graph.input(name, 1));
        Self { time, x, target_score, wanted, scale, log_density, wanted_slope, slope_scale }
    }

    /// The same, computed from what a device draws: s and 1 − s, a sample and noise.
    pub fn of_draws(graph: &'g Graph, target: &dyn GraphTarget, units: &Units) -> Self {
        let dim = target.dim();
        let times = graph.input("times", 2);
        let [sample, z] = ["sample", "noise"].map(|name| graph.input(name, dim));
        let (time, rest) = (times.slice(0, 1), times.slice(1, 1));
        let (root, width) = (time.sqrt(), rest.sqrt());
        // The model's slope in s is that at a given x.
        let x = (root * sample + width * z).detach();
        let place = root * x;
        let (clean, noised) = (target.score(sample), target.score(place));
        let level = target.log_density(place) - units.log_level;
        // A point at which the target has no score teaches nothing.
        let known = ((clean + noised).sum_cols() + level).is_finite();
        let precision = graph.constant(dim, &units.precisions);
        let unit = (time + rest * precision).recip();
        let outward = dim as f64 - z.dot(z);
        Self {
            time,
            x,
            target_score: noised.finite_or_zero() * known,
            wanted: unit * (root * clean.finite_or_zero() - width * precision * z) * known,
            scale: (unit * precision).sqrt().recip() * known,
            log_density: level.finite_or_zero() * known,
            wanted_slope: (outward / rest + z.dot(sample) / (root * width)) * 0.5 * known,
            // Where noise is narrower than a mode, z says little at given x.
            slope_scale: rest.square() / (rest + time * (10.0 * units.shortest)) * root * known,
        }
    }
}

/// Records the loss.
pub fn record_loss<'g>(network: &EnergyNetwork, inputs: Inputs<'g>) -> Value<'g> {
    let Inputs { time, x, target_score, wanted, scale, log_density, wanted_slope, slope_scale } = inputs;
    let (graph, dim) = (time.graph(), network.dim());
    let Parts { share, pull, learned } = network.record_parts(time, x);
    let bowl = (pull * x.square()).sum_cols() * 0.5;
    let learned = graph.gradient(learned, &[x, time]);
    let score = learned[0] + share * time.sqrt() * target_score - pull * x;
    // log π̃(√s x) changes with s through its place alone.
    let drift = x.dot(target_score) * time.sqrt().recip() * 0.5;
    let slope_of = |value| graph.gradient(value, &[time])[0];
    let slope = learned[1] + slope_of(share) * log_density + share * drift - slope_of(bowl);
    let off = ((score - wanted) * scale).square().sum_cols();
    let off_slope = ((slope - wanted_slope) * slope_scale - network.record_growth(time)).square();
    (off + off_slope).mean_rows() * (1.0 / dim as f64)
}
