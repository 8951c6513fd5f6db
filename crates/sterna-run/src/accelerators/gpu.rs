//! Burn-in and sampling on a GPU, where the config asks for one.

use super::GpuCannot;
use crate::config::{Config, TargetKind, word};
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::Ground;
use std::sync::Arc;
use sterna::engine::MakeEngine;
use sterna_neural::{Compute, LadderEngines};

/// What carries out burn-in and sampling, where the config asks for a GPU, or why that cannot be had.
pub fn engine_maker(problem: &Problem, config: &Config) -> Result<Option<Arc<dyn MakeEngine>>, JobError> {
    let r = &config.run;
    let compute = r.device.compute(r.precision, r.fallback);
    if compute == Compute::Cpu {
        return Ok(None);
    }
    let wrong = |with: String, why: &str| {
        let reason = format!("{why}; use run.device = \"cpu\"");
        Err(JobError::combination("run.device", "\"cuda\"", with, reason))
    };
    let ranks = problem.exchange.ranks();
    if ranks > config.chains.ensembles {
        let cure =
            format!("a GPU moves whole ladders, so {ranks} ranks need as many; or use run.device = \"cpu\"");
        return Err(JobError::setting("chains.ensembles", config.chains.ensembles, cure));
    }
    let Some(graph) = &problem.graph else {
        let own = matches!(problem.kind, TargetKind::Own(_));
        let with = format!("for target.kind = \"{}\"", problem.kind.kind());
        return match own {
            true => wrong(with, "a GPU samples what is a graph (Problem::with_graph)"),
            false => wrong(
                with,
                "a GPU samples built-in targets alone (gmm, dw4, many-well, normal, funnel, banana)",
            ),
        };
    };
    if let Ground::Density(density) = config.reference.ground(problem, config)?
        && (density.is_anchor || density.reference.as_normal().is_none())
    {
        let (key, value) = density.unusual.unwrap_or(("reference.kind", config.reference.kind().into()));
        let why =
            "a GPU starts from one normal (reference.kind = \"standard-normal\", with any mean and scale)";
        return wrong(format!("with {key} = {value}"), why);
    }
    match config.accelerator.role().on_gpu() {
        Ok(()) => {}
        Err(GpuCannot::Kind) => {
            return wrong(
                format!("with accelerator.kind = \"{}\"", config.accelerator.kind()),
                "a GPU makes plain swaps (\"none\") and those of a trained \"cmcd\"",
            );
        }
        Err(GpuCannot::Drift(drift)) => {
            let with = format!("with accelerator.drift = \"{}\"", word(&drift));
            return wrong(with, "a GPU knows trained drifts alone");
        }
    }
    let engines = LadderEngines::open(compute, graph.clone(), problem.exchange.place_here());
    let cure = "run.fallback = true lets the CPU take over";
    let engines = engines.map_err(|e| JobError::Config(format!("run.device = \"cuda\": {e}; {cure}")))?;
    let Some(engines) = engines else { return Ok(None) };
    let engines = match config.accelerator.transport() {
        Some(file) => {
            let bytes = std::fs::read(&file).map_err(JobError::file("read accelerator.transport", &file))?;
            engines.carried_by(bytes.into())
        }
        None => engines,
    };
    Ok(Some(Arc::new(engines)))
}
