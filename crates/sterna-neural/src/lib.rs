//! The neural part of Sterna: a graph of batched matrices that differentiates as often as one likes, and
//! the networks of the paper on top of it (§5, App. D.3, App. E.2).

mod cpu;
mod device;
mod differentiate;
mod error;
mod graph;
mod host;
mod op;
mod parameters;
mod plan;
mod real;

pub use cpu::{Cpu, Level};
pub use device::{Device, Program};
pub use error::{Error, Result};
pub use graph::{Graph, Id, Value};
pub use host::HostFunction;
pub use op::{Rows, Shape};
pub use parameters::{Init, Layout, Parameters, Slot};
pub use real::Real;
