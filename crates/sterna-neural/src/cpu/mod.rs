//! The CPU: kernels for AVX-512, AVX2 and anything else, threads, and the execution of plans.

mod aligned;
mod group;
mod level;
mod math;
mod pool;
mod product;
mod program;
mod rows;
pub(crate) mod simd;

use std::sync::Arc;

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::{Real, Result};
use pool::Pool;
pub use simd::Level;

/// Runs computations on this machine's cores.
///
/// Results do not depend on the number of threads, nor on how rows are batched, to the bit.
///
/// ```
/// use sterna_neural::{Cpu, Device, Graph, Parameters, Program};
///
/// let graph = Graph::new();
/// let x = graph.input("x", 1);
/// let device: &dyn Device<f64> = &Cpu::new(2);
/// let mut program = device.compile(&graph, &[x.tanh()]).unwrap();
/// program.run(&Parameters::empty(), 2, &[&[0.0, 1.0]]).unwrap();
/// assert_eq!(program.output(0)[0], 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Arc<Pool>,
    level: Level,
}

impl Cpu {
    /// So many threads (at least one), the caller's included. Clones share them.
    pub fn new(threads: usize) -> Self {
        Self::with_level(threads, Level::detect())
    }

    /// Like [`new`](Self::new), with an instruction set of lower level than the machine's best.
    ///
    /// # Panics
    /// If the machine lacks that level.
    pub fn with_level(threads: usize, level: Level) -> Self {
        assert!(Level::available().contains(&level), "this machine has no {level:?}");
        Self { pool: Arc::new(Pool::new(threads.max(1))), level }
    }

    /// Threads used.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }
}

impl<T: Real> Device<T> for Cpu {
    fn compile(&self, graph: &Graph, outputs: &[Value]) -> Result<Box<dyn Program<T>>> {
        Ok(Box::new(program::CpuProgram::new(graph, outputs, self.pool.clone(), self.level)?))
    }

    fn for_each(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        self.pool.run(n, &|k, _| f(k));
    }
}
