//! Parallel tempering, accelerated by transports.
//!
//! The modules follow the paper *Accelerated Parallel Tempering via Neural Transports*.

mod batch;
mod error;
pub mod lanes;
pub mod streams;
mod target;
pub mod targets;
pub mod transport;

pub use batch::Batch;
pub use error::{Error, Result};
pub use target::{Evaluation, Target};
