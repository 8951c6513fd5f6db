//! Training wholly on the GPU: batches, gradient, clipping, Adam and averages as one recorded graph.

use std::sync::Arc;

use super::built::{Built, upload};
use super::gpu::{Buffer, Gpu, Kernel, Recording, argument};
use super::{Precision, batches, emit};
use crate::device::TrainingLoop;
use crate::graph::{Graph, Id, Value};
use crate::optimiser::{AdamConfig, Decay, Progress, StepReport};
use crate::parameters::Parameters;
use crate::recipe::Recipe;
use crate::training::TrainingState;
use crate::{Error, Real, Result};

/// Steps of one recorded graph: enough that starting it costs nothing beside them.
const STEPS_AT_ONCE: u64 = 10;
/// Losses kept until the host fetches them.
const LOSSES: usize = 1 << 14;
/// Numbers of the optimiser's state.
const STATE: usize = 16;
/// Blocks that sum up the gradient's squares.
const SUM_BLOCKS: usize = 528;

/// What is made once the number of rows is known.
struct Prepared<T> {
    built: Built<T>,
    measure: Kernel,
    adam: Kernel,
    draw: Option<Draw>,
    one: Option<Recording>,
    many: Option<Recording>,
}

struct Draw {
    kernel: Kernel,
    betas: Buffer,
    samples: Buffer,
}

/// A training on the GPU.
pub(super) struct CudaTraining<T: Real> {
    gpu: Arc<Gpu>,
    precision: Precision,
    graph: Graph,
    outputs: Vec<Id>,
    gradients: usize,
    config: AdamConfig,
    count: usize,
    prepared: Option<Prepared<T>>,
    recipe: Option<Recipe>,
    /// Parameters before the arena exists.
    start: Vec<T>,
    first: Buffer,
    second: Buffer,
    average: Buffer,
    state: Buffer,
    losses: Buffer,
    partial: Buffer,
    ticket: Buffer,
    progress: Progress,
    watched: Vec<Vec<T>>,
}

impl<T: Real> CudaTraining<T> {
    pub fn new(
        gpu: &Arc<Gpu>,
        precision: Precision,
        graph: &Graph,
        outputs: &[Value],
        gradients: usize,
        parameters: &Parameters<T>,
        config: AdamConfig,
    ) -> Result<Self> {
        let start = parameters.values().to_vec();
        let count = start.len();
        let bytes = count * T::BYTES;
        let average = gpu.allocate(bytes)?;
        average.write(0, &start)?;
        Ok(Self {
            precision,
            graph: graph.snapshot(),
            outputs: outputs.iter().map(|v| v.id()).collect(),
            gradients,
            config,
            count,
            prepared: None,
            recipe: None,
            first: gpu.allocate(bytes)?,
            second: gpu.allocate(bytes)?,
            average,
            state: gpu.allocate(STATE * 8)?,
            losses: gpu.allocate(LOSSES * 8)?,
            partial: gpu.allocate(SUM_BLOCKS * 8)?,
            ticket: gpu.allocate(16)?,
            progress: Progress::default(),
            watched: vec![],
            start,
            gpu: gpu.clone(),
        })
    }

    fn prepare(&mut self, rows: usize) -> Result<()> {
        if self.prepared.as_ref().is_some_and(|p| p.built.rows() == rows) {
            return Ok(());
        }
        let current = self.parameters()?;
        self.prepared = None;
        let outputs: Vec<Value> = self.outputs.iter().map(|&id| self.graph.value(id)).collect();
        let built = Built::new(&self.gpu, &self.graph, &outputs, rows, self.count, self.precision)?;
        built.arena().write(0, &current)?;
        let gradient = if self.gradients > 0 { built.output(0).0 } else { 0 };
        let places = [self.count, gradient, built.output(self.gradients).0];
        let optimiser = self.gpu.load(&optimiser_source::<T>(&self.config, self.precision, places))?;
        let measure = optimiser.kernel("measure", [SUM_BLOCKS.min(self.count.div_ceil(256)), 1], 256, 0)?;
        let adam = optimiser.kernel("adam", [self.count.div_ceil(256), 1], 256, 0)?;
        let draw = match &self.recipe {
            Some(recipe) => {
                let inputs: Vec<usize> = (0..recipe.fields.len()).map(|k| built.input(k)).collect();
                let source = batches::source(&emit::preamble::<T>(self.precision, true), recipe, &inputs);
                let kernel =
                    self.gpu.load(&source)?.kernel("draw", [recipe.journeys.div_ceil(4), 1], 128, 0)?;
                let betas = upload(&self.gpu, &recipe.betas)?;
                let samples: Vec<f32> = recipe.samples.iter().map(|&x| x as f32).collect();
                Some(Draw { kernel, betas, samples: upload(&self.gpu, &samples)? })
            }
            None => None,
        };
        self.prepared = Some(Prepared { built, measure, adam, draw, one: None, many: None });
        Ok(())
    }

    fn prepared(&self) -> &Prepared<T> {
        self.prepared.as_ref().expect("prepared before it is used")
    }

    /// Queues the gradient's length and the update.
    fn queue_update(&self) -> Result<()> {
        let Prepared { built, measure, adam, .. } = self.prepared();
        let mut arena = built.arena().pointer();
        let [mut state, mut losses, mut partial, mut ticket] =
            [&self.state, &self.losses, &self.partial, &self.ticket].map(Buffer::pointer);
        self.gpu.launch(
            measure,
            &mut [
                argument(&mut arena),
                argument(&mut state),
                argument(&mut losses),
                argument(&mut partial),
                argument(&mut ticket),
            ],
        )?;
        let [mut first, mut second, mut average] =
            [&self.first, &self.second, &self.average].map(Buffer::pointer);
        self.gpu.launch(
            adam,
            &mut [
                argument(&mut arena),
                argument(&mut state),
                argument(&mut first),
                argument(&mut second),
                argument(&mut average),
            ],
        )
    }

    fn queue_draw(&self) -> Result<()> {
        let Prepared { built, draw, .. } = self.prepared();
        let Some(Draw { kernel, betas, samples }) = draw else { return Ok(()) };
        let [mut arena, mut betas, mut samples, mut state] =
            [built.arena(), betas, samples, &self.state].map(Buffer::pointer);
        self.gpu.launch(
            kernel,
            &mut [argument(&mut arena), argument(&mut betas), argument(&mut samples), argument(&mut state)],
        )
    }

    fn queue_steps(&self, steps: u64) -> Result<()> {
        for _ in 0..steps {
            self.queue_draw()?;
            self.prepared().built.queue_weights()?;
            self.prepared().built.queue()?;
            self.queue_update()?;
        }
        Ok(())
    }

    /// Counters and the last loss, as the GPU has them.
    fn fetch(&mut self) -> Result<[f64; STATE]> {
        let mut state = [0.0; STATE];
        self.state.read(0, &mut state)?;
        let before = self.progress.steps;
        self.progress = Progress {
            steps: state[0] as u64,
            updates: state[1] as u64,
            skipped: state[2] as u64,
            skipped_in_a_row: state[3] as u64,
        };
        if state[4] != 0.0 {
            let step = self.progress.steps.max(before + 1) - 1;
            return Err(Error::Diverged { step, consecutive: self.progress.skipped_in_a_row });
        }
        Ok(state)
    }

    fn parameters(&self) -> Result<Vec<T>> {
        let Some(prepared) = &self.prepared else { return Ok(self.start.clone()) };
        let mut values = vec![T::ZERO; self.count];
        prepared.built.arena().read(0, &mut values)?;
        Ok(values)
    }

    fn write_inputs(&mut self, rows: usize, inputs: &[&[T]]) -> Result<()> {
        super::program::check_inputs(&self.graph.inputs(), rows, inputs)?;
        self.prepare(rows)?;
        let built = &self.prepared().built;
        for (k, input) in inputs.iter().enumerate() {
            built.arena().write(built.input(k), input)?;
        }
        built.queue_weights()?;
        built.queue()
    }

    fn fetch_watched(&mut self) -> Result<()> {
        let built = &self.prepared.as_ref().expect("prepared").built;
        self.watched.resize(self.outputs.len() - self.gradients - 1, vec![]);
        for (k, values) in self.watched.iter_mut().enumerate() {
            let (at, len) = built.output(self.gradients + 1 + k);
            values.resize(len, T::ZERO);
            built.arena().read(at, values)?;
        }
        Ok(())
    }
}

/// Source of the optimiser; `places` are the number of parameters, and where gradient and loss lie in the arena.
pub(super) fn optimiser_source<T: Real>(c: &AdamConfig, precision: Precision, places: [usize; 3]) -> String {
    let (decay_steps, floor) = match c.decay {
        Decay::Constant => (0.0, 1.0),
        Decay::Cosine { steps, floor } => (steps.max(1) as f64, floor),
    };
    let mut text = emit::preamble::<T>(precision, true);
    for (name, value) in [
        ("WARM_UP", c.warm_up as f64),
        ("DECAY_STEPS", decay_steps),
        ("FLOOR", floor),
        ("CLIP", c.clip),
        ("LEARNING_RATE", c.learning_rate),
        ("FIRST", c.first_decay),
        ("SECOND", c.second_decay),
        ("EPSILON", c.epsilon),
        ("AVERAGE", c.average),
        ("PATIENCE", c.patience as f64),
    ] {
        text += &format!("#define {name} {value:e}\n");
    }
    let [count, gradient, loss] = places;
    for (name, value) in [("COUNT", count), ("GRADIENT", gradient), ("LOSS", loss), ("LOSSES", LOSSES)] {
        text += &format!("#define {name} {value}ll\n");
    }
    text + include_str!("kernels/optimiser.cu")
}

impl<T: Real> TrainingLoop<T> for CudaTraining<T> {
    fn draw_from(&mut self, recipe: Recipe) {
        self.prepared = None;
        self.recipe = Some(recipe);
    }

    fn draws(&self) -> bool {
        self.recipe.is_some()
    }

    fn step(&mut self, rows: usize, inputs: &[&[T]]) -> Result<StepReport> {
        let skipped = self.progress.skipped;
        self.write_inputs(rows, inputs)?;
        self.queue_update()?;
        self.fetch_watched()?;
        let state = self.fetch()?;
        let skipped = self.progress.skipped > skipped;
        Ok(StepReport { loss: state[11], gradient_norm: state[10], skipped })
    }

    fn steps(&mut self, count: u64) -> Result<Vec<f64>> {
        let rows = self.recipe.as_ref().expect("batches drawn here").rows;
        self.prepare(rows)?;
        let record = !self.prepared().built.calls_host();
        if record && self.prepared().many.is_none() {
            let one = self.gpu.record(|| self.queue_steps(1))?;
            let many = self.gpu.record(|| self.queue_steps(STEPS_AT_ONCE))?;
            let prepared = self.prepared.as_mut().expect("prepared");
            (prepared.one, prepared.many) = (Some(one), Some(many));
        }
        let mut all = Vec::with_capacity(count as usize);
        let mut left = count;
        while left > 0 {
            let block = left.min(LOSSES as u64);
            let before = self.progress.steps;
            self.gpu.enter()?;
            match (&self.prepared().one, &self.prepared().many) {
                (Some(one), Some(many)) => {
                    (0..block / STEPS_AT_ONCE).try_for_each(|_| many.replay())?;
                    (0..block % STEPS_AT_ONCE).try_for_each(|_| one.replay())?;
                }
                _ => self.queue_steps(block)?,
            }
            let fetched = self.fetch();
            let mut losses = vec![0.0; LOSSES];
            self.losses.read(0, &mut losses)?;
            all.extend((before..self.progress.steps).map(|step| losses[step as usize % LOSSES]));
            fetched?;
            left -= block;
        }
        Ok(all)
    }

    fn evaluate(&mut self, rows: usize, inputs: &[&[T]]) -> Result<f64> {
        self.write_inputs(rows, inputs)?;
        let built = &self.prepared().built;
        let mut loss = [T::ZERO];
        built.arena().read(built.output(self.gradients).0, &mut loss)?;
        self.fetch_watched()?;
        Ok(loss[0].to_f64())
    }

    fn watched(&self, k: usize) -> &[T] {
        &self.watched[k]
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn state(&self) -> Result<TrainingState<T>> {
        let read = |buffer: &Buffer| {
            let mut values = vec![T::ZERO; self.count];
            buffer.read(0, &mut values).map(|()| values)
        };
        Ok(TrainingState {
            parameters: self.parameters()?,
            average: read(&self.average)?,
            first: read(&self.first)?,
            second: read(&self.second)?,
            progress: self.progress,
        })
    }

    fn restore(&mut self, state: &TrainingState<T>) -> Result<()> {
        self.start = state.parameters.clone();
        if let Some(prepared) = &self.prepared {
            prepared.built.arena().write(0, &state.parameters)?;
        }
        self.average.write(0, &state.average)?;
        self.first.write(0, &state.first)?;
        self.second.write(0, &state.second)?;
        let p = state.progress;
        let mut counters = [0.0; STATE];
        counters[..4].copy_from_slice(&[p.steps, p.updates, p.skipped, p.skipped_in_a_row].map(|n| n as f64));
        self.progress = p;
        self.state.write(0, &counters)
    }
}
