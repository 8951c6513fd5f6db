//! A computation on the GPU that is handed its inputs by the host and gives its outputs back.

use std::sync::Arc;

use super::Precision;
use super::built::Built;
use super::gpu::{Gpu, Recording};
use crate::device::Program;
use crate::graph::{Graph, Id, Value};
use crate::op::Shape;
use crate::parameters::Parameters;
use crate::{Error, Real, Result};

/// Numbers of rows that a program stays ready for.
const KEPT: usize = 4;

/// Checks the number and lengths of inputs.
pub(super) fn check_inputs<T>(recorded: &[(String, usize)], rows: usize, inputs: &[&[T]]) -> Result<()> {
    if inputs.len() != recorded.len() {
        return Err(Error::InputCount { expected: recorded.len(), given: inputs.len() });
    }
    for ((name, cols), input) in recorded.iter().zip(inputs) {
        if input.len() != rows * cols {
            let (name, cols, len) = (name.clone(), *cols, input.len());
            return Err(Error::InputLength { name, rows, cols, len });
        }
    }
    Ok(())
}

struct Ready<T> {
    built: Built<T>,
    recording: Option<Recording>,
    version: u64,
}

/// A compiled computation on a GPU.
pub(super) struct CudaProgram<T: Real> {
    gpu: Arc<Gpu>,
    precision: Precision,
    graph: Graph,
    outputs: Vec<Id>,
    shapes: Vec<Shape>,
    /// The one used last comes last.
    ready: Vec<Ready<T>>,
    /// Outputs of the last run, on the host; fixed ones one after the other.
    fixed: Vec<T>,
    batch: Vec<Vec<T>>,
}

impl<T: Real> CudaProgram<T> {
    pub fn new(gpu: &Arc<Gpu>, precision: Precision, graph: &Graph, outputs: &[Value]) -> Result<Self> {
        // Whatever is wrong with the graph is known now, not at the first run.
        super::schedule::Schedule::new::<T>(graph, outputs, 1, 0, gpu.arch())?;
        Ok(Self {
            gpu: gpu.clone(),
            precision,
            graph: graph.snapshot(),
            outputs: outputs.iter().map(|v| v.id()).collect(),
            shapes: outputs.iter().map(|v| v.shape()).collect(),
            ready: vec![],
            fixed: vec![],
            batch: vec![vec![]; outputs.len()],
        })
    }

    fn prepare(&mut self, rows: usize) -> Result<()> {
        if let Some(at) = self.ready.iter().position(|r| r.built.rows() == rows) {
            let found = self.ready.remove(at);
            self.ready.push(found);
            return Ok(());
        }
        let outputs: Vec<Value> = self.outputs.iter().map(|&id| self.graph.value(id)).collect();
        let built = Built::new(&self.gpu, &self.graph, &outputs, rows, 0, self.precision)?;
        if self.ready.len() == KEPT {
            self.ready.remove(0);
        }
        self.ready.push(Ready { built, recording: None, version: 0 });
        Ok(())
    }
}

impl<T: Real> Program<T> for CudaProgram<T> {
    fn run(&mut self, parameters: &Parameters<T>, rows: usize, inputs: &[&[T]]) -> Result<()> {
        check_inputs(&self.graph.inputs(), rows, inputs)?;
        self.prepare(rows)?;
        let Ready { built, recording, version } = self.ready.last_mut().expect("just prepared");
        let (expected, given) = (built.parameters(), parameters.values().len());
        if given < expected {
            return Err(Error::ParameterCount { expected, given });
        }
        self.gpu.enter()?;
        if *version != parameters.version() {
            built.arena().write(0, &parameters.values()[..expected])?;
            built.queue_weights()?;
            *version = parameters.version();
        }
        for (k, input) in inputs.iter().enumerate() {
            built.arena().write(built.input(k), input)?;
        }
        if built.calls_host() {
            built.queue()?;
        } else {
            if recording.is_none() {
                *recording = Some(self.gpu.record(|| built.queue())?);
            }
            recording.as_ref().expect("just made").replay()?;
        }
        self.fixed.clear();
        for (k, shape) in self.shapes.iter().enumerate() {
            let (at, len) = built.output(k);
            if shape.rows.is_batch() {
                self.batch[k].resize(len, T::ZERO);
                built.arena().read(at, &mut self.batch[k])?;
            } else {
                let from = self.fixed.len();
                self.fixed.resize(from + len, T::ZERO);
                built.arena().read(at, &mut self.fixed[from..])?;
            }
        }
        Ok(())
    }

    fn output(&self, k: usize) -> &[T] {
        if self.shapes[k].rows.is_batch() { &self.batch[k] } else { self.fixed_outputs(k, k + 1) }
    }

    fn fixed_outputs(&self, first: usize, last: usize) -> &[T] {
        let fixed = |shape: &&Shape| !shape.rows.is_batch();
        assert!(self.shapes[first..last].iter().all(|s| fixed(&s)), "an output is a batch");
        let len = |shapes: &[Shape]| shapes.iter().filter(fixed).map(|s| s.group_len()).sum::<usize>();
        let from = len(&self.shapes[..first]);
        &self.fixed[from..from + len(&self.shapes[first..last])]
    }
}
