//! What trained kinds share: sizes of networks, settings of training, and the choice between two ways to see coordinates.

use super::{BATCH, Planned};
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
        batch: t.batch.unwrap_or_else(|| config.accelerator.batch(config.chains.count)),
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

/// Steps of a trial of trainings of so many steps. Where more pairs share a batch, each shows less after as many.
fn trial_steps(config: &Config, all: u64) -> u64 {
    let larger = config.accelerator.batch(config.chains.count) as u64;
    (all.div_ceil(TRIAL_SHARE) * larger / BATCH as u64).min(all)
}

/// How a network sees coordinates, whether it is made for a trial alone, and K.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub apart: bool,
    pub on_trial: bool,
    pub steps: usize,
}

/// Networks that may be trained: how they may see coordinates, and K.
pub(super) struct Options<'a> {
    /// Whether coordinates are apart, where that was said or they are particles'.
    pub apart: Option<bool>,
    /// How far one that sees them apart must lead, if that is open.
    pub lead: f64,
    /// K; several, where the best is to be found.
    pub steps: &'a [usize],
    config: &'a Config,
}

impl<'a> Options<'a> {
    pub fn new(
        config: &'a Config,
        particles: Option<Particles>,
        lead: f64,
        steps: &'a [usize],
    ) -> Result<Self, JobError> {
        let sight = config.network.coordinates;
        if particles.is_some() && sight == Some(Sight::Apart) {
            return Err(JobError::Config(
                "network.coordinates = \"apart\" is impossible on particles, unless network.equivariant = false"
                    .into(),
            ));
        }
        let apart = (sight.is_some() || particles.is_some()).then_some(sight == Some(Sight::Apart));
        Ok(Self { apart, lead, steps, config })
    }

    /// Trains the only network that there is, or after a short training of all of them the best. `settings` of training and `make` of the
    /// network are told what it is; `journey` says what one costs, in evaluations, where K is open.
    pub fn best(
        &self,
        settings: impl Fn(bool) -> Training,
        journey: impl Fn(Shape) -> Result<f64, JobError>,
        make: impl Fn(Shape, Training) -> Result<Arc<dyn Fit>, JobError>,
    ) -> Result<Acceleration, JobError> {
        if let (Some(apart), [steps]) = (self.apart, self.steps) {
            let shape = Shape { apart, on_trial: false, steps: *steps };
            return Ok(Acceleration::Fitted(make(shape, settings(apart))?));
        }
        // Those that see coordinates apart learn in fewer steps.
        let short_steps = trial_steps(self.config, settings(self.apart.unwrap_or(true)).steps);
        let candidate = |(apart, steps): (bool, usize)| -> Result<Candidate, JobError> {
            let shape = Shape { apart, on_trial: false, steps };
            let training = settings(apart);
            let short_training = Training { steps: short_steps, fine_tune: 0, ..training.clone() };
            let short = make(Shape { on_trial: true, ..shape }, short_training)?;
            let full_steps = training.steps + training.fine_tune;
            let full = make(shape, training)?;
            let handicap = if apart && self.apart.is_none() { self.lead } else { 1.0 };
            let journey = if self.steps.len() > 1 { journey(shape)? } else { 0.0 };
            Ok(Candidate { short, full, short_steps, full_steps, handicap, journey })
        };
        let sights = self.apart.map_or(vec![false, true], |apart| vec![apart]);
        let all = sights.into_iter().flat_map(|apart| self.steps.iter().map(move |steps| (apart, *steps)));
        let candidates = all.map(candidate).collect::<Result<_, _>>()?;
        Ok(Acceleration::Fitted(Arc::new(Trial::new(candidates))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_pairs_are_on_trial_for_longer() {
        let steps = |text: &str| trial_steps(&Config::parse(text, &[]).unwrap(), 4000);
        let cmcd = "[accelerator]\nkind = \"cmcd\"\n[chains]\ncount = ";
        assert_eq!(["10", "30", "1000"].map(|n| steps(&format!("{cmcd}{n}"))), [667, 2146, 4000]);
        // Who says how large batches are does not change how long a trial is.
        assert_eq!(steps(&format!("{cmcd}30\n[training]\nbatch = 256")), 2146);
        assert_eq!(steps("[accelerator]\nkind = \"diffusion\"\n[chains]\ncount = 30"), 667);
    }
}
