//! NF-APT, trained: one RealNVP for all pairs (§5.1, App. D.1, App. E.2).

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit};
use sterna::accelerator::Accelerator;
use sterna::accelerators::FlowAccelerator;
use sterna::path::AnnealingPath;

use crate::Result;
use crate::conditions::{Conditioning, Conditions};
use crate::cpu::Cpu;
use crate::fit::{Shared, Split, Training, TrainingReport, fall_back, guard, into_library, streams, train};
use crate::graph::Graph;
use crate::losses::{GraphPath, Loss, check_flow_loss, flow_divergences};
use crate::mlp::Hidden;
use crate::parameters::{Layout, Parameters};
use crate::real::Real;
use crate::realnvp::RealNvpConfig;
use crate::target::GraphTarget;
use crate::training::Trainer;
use crate::transport::NeuralFlow;
use crate::weights::{NetworkConfig, to_bytes};

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
/// let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit.clone())).unwrap();
/// run.complete().unwrap();
/// let pair = fit.report().pairs[0];
/// assert!(pair.rejection < 0.5 * pair.plain_rejection);
/// # Ok::<(), sterna_neural::Error>(())
/// ```
pub struct TrainFlow {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn GraphTarget>,
    size: FlowSize,
    training: Training,
    state: Shared<State>,
}

#[derive(Default)]
struct State {
    report: TrainingReport,
    parameters: Option<Parameters<f32>>,
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
        Ok(Self { path, target, size, training, state: Arc::new(Mutex::default()) })
    }

    /// What the last training did.
    pub fn report(&self) -> TrainingReport {
        self.state.lock().expect("no panic inside").report.clone()
    }
}

fn config(target: &dyn GraphTarget, size: FlowSize, schedule: &[f64]) -> Result<RealNvpConfig> {
    let FlowSize { layers, hidden } = size;
    let conditioning = Conditioning::new(schedule)?;
    Ok(RealNvpConfig { dim: target.dim(), layers, hidden, max_log_scale: 2.0, conditioning })
}

impl Fit for TrainFlow {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        let State { report, parameters } = &mut *self.state.lock().expect("no panic inside");
        if collected.round == 0 {
            (*report, *parameters) = Default::default();
        }
        let (split, training) = (Split::new(collected), &self.training);
        let config = config(&*self.target, self.size, collected.schedule.betas()).map_err(into_library)?;
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "flow").map_err(into_library)?;
        let start = parameters.take().unwrap_or_else(|| layout.initialise(training.seed));

        let graph = Graph::new();
        let conditions = Conditions::pair_inputs(&graph);
        let [lower, upper] = ["x_lower", "x_upper"].map(|name| graph.input(name, self.target.dim()));
        let path = GraphPath::from_standard_normal(self.target.clone());
        let [up, down] = flow_divergences(&network, &path, &conditions, lower, upper);
        let (loss, directions) = match training.loss {
            Loss::ForwardKl => (up.mean_rows(), 1),
            Loss::ReverseKl => (down.mean_rows(), 1),
            _ => ((up + down).mean_rows(), 2),
        };
        let device = Arc::new(Cpu::new(training.threads));
        let mut trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())
            .map_err(into_library)?;
        let streams = streams(training, collected.round);
        let fill = |step: u64, inputs: &mut [Vec<f32>]| {
            for row in 0..training.batch {
                let mut choices = streams.choices(step, row);
                let pair = choices.below(split.pairs());
                let (low, high) = split.ends(pair);
                inputs[0].push(low as f32);
                inputs[1].push(high as f32);
                for (k, input) in inputs[2..].iter_mut().enumerate() {
                    input.extend(split.sample(pair + k, &mut choices).iter().map(|&x| f32::from_f64(x)));
                }
            }
        };
        let before = report.steps;
        let outcome = train(&mut trainer, training, training.batch, fill, 4, report);
        let journeys = (report.steps - before) * (training.batch * directions) as u64;
        // The start and the end of each journey.
        report.target_evaluations += 2 * journeys;
        report.network_evaluations += journeys;
        if let Err(error) = outcome {
            return fall_back(error, report);
        }
        let averaged = trainer.averaged().clone();
        // In f64, so that the way back is exact to rounding.
        let flow = NeuralFlow::<f64>::new(network, averaged.convert(), Arc::new(Cpu::new(1)))
            .map_err(into_library)?;
        let accelerator = Arc::new(FlowAccelerator::new(Arc::new(flow)));
        let guarded = guard(accelerator, &*self.path, &split, training, report)?;
        let plain = report.pairs.iter().map(|p| p.plain).collect();
        let description = FlowDescription { network: NetworkConfig::RealNvp(config), plain };
        report.transport = to_bytes(&description, &layout, &averaged, None).map_err(into_library)?;
        *parameters = Some(averaged);
        Ok(guarded)
    }
}
