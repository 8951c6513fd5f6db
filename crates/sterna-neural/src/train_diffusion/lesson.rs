//! What a step of score matching sees, and how the learned path is judged.

use std::sync::Arc;
use sterna::lanes::one;

use sterna::acceleration::{FitReport, Fitted, PairReport};
use sterna::accelerator::Accelerator;
use sterna::accelerators::Identity;
use sterna::estimates::round_trip_rate;
use sterna::frame::Frame;
use sterna::path::AnnealingPath;
use sterna::streams::{Phase, Streams};
use sterna::{Batch, Evaluation, Schedule, Target};

use super::{DiffusionDescription, TrainDiffusion, diffused, placed};
use crate::course::Lesson;
use crate::diffusion_loss::Units;
use crate::energy_model::EnergyNetwork;
use crate::fit::into_library;
use crate::framing::framed;
use crate::judge::{Split, rejection_rates};
use crate::parameters::{Layout, Parameters};
use crate::recipe::{Field, HostBatches, PairChoice, Recipe, Way};
use crate::training::TrainingStreams;
use crate::weights::to_bytes;

/// Batches of so many rows: a time, a sample of the target chain, and noise.
pub(super) fn recipe(rows: usize, split: &Split, streams: &TrainingStreams, shortest: f64) -> Recipe {
    let samples = split.trained_on_target();
    let [choices_seed, noise_seed, seed] = streams.seeds();
    Recipe {
        journeys: rows,
        rows,
        choices_seed,
        noise_seed,
        first_step: 0,
        dim: samples.dim(),
        trained: samples.rows(),
        samples: samples.as_slice().to_vec(),
        // Of all pairs and chains, only the target chain.
        betas: vec![0.0, 1.0],
        pair: PairChoice::Spread(1),
        way: Way::Forward,
        fields: vec![Field::Times { seed, shortest }, Field::AtLower, Field::Noise(samples.dim())],
    }
}

pub(super) struct DiffusionLesson {
    pub(super) fit: TrainDiffusion,
    /// The samples, in the network's coordinates …
    pub(super) split: Split,
    /// … and as they are.
    pub(super) outside: Split,
    /// Those coordinates, where they are not those of points.
    pub(super) frame: Option<Arc<Frame>>,
    /// The target as they see it.
    pub(super) seen: Arc<dyn Target>,
    pub(super) layout: Layout,
    pub(super) network: EnergyNetwork,
    pub(super) units: Units,
    /// Whether the samples come from a path that an earlier round learned.
    pub(super) on_learned_path: bool,
    /// s and 1 − s, a sample of the target chain, and noise.
    pub(super) batches: HostBatches,
    /// Samples, then the noised ones shrunk by √s: where the target is asked.
    pub(super) points: Batch,
    pub(super) scores: Evaluation,
    pub(super) trouble: Option<sterna::Error>,
}

impl Lesson for DiffusionLesson {
    fn rows(&self) -> usize {
        self.batches.recipe().rows
    }

    fn inputs(&self) -> usize {
        8
    }

    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]) {
        let (rows, dim) = (self.rows(), self.network.dim());
        let [times, samples, noise] = self.batches.draw(step) else { unreachable!("three fields") };
        for (row, times) in times.chunks_exact(2).enumerate() {
            let s = times[0];
            inputs[0].push(s as f32);
            let own = row * dim..(row + 1) * dim;
            self.points.row_mut(row).copy_from_slice(&samples[own.clone()]);
            for (j, (sample, z)) in samples[own.clone()].iter().zip(&noise[own]).enumerate() {
                let x = s.sqrt() * sample + (1.0 - s).sqrt() * z;
                inputs[1].push(x as f32);
                self.points.row_mut(rows + row)[j] = s.sqrt() * x;
            }
        }
        if let Err(error) = self.seen.evaluate(&self.points, &mut self.scores) {
            self.trouble = Some(error);
        }
        for (row, times) in times.chunks_exact(2).enumerate() {
            let (s, z) = (times[0], &noise[row * dim..(row + 1) * dim]);
            let (clean, noised) = (self.scores.score.row(row), self.scores.score.row(rows + row));
            // A point at which the target has no score teaches nothing.
            let level = self.scores.log_density[rows + row] - self.units.log_level;
            let known = clean.iter().chain(noised).chain([&level]).all(|v| v.is_finite());
            let sample = self.points.row(row);
            let across: f64 = z.iter().zip(sample).map(|(z, x)| z * x).sum();
            let outward = z.len() as f64 - z.iter().map(|z| z * z).sum::<f64>();
            let rest = 1.0 - s;
            let slope = 0.5 * (outward / rest + across / (s * rest).sqrt());
            // Where noise is narrower than a mode, z says little at given x.
            let slope_scale = rest * rest / (rest + s * 10.0 * self.units.shortest) * s.sqrt();
            inputs[5].push(if known { level as f32 } else { 0.0 });
            inputs[6].push(if known { slope as f32 } else { 0.0 });
            inputs[7].push(if known { slope_scale as f32 } else { 0.0 });
            for (j, z) in z.iter().enumerate() {
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
        Some(self.batches.recipe().clone())
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
        let path = diffused(&self.network, self.fit.target.clone(), weights, self.frame.as_ref())?;
        let plain_rates = match self.on_learned_path {
            // The ladder of the geometric path was judged when it was left.
            true => report.pairs.iter().map(|p| p.plain_rejection).collect(),
            false => rejection_rates(&Identity, &*self.fit.path, &self.outside, self.fit.training.seed)?,
        };
        let Judged { steps, schedule, rates } = self.best_steps(&path)?;
        let accelerator = self.fit.accelerator(steps)?;
        // Between reference and target, whatever lies beyond.
        let first_leg = &plain_rates[..self.split.schedule().target()];
        let (ours, theirs) = (round_trip_rate(&rates), round_trip_rate(first_leg));
        let plain = self.fit.training.guard && (ours < HOPELESS * theirs || ours.is_nan());
        let pair = |(&rejection, &plain_rejection)| PairReport { rejection, plain_rejection, plain };
        report.pairs = rates.iter().zip(&plain_rates).map(pair).collect();
        let description = DiffusionDescription {
            network: self.network.config().clone(),
            schedule: schedule.betas().to_vec(),
            plain,
            frame: self.frame.as_deref().cloned(),
            steps: (!self.fit.among.is_empty()).then_some(steps),
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
        let path = Some(placed(path.beginning_with(schedule), self.frame.clone()));
        let accelerator = framed(accelerator, self.frame.as_deref());
        Ok(Fitted { accelerator, path, record, report: FitReport::default() })
    }
}

/// A path that allows less than this share of the round trips of plain swaps is not worth tuning. Others are: rejections
/// say what swaps allow, not what local moves make of it, and the run holds both against each other once it has.
const HOPELESS: f64 = 0.5;
/// Held-out samples that judge a learned path, noised anew for each chain.
const JUDGES: usize = 300;
/// Rounds in which the schedule of the judged path is tuned on them.
const JUDGE_ROUNDS: usize = 6;

/// A learned path with K steps along it.
struct Judged {
    steps: usize,
    schedule: Schedule,
    rates: Vec<f64>,
}

impl DiffusionLesson {
    /// K as given or, of those that it may be, that which allows most round trips for their cost.
    fn best_steps(&self, path: &dyn AnnealingPath) -> sterna::Result<Judged> {
        let judged = |steps: usize| -> sterna::Result<Judged> {
            let (schedule, rates) = self.judge(&*self.fit.accelerator(steps)?, path)?;
            Ok(Judged { steps, schedule, rates })
        };
        let each = self.split.evaluations_each();
        let mut best: Option<(f64, Judged)> = None;
        for &(steps, journey) in &self.fit.among {
            let judged = judged(steps)?;
            // Two journeys a swap, which is proposed in every second iteration.
            let rate = round_trip_rate(&judged.rates);
            let worth = if rate.is_nan() { 0.0 } else { rate / (each + judged.rates.len() as f64 * journey) };
            if best.as_ref().is_none_or(|(least, _)| worth > *least) {
                best = Some((worth, judged));
            }
        }
        match best {
            Some((_, best)) => Ok(best),
            None => judged(self.fit.size.steps),
        }
    }

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
        let start = |n: usize| (1.0 - one::power(width, n as f64 / pairs as f64)) / (1.0 - width);
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
        let held_out = self.split.held_out(self.split.schedule().target(), JUDGES);
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
