//! Networks as the library's transports: [`Flow`], [`Drift`] and [`EnergyModel`] (§5).
//!
//! Each holds frozen parameters and runs on a device. A row's result depends on that row alone, to the bit.
//! Flows and energy models should run in f64: the inverse of a flow, and the target's density at s = 1, are
//! then exact to rounding. A drift may run in f32: it only shapes proposals, and the same f32 values serve
//! simulation and density.

use std::sync::Arc;

use sterna::call::Scratch;
use sterna::frame::Frame;
use sterna::transport::{Drift, EnergyModel, Flow, Interval};
use sterna::{Batch, Evaluation, Target};

use crate::additive::AdditiveDrift;
use crate::conditions::Conditions;
use crate::device::{Device, Program};
use crate::egnn::EgnnDrift;
use crate::energy_model::{EnergyNetwork, Parts};
use crate::graph::Value;
use crate::mlp::MlpDrift;
use crate::parameters::Parameters;
use crate::realnvp::RealNvp;
use crate::runner::Runner;
use crate::{Error, Real, Result};

/// An architecture for a drift.
#[derive(Clone, Debug, PartialEq)]
pub enum DriftNetwork {
    /// An MLP.
    Mlp(MlpDrift),
    /// A network of each coordinate alone.
    Additive(AdditiveDrift),
    /// An EGNN.
    Egnn(EgnnDrift),
}

impl From<MlpDrift> for DriftNetwork {
    fn from(network: MlpDrift) -> Self {
        Self::Mlp(network)
    }
}

impl From<AdditiveDrift> for DriftNetwork {
    fn from(network: AdditiveDrift) -> Self {
        Self::Additive(network)
    }
}

impl From<EgnnDrift> for DriftNetwork {
    fn from(network: EgnnDrift) -> Self {
        Self::Egnn(network)
    }
}

impl DriftNetwork {
    /// Length of a point.
    pub fn dim(&self) -> usize {
        match self {
            Self::Mlp(network) => network.dim(),
            Self::Additive(network) => network.dim(),
            Self::Egnn(network) => network.dim(),
        }
    }

    /// Records b at `x`.
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> Value<'g> {
        match self {
            Self::Mlp(network) => network.record(conditions, x),
            Self::Additive(network) => network.record(conditions, x),
            Self::Egnn(network) => network.record(conditions, x),
        }
    }
}

/// A trained drift: the library's [`Drift`].
///
/// ```
/// use std::sync::Arc;
/// use sterna::{Batch, call::Scratch, transport::{Drift, Interval}};
/// use sterna_neural::{Cpu, Layout, MlpDriftConfig, NeuralDrift};
///
/// let mut layout = Layout::new();
/// let network = MlpDriftConfig::small(2, &[0.0, 0.5, 1.0])?.build(&mut layout, "drift")?;
/// let drift = NeuralDrift::<f32>::new(network, layout.initialise(1), Arc::new(Cpu::new(1)))?;
///
/// let x = Batch::from_vec(2, vec![0.3, -1.0]);
/// let mut b = Batch::zeros(1, 2);
/// drift.drift(&[Interval { lower: 0.0, upper: 0.5 }], &[0.25], &x, &mut b, &mut Scratch::default()).unwrap();
/// assert_eq!(b.row(0), [0.0, 0.0]); // untrained: no drift
/// # Ok::<(), sterna_neural::Error>(())
/// ```
pub struct NeuralDrift<T: Real> {
    dim: usize,
    runner: Runner<T>,
}

impl<T: Real> NeuralDrift<T> {
    /// Freezes a network's parameters.
    ///
    /// # Errors
    /// If the device cannot compile it.
    pub fn new(
        network: impl Into<DriftNetwork>,
        parameters: Parameters<T>,
        device: Arc<dyn Device<T>>,
    ) -> Result<Self> {
        let network = network.into();
        let dim = network.dim();
        let runner = Runner::new(device, parameters, move |graph| {
            let conditions = Conditions::inputs(graph);
            let x = graph.input("x", dim);
            vec![network.record(&conditions, x)]
        })?;
        Ok(Self { dim, runner })
    }
}

impl<T: Real> Drift for NeuralDrift<T> {
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        check_dim("a point", x.dim(), self.dim)?;
        let fill = |k: usize, to: &mut Vec<T>| match k {
            0 => to.extend(pairs.iter().map(|p| T::from_f64(p.lower))),
            1 => to.extend(pairs.iter().map(|p| T::from_f64(p.upper))),
            2 => to.extend(times.iter().map(|&t| T::from_f64(t))),
            _ => to.extend(x.as_slice().iter().map(|&x| T::from_f64(x))),
        };
        let read = |program: &dyn Program<T>| copy(program.output(0), out.as_mut_slice());
        self.runner.run(x.rows(), fill, read, scratch).map_err(stop)
    }
}

/// A trained flow: the library's [`Flow`].
pub struct NeuralFlow<T: Real> {
    dim: usize,
    forward: Runner<T>,
    inverse: Runner<T>,
}

impl<T: Real> NeuralFlow<T> {
    /// Freezes a flow's parameters.
    ///
    /// # Errors
    /// If the device cannot compile it.
    pub fn new(network: RealNvp, parameters: Parameters<T>, device: Arc<dyn Device<T>>) -> Result<Self> {
        let dim = network.dim();
        let build = |invert: bool| {
            let network = network.clone();
            Runner::new(device.clone(), parameters.clone(), move |graph| {
                let conditions = Conditions::pair_inputs(graph);
                let x = graph.input("x", dim);
                let (y, log_det) = if invert {
                    network.record_inverse(&conditions, x)
                } else {
                    network.record(&conditions, x)
                };
                vec![y, log_det]
            })
        };
        Ok(Self { dim, forward: build(false)?, inverse: build(true)? })
    }

    fn apply(
        &self,
        runner: &Runner<T>,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        check_dim("a point", x.dim(), self.dim)?;
        let (rows, values) = (x.rows(), x.as_mut_slice());
        // The same slice is read before the run and written after it.
        let shared = std::cell::RefCell::new(values);
        let fill = |k: usize, to: &mut Vec<T>| match k {
            0 => to.extend(pairs.iter().map(|p| T::from_f64(p.lower))),
            1 => to.extend(pairs.iter().map(|p| T::from_f64(p.upper))),
            _ => to.extend(shared.borrow().iter().map(|&x| T::from_f64(x))),
        };
        let read = |program: &dyn Program<T>| {
            copy(program.output(0), *shared.borrow_mut());
            copy(program.output(1), log_det);
        };
        runner.run(rows, fill, read, scratch).map_err(stop)
    }
}

impl<T: Real> Flow for NeuralFlow<T> {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(&self.forward, pairs, x, log_det, &mut scratch.get::<[Scratch; 2]>()[0])
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        self.apply(&self.inverse, pairs, x, log_det, &mut scratch.get::<[Scratch; 2]>()[1])
    }
}

/// A trained energy model: the library's [`EnergyModel`].
///
/// The target itself is asked in f64, at √s x; the network gives the rest. At s = 1 there is nothing but the
/// target, at s = 0 neither: such points cost no call of what they do not need.
pub struct NeuralEnergyModel<T: Real> {
    dim: usize,
    target: Arc<dyn Target>,
    /// The coordinates of the network, where they are not those of the target.
    frame: Option<Arc<Frame>>,
    /// c(0) log π̃(0): the log density at s = 0 and x = 0.
    log_start: f64,
    log_z_reference: f64,
    runner: Runner<T>,
}

#[derive(Default)]
struct EnergyMemory {
    /// Rows at s > 0, and √s x there with the target's answer.
    beyond: Vec<usize>,
    shrunk: Batch,
    target: Evaluation,
    /// Rows at 0 < s < 1, as places within `beyond`.
    between: Vec<usize>,
    of_network: Scratch,
}

impl<T: Real> NeuralEnergyModel<T> {
    /// Freezes a network's parameters around a target.
    ///
    /// # Errors
    /// If the device cannot compile it, target and network differ in dimension, or the target fails at 0.
    pub fn new(
        network: EnergyNetwork,
        target: Arc<dyn Target>,
        parameters: Parameters<T>,
        device: Arc<dyn Device<T>>,
    ) -> Result<Self> {
        Self::in_frame(network, target, parameters, device, None)
    }

    /// The same in the coordinates of a frame: points are z, the target is asked at x = μ + F z.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_frame(
        network: EnergyNetwork,
        target: Arc<dyn Target>,
        parameters: Parameters<T>,
        device: Arc<dyn Device<T>>,
        frame: Option<Arc<Frame>>,
    ) -> Result<Self> {
        let dim = network.dim();
        for given in [Some(target.dim()), frame.as_ref().map(|frame| frame.dim())].into_iter().flatten() {
            if given != dim {
                return Err(Error::Dimension { expected: dim, given });
            }
        }
        let log_mass = network.log_normal_mass();
        let runner = Runner::new(device, parameters, move |graph| {
            let time = graph.input("time", 1);
            let x = graph.input("x", dim);
            let Parts { share, pull, learned } = network.record_parts(time, x);
            vec![share, pull, learned, graph.gradient(learned, &[x])[0]]
        })?;
        let mut share = 0.0;
        let fill = |k: usize, to: &mut Vec<T>| to.resize(if k == 0 { 1 } else { dim }, T::from_f64(0.0));
        let read = |program: &dyn Program<T>| share = program.output(0)[0].to_f64();
        runner.run(1, fill, read, &mut Scratch::default())?;
        let mut out = Evaluation::zeros(1, dim);
        let mut origin = Batch::zeros(1, dim);
        if let Some(frame) = &frame {
            frame.place(origin.row_mut(0));
        }
        target.evaluate(&origin, &mut out).map_err(|e| Error::Host(e.to_string()))?;
        // Errata E13. The constant is free: it only keeps the path continuous, where it can be.
        let at_origin = share * out.log_density[0];
        let log_start = if at_origin.is_finite() { at_origin } else { 0.0 };
        Ok(Self { dim, target, frame, log_start, log_z_reference: log_start + log_mass, runner })
    }

    fn evaluate_rows(
        &self,
        times: &[f64],
        x: &Batch,
        out: &mut Evaluation,
        memory: &mut EnergyMemory,
    ) -> sterna::Result<()> {
        let EnergyMemory { beyond, shrunk, target, between, of_network } = memory;
        beyond.clear();
        beyond.extend((0..x.rows()).filter(|&i| times[i] > 0.0));
        between.clear();
        between.extend((0..beyond.len()).filter(|&k| times[beyond[k]] < 1.0));
        shrunk.set_size(beyond.len(), self.dim);
        target.score.set_size(beyond.len(), self.dim);
        target.set_rows(beyond.len());
        for (k, &i) in beyond.iter().enumerate() {
            let root = times[i].sqrt();
            shrunk.row_mut(k).iter_mut().zip(x.row(i)).for_each(|(to, x)| *to = root * x);
            if let Some(frame) = &self.frame {
                frame.place(shrunk.row_mut(k));
            }
        }
        if !beyond.is_empty() {
            self.target.evaluate(shrunk, target)?;
        }
        if let Some(frame) = &self.frame {
            (0..beyond.len()).for_each(|k| frame.standardise_score(target.score.row_mut(k)));
        }
        for i in (0..x.rows()).filter(|&i| times[i] <= 0.0) {
            let row = x.row(i);
            out.log_density[i] = self.log_start - 0.5 * row.iter().map(|x| x * x).sum::<f64>();
            out.score.row_mut(i).iter_mut().zip(row).for_each(|(score, x)| *score = -x);
        }
        for (k, &i) in beyond.iter().enumerate().filter(|(_, i)| times[**i] >= 1.0) {
            out.log_density[i] = target.log_density[k];
            out.score.row_mut(i).copy_from_slice(target.score.row(k));
        }
        if between.is_empty() {
            return Ok(());
        }
        let rows = || between.iter().map(|&k| beyond[k]);
        let fill = |input: usize, to: &mut Vec<T>| match input {
            0 => to.extend(rows().map(|i| T::from_f64(times[i]))),
            _ => to.extend(rows().flat_map(|i| x.row(i)).map(|&x| T::from_f64(x))),
        };
        let read = |program: &dyn Program<T>| {
            let [share, pull, learned, gradient] = [0, 1, 2, 3].map(|k| program.output(k));
            let pulls = pull.len() / between.len();
            for (row, (&k, i)) in between.iter().zip(rows()).enumerate() {
                let share = share[row].to_f64();
                let outer = share * times[i].sqrt();
                let mut bowl = 0.0;
                for (j, (out, &x)) in out.score.row_mut(i).iter_mut().zip(x.row(i)).enumerate() {
                    let pull = pull[row * pulls + if pulls == 1 { 0 } else { j }].to_f64();
                    bowl += pull * x * x;
                    *out = outer * target.score.row(k)[j] - pull * x + gradient[row * self.dim + j].to_f64();
                }
                out.log_density[i] = share * target.log_density[k] - 0.5 * bowl + learned[row].to_f64();
            }
        };
        self.runner.run(between.len(), fill, read, of_network).map_err(stop)
    }
}

impl<T: Real> EnergyModel for NeuralEnergyModel<T> {
    fn evaluate(
        &self,
        times: &[f64],
        x: &Batch,
        out: &mut Evaluation,
        scratch: &mut Scratch,
    ) -> sterna::Result<()> {
        check_dim("a point", x.dim(), self.dim)?;
        self.evaluate_rows(times, x, out, scratch.get())
    }

    fn log_z_reference(&self) -> f64 {
        self.log_z_reference
    }

    fn cost(&self, time: f64) -> (u64, u64) {
        (u64::from(time > 0.0), u64::from(time > 0.0 && time < 1.0))
    }
}

fn copy<T: Real>(from: &[T], to: &mut [f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.to_f64();
    }
}

fn check_dim(what: &'static str, found: usize, expected: usize) -> sterna::Result<()> {
    if found == expected { Ok(()) } else { Err(sterna::Error::Dimension { what, found, expected }) }
}

/// Our errors as the library's: whatever stops a network stops the run.
fn stop(error: Error) -> sterna::Error {
    sterna::Error::Target(Box::new(error))
}
