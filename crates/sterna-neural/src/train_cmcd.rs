//! CMCD-APT, trained: a drift, variances and interpolations for all pairs (§5.2, App. D.2, App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting, InSlices, partly_plain};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Cmcd, CmcdSteps, Framed};
use sterna::frame::Frame;
use sterna::path::AnnealingPath;

use crate::additive::AdditiveDriftConfig;
use crate::conditions::{Conditioning, Conditions};
use crate::cpu::Cpu;
use crate::egnn::EgnnDriftConfig;
use crate::fit::{Training, into_library};
use crate::framing::{frame_of, seen_from, steepest};
use crate::graph::{Graph, Value};
use crate::graph_path::GraphPath;
use crate::losses::{CmcdInputs, CmcdNetwork, Loss, refuse_likelihood};
use crate::mlp::{Hidden, MlpDriftConfig};
use crate::pair_lesson::{PairBatch, PairFit, PairNetwork, one_way, stored};
use crate::parameters::{Layout, Parameters};
use crate::particles::Particles;
use crate::recipe::{Field, PairChoice, Way};
use crate::target::GraphTarget;
use crate::transport::NeuralDrift;
use crate::weights::{Network, NetworkConfig, Stored, from_bytes};
use crate::work::multiply_adds;
use crate::{Error, Result};

/// Size of a trained controlled diffusion.
///
/// ```
/// use sterna_neural::{CmcdSize, Hidden};
///
/// // Five steps; the drift has two hidden layers of 64 and a part along the path's score.
/// let size = CmcdSize { along_score: true, ..CmcdSize::new(5, Hidden::new(2, 64)) };
/// assert_eq!(size.steps, 5);
/// ```
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
    /// The coordinates that it travels in, where the reference was not N(0, I).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// The longest score that it follows there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steepest: Option<f64>,
}

/// Trains a controlled diffusion on samples of both chains of every pair; see [`TrainFlow`](crate::TrainFlow),
/// which is used in the same way.
pub struct TrainCmcd {
    fit: PairFit,
    size: CmcdSize,
}

/// Noise of a step, relative to the local variance: beyond these, single precision knows no difference.
pub const POSSIBLE_NOISE: std::ops::RangeInclusive<f64> = 1e-6..=1e3;

impl TrainCmcd {
    /// For a geometric path to `target`: once as the run sees it, once inside graphs.
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
        refuse_likelihood(training.loss)?;
        let wrong = |field, value: String, reason| Err(Error::Config { field, value, reason });
        if size.steps == 0 {
            return wrong("accelerator.steps", "0".into(), "a controlled diffusion needs at least one step");
        }
        if !POSSIBLE_NOISE.contains(&size.noise) {
            return wrong("accelerator.noise", size.noise.to_string(), "it must lie between 1e-6 and 1e3");
        }
        size.hidden.check()?;
        if let Some(particles) = size.particles.filter(|p| p.dim() != target.dim()) {
            return Err(Error::Dimension { expected: particles.dim(), given: target.dim() });
        }
        Ok(Self { fit: PairFit::new(path, target, training)?, size })
    }

    /// The drift of a new training.
    fn drift(&self, schedule: &[f64]) -> Result<NetworkConfig> {
        let (dim, hidden) = (self.fit.target().dim(), self.size.hidden);
        let conditioning = Conditioning::new(schedule)?;
        Ok(match self.size.particles {
            None if self.size.apart => {
                NetworkConfig::AdditiveDrift(AdditiveDriftConfig { dim, hidden, conditioning })
            }
            None => NetworkConfig::MlpDrift(MlpDriftConfig { dim, hidden, conditioning }),
            Some(particles) => {
                NetworkConfig::EgnnDrift(EgnnDriftConfig { particles, hidden, species: vec![], conditioning })
            }
        })
    }

    /// Multiply-adds of a journey, which asks its drift where it begins and after each step; and of a step of training, with the points at
    /// which that asks the target.
    pub fn work(&self) -> Result<(f64, (f64, u64))> {
        let betas = [0.0, 0.5, 1.0];
        let Network::Drift(drift) = self.drift(&betas)?.build(&mut Layout::new(), "drift")? else {
            unreachable!("a drift was asked for")
        };
        let dim = drift.dim();
        let once = multiply_adds(dim + 3, |x| {
            let [lower, upper, time] = [dim, dim + 1, dim + 2].map(|place| x.slice(place, 1));
            vec![drift.record(&Conditions { lower, upper, time: Some(time) }, x.slice(0, dim))]
        });
        let size = self.size;
        let description = CmcdDescription {
            drift: self.drift(&betas)?,
            steps: size.steps,
            start: vec![[1.0; 2]; 2],
            plain: Vec::new(),
            along_score: size.along_score,
            frame: None,
            steepest: None,
        };
        let network = description.build(&mut Layout::new())?;
        let (target, drifts) = self.fit.asked_in_a_step(&TrainedCmcd { network, description });
        Ok(((size.steps + 1) as f64 * once, (3.0 * drifts as f64 * once, target)))
    }

    fn lesson(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let drift = self.drift(collected.schedule.betas())?;
        let stored = stored::<CmcdDescription>(earlier)?;
        // Later rounds go on with the network of the first, though the chains have moved.
        let (drift, start, along_score, (frame, steepest)) = match &stored {
            Some(Stored { description: d, .. }) => {
                let drift = d.drift.clone().on_schedule(collected.schedule.betas());
                (drift, d.start.clone(), d.along_score, (d.frame.clone(), d.steepest))
            }
            None => {
                let path = self.fit.path();
                let frame = frame_of(path, &collected, self.size.particles.is_some())?;
                let seen = seen_from(frame.as_ref(), path, &collected)?;
                let start = seen.step_variances(self.size.noise);
                let frame = frame.map(|frame| (*frame).clone());
                let steepest = frame.is_some().then(|| steepest(&seen));
                (drift, start, self.size.along_score, (frame, steepest))
            }
        };
        // Whoever went on trial with several K goes on with that of the winner.
        let steps = stored.as_ref().map_or(self.size.steps, |stored| stored.description.steps);
        let plain = Vec::new();
        let description = CmcdDescription { drift, steps, start, plain, along_score, frame, steepest };
        let mut layout = Layout::new();
        let network = TrainedCmcd { network: description.build(&mut layout)?, description };
        self.fit.begin(network, layout, collected, earlier, stored.as_ref())
    }
}

impl InSlices for TrainCmcd {
    fn slice(&self, steps: u64) -> sterna::Result<Arc<dyn Fit>> {
        Ok(Arc::new(Self { fit: self.fit.slice(steps), size: self.size }))
    }

    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Arc<dyn InSlices> {
        Arc::new(Self { fit: self.fit.on(path), size: self.size })
    }
}

impl Fit for TrainCmcd {
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        Some(Arc::new(Self { fit: self.fit.on(path), size: self.size }))
    }

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

    /// An accelerator of its coordinates, for points.
    fn placed(&self, accelerator: Arc<dyn Accelerator>) -> Arc<dyn Accelerator> {
        match &self.frame {
            Some(frame) => {
                let steepest = self.steepest.unwrap_or(f64::INFINITY);
                Arc::new(Framed::new(accelerator, Arc::new(frame.clone())).with_steepest(steepest))
            }
            None => accelerator,
        }
    }

    /// The accelerator of a file, and the length of its points.
    pub(crate) fn restore<D>(&self, stored: &Stored<D>) -> sterna::Result<(Arc<dyn Accelerator>, usize)> {
        let mut layout = Layout::new();
        let network = self.build(&mut layout).map_err(into_library)?;
        let weights = stored.parameters(&layout).map_err(into_library)?;
        let accelerator = self.placed(accelerator(&network, &weights)?);
        Ok((partly_plain(accelerator, self.plain.clone()), network.dim()))
    }
}

/// What a finished training's record holds, for a GPU.
#[cfg(feature = "cuda")]
pub(crate) struct Trained {
    pub network: CmcdNetwork,
    pub weights: Parameters<f32>,
    pub plain: Vec<bool>,
    pub frame: Option<Frame>,
    pub steepest: Option<f64>,
}

/// That of a record.
#[cfg(feature = "cuda")]
pub(crate) fn trained(record: &[u8]) -> Result<Trained> {
    let stored: Stored<CmcdDescription> = from_bytes(record.to_vec(), "the drift's weights")?;
    let mut layout = Layout::new();
    let network = stored.description.build(&mut layout)?;
    let weights = stored.parameters(&layout)?;
    let CmcdDescription { plain, frame, steepest, .. } = stored.description;
    Ok(Trained { network, weights, plain, frame, steepest })
}

/// The kernels of a trained controlled diffusion, from the bytes of its file: those of every pair, also of pairs that
/// training found better served by the plain swap.
///
/// # Errors
/// If the bytes are not such a file.
pub fn load_cmcd_steps(record: &[u8], origin: &str) -> Result<CmcdSteps> {
    let stored: Stored<CmcdDescription> = from_bytes(record.to_vec(), origin)?;
    let mut layout = Layout::new();
    let network = stored.description.build(&mut layout)?;
    let mismatch = |e: sterna::Error| Error::Mismatch { origin: origin.to_owned(), reason: e.to_string() };
    kernels(&network, &stored.parameters(&layout)?).map_err(mismatch)
}

/// A drift in f32 shapes the proposals; its values serve simulation and density alike.
fn kernels(network: &CmcdNetwork, weights: &Parameters<f32>) -> sterna::Result<CmcdSteps> {
    let drift = NeuralDrift::<f32>::new(network.drift().clone(), weights.clone(), Arc::new(Cpu::new(1)))
        .map_err(into_library)?;
    network.kernels(weights, Arc::new(drift))
}

fn accelerator(network: &CmcdNetwork, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
    Ok(Arc::new(Cmcd { steps: kernels(network, weights)? }))
}

/// A controlled diffusion in training.
struct TrainedCmcd {
    network: CmcdNetwork,
    description: CmcdDescription,
}

impl TrainedCmcd {
    /// Whether a loss holds a journey there against one back: the round-trip loss, and the symmetric divergence in a frame.
    fn in_twos(&self, loss: Option<Loss>) -> bool {
        loss.is_none_or(|loss| loss == Loss::Skl && self.description.frame.is_some())
    }
}

impl PairNetwork for TrainedCmcd {
    type Description = CmcdDescription;

    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn loss<'g>(&self, graph: &'g Graph, path: &GraphPath, loss: Loss) -> Value<'g> {
        if self.in_twos(Some(loss)) {
            return self.network.patient_loss(path, &CmcdInputs::record_twos(graph, &self.network));
        }
        self.network.loss(loss, path, &CmcdInputs::record(graph, &self.network))
    }

    fn round_trips<'g>(&self, graph: &'g Graph, path: &GraphPath, _: usize) -> [Value<'g>; 2] {
        self.network.round_trips(path, &CmcdInputs::record_twos(graph, &self.network))
    }

    /// Some losses have journeys that come in twos, which share a row and a pair.
    fn batch(&self, journeys_each_way: usize, loss: Option<Loss>) -> PairBatch {
        let way = one_way(loss).unwrap_or(Way::Alternating);
        let journeys = if way == Way::Alternating { 2 * journeys_each_way } else { journeys_each_way };
        let (rows, pair) = match self.in_twos(loss) {
            false => (journeys, PairChoice::Drawn),
            true => (journeys_each_way, PairChoice::Spread(2)),
        };
        let noise = Field::Noise(self.network.steps() * self.network.dim());
        let fields = vec![Field::Lower, Field::Upper, Field::Which, Field::Forward, Field::Start, noise];
        PairBatch { journeys, rows, pair, way, fields }
    }

    fn cost(&self, journeys_each_way: usize, loss: Option<Loss>) -> (u64, u64) {
        let points = self.batch(journeys_each_way, loss).journeys as u64 * (self.network.steps() as u64 + 1);
        (points, points)
    }

    /// Derivatives go through the scores of all points but the first.
    fn cost_of_derivatives(&self, path: &GraphPath, journeys_each_way: usize, loss: Option<Loss>) -> u64 {
        let journeys = self.batch(journeys_each_way, loss).journeys as u64;
        match loss {
            Some(Loss::LogVariance) => 0,
            _ => journeys * path.derivative_evaluations() * self.network.steps() as u64,
        }
    }

    fn accelerator(&self, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(self.description.placed(accelerator(&self.network, weights)?))
    }

    fn frame(&self) -> Option<&Frame> {
        self.description.frame.as_ref()
    }

    fn steepest(&self) -> Option<f64> {
        self.description.steepest
    }

    fn describe(&self, plain: Vec<bool>) -> CmcdDescription {
        CmcdDescription { plain, ..self.description.clone() }
    }
}
