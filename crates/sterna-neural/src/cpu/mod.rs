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
mod update;

/// What [`Real`] compiles once for each number type.
pub(crate) mod kernels {
    use super::*;

    pub use super::pool::Pool;
    pub use super::update::{Parts, adam};

    pub fn program<T: Real>(
        graph: &Graph,
        outputs: &[Value],
        pool: Arc<Pool>,
        level: Level,
    ) -> Result<Box<dyn Program<T>>> {
        Ok(Box::new(program::CpuProgram::new(graph, outputs, pool, level)?))
    }

    pub fn square_sum<T: Real>(level: Level, x: &[T]) -> f64 {
        let mut sum = 0.0;
        // SAFETY: the level was detected.
        unsafe { update::square_sum(level, x.as_ptr(), x.len(), &mut sum) };
        sum
    }
}

use std::sync::Arc;

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::optimiser::{AdamStep, CHUNK};
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
        T::cpu_program(graph, outputs, self.pool.clone(), self.level)
    }

    fn square_sum(&self, x: &[T], partial: &mut [f64]) -> f64 {
        let (sums, level) = (Shared(partial.as_mut_ptr()), self.level);
        self.pool.run(x.len().div_ceil(CHUNK), &|k, _| {
            let chunk = &x[k * CHUNK..x.len().min((k + 1) * CHUNK)];
            let sum = T::cpu_square_sum(level, chunk);
            // SAFETY: each task writes its own partial sum.
            unsafe { *sums.get().add(k) = sum };
        });
        partial.iter().sum()
    }

    fn adam(&self, step: AdamStep<'_, T>) {
        let n = step.parameters.len();
        assert!([step.average.len(), step.first.len(), step.second.len(), step.gradient.len()] == [n; 4]);
        let parts = update::Parts {
            parameters: step.parameters.as_mut_ptr(),
            average: step.average.as_mut_ptr(),
            first: step.first.as_mut_ptr(),
            second: step.second.as_mut_ptr(),
            gradient: step.gradient.as_ptr(),
            shrink: step.shrink,
            rate: step.rate,
            second_scale: step.second_scale,
            constants: step.constants,
        };
        // Several chunks a task: small networks stay on the caller's thread.
        let task = 8 * CHUNK;
        self.pool.run(n.div_ceil(task), &|k, _| {
            // SAFETY: lengths were checked, and tasks are disjoint.
            unsafe { T::cpu_adam(self.level, &parts, k * task, n.min((k + 1) * task)) }
        });
    }
}

/// A pointer that tasks share; each uses its own part.
struct Shared<T>(*mut T);
unsafe impl<T> Send for Shared<T> {}
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}
