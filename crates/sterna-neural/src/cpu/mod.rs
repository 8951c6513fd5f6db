//! The CPU: kernels for AVX-512, AVX2 and anything else, threads, and the execution of plans.

mod group;
mod memory;
mod product;
mod program;
mod rows;
mod simd;
mod steps;
mod update;

/// What [`Real`] compiles once for each number type.
pub(crate) mod kernels {
    use super::*;

    pub use super::update::{adam, square_sum};

    pub fn program<T: Real>(
        graph: &Graph,
        outputs: &[Value],
        threads: usize,
        level: Level,
    ) -> Result<Box<dyn Program<T>>> {
        Ok(Box::new(program::CpuProgram::new(graph, outputs, threads, level)?))
    }
}

use rayon::prelude::*;

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::optimiser::{AdamStep, CHUNK};
use crate::{Real, Result};
pub use sterna::lanes::Level;

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
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    threads: usize,
    level: Level,
}

impl Cpu {
    /// Work is cut for so many threads (at least one). They are those of the rayon pool that the caller is in, or of
    /// rayon's global one: install a pool of your own around calls from outside, which cost a hand-over each.
    pub fn new(threads: usize) -> Self {
        Self::with_level(threads, Level::detect())
    }

    /// Like [`new`](Self::new), with an instruction set of lower level than the machine's best.
    ///
    /// # Panics
    /// If the machine lacks that level.
    pub fn with_level(threads: usize, level: Level) -> Self {
        assert!(level.is_available(), "this machine has no {level:?}");
        Self { threads: threads.max(1), level }
    }

    /// Threads that work is cut for.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Chunks a thread gets of so many, if each is to have at least `least`.
    fn share_of(&self, chunks: usize, least: usize) -> usize {
        chunks.div_ceil(self.threads).max(least)
    }
}

impl<T: Real> Device<T> for Cpu {
    fn compile(&self, graph: &Graph, outputs: &[Value]) -> Result<Box<dyn Program<T>>> {
        T::cpu_program(graph, outputs, self.threads, self.level)
    }

    fn square_sum(&self, x: &[T], partial: &mut [f64]) -> f64 {
        let chunks = x.len().div_ceil(CHUNK);
        assert_eq!(partial.len(), chunks, "one partial sum for each {CHUNK} numbers");
        let sum = |(partial, x): (&mut [f64], &[T])| {
            for (sum, chunk) in partial.iter_mut().zip(x.chunks(CHUNK)) {
                *sum = T::cpu_square_sum(self.level, chunk);
            }
        };
        let share = self.share_of(chunks, SHARE);
        if chunks <= share {
            sum((&mut *partial, x));
        } else {
            partial.par_chunks_mut(share).zip(x.par_chunks(share * CHUNK)).for_each(sum);
        }
        partial.iter().sum()
    }

    fn adam(&self, step: AdamStep<'_, T>) {
        let n = step.parameters.len();
        let share = self.share_of(n.div_ceil(CHUNK), SHARE) * CHUNK;
        if n <= share {
            return T::cpu_adam(self.level, step);
        }
        let AdamStep { shrink, rate, second_scale, constants, .. } = step;
        assert!([step.average.len(), step.first.len(), step.second.len(), step.gradient.len()] == [n; 4]);
        let parts = (
            step.parameters.par_chunks_mut(share),
            step.average.par_chunks_mut(share),
            step.first.par_chunks_mut(share),
            step.second.par_chunks_mut(share),
            step.gradient.par_chunks(share),
        );
        parts.into_par_iter().for_each(|(parameters, average, first, second, gradient)| {
            let of_share = AdamStep {
                parameters,
                average,
                first,
                second,
                gradient,
                shrink,
                rate,
                second_scale,
                constants,
            };
            T::cpu_adam(self.level, of_share);
        });
    }
}

/// Fewest chunks that a thread gets: small networks stay on the caller's.
const SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;

    #[test]
    fn rows_that_no_input_has_are_an_error() {
        let graph = Graph::new();
        let x = graph.input("x", 2);
        let mut program = Device::<f64>::compile(&Cpu::new(1), &graph, &[x.tanh()]).unwrap();
        // Twice this many wraps around to the length given.
        let rows = usize::MAX / 2 + 2;
        let error = program.run(&Parameters::empty(), rows, &[&[0.0; 2]]).unwrap_err();
        assert!(error.to_string().contains('x'), "{error}");
    }

    #[test]
    #[should_panic(expected = "one partial sum")]
    fn partial_sums_must_fit() {
        Device::<f32>::square_sum(&Cpu::new(1), &[1.0; CHUNK + 1], &mut [0.0]);
    }

    #[test]
    fn sums_and_steps_are_the_same_for_any_threads() {
        let n = 40 * CHUNK + 17;
        let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
        let of = |threads: usize| {
            let cpu = Cpu::new(threads);
            let sum = cpu.square_sum(&x, &mut vec![0.0; n.div_ceil(CHUNK)]);
            let [mut parameters, mut average, mut first, mut second] =
                [0.1f32, 0.2, 0.3, 0.4].map(|x| vec![x; n]);
            cpu.adam(AdamStep {
                parameters: &mut parameters,
                average: &mut average,
                first: &mut first,
                second: &mut second,
                gradient: &x,
                shrink: 0.5,
                rate: 0.01,
                second_scale: 1.1,
                constants: [0.9, 0.999, 1e-8, 0.99],
            });
            (sum.to_bits(), parameters, average)
        };
        assert_eq!(of(1), of(3));
    }
}
