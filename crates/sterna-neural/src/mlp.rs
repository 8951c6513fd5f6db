//! Multilayer perceptrons, and the drift that is one (§5.2, App. E.2).

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditioning, Conditions};
use crate::graph::{Graph, Value};
use crate::parameters::{Init, Layout, Slot};
use crate::{Error, Result};

/// Sizes of hidden layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Number of hidden layers.
    pub layers: usize,
    /// Width of each.
    pub width: usize,
}

impl Hidden {
    /// `layers` of `width`.
    pub const fn new(layers: usize, width: usize) -> Self {
        Self { layers, width }
    }

    pub(crate) fn check(self) -> Result<Self> {
        let wrong = |field, value: usize| {
            Err(Error::Config { field, value: value.to_string(), reason: "must be at least 1" })
        };
        match self {
            Self { layers: 0, .. } => wrong("layers", 0),
            Self { width: 0, .. } => wrong("width", 0),
            _ => Ok(self),
        }
    }
}

/// Linear layers with silu between them. The last layer starts at zero, so that the network's output does.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    layers: Vec<(Slot, Slot)>,
}

impl Mlp {
    /// Adds the parameters of a network from `inputs` to `outputs` columns.
    pub fn new(layout: &mut Layout, name: &str, inputs: usize, hidden: Hidden, outputs: usize) -> Self {
        Self::with_last(layout, name, inputs, hidden, outputs, Init::Constant(0.0))
    }

    /// Like [`new`](Self::new), with other starting weights for the last layer.
    pub fn with_last(
        layout: &mut Layout,
        name: &str,
        inputs: usize,
        hidden: Hidden,
        outputs: usize,
        last: Init,
    ) -> Self {
        let mut from = inputs;
        let layers = (0..=hidden.layers)
            .map(|layer| {
                let end = layer == hidden.layers;
                let to = if end { outputs } else { hidden.width };
                let init = if end { last } else { Init::Scaled(SILU_GAIN) };
                let weight = layout.add(format!("{name}.{layer}.weight"), from, to, init);
                let bias = layout.add(format!("{name}.{layer}.bias"), 1, to, Init::Constant(0.0));
                from = to;
                (weight, bias)
            })
            .collect();
        Self { layers }
    }

    /// Records the network's output at `x`.
    pub fn record<'g>(&self, x: Value<'g>) -> Value<'g> {
        let graph: &'g Graph = x.graph();
        let mut h = x;
        for (i, (weight, bias)) in self.layers.iter().enumerate() {
            h = if i == 0 { h } else { h.silu() };
            h = h.matmul(weight.record(graph)) + bias.record(graph);
        }
        h
    }
}

/// E[silu(z)²] of a standard normal z is about 1/2.8: this factor keeps the size of activations.
const SILU_GAIN: f64 = 1.67;

/// A drift b(x; β, β′, time) that is an MLP of the point and the conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct MlpDrift {
    dim: usize,
    conditioning: Conditioning,
    mlp: Mlp,
}

/// Size and conditioning of an [`MlpDrift`].
///
/// ```
/// use sterna_neural::{Layout, MlpDriftConfig};
///
/// let config = MlpDriftConfig::small(10, &[0.0, 0.1, 0.4, 1.0]).unwrap();
/// let mut layout = Layout::new();
/// let drift = config.build(&mut layout, "drift").unwrap();
/// # let _ = drift;
/// assert!(layout.len() > 10_000);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MlpDriftConfig {
    /// Length of a point.
    pub dim: usize,
    /// Hidden layers.
    pub hidden: Hidden,
    /// Features of pair and time.
    pub conditioning: Conditioning,
}

impl MlpDriftConfig {
    /// The paper's size for GMM-d and MW-32: 4 layers of 512.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn paper(dim: usize, schedule: &[f64]) -> Result<Self> {
        Ok(Self { dim, hidden: Hidden::new(4, 512), conditioning: Conditioning::new(schedule)? })
    }

    /// For CPUs: 3 layers of 96 give most of the gain at a thirtieth of the cost.
    ///
    /// # Errors
    /// If the schedule does not rise from 0 to 1.
    pub fn small(dim: usize, schedule: &[f64]) -> Result<Self> {
        Ok(Self { dim, hidden: Hidden::new(3, 96), conditioning: Conditioning::new(schedule)? })
    }

    /// Adds the parameters.
    ///
    /// # Errors
    /// If a size is zero.
    pub fn build(&self, layout: &mut Layout, name: &str) -> Result<MlpDrift> {
        let inputs = self.dim + self.conditioning.features(true);
        let mlp = Mlp::new(layout, name, inputs, self.hidden.check()?, self.dim);
        Ok(MlpDrift { dim: self.dim, conditioning: self.conditioning.clone(), mlp })
    }
}

impl MlpDrift {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Records b at `x`; it vanishes as the pair closes up (errata E9).
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> Value<'g> {
        let features = self.conditioning.record(conditions);
        self.mlp.record(x.graph().concat(&[x, features])) * self.conditioning.span(conditions)
    }
}
