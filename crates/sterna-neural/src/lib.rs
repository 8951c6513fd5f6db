//! The neural part of Sterna: a graph of batched matrices that differentiates as often as one likes, and
//! the networks of the paper on top of it (§5, App. D.3, App. E.2).

mod conditions;
mod cpu;
mod device;
mod differentiate;
mod egnn;
mod energy_model;
mod error;
mod graph;
mod host;
mod mlp;
mod op;
mod optimiser;
mod parameters;
mod particles;
mod plan;
mod real;
mod realnvp;
mod runner;
mod target;
mod training;
mod transport;
pub mod weights;

pub use conditions::{Conditioning, Conditions};
pub use cpu::{Cpu, Level};
pub use device::{Device, Program};
pub use egnn::{Egnn, EgnnDrift, EgnnDriftConfig};
pub use energy_model::{EnergyConfig, EnergyNetwork, Field, TimeNetwork};
pub use error::{Error, Result};
pub use graph::{Graph, Id, Value};
pub use host::HostFunction;
pub use mlp::{Hidden, Mlp, MlpDrift, MlpDriftConfig};
pub use op::{Rows, Shape};
pub use optimiser::{Adam, AdamConfig, AdamStep, CHUNK, Decay, Progress, StepReport};
pub use parameters::{Init, Layout, Parameters, Slot};
pub use particles::Particles;
pub use real::Real;
pub use realnvp::{RealNvp, RealNvpConfig};
pub use target::{GraphTarget, HostTarget};
pub use training::{Trainer, TrainingState, TrainingStreams};
pub use transport::{DriftNetwork, NeuralDrift, NeuralEnergyModel, NeuralFlow};
