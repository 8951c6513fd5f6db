//! The built-in targets by name.

use crate::config::{Numbers, TargetConfig, known};
use crate::error::JobError;
use crate::library::LibraryTarget;
use crate::molecules;
use std::sync::Arc;
use sterna::Target;
use sterna::targets::{Banana, Dw4, Funnel, Gmm, ManyWell, Normal};
use sterna_neural::{GraphTarget, Particles};

/// A built-in target, for the list that `sterna targets` prints.
pub struct Builtin {
    /// Name in the config.
    pub kind: &'static str,
    /// Dimension when none is given, and which are possible.
    pub dim: (usize, &'static str),
    /// What it is.
    pub about: &'static str,
}

/// All of them.
pub const BUILTINS: [Builtin; 8] = [
    Builtin {
        kind: "gmm",
        dim: (10, "2 or more"),
        about: "40 Gaussian modes in a plane, padded to any dimension",
    },
    Builtin {
        kind: "dw4",
        dim: (6, "6"),
        about: "4 particles in the plane, double-well pairs, centre of mass removed",
    },
    Builtin { kind: "many-well", dim: (32, "even"), about: "independent double wells: 2^(dim/2) modes" },
    Builtin {
        kind: "normal",
        dim: (10, "1 or more"),
        about: "a normal with diagonal precision (default 10)",
    },
    Builtin { kind: "funnel", dim: (10, "2 or more"), about: "Neal's funnel" },
    Builtin { kind: "banana", dim: (2, "2 or more"), about: "a normal bent along a parabola" },
    Builtin {
        kind: "alanine-dipeptide",
        dim: (63, "63"),
        about: "22 atoms in vacuum (amber14), centre of mass removed; temperature = 300.0",
    },
    Builtin {
        kind: "molecule",
        dim: (0, "3 atoms - 3"),
        about: "any small molecule in vacuum: system = OpenMM's XML, positions, temperature",
    },
];

/// The target that a config names.
pub fn target(config: &TargetConfig) -> Result<Arc<dyn Target>, JobError> {
    let kinds: Vec<&str> = BUILTINS.iter().map(|b| b.kind).chain(["library"]).collect();
    known("target.kind", &config.kind, &kinds)?;
    if config.kind == "library" {
        return Ok(Arc::new(LibraryTarget::load(config)?));
    }
    if config.is_molecule() {
        return Ok(Arc::new(molecules::molecule(config)?));
    }
    molecules::refuse_fields(config)?;
    if config.library.is_some() || config.symbol.is_some() {
        return Err(JobError::Config(format!(
            "target.library and target.symbol belong to kind = \"library\", not \"{}\"",
            config.kind
        )));
    }
    let builtin = BUILTINS.iter().find(|b| b.kind == config.kind).expect("just checked");
    let dim = config.dim.unwrap_or(builtin.dim.0);
    let possible = match builtin.dim.1 {
        "2 or more" => dim >= 2,
        "1 or more" => dim >= 1,
        "even" => dim >= 2 && dim.is_multiple_of(2),
        _ => dim == builtin.dim.0,
    };
    if !possible || dim > 1 << 20 {
        let (kind, which) = (builtin.kind, builtin.dim.1);
        return Err(JobError::Config(format!(
            "target.dim = {dim} is impossible for {kind}: its dimension must be {which}"
        )));
    }
    if config.kind != "normal" && (config.precision.is_some() || config.mean.is_some()) {
        return Err(JobError::Config(format!(
            "target.precision and target.mean belong to kind = \"normal\", not \"{}\"",
            config.kind
        )));
    }
    Ok(match config.kind.as_str() {
        "gmm" => Arc::new(Gmm::paper(dim)),
        "dw4" => Arc::new(Dw4),
        "many-well" => Arc::new(ManyWell::new(dim)),
        "normal" => Arc::new(normal(config)?.expect("the kind is normal")),
        "funnel" => Arc::new(Funnel::new(dim)),
        _ => Arc::new(Banana::new(dim)),
    })
}

/// The same target inside graphs, for losses: as operations where it is known so, else called on the host.
pub fn graph_target(config: &TargetConfig) -> Result<Arc<dyn GraphTarget>, JobError> {
    let dim = target(config)?.dim();
    Ok(match config.kind.as_str() {
        "gmm" => Arc::new(Gmm::paper(dim)),
        "dw4" => Arc::new(Dw4),
        "many-well" => Arc::new(ManyWell::new(dim)),
        "normal" => Arc::new(normal(config)?.expect("the kind is normal")),
        "funnel" => Arc::new(Funnel::new(dim)),
        "banana" => Arc::new(Banana::new(dim)),
        _ => sterna_neural::host_target(target(config)?),
    })
}

/// The particles whose mean-free positions the target's points are, if they are that.
pub fn particles(config: &TargetConfig) -> Option<Particles> {
    (config.kind == "dw4").then_some(Particles::DW4)
}

/// The normal that a config names, if it names one.
pub fn normal(config: &TargetConfig) -> Result<Option<Normal>, JobError> {
    if config.kind != "normal" {
        return Ok(None);
    }
    let dim = config.dim.unwrap_or(10);
    let precision = each("target.precision", config.precision.as_ref(), 10.0, config.dim, dim)?;
    if let Some(bad) = precision.iter().find(|p| !(**p > 0.0 && p.is_finite())) {
        return Err(JobError::Config(format!("target.precision = {bad} is impossible: it must be positive")));
    }
    let mean = each("target.mean", config.mean.as_ref(), 0.0, config.dim, precision.len())?;
    if mean.len() != precision.len() || mean.iter().any(|m| !m.is_finite()) {
        return Err(JobError::Config(format!(
            "target.mean has {} numbers, target.precision {}: give finite numbers, as many of each",
            mean.len(),
            precision.len()
        )));
    }
    Ok(Some(Normal::new(mean, precision)))
}

/// One number repeated, or the list itself, whose length must agree with `target.dim`.
fn each(
    field: &str,
    numbers: Option<&Numbers>,
    default: f64,
    given: Option<usize>,
    dim: usize,
) -> Result<Vec<f64>, JobError> {
    match numbers {
        None => Ok(vec![default; dim]),
        Some(Numbers::One(x)) => Ok(vec![*x; dim]),
        Some(Numbers::Each(all)) if all.is_empty() || given.is_some_and(|d| d != all.len()) => {
            Err(JobError::Config(format!("{field} has {} numbers, but target.dim = {dim}", all.len())))
        }
        Some(Numbers::Each(all)) => Ok(all.clone()),
    }
}
