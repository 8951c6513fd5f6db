//! Adam with clipping by the global norm and an exponential average of the parameters (App. E.2).

use serde::{Deserialize, Serialize};
use sterna::lanes::one;

use crate::device::Device;
use crate::parameters::Parameters;
use crate::{Error, Real, Result};

/// Numbers that are summed, or updated, as one unit of work: fixed, so that results do not depend on threads.
pub const CHUNK: usize = 4096;

/// How the learning rate changes over the steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Not at all.
    Constant,
    /// Along a half cosine down to `floor` times the rate at step `steps`, constant afterwards.
    Cosine {
        /// Where it ends.
        steps: u64,
        /// What is left then.
        floor: f64,
    },
}

/// Settings of the optimiser; the defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamConfig {
    /// Learning rate.
    pub learning_rate: f64,
    /// Steps over which the rate rises from zero.
    pub warm_up: u64,
    /// How the rate falls.
    pub decay: Decay,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weight of the past in the average of the parameters.
    pub average: f64,
    /// Adam's β₁.
    pub first_decay: f64,
    /// Adam's β₂.
    pub second_decay: f64,
    /// Adam's ε.
    pub epsilon: f64,
    /// So many gradients in a row may be NaN or infinite before training stops.
    pub patience: u64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            warm_up: 0,
            decay: Decay::Constant,
            clip: 1.0,
            average: 0.99,
            first_decay: 0.9,
            second_decay: 0.999,
            epsilon: 1e-8,
            patience: 20,
        }
    }
}

impl AdamConfig {
    /// Learning rate of step `step` (from 0).
    pub fn rate(&self, step: u64) -> f64 {
        let rising = if self.warm_up == 0 { 1.0 } else { ((step + 1) as f64 / self.warm_up as f64).min(1.0) };
        let falling = match self.decay {
            Decay::Constant => 1.0,
            Decay::Cosine { steps, floor } => {
                let along = (step as f64 / steps.max(1) as f64).min(1.0);
                floor + (1.0 - floor) * 0.5 * (1.0 + one::cos(std::f64::consts::PI * along))
            }
        };
        self.learning_rate * rising * falling
    }
}

/// One update of a run of parameters.
pub struct AdamStep<'a, T> {
    /// The parameters.
    pub parameters: &'a mut [T],
    /// Their average over the steps.
    pub average: &'a mut [T],
    /// Average of gradients.
    pub first: &'a mut [T],
    /// Average of squared gradients.
    pub second: &'a mut [T],
    /// The gradient.
    pub gradient: &'a [T],
    /// Factor that shortens the gradient.
    pub shrink: f64,
    /// Learning rate over 1 − β₁ᵗ.
    pub rate: f64,
    /// 1/√(1 − β₂ᵗ).
    pub second_scale: f64,
    /// β₁, β₂, ε and the weight of the past in the average.
    pub constants: [f64; 4],
}

/// The update in plain Rust.
pub(crate) fn adam_chunk<T: Real>(step: AdamStep<'_, T>) {
    let [b1, b2, epsilon, past] = step.constants;
    let n = step.parameters.len();
    for i in 0..n {
        let g = step.gradient[i].to_f64() * step.shrink;
        let m = b1 * step.first[i].to_f64() + (1.0 - b1) * g;
        let v = b2 * step.second[i].to_f64() + (1.0 - b2) * g * g;
        let p = step.parameters[i].to_f64() - step.rate * m / (v.sqrt() * step.second_scale + epsilon);
        let a = step.average[i].to_f64();
        step.first[i] = T::from_f64(m);
        step.second[i] = T::from_f64(v);
        step.parameters[i] = T::from_f64(p);
        step.average[i] = T::from_f64(a + (1.0 - past) * (step.parameters[i].to_f64() - a));
    }
}

/// Σ x² of one chunk in f64, in an order that only its length decides.
#[inline(always)]
pub(crate) fn square_sum_chunk<T: Real>(x: &[T]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let whole = x.len() / 8 * 8;
    for eight in x[..whole].chunks_exact(8) {
        for (sum, x) in lanes.iter_mut().zip(eight) {
            let x = x.to_f64();
            *sum += x * x;
        }
    }
    let rest: f64 = x[whole..].iter().map(|x| x.to_f64() * x.to_f64()).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Counters that belong to a training run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps tried.
    pub steps: u64,
    /// Steps that changed the parameters.
    pub updates: u64,
    /// Steps skipped because the loss or gradient was NaN or infinite.
    pub skipped: u64,
    /// The last so many steps were all skipped.
    pub skipped_in_a_row: u64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The loss before the step.
    pub loss: f64,
    /// Length of the gradient before clipping.
    pub gradient_norm: f64,
    /// Whether the step was skipped.
    pub skipped: bool,
}

/// Adam's state.
#[derive(Clone, Debug)]
pub struct Adam<T> {
    pub(crate) config: AdamConfig,
    pub(crate) first: Vec<T>,
    pub(crate) second: Vec<T>,
    pub(crate) average: Parameters<T>,
    pub(crate) progress: Progress,
    partial: Vec<f64>,
}

impl<T: Real> Adam<T> {
    /// At the beginning of training.
    pub fn new(config: AdamConfig, parameters: &Parameters<T>) -> Self {
        let n = parameters.values().len();
        Self {
            config,
            first: vec![T::ZERO; n],
            second: vec![T::ZERO; n],
            average: parameters.clone(),
            progress: Progress::default(),
            partial: vec![0.0; n.div_ceil(CHUNK)],
        }
    }

    /// Counters.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The average of the parameters over the steps: what sampling should use.
    pub fn average(&self) -> &Parameters<T> {
        &self.average
    }

    /// One step. A gradient that is not finite changes nothing but the counters.
    ///
    /// # Errors
    /// If gradients stay bad for longer than the settings' patience.
    pub fn step(
        &mut self,
        device: &dyn Device<T>,
        parameters: &mut Parameters<T>,
        loss: f64,
        gradient: &[T],
    ) -> Result<StepReport> {
        let norm = device.square_sum(gradient, &mut self.partial).sqrt();
        let config = &self.config;
        let step = self.progress.steps;
        self.progress.steps += 1;
        if !(norm.is_finite() && loss.is_finite()) {
            self.progress.skipped += 1;
            self.progress.skipped_in_a_row += 1;
            if self.progress.skipped_in_a_row > config.patience {
                return Err(Error::Diverged { step, consecutive: self.progress.skipped_in_a_row });
            }
            return Ok(StepReport { loss, gradient_norm: norm, skipped: true });
        }
        self.progress.skipped_in_a_row = 0;
        self.progress.updates += 1;
        let t = self.progress.updates.min(1 << 30) as i32;
        // Early on the average forgets faster, so that it does not remember the start.
        let past = config.average.min((1.0 + t as f64) / (10.0 + t as f64));
        device.adam(AdamStep {
            parameters: parameters.values_mut(),
            average: self.average.values_mut(),
            first: &mut self.first,
            second: &mut self.second,
            gradient,
            shrink: if norm > config.clip { config.clip / norm } else { 1.0 },
            rate: config.rate(step) / (1.0 - config.first_decay.powi(t)),
            second_scale: 1.0 / (1.0 - config.second_decay.powi(t)).sqrt(),
            constants: [config.first_decay, config.second_decay, config.epsilon, past],
        });
        Ok(StepReport { loss, gradient_norm: norm, skipped: false })
    }
}
