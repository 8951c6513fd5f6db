//! Programs for sampling: shared by threads, each call with memory of its own that is kept for the next.

use std::sync::{Arc, Mutex};

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::parameters::Parameters;
use crate::{Real, Result};

/// Most inputs that a runner's computation has.
const MOST_INPUTS: usize = 8;

type Build<T> = dyn Fn() -> Result<Workspace<T>> + Send + Sync;

/// A computation that several threads may run at once.
pub struct Runner<T: Real> {
    parameters: Parameters<T>,
    build: Box<Build<T>>,
    idle: Mutex<Vec<Workspace<T>>>,
}

struct Workspace<T: Real> {
    program: Box<dyn Program<T>>,
    inputs: Vec<Vec<T>>,
}

impl<T: Real> Runner<T> {
    /// `record` records the inputs and returns the outputs.
    pub fn new(
        device: Arc<dyn Device<T>>,
        parameters: Parameters<T>,
        record: impl for<'g> Fn(&'g Graph) -> Vec<Value<'g>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let build = move || {
            let graph = Graph::new();
            let program = device.compile(&graph, &record(&graph))?;
            assert!(graph.inputs().len() <= MOST_INPUTS, "at most {MOST_INPUTS} inputs");
            Ok(Workspace { program, inputs: vec![vec![]; graph.inputs().len()] })
        };
        let first = build()?;
        Ok(Self { parameters, build: Box::new(build), idle: Mutex::new(vec![first]) })
    }

    /// Runs on `rows` rows: `fill` writes input k, `read` sees the outputs.
    pub fn run(
        &self,
        rows: usize,
        mut fill: impl FnMut(usize, &mut Vec<T>),
        read: impl FnOnce(&dyn Program<T>),
    ) -> Result<()> {
        let idle = self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        let mut workspace = match idle {
            Some(workspace) => workspace,
            None => (self.build)()?,
        };
        let mut slices: [&[T]; MOST_INPUTS] = [&[]; MOST_INPUTS];
        for (k, input) in workspace.inputs.iter_mut().enumerate() {
            input.clear();
            fill(k, input);
        }
        for (slice, input) in slices.iter_mut().zip(&workspace.inputs) {
            *slice = input;
        }
        workspace.program.run(&self.parameters, rows, &slices[..workspace.inputs.len()])?;
        read(&*workspace.program);
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(workspace);
        Ok(())
    }
}
