//! What trained kinds share: sizes of networks, settings of training, and the choice between two ways to see coordinates.

use super::Planned;
use crate::config::{Config, Preset, Sight};
use crate::error::JobError;
use std::sync::Arc;
use sterna::acceleration::{Acceleration, Fit};
use sterna_neural::{Candidate, Particles, Training, Trial};

/// What a kind trains where the config does not say: hidden layers (of a flow, coupling layers) and their width, small and as
/// large as the paper's, and steps of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual {
    /// Layers and width for CPUs.
    pub small: (usize, usize),
    /// Those of the paper.
    pub paper: (usize, usize),
    /// Steps of a training.
    pub steps: u64,
}

impl Usual {
    /// Layers and width of a preset.
    pub fn of(&self, preset: Preset) -> (usize, usize) {
        if preset == Preset::Paper { self.paper } else { self.small }
    }
}

/// What a network sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Particles, which it turns and permutes with.
    Particles,
    /// All coordinates.
    Together,
    /// Each coordinate by itself.
    Apart,
}

impl Seen {
    pub(super) fn of(particles: Option<Particles>, apart: bool) -> Self {
        match (particles, apart) {
            (Some(_), _) => Self::Particles,
            (None, true) => Self::Apart,
            (None, false) => Self::Together,
        }
    }
}

/// Layers and width of a network: those given, else the usual ones.
pub(super) fn size(config: &Config, usual: Usual) -> Result<(usize, usize), JobError> {
    let network = &config.network;
    let (layers, width) = usual.of(network.preset);
    let (layers, width) = (network.layers.unwrap_or(layers), network.width.unwrap_or(width));
    for (field, value) in [("network.layers", layers), ("network.width", width)] {
        if !(1..=100_000).contains(&value) {
            return Err(JobError::setting(field, value, "it must lie between 1 and 100000"));
        }
    }
    Ok((layers, width))
}

/// Settings of training; `steps` are used where the config gives none.
pub(super) fn training(config: &Config, steps: u64) -> Training {
    let t = &config.training;
    Training {
        seed: config.seed,
        steps: t.steps.unwrap_or(steps),
        fine_tune: t.fine_tune.unwrap_or(0),
        batch: t.batch,
        learning_rate: t.learning_rate,
        clip: t.clip,
        ema: t.ema,
        loss: t.loss,
        threads: rayon::current_num_threads(),
        compute: t.device.compute(t.precision, t.fallback),
        guard: t.guard,
        judges: true,
    }
}

/// Errors of networks name fields of the config.
pub(super) fn impossible(error: sterna_neural::Error) -> JobError {
    match error {
        sterna_neural::Error::Config { field, value, reason } => JobError::setting(field, value, reason),
        error => JobError::Config(error.to_string()),
    }
}

/// The particles of the target, if the network is to be one of particles.
pub(super) fn particles(job: &Planned) -> Result<Option<Particles>, JobError> {
    let known = job.problem.particles;
    match job.config.network.equivariant {
        Some(true) if known.is_none() => {
            let reason = format!("target.kind = \"{}\" has no particles", job.problem.kind.kind());
            Err(JobError::setting("network.equivariant", true, reason))
        }
        Some(false) => Ok(None),
        _ => Ok(known),
    }
}

/// Layers and width of a network that sees coordinates apart, small and as large as the paper's.
pub(super) const APART: [(usize, usize); 2] = [(2, 32), (3, 64)];

/// This share of the steps of a training apart shows which network suits a target.
const TRIAL_SHARE: u64 = 6;

/// How a network sees coordinates, and whether it is made for a trial alone.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub apart: bool,
    pub on_trial: bool,
}

/// Trains the network that sees coordinates as the config says; if it says nothing, the better of the two: the one that
/// sees them apart must lead by so much. Both are told whether they are seen apart: `settings` of training, and `make` of
/// the network.
pub(super) fn better_of(
    config: &Config,
    particles: Option<Particles>,
    lead: f64,
    settings: impl Fn(bool) -> Training,
    make: impl Fn(Shape, Training) -> Result<Arc<dyn Fit>, JobError>,
) -> Result<Acceleration, JobError> {
    let sight = config.network.coordinates;
    if particles.is_some() && sight == Some(Sight::Apart) {
        return Err(JobError::Config(
            "network.coordinates = \"apart\" is impossible on particles, unless network.equivariant = false"
                .into(),
        ));
    }
    if sight.is_some() || particles.is_some() {
        let apart = sight == Some(Sight::Apart);
        return Ok(Acceleration::Fitted(make(Shape { apart, on_trial: false }, settings(apart))?));
    }
    let short_steps = settings(true).steps.div_ceil(TRIAL_SHARE);
    let candidate = |apart| -> Result<Candidate, JobError> {
        let training = settings(apart);
        let short_training = Training { steps: short_steps, fine_tune: 0, ..training.clone() };
        let short = make(Shape { apart, on_trial: true }, short_training)?;
        let full_steps = training.steps + training.fine_tune;
        let full = make(Shape { apart, on_trial: false }, training)?;
        Ok(Candidate { short, full, short_steps, full_steps })
    };
    Ok(Acceleration::Fitted(Arc::new(Trial::new(vec![candidate(false)?, candidate(true)?], lead))))
}
