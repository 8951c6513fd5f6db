//! What flows and controlled diffusions share in training: one network for all pairs of the geometric path, batches
//! of journeys between both chains of a pair, fine-tuning on the round-trip loss, and the guard.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sterna::acceleration::{Collected, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;

use crate::compute::Opened;
use crate::course::{Course, Lesson};
use crate::device::Program;
use crate::fit::{Training, first_report, into_library, streams};
use crate::graph::{Graph, Value};
use crate::graph_path::GraphPath;
use crate::judge::{Split, guard};
use crate::looks::Look;
use crate::losses::{Loss, round_trip_loss};
use crate::parameters::{Layout, Parameters};
use crate::recipe::{Field, HostBatches, PairChoice, Recipe, Way};
use crate::target::GraphTarget;
use crate::training::{Trainer, TrainingStreams};
use crate::weights::{Stored, from_bytes, to_bytes};
use crate::{Error, Result};

/// A network that carries points between the chains of every pair.
pub(crate) trait PairNetwork: Send + 'static {
    /// What its file says about it.
    type Description: Serialize;

    /// Length of a point.
    fn dim(&self) -> usize;
    /// Records a loss; its inputs are the fields of [`batch`](Self::batch), in their order.
    fn loss<'g>(&self, graph: &'g Graph, path: &GraphPath, loss: Loss) -> Value<'g>;
    /// Records journeys there and back between this many pairs: which pair each row belongs to, and the sum of its divergences.
    fn round_trips<'g>(&self, graph: &'g Graph, path: &GraphPath, pairs: usize) -> [Value<'g>; 2];
    /// Records the loss of each row, where it asks the target nothing: looks at held-out samples then ask it nothing either.
    fn loss_of_rows<'g>(&self, _graph: &'g Graph, _loss: Loss) -> Option<Value<'g>> {
        None
    }
    /// What a batch holds; of the round-trip loss, where there is no loss.
    fn batch(&self, journeys_each_way: usize, loss: Option<Loss>) -> PairBatch;
    /// Points at which the journeys of one batch evaluate the target, and the network.
    fn cost(&self, journeys_each_way: usize, loss: Option<Loss>) -> (u64, u64);
    /// Points at which their derivatives evaluate the target beyond that.
    fn cost_of_derivatives(&self, path: &GraphPath, journeys_each_way: usize, loss: Option<Loss>) -> u64;
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

    /// Points at which a step of training asks the target, and the network.
    pub fn asked_in_a_step(&self, network: &impl PairNetwork) -> (u64, u64) {
        asked_in_a_step(network, &self.graph_path(network), self.training.batch, Some(self.training.loss))
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
        if training.loss == Loss::Scores && collected.scores.len() != collected.samples.len() {
            return Err(Error::Host(
                "the samples came without the scores that training.loss = \"scores\" wants".into(),
            ));
        }
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
            looker: None,
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
    /// Made at the first look.
    looker: Option<Looker>,
}

/// The same journeys of held-out samples, look after look.
struct Looker {
    program: Box<dyn Program<f32>>,
    inputs: Vec<Vec<f32>>,
    /// Pairs that share the rows in turn; none where the loss itself is looked at.
    pairs: usize,
}

/// Rows of a look: journeys there and back.
const LOOKED_AT: usize = 2048;

/// Points at which a step of training asks the target, and the network.
fn asked_in_a_step(
    network: &impl PairNetwork,
    path: &GraphPath,
    batch: usize,
    loss: Option<Loss>,
) -> (u64, u64) {
    let (target, asked) = network.cost(batch, loss);
    (target + network.cost_of_derivatives(path, batch, loss), asked)
}

/// A sample that comes with its score and the score's units is so many times as long.
pub(crate) const SCORED: usize = 3;

/// Each sample, of so many of each chain, with the path's score at it and the units of that: the root of the coordinate's local
/// variance on the chain, 1/E(score²). A score that is no number counts nothing.
fn with_scores(samples: &[f64], scores: &[f64], each: usize, dim: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(SCORED * samples.len());
    for (samples, scores) in samples.chunks_exact(each * dim).zip(scores.chunks_exact(each * dim)) {
        let unit = |j: usize| {
            let squares = scores.iter().skip(j).step_by(dim).map(|s| s * s).filter(|s| s.is_finite());
            let (sum, n) = squares.fold((0.0, 0.0), |(sum, n), square| (sum + square, n + 1.0));
            let unit: f64 = f64::sqrt(n / sum);
            if unit.is_finite() { unit } else { 0.0 }
        };
        let units: Vec<f64> = (0..dim).map(unit).collect();
        for (x, score) in samples.chunks_exact(dim).zip(scores.chunks_exact(dim)) {
            let known = score.iter().all(|s| s.is_finite());
            out.extend_from_slice(x);
            out.extend(score.iter().map(|&s| if known { s } else { 0.0 }));
            out.extend(units.iter().map(|&u| if known { u } else { 0.0 }));
        }
    }
    out
}

impl<N: PairNetwork> PairLesson<N> {
    /// A trainer of the present loss.
    fn trainer(&self, start: Parameters<f32>) -> Result<Trainer<f32>> {
        let (graph, training) = (Graph::new(), &self.fit.training);
        let (loss, adam) = match self.loss {
            Some(loss) => (self.network.loss(&graph, &self.graph_path, loss), training.adam()),
            None => {
                let pairs = self.split.pairs();
                let [which, divergence] = self.network.round_trips(&graph, &self.graph_path, pairs);
                (round_trip_loss(which, divergence), training.gentle_adam())
            }
        };
        Trainer::new(self.fit.opened.device(), &graph, loss, &[], &self.layout, start, adam)
    }

    fn told(&self) -> Recipe {
        let [scores, _] = self.split.scores();
        self.recipe_of(self.batch.clone(), self.split.trained(), self.split.trained_on(), scores)
    }

    /// A recipe of samples, as the network sees them; where the loss is one of scores, with those and their units.
    fn recipe_of(
        &self,
        batch: PairBatch,
        trained: usize,
        mut samples: Vec<f64>,
        mut scores: Vec<f64>,
    ) -> Recipe {
        let mut dim = self.network.dim();
        if let Some(frame) = self.network.frame() {
            samples.chunks_exact_mut(dim).for_each(|x| frame.standardise(x));
            scores.chunks_exact_mut(dim).for_each(|score| frame.standardise_score(score));
        }
        if self.loss == Some(Loss::Scores) {
            samples = with_scores(&samples, &scores, trained, dim);
            dim *= SCORED;
        }
        let PairBatch { journeys, rows, pair, way, fields } = batch;
        let [choices_seed, noise_seed, _] = self.streams.seeds();
        Recipe {
            journeys,
            rows,
            choices_seed,
            noise_seed,
            first_step: 0,
            dim,
            trained,
            samples,
            betas: self.split.schedule().betas().to_vec(),
            pair,
            way,
            fields,
        }
    }
}

impl<N: PairNetwork> PairLesson<N> {
    /// The loss that looks look at: none where they look at round trips.
    fn looked_at(&self) -> Option<Loss> {
        self.loss.filter(|loss| self.network.loss_of_rows(&Graph::new(), *loss).is_some())
    }

    fn looker(&self) -> Result<Looker> {
        let (graph, loss) = (Graph::new(), self.looked_at());
        let (value, pairs) = match loss.and_then(|loss| self.network.loss_of_rows(&graph, loss)) {
            Some(value) => (value, 0),
            None => {
                let pairs = self.split.pairs();
                let [_, divergence] = self.network.round_trips(&graph, &self.graph_path, pairs);
                ((divergence * 0.5).tanh().abs(), pairs)
            }
        };
        let program = self.fit.opened.device().compile(&graph, &[value])?;
        let batch = self.network.batch(LOOKED_AT, loss);
        let mut inputs = vec![Vec::new(); batch.fields.len()];
        let ((held_out, samples), [_, scores]) = (self.split.all_held_out(), self.split.scores());
        HostBatches::new(self.recipe_of(batch, held_out, samples, scores)).fill(0, &mut inputs);
        Ok(Looker { program, inputs, pairs })
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
        asked_in_a_step(&self.network, &self.graph_path, self.fit.training.batch, self.loss)
    }

    fn look(&mut self, weights: &Parameters<f32>) -> Result<Option<Look>> {
        if !self.fit.training.judges {
            return Ok(None);
        }
        if self.looker.is_none() {
            self.looker = Some(self.looker()?);
        }
        let Looker { program, inputs, pairs } = self.looker.as_mut().expect("just made");
        let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[..]).collect();
        program.run(weights, LOOKED_AT, &inputs)?;
        // What is no number is rejected, and no loss at all.
        let worst = if *pairs > 0 { 1.0 } else { 1e30 };
        let number = |&x: &f32| if x.is_finite() { x } else { worst };
        let values = program.output(0)[..LOOKED_AT].iter().map(number).collect();
        Ok(Some(Look { values, pairs: *pairs }))
    }

    fn cost_of_look(&self) -> (u64, u64) {
        self.network.cost(LOOKED_AT, self.looked_at())
    }

    fn can_fine_tune(&self) -> bool {
        true
    }

    fn fine_tune(&mut self, weights: Parameters<f32>) -> Result<Trainer<f32>> {
        (self.loss, self.batches, self.looker) = (None, None, None);
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
