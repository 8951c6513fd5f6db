//! CMCD-APT, trained: a drift, variances and interpolations for all pairs (§5.2, App. D.2, App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::Batch;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::accelerators::Cmcd;
use sterna::path::AnnealingPath;

use crate::additive::AdditiveDriftConfig;
use crate::compute::Opened;
use crate::conditions::Conditioning;
use crate::cpu::Cpu;
use crate::egnn::EgnnDriftConfig;
use crate::fit::{
    Course, Lesson, Split, Training, first_report, guard, into_library, partly_plain, spread, streams,
};
use crate::graph::Graph;
use crate::losses::{CmcdInputs, CmcdNetwork, GraphPath, Loss};
use crate::mlp::{Hidden, MlpDriftConfig};
use crate::parameters::{Layout, Parameters};
use crate::particles::Particles;
use crate::recipe::{Field, PairChoice, Recipe, Way};
use crate::target::GraphTarget;
use crate::training::{Trainer, TrainingStreams};
use crate::transport::NeuralDrift;
use crate::weights::{Network, NetworkConfig, Stored, from_bytes, to_bytes};
use crate::{Error, Result};

/// Size of a trained controlled diffusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CmcdSize {
    /// K.
    pub steps: usize,
    /// Hidden layers of the drift.
    pub hidden: Hidden,
    /// Points that are mean-free positions of particles get a drift that turns and permutes with them.
    pub particles: Option<Particles>,
    /// In place of an MLP of all coordinates, a network of each alone: right for products.
    pub apart: bool,
    /// Whether the drift has a part along the path's score, a multiple of it learned for each pair and path time.
    pub along_score: bool,
    /// Variance of a step's noise relative to the local variance, per unit of barrier between the chains
    /// of a pair, that training starts from.
    pub noise: f64,
}

impl CmcdSize {
    /// The paper's drift: an MLP of all coordinates.
    pub const fn new(steps: usize, hidden: Hidden) -> Self {
        Self { steps, hidden, particles: None, apart: false, along_score: false, noise: 0.1 }
    }
}

/// What `transport.safetensors` says about a trained controlled diffusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CmcdDescription {
    /// The drift; it knows the schedule it was made for.
    pub drift: NetworkConfig,
    /// K.
    pub steps: usize,
    /// Variances of a step at the lower and the upper chain that each pair started from.
    pub start: Vec<[f64; 2]>,
    /// Pairs that are swapped plainly.
    pub plain: Vec<bool>,
    /// Whether the drift has a part along the path's score.
    #[serde(default)]
    pub along_score: bool,
}

/// Trains a controlled diffusion on samples of both chains of every pair; see [`TrainFlow`](crate::TrainFlow),
/// which is used in the same way.
pub struct TrainCmcd {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn GraphTarget>,
    size: CmcdSize,
    training: Training,
    opened: Opened,
}

impl TrainCmcd {
    /// For the geometric path from N(0, I) to `target`: once as the run sees it, once inside graphs.
    ///
    /// # Errors
    /// If a setting is impossible.
    pub fn new(
        path: Arc<dyn AnnealingPath>,
        target: Arc<dyn GraphTarget>,
        size: CmcdSize,
        training: Training,
    ) -> Result<Self> {
        training.check()?;
        let wrong = |field, value: String, reason| Err(Error::Config { field, value, reason });
        if size.steps == 0 {
            return wrong("accelerator.steps", "0".into(), "a controlled diffusion needs at least one step");
        }
        if !(size.noise > 0.0 && size.noise.is_finite()) {
            return wrong("accelerator.noise", size.noise.to_string(), "it must be positive");
        }
        size.hidden.check()?;
        if let Some(particles) = size.particles.filter(|p| p.dim() != target.dim()) {
            return Err(Error::Dimension { expected: particles.dim(), given: target.dim() });
        }
        let opened = training.compute.open(training.threads)?;
        Ok(Self { path, target, size, training, opened })
    }

    fn lesson(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let (training, dim) = (&self.training, self.target.dim());
        let conditioning = Conditioning::new(collected.schedule.betas())?;
        let hidden = self.size.hidden;
        let drift = match self.size.particles {
            None if self.size.apart => {
                NetworkConfig::AdditiveDrift(AdditiveDriftConfig { dim, hidden, conditioning })
            }
            None => NetworkConfig::MlpDrift(MlpDriftConfig { dim, hidden, conditioning }),
            Some(particles) => {
                NetworkConfig::EgnnDrift(EgnnDriftConfig { particles, hidden, species: vec![], conditioning })
            }
        };
        let earlier_weights = earlier
            .filter(|e| !e.record.is_empty())
            .map(|e| from_bytes::<CmcdDescription>(e.record.to_vec(), "the round before"))
            .transpose()?;
        // Later rounds go on with the network of the first, though the chains have moved.
        let (drift, start, along_score) = match &earlier_weights {
            Some(Stored { description, .. }) => {
                let drift = description.drift.clone().on_schedule(collected.schedule.betas());
                (drift, description.start.clone(), description.along_score)
            }
            None => (drift, collected.step_variances(self.size.noise), self.size.along_score),
        };
        let steps = self.size.steps;
        let description = CmcdDescription { drift, steps, start, plain: Vec::new(), along_score };
        let mut layout = Layout::new();
        let network = description.build(&mut layout)?;
        let start = match earlier_weights {
            Some(stored) => stored.parameters(&layout)?,
            None => layout.initialise(training.seed),
        };
        let graph = Graph::new();
        let inputs = CmcdInputs::record(&graph, &network);
        let graph_path = GraphPath::from_standard_normal(self.target.clone());
        let path = &graph_path;
        let loss = network.loss(training.loss, path, &inputs);
        let device = self.opened.device();
        let trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())?;
        let directions = if matches!(training.loss, Loss::ForwardKl | Loss::ReverseKl) { 1 } else { 2 };
        let rows = training.batch * directions;
        let lesson = CmcdLesson {
            path: self.path.clone(),
            graph_path,
            fine: false,
            opened: self.opened.clone(),
            streams: streams(training, collected.round),
            split: Split::new(collected),
            keys: (0..rows as u32).collect(),
            noise: Batch::zeros(rows, self.size.steps * dim),
            training: training.clone(),
            layout: layout.clone(),
            network,
            description,
        };
        let report = first_report(earlier, &self.opened);
        Ok(Box::new(Course::new(lesson, training.clone(), trainer, layout, report)))
    }
}

impl Fit for TrainCmcd {
    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        self.lesson(collected, earlier).map_err(into_library)
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        let stored: Stored<CmcdDescription> =
            from_bytes(record.to_vec(), "the drift's weights").map_err(into_library)?;
        let (accelerator, _) = stored.description.restore(&stored)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}

impl CmcdDescription {
    /// The network with its parameters.
    fn build(&self, layout: &mut Layout) -> Result<CmcdNetwork> {
        let Network::Drift(drift) = self.drift.build(layout, "drift")? else {
            let reason = "its network is not a drift".into();
            return Err(Error::Mismatch { origin: "the drift's weights".into(), reason });
        };
        let network = CmcdNetwork::new(layout, drift, self.steps, &self.start);
        Ok(if self.along_score { network.with_score(layout) } else { network })
    }

    /// The accelerator of a file, and the length of its points.
    pub(crate) fn restore<D>(&self, stored: &Stored<D>) -> sterna::Result<(Arc<dyn Accelerator>, usize)> {
        let mut layout = Layout::new();
        let network = self.build(&mut layout).map_err(into_library)?;
        let accelerator = accelerator(&network, &stored.parameters(&layout).map_err(into_library)?)?;
        Ok((partly_plain(accelerator, self.plain.clone()), network.dim()))
    }
}

/// Network, weights and plain pairs of a finished training's record.
#[cfg(feature = "cuda")]
pub(crate) fn trained(record: &[u8]) -> Result<(CmcdNetwork, Parameters<f32>, Vec<bool>)> {
    let stored: Stored<CmcdDescription> = from_bytes(record.to_vec(), "the drift's weights")?;
    let mut layout = Layout::new();
    let network = stored.description.build(&mut layout)?;
    Ok((network, stored.parameters(&layout)?, stored.description.plain))
}

/// A drift in f32 shapes the proposals; its values serve simulation and density alike.
fn accelerator(network: &CmcdNetwork, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
    let drift = NeuralDrift::<f32>::new(network.drift().clone(), weights.clone(), Arc::new(Cpu::new(1)))
        .map_err(into_library)?;
    Ok(Arc::new(Cmcd { steps: network.kernels(weights, Arc::new(drift))? }))
}

struct CmcdLesson {
    path: Arc<dyn AnnealingPath>,
    graph_path: GraphPath,
    /// Whether rows come in twos, for the round-trip loss.
    fine: bool,
    opened: Opened,
    split: Split,
    streams: TrainingStreams,
    training: Training,
    layout: Layout,
    network: CmcdNetwork,
    description: CmcdDescription,
    keys: Vec<u32>,
    noise: Batch,
}

impl Lesson for CmcdLesson {
    fn rows(&self) -> usize {
        if self.fine { self.keys.len() / 2 } else { self.keys.len() }
    }

    fn inputs(&self) -> usize {
        6
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        let pairs = self.split.pairs();
        for row in 0..self.keys.len() {
            let mut choices = self.streams.choices(step, row);
            let pair = if self.fine { spread(step, row / 2, pairs) } else { choices.below(pairs) };
            let (low, high) = self.split.ends(pair);
            let forward = match self.training.loss {
                _ if self.fine => row % 2 == 0,
                Loss::ForwardKl => true,
                Loss::ReverseKl => false,
                Loss::Skl | Loss::LogVariance => row % 2 == 0,
            };
            let chain = if forward { pair } else { pair + 1 };
            inputs[0].push(low as f32);
            inputs[1].push(high as f32);
            inputs[2].extend((0..pairs).map(|n| if n == pair { 1.0 } else { 0.0 }));
            inputs[3].push(if forward { 1.0 } else { 0.0 });
            inputs[4].extend(self.split.sample(chain, &mut choices).iter().map(|&x| x as f32));
        }
        self.streams.noise(step, &self.keys, &mut self.noise);
        inputs[5].extend(self.noise.as_slice().iter().map(|&z| z as f32));
    }

    fn recipe(&self) -> Option<Recipe> {
        let (trained, samples, betas) = self.split.for_recipe();
        let [choices_seed, noise_seed, _] = self.streams.seeds();
        let noise = self.network.steps() * self.network.dim();
        Some(Recipe {
            journeys: self.keys.len(),
            rows: self.rows(),
            choices_seed,
            noise_seed,
            first_step: 0,
            dim: self.network.dim(),
            trained,
            samples,
            betas,
            pair: if self.fine { PairChoice::Spread(2) } else { PairChoice::Drawn },
            way: match self.training.loss {
                Loss::ForwardKl if !self.fine => Way::Forward,
                Loss::ReverseKl if !self.fine => Way::Backward,
                _ => Way::Alternating,
            },
            fields: vec![
                Field::Lower,
                Field::Upper,
                Field::Which,
                Field::Forward,
                Field::Start,
                Field::Noise(noise),
            ],
        })
    }

    fn cost(&self) -> (u64, u64) {
        let (journeys, steps) = (self.keys.len() as u64, self.network.steps() as u64);
        // Derivatives go through the scores of all points but the first.
        let derivatives = match self.training.loss {
            Loss::LogVariance if !self.fine => 0,
            _ => self.graph_path.derivative_evaluations() * steps,
        };
        (journeys * (steps + 1 + derivatives), journeys * (steps + 1))
    }

    fn can_fine_tune(&self) -> bool {
        true
    }

    fn fine_tune(&mut self, weights: Parameters<f32>) -> Result<Trainer<f32>> {
        self.fine = true;
        let rows = 2 * self.training.batch;
        self.keys = (0..rows as u32).collect();
        self.noise = Batch::zeros(rows, self.network.steps() * self.network.dim());
        let graph = Graph::new();
        let inputs = CmcdInputs::record_twos(&graph, &self.network);
        let loss = self.network.round_trip_loss(&self.graph_path, &inputs);
        let device = self.opened.device();
        Trainer::new(device, &graph, loss, &[], &self.layout, weights, self.training.gentle_adam())
    }

    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted> {
        let accelerator = accelerator(&self.network, weights)?;
        let accelerator = guard(accelerator, &*self.path, &self.split, &self.training, report)?;
        let plain = report.pairs.iter().map(|p| p.plain).collect();
        let description = CmcdDescription { plain, ..self.description.clone() };
        let record = to_bytes(&description, &self.layout, weights, None).map_err(into_library)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }
}
