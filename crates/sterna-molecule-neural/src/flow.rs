//! What a network adds to the conditional affine transport of a molecule: a flow of the soft torsions, then one of the
//! stiff coordinates given the torsions at the pair's upper end.

use crate::circular_flow::{CircularFlow, CircularFlowConfig};
use crate::stiff_flow::{StiffFlow, StiffFlowConfig};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sterna::accelerator::Direction;
use sterna::call::Scratch;
use sterna::transport::Interval;
use sterna_molecule::InnerMap;
use sterna_neural::{Conditions, Cpu, Layout, Parameters, Result, Runner, Value};

/// Sizes of a [`MoleculeFlow`].
///
/// ```
/// use sterna_molecule_neural::{CircularFlowConfig, MoleculeFlowConfig, StiffFlowConfig};
/// use sterna_neural::{Conditioning, Hidden, Layout};
///
/// let (conditioning, hidden) = (Conditioning::new(&[0.0, 0.3, 1.0])?, Hidden::new(1, 8));
/// let symmetries = vec![1, 3]; // one torsion, and one of a methyl group
/// let soft = CircularFlowConfig { symmetries, layers: 4, hidden, conditioning: conditioning.clone() };
/// let stiff = StiffFlowConfig { spread: vec![0.01, 0.2], soft: 2, layers: 2, hidden, conditioning };
/// let mut layout = Layout::new();
/// let flow = MoleculeFlowConfig { soft, stiff }.build(&mut layout);
/// # let _ = flow;
/// assert!(layout.len() > 100);
/// # Ok::<(), sterna_neural::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoleculeFlowConfig {
    /// Of the soft torsions.
    pub soft: CircularFlowConfig,
    /// Of the stiff coordinates.
    pub stiff: StiffFlowConfig,
}

impl MoleculeFlowConfig {
    /// Adds the parameters.
    pub fn build(&self, layout: &mut Layout) -> MoleculeFlow {
        MoleculeFlow { soft: self.soft.build(layout), stiff: self.stiff.build(layout), config: self.clone() }
    }
}

/// Both flows.
#[derive(Clone, Debug)]
pub struct MoleculeFlow {
    config: MoleculeFlowConfig,
    soft: CircularFlow,
    stiff: StiffFlow,
}

/// Values on either side of a [`MoleculeFlow`].
#[derive(Clone, Copy, Debug)]
pub struct Inner<'g> {
    /// Soft torsions.
    pub soft: Value<'g>,
    /// Standardised stiff coordinates.
    pub z: Value<'g>,
}

impl MoleculeFlow {
    /// Records the image and log |det|; or, going backward, the point whose image it is. `strength` is one column.
    pub fn record<'g>(
        &self,
        direction: Direction,
        conditions: &Conditions<'g>,
        strength: Value<'g>,
        Inner { soft, z }: Inner<'g>,
    ) -> (Inner<'g>, Value<'g>) {
        let (moved, soft_log_det) = self.soft.record(direction, conditions, strength, soft);
        let upper = if direction == Direction::Forward { moved } else { soft };
        let (z, log_det) = self.stiff.record(direction, conditions, upper, strength, z);
        (Inner { soft: moved, z }, soft_log_det + log_det)
    }
}

/// A trained flow, frozen: f64, so that the way back is exact to rounding.
pub struct FrozenMoleculeFlow {
    forward: Runner<f64>,
    inverse: Runner<f64>,
    /// Lower end of each pair, and the strength of the flow there.
    strengths: Vec<(f64, f64)>,
}

impl FrozenMoleculeFlow {
    /// `strengths[n − 1]` is that of pair n of the conditioning's schedule; 0 keeps the affine transport.
    pub fn new(flow: &MoleculeFlow, parameters: &Parameters<f64>, strengths: &[f64]) -> Result<Self> {
        let (torsions, stiff) = (flow.config.soft.symmetries.len(), flow.config.stiff.spread.len());
        let build = |direction: Direction| {
            let flow = flow.clone();
            Runner::new(Arc::new(Cpu::new(1)), parameters.clone(), move |graph| {
                let conditions = Conditions::pair_inputs(graph);
                let strength = graph.input("strength", 1);
                let inner = Inner { soft: graph.input("soft", torsions), z: graph.input("z", stiff) };
                let (Inner { soft, z }, log_det) = flow.record(direction, &conditions, strength, inner);
                vec![soft, z, log_det]
            })
        };
        let schedule = flow.config.stiff.conditioning.schedule.iter();
        let strengths = schedule.copied().zip(strengths.iter().copied()).collect();
        let [forward, inverse] = [Direction::Forward, Direction::Backward].map(build);
        Ok(Self { forward: forward?, inverse: inverse?, strengths })
    }

    /// That of the nearest pair that training knew: between its rounds chains move a little.
    fn strength(&self, pair: &Interval) -> f64 {
        let off = |(lower, _): &&(f64, f64)| (lower - pair.lower).abs();
        self.strengths.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map_or(0.0, |(_, strength)| *strength)
    }

    fn apply(
        &self,
        runner: &Runner<f64>,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        // The same slices are read before the run and written after it.
        let shared = std::cell::RefCell::new([soft, z]);
        let fill = |k: usize, to: &mut Vec<f64>| match k {
            0 => to.extend(pairs.iter().map(|p| p.lower)),
            1 => to.extend(pairs.iter().map(|p| p.upper)),
            2 => to.extend(pairs.iter().map(|pair| self.strength(pair))),
            _ => to.extend_from_slice(shared.borrow()[k - 3]),
        };
        let read = |program: &dyn sterna_neural::Program<f64>| {
            for (i, pair) in pairs.iter().enumerate() {
                // Without strength not even rounding should differ from the affine transport.
                let used = self.strength(pair) != 0.0;
                log_det[i] = if used { program.output(2)[i] } else { 0.0 };
                for (k, values) in shared.borrow_mut().iter_mut().enumerate().filter(|_| used) {
                    let cols = values.len() / pairs.len();
                    let here = i * cols..(i + 1) * cols;
                    values[here.clone()].copy_from_slice(&program.output(k)[here]);
                }
            }
        };
        runner.run(pairs.len(), fill, read, scratch).map_err(sterna_neural::into_library)
    }
}

impl InnerMap for FrozenMoleculeFlow {
    fn forward(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(&self.forward, pairs, soft, z, log_det, scratch)
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        soft: &mut [f64],
        z: &mut [f64],
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(&self.inverse, pairs, soft, z, log_det, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;
    use sterna_neural::{Conditioning, Hidden};

    const PAIR: Interval = Interval { lower: 0.2, upper: 0.5 };
    /// Three torsions, the last of a methyl group, and five stiff coordinates.
    const START: [f64; 8] = [0.4, -2.0, 3.1, 0.004, -0.1, 0.02, 0.7, -0.2];

    /// A flow of some strength on its second pair alone, with weights of the given size.
    fn flow(size: f64) -> FrozenMoleculeFlow {
        let conditioning = Conditioning::new(&[0.0, 0.2, 0.5, 1.0]).unwrap();
        let hidden = Hidden::new(1, 8);
        let soft = CircularFlowConfig {
            symmetries: vec![1, 1, 3],
            layers: 4,
            hidden,
            conditioning: conditioning.clone(),
        };
        let spread = vec![0.01, 0.2, 0.05, 1.0, 0.3];
        let stiff = StiffFlowConfig { spread, soft: 3, layers: 4, hidden, conditioning };
        let mut layout = Layout::new();
        let flow = MoleculeFlowConfig { soft, stiff }.build(&mut layout);
        let values = (0..layout.len()).map(|i| size * (1.3 * i as f64 + 0.2).sin()).collect();
        FrozenMoleculeFlow::new(&flow, &Parameters::new(values), &[0.0, 0.8, 0.0]).unwrap()
    }

    fn forward(flow: &FrozenMoleculeFlow, pair: Interval, x: [f64; 8]) -> ([f64; 8], f64) {
        let (mut out, mut log_det) = (x, [0.0]);
        let (soft, z) = out.split_at_mut(3);
        flow.forward(&[pair], soft, z, &mut log_det, &mut Scratch::default()).unwrap();
        (out, log_det[0])
    }

    /// log |det| of the flow by differences: columns of the Jacobian, then Gauss.
    fn numerical_log_det(flow: &FrozenMoleculeFlow, x: [f64; 8]) -> f64 {
        let mut jacobian = [[0.0; 8]; 8];
        for j in 0..8 {
            let at = |h: f64| {
                let mut x = x;
                x[j] += h;
                forward(flow, PAIR, x).0
            };
            let (up, down) = (at(1e-6), at(-1e-6));
            (0..8).for_each(|i| jacobian[i][j] = (up[i] - down[i]) / 2e-6);
        }
        let mut found = 0.0;
        for k in 0..8 {
            let pivot =
                (k..8).max_by(|&a, &b| jacobian[a][k].abs().total_cmp(&jacobian[b][k].abs())).unwrap();
            jacobian.swap(k, pivot);
            found += jacobian[k][k].abs().ln();
            for i in k + 1..8 {
                let factor = jacobian[i][k] / jacobian[k][k];
                (k..8).for_each(|j| jacobian[i][j] -= factor * jacobian[k][j]);
            }
        }
        found
    }

    #[test]
    fn the_inverse_undoes_and_the_determinant_is_that_of_differences() {
        let flow = flow(0.6);
        for turns in [0.0, 0.3, 0.61, 0.87] {
            let start: [f64; 8] = std::array::from_fn(|i| START[i] + if i < 3 { TAU * turns } else { 0.0 });
            let (image, log_det) = forward(&flow, PAIR, start);
            assert!(image.iter().zip(&start).all(|(a, b)| (a - b).abs() > 1e-6), "every coordinate moves");
            let (mut back, mut log_det_back) = (image, [0.0]);
            let (soft, z) = back.split_at_mut(3);
            flow.inverse(&[PAIR], soft, z, &mut log_det_back, &mut Scratch::default()).unwrap();
            assert!(back.iter().zip(&start).all(|(a, b)| (a - b).abs() < 1e-13), "{back:?} {start:?}");
            assert!((log_det + log_det_back[0]).abs() < 1e-12);
            let found = numerical_log_det(&flow, start);
            assert!((found - log_det).abs() < 1e-6, "{found} {log_det}");
        }
    }

    #[test]
    fn equal_positions_of_a_methyl_group_move_alike() {
        let flow = flow(0.6);
        let mut turned = START;
        turned[2] += TAU / 3.0;
        let (there, image) = (forward(&flow, PAIR, START), forward(&flow, PAIR, turned));
        for i in 0..3 {
            let expected = there.0[i] + if i == 2 { TAU / 3.0 } else { 0.0 };
            assert!((image.0[i] - expected).abs() < 1e-13, "torsion {i}");
        }
    }

    #[test]
    fn pairs_without_the_flow_keep_the_affine_transport() {
        let pair = Interval { lower: 0.5, upper: 1.0 };
        assert_eq!(forward(&flow(0.6), pair, START), (START, 0.0));
    }

    #[test]
    fn pairs_that_moved_keep_their_flow() {
        let moved = Interval { lower: 0.22, upper: 0.47 };
        assert_ne!(forward(&flow(0.6), moved, START).1, 0.0);
    }

    #[test]
    fn training_starts_at_the_affine_transport() {
        assert_eq!(forward(&flow(0.0), PAIR, START).1, 0.0);
    }
}
