//! Programs for sampling: a computation that threads share, each with a program and buffers in its own scratch.

use std::sync::Arc;

use sterna::call::Scratch;

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::parameters::Parameters;
use crate::{Real, Result};

/// Most inputs that a runner's computation has.
const MOST_INPUTS: usize = 8;

type Build<T> = dyn Fn() -> Result<Compiled<T>> + Send + Sync;

/// A computation that several threads may run at once.
pub struct Runner<T: Real> {
    parameters: Parameters<T>,
    build: Arc<Build<T>>,
}

struct Compiled<T: Real> {
    program: Box<dyn Program<T>>,
    inputs: Vec<Vec<T>>,
}

/// What a caller's scratch holds: a program, and of which runner it is.
struct Memory<T: Real>(Option<(Arc<Build<T>>, Compiled<T>)>);

impl<T: Real> Default for Memory<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Real> Memory<T> {
    /// The runner's program, compiled where the scratch holds none or another runner's.
    fn of(&mut self, build: &Arc<Build<T>>) -> Result<&mut Compiled<T>> {
        if !self.0.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, build)) {
            self.0 = Some((build.clone(), build()?));
        }
        Ok(self.0.as_mut().map(|(_, compiled)| compiled).expect("just made"))
    }
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
            Ok(Compiled { program, inputs: vec![vec![]; graph.inputs().len()] })
        };
        // What cannot be compiled is refused now, not in the middle of a run.
        build()?;
        Ok(Self { parameters, build: Arc::new(build) })
    }

    /// Runs on `rows` rows: `fill` writes input k, `read` sees the outputs.
    pub fn run(
        &self,
        rows: usize,
        mut fill: impl FnMut(usize, &mut Vec<T>),
        read: impl FnOnce(&dyn Program<T>),
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Compiled { program, inputs } = scratch.get::<Memory<T>>().of(&self.build)?;
        let mut slices: [&[T]; MOST_INPUTS] = [&[]; MOST_INPUTS];
        for (k, input) in inputs.iter_mut().enumerate() {
            input.clear();
            fill(k, input);
        }
        for (slice, input) in slices.iter_mut().zip(&*inputs) {
            *slice = input;
        }
        program.run(&self.parameters, rows, &slices[..inputs.len()])?;
        read(&**program);
        Ok(())
    }
}
