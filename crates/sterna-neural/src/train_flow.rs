//! NF-APT, trained: one RealNVP for all pairs (§5.1, App. D.1, App. E.2).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::Schedule;
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting, InSlices, partly_plain};
use sterna::accelerator::Accelerator;
use sterna::accelerators::FlowAccelerator;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;

use crate::Result;
use crate::base::AffineBase;
use crate::conditions::{Conditioning, Conditions};
use crate::cpu::Cpu;
use crate::fit::{Training, into_library};
use crate::framing::{frame_of, framed, seen_from};
use crate::graph::{Graph, Value};
use crate::graph_path::GraphPath;
use crate::judge::Split;
use crate::losses::{Loss, check_flow_loss, flow_divergences, patient_divergence};
use crate::mlp::Hidden;
use crate::pair_lesson::{PairBatch, PairFit, PairNetwork, SCORED, one_way, stored};
use crate::parameters::{Layout, Parameters};
use crate::realnvp::{Coupling, RealNvp, RealNvpConfig, Route};
use crate::recipe::{Field, PairChoice, Way};
use crate::target::GraphTarget;
use crate::transport::NeuralFlow;
use crate::weights::{NetworkConfig, Stored, from_bytes};
use crate::work::multiply_adds;

/// Size of a flow.
///
/// ```
/// use sterna_neural::{Coupling, FlowSize, Hidden};
///
/// let affine = FlowSize::new(4, Hidden::new(1, 16));
/// let splines = FlowSize { coupling: Coupling::Spline, ..affine };
/// assert!(affine.coupling.is_affine() && splines.layers == 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSize {
    /// Coupling layers.
    pub layers: usize,
    /// Hidden layers of each layer's network.
    pub hidden: Hidden,
    /// What each layer does. Splines stand on an affine base, fitted to the samples of each chain.
    pub coupling: Coupling,
}

impl FlowSize {
    /// RealNVP of this size.
    pub const fn new(layers: usize, hidden: Hidden) -> Self {
        Self { layers, hidden, coupling: Coupling::Affine }
    }
}

/// What `transport.safetensors` says about a trained flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// The network; it knows the schedule it was made for.
    pub network: NetworkConfig,
    /// Pairs that are swapped plainly.
    pub plain: Vec<bool>,
    /// The coordinates that it travels in, where the reference was not N(0, I).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
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
/// let size = FlowSize::new(4, Hidden::new(1, 16));
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
    fit: PairFit,
    size: FlowSize,
    /// Whether chains have maps from a common base, and pairs none of their own.
    of_chains: bool,
}

impl TrainFlow {
    /// For a geometric path to `target`: once as the run sees it, once inside graphs. A run that fits its reference tells its
    /// path again once that is frozen.
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
        config(&*target, size, &[0.0, 1.0], Route::Direct)?.build(&mut Layout::new(), "flow")?;
        let of_chains = training.loss.is_of_samples();
        Ok(Self { fit: PairFit::new(path, target, training)?, size, of_chains })
    }

    /// A map of each chain from a common base whatever is trained on, as losses of samples have it: what these have come to can then
    /// be polished by a loss of journeys between the chains.
    pub fn of_chains(self) -> Self {
        Self { of_chains: true, ..self }
    }
}

fn config(target: &dyn GraphTarget, size: FlowSize, schedule: &[f64], route: Route) -> Result<RealNvpConfig> {
    let FlowSize { layers, hidden, coupling } = size;
    let (dim, conditioning) = (target.dim(), Conditioning::new(schedule)?);
    let base = None;
    Ok(RealNvpConfig { dim, layers, hidden, max_log_scale: 2.0, conditioning, route, coupling, base })
}

impl TrainFlow {
    /// Multiply-adds of a journey; and of a step of training, with the points at which that asks the target. A way back costs twice a
    /// way there.
    pub fn work(&self) -> Result<(f64, (f64, u64))> {
        let route = if self.of_chains { Route::ThroughBase } else { Route::Direct };
        let config = config(self.fit.target(), self.size, &[0.0, 0.5, 1.0], route)?;
        let network = config.build(&mut Layout::new(), "flow")?;
        let dim = network.dim();
        let journey = multiply_adds(dim + 2, |x| {
            let conditions = Conditions { lower: x.slice(dim, 1), upper: x.slice(dim + 1, 1), time: None };
            let (y, log_det) = network.record(&conditions, x.slice(0, dim));
            vec![y, log_det]
        });
        let (target, maps) = self.fit.asked_in_a_step(&TrainedFlow { network, config, frame: None });
        // A sample's surprise takes one of the two maps that a journey through the base has.
        let each = if self.fit.loss().is_of_samples() { 1.5 } else { 3.0 };
        Ok((journey, (each * journey * maps as f64, target)))
    }
}

impl InSlices for TrainFlow {
    fn slice(&self, steps: u64) -> sterna::Result<Arc<dyn Fit>> {
        Ok(Arc::new(Self { fit: self.fit.slice(steps), ..*self }))
    }

    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Arc<dyn InSlices> {
        Arc::new(Self { fit: self.fit.on(path), ..*self })
    }
}

impl Fit for TrainFlow {
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        Some(Arc::new(Self { fit: self.fit.on(path), ..*self }))
    }

    fn wants_scores(&self) -> bool {
        self.fit.loss() == Loss::Scores
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        self.lesson(collected, earlier).map_err(into_library)
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        let stored: Stored<FlowDescription> =
            from_bytes(record.to_vec(), "the flow's weights").map_err(into_library)?;
        let (accelerator, _) = stored.description.restore(&stored)?;
        Ok(Fitted { accelerator, path: None, record: record.into(), report: FitReport::default() })
    }

    /// Maps of chains from a base are functions of β, learned at some of them; those of pairs, and the affine base of splines, know
    /// their own chains alone.
    fn rebuild_at(&self, record: &[u8], _: &Schedule) -> sterna::Result<Option<Fitted>> {
        match self.of_chains && self.size.coupling.is_affine() {
            true => self.rebuild(record).map(Some),
            false => Ok(None),
        }
    }
}

impl FlowDescription {
    /// The accelerator of a file, and the length of its points.
    pub(crate) fn restore<D>(&self, stored: &Stored<D>) -> sterna::Result<(Arc<dyn Accelerator>, usize)> {
        let NetworkConfig::RealNvp(config) = &self.network else {
            return Err(sterna::BadState::OfFit("the weights are not those of a flow").into());
        };
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "flow").map_err(into_library)?;
        let accelerator = accelerator(&network, &stored.parameters(&layout).map_err(into_library)?)?;
        let accelerator = framed(accelerator, self.frame.as_ref());
        Ok((partly_plain(accelerator, self.plain.clone()), config.dim))
    }
}

impl TrainFlow {
    fn lesson(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> Result<Box<dyn Fitting>> {
        let stored = stored::<FlowDescription>(earlier)?;
        let frame = match &stored {
            Some(stored) => stored.description.frame.clone(),
            None => frame_of(self.fit.path(), &collected, false)?.map(|frame| (*frame).clone()),
        };
        let route = match (self.of_chains, &frame) {
            (true, None) => Route::ThroughReference,
            (true, Some(_)) => Route::ThroughBase,
            (false, _) => Route::Direct,
        };
        let mut config = config(self.fit.target(), self.size, collected.schedule.betas(), route)?;
        if !config.coupling.is_affine() {
            let frame = frame.clone().map(Arc::new);
            let seen = seen_from(frame.as_ref(), self.fit.path(), &collected)?;
            // What judges the flow later is not to have shaped its base.
            let split = Split::new(seen);
            let rows = |chain| split.training_rows(chain, usize::MAX);
            let samples: Vec<_> = (0..collected.schedule.chains()).map(rows).collect();
            let base = AffineBase::of_samples(&samples);
            let is_standard = route == Route::ThroughReference;
            config.base = Some(if is_standard { base.from_standard() } else { base });
        }
        let mut layout = Layout::new();
        let network = TrainedFlow { network: config.build(&mut layout, "flow")?, config, frame };
        self.fit.begin(network, layout, collected, earlier, stored.as_ref())
    }
}

/// The divergences of both directions, of inputs "lower", "upper", "x_lower" and "x_upper".
fn record<'g>(graph: &'g Graph, network: &RealNvp, path: &GraphPath) -> [Value<'g>; 2] {
    let conditions = Conditions::pair_inputs(graph);
    let [lower, upper] = ["x_lower", "x_upper"].map(|name| graph.input(name, network.dim()));
    flow_divergences(network, path, &conditions, lower, upper)
}

/// The surprise at a sample of each of both chains, on average; with scores, and half the square by which the density's own misses
/// the stored one there, in the units that come beside it.
fn surprises<'g>(graph: &'g Graph, network: &RealNvp, with_scores: bool) -> Value<'g> {
    let (conditions, dim) = (Conditions::pair_inputs(graph), network.dim());
    let parts = if with_scores { SCORED } else { 1 };
    let [lower, upper] = ["x_lower", "x_upper"].map(|name| graph.input(name, parts * dim));
    let at = |beta, sample: Value<'g>| {
        let x = sample.slice(0, dim);
        let surprise = network.record_surprise(beta, x);
        if !with_scores {
            return surprise;
        }
        let [score, unit] = [1, 2].map(|part| sample.slice(part * dim, dim));
        let miss = (score + graph.gradient(surprise, &[x])[0]) * unit;
        surprise + miss.dot(miss) * 0.5
    };
    (at(conditions.lower, lower) + at(conditions.upper, upper)) * 0.5
}

/// The flow in f64, so that the way back is exact to rounding.
fn accelerator(network: &RealNvp, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
    let flow = NeuralFlow::<f64>::new(network.clone(), weights.convert(), Arc::new(Cpu::new(1)))
        .map_err(into_library)?;
    Ok(Arc::new(FlowAccelerator::new(Arc::new(flow))))
}

/// A flow in training.
struct TrainedFlow {
    config: RealNvpConfig,
    network: RealNvp,
    frame: Option<Frame>,
}

impl PairNetwork for TrainedFlow {
    type Description = FlowDescription;

    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn loss<'g>(&self, graph: &'g Graph, path: &GraphPath, loss: Loss) -> Value<'g> {
        if loss.is_of_samples() {
            return surprises(graph, &self.network, loss == Loss::Scores).mean_rows();
        }
        let [up, down] = record(graph, &self.network, path);
        match loss {
            Loss::ForwardKl => up.mean_rows(),
            Loss::ReverseKl => down.mean_rows(),
            _ if self.frame.is_some() => patient_divergence(up + down),
            _ => (up + down).mean_rows(),
        }
    }

    fn round_trips<'g>(&self, graph: &'g Graph, path: &GraphPath, pairs: usize) -> [Value<'g>; 2] {
        let [up, down] = record(graph, &self.network, path);
        [graph.input("which", pairs), up + down]
    }

    fn loss_of_rows<'g>(&self, graph: &'g Graph, loss: Loss) -> Option<Value<'g>> {
        loss.is_of_samples().then(|| surprises(graph, &self.network, loss == Loss::Scores))
    }

    fn batch(&self, journeys: usize, loss: Option<Loss>) -> PairBatch {
        let mut fields = vec![Field::Lower, Field::Upper, Field::AtLower, Field::AtUpper];
        // The round-trip loss asks which pair a row belongs to.
        let pair = match loss {
            Some(_) => PairChoice::Drawn,
            None => {
                fields.push(Field::Which);
                PairChoice::Spread(1)
            }
        };
        PairBatch { journeys, rows: journeys, pair, way: Way::Forward, fields }
    }

    /// The start and the end of each journey are points of the target.
    fn cost(&self, journeys: usize, loss: Option<Loss>) -> (u64, u64) {
        let directions = if one_way(loss).is_some() { 1 } else { 2 };
        let journeys = (journeys * directions) as u64;
        (if loss.is_some_and(Loss::is_of_samples) { 0 } else { 2 * journeys }, journeys)
    }

    /// The loss follows the target's score at the end of each journey.
    fn cost_of_derivatives(&self, path: &GraphPath, journeys: usize, loss: Option<Loss>) -> u64 {
        path.score_evaluations() * self.cost(journeys, loss).0 / 2
    }

    fn accelerator(&self, weights: &Parameters<f32>) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(framed(accelerator(&self.network, weights)?, self.frame()))
    }

    fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    fn describe(&self, plain: Vec<bool>) -> FlowDescription {
        let (network, frame) = (NetworkConfig::RealNvp(self.config.clone()), self.frame.clone());
        FlowDescription { network, plain, frame }
    }
}
