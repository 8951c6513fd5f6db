//! NF-APT, trained: one RealNVP for all pairs (§5.1, App. D.1, App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::accelerators::FlowAccelerator;
use sterna::path::AnnealingPath;

use crate::Result;
use crate::compute::Opened;
use crate::conditions::{Conditioning, Conditions};
use crate::cpu::Cpu;
use crate::fit::{
    Course, Lesson, Split, Training, first_report, guard, into_library, partly_plain, spread, streams,
};
use crate::graph::{Graph, Value};
use crate::losses::{GraphPath, Loss, check_flow_loss, flow_divergences, round_trip_loss};
use crate::mlp::Hidden;
use crate::parameters::{Layout, Parameters};
use crate::real::Real;
use crate::realnvp::{RealNvp, RealNvpConfig};
use crate::recipe::{Field, PairChoice, Recipe, Way};
use crate::target::GraphTarget;
use crate::training::{Trainer, TrainingStreams};
use crate::transport::NeuralFlow;
use crate::weights::{NetworkConfig, Stored, from_bytes, to_bytes};

/// Size of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSize {
    /// Coupling layers.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
}

/// What `transport.safetensors` says about a trained flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// The network; it knows the schedule it was made for.
    pub network: NetworkConfig,
    /// Pairs that are swapped plainly.
    pub plain: Vec<bool>,
}

/// Trains a flow on samples of both chains of every pair.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// use sterna_neural::{FlowSize, Hidden, TrainFlow, Training};
///
/// let target = Normal::isotropic(2, 20.0);
/// let path = Arc::new(Geometric::from_standard_normal(target.clone()));
/// let size = FlowSize { layers: 4, hidden: Hidden::new(1, 16) };
/// let training = Training { steps: 200, learning_rate: 1e-2, ..Training::default() };
/// let fit = Arc::new(TrainFlow::new(path.clone(), Arc::new(target), size, training)?);
///
/// let settings = Settings { chains: 2, collect: 1000, iterations: 2000, ..Settings::default() };
/// let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
/// run.complete().unwrap();
/// let pair = run.fit_report().unwrap().pairs[0];
/// assert!(pair.rejection < 0.5 * pair.plain_rejection);
/// # Ok::<(), sterna_neural::Error>(())
/// ```
pub struct TrainFlow {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn GraphTarget>,
    size: FlowSize,
    training: Training,
    opened: Opened,
}

impl TrainFlow {
    /// For the geometric path from N(0, I) to `target`: once as the run sees it, once inside graphs.
    ///
    /// # Errors
    /// If a setting is impossible.
    pub fn new(
        path: Arc<dyn AnnealingPath>,
        target: Arc<dyn GraphTarget>,
        size: FlowSize,
        training: Training,
    ) -> Result<Self> {
        training.check()?;
        check_flow_loss(training.loss)?;
        // What a network cannot be is known before anything is sampled.
        config(&*target, size, &[0.0, 1.0])?.build(&mut Layout::new(), "flow")?;
        let opened = training.compute.open(training.threads)?;
        Ok(Self { path, target, size, training, opened })
    }
}

fn config(target: &dyn GraphTarget, size: FlowSize, schedule: &[f64]) -> Result<RealNvpConfig> {
    let FlowSize { layers, hidden } = size;
    let conditioning = Conditioning::new(schedule)?;
    Ok(RealNvpConfig { dim: target.dim(), layers, hidden, max_log_scale: 2.0, conditioning })
}

impl Fit for TrainFlow {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        self.lesson(collected, earlier).map_err(into_library)
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        let stored: Stored<FlowDescription> =
            from_bytes(record.to_vec(), "the flow's weights").map_err(into_library)?;
        let (accelerator, _) = stored.description.restore(&stored)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}

impl FlowDescription {
    /// The accelerator of a file, and the length of its points.
    pub(crate) fn restore<D>(&self, stored: &Stored<D>) -> sterna::Result<(Arc<dyn Accelerator>, usize)> {
        let NetworkConfig::RealNvp(config) = &self.network else {
            return Err(sterna::Error::Saved("the weights are not those of a flow".into()));
        };
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "flow").map_err(into_library)?;
        let accelerator = accelerator(&network, &stored.parameters(&layout).map_err(into_library)?)?;
        Ok((partly_plain(accelerator, self.plain.clone()), config.dim))
    }
}

impl TrainFlow {
    fn lesson(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let training = &self.training;
        let config = config(&*self.target, self.size, collected.schedule.betas())?;
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "flow")?;
        let start = match earlier.filter(|e| !e.record.is_empty()) {
            Some(e) => {
                from_bytes::<FlowDescription>(e.record.to_vec(), "the round before")?.parameters(&layout)?
            }
            None => layout.initialise(training.seed),
        };
        let graph = Graph::new();
        let graph_path = GraphPath::from_standard_normal(self.target.clone());
        let [up, down] = record(&graph, &network, &graph_path);
        let loss = match training.loss {
            Loss::ForwardKl => up.mean_rows(),
            Loss::ReverseKl => down.mean_rows(),
            _ => (up + down).mean_rows(),
        };
        let device = self.opened.device();
        let trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())?;
        let lesson = FlowLesson {
            path: self.path.clone(),
            graph_path,
            fine: false,
            opened: self.opened.clone(),
            streams: streams(training, collected.round),
            split: Split::new(collected),
            training: training.clone(),
            layout: layout.clone(),
            config,
            network,
        };
        let report = first_report(earlier, &self.opened);
        Ok(Box::new(Course::new(lesson, training.clone(), trainer, layout, report)))
    }
}

/// The divergences of both directions, of inputs "lower", "upper", "x_lower" and "x_upper".
fn record<'g>(graph: &'g Graph, network: &RealNvp, path: &GraphPath) -> [Value<'g>; 2] {
    let conditions = Conditions::pair_inputs(graph);
    let [lower, upper] = ["x_lower", "x_upper"].map(|name| graph.input(name, network.dim()));
    flow_divergences(network, path, &conditions, lower, upper)
}

/// The flow in f64, so that the way back is exact to rounding.
fn accelerator(network: &RealNvp, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
    let flow = NeuralFlow::<f64>::new(network.clone(), weights.convert(), Arc::new(Cpu::new(1)))
        .map_err(into_library)?;
    Ok(Arc::new(FlowAccelerator::new(Arc::new(flow))))
}

struct FlowLesson {
    path: Arc<dyn AnnealingPath>,
    graph_path: GraphPath,
    /// Whether the round-trip loss is trained on, which asks which pair a row belongs to.
    fine: bool,
    opened: Opened,
    split: Split,
    streams: TrainingStreams,
    training: Training,
    layout: Layout,
    config: RealNvpConfig,
    network: RealNvp,
}

impl Lesson for FlowLesson {
    fn rows(&self) -> usize {
        self.training.batch
    }

    fn inputs(&self) -> usize {
        if self.fine { 5 } else { 4 }
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        for row in 0..self.training.batch {
            let mut choices = self.streams.choices(step, row);
            let pairs = self.split.pairs();
            let pair = if self.fine { spread(step, row, pairs) } else { choices.below(pairs) };
            let (low, high) = self.split.ends(pair);
            inputs[0].push(low as f32);
            inputs[1].push(high as f32);
            for (k, input) in inputs[2..4].iter_mut().enumerate() {
                input.extend(self.split.sample(pair + k, &mut choices).iter().map(|&x| f32::from_f64(x)));
            }
            if self.fine {
                inputs[4].extend((0..pairs).map(|n| if n == pair { 1.0 } else { 0.0 }));
            }
        }
    }

    fn recipe(&self) -> Option<Recipe> {
        let (trained, samples, betas) = self.split.for_recipe();
        let [choices_seed, noise_seed, _] = self.streams.seeds();
        let mut fields = vec![Field::Lower, Field::Upper, Field::AtLower, Field::AtUpper];
        fields.extend(self.fine.then_some(Field::Which));
        Some(Recipe {
            journeys: self.training.batch,
            rows: self.training.batch,
            choices_seed,
            noise_seed,
            first_step: 0,
            dim: self.network.dim(),
            trained,
            samples,
            betas,
            pair: if self.fine { PairChoice::Spread(1) } else { PairChoice::Drawn },
            way: Way::Forward,
            fields,
        })
    }

    /// The start and the end of each journey are points of the target.
    fn cost(&self) -> (u64, u64) {
        let one_way = matches!(self.training.loss, Loss::ForwardKl | Loss::ReverseKl) && !self.fine;
        let directions = if one_way { 1 } else { 2 };
        let journeys = (self.training.batch * directions) as u64;
        (2 * journeys, journeys)
    }

    fn can_fine_tune(&self) -> bool {
        true
    }

    fn fine_tune(&mut self, weights: Parameters<f32>) -> Result<Trainer<f32>> {
        self.fine = true;
        let graph = Graph::new();
        let [up, down] = record(&graph, &self.network, &self.graph_path);
        let loss = round_trip_loss(graph.input("which", self.split.pairs()), up + down);
        let device = self.opened.device();
        Trainer::new(device, &graph, loss, &[], &self.layout, weights, self.training.gentle_adam())
    }

    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted> {
        let accelerator = accelerator(&self.network, weights)?;
        let accelerator = guard(accelerator, &*self.path, &self.split, &self.training, report)?;
        let plain = report.pairs.iter().map(|p| p.plain).collect();
        let description = FlowDescription { network: NetworkConfig::RealNvp(self.config.clone()), plain };
        let record = to_bytes(&description, &self.layout, weights, None).map_err(into_library)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}
