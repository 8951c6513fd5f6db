//! Diff-APT, trained: score matching of an energy model on samples of the target chain (§5.3, App. D.3, App. E).
//!
//! A sample x₀ is noised to x = √s x₀ + √(1 − s) z. Two identities give the score of the noised law as a mean
//! over x₀ and z at given x: −z/√(1 − s) from the noise, ∇log π(x₀)/√s from the target. Mixed with weights
//! (1 − s)E/(s + (1 − s)E) and s/(s + (1 − s)E) they have no spread at all where the target is a normal of
//! precision E; what is left is not knowing the mode. So that mixture is what the model's score is held against,
//! in units of √(E/(s + (1 − s)E)).
//!
//! Scores say nothing of how much modes weigh against each other once they lie apart, and a path that gets
//! this wrong starves some of them. So the model's derivative in s is matched too: that of the noised law is the
//! mean of ∂ₛ log N(x; √s x₀, 1 − s) at given x, up to the growth of log Z, which is learned beside it.

mod lesson;

use std::sync::Arc;
use sterna::lanes::one;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Diffusion, DiffusionSteps, Identity, Integrator};
use sterna::estimates::effective_sample_size;
use sterna::frame::{Frame, InFrame};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Framed, Geometric, Reference};
use sterna::{Batch, Evaluation, Schedule, Target};

use crate::Result;
use crate::compute::Opened;
use crate::course::Course;
use crate::cpu::Cpu;
use crate::diffusion_loss::{Inputs, Units, record_loss};
use crate::energy_model::{EnergyConfig, EnergyNetwork, Field};
use crate::fit::{Training, first_report, into_library, streams};
use crate::framing::{frame_of, framed, seen_from};
use crate::graph::Graph;
use crate::graph_path::in_frame;
use crate::judge::Split;
use crate::mlp::Hidden;
use crate::pair_lesson::stored;
use crate::parameters::{Layout, Parameters};
use crate::particles::Particles;
use crate::recipe::HostBatches;
use crate::target::GraphTarget;
use crate::training::Trainer;
use crate::transport::NeuralEnergyModel;
use crate::weights::{Stored, from_bytes};
use crate::work::multiply_adds;
use lesson::DiffusionLesson;

/// Size of a trained diffusion; an example stands at [`TrainDiffusion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffusionSize {
    /// K; 0 is parallel tempering on the learned path.
    pub steps: usize,
    /// How the time reversal is discretised.
    pub integrator: Integrator,
    /// Hidden layers of the energy model.
    pub hidden: Hidden,
    /// Sines and cosines of each coordinate that an MLP sees.
    pub waves: usize,
    /// An EGNN of these particles in place of an MLP.
    pub particles: Option<Particles>,
    /// In place of an MLP of all coordinates, a network of each alone: right for products.
    pub apart: bool,
}

/// What `transport.safetensors` says about a trained diffusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiffusionDescription {
    /// The energy model.
    pub network: EnergyConfig,
    /// The schedule that tuning of the learned path begins with.
    pub schedule: Vec<f64>,
    /// Whether the model was found useless, so that plain swaps on the geometric path are made instead.
    pub plain: bool,
    /// The coordinates in which the path begins at N(0, I), where they are not those of points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// K, where it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
}

/// Trains an energy model on samples of the target chain; the run then goes along the learned path.
///
/// ```
/// use std::sync::Arc;
/// use sterna::acceleration::Acceleration;
/// use sterna::accelerators::Integrator;
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// use sterna_neural::{DiffusionSize, Hidden, TrainDiffusion, Training};
///
/// let target = Normal::new(vec![0.4, 0.0], vec![20.0, 3.0]);
/// let path = Arc::new(Geometric::from_standard_normal(target.clone()));
/// let (hidden, integrator) = (Hidden::new(1, 16), Integrator::Exponential);
/// let size = DiffusionSize { steps: 2, integrator, hidden, waves: 0, particles: None, apart: false };
/// let training = Training { steps: 200, batch: 64, learning_rate: 1e-2, ..Training::default() };
/// let fit = Arc::new(TrainDiffusion::new(path.clone(), Arc::new(target), size, training)?);
///
/// let settings = Settings { chains: 4, rounds: 4, collect: 1000, iterations: 2000, ..Settings::default() };
/// let mut run = Run::accelerated(path, settings, Acceleration::Fitted(fit)).unwrap();
/// run.complete().unwrap();
/// assert!(run.fitted().unwrap().path.is_some());
/// let found = run.results();
/// let off = found.log_z.bar - found.log_z_truth.unwrap();
/// assert!(off.abs() < 5.0 * found.log_z.standard_error);
/// # Ok::<(), sterna_neural::Error>(())
/// ```
#[derive(Clone)]
pub struct TrainDiffusion {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn Target>,
    /// The target as operations.
    recorded: Option<Arc<dyn GraphTarget>>,
    size: DiffusionSize,
    /// K that may be chosen, and what a journey of each costs in evaluations of the target.
    among: Vec<(usize, f64)>,
    training: Training,
    opened: Opened,
}

impl TrainDiffusion {
    /// For a geometric path to `target`, on which the first samples are collected. The learned path begins at one normal: the
    /// reference, or the normal with a mixture's mean and covariance; with a prior, with the samples' median and width.
    ///
    /// # Errors
    /// If a setting is impossible.
    pub fn new(
        path: Arc<dyn AnnealingPath>,
        target: Arc<dyn Target>,
        size: DiffusionSize,
        training: Training,
    ) -> Result<Self> {
        training.check()?;
        let opened = training.compute.open(training.threads)?;
        let fit = Self { path, target, recorded: None, size, among: Vec::new(), training, opened };
        // What a network cannot be is known before anything is sampled.
        fit.config(&vec![0.0; fit.target.dim()]).build(&mut Layout::new(), "energy")?;
        Ok(fit)
    }

    /// Tells the target as operations too, so that a GPU draws its batches and evaluates the target by itself. One
    /// that calls the host is left to it.
    ///
    /// # Panics
    /// If its points have another length.
    pub fn with_recorded(mut self, target: Arc<dyn GraphTarget>) -> Self {
        assert_eq!(target.dim(), self.target.dim(), "length of a point");
        let graph = Graph::new();
        target.score(graph.input("x", target.dim()));
        self.recorded = (!graph.calls_host()).then_some(target);
        self
    }

    /// Leaves K open among some, each with what a journey costs in evaluations of the target: held-out samples say once the path is
    /// learned, which does not depend on it, how many allow most round trips for their cost.
    ///
    /// # Panics
    /// If there are none.
    pub fn with_steps_among(mut self, among: Vec<(usize, f64)>) -> Self {
        assert!(!among.is_empty(), "K is one of some numbers");
        self.among = among;
        self
    }

    /// Multiply-adds of a score of the learned path, without the target's.
    pub fn work(&self) -> Result<f64> {
        let network = self.config(&vec![0.0; self.target.dim()]).build(&mut Layout::new(), "energy")?;
        let dim = network.dim();
        // A score is a derivative, which costs about twice what the energy does.
        Ok(3.0
            * multiply_adds(dim + 1, |x| {
                vec![network.record_parts(x.slice(dim, 1), x.slice(0, dim)).learned]
            }))
    }

    /// `log_precision` is that of each coordinate, within a mode.
    fn config(&self, log_precision: &[f64]) -> EnergyConfig {
        let dim = self.target.dim();
        let DiffusionSize { hidden, waves, particles, apart, .. } = self.size;
        let mean = log_precision.iter().sum::<f64>() / dim as f64;
        match particles {
            None => EnergyConfig {
                log_precision: log_precision.to_vec(),
                hidden,
                waves,
                field: if apart { Field::Additive { dim } } else { Field::Mlp { dim } },
                ..EnergyConfig::small(dim)
            },
            // One precision for all coordinates: the model must not know directions.
            Some(particles) => EnergyConfig {
                log_precision: vec![mean],
                hidden,
                field: Field::Egnn { particles, species: vec![] },
                ..EnergyConfig::small(dim)
            },
        }
    }

    fn accelerator(&self, steps: usize) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(match steps {
            0 => Arc::new(Identity),
            steps => Arc::new(Diffusion { steps: DiffusionSteps::new(steps, self.size.integrator)? }),
        })
    }

    /// Plain swaps; along the first leg of the geometric path again, if that was left.
    fn plain(&self, was_left: bool, record: Arc<[u8]>) -> sterna::Result<Fitted> {
        let path: Option<Arc<dyn AnnealingPath>> = if was_left {
            let reference = match self.path.as_geometric() {
                Some(path) => path.reference().clone(),
                None => Reference::standard_normal(self.target.dim()),
            };
            Some(Arc::new(Geometric::new(reference, self.target.clone())?))
        } else {
            None
        };
        Ok(Fitted { accelerator: Arc::new(Identity), path, record, report: FitReport::default() })
    }

    fn lesson(
        &self,
        collected: Arc<Collected>,
        earlier: Option<&Fitted>,
    ) -> Result<(DiffusionLesson, Trainer<f32>, FitReport)> {
        let training = &self.training;
        let stored = stored::<DiffusionDescription>(earlier)?;
        let frame = match &stored {
            Some(stored) => stored.description.frame.clone().map(Arc::new),
            None => frame_of(&*self.path, &collected, self.size.particles.is_some())?,
        };
        let outside = collected;
        let collected = seen_from(frame.as_ref(), &*self.path, &outside)?;
        let seen: Arc<dyn Target> = match &frame {
            Some(frame) => Arc::new(InFrame::new(self.target.clone(), frame.clone())),
            None => self.target.clone(),
        };
        let config = match &stored {
            Some(stored) => stored.description.network.clone(),
            None => {
                // The width of a mode; between extremes that no density worth the name has.
                let variances = collected.local_variance.row(collected.schedule.target());
                let of = |v: &f64| if v.is_finite() { -one::ln(v.clamp(1e-9, 1e9)) } else { 0.0 };
                let config = self.config(&variances.iter().map(of).collect::<Vec<_>>());
                EnergyConfig { bound: reach(&collected, &config.field), ..config }
            }
        };
        let mut layout = Layout::new();
        let network = config.build(&mut layout, "energy")?;
        let on_learned_path = stored.as_ref().is_some_and(|s| !s.description.plain);
        let start = match stored {
            Some(stored) => stored.parameters(&layout)?,
            None => layout.initialise(training.seed),
        };
        let units = Units {
            precisions: config.precisions(),
            shortest: config.shortest(),
            log_level: log_level(&*seen, &collected)?,
        };
        let graph = Graph::new();
        let recorded = self.recorded.clone().filter(|_| self.opened.draws());
        let recorded = match &frame {
            Some(frame) => recorded.map(|target| in_frame(target, frame)),
            None => recorded,
        };
        let inputs = match &recorded {
            Some(target) => Inputs::of_draws(&graph, &**target, &units),
            None => Inputs::record(&graph, network.dim()),
        };
        let loss = record_loss(&network, inputs);
        let device = self.opened.device();
        let trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())?;
        let mut report = first_report(earlier, &self.opened);
        report.alarms.extend(coverage_alarm(&collected));
        let streams = streams(training, collected.round);
        let split = Split::new(collected);
        let lesson = DiffusionLesson {
            batches: HostBatches::new(lesson::recipe(training.batch, &split, &streams, units.shortest)),
            fit: Self { recorded, ..self.clone() },
            split,
            outside: Split::new(outside),
            frame,
            seen,
            units,
            points: Batch::zeros(2 * training.batch, network.dim()),
            scores: Evaluation::zeros(2 * training.batch, network.dim()),
            trouble: None,
            layout,
            on_learned_path,
            network,
        };
        Ok((lesson, trainer, report))
    }
}

/// The learned path to a target, in the coordinates of the network.
fn diffused(
    network: &EnergyNetwork,
    target: Arc<dyn Target>,
    weights: &Parameters<f32>,
    frame: Option<&Arc<Frame>>,
) -> sterna::Result<Diffused> {
    let (dim, log_z) = (target.dim(), target.log_z());
    let log_z = log_z.map(|log_z| log_z - frame.map_or(0.0, |frame| frame.log_volume()));
    let device = Arc::new(Cpu::new(1));
    let (network, weights) = (network.clone(), weights.convert());
    let model = NeuralEnergyModel::<f64>::in_frame(network, target, weights, device, frame.cloned());
    Ok(Diffused::new(Arc::new(model.map_err(into_library)?), dim, log_z))
}

/// A learned path in the coordinates of a frame as one of points.
fn placed(path: Diffused, frame: Option<Arc<Frame>>) -> Arc<dyn AnnealingPath> {
    match frame {
        Some(frame) => Arc::new(Framed::new(Arc::new(path), frame)),
        None => Arc::new(path),
    }
}

impl DiffusionDescription {
    /// The learned path of a file.
    pub(crate) fn restore<D>(
        &self,
        stored: &Stored<D>,
        target: Arc<dyn Target>,
    ) -> sterna::Result<Arc<dyn AnnealingPath>> {
        let mut layout = Layout::new();
        let network = self.network.build(&mut layout, "energy").map_err(into_library)?;
        let weights = stored.parameters(&layout).map_err(into_library)?;
        let frame = self.frame.clone().map(Arc::new);
        let path = diffused(&network, target, &weights, frame.as_ref())?;
        Ok(placed(path.beginning_with(Schedule::new(self.schedule.clone())?), frame))
    }
}

impl Fit for TrainDiffusion {
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Option<Arc<dyn Fit>> {
        Some(Arc::new(Self { path: path.clone(), ..self.clone() }))
    }

    fn begin(&self, collected: Arc<Collected>, earlier: Option<&Fitted>) -> sterna::Result<Box<dyn Fitting>> {
        let (lesson, trainer, report) = self.lesson(collected, earlier).map_err(into_library)?;
        let layout = lesson.layout.clone();
        Ok(Box::new(Course::new(lesson, self.training.clone(), trainer, layout, report)))
    }

    fn rebuild(&self, record: &[u8]) -> sterna::Result<Fitted> {
        if record.is_empty() {
            return self.plain(true, record.into());
        }
        let stored: Stored<DiffusionDescription> =
            from_bytes(record.to_vec(), "the energy model's weights").map_err(into_library)?;
        if stored.description.plain {
            return self.plain(true, record.into());
        }
        let path = Some(stored.description.restore(&stored, self.target.clone())?);
        let steps = stored.description.steps.unwrap_or(self.size.steps);
        let accelerator = framed(self.accelerator(steps)?, stored.description.frame.as_ref());
        Ok(Fitted { accelerator, path, record: record.into(), report: FitReport::default() })
    }
}

/// Twice the length of the longest sample of the target chain; of its largest coordinate, where each Nᵢ has a bound
/// of its own. N is a kind of mean of samples; where it may be much longer, it can pile up mass far out that no sample
/// was near.
fn reach(collected: &Collected, field: &Field) -> f64 {
    let length = |x: &[f64]| match field {
        Field::Additive { .. } => x.iter().fold(0.0f64, |longest, x| longest.max(x.abs())),
        Field::Mlp { .. } | Field::Egnn { .. } => x.iter().map(|x| x * x).sum::<f64>().sqrt(),
    };
    let longest = collected.samples[collected.schedule.target()].iter_rows().map(length).fold(0.0, f64::max);
    if longest.is_finite() { (2.0 * longest).clamp(1e-3, 1e6) } else { 30.0 }
}

/// The target's log density at the first sample of its chain.
fn log_level(target: &dyn Target, collected: &Collected) -> Result<f64> {
    let first = collected.samples[collected.schedule.target()].row(0).to_vec();
    let mut out = Evaluation::zeros(1, first.len());
    let point = Batch::from_vec(first.len(), first);
    target.evaluate(&point, &mut out).map_err(|e| crate::Error::Host(e.to_string()))?;
    Ok(if out.log_density[0].is_finite() { out.log_density[0] } else { 0.0 })
}

/// Fewer independent samples than this may well miss a mode.
const FEW: f64 = 200.0;

/// What a person should know about the samples: a mode that training never saw may be out of reach on the
/// learned path, however long the run.
fn coverage_alarm(collected: &Collected) -> Option<(String, String)> {
    let samples = &collected.samples[collected.schedule.target()];
    let series = |j: usize| -> Vec<f64> { samples.iter_rows().map(|x| x[j]).collect() };
    let sizes = (0..samples.dim()).map(|j| effective_sample_size(&[&series(j)]));
    let fewest = sizes.fold(f64::INFINITY, f64::min);
    (fewest < FEW).then(|| {
        let message = format!(
            "the {} samples that the path was learned from are worth only {fewest:.0} independent ones: a mode they \
             missed may be lost on the learned path; more of them (training.collect) would help",
            samples.rows()
        );
        ("few-training-samples".into(), message)
    })
}

#[cfg(test)]
mod tests;
