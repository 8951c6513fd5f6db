//! `sterna init`: a config to begin with. What must be said stands there, what may be said behind a `#`, with what it means.

use crate::config::TargetKind;
use crate::error::JobError;

/// What each kind says of its target: fields that it needs, and those that it may have.
const TARGETS: [(&str, &str); 20] = [
    (
        "stan",
        r#"model = "model.stan"          # its source, or the library that BridgeStan makes of it
data = "data.json"            # what the model's block `data` declares
# quantities = false          # without transformed parameters and generated quantities
# seed = 0                    # of random numbers in the model"#,
    ),
    (
        "library",
        r#"library = "./libmine.so"      # exports sterna_evaluate, or sterna_log_likelihood (include/sterna.h)
# symbol = "my_function"      # where it has another name
# dim = 2                     # where the library does not say
# gradient = false            # where it writes none: moves are slices then"#,
    ),
    (
        "molecule",
        r#"system = "system.xml"         # a force field: OpenMM's System
positions = "positions.csv"   # atoms in nm, one a line
temperature = 300.0           # in K"#,
    ),
    ("alanine-dipeptide", "temperature = 300.0           # in K"),
    ("gmm", "# dim = 2"),
    ("many-well", "# dim = 32"),
    ("normal", "# dim = 10\n# mean = 0.0\n# precision = 10.0"),
    ("funnel", "# dim = 10"),
    ("banana", "# dim = 2"),
    ("dw4", ""),
    ("mrna", ""),
    ("galaxies", ""),
    ("shells", "# dim = 2"),
    ("eggbox", ""),
    ("log-gamma", "# dim = 10"),
    ("rosenbrock", "# dim = 10"),
    ("correlated-normal", "# dim = 25"),
    ("spike-slab", "# dim = 10"),
    ("lennard-jones", "# particles = 13"),
    (
        "phi4",
        "# length = 6\n# mass_squared = -4.0\n# coupling = 6.975           # the default follows from length",
    ),
];

/// What may follow a target of the user's own.
const PARAMETERS: &str = r#"
# [[parameters]]              # names of the library's values, where it does not say them itself
# name = "sigma"
# size = 1
# support = "positive"        # real, interval(0, 1), simplex, ordered, unit-vector, circle
# prior = "half-normal(2)"    # with sterna_log_likelihood; the support follows from it
"#;

/// What finds itself, unless it is said.
const FOUND: &str = r#"
# All below is found by itself; take away the # of what you want otherwise.

# [run.until]                 # sampling ends when all of these are reached …
# ess = 1000.0                # effective draws of each coordinate
# log_z_error = 0.1           # standard error of log Z
# minutes = 30.0              # … or after so many
# evaluations = 5_000_000     # … or so many evaluations of the density

# [reference]                 # where replicas start anew
# kind = "fitted"             # "standard-normal", with mean and scale; "prior", where there is one
# scale = 1.0                 # how far off the target may lie, as a number or one for each coordinate

# [chains]
# count = "auto"              # or a number
# ensembles = 4               # independent ladders, which are held against each other

# [explorer]                  # local moves
# kind = "auto"               # "hmc", "mala", or without gradients "slice"
# steps = 1                   # of them in an iteration
"#;

/// The same for targets that are built in.
const BUILT_IN: &str = r#"
# What follows are the defaults; take away the # of what you want otherwise.

# [chains]
# count = 10                  # or "auto": as many as a short pilot finds of use
# ensembles = 1               # independent ladders; 4 are held against each other

# [explorer]                  # local moves
# kind = "hmc"                # "mala", "auto", "slice"
# leapfrog_steps = 5

# [schedule]                  # tuning
# rounds = 10
# iterations = 1100

# [run]
# iterations = 100_000
# burn_in = 1000
"#;

/// What all may have.
const REST: &str = r#"
# [accelerator]               # what carries proposals of swaps from chain to chain
# kind = "auto"  # the default of own densities; "none", "affine", "monotone", "flow", "cmcd", "diffusion"

# [output]
# trajectories = false        # true keeps points of all chains
"#;

/// A config for a kind of target, with all that people change in it.
///
/// ```
/// let text = sterna_run::starter::text("stan")?;
/// assert!(text.contains("model.stan"));
/// # Ok::<(), sterna_run::JobError>(())
/// ```
///
/// # Errors
/// If there is no such kind.
pub fn text(kind: &str) -> Result<String, JobError> {
    let known: Vec<String> = TARGETS.iter().map(|(name, _)| name.to_string()).collect();
    let Some((_, fields)) = TARGETS.iter().find(|(name, _)| *name == kind) else {
        return Err(JobError::Unknown { key: "kind".into(), value: kind.into(), known });
    };
    let about = TargetKind::all().into_iter().find(|one| one.kind() == kind).map(|one| one.about().about);
    let about = about.unwrap_or_default();
    let fields = if fields.is_empty() { String::new() } else { format!("{fields}\n") };
    let of_a_user = matches!(kind, "stan" | "library");
    let has_prior =
        matches!(kind, "shells" | "eggbox" | "log-gamma" | "rosenbrock" | "correlated-normal" | "spike-slab");
    let [parameters, found] = [
        if kind == "library" { PARAMETERS } else { "" },
        if of_a_user || has_prior { FOUND } else { BUILT_IN },
    ];
    Ok(format!(
        "# {about}\n# Names of files are relative to the folder of this file.\n\nseed = 1\n\n[target]\nkind = \"{kind}\"\n\
         {fields}{parameters}{found}{REST}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// What stands behind a `#` and is a field or a section.
    fn without_marks(text: &str) -> String {
        let setting = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let bare = |line: &str| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || setting(rest) => rest.to_string(),
            _ => line.to_string(),
        };
        text.lines().map(bare).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_kind_but_a_programs_own_has_one_that_can_be_read() {
        for kind in TargetKind::all().into_iter().filter(|kind| kind.kind() != "own") {
            let text = text(kind.kind()).unwrap();
            assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
            let config = Config::parse(&text, &[]).unwrap();
            assert_eq!(config.target.kind(), kind.kind());
            // What is offered can be said.
            let all = without_marks(&text);
            Config::parse(&all, &[]).unwrap_or_else(|error| panic!("{error}\n{all}"));
        }
        let error = text("stam").unwrap_err().to_string();
        assert!(error.contains("stan") && error.contains("library"), "{error}");
    }
}
