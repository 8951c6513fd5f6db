//! `[[parameters]]`: names, supports and priors of what a library computes a density of.

use super::MOST;
use crate::error::JobError;
use crate::problem::{self, Problem};
use serde::{Deserialize, Serialize};
use sterna::priors::{Independent, Law};
use sterna::supports::{Constrained, Parameter, Parameters, Support};
use sterna::{Streams, Target};

/// One entry of `[[parameters]]`.
///
/// ```
/// let text = "[[parameters]]\nname = \"sigma\"\nsupport = \"positive\"\n[target]\nkind = \"library\"";
/// let config = sterna_run::Config::parse(text, &[])?;
/// assert_eq!(config.parameters[0].size, 1);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterConfig {
    /// What it is called.
    pub name: String,
    /// How many values it has.
    #[serde(default = "one")]
    pub size: usize,
    /// Where they lie; follows from bounds, from the prior or from the library where it is not said, and is `real` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<String>,
    /// Lower bound of an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Upper bound of an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Its law before any data, where the library computes a likelihood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<String>,
}

fn one() -> usize {
    1
}

impl ParameterConfig {
    /// So many values with a name, of which nothing else is said.
    pub fn new(name: impl Into<String>, size: usize) -> Self {
        Self { name: name.into(), size, support: None, lower: None, upper: None, prior: None }
    }

    /// What a message calls a field of it.
    fn key(&self, field: &str) -> String {
        format!("parameters.{}.{field}", self.name)
    }

    /// An error of the library, with the field's own name.
    fn named(&self, error: sterna::Error) -> JobError {
        match error {
            sterna::Error::Setting { setting, value, cure } => {
                let field = setting.rsplit('.').next().unwrap_or(setting);
                JobError::setting(&self.key(field), value, cure)
            }
            other => other.into(),
        }
    }

    /// Its law, if it has one.
    pub fn law(&self) -> Result<Option<Law>, JobError> {
        let Some(text) = &self.prior else { return Ok(None) };
        let law: Law = text.parse().map_err(|error| self.named(error))?;
        law.check(self.size).map_err(|error| self.named(error))?;
        let support = self.said()?.unwrap_or(law.support());
        if support != law.support() {
            let reason = format!(
                "its prior {law} lies on {}: leave the support out, or choose another prior",
                law.support()
            );
            return Err(JobError::setting(&self.key("support"), support, reason));
        }
        Ok(Some(law))
    }

    /// The support as it was said, by its name or by bounds.
    fn said(&self) -> Result<Option<Support>, JobError> {
        let bounds = (self.lower.is_some() || self.upper.is_some()).then_some(Support::Interval {
            lower: self.lower.unwrap_or(f64::NEG_INFINITY),
            upper: self.upper.unwrap_or(f64::INFINITY),
        });
        for (field, bound) in [("lower", self.lower), ("upper", self.upper)] {
            if let Some(bound) = bound.filter(|bound| bound.is_finite() && bound.abs() > MOST) {
                return Err(JobError::setting(
                    &self.key(field),
                    bound,
                    "it must be infinite, or no larger than 1e100",
                ));
            }
        }
        match (self.support.as_deref(), bounds) {
            (Some("interval") | None, Some(bounds)) => Ok(Some(bounds)),
            (Some("interval"), None) => {
                let reason = "give its bounds: interval(lower, upper), or the fields lower and upper";
                Err(JobError::setting(&self.key("support"), "\"interval\"", reason))
            }
            (Some(other), Some(_)) => {
                let reason = "it has no bounds: leave out lower and upper, or say \"interval\"";
                Err(JobError::setting(&self.key("support"), format_args!("{other:?}"), reason))
            }
            (Some(text), None) => text.parse().map(Some).map_err(|error| self.named(error)),
            (None, None) => Ok(None),
        }
    }

    /// Name, size and support, this one from the library where nothing else is said.
    fn parameter(&self, of_library: Option<Support>) -> Result<Parameter, JobError> {
        if self.size > Streams::MOST_NORMALS {
            let reason = format!("a target has at most {} coordinates", Streams::MOST_NORMALS);
            return Err(JobError::setting(&self.key("size"), self.size, reason));
        }
        let law = self.law()?.map(|law| law.support());
        let support = self.said()?.or(law).or(of_library).unwrap_or(Support::Real);
        support.check(self.size).map_err(|error| self.named(error))?;
        Ok((&*self.name, self.size, support).into())
    }
}

/// Parameters of a library, which may say them itself; then a config must agree.
pub fn parameters(
    given: &[ParameterConfig],
    own: Option<&[Parameter]>,
) -> Result<Option<Vec<Parameter>>, JobError> {
    if given.is_empty() {
        return Ok(own.map(<[_]>::to_vec));
    }
    let Some(own) = own else {
        return given.iter().map(|one| one.parameter(None)).collect::<Result<_, _>>().map(Some);
    };
    let names = |all: Vec<String>| all.join(", ");
    let sized = |name: &str, size: usize| format!("{name} ({size})");
    let found = names(given.iter().map(|one| sized(&one.name, one.size)).collect());
    let expected = names(own.iter().map(|one| sized(&one.name, one.size)).collect());
    if found != expected {
        return Err(JobError::setting(
            "parameters",
            found,
            format!("the library's `sterna_names` are {expected}: leave [[parameters]] out, or repeat them"),
        ));
    }
    for (one, own) in given.iter().zip(own) {
        let parameter = one.parameter(Some(own.support))?;
        if parameter.support != own.support {
            let reason = format!("the library's `sterna_supports` says {}: leave it out", own.support);
            return Err(JobError::setting(&one.key("support"), parameter.support, reason));
        }
    }
    Ok(Some(own.to_vec()))
}

/// What is sampled, if the values of a target are these parameters: a likelihood where they have priors, else a density.
///
/// ```
/// use sterna::targets::Normal;
/// use sterna_run::config::{ParameterConfig, described};
///
/// let width = ParameterConfig { prior: Some("half-normal(3)".into()), ..ParameterConfig::new("width", 1) };
/// let problem = described(Normal::new(vec![2.0], vec![4.0]), &[width])?;
/// assert!(problem.prior.is_some());
/// # Ok::<(), sterna_run::JobError>(())
/// ```
///
/// # Errors
/// If the target has another number of values, some parameters have a prior and others none, or one of them is impossible.
pub fn described(target: impl Target + 'static, given: &[ParameterConfig]) -> Result<Problem, JobError> {
    let laws: Vec<Option<Law>> = given.iter().map(ParameterConfig::law).collect::<Result<_, _>>()?;
    let all = parameters(given, None)?;
    let (found, values): (usize, usize) = (target.dim(), given.iter().map(|one| one.size).sum());
    if !given.is_empty() && found != values {
        let reason = format!("the parameters have {values} values in all; the two must agree");
        return Err(JobError::setting("target.dim", found, reason));
    }
    match laws.iter().any(Option::is_some) {
        true => posterior(target, all.unwrap_or_default(), laws),
        false => constrained(target, all),
    }
}

/// A whole density, of free coordinates where its values have supports.
pub(crate) fn constrained(
    target: impl Target + 'static,
    all: Option<Vec<Parameter>>,
) -> Result<Problem, JobError> {
    match all {
        None => Ok(Problem::new(target)),
        Some(all) if all.iter().all(|one| one.support == Support::Real) => {
            Ok(Problem::new(target).named(all.iter().map(problem::Parameter::supported)))
        }
        Some(all) => Ok(Problem::constrained(Constrained::new(Parameters::new(all)?, target)?)),
    }
}

/// A likelihood of parameters that each have a law.
pub(crate) fn posterior(
    target: impl Target + 'static,
    all: Vec<Parameter>,
    laws: Vec<Option<Law>>,
) -> Result<Problem, JobError> {
    let each = all.into_iter().zip(laws).map(|(one, law)| match law {
        Some(law) => Ok((one.name, one.size, law)),
        None => Err(JobError::Config(format!(
            "parameters.{}.prior is missing: others have one, and the path leads from the prior of all",
            one.name
        ))),
    });
    let prior = Independent::new(each.collect::<Result<Vec<_>, _>>()?)?;
    Problem::posterior(target, prior)
}
