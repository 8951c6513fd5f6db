//! A trained transport of an earlier run, used again.

use super::{AcceleratorKind, Plan, Planned};
use crate::config::Count;
use crate::error::JobError;
use crate::references::Density;
use std::path::Path;
use sterna::acceleration::Acceleration;
use sterna_neural::{LoadedTransport, Made, load_transport};

/// Whether a transport was made for a reference; if not, what for. One that is fitted, or known by its draws alone, is never the
/// same twice. A learned path brings its own where nobody asks for another.
fn check_reference(density: &Density, loaded: &LoadedTransport) -> Result<(), &'static str> {
    let known = !density.is_anchor && density.reference.as_normal().is_some();
    let own = matches!(loaded.made, Made::Path(_)) && density.unusual.is_none();
    match (known, loaded.frame.is_some()) {
        _ if known && (own || density.reference.frame() == loaded.frame) => Ok(()),
        (false, _) => Err("the reference of its own run, which no other has"),
        (true, true) => Err("another reference"),
        (true, false) => Err("N(0, I)"),
    }
}

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
    if dim != loaded.dim {
        return wrong(format!("the target has dimension {dim}"), format!("dimension {}", loaded.dim));
    }
    if let Err(theirs) = check_reference(density, &loaded) {
        let (key, value) =
            density.unusual.clone().unwrap_or(("reference.kind", "\"standard-normal\"".into()));
        return wrong(format!("{key} = {value}"), theirs.into());
    }
    let (carrier, steps, schedule) = match (loaded.made, accelerator) {
        // A path does not know how many chains lie along it, nor in how many steps they are joined.
        (Made::Path(path), AcceleratorKind::Diffusion(diffusion)) => {
            return diffusion.along(path.to(density.target.clone())?, loaded.frame);
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
