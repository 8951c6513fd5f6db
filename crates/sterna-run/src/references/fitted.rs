//! `kind = "fitted"`: a mixture of normals fitted to the target, and a broad anchor beyond which no mode is lost.

use super::{Density, Ground, Kind, ReferenceKind, StandardNormal};
use crate::config::{Config, Numbers};
use crate::error::{JobError, known};
use crate::problem::{NormalReference, Problem};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use sterna::fitted::Covariance;
use sterna::paths::Reference;
use sterna::run::FitReference;

/// Normals of a mixture, at most.
pub const MOST_COMPONENTS: usize = 40;

/// Fields of `kind = "fitted"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fitted {
    /// The end of the second leg, `standard-normal`, or `none` for a ladder of one leg.
    pub anchor: Anchor,
    /// Mean of the anchor, one number or one for each coordinate; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Standard deviation of the anchor, one number or one for each coordinate.
    pub scale: Numbers,
    /// What is fitted of covariances: `dense`, `low-rank` or `diagonal`; if not given, as the dimension allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Covariance>,
    /// Normals of the mixture, or `auto`: one for each optimum that climbs find.
    pub components: Components,
}

impl Default for Fitted {
    fn default() -> Self {
        Self {
            anchor: Anchor::StandardNormal,
            mean: None,
            scale: Numbers::One(1.0),
            covariance: None,
            components: Components::Auto,
        }
    }
}

/// What keeps a fit from losing modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anchor {
    /// A broad normal.
    #[default]
    StandardNormal,
    /// Nothing.
    None,
}

/// How many normals a mixture has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Components {
    /// As many as climbs find optima.
    #[default]
    Auto,
    /// So many at most.
    Number(usize),
}

impl Fitted {
    /// The anchor of a problem: its own reference where it has one.
    pub fn anchor(&self, problem: &Problem) -> Result<NormalReference, JobError> {
        StandardNormal { mean: self.mean.clone(), scale: self.scale.clone() }.of_problem(problem)
    }

    /// With all that depends on the problem decided, or why it cannot be.
    pub fn checked(&self, problem: &Problem) -> Result<Self, JobError> {
        if problem.molecule.is_some() {
            known("reference.kind", "fitted", &["tempered"])?;
        }
        self.anchor(problem)?;
        if let Components::Number(count) = self.components
            && !(1..=MOST_COMPONENTS).contains(&count)
        {
            let reason = format!("a mixture has 1 to {MOST_COMPONENTS} normals, or \"auto\"");
            return Err(JobError::setting("reference.components", count, reason));
        }
        let covariance = self.covariance.unwrap_or_else(|| Covariance::for_dim(problem.dim()));
        Ok(Self { covariance: Some(covariance), ..self.clone() })
    }

    /// How a run fits it.
    pub fn fit(&self) -> FitReference {
        let components = match self.components {
            Components::Auto => None,
            Components::Number(count) => Some(count),
        };
        FitReference {
            covariance: self.covariance,
            components,
            anchor: self.anchor == Anchor::StandardNormal,
        }
    }
}

impl Kind for Fitted {
    fn ground(&self, problem: &Problem, _: &Config) -> Result<Ground, JobError> {
        let NormalReference { mean, deviation } = self.checked(problem)?.anchor(problem)?;
        Ok(Ground::Density(Density {
            target: problem.target.clone(),
            reference: Reference::normal(mean, deviation),
            unusual: Some(("reference.kind", "\"fitted\"".into())),
            is_anchor: true,
        }))
    }

    fn settled(&self, problem: &Problem, _: &Config) -> Result<ReferenceKind, JobError> {
        Ok(self.checked(problem)?.into())
    }
}

impl fmt::Display for Components {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("\"auto\""),
            Self::Number(count) => count.fmt(f),
        }
    }
}

impl Serialize for Components {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => "auto".serialize(to),
            Self::Number(count) => count.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Components {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberOrAuto)
    }
}

struct NumberOrAuto;

impl de::Visitor<'_> for NumberOrAuto {
    type Value = Components;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number of normals or \"auto\"")
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Components, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(count), &self);
        usize::try_from(count).map(Components::Number).map_err(wrong)
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Components, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Signed(count), &self);
        usize::try_from(count).map(Components::Number).map_err(wrong)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Components, E> {
        if word == "auto" { Ok(Components::Auto) } else { Err(E::unknown_variant(word, &["auto"])) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str, dim: usize) -> Result<Fitted, String> {
        let fitted: Fitted = toml::from_str(text).map_err(|error| error.message().to_string())?;
        let problem = Problem::new(sterna::targets::Funnel::new(dim));
        fitted.checked(&problem).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_follows_from_the_problem() {
        let fitted = settled("", 3).unwrap();
        let all =
            "anchor = \"standard-normal\"\nscale = 1.0\ncovariance = \"dense\"\ncomponents = \"auto\"\n";
        assert_eq!(toml::to_string(&fitted).unwrap(), all);
        assert_eq!(toml::from_str::<Fitted>(all).unwrap(), fitted);
        assert_eq!(settled("", 2000).unwrap().covariance, Some(Covariance::LowRank));
        let fit = settled("anchor = \"none\"\ncovariance = \"diagonal\"\ncomponents = 6", 3).unwrap().fit();
        assert!(!fit.anchor && fit.components == Some(6) && fit.covariance == Some(Covariance::Diagonal));
        let problem = Problem::new(sterna::targets::Funnel::new(3));
        let wide = settled("mean = [1, 2, 3]\nscale = 20", 3).unwrap().anchor(&problem).unwrap();
        assert_eq!(wide, NormalReference { mean: vec![1.0, 2.0, 3.0], deviation: vec![20.0; 3] });
    }

    #[test]
    fn errors_name_the_field_the_value_and_the_cure() {
        for (text, parts) in [
            ("components = 0", &["reference.components = 0", "1 to 40"][..]),
            ("components = \"some\"", &["some", "auto"]),
            ("components = -3", &["-3", "a number of normals or \"auto\""]),
            ("anchor = \"wide\"", &["wide", "standard-normal", "none"]),
            ("covariance = \"full\"", &["full", "dense", "low-rank", "diagonal"]),
            ("scale = [1.0]", &["reference.scale = [1]", "has 1 numbers", "dimension 3"]),
        ] {
            let message = settled(text, 3).err().unwrap_or_else(|| panic!("{text} was accepted"));
            parts
                .iter()
                .for_each(|part| assert!(message.contains(part), "{message:?} does not say {part:?}"));
        }
    }
}
