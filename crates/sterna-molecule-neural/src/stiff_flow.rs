//! A flow of the stiff coordinates of a molecule, conditional on its soft torsions: what a network adds to the
//! conditional affine transport (§5.1 in internal coordinates).
//!
//! Each coupling layer keeps some of the standardised stiff coordinates and moves the others by a scale and a shift
//! that an MLP computes from the kept ones, from sines and cosines of the soft torsions, and from the pair. The first
//! layer keeps none. All start at zero, so that training begins at the affine transport. A strength below 1 shrinks
//! all scales and shifts: networks that learned too much of their samples still serve in part.

use serde::{Deserialize, Serialize};
use sterna::accelerator::Direction;
use sterna_neural::{Conditioning, Conditions, Hidden, Layout, Mlp, Value};

/// Multiples of the soft torsions that networks see.
const HARMONICS: usize = 2;

/// Largest |log scale| of one layer.
const MAX_LOG_SCALE: f64 = 1.0;

/// Size and conditioning of a [`StiffFlow`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StiffFlowConfig {
    /// Spread of each standardised stiff coordinate.
    pub spread: Vec<f64>,
    /// Number of soft torsions.
    pub soft: usize,
    /// Coupling layers, the first of which keeps nothing.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
    /// Features of the pair.
    pub conditioning: Conditioning,
}

impl StiffFlowConfig {
    /// Adds the parameters.
    pub fn build(&self, layout: &mut Layout) -> StiffFlow {
        let stiff = self.spread.len();
        let features = 2 * HARMONICS * self.soft + self.conditioning.features(false);
        let network = |i: usize| {
            let inputs = if i == 0 { features } else { stiff + features };
            Mlp::new(layout, &format!("stiff.{i}"), inputs, self.hidden, 2 * stiff)
        };
        StiffFlow { networks: (0..self.layers).map(network).collect(), config: self.clone() }
    }
}

/// The flow; see the module's documentation.
#[derive(Clone, Debug)]
pub struct StiffFlow {
    config: StiffFlowConfig,
    networks: Vec<Mlp>,
}

impl StiffFlow {
    /// 1 for coordinates that layer `i` keeps: none, every other one, the odd ones, every other pair, …
    fn kept(&self, i: usize) -> Vec<f64> {
        let keeps = |j: usize| i > 0 && ((j >> ((i - 1) / 2 % 5)) + i).is_multiple_of(2);
        (0..self.config.spread.len()).map(|j| f64::from(u8::from(keeps(j)))).collect()
    }

    fn features<'g>(&self, conditions: &Conditions<'g>, soft: Value<'g>) -> Value<'g> {
        let mut parts = vec![self.config.conditioning.record(conditions)];
        for k in 1..=HARMONICS {
            let angle = soft * k as f64;
            parts.extend([angle.cos(), angle.sin()]);
        }
        soft.graph().concat(&parts)
    }

    fn scale_and_shift<'g>(
        &self,
        i: usize,
        features: Value<'g>,
        span: Value<'g>,
        z: Value<'g>,
    ) -> (Value<'g>, Value<'g>) {
        let (graph, stiff) = (z.graph(), self.config.spread.len());
        let kept = graph.constant(stiff, &self.kept(i));
        let input = match i {
            0 => features,
            _ => graph.concat(&[z * kept, features]),
        };
        let raw = self.networks[i].record(input);
        let moved = (1.0 - kept) * span;
        let scale = (raw.slice(0, stiff) * (1.0 / MAX_LOG_SCALE)).tanh() * MAX_LOG_SCALE;
        (scale * moved, raw.slice(stiff, stiff) * moved)
    }

    /// Records the image of `z` given the soft torsions at the upper end, and log |det|; or, going backward, the
    /// point whose image it is. `strength` is one column.
    pub fn record<'g>(
        &self,
        direction: Direction,
        conditions: &Conditions<'g>,
        soft: Value<'g>,
        strength: Value<'g>,
        z: Value<'g>,
    ) -> (Value<'g>, Value<'g>) {
        let span = self.config.conditioning.span(conditions) * strength;
        let features = self.features(conditions, soft);
        let mut y = z * self.inverse_spread(z);
        let mut log_det = z.graph().scalar(0.0).broadcast(z.slice(0, 1).shape());
        let last = self.networks.len() - 1;
        for n in 0..=last {
            match direction {
                Direction::Forward => {
                    let (scale, shift) = self.scale_and_shift(n, features, span, y);
                    y = y * scale.exp() + shift;
                    log_det = log_det + scale.sum_cols();
                }
                Direction::Backward => {
                    let (scale, shift) = self.scale_and_shift(last - n, features, span, y);
                    y = (y - shift) * (-scale).exp();
                    log_det = log_det - scale.sum_cols();
                }
            }
        }
        (y * z.graph().constant(self.config.spread.len(), &self.config.spread), log_det)
    }

    fn inverse_spread<'g>(&self, z: Value<'g>) -> Value<'g> {
        let inverse: Vec<f64> = self.config.spread.iter().map(|s| 1.0 / s).collect();
        z.graph().constant(inverse.len(), &inverse)
    }
}
