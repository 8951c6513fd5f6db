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

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, Fit, FitReport, Fitted, Fitting, PairReport};
use sterna::accelerator::Accelerator;
use sterna::accelerators::{Diffusion, DiffusionSteps, Identity, Integrator};
use sterna::estimates::{effective_sample_size, round_trip_rate};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::streams::{Phase, Streams};
use sterna::{Batch, Evaluation, Schedule, Target};

use crate::Result;
use crate::compute::Opened;
use crate::cpu::Cpu;
use crate::diffusion_loss::{Inputs, Units, record_loss};
use crate::energy_model::{EnergyConfig, EnergyNetwork, Field};
use crate::fit::{Course, Lesson, Split, Training, first_report, into_library, rejection_rates, streams};
use crate::graph::Graph;
use crate::mlp::Hidden;
use crate::parameters::{Layout, Parameters};
use crate::particles::Particles;
use crate::recipe::{Field as BatchField, PairChoice, Recipe, Way};
use crate::target::GraphTarget;
use crate::training::{Trainer, TrainingStreams};
use crate::transport::NeuralEnergyModel;
use crate::weights::{Stored, from_bytes, to_bytes};

/// Size of a trained diffusion.
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
pub struct TrainDiffusion {
    path: Arc<dyn AnnealingPath>,
    target: Arc<dyn Target>,
    /// The target as operations.
    recorded: Option<Arc<dyn GraphTarget>>,
    size: DiffusionSize,
    training: Training,
    opened: Opened,
}

impl TrainDiffusion {
    /// For the geometric path from N(0, I) to `target`, on which the first samples are collected.
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
        let fit = Self { path, target, recorded: None, size, training, opened };
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

    fn accelerator(&self) -> sterna::Result<Arc<dyn Accelerator>> {
        Ok(match self.size.steps {
            0 => Arc::new(Identity),
            steps => Arc::new(Diffusion { steps: DiffusionSteps::new(steps, self.size.integrator)? }),
        })
    }

    /// Plain swaps; along the geometric path again, if that was left.
    fn plain(&self, was_left: bool, record: Arc<[u8]>) -> sterna::Result<Fitted> {
        let path: Option<Arc<dyn AnnealingPath>> = if was_left {
            let reference = Reference::standard_normal(self.target.dim());
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
        let stored = earlier
            .filter(|e| !e.record.is_empty())
            .map(|e| from_bytes::<DiffusionDescription>(e.record.to_vec(), "the round before"))
            .transpose()?;
        let config = match &stored {
            Some(stored) => stored.description.network.clone(),
            None => {
                // The width of a mode; between extremes that no density worth the name has.
                let variances = collected.local_variance.row(collected.schedule.chains() - 1);
                let of = |v: &f64| if v.is_finite() { -v.clamp(1e-9, 1e9).ln() } else { 0.0 };
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
            log_level: log_level(&*self.target, &collected)?,
        };
        let graph = Graph::new();
        let recorded = self.recorded.clone().filter(|_| self.opened.draws());
        let inputs = match &recorded {
            Some(target) => Inputs::of_draws(&graph, &**target, &units),
            None => Inputs::record(&graph, network.dim()),
        };
        let loss = record_loss(&network, inputs);
        let device = self.opened.device();
        let trainer = Trainer::<f32>::new(device, &graph, loss, &[], &layout, start, training.adam())?;
        let mut report = first_report(earlier, &self.opened);
        report.alarms.extend(coverage_alarm(&collected));
        let lesson = DiffusionLesson {
            fit: Self {
                path: self.path.clone(),
                target: self.target.clone(),
                recorded,
                size: self.size,
                training: training.clone(),
                opened: self.opened.clone(),
            },
            streams: streams(training, collected.round),
            split: Split::new(collected),
            units,
            keys: (0..training.batch as u32).collect(),
            noise: Batch::zeros(training.batch, network.dim()),
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

/// The learned path to a target.
fn diffused(
    network: &EnergyNetwork,
    target: Arc<dyn Target>,
    weights: &Parameters<f32>,
) -> sterna::Result<Diffused> {
    let (dim, log_z) = (target.dim(), target.log_z());
    let device = Arc::new(Cpu::new(1));
    let model = NeuralEnergyModel::<f64>::new(network.clone(), target, weights.convert(), device);
    Ok(Diffused::new(Arc::new(model.map_err(into_library)?), dim, log_z))
}

impl DiffusionDescription {
    /// The learned path of a file.
    pub(crate) fn restore<D>(&self, stored: &Stored<D>, target: Arc<dyn Target>) -> sterna::Result<Diffused> {
        let mut layout = Layout::new();
        let network = self.network.build(&mut layout, "energy").map_err(into_library)?;
        let weights = stored.parameters(&layout).map_err(into_library)?;
        let path = diffused(&network, target, &weights)?;
        Ok(path.beginning_with(Schedule::new(self.schedule.clone())?))
    }
}

impl Fit for TrainDiffusion {
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
        let path = stored.description.restore(&stored, self.target.clone())?;
        let (accelerator, report) = (self.accelerator()?, FitReport::default());
        Ok(Fitted { accelerator, path: Some(Arc::new(path)), record: record.into(), report })
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
    let longest = collected.samples[collected.schedule.pairs()].iter_rows().map(length).fold(0.0, f64::max);
    if longest.is_finite() { (2.0 * longest).clamp(1e-3, 1e6) } else { 30.0 }
}

/// The target's log density at the first sample of its chain.
fn log_level(target: &dyn Target, collected: &Collected) -> Result<f64> {
    let first = collected.samples[collected.schedule.pairs()].row(0).to_vec();
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
    let samples = &collected.samples[collected.schedule.pairs()];
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

struct DiffusionLesson {
    fit: TrainDiffusion,
    split: Split,
    streams: TrainingStreams,
    layout: Layout,
    network: EnergyNetwork,
    units: Units,
    /// Whether the samples come from a path that an earlier round learned.
    on_learned_path: bool,
    keys: Vec<u32>,
    noise: Batch,
    /// Samples, then the noised ones shrunk by √s: where the target is asked.
    points: Batch,
    scores: Evaluation,
    trouble: Option<sterna::Error>,
}

impl Lesson for DiffusionLesson {
    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn inputs(&self) -> usize {
        8
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        let (rows, target_chain) = (self.rows(), self.split.pairs());
        self.streams.noise(step, &self.keys, &mut self.noise);
        let mut times = Vec::with_capacity(rows);
        for row in 0..rows {
            let uniform = self.streams.time(step, row);
            // Half of the times with 1 − s log-uniform: there densities change on ever shorter scales.
            let s = if row % 2 == 0 { uniform } else { 1.0 - self.units.shortest.powf(uniform) };
            times.push(s);
            inputs[0].push(s as f32);
            let sample = self.split.sample(target_chain, &mut self.streams.choices(step, row));
            self.points.row_mut(row).copy_from_slice(sample);
            for (j, z) in self.noise.row(row).iter().enumerate() {
                let x = s.sqrt() * sample[j] + (1.0 - s).sqrt() * z;
                inputs[1].push(x as f32);
                self.points.row_mut(rows + row)[j] = s.sqrt() * x;
            }
        }
        if let Err(error) = self.fit.target.evaluate(&self.points, &mut self.scores) {
            self.trouble = Some(error);
        }
        for (row, &s) in times.iter().enumerate() {
            let (clean, noised) = (self.scores.score.row(row), self.scores.score.row(rows + row));
            // A point at which the target has no score teaches nothing.
            let level = self.scores.log_density[rows + row] - self.units.log_level;
            let known = clean.iter().chain(noised).chain([&level]).all(|v| v.is_finite());
            let (z, sample) = (self.noise.row(row), self.points.row(row));
            let across: f64 = z.iter().zip(sample).map(|(z, x)| z * x).sum();
            let outward = z.len() as f64 - z.iter().map(|z| z * z).sum::<f64>();
            let rest = 1.0 - s;
            let slope = 0.5 * (outward / rest + across / (s * rest).sqrt());
            // Where noise is narrower than a mode, z says little at given x.
            let slope_scale = rest * rest / (rest + s * 10.0 * self.units.shortest) * s.sqrt();
            inputs[5].push(if known { level as f32 } else { 0.0 });
            inputs[6].push(if known { slope as f32 } else { 0.0 });
            inputs[7].push(if known { slope_scale as f32 } else { 0.0 });
            for (j, z) in self.noise.row(row).iter().enumerate() {
                let precision = self.units.precisions[j];
                let unit = 1.0 / (s + (1.0 - s) * precision);
                let wanted = unit * (s.sqrt() * clean[j] - (1.0 - s).sqrt() * precision * z);
                let scale = (unit * precision).sqrt().recip();
                inputs[2].push(if known { noised[j] as f32 } else { 0.0 });
                inputs[3].push(if known { wanted as f32 } else { 0.0 });
                inputs[4].push(if known { scale as f32 } else { 0.0 });
            }
        }
    }

    fn recipe(&self) -> Option<Recipe> {
        self.fit.recorded.as_ref()?;
        let (dim, samples) = (self.network.dim(), self.split.trained_on_target());
        let [choices_seed, noise_seed, seed] = self.streams.seeds();
        let times = BatchField::Times { seed, shortest: self.units.shortest };
        Some(Recipe {
            journeys: self.rows(),
            rows: self.rows(),
            choices_seed,
            noise_seed,
            first_step: 0,
            dim,
            trained: samples.rows(),
            samples: samples.as_slice().iter().map(|&x| x as f32).collect(),
            // Of all pairs and chains, only the target chain.
            betas: vec![0.0, 1.0],
            pair: PairChoice::Spread(1),
            way: Way::Forward,
            fields: vec![times, BatchField::AtLower, BatchField::Noise(dim)],
        })
    }

    fn trouble(&mut self) -> Option<sterna::Error> {
        self.trouble.take()
    }

    fn cost(&self) -> (u64, u64) {
        (2 * self.rows() as u64, self.rows() as u64)
    }

    fn failed(&self) -> sterna::Result<Fitted> {
        self.fit.plain(self.on_learned_path, Arc::new([]))
    }

    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted> {
        let path = diffused(&self.network, self.fit.target.clone(), weights)?;
        let accelerator = self.fit.accelerator()?;
        let plain_rates = match self.on_learned_path {
            // The ladder of the geometric path was judged when it was left.
            true => report.pairs.iter().map(|p| p.plain_rejection).collect(),
            false => rejection_rates(&Identity, &*self.fit.path, &self.split, self.fit.training.seed)?,
        };
        let (schedule, rates) = self.judge(&*accelerator, &path)?;
        let (ours, theirs) = (round_trip_rate(&rates), round_trip_rate(&plain_rates));
        let plain = self.fit.training.guard && (ours < HOPELESS * theirs || ours.is_nan());
        let pair = |(&rejection, &plain_rejection)| PairReport { rejection, plain_rejection, plain };
        report.pairs = rates.iter().zip(&plain_rates).map(pair).collect();
        let description = DiffusionDescription {
            network: self.network.config().clone(),
            schedule: schedule.betas().to_vec(),
            plain,
        };
        let record = to_bytes(&description, &self.layout, weights, None).map_err(into_library)?.into();
        if plain {
            let message = format!(
                "on samples held out from training the learned path allows {ours:.2e} round trips an iteration, the \
                 geometric path with plain swaps {theirs:.2e}; the latter is used; more samples (training.collect) or \
                 steps (training.steps) may help"
            );
            report.alarms.push(("transport-replaced".into(), message));
            // Nobody else will count what the judgement cost.
            report.target_evaluations += path.evaluations();
            report.network_evaluations += path.network_evaluations();
            return self.fit.plain(self.on_learned_path, record);
        }
        let path = Arc::new(path.beginning_with(schedule));
        Ok(Fitted { accelerator, path: Some(path), record, report: FitReport::default() })
    }
}

/// A path that allows less than this share of the round trips of plain swaps is not worth tuning. Others are: rejections
/// say what swaps allow, not what local moves make of it, and the run holds both against each other once it has.
const HOPELESS: f64 = 0.5;
/// Held-out samples that judge a learned path, noised anew for each chain.
const JUDGES: usize = 300;
/// Rounds in which the schedule of the judged path is tuned on them.
const JUDGE_ROUNDS: usize = 6;

impl DiffusionLesson {
    /// A schedule tuned on noised held-out samples, which the chains of a good model resemble, and the
    /// rejection rates there.
    fn judge(
        &self,
        accelerator: &dyn Accelerator,
        path: &dyn AnnealingPath,
    ) -> sterna::Result<(Schedule, Vec<f64>)> {
        let (pairs, seed) = (self.split.pairs(), self.fit.training.seed);
        // Exact for a normal of the first guess of the modes' width.
        let width = (10.0 * self.units.shortest).min(0.999);
        let start = |n: usize| (1.0 - width.powf(n as f64 / pairs as f64)) / (1.0 - width);
        let mut schedule =
            Schedule::new((0..=pairs).map(|n| if n == pairs { 1.0 } else { start(n) }).collect())?;
        let mut round = 0;
        loop {
            let samples = self.noised(&schedule, Streams::new(seed ^ 0xBB67_AE85_84CA_A73B), round as u64);
            let judges = Split::judging(self.split.with_samples(schedule.clone(), samples));
            let rates = rejection_rates(accelerator, path, &judges, seed)?;
            if round == JUDGE_ROUNDS {
                return Ok((schedule, rates));
            }
            schedule = schedule.equalise_rejections(&rates);
            round += 1;
        }
    }

    /// √s x + √(1 − s) z of held-out samples x, for each chain of a schedule.
    fn noised(&self, schedule: &Schedule, streams: Streams, round: u64) -> Vec<Batch> {
        let held_out = self.split.held_out(self.split.pairs(), JUDGES);
        let dim = self.network.dim();
        let of_chain = |(chain, s): (usize, &f64)| {
            let first = (chain * held_out.len()) as u32;
            let keys: Vec<u32> = (0..held_out.len() as u32).map(|i| first + i).collect();
            let mut x = Batch::zeros(held_out.len(), dim);
            streams.normals(Phase::Check, round, &keys, &mut x);
            for (i, sample) in held_out.iter().enumerate() {
                let noised = x.row_mut(i).iter_mut().zip(*sample);
                noised.for_each(|(x, sample)| *x = s.sqrt() * sample + (1.0 - s).sqrt() * *x);
            }
            x
        };
        schedule.betas().iter().enumerate().map(of_chain).collect()
    }
}

#[cfg(test)]
mod tests;
