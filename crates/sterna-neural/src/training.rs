//! Training: a recorded loss, its gradient, the optimiser, and keyed random batches (App. E.2).

use std::cell::OnceCell;
use std::sync::Arc;

use sterna::Batch;
use sterna::streams::{Phase, RowStream, Streams};

use crate::device::{Device, Program, TrainingLoop};
use crate::graph::{Graph, Value};
use crate::optimiser::{Adam, AdamConfig, Progress, StepReport};
use crate::parameters::{Layout, Parameters};
use crate::recipe::Recipe;
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
    engine: Engine<T>,
    gradients: usize,
}

enum Engine<T: Real> {
    /// The parameters live here; the device computes gradients and updates.
    Host {
        device: Arc<dyn Device<T>>,
        program: Box<dyn Program<T>>,
        parameters: Parameters<T>,
        adam: Box<Adam<T>>,
    },
    /// All lives on the device; a copy is fetched when asked for.
    Device { training: Box<dyn TrainingLoop<T>>, copy: OnceCell<Copy<T>> },
}

struct Copy<T> {
    parameters: Parameters<T>,
    average: Parameters<T>,
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
        if let Some(training) = device.train(graph, &outputs, gradients, &parameters, config) {
            let engine = Engine::Device { training: training?, copy: OnceCell::new() };
            return Ok(Self { engine, gradients });
        }
        let program = device.compile(graph, &outputs)?;
        let adam = Box::new(Adam::new(config, &parameters));
        Ok(Self { engine: Engine::Host { device, program, parameters, adam }, gradients })
    }

    /// Lets the device draw the batches, if it can.
    pub fn draw_from(&mut self, recipe: impl FnOnce() -> Option<Recipe>) {
        if let Engine::Device { training, .. } = &mut self.engine
            && let Some(recipe) = recipe()
        {
            training.draw_from(recipe);
        }
    }

    /// Whether the device draws the batches.
    pub fn draws(&self) -> bool {
        matches!(&self.engine, Engine::Device { training, .. } if training.draws())
    }

    /// So many steps on batches that the device draws; returns their losses.
    ///
    /// # Errors
    /// If gradients stay NaN or infinite, or the device fails.
    ///
    /// # Panics
    /// Unless [`draws`](Self::draws).
    pub fn steps(&mut self, count: u64) -> Result<Vec<f64>> {
        let Engine::Device { training, copy } = &mut self.engine else {
            panic!("the host draws the batches")
        };
        *copy = OnceCell::new();
        training.steps(count)
    }

    /// One step on a batch of `rows` rows; inputs in the order of recording.
    ///
    /// # Errors
    /// If the inputs do not fit, or gradients stay NaN or infinite.
    pub fn step(&mut self, rows: usize, inputs: &[&[T]]) -> Result<StepReport> {
        match &mut self.engine {
            Engine::Host { device, program, parameters, adam } => {
                program.run(parameters, rows, inputs)?;
                let loss = program.output(self.gradients)[0].to_f64();
                let gradient = program.fixed_outputs(0, self.gradients);
                adam.step(&**device, parameters, loss, gradient)
            }
            Engine::Device { training, copy } => {
                *copy = OnceCell::new();
                training.step(rows, inputs)
            }
        }
    }

    /// The loss on a batch, without a step.
    ///
    /// # Errors
    /// If the inputs do not fit.
    pub fn evaluate(&mut self, rows: usize, inputs: &[&[T]]) -> Result<f64> {
        match &mut self.engine {
            Engine::Host { program, parameters, .. } => {
                program.run(parameters, rows, inputs)?;
                Ok(program.output(self.gradients)[0].to_f64())
            }
            Engine::Device { training, .. } => training.evaluate(rows, inputs),
        }
    }

    /// Watched value `k` of the last step.
    pub fn watched(&self, k: usize) -> &[T] {
        match &self.engine {
            Engine::Host { program, .. } => program.output(self.gradients + 1 + k),
            Engine::Device { training, .. } => training.watched(k),
        }
    }

    /// The parameters as they are.
    ///
    /// # Panics
    /// If a device fails to hand them over.
    pub fn parameters(&self) -> &Parameters<T> {
        match &self.engine {
            Engine::Host { parameters, .. } => parameters,
            Engine::Device { training, copy } => &fetched(&**training, copy).parameters,
        }
    }

    /// Their average over the steps: what sampling should use.
    ///
    /// # Panics
    /// If a device fails to hand them over.
    pub fn averaged(&self) -> &Parameters<T> {
        match &self.engine {
            Engine::Host { adam, .. } => adam.average(),
            Engine::Device { training, copy } => &fetched(&**training, copy).average,
        }
    }

    /// Counters.
    pub fn progress(&self) -> Progress {
        match &self.engine {
            Engine::Host { adam, .. } => adam.progress(),
            Engine::Device { training, .. } => training.progress(),
        }
    }

    /// What a person should be told, if anything went wrong so far.
    pub fn alarm(&self) -> Option<String> {
        let p = self.progress();
        (p.skipped > 0).then(|| {
            format!("{} of {} training steps were skipped: the gradient was not finite", p.skipped, p.steps)
        })
    }

    /// All that is needed to go on later.
    ///
    /// # Panics
    /// If a device fails to hand it over.
    pub fn state(&self) -> TrainingState<T> {
        match &self.engine {
            Engine::Host { parameters, adam, .. } => TrainingState {
                parameters: parameters.values().to_vec(),
                average: adam.average.values().to_vec(),
                first: adam.first.clone(),
                second: adam.second.clone(),
                progress: adam.progress,
            },
            Engine::Device { training, .. } => training.state().unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// Goes on from a state: the same bits as if there had been no interruption.
    ///
    /// # Errors
    /// If the state belongs to another number of parameters.
    pub fn restore(&mut self, state: &TrainingState<T>) -> Result<()> {
        let expected = self.parameters().values().len();
        for part in [&state.parameters, &state.average, &state.first, &state.second] {
            if part.len() != expected {
                return Err(Error::ParameterCount { expected, given: part.len() });
            }
        }
        match &mut self.engine {
            Engine::Host { parameters, adam, .. } => {
                parameters.set(&state.parameters)?;
                adam.average.set(&state.average)?;
                adam.first.copy_from_slice(&state.first);
                adam.second.copy_from_slice(&state.second);
                adam.progress = state.progress;
                Ok(())
            }
            Engine::Device { training, copy } => {
                *copy = OnceCell::new();
                training.restore(state)
            }
        }
    }
}

fn fetched<'a, T: Real>(training: &dyn TrainingLoop<T>, copy: &'a OnceCell<Copy<T>>) -> &'a Copy<T> {
    copy.get_or_init(|| {
        let state = training.state().unwrap_or_else(|error| panic!("{error}"));
        Copy { parameters: Parameters::new(state.parameters), average: Parameters::new(state.average) }
    })
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

    /// Seeds of choices, of noise and of times, for devices that draw for themselves.
    pub fn seeds(&self) -> [u64; 3] {
        [self.samples.seed(), self.noise.seed(), self.times.seed()]
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
