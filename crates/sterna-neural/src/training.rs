//! Training: a recorded loss, its gradient, the optimiser, and keyed random batches (App. E.2).

use std::sync::Arc;

use sterna::Batch;
use sterna::streams::{Phase, RowStream, Streams};

use crate::device::{Device, Program};
use crate::graph::{Graph, Value};
use crate::optimiser::{Adam, AdamConfig, Progress, StepReport};
use crate::parameters::{Layout, Parameters};
use crate::{Error, Real, Result};

/// Minimises a recorded loss.
///
/// ```
/// use std::sync::Arc;
/// use sterna_neural::{AdamConfig, Cpu, Graph, Init, Layout, Trainer};
///
/// // Fit y = 2x by one weight.
/// let (graph, mut layout) = (Graph::new(), Layout::new());
/// let weight = layout.add("weight", 1, 1, Init::Constant(0.0));
/// let (x, y) = (graph.input("x", 1), graph.input("y", 1));
/// let loss = (x * weight.record(&graph) - y).square().mean_rows();
///
/// let config = AdamConfig { learning_rate: 0.1, ..AdamConfig::default() };
/// let start = layout.initialise::<f64>(1);
/// let mut trainer = Trainer::new(Arc::new(Cpu::new(1)), &graph, loss, &[], &layout, start, config)?;
/// for _ in 0..500 {
///     trainer.step(2, &[&[1.0, -1.5], &[2.0, -3.0]])?;
/// }
/// assert!((trainer.averaged().values()[0] - 2.0).abs() < 1e-3);
/// # Ok::<(), sterna_neural::Error>(())
/// ```
pub struct Trainer<T: Real> {
    device: Arc<dyn Device<T>>,
    program: Box<dyn Program<T>>,
    parameters: Parameters<T>,
    adam: Adam<T>,
    gradients: usize,
}

impl<T: Real> Trainer<T> {
    /// Minimises `loss` (1 × 1) over all parameters of `layout`, starting from `parameters`. `watched` values
    /// can be read after each step.
    ///
    /// # Errors
    /// If the device cannot compile the loss, or the parameters do not fit the layout.
    pub fn new(
        device: Arc<dyn Device<T>>,
        graph: &Graph,
        loss: Value,
        watched: &[Value],
        layout: &Layout,
        parameters: Parameters<T>,
        config: AdamConfig,
    ) -> Result<Self> {
        let given = parameters.values().len();
        if given != layout.len() {
            return Err(Error::ParameterCount { expected: layout.len(), given });
        }
        // Gradients first, in the parameters' order: they then form one vector.
        let mut outputs = graph.gradient(loss, &layout.record(graph));
        let gradients = outputs.len();
        outputs.push(loss);
        outputs.extend_from_slice(watched);
        let program = device.compile(graph, &outputs)?;
        let adam = Adam::new(config, &parameters);
        Ok(Self { device, program, parameters, adam, gradients })
    }

    /// One step on a batch of `rows` rows; inputs in the order of recording.
    ///
    /// # Errors
    /// If the inputs do not fit, or gradients stay NaN or infinite.
    pub fn step(&mut self, rows: usize, inputs: &[&[T]]) -> Result<StepReport> {
        self.program.run(&self.parameters, rows, inputs)?;
        let loss = self.program.output(self.gradients)[0].to_f64();
        let gradient = self.program.fixed_outputs(0, self.gradients);
        self.adam.step(&*self.device, &mut self.parameters, loss, gradient)
    }

    /// The loss on a batch, without a step.
    ///
    /// # Errors
    /// If the inputs do not fit.
    pub fn evaluate(&mut self, rows: usize, inputs: &[&[T]]) -> Result<f64> {
        self.program.run(&self.parameters, rows, inputs)?;
        Ok(self.program.output(self.gradients)[0].to_f64())
    }

    /// Watched value `k` of the last step.
    pub fn watched(&self, k: usize) -> &[T] {
        self.program.output(self.gradients + 1 + k)
    }

    /// The parameters as they are.
    pub fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }

    /// Their average over the steps: what sampling should use.
    pub fn averaged(&self) -> &Parameters<T> {
        self.adam.average()
    }

    /// Counters.
    pub fn progress(&self) -> Progress {
        self.adam.progress()
    }

    /// What a person should be told, if anything went wrong so far.
    pub fn alarm(&self) -> Option<String> {
        let p = self.progress();
        (p.skipped > 0).then(|| {
            format!("{} of {} training steps were skipped: the gradient was not finite", p.skipped, p.steps)
        })
    }

    /// All that is needed to go on later.
    pub fn state(&self) -> TrainingState<T> {
        TrainingState {
            parameters: self.parameters.values().to_vec(),
            average: self.adam.average.values().to_vec(),
            first: self.adam.first.clone(),
            second: self.adam.second.clone(),
            progress: self.adam.progress,
        }
    }

    /// Goes on from a state: the same bits as if there had been no interruption.
    ///
    /// # Errors
    /// If the state belongs to another number of parameters.
    pub fn restore(&mut self, state: &TrainingState<T>) -> Result<()> {
        let expected = self.parameters.values().len();
        for part in [&state.average, &state.first, &state.second] {
            if part.len() != expected {
                return Err(Error::ParameterCount { expected, given: part.len() });
            }
        }
        self.parameters.set(&state.parameters)?;
        self.adam.average.set(&state.average)?;
        self.adam.first.copy_from_slice(&state.first);
        self.adam.second.copy_from_slice(&state.second);
        self.adam.progress = state.progress;
        Ok(())
    }
}

/// Parameters, averages and counters of a training run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingState<T> {
    /// The parameters.
    pub parameters: Vec<T>,
    /// Their average.
    pub average: Vec<T>,
    /// Adam's average of gradients.
    pub first: Vec<T>,
    /// Adam's average of squared gradients.
    pub second: Vec<T>,
    /// Counters.
    pub progress: Progress,
}

/// Random numbers of a training run: functions of (seed, use, step, row).
///
/// ```
/// use sterna_neural::TrainingStreams;
///
/// let streams = TrainingStreams::new(7);
/// assert_eq!(streams.sample(3, 5, 1000), streams.sample(3, 5, 1000));
/// assert!(streams.sample(3, 5, 1000) < 1000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TrainingStreams {
    samples: Streams,
    noise: Streams,
    times: Streams,
}

impl TrainingStreams {
    /// Streams of a seed.
    pub fn new(seed: u64) -> Self {
        // One seed per use: the phases within a seed belong to the sampler.
        let of = |salt: u64| Streams::new(seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Self { samples: of(1), noise: of(2), times: of(3) }
    }

    /// Which of `n` samples row `row` of the batch of `step` takes.
    pub fn sample(&self, step: u64, row: usize, n: usize) -> usize {
        self.samples.row(Phase::Training, step, row as u32).below(n)
    }

    /// Row `row`'s own stream for choices: pairs, samples, directions.
    pub fn choices(&self, step: u64, row: usize) -> RowStream {
        self.samples.row(Phase::Training, step, row as u32)
    }

    /// Row `row`'s uniform number in (0, 1), for path times.
    pub fn time(&self, step: u64, row: usize) -> f64 {
        self.times.row(Phase::Training, step, row as u32).uniform()
    }

    /// Fills `noise` with standard normals: row i from the stream of row i.
    pub fn noise(&self, step: u64, rows: &[u32], noise: &mut Batch) {
        self.noise.normals(Phase::Training, step, rows, noise);
    }

    /// Fills `out` with `rows` rows drawn from `data`, with replacement.
    pub fn draw<T: Real>(&self, step: u64, rows: usize, data: &Batch, out: &mut Vec<T>) {
        out.clear();
        for row in 0..rows {
            let from = data.row(self.sample(step, row, data.rows()));
            out.extend(from.iter().map(|&x| T::from_f64(x)));
        }
    }
}
