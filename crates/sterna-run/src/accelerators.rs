//! The path and the accelerator that a config names.

use crate::config::{Config, known};
use crate::error::JobError;
use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::{Acceleration, FitAffine, FitCmcd};
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator, NoDrift, NormalDrift};
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::transport::Drift;

/// Path and accelerator of a config, and K.
pub struct Plan {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// What carries the proposals of swaps.
    pub acceleration: Acceleration,
    /// K.
    pub steps: usize,
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
    known("accelerator.kind", &accelerator.kind, &["none", "affine", "cmcd", "diffusion"])?;
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
    Ok(match accelerator.kind.as_str() {
        "none" => {
            Plan { path: geometric(target)?, acceleration: Acceleration::None, steps: steps(0, 0..=0)? }
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
                None => {
                    return wrong(
                        "accelerator.kind = \"cmcd\" needs accelerator.drift: \"none\", or \"exact\" for a normal target"
                            .into(),
                    );
                }
            };
            if !(accelerator.noise > 0.0 && accelerator.noise.is_finite()) {
                return wrong(format!(
                    "accelerator.noise = {} is impossible: it must be positive",
                    accelerator.noise
                ));
            }
            let steps = steps(5, 1..=10_000)?;
            let fit = FitCmcd { drift, steps, noise: accelerator.noise };
            Plan { path: geometric(target)?, acceleration: Acceleration::Fitted(Arc::new(fit)), steps }
        }
        _ => {
            match accelerator.score.as_deref() {
                Some("exact") => {}
                Some(other) => known("accelerator.score", other, &["exact"])?,
                None => {
                    return wrong(
                        "accelerator.kind = \"diffusion\" needs accelerator.score = \"exact\"".into(),
                    );
                }
            }
            known("accelerator.integrator", &accelerator.integrator, &["exponential", "euler"])?;
            let integrator =
                if accelerator.integrator == "euler" { Integrator::Euler } else { Integrator::Exponential };
            let Some(path) = Diffused::exact(target) else {
                return wrong(format!(
                    "accelerator.score = \"exact\" needs a target that knows its own diffusion (gmm, normal), not \"{}\"",
                    config.target.kind
                ));
            };
            if scale != 1.0 {
                return wrong(format!(
                    "reference.scale = {scale} is impossible with a diffusion, which starts at N(0, I)"
                ));
            }
            let steps = steps(5, 0..=10_000)?;
            let acceleration = match steps {
                0 => Acceleration::None,
                _ => Acceleration::Given(Arc::new(Diffusion {
                    steps: DiffusionSteps::new(steps, integrator)?,
                })),
            };
            Plan { path: Arc::new(path), acceleration, steps }
        }
    })
}
