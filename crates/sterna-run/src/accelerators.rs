//! The path and the accelerator that a config names.

use crate::builtin;
use crate::config::{Config, known};
use crate::error::JobError;
use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::{Acceleration, FitAffine, FitCmcd};
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator, NoDrift, NormalDrift};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::transport::Drift;
use sterna_neural::{
    CmcdSize, DiffusionSize, FlowSize, Hidden, Loss, TrainCmcd, TrainDiffusion, TrainFlow, Training,
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
fn size(config: &Config, small: (usize, usize), paper: (usize, usize)) -> Result<(usize, usize), JobError> {
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

fn training(config: &Config) -> Result<Training, JobError> {
    let t = &config.training;
    known("training.loss", &t.loss, &["skl", "forward-kl", "reverse-kl", "log-variance"])?;
    Ok(Training {
        seed: config.seed,
        steps: t.steps.unwrap_or(if config.accelerator.kind == "diffusion" { 8000 } else { 3000 }),
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
        guard: t.guard,
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

/// What the config asks for, or why it cannot be had.
pub fn plan(config: &Config, target: Arc<dyn Target>) -> Result<Plan, JobError> {
    let accelerator = &config.accelerator;
    known("reference.kind", &config.reference.kind, &["standard-normal"])?;
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
            let (layers, width) = size(config, (8, 64), (20, 128))?;
            let size = FlowSize { layers, hidden: Hidden::new(2, width) };
            let graph_target = builtin::graph_target(&config.target)?;
            let fit = TrainFlow::new(path.clone(), graph_target, size, training(config)?);
            let acceleration = Acceleration::Fitted(Arc::new(fit.map_err(impossible)?));
            Plan { path, acceleration, steps: steps(1, 1..=1)? }
        }
        "cmcd" if accelerator.drift.is_none() => {
            let path = geometric(target)?;
            let (layers, width) = size(config, (3, 96), (4, 512))?;
            let steps = steps(5, 1..=10_000)?;
            let size = CmcdSize { steps, hidden: Hidden::new(layers, width), noise: accelerator.noise };
            let graph_target = builtin::graph_target(&config.target)?;
            let fit = TrainCmcd::new(path.clone(), graph_target, size, training(config)?);
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
            let particles = builtin::particles(&config.target.kind);
            let particles = match config.network.equivariant {
                Some(true) if particles.is_none() => {
                    return wrong(format!(
                        "network.equivariant = true is impossible for target.kind = \"{}\": it is for particles (dw4)",
                        config.target.kind
                    ));
                }
                Some(false) => None,
                _ => particles,
            };
            let (layers, width) = match particles {
                Some(_) => size(config, (3, 32), (3, 128))?,
                None if config.target.kind == "many-well" => size(config, (3, 128), (3, 256))?,
                None => size(config, (3, 96), (3, 128))?,
            };
            let hidden = Hidden::new(layers, width);
            let size = DiffusionSize { steps, integrator, hidden, waves: 3, particles };
            let fit = TrainDiffusion::new(path.clone(), target, size, training(config)?);
            let acceleration = Acceleration::Fitted(Arc::new(fit.map_err(impossible)?));
            Plan { path, acceleration, steps }
        }
    })
}
