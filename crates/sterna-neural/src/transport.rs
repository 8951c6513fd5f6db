//! Networks as the library's transports: [`Flow`], [`Drift`] and [`EnergyModel`] (§5).
//!
//! Each holds frozen parameters and runs on a device. A row's result depends on that row alone, to the bit.
//! Flows and energy models should run in f64: the inverse of a flow, and the target's density at s = 1, are
//! then exact to rounding. A drift may run in f32: it only shapes proposals, and the same f32 values serve
//! simulation and density.

use std::sync::Arc;

use sterna::transport::{Drift, EnergyModel, Flow, Interval};
use sterna::{Batch, Evaluation};

use crate::conditions::Conditions;
use crate::device::{Device, Program};
use crate::egnn::EgnnDrift;
use crate::energy_model::EnergyNetwork;
use crate::graph::Value;
use crate::mlp::MlpDrift;
use crate::parameters::Parameters;
use crate::realnvp::RealNvp;
use crate::runner::Runner;
use crate::target::GraphTarget;
use crate::{Error, Real, Result};

/// An architecture for a drift.
#[derive(Clone, Debug, PartialEq)]
pub enum DriftNetwork {
    /// An MLP.
    Mlp(MlpDrift),
    /// An EGNN.
    Egnn(EgnnDrift),
}

impl From<MlpDrift> for DriftNetwork {
    fn from(network: MlpDrift) -> Self {
        Self::Mlp(network)
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
            Self::Egnn(network) => network.dim(),
        }
    }

    /// Records b at `x`.
    pub fn record<'g>(&self, conditions: &Conditions<'g>, x: Value<'g>) -> Value<'g> {
        match self {
            Self::Mlp(network) => network.record(conditions, x),
            Self::Egnn(network) => network.record(conditions, x),
        }
    }
}

/// A trained drift: the library's [`Drift`].
///
/// ```
/// use std::sync::Arc;
/// use sterna::{Batch, transport::{Drift, Interval}};
/// use sterna_neural::{Cpu, Layout, MlpDriftConfig, NeuralDrift};
///
/// let mut layout = Layout::new();
/// let network = MlpDriftConfig::small(2, &[0.0, 0.5, 1.0])?.build(&mut layout, "drift")?;
/// let drift = NeuralDrift::<f32>::new(network, layout.initialise(1), Arc::new(Cpu::new(1)))?;
///
/// let x = Batch::from_vec(2, vec![0.3, -1.0]);
/// let mut b = Batch::zeros(1, 2);
/// drift.drift(&[Interval { lower: 0.0, upper: 0.5 }], &[0.25], &x, &mut b).unwrap();
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
    fn drift(&self, pairs: &[Interval], times: &[f64], x: &Batch, out: &mut Batch) -> sterna::Result<()> {
        check_dim("a point", x.dim(), self.dim)?;
        let fill = |k: usize, to: &mut Vec<T>| match k {
            0 => to.extend(pairs.iter().map(|p| T::from_f64(p.lower))),
            1 => to.extend(pairs.iter().map(|p| T::from_f64(p.upper))),
            2 => to.extend(times.iter().map(|&t| T::from_f64(t))),
            _ => to.extend(x.as_slice().iter().map(|&x| T::from_f64(x))),
        };
        let read = |program: &dyn Program<T>| copy(program.output(0), out.as_mut_slice());
        self.runner.run(x.rows(), fill, read).map_err(stop)
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
        runner.run(rows, fill, read).map_err(stop)
    }
}

impl<T: Real> Flow for NeuralFlow<T> {
    fn forward(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64]) -> sterna::Result<()> {
        self.apply(&self.forward, pairs, x, log_det)
    }

    fn inverse(&self, pairs: &[Interval], x: &mut Batch, log_det: &mut [f64]) -> sterna::Result<()> {
        self.apply(&self.inverse, pairs, x, log_det)
    }
}

/// A trained energy model: the library's [`EnergyModel`].
pub struct NeuralEnergyModel<T: Real> {
    dim: usize,
    log_z_reference: f64,
    runner: Runner<T>,
}

impl<T: Real> NeuralEnergyModel<T> {
    /// Freezes a network's parameters around a target.
    ///
    /// # Errors
    /// If the device cannot compile it, or target and network differ in dimension.
    pub fn new(
        network: EnergyNetwork,
        target: Arc<dyn GraphTarget>,
        parameters: Parameters<T>,
        device: Arc<dyn Device<T>>,
    ) -> Result<Self> {
        let dim = network.dim();
        if target.dim() != dim {
            return Err(Error::Dimension { expected: dim, given: target.dim() });
        }
        let log_mass = network.log_normal_mass();
        let runner = Runner::new(device, parameters, move |graph| {
            let time = graph.input("time", 1);
            let x = graph.input("x", dim);
            let log_density = network.record(&*target, time, x);
            vec![log_density, graph.gradient(log_density, &[x])[0]]
        })?;
        let mut model = Self { dim, log_z_reference: 0.0, runner };
        // Errata E13: at s = 0 the density is exp(its value at 0) · exp(−½|x|²).
        let mut out = Evaluation::zeros(1, dim);
        model.evaluate_rows(&[0.0], &Batch::zeros(1, dim), &mut out)?;
        model.log_z_reference = out.log_density[0] + log_mass;
        Ok(model)
    }

    fn evaluate_rows(&self, times: &[f64], x: &Batch, out: &mut Evaluation) -> Result<()> {
        let fill = |k: usize, to: &mut Vec<T>| match k {
            0 => to.extend(times.iter().map(|&t| T::from_f64(t))),
            _ => to.extend(x.as_slice().iter().map(|&x| T::from_f64(x))),
        };
        self.runner.run(x.rows(), fill, |program| {
            copy(program.output(0), &mut out.log_density);
            copy(program.output(1), out.score.as_mut_slice());
        })
    }
}

impl<T: Real> EnergyModel for NeuralEnergyModel<T> {
    fn evaluate(&self, times: &[f64], x: &Batch, out: &mut Evaluation) -> sterna::Result<()> {
        check_dim("a point", x.dim(), self.dim)?;
        self.evaluate_rows(times, x, out).map_err(stop)
    }

    fn log_z_reference(&self) -> f64 {
        self.log_z_reference
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
