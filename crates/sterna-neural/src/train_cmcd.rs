//! CMCD-APT, trained: a drift, variances and interpolations for all pairs (§5.2, App. D.2, App. E.2).

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sterna::Batch;
use sterna::acceleration::{Collected, Fit};
use sterna::accelerator::Accelerator;
use sterna::accelerators::Cmcd;
use sterna::path::AnnealingPath;

use crate::conditions::Conditioning;
use crate::cpu::Cpu;
use crate::fit::{Shared, Split, Training, TrainingReport, fall_back, guard, into_library, streams, train};
use crate::graph::Graph;
use crate::losses::{CmcdInputs, CmcdNetwork, GraphPath, Loss};
use crate::mlp::{Hidden, MlpDriftConfig};
use crate::parameters::{Layout, Parameters};
use crate::target::GraphTarget;
use crate::training::Trainer;
use crate::transport::NeuralDrift;
use crate::weights::{NetworkConfig, to_bytes};
use crate::{Error, Result};

/// Size of a trained controlled diffusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CmcdSize {
    /// K.
    pub steps: usize,
    /// Hidden layers of the drift.
    pub hidden: Hidden,
    /// Variance of a step's noise relative to the local variance, per unit of barrier between the chains
    /// of a pair, that training starts from.
    pub noise: f64,
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
}

/// Trains a controlled diffusion on samples of both chains of every pair; see [`TrainFlow`](crate::TrainFlow),
/// which is used in the same way.
pub struct TrainCmcd {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn GraphTarget>,
    size: CmcdSize,
    training: Training,
    state: Shared<State>,
}

#[derive(Default)]
struct State {
    report: TrainingReport,
    parameters: Option<(Parameters<f32>, Vec<[f64; 2]>)>,
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
        Ok(Self { path, target, size, training, state: Arc::new(Mutex::default()) })
    }

    /// What the last training did.
    pub fn report(&self) -> TrainingReport {
        self.state.lock().expect("no panic inside").report.clone()
    }
}

impl Fit for TrainCmcd {
    fn fit(&self, collected: &Collected) -> sterna::Result<Arc<dyn Accelerator>> {
        let State { report, parameters } = &mut *self.state.lock().expect("no panic inside");
        if collected.round == 0 {
            (*report, *parameters) = Default::default();
        }
        let (split, training, steps) = (Split::new(collected), &self.training, self.size.steps);
        let (dim, pairs) = (self.target.dim(), split.pairs());
        let conditioning = Conditioning::new(collected.schedule.betas()).map_err(into_library)?;
        let config = MlpDriftConfig { dim, hidden: self.size.hidden, conditioning };
        let mut layout = Layout::new();
        let drift = config.build(&mut layout, "drift").map_err(into_library)?;
        let (start, first) = match parameters.take() {
            Some((start, first)) => (Some(start), first),
            None => (None, collected.step_variances(self.size.noise)),
        };
        let network = CmcdNetwork::new(&mut layout, drift.into(), steps, &first);
        let start = start.unwrap_or_else(|| layout.initialise(training.seed));

        let graph = Graph::new();
        let inputs = CmcdInputs::record(&graph, &network);
        let path = GraphPath::from_standard_normal(self.target.clone());
        let loss = network.loss(training.loss, &path, &inputs);
        let device = Arc::new(Cpu::new(training.threads));
        let mut trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())
            .map_err(into_library)?;
        let streams = streams(training, collected.round);
        let (rows, is_forward): (usize, fn(usize) -> bool) = match training.loss {
            Loss::ForwardKl => (training.batch, |_| true),
            Loss::ReverseKl => (training.batch, |_| false),
            Loss::Skl | Loss::LogVariance => (2 * training.batch, |row| row % 2 == 0),
        };
        let keys: Vec<u32> = (0..rows as u32).collect();
        let mut noise = Batch::zeros(rows, steps * dim);
        let fill = |step: u64, inputs: &mut [Vec<f32>]| {
            for row in 0..rows {
                let mut choices = streams.choices(step, row);
                let pair = choices.below(pairs);
                let (low, high) = split.ends(pair);
                let forward = is_forward(row);
                let chain = if forward { pair } else { pair + 1 };
                inputs[0].push(low as f32);
                inputs[1].push(high as f32);
                inputs[2].extend((0..pairs).map(|n| if n == pair { 1.0 } else { 0.0 }));
                inputs[3].push(if forward { 1.0 } else { 0.0 });
                inputs[4].extend(split.sample(chain, &mut choices).iter().map(|&x| x as f32));
            }
            streams.noise(step, &keys, &mut noise);
            inputs[5].extend(noise.as_slice().iter().map(|&z| z as f32));
        };
        let before = report.steps;
        let outcome = train(&mut trainer, training, rows, fill, 6, report);
        let points = (report.steps - before) * (rows * (steps + 1)) as u64;
        report.target_evaluations += points;
        report.network_evaluations += points;
        if let Err(error) = outcome {
            return fall_back(error, report);
        }
        let averaged = trainer.averaged().clone();
        // A drift in f32 shapes the proposals; its values serve simulation and density alike.
        let drift = NeuralDrift::<f32>::new(network.drift().clone(), averaged.clone(), Arc::new(Cpu::new(1)))
            .map_err(into_library)?;
        let accelerator = Arc::new(Cmcd { steps: network.kernels(&averaged, Arc::new(drift))? });
        let guarded = guard(accelerator, &*self.path, &split, training, report)?;
        let plain = report.pairs.iter().map(|p| p.plain).collect();
        let description =
            CmcdDescription { drift: NetworkConfig::MlpDrift(config), steps, start: first.clone(), plain };
        report.transport = to_bytes(&description, &layout, &averaged, None).map_err(into_library)?;
        *parameters = Some((averaged, first));
        Ok(guarded)
    }
}
