//! What can go wrong with a job, and whose fault it is.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A config's text cannot be read: exit code 2.
    #[error("{0}")]
    Text(String),
    /// A field has a value that cannot be: exit code 2.
    #[error("{key} = {value} is impossible: {reason}")]
    Setting {
        /// The field.
        key: String,
        /// Its value.
        value: String,
        /// Why not, and what would be right.
        reason: String,
    },
    /// A field has a value that cannot be together with another: exit code 2.
    #[error("{key} = {value} is impossible {with}: {reason}")]
    Combination {
        /// The field.
        key: String,
        /// Its value.
        value: String,
        /// What it does not go with, as in `for kind = "none"`.
        with: String,
        /// Why not, and what would be right.
        reason: String,
    },
    /// A name that is none of those known: exit code 2.
    #[error("{key} = \"{value}\" is not known; known are {}.{}", quoted(known), hint(value, known))]
    Unknown {
        /// What was named.
        key: String,
        /// How.
        value: String,
        /// What it could be.
        known: Vec<String>,
    },
    /// Something belongs elsewhere: exit code 2.
    #[error("{what} {} {to}, not {here}", if what.contains(" and ") { "belong to" } else { "belongs to" })]
    Belongs {
        /// A field or two.
        what: String,
        /// Where they would be right.
        to: String,
        /// Where they were found.
        here: String,
    },
    /// The input was wrong in another way: exit code 2.
    #[error("{0}")]
    Config(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), cure(source))]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What went wrong in a file.
    #[error("{}: {cause}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        cause: Box<JobError>,
    },
    /// Stopped before the first draw.
    #[error("stopped before sampling began: there is nothing to report")]
    Interrupted,
    /// Stopped on request, with a checkpoint.
    #[error("stopped on request; go on with: {}", again(folder, *own))]
    Stopped {
        /// The run folder.
        folder: PathBuf,
        /// Whether the target lives in a program of its own.
        own: bool,
    },
    /// The target, or a transport, panicked.
    #[error("the target or the transport panicked: {0}")]
    Panicked(String),
    /// A run under way came to grief.
    #[error("{cause}\nwhat was checkpointed is safe; once the cause is gone, go on with: {}", again(folder, *own))]
    Halted {
        /// The run folder.
        folder: PathBuf,
        /// Whether the target lives in a program of its own.
        own: bool,
        /// What happened.
        cause: Box<JobError>,
    },
    /// A run that was watched came to no good end.
    #[error("{0}")]
    Watched(String),
    /// Draws could not be written.
    #[error(transparent)]
    Draws(#[from] crate::draws_file::DrawsFileError),
    /// The sampler could not start or go on.
    #[error(transparent)]
    Sampler(sterna::Error),
}

/// The library names its own settings; people know them by their keys in a config.
impl From<sterna::Error> for JobError {
    fn from(error: sterna::Error) -> Self {
        match error {
            sterna::Error::Setting { setting, value, cure } => {
                Self::setting(key_of(setting), value, in_keys(cure))
            }
            error => Self::Sampler(error),
        }
    }
}

/// The key of a library's setting.
fn key_of(setting: &str) -> &str {
    match setting {
        "Settings.chains" => "chains.count",
        "Settings.ensembles" => "chains.ensembles",
        "Settings.rounds" => "schedule.rounds",
        "Settings.round_iterations" => "schedule.iterations",
        "Settings.collect" => "training.collect",
        "Settings.fits" => "training.rounds",
        "Settings.iterations" => "run.iterations",
        "Settings.thin" => "run.thin",
        "Settings.burn_in" => "run.burn_in",
        "Target.dim" => "target.dim",
        "Run.engine" => "run.device",
        "Parameter.size" => "parameters.size",
        "Parameter.support" => "parameters.support",
        "Parameter.prior" => "parameters.prior",
        "Settings.trajectories" => "output.every",
        "Hmc.steps" | "Auto.steps" | "Slice.sweeps" => "explorer.steps",
        "Hmc.leapfrog_steps" => "explorer.leapfrog_steps",
        "Hmc.step_size" => "explorer.step_size",
        "Hmc.acceptance" | "Auto.acceptance" => "explorer.acceptance",
        "Slice.width" => "explorer.width",
        "Slice.expansions" => "explorer.expansions",
        "CmcdSteps.steps" | "DiffusionSteps.steps" | "ControlledDiffusion.steps" => "accelerator.steps",
        other => other,
    }
}

/// Cures that speak of another setting, by its key.
fn in_keys(cure: &str) -> &str {
    match cure {
        "a tuning round must be longer than its burn-in by at least 2 iterations" => {
            "a tuning round must be longer than its burn-in, schedule.burn_in, by at least 2 iterations"
        }
        "keep at least one draw: 1 <= thin <= iterations" => {
            "keep at least one draw: 1 <= run.thin <= run.iterations"
        }
        "points of all chains are kept by the cores alone" => {
            "points of all chains are kept by the cores alone (run.device = \"cpu\")"
        }
        "step sizes adapt during tuning: give at least 1 round, or a number as step size" => {
            "step sizes adapt during tuning: give at least 1 round, or a number as explorer.step_size"
        }
        other => other,
    }
}

impl JobError {
    /// 2 where the input was wrong, 1 where the run failed.
    pub fn exit_code(&self) -> i32 {
        use sterna::Error::*;
        match self {
            Self::Text(_) | Self::Setting { .. } | Self::Combination { .. } | Self::Unknown { .. } => 2,
            Self::Belongs { .. } | Self::Config(_) | Self::File { .. } => 2,
            Self::In { cause, .. } => cause.exit_code(),
            Self::Draws(_) => 1,
            Self::Sampler(Dimension { .. } | BadStart { .. } | NoStart { .. } | Schedule(_) | Saved(_)) => 2,
            Self::Interrupted | Self::Stopped { .. } | Self::Watched(_) | Self::Sampler(_) => 1,
            Self::Panicked(_) | Self::Halted { .. } => 1,
        }
    }

    /// Wraps an error of the file system.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    /// Says in which file it was wrong.
    pub fn within(path: impl Into<PathBuf>) -> impl FnOnce(Self) -> Self {
        let path = path.into();
        move |cause| Self::In { path, cause: Box::new(cause) }
    }

    /// A value that cannot be.
    pub fn setting(key: &str, value: impl Display, reason: impl Into<String>) -> Self {
        Self::Setting { key: key.into(), value: shown(value), reason: reason.into() }
    }

    /// A value that cannot be together with another.
    pub fn combination(
        key: &str,
        value: impl Display,
        with: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (key, value) = (key.into(), shown(value));
        Self::Combination { key, value, with: with.into(), reason: reason.into() }
    }

    /// A field that only molecules have, found at a target of this kind.
    pub fn of_molecules(what: &str, kind: &str) -> Self {
        Self::Belongs { what: what.into(), to: "molecules".into(), here: format!("to \"{kind}\"") }
    }
}

/// A value as people write it: one of hundreds of digits by its exponent.
fn shown(value: impl Display) -> String {
    let text = value.to_string();
    match text.parse::<f64>() {
        Ok(number) if text.len() > 24 && number.is_finite() => format!("{number:e}"),
        _ => text,
    }
}

/// Checks a name against the known ones.
pub fn known(key: &str, value: &str, names: &[&str]) -> Result<(), JobError> {
    if names.contains(&value) {
        return Ok(());
    }
    let known = names.iter().map(|name| name.to_string()).collect();
    Err(JobError::Unknown { key: key.into(), value: value.into(), known })
}

/// The name that was probably meant.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    scored.filter(|(distance, name)| *distance <= name.len().max(3) / 2).min().map(|(_, name)| name)
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn hint(value: &str, known: &[String]) -> String {
    nearest(value, known.iter().map(String::as_str))
        .map_or(String::new(), |name| format!(" Did you mean \"{name}\"?"))
}

/// How a run goes on.
fn again(folder: &Path, own: bool) -> String {
    match own {
        true => format!("the program that began it, with Job::resume({:?}, …)", folder.display().to_string()),
        false => format!("sterna resume {}", folder.display()),
    }
}

/// What to do about an error of the file system, where that is known.
fn cure(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::*;
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "; make room there, or choose another place with --out",
        PermissionDenied | ReadOnlyFilesystem => "; choose a place that you may write to with --out",
        _ => "",
    }
}
