//! A trained transport of an earlier run, used again.

use super::{AcceleratorKind, Plan, Planned};
use crate::config::Count;
use crate::error::JobError;
use crate::references::Density;
use std::path::Path;
use sterna::acceleration::Acceleration;
use sterna_neural::{Made, load_transport};

/// The transport of a file, if it fits the job.
pub(super) fn plan(job: &Planned, density: &Density, file: &Path) -> Result<Plan, JobError> {
    let (accelerator, dim) = (&job.config.accelerator, density.target.dim());
    let bytes = std::fs::read(file).map_err(JobError::file("read accelerator.transport", file))?;
    let file = file.display();
    let loaded = load_transport(bytes, &file.to_string()).map_err(|e| JobError::Config(e.to_string()))?;
    let wrong = |ours: String, theirs: String| {
        Err(JobError::Config(format!("{ours}, but the transport in {file} was made for {theirs}")))
    };
    if accelerator.kind() != loaded.kind {
        return wrong(
            format!("accelerator.kind = \"{}\"", accelerator.kind()),
            format!("\"{}\"", loaded.kind),
        );
    }
    if let Some((key, value)) = &density.unusual {
        return wrong(format!("{key} = {value}"), "1".into());
    }
    if dim != loaded.dim {
        return wrong(format!("the target has dimension {dim}"), format!("dimension {}", loaded.dim));
    }
    let (carrier, steps, schedule) = match (loaded.made, accelerator) {
        // A path does not know how many chains lie along it, nor in how many steps they are joined.
        (Made::Path(path), AcceleratorKind::Diffusion(diffusion)) => {
            return diffusion.along(path.to(density.target.clone())?);
        }
        (Made::Path(_), _) => return wrong(format!("a {}", accelerator.kind()), "a diffusion".into()),
        (Made::Pairs { accelerator, steps, schedule }, _) => (accelerator, steps, schedule),
    };
    if let Some(ours) = accelerator.steps().filter(|&s| s != steps) {
        return wrong(format!("accelerator.steps = {ours}"), format!("{steps} steps"));
    }
    let (count, chains) = (job.config.chains.count, schedule.chains());
    if count != Count::Number(chains) {
        return wrong(format!("chains.count = {count}"), format!("{chains} chains"));
    }
    Ok(Plan::new(density.path()?, Acceleration::Kept(carrier, schedule), steps))
}
