//! A flow of the soft torsions of a molecule: learned maps of circles beside the fitted ones (§5.1 in internal
//! coordinates).
//!
//! Each coupling layer keeps some of the torsions and turns the others by Möbius maps of the circle,
//!
//! w ↦ (w + a) / (1 + ā w),   w = exp(imθ),   |a| < 1,
//!
//! whose points a an MLP computes from sines and cosines of the kept ones and from the pair. The map with −a undoes it,
//! and m counts the symmetry of a torsion: a methyl group's three equal positions move alike. In angles
//!
//! θ′ = θ + (2/m) arg u,   dθ′/dθ = (1 − |a|²) / |u|²,   u = 1 + a exp(−imθ);
//!
//! u stays right of the imaginary axis, so that no turn is lost wherever a circle is cut. All points start at zero,
//! which is the identity; a strength below 1 brings them nearer to it.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::accelerator::Direction;
use sterna::lanes::one;
use sterna_neural::{Conditioning, Conditions, Hidden, HostFunction, Layout, Mlp, Result, Value};

/// Multiples of a torsion that networks see, and that each layer's maps have one after the other.
const HARMONICS: usize = 2;

/// Largest |a|: slopes of one map stay within a factor of (1 + |a|) / (1 − |a|).
const MAX_RADIUS: f64 = 0.8;

/// Size and conditioning of a [`CircularFlow`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircularFlowConfig {
    /// Number of equal positions of each torsion.
    pub symmetries: Vec<usize>,
    /// Coupling layers.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
    /// Features of the pair.
    pub conditioning: Conditioning,
}

impl CircularFlowConfig {
    /// Adds the parameters.
    pub fn build(&self, layout: &mut Layout) -> CircularFlow {
        let torsions = self.symmetries.len();
        let inputs = 2 * HARMONICS * torsions + self.conditioning.features(false);
        let network =
            |i: usize| Mlp::new(layout, &format!("soft.{i}"), inputs, self.hidden, 2 * HARMONICS * torsions);
        CircularFlow { networks: (0..self.layers).map(network).collect(), config: self.clone() }
    }
}

/// The flow; see the module's documentation.
#[derive(Clone, Debug)]
pub struct CircularFlow {
    config: CircularFlowConfig,
    networks: Vec<Mlp>,
}

/// A point of the unit disc for each torsion.
type Points<'g> = [Value<'g>; 2];

impl CircularFlow {
    /// 1 for torsions that layer `i` keeps: every other one, the others, every other pair, …
    fn kept(&self, i: usize) -> Vec<f64> {
        let keeps = |j: usize| ((j >> (i / 2 % 3)) + i).is_multiple_of(2);
        (0..self.config.symmetries.len()).map(|j| f64::from(u8::from(keeps(j)))).collect()
    }

    /// The `k`-th multiple of each torsion's symmetry.
    fn multiples(&self, k: usize) -> Vec<f64> {
        self.config.symmetries.iter().map(|symmetry| (k * symmetry) as f64).collect()
    }

    /// The points of layer `i`, one for each multiple; zero for torsions that it keeps.
    fn points<'g>(&self, i: usize, features: Value<'g>, span: Value<'g>, soft: Value<'g>) -> Vec<Points<'g>> {
        let (graph, torsions) = (soft.graph(), soft.cols());
        let kept = graph.constant(torsions, &self.kept(i));
        let mut parts = vec![features];
        for k in 1..=HARMONICS {
            let angle = soft * graph.constant(torsions, &self.multiples(k));
            parts.extend([angle.cos() * kept, angle.sin() * kept]);
        }
        let raw = self.networks[i].record(graph.concat(&parts));
        let moved = (1.0 - kept) * span;
        let point = |k: usize| {
            let [x, y] = [2 * k, 2 * k + 1].map(|part| raw.slice(part * torsions, torsions) * moved);
            let shrink = (x * x + y * y + 1.0).sqrt().recip() * MAX_RADIUS;
            [x * shrink, y * shrink]
        };
        (0..HARMONICS).map(point).collect()
    }

    /// One Möbius map of each torsion, and the sum of the logs of their slopes.
    fn turn<'g>(&self, k: usize, [x, y]: Points<'g>, soft: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (graph, multiples) = (soft.graph(), self.multiples(k));
        let angle = soft * graph.constant(multiples.len(), &multiples);
        let (c, s) = (angle.cos(), angle.sin());
        let (re, im) = (x * c + y * s + 1.0, y * c - x * s);
        let argument = graph.host(Arc::new(Arctangent), &[im * re.recip()], soft.cols());
        let shares: Vec<f64> = multiples.iter().map(|m| 2.0 / m).collect();
        let turned = soft + argument * graph.constant(shares.len(), &shares);
        let log_slope = (1.0 - x * x - y * y).log() - (re * re + im * im).log();
        (turned, log_slope.sum_cols())
    }

    /// Records the image of the torsions, and log |det|; or, going backward, of the point whose image they are.
    /// `strength` is one column.
    pub fn record<'g>(
        &self,
        direction: Direction,
        conditions: &Conditions<'g>,
        strength: Value<'g>,
        mut soft: Value<'g>,
    ) -> (Value<'g>, Value<'g>) {
        let span = self.config.conditioning.span(conditions) * strength;
        let features = self.config.conditioning.record(conditions);
        let mut log_det = soft.graph().scalar(0.0).broadcast(soft.slice(0, 1).shape());
        let layers = self.networks.len();
        for n in 0..layers {
            let i = if direction == Direction::Forward { n } else { layers - 1 - n };
            let points = self.points(i, features, span, soft);
            for step in 0..HARMONICS {
                let (k, points) = match direction {
                    Direction::Forward => (step, points[step]),
                    Direction::Backward => {
                        let k = HARMONICS - 1 - step;
                        (k, points[k].map(|part| -part))
                    }
                };
                let (turned, log_slope) = self.turn(k + 1, points, soft);
                soft = turned;
                log_det = log_det + log_slope;
            }
        }
        (soft, log_det)
    }
}

/// arctan x, on the host.
struct Arctangent;

impl HostFunction for Arctangent {
    fn call(&self, _rows: usize, inputs: &[&[f64]], output: &mut [f64]) -> Result<()> {
        output.iter_mut().zip(inputs[0]).for_each(|(y, x)| *y = one::atan2(*x, 1.0));
        Ok(())
    }

    fn pull_back<'g>(&self, inputs: &[Value<'g>], _: Value<'g>, g: Value<'g>) -> Vec<Option<Value<'g>>> {
        vec![Some(g * (inputs[0] * inputs[0] + 1.0).recip())]
    }
}
