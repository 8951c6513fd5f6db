//! The neural part of Sterna: a graph of batched matrices that differentiates as often as one likes, and
//! the networks of the paper on top of it (§5, App. D.3, App. E.2).

mod additive;
mod compute;
mod conditions;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod differentiate;
mod egnn;
mod energy_model;
mod error;
mod fit;
mod graph;
mod host;
mod loaded;
mod losses;
mod mlp;
mod op;
mod optimiser;
mod parameters;
mod particles;
mod plan;
mod real;
mod realnvp;
mod recipe;
mod runner;
mod target;
mod train_cmcd;
mod train_diffusion;
mod train_flow;
mod training;
mod transport;
mod trial;
pub mod weights;

pub use additive::{Additive, AdditiveDrift, AdditiveDriftConfig};
pub use compute::{Compute, Opened, Precision};
pub use conditions::{Conditioning, Conditions};
pub use cpu::{Cpu, Level};
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, LadderPlan, LadderSampler, LadderStatistics};
pub use device::{Device, Program, TrainingLoop};
pub use egnn::{Egnn, EgnnDrift, EgnnDriftConfig};
pub use energy_model::{EnergyConfig, EnergyNetwork, Field, Parts, TimeNetwork};
pub use error::{Error, Result};
pub use fit::{Course, Lesson, Split, Training, into_library, rejection_rates, streams};
pub use graph::{Graph, Id, Value};
pub use host::HostFunction;
pub use loaded::{LearnedPath, LoadedTransport, Made, load_transport};
pub use losses::{CmcdInputs, CmcdNetwork, GraphPath, Loss, flow_divergences, round_trip_loss};
pub use mlp::{Hidden, Mlp, MlpDrift, MlpDriftConfig};
pub use op::{Rows, Shape};
pub use optimiser::{Adam, AdamConfig, AdamStep, CHUNK, Decay, Progress, StepReport};
pub use parameters::{Init, Layout, Parameters, Slot};
pub use particles::Particles;
pub use real::Real;
pub use realnvp::{RealNvp, RealNvpConfig};
pub use recipe::{Field as BatchField, PairChoice, Recipe, Way};
pub use runner::Runner;
pub use target::{GraphTarget, HostTarget, host_target};
pub use train_cmcd::{CmcdDescription, CmcdSize, TrainCmcd};
pub use train_diffusion::{DiffusionDescription, DiffusionSize, TrainDiffusion};
pub use train_flow::{FlowDescription, FlowSize, TrainFlow};
pub use training::{Trainer, TrainingState, TrainingStreams};
pub use transport::{DriftNetwork, NeuralDrift, NeuralEnergyModel, NeuralFlow};
pub use trial::{Candidate, Trial};
