//! A flow of the stiff coordinates of a molecule, conditional on its soft torsions: what a network adds to the
//! conditional affine transport (§5.1 in internal coordinates).
//!
//! Each coupling layer keeps some of the standardised stiff coordinates and moves the others by a scale and a shift
//! that an MLP computes from the kept ones, from sines and cosines of the soft torsions, and from the pair. The first
//! layer keeps none. All start at zero, so that training begins at the affine transport. A strength below 1 shrinks
//! all scales and shifts: networks that learned too much of their samples still serve in part.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::accelerator::Direction;
use sterna::transport::Interval;
use sterna_molecule::StiffMap;
use sterna_neural::{Conditioning, Conditions, Cpu, Hidden, Layout, Mlp, Parameters, Result, Runner, Value};

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

/// A trained flow, frozen: f64, so that the way back is exact to rounding.
pub struct FrozenStiffFlow {
    forward: Runner<f64>,
    inverse: Runner<f64>,
    stiff: usize,
    /// Lower end of each pair, and the strength of the flow there.
    strengths: Vec<(f64, f64)>,
}

impl FrozenStiffFlow {
    /// `strengths[n − 1]` is that of pair n of the conditioning's schedule; 0 keeps the affine transport.
    pub fn new(flow: &StiffFlow, parameters: &Parameters<f64>, strengths: &[f64]) -> Result<Self> {
        let (stiff, soft) = (flow.config.spread.len(), flow.config.soft);
        let build = |direction: Direction| {
            let flow = flow.clone();
            Runner::new(Arc::new(Cpu::new(1)), parameters.clone(), move |graph| {
                let conditions = Conditions::pair_inputs(graph);
                let torsions = graph.input("soft", soft);
                let strength = graph.input("strength", 1);
                let z = graph.input("z", stiff);
                let (y, log_det) = flow.record(direction, &conditions, torsions, strength, z);
                vec![y, log_det]
            })
        };
        let schedule = flow.config.conditioning.schedule.iter();
        let strengths = schedule.copied().zip(strengths.iter().copied()).collect();
        let [forward, inverse] = [Direction::Forward, Direction::Backward].map(build);
        Ok(Self { forward: forward?, inverse: inverse?, stiff, strengths })
    }

    /// Pairs that training did not know have none.
    fn strength(&self, pair: &Interval) -> f64 {
        self.strengths.iter().find(|(lower, _)| *lower == pair.lower).map_or(0.0, |(_, strength)| *strength)
    }

    fn apply(
        &self,
        runner: &Runner<f64>,
        pairs: &[Interval],
        soft: &[f64],
        z: &mut [f64],
        log_det: &mut [f64],
    ) -> sterna::Result<()> {
        // The same slice is read before the run and written after it.
        let shared = std::cell::RefCell::new(z);
        let fill = |k: usize, to: &mut Vec<f64>| match k {
            0 => to.extend(pairs.iter().map(|p| p.lower)),
            1 => to.extend(pairs.iter().map(|p| p.upper)),
            2 => to.extend_from_slice(soft),
            3 => to.extend(pairs.iter().map(|pair| self.strength(pair))),
            _ => to.extend_from_slice(&shared.borrow()),
        };
        let read = |program: &dyn sterna_neural::Program<f64>| {
            let mut z = shared.borrow_mut();
            for (i, pair) in pairs.iter().enumerate() {
                let here = i * self.stiff..(i + 1) * self.stiff;
                // Without strength not even rounding should differ from the affine transport.
                let used = self.strength(pair) != 0.0;
                if used {
                    z[here.clone()].copy_from_slice(&program.output(0)[here]);
                }
                log_det[i] = if used { program.output(1)[i] } else { 0.0 };
            }
        };
        runner.run(pairs.len(), fill, read).map_err(sterna_neural::into_library)
    }
}

impl StiffMap for FrozenStiffFlow {
    fn forward(
        &self,
        pairs: &[Interval],
        soft: &[f64],
        z: &mut [f64],
        log_det: &mut [f64],
    ) -> sterna::Result<()> {
        self.apply(&self.forward, pairs, soft, z, log_det)
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        soft: &[f64],
        z: &mut [f64],
        log_det: &mut [f64],
    ) -> sterna::Result<()> {
        self.apply(&self.inverse, pairs, soft, z, log_det)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Interval = Interval { lower: 0.2, upper: 0.5 };

    /// A flow with weights that do something, of some strength on its second pair alone.
    fn flow() -> FrozenStiffFlow {
        let config = StiffFlowConfig {
            spread: vec![0.01, 0.2, 0.05, 1.0, 0.3],
            soft: 2,
            layers: 4,
            hidden: Hidden::new(1, 8),
            conditioning: Conditioning::new(&[0.0, 0.2, 0.5, 1.0]).unwrap(),
        };
        let mut layout = Layout::new();
        let flow = config.build(&mut layout);
        let values = (0..layout.len()).map(|i| 0.6 * (1.3 * i as f64 + 0.2).sin()).collect();
        FrozenStiffFlow::new(&flow, &Parameters::new(values), &[0.0, 0.8, 0.0]).unwrap()
    }

    fn forward(flow: &FrozenStiffFlow, pair: Interval, soft: [f64; 2], z: [f64; 5]) -> ([f64; 5], f64) {
        let (mut out, mut log_det) = (z, [0.0]);
        flow.forward(&[pair], &soft, &mut out, &mut log_det).unwrap();
        (out, log_det[0])
    }

    #[test]
    fn the_inverse_undoes_and_the_determinant_is_that_of_differences() {
        let (flow, soft, z) = (flow(), [0.4, -2.0], [0.004, -0.1, 0.02, 0.7, -0.2]);
        let (image, log_det) = forward(&flow, PAIR, soft, z);
        assert!(image.iter().zip(&z).all(|(a, b)| (a - b).abs() > 1e-6), "every coordinate moves");
        let (mut back, mut log_det_back) = (image, [0.0]);
        flow.inverse(&[PAIR], &soft, &mut back, &mut log_det_back).unwrap();
        assert!(back.iter().zip(&z).all(|(a, b)| (a - b).abs() < 1e-13));
        assert!((log_det + log_det_back[0]).abs() < 1e-12);
        // Columns of the Jacobian by differences, then Gauss.
        let mut jacobian = [[0.0; 5]; 5];
        for j in 0..5 {
            let at = |h: f64| {
                let mut z = z;
                z[j] += h;
                forward(&flow, PAIR, soft, z).0
            };
            let (up, down) = (at(1e-6), at(-1e-6));
            (0..5).for_each(|i| jacobian[i][j] = (up[i] - down[i]) / 2e-6);
        }
        let mut found = 0.0;
        for k in 0..5 {
            let pivot =
                (k..5).max_by(|&a, &b| jacobian[a][k].abs().total_cmp(&jacobian[b][k].abs())).unwrap();
            jacobian.swap(k, pivot);
            found += jacobian[k][k].abs().ln();
            for i in k + 1..5 {
                let factor = jacobian[i][k] / jacobian[k][k];
                (k..5).for_each(|j| jacobian[i][j] -= factor * jacobian[k][j]);
            }
        }
        assert!((found - log_det).abs() < 1e-6, "{found} {log_det}");
    }

    #[test]
    fn pairs_without_the_flow_keep_the_affine_transport() {
        let z = [0.004, -0.1, 0.02, 0.7, -0.2];
        let (image, log_det) = forward(&flow(), Interval { lower: 0.5, upper: 1.0 }, [0.4, -2.0], z);
        assert_eq!((image, log_det), (z, 0.0));
    }
}
