//! The path and the accelerator that a config names.

use crate::builtin;
use crate::config::{Config, Count, known};
use crate::error::JobError;
use crate::molecules;
use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::{Acceleration, FitAffine, FitCmcd};
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator, NoDrift, NormalDrift};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::transport::Drift;
use sterna_neural::{
    CmcdSize, Compute, DiffusionSize, FlowSize, Hidden, LoadedTransport, Loss, Particles, Precision,
    TrainCmcd, TrainDiffusion, TrainFlow, Training, load_transport,
};

/// Path and accelerator of a config, and K.
pub struct Plan {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// What carries the proposals of swaps.
    pub acceleration: Acceleration,
    /// K.
    pub steps: usize,
}

/// Sizes of a network: those given, else those of the preset.
pub(crate) fn size(
    config: &Config,
    small: (usize, usize),
    paper: (usize, usize),
) -> Result<(usize, usize), JobError> {
    let network = &config.network;
    known("network.preset", &network.preset, &["small", "paper"])?;
    let (layers, width) = if network.preset == "paper" { paper } else { small };
    let (layers, width) = (network.layers.unwrap_or(layers), network.width.unwrap_or(width));
    for (field, value) in [("layers", layers), ("width", width)] {
        if !(1..=100_000).contains(&value) {
            return Err(JobError::Config(format!(
                "network.{field} = {value} is impossible: it must lie between 1 and 100000"
            )));
        }
    }
    Ok((layers, width))
}

/// Settings of training; `steps` and `fine_tune` are used where the config gives none.
pub(crate) fn training(config: &Config, steps: u64, fine_tune: u64) -> Result<Training, JobError> {
    let t = &config.training;
    known("training.loss", &t.loss, &["skl", "forward-kl", "reverse-kl", "log-variance"])?;
    Ok(Training {
        seed: config.seed,
        steps: t.steps.unwrap_or(steps),
        fine_tune: t.fine_tune.unwrap_or(fine_tune),
        batch: t.batch,
        learning_rate: t.learning_rate,
        clip: t.clip,
        ema: t.ema,
        loss: match t.loss.as_str() {
            "forward-kl" => Loss::ForwardKl,
            "reverse-kl" => Loss::ReverseKl,
            "log-variance" => Loss::LogVariance,
            _ => Loss::Skl,
        },
        threads: rayon::current_num_threads(),
        compute: compute(config)?,
        guard: t.guard,
    })
}

/// Where the config has networks trained.
pub(crate) fn compute(config: &Config) -> Result<Compute, JobError> {
    let t = &config.training;
    known("training.device", &t.device, &["cpu", "cuda"])?;
    known("training.precision", &t.precision, &["f32", "tf32"])?;
    let precision = if t.precision == "tf32" { Precision::Tf32 } else { Precision::F32 };
    Ok(match t.device.as_str() {
        "cuda" => Compute::Cuda { precision, fall_back: t.fallback },
        _ => Compute::Cpu,
    })
}

fn impossible(error: sterna_neural::Error) -> JobError {
    JobError::Config(match error {
        sterna_neural::Error::Config { field, value, reason } => {
            format!("{field} = {value} is impossible: {reason}")
        }
        error => error.to_string(),
    })
}

/// Steps of a flow's training.
const FLOW_STEPS: u64 = 6000;

/// Steps of a controlled diffusion's training. A step costs about K + 1 calls of the drift, forth and back, and
/// an EGNN some five times as much as an MLP; so trainings take one to four minutes of one core.
fn cmcd_steps(steps: usize, particles: bool) -> u64 {
    let steps = steps.max(1) as u64;
    if particles { (12_500 / steps).clamp(500, 6000) } else { (120_000 / steps).clamp(1000, 30_000) }
}

/// Steps of an energy model's training.
const DIFFUSION_STEPS: u64 = 24_000;

/// The particles of the target, if the network is to be one of particles.
fn particles(config: &Config) -> Result<Option<Particles>, JobError> {
    let known = builtin::particles(&config.target);
    match config.network.equivariant {
        Some(true) if known.is_none() => Err(JobError::Config(format!(
            "network.equivariant = true is impossible: target.kind = \"{}\" has no particles",
            config.target.kind
        ))),
        Some(false) => Ok(None),
        _ => Ok(known),
    }
}

/// The trained transport of a file, if it fits the config.
fn transport(config: &Config, file: &str, dim: usize) -> Result<LoadedTransport, JobError> {
    let accelerator = &config.accelerator;
    let path = std::path::Path::new(file);
    let bytes = std::fs::read(path).map_err(JobError::file("read accelerator.transport", path))?;
    let loaded = load_transport(bytes, file).map_err(|e| JobError::Config(e.to_string()))?;
    let wrong = |ours: String, theirs: String| {
        Err(JobError::Config(format!("{ours}, but the transport in {file} was made for {theirs}")))
    };
    if accelerator.kind != loaded.kind {
        return wrong(format!("accelerator.kind = \"{}\"", accelerator.kind), format!("\"{}\"", loaded.kind));
    }
    if accelerator.drift.is_some() {
        return Err(JobError::Config(
            "accelerator.drift and accelerator.transport exclude each other".into(),
        ));
    }
    if config.reference.scale != 1.0 {
        return wrong(format!("reference.scale = {}", config.reference.scale), "1".into());
    }
    if dim != loaded.dim {
        return wrong(format!("the target has dimension {dim}"), format!("dimension {}", loaded.dim));
    }
    if let Some(steps) = accelerator.steps.filter(|&s| s != loaded.steps) {
        return wrong(format!("accelerator.steps = {steps}"), format!("{} steps", loaded.steps));
    }
    let chains = loaded.schedule.chains();
    match &config.chains.count {
        Count::Number(count) if *count != chains => {
            wrong(format!("chains.count = {count}"), format!("{chains} chains"))
        }
        Count::Word(word) => wrong(format!("chains.count = \"{word}\""), format!("{chains} chains")),
        Count::Number(_) => Ok(loaded),
    }
}

/// What the config asks for, or why it cannot be had.
pub fn plan(config: &Config, target: Arc<dyn Target>) -> Result<Plan, JobError> {
    if config.target.is_molecule() {
        return molecules::plan(config);
    }
    molecules::refuse_settings(config)?;
    let accelerator = &config.accelerator;
    let scale = config.reference.scale;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(JobError::Config(format!(
            "reference.scale = {scale} is impossible: it must be positive"
        )));
    }
    known("accelerator.kind", &accelerator.kind, &["none", "affine", "flow", "cmcd", "diffusion"])?;
    let wrong = |message: String| Err(JobError::Config(message));
    let steps = |default: usize, allowed: std::ops::RangeInclusive<usize>| {
        let steps = accelerator.steps.unwrap_or(default);
        if allowed.contains(&steps) {
            return Ok(steps);
        }
        let (kind, low, high) = (&accelerator.kind, allowed.start(), allowed.end());
        Err(JobError::Config(format!(
            "accelerator.steps = {steps} is impossible for kind = \"{kind}\": it must lie between {low} and {high}"
        )))
    };
    let geometric = |target: Arc<dyn Target>| -> Result<Arc<dyn AnnealingPath>, JobError> {
        let reference = Reference::normal(vec![0.0; target.dim()], vec![scale; target.dim()]);
        Ok(Arc::new(Geometric::new(reference, target)?))
    };
    if let Some(file) = &accelerator.transport {
        let loaded = transport(config, file, target.dim())?;
        let steps = loaded.steps;
        let acceleration = Acceleration::Kept(loaded.accelerator, loaded.schedule);
        return Ok(Plan { path: geometric(target)?, acceleration, steps });
    }
    let trained = accelerator.kind == "flow" || (accelerator.kind == "cmcd" && accelerator.drift.is_none());
    if trained && scale != 1.0 {
        return wrong(format!(
            "reference.scale = {scale} is impossible for a trained transport: its loss knows N(0, I)"
        ));
    }
    Ok(match accelerator.kind.as_str() {
        "none" => {
            let steps = steps(0, 0..=0)?;
            Plan { path: geometric(target)?, acceleration: Acceleration::None, steps }
        }
        "flow" => {
            let path = geometric(target)?;
            let (layers, width) = size(config, (8, 48), (20, 128))?;
            let size = FlowSize { layers, hidden: Hidden::new(2, width) };
            let graph_target = builtin::graph_target(&config.target)?;
            let training = training(config, FLOW_STEPS, 0)?;
            let fit = TrainFlow::new(path.clone(), graph_target, size, training);
            let acceleration = Acceleration::Fitted(Arc::new(fit.map_err(impossible)?));
            Plan { path, acceleration, steps: steps(1, 1..=1)? }
        }
        "cmcd" if accelerator.drift.is_none() => {
            let path = geometric(target)?;
            let particles = particles(config)?;
            let (small, paper) = if particles.is_some() { ((2, 32), (4, 64)) } else { ((3, 96), (4, 512)) };
            let (layers, width) = size(config, small, paper)?;
            let steps = steps(5, 1..=10_000)?;
            let hidden = Hidden::new(layers, width);
            let size = CmcdSize { steps, hidden, particles, noise: accelerator.noise };
            let graph_target = builtin::graph_target(&config.target)?;
            let training = training(config, cmcd_steps(steps, particles.is_some()), 0)?;
            let fit = TrainCmcd::new(path.clone(), graph_target, size, training);
            let acceleration = Acceleration::Fitted(Arc::new(fit.map_err(impossible)?));
            Plan { path, acceleration, steps }
        }
        "affine" => {
            known("accelerator.covariance", &accelerator.covariance, &["diagonal", "full"])?;
            let fit = FitAffine { full: accelerator.covariance == "full" };
            Plan {
                path: geometric(target)?,
                acceleration: Acceleration::Fitted(Arc::new(fit)),
                steps: steps(1, 1..=1)?,
            }
        }
        "cmcd" => {
            let drift: Arc<dyn Drift> = match accelerator.drift.as_deref() {
                Some("none") => Arc::new(NoDrift),
                Some("exact") if scale != 1.0 => {
                    return wrong(format!(
                        "accelerator.drift = \"exact\" needs reference.scale = 1, not {scale}"
                    ));
                }
                Some("exact") => match crate::builtin::normal(&config.target)? {
                    Some(normal) => Arc::new(NormalDrift::new(normal)),
                    None => {
                        return wrong(format!(
                            "accelerator.drift = \"exact\" is known for target.kind = \"normal\" alone, not \"{}\"",
                            config.target.kind
                        ));
                    }
                },
                Some(other) => {
                    known("accelerator.drift", other, &["none", "exact"])?;
                    unreachable!("known names are handled above")
                }
                None => unreachable!("a drift that is not given is trained"),
            };
            if !(accelerator.noise > 0.0 && accelerator.noise.is_finite()) {
                return wrong(format!(
                    "accelerator.noise = {} is impossible: it must be positive",
                    accelerator.noise
                ));
            }
            let steps = steps(5, 1..=10_000)?;
            let fit = FitCmcd { drift, steps, noise: accelerator.noise };
            let acceleration = Acceleration::Fitted(Arc::new(fit));
            Plan { path: geometric(target)?, acceleration, steps }
        }
        _ => {
            known("accelerator.integrator", &accelerator.integrator, &["exponential", "euler"])?;
            let integrator =
                if accelerator.integrator == "euler" { Integrator::Euler } else { Integrator::Exponential };
            if scale != 1.0 {
                return wrong(format!(
                    "reference.scale = {scale} is impossible with a diffusion, which starts at N(0, I)"
                ));
            }
            let steps = steps(5, 0..=10_000)?;
            if let Some(score) = accelerator.score.as_deref() {
                known("accelerator.score", score, &["exact"])?;
                let Some(path) = Diffused::exact(target) else {
                    return wrong(format!(
                        "accelerator.score = \"exact\" needs a target that knows its own diffusion (gmm, normal), not \"{}\"",
                        config.target.kind
                    ));
                };
                let acceleration = match steps {
                    0 => Acceleration::None,
                    _ => Acceleration::Given(Arc::new(Diffusion {
                        steps: DiffusionSteps::new(steps, integrator)?,
                    })),
                };
                return Ok(Plan { path: Arc::new(path), acceleration, steps });
            }
            let path = geometric(target.clone())?;
            let particles = particles(config)?;
            let (layers, width) = match particles {
                Some(_) => size(config, (3, 32), (3, 128))?,
                None if config.target.kind == "many-well" => size(config, (3, 128), (3, 256))?,
                None => size(config, (3, 96), (3, 128))?,
            };
            let hidden = Hidden::new(layers, width);
            // Waves of the coordinates help where modes are many in few dimensions; in more they lead chains astray.
            let waves = if target.dim() > 16 { 0 } else { 3 };
            let size = DiffusionSize { steps, integrator, hidden, waves, particles };
            let fit = TrainDiffusion::new(path.clone(), target, size, training(config, DIFFUSION_STEPS, 0)?);
            let acceleration = Acceleration::Fitted(Arc::new(fit.map_err(impossible)?));
            Plan { path, acceleration, steps }
        }
    })
}
