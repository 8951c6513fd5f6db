//! NVIDIA GPUs: the same graphs and plans as on the CPU, as CUDA C that is generated and compiled at run time.
//!
//! Nothing is needed at build time. The driver and its run-time compiler are looked for when a GPU is opened.

mod batches;
mod built;
mod compiler;
mod coordinates;
mod emit;
mod engine;
mod formulas;
mod gpu;
mod ladder_parts;
mod ladders;
mod large_product;
mod log;
mod placement;
mod program;
mod row_kernel;
mod schedule;
mod search;
mod tiled;
mod training;

use std::sync::Arc;

use crate::device::{Device, Program, TrainingLoop};
use crate::graph::{Graph, Value};
use crate::optimiser::AdamConfig;
use crate::parameters::Parameters;
use crate::recipe::Recipe;
use crate::{Precision, Real, Result};
pub(crate) use coordinates::Coordinates;
pub(crate) use engine::LadderEngine;
use gpu::Gpu;
pub use ladders::{LadderPlan, LadderSampler, LadderStatistics, LadderTransport};

/// Runs computations on a GPU.
///
/// The same seed gives the same bits on the same GPU. Results agree with the CPU's to rounding: sums have another
/// order.
#[derive(Clone, Debug)]
pub struct Cuda {
    gpu: Arc<Gpu>,
    precision: Precision,
}

impl Cuda {
    /// The first GPU.
    ///
    /// # Errors
    /// If there is no driver, no GPU or no run-time compiler; the error says what was looked for where.
    pub fn open(precision: Precision) -> Result<Self> {
        Self::numbered(0, precision)
    }

    /// The GPU of a number, from 0 and round again where there are fewer: one for each process of a machine.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn numbered(number: usize, precision: Precision) -> Result<Self> {
        Ok(Self { gpu: Gpu::open(number)?, precision })
    }

    /// The GPU's name.
    pub fn name(&self) -> &str {
        self.gpu.name()
    }

    /// Version of the run-time compiler, which needs no GPU.
    ///
    /// # Errors
    /// If there is none.
    pub fn compiler_version() -> Result<(i32, i32)> {
        compiler::version()
    }

    /// Generates all kernels of a computation of `rows` rows and compiles them for a GPU generation (90 is
    /// Hopper), which needs no GPU. Returns how many there are.
    ///
    /// # Errors
    /// If there is no run-time compiler, or it refuses a kernel.
    pub fn compile_only<T: Real>(
        graph: &Graph,
        outputs: &[Value],
        rows: usize,
        precision: Precision,
        arch: u32,
    ) -> Result<usize> {
        let schedule = schedule::Schedule::new::<T>(graph, outputs, rows, 0, arch)?;
        let sources = built::sources::<T>(&schedule, precision);
        let sources: Vec<&str> = sources.iter().map(|s| &s[..]).collect();
        compiler::compile_all(&sources, arch).into_iter().collect::<Result<Vec<_>>>().map(|all| all.len())
    }
}

impl Cuda {
    /// As [`compile_only`](Self::compile_only), for what training needs beside its loss: batches and the optimiser.
    ///
    /// # Errors
    /// If there is no run-time compiler, or it refuses a kernel.
    pub fn compile_training_only(recipe: &Recipe, config: &AdamConfig, arch: u32) -> Result<usize> {
        let preamble = emit::preamble::<f32>(Precision::F32, true);
        let places: Vec<usize> = (0..recipe.fields.len()).map(|k| 1000 * k).collect();
        let sources = [
            batches::source(&preamble, recipe, &places),
            training::optimiser_source::<f32>(config, Precision::F32, [1000, 1000, 3000]),
            training::optimiser_source::<f64>(config, Precision::F32, [1000, 1000, 3000]),
        ];
        let sources: Vec<&str> = sources.iter().map(|s| &s[..]).collect();
        compiler::compile_all(&sources, arch).into_iter().collect::<Result<Vec<_>>>().map(|all| all.len())
    }
}

impl<T: Real> Device<T> for Cuda {
    fn compile(&self, graph: &Graph, outputs: &[Value]) -> Result<Box<dyn Program<T>>> {
        Ok(Box::new(program::CudaProgram::new(&self.gpu, self.precision, graph, outputs)?))
    }

    fn train(
        &self,
        graph: &Graph,
        outputs: &[Value],
        gradients: usize,
        parameters: &Parameters<T>,
        config: AdamConfig,
    ) -> Option<Result<Box<dyn TrainingLoop<T>>>> {
        let made = training::CudaTraining::new(
            &self.gpu,
            self.precision,
            graph,
            outputs,
            gradients,
            parameters,
            config,
        );
        Some(made.map(|training| Box::new(training) as Box<dyn TrainingLoop<T>>))
    }
}
