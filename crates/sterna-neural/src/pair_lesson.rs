//! What flows and controlled diffusions share in training: one network for all pairs of the geometric path, batches
//! of journeys between both chains of a pair, fine-tuning on the round-trip loss, and the guard.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sterna::acceleration::{Collected, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;

use crate::Result;
use crate::compute::Opened;
use crate::course::{Course, Lesson};
use crate::fit::{Training, first_report, into_library, streams};
use crate::graph::{Graph, Value};
use crate::graph_path::GraphPath;
use crate::judge::{Split, guard};
use crate::losses::Loss;
use crate::parameters::{Layout, Parameters};
use crate::recipe::{Field, HostBatches, PairChoice, Recipe, Way};
use crate::target::GraphTarget;
use crate::training::{Trainer, TrainingStreams};
use crate::weights::{Stored, from_bytes, to_bytes};

/// A network that carries points between the chains of every pair.
pub(crate) trait PairNetwork: Send + 'static {
    /// What its file says about it.
    type Description: Serialize;

    /// Length of a point.
    fn dim(&self) -> usize;
    /// Records a loss; its inputs are the fields of [`batch`](Self::batch), in their order.
    fn loss<'g>(&self, graph: &'g Graph, path: &GraphPath, loss: Loss) -> Value<'g>;
    /// Records the round-trip loss between this many pairs.
    fn round_trip_loss<'g>(&self, graph: &'g Graph, path: &GraphPath, pairs: usize) -> Value<'g>;
    /// What a batch holds; of the round-trip loss, where there is no loss.
    fn batch(&self, journeys_each_way: usize, loss: Option<Loss>) -> PairBatch;
    /// Points at which one step evaluates the target, and the network.
    fn cost(&self, path: &GraphPath, journeys_each_way: usize, loss: Option<Loss>) -> (u64, u64);
    /// The accelerator of these weights, for points.
    fn accelerator(&self, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>>;
    /// The coordinates that it learns and travels in, where they are not those of points.
    fn frame(&self) -> Option<&Frame>;
    /// The longest score that it follows there.
    fn steepest(&self) -> Option<f64> {
        None
    }
    /// What the file says, where these pairs are swapped plainly.
    fn describe(&self, plain: Vec<bool>) -> Self::Description;
}

/// Which losses go one way only.
pub(crate) fn one_way(loss: Option<Loss>) -> Option<Way> {
    match loss {
        Some(Loss::ForwardKl) => Some(Way::Forward),
        Some(Loss::ReverseKl) => Some(Way::Backward),
        _ => None,
    }
}

/// What a batch holds.
#[derive(Clone)]
pub(crate) struct PairBatch {
    /// Journeys.
    pub journeys: usize,
    /// Rows of the recorded batch.
    pub rows: usize,
    /// Pairs of the journeys.
    pub pair: PairChoice,
    /// Their ways.
    pub way: Way,
    /// The inputs.
    pub fields: Vec<Field>,
}

/// Path, target and settings of a fit.
#[derive(Clone)]
pub(crate) struct PairFit {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn GraphTarget>,
    training: Training,
    opened: Opened,
}

/// The weights of the round before, if there was one.
pub(crate) fn stored<D: DeserializeOwned>(earlier: Option<&Fitted>) -> Result<Option<Stored<D>>> {
    let record = earlier.filter(|e| !e.record.is_empty()).map(|e| e.record.to_vec());
    record.map(|record| from_bytes(record, "the round before")).transpose()
}

impl PairFit {
    /// For a path to `target`: once as the run sees it, once inside graphs.
    pub fn new(
        path: Arc<dyn AnnealingPath>,
        target: Arc<dyn GraphTarget>,
        training: Training,
    ) -> Result<Self> {
        let opened = training.compute.open(training.threads)?;
        Ok(Self { path, target, training, opened })
    }

    pub fn target(&self) -> &dyn GraphTarget {
        &*self.target
    }

    pub fn path(&self) -> &dyn AnnealingPath {
        &*self.path
    }

    /// The same with a training of so many steps, which others judge. Slices of one training draw other batches each.
    pub fn slice(&self, steps: u64) -> Self {
        let seed = self.training.seed ^ steps.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let training =
            Training { steps, seed, fine_tune: 0, guard: false, judges: false, ..self.training.clone() };
        Self { training, ..self.clone() }
    }

    /// Journeys of a step, in each direction.
    pub fn batch(&self) -> usize {
        self.training.batch
    }

    /// What training makes small.
    pub fn loss(&self) -> Loss {
        self.training.loss
    }

    /// The same for another path to the target.
    pub fn on(&self, path: &Arc<dyn AnnealingPath>) -> Self {
        Self { path: path.clone(), ..self.clone() }
    }

    /// The path inside graphs, as a network sees it. One that is not geometric is taken to begin at N(0, I).
    fn graph_path(&self, network: &impl PairNetwork) -> GraphPath {
        let frame = network.frame().map(|frame| Arc::new(frame.clone()));
        match self.path.as_geometric() {
            Some(path) => GraphPath::between(path, self.target.clone(), frame.as_ref())
                .with_steepest(network.steepest()),
            None => GraphPath::from_standard_normal(self.target.clone()),
        }
    }

    /// A training of this network, from the weights of the round before or from new ones.
    pub fn begin<N: PairNetwork, D>(
        &self,
        network: N,
        layout: Layout,
        collected: Arc<Collected>,
        earlier: Option<&Fitted>,
        stored: Option<&Stored<D>>,
    ) -> Result<Box<dyn Fitting>> {
        let training = &self.training;
        let start = match stored {
            Some(stored) => stored.parameters(&layout)?,
            None => layout.initialise(training.seed),
        };
        let streams = streams(training, collected.round);
        let lesson = PairLesson {
            batch: network.batch(training.batch, Some(training.loss)),
            graph_path: self.graph_path(&network),
            loss: Some(training.loss),
            split: Split::new(collected),
            fit: self.clone(),
            layout: layout.clone(),
            batches: None,
            streams,
            network,
        };
        let trainer = lesson.trainer(start)?;
        let report = first_report(earlier, &self.opened);
        Ok(Box::new(Course::new(lesson, training.clone(), trainer, layout, report)))
    }
}

struct PairLesson<N> {
    fit: PairFit,
    graph_path: GraphPath,
    /// Nothing, once the round-trip loss is trained on.
    loss: Option<Loss>,
    batch: PairBatch,
    split: Split,
    streams: TrainingStreams,
    layout: Layout,
    network: N,
    /// Made when the host first draws a batch.
    batches: Option<HostBatches>,
}

impl<N: PairNetwork> PairLesson<N> {
    /// A trainer of the present loss.
    fn trainer(&self, start: Parameters<f32>) -> Result<Trainer<f32>> {
        let (graph, training) = (Graph::new(), &self.fit.training);
        let (loss, adam) = match self.loss {
            Some(loss) => (self.network.loss(&graph, &self.graph_path, loss), training.adam()),
            None => {
                let pairs = self.split.pairs();
                (self.network.round_trip_loss(&graph, &self.graph_path, pairs), training.gentle_adam())
            }
        };
        Trainer::new(self.fit.opened.device(), &graph, loss, &[], &self.layout, start, adam)
    }

    /// All training samples, as the network sees them.
    fn samples(&self) -> Vec<f64> {
        let mut samples = self.split.trained_on();
        if let Some(frame) = self.network.frame() {
            samples.chunks_exact_mut(frame.dim()).for_each(|x| frame.standardise(x));
        }
        samples
    }

    fn told(&self) -> Recipe {
        let PairBatch { journeys, rows, pair, way, fields } = self.batch.clone();
        let [choices_seed, noise_seed, _] = self.streams.seeds();
        Recipe {
            journeys,
            rows,
            choices_seed,
            noise_seed,
            first_step: 0,
            dim: self.network.dim(),
            trained: self.split.trained(),
            samples: self.samples(),
            betas: self.split.schedule().betas().to_vec(),
            pair,
            way,
            fields,
        }
    }
}

impl<N: PairNetwork> Lesson for PairLesson<N> {
    fn rows(&self) -> usize {
        self.batch.rows
    }

    fn inputs(&self) -> usize {
        self.batch.fields.len()
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        if self.batches.is_none() {
            self.batches = Some(HostBatches::new(self.told()));
        }
        self.batches.as_mut().expect("just made").fill(step, inputs);
    }

    fn recipe(&self) -> Option<Recipe> {
        Some(self.told())
    }

    fn cost(&self) -> (u64, u64) {
        self.network.cost(&self.graph_path, self.fit.training.batch, self.loss)
    }

    fn can_fine_tune(&self) -> bool {
        true
    }

    fn fine_tune(&mut self, weights: Parameters<f32>) -> Result<Trainer<f32>> {
        (self.loss, self.batches) = (None, None);
        self.batch = self.network.batch(self.fit.training.batch, None);
        self.trainer(weights)
    }

    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted> {
        let accelerator = self.network.accelerator(weights)?;
        let accelerator = guard(accelerator, &*self.fit.path, &self.split, &self.fit.training, report)?;
        let description = self.network.describe(report.pairs.iter().map(|p| p.plain).collect());
        let record = to_bytes(&description, &self.layout, weights, None).map_err(into_library)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}
