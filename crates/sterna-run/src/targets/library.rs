//! `kind = "library"`: a target in a shared library that speaks C.

use super::{About, File, Kind};
use crate::config::{ParameterConfig, constrained, parameters, posterior};
use crate::error::JobError;
use crate::library::{self, LIKELIHOOD, LibraryTarget};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sterna::priors::Law;
use sterna::supports::{self, Support};

/// Fields of `kind = "library"`.
///
/// ```
/// use sterna_run::targets::{Library, TargetKind};
///
/// let library = Library { library: Some("./libmine.so".into()), ..Library::default() };
/// let error = TargetKind::from(library).problem().unwrap_err();
/// assert!(error.to_string().contains("there is no such file"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Library {
    /// Dimension, where the library does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// The shared library; in a file, from the folder of the config if the path is not absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
    /// The function that it exports, `sterna_evaluate` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Whether it writes scores; the library says so itself if not given, and is believed to if it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<bool>,
}

impl Kind for Library {
    fn about(&self) -> About {
        let about = "your own, in C: library = \"./libmine.so\" exports sterna_evaluate (include/sterna.h)";
        About { possible: "what it says", about }
    }

    fn problem(&self) -> Result<Problem, JobError> {
        self.with_parameters(&[])
    }

    /// The rest the library itself says.
    fn in_force(&self, _: &Problem) -> Vec<(&'static str, toml::Value)> {
        Vec::new()
    }

    fn files(&mut self) -> Vec<File<'_>> {
        // It may find others beside itself, so it stays where it is.
        self.library.as_mut().map(|path| File { path, kept_as: None }).into_iter().collect()
    }
}

impl Library {
    /// What is sampled, if its values are these parameters.
    pub fn with_parameters(&self, given: &[ParameterConfig]) -> Result<Problem, JobError> {
        let Some(library) = &self.library else {
            return Err(JobError::Config(
                "target.kind = \"library\" needs target.library, the path of a shared library".into(),
            ));
        };
        let values =
            (!given.is_empty()).then(|| given.iter().fold(0usize, |sum, one| sum.saturating_add(one.size)));
        let laws: Vec<Option<Law>> = given.iter().map(ParameterConfig::law).collect::<Result<_, _>>()?;
        // Wrong supports are told before anything is loaded.
        parameters(given, None)?;
        let has_laws = laws.iter().any(Option::is_some);
        let symbol = self.symbol.as_deref().or(has_laws.then_some(LIKELIHOOD));
        if let Some((values, dim)) = values.zip(self.dim).filter(|(values, dim)| values != dim) {
            let reason = format!("the sizes of [[parameters]] add up to {values}; the two must agree");
            return Err(JobError::setting("target.dim", dim, reason));
        }
        let mut target = LibraryTarget::load(library, symbol, self.dim.or(values))?;
        if self.gradient == Some(false) {
            target = target.without_score();
        }
        let all = parameters(given, target.exports().parameters.as_deref())?;
        let exports = target.exports().clone();
        self.refuse_contradictions(&target, all.as_deref(), has_laws)?;
        let problem = match (exports.prior_transform, has_laws) {
            (Some(_), _) => Ok(library::cube(target, all.as_deref())),
            (None, true) => posterior(target, all.unwrap_or_default(), laws),
            (None, false) if target.is_likelihood() => Err(JobError::Config(
                "the library exports `sterna_log_likelihood` alone: give each of [[parameters]] a prior, or export \
                 `sterna_prior_transform`, or the whole density as `sterna_evaluate`"
                    .into(),
            )),
            (None, false) => constrained(target, all),
        }?;
        Ok(library::observing(problem, &exports))
    }

    /// What a config and its library say against each other, or a library against itself.
    fn refuse_contradictions(
        &self,
        target: &LibraryTarget,
        all: Option<&[supports::Parameter]>,
        has_laws: bool,
    ) -> Result<(), JobError> {
        let exports = target.exports();
        if self.gradient == Some(true) && !exports.has_score {
            let reason = match exports.prior_transform {
                Some(_) => "with `sterna_prior_transform` no gradient is known: leave it out",
                None => "the library's `sterna_has_score` says that there is none: leave it out",
            };
            return Err(JobError::setting("target.gradient", true, reason));
        }
        if exports.prior_transform.is_none() {
            return Ok(());
        }
        if has_laws {
            return Err(JobError::Config(
                "parameters.prior is impossible with a library that exports `sterna_prior_transform`: only one of the two can be \
                 the prior"
                    .into(),
            ));
        }
        if self.symbol.is_none() && !target.is_likelihood() {
            return Err(JobError::Config(
                "the library exports `sterna_prior_transform`, but no likelihood: `sterna_evaluate` would be the whole density, \
                 prior and all; export `sterna_log_likelihood`"
                    .into(),
            ));
        }
        match all.unwrap_or_default().iter().find(|one| one.support != Support::Real) {
            Some(one) => Err(JobError::setting(
                &format!("parameters.{}.support", one.name),
                one.support,
                "values are what `sterna_prior_transform` makes of the unit cube: leave their supports out, in the library too",
            )),
            None => Ok(()),
        }
    }

    /// Named from the root, so that a run goes on from any folder.
    pub fn with_absolute_path(mut self) -> Self {
        if let Some(library) = &mut self.library
            && let Ok(path) = std::path::absolute(&*library)
            // A config is text.
            && path.to_str().is_some()
        {
            *library = path;
        }
        self
    }
}
