//! The neural part of Sterna: a graph of batched matrices that differentiates as often as one likes, and
//! the networks of the paper on top of it (§5, App. D.3, App. E.2).

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests compare with the functions of the standard library")
)]

mod additive;
mod base;
mod compute;
mod conditions;
mod course;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod differentiate;
mod diffusion_loss;
mod egnn;
mod energy_model;
mod error;
mod fit;
mod framing;
mod graph;
mod graph_path;
mod judge;
mod ladder_engines;
mod loaded;
mod looks;
mod losses;
mod mlp;
mod op;
mod optimiser;
mod pair_lesson;
mod parameters;
mod particles;
mod physics;
mod plan;
mod real;
mod realnvp;
mod recipe;
mod runner;
mod spline;
mod stand_in;
mod target;
mod train_cmcd;
mod train_diffusion;
mod train_flow;
mod training;
mod transport;
mod trial;
pub mod weights;
mod work;

pub use additive::{Additive, AdditiveDrift, AdditiveDriftConfig};
pub use base::AffineBase;
pub use compute::{Compute, Opened, Precision};
pub use conditions::{Conditioning, Conditions};
pub use course::{Course, Lesson};
pub use cpu::{Cpu, Level};
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, LadderPlan, LadderSampler, LadderStatistics, LadderTransport};
pub use device::{Device, Program, TrainingLoop};
pub use egnn::{Egnn, EgnnDrift, EgnnDriftConfig};
pub use energy_model::{EnergyConfig, EnergyNetwork, Field, Parts, TimeNetwork};
pub use error::{Error, Result};
pub use fit::{Training, into_library, streams};
pub use graph::{Graph, HostFunction, Id, Value};
pub use graph_path::GraphPath;
pub use judge::{Split, rejection_rates};
pub use ladder_engines::LadderEngines;
pub use loaded::{LearnedPath, LoadedTransport, Made, load_transport};
pub use looks::Look;
pub use losses::{CmcdInputs, CmcdNetwork, Loss, flow_divergences, patient_divergence, round_trip_loss};
pub use mlp::{Hidden, Mlp, MlpDrift, MlpDriftConfig};
pub use op::{Rows, Shape};
pub use optimiser::{Adam, AdamConfig, AdamStep, CHUNK, Decay, Progress, StepReport};
pub use parameters::{Init, Layout, Parameters, Slot};
pub use particles::Particles;
pub use real::Real;
pub use realnvp::{Coupling, RealNvp, RealNvpConfig, Route};
pub use recipe::{Field as BatchField, HostBatches, PairChoice, Recipe, Way};
pub use runner::Runner;
pub use stand_in::with_stand_in;
pub use target::{GraphTarget, HostTarget, host_target};
pub use train_cmcd::{CmcdDescription, CmcdSize, POSSIBLE_NOISE, TrainCmcd, load_cmcd_steps};
pub use train_diffusion::{DiffusionDescription, DiffusionSize, TrainDiffusion};
pub use train_flow::{FlowDescription, FlowSize, TrainFlow};
pub use training::{Trainer, TrainingState, TrainingStreams};
pub use transport::{DriftNetwork, NeuralDrift, NeuralEnergyModel, NeuralFlow};
pub use trial::{Candidate, Trial};
pub use work::multiply_adds;
