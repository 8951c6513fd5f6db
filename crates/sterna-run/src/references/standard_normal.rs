//! `kind = "standard-normal"`: N(0, I), or a normal around another mean and of other widths.

use super::{Density, Ground, Kind, ReferenceKind};
use crate::config::{Config, Numbers};
use crate::error::{JobError, known};
use crate::problem::{NormalReference, Problem};
use serde::{Deserialize, Serialize};
use sterna::paths::Reference;

/// Fields of `kind = "standard-normal"`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::config::Numbers;
/// use sterna_run::references::StandardNormal;
///
/// let wide = StandardNormal { scale: Numbers::One(8.0), ..StandardNormal::default() };
/// let config = Config { reference: wide.into(), ..Config::default() };
/// assert_eq!(config, Config::parse("[reference]\nkind = \"standard-normal\"\nscale = 8.0", &[])?);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StandardNormal {
    /// Its mean, one number or one for each coordinate; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Its standard deviation, one number or one for each coordinate: 1, or more where the target is wider.
    pub scale: Numbers,
}

impl Default for StandardNormal {
    fn default() -> Self {
        Self { mean: None, scale: Numbers::One(1.0) }
    }
}

impl Kind for StandardNormal {
    fn ground(&self, problem: &Problem, _: &Config) -> Result<Ground, JobError> {
        if problem.molecule.is_some() {
            known("reference.kind", "standard-normal", &["tempered"])?;
        }
        let normal = self.of_problem(problem)?;
        let unusual = problem.reference.as_ref().map_or_else(|| self.unusual(), other_than_standard);
        let reference = Reference::normal(normal.mean, normal.deviation);
        Ok(Ground::Density(Density { target: problem.target.clone(), reference, unusual, is_anchor: false }))
    }

    fn settled(&self, _: &Problem, _: &Config) -> Result<ReferenceKind, JobError> {
        Ok(self.clone().into())
    }
}

impl StandardNormal {
    /// Mean and standard deviation of each coordinate of a problem, whose own reference comes first.
    pub fn of_problem(&self, problem: &Problem) -> Result<NormalReference, JobError> {
        let dim = problem.dim();
        if let Some(own) = &problem.reference {
            return checked(own, dim).cloned();
        }
        let mean = self.mean.as_ref().unwrap_or(&Numbers::One(0.0)).finite("reference.mean", dim)?;
        Ok(NormalReference { mean, deviation: self.scale.positive("reference.scale", dim)? })
    }

    /// What makes it another than N(0, I), if it is that.
    fn unusual(&self) -> Option<(&'static str, String)> {
        let differs = |numbers: &Numbers, from: f64| match numbers {
            Numbers::One(number) => *number != from,
            Numbers::Each(all) => all.iter().any(|number| *number != from),
        };
        let scale = Some(&self.scale).filter(|scale| differs(scale, 1.0));
        let mean = self.mean.as_ref().filter(|mean| differs(mean, 0.0));
        let said = |key| move |numbers: &Numbers| (key, numbers.to_string());
        scale.map(said("reference.scale")).or(mean.map(said("reference.mean")))
    }
}

/// What makes the normal that a program gave another than N(0, I), if it is that.
fn other_than_standard(own: &NormalReference) -> Option<(&'static str, String)> {
    let standard = own.mean.iter().all(|m| *m == 0.0) && own.deviation.iter().all(|d| *d == 1.0);
    (!standard).then(|| ("Problem::reference", "another normal".to_string()))
}

/// The normal that a program gave, if it can be one.
fn checked(own: &NormalReference, dim: usize) -> Result<&NormalReference, JobError> {
    let (means, deviations) = (own.mean.len(), own.deviation.len());
    if (means, deviations) != (dim, dim) {
        return Err(JobError::Config(format!(
            "Problem::reference has {means} means and {deviations} standard deviations, but the target has dimension {dim}"
        )));
    }
    if let Some(bad) = own.deviation.iter().find(|d| !(**d > 0.0 && d.is_finite())) {
        return Err(JobError::setting("Problem::reference's deviation", bad, "it must be positive"));
    }
    if let Some(bad) = own.mean.iter().find(|m| !m.is_finite()) {
        return Err(JobError::setting("Problem::reference's mean", bad, "it must be finite"));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(text: &str) -> Result<Density, String> {
        let text = format!("[target]\nkind = \"funnel\"\ndim = 3\n[reference]\n{text}");
        let found = Config::parse(&text, &[]).and_then(|config| {
            let problem = config.problem()?;
            config.reference.settled(&problem, &config)?.ground(&problem, &config)
        });
        match found {
            Ok(Ground::Density(density)) => Ok(density),
            Ok(_) => panic!("no molecule"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn numbers_and_lists_are_the_same_normal() {
        let said = |reference: &Reference| format!("{reference:?}");
        for kind in ["auto", "standard-normal"] {
            let one = ground(&format!("kind = \"{kind}\"\nmean = 2\nscale = 0.5")).unwrap();
            let each =
                ground(&format!("kind = \"{kind}\"\nmean = [2, 2.0, 2]\nscale = [0.5, 0.5, 0.5]")).unwrap();
            assert_eq!(said(&one.reference), said(&each.reference));
            assert_eq!(said(&one.reference), said(&Reference::normal(vec![2.0; 3], vec![0.5; 3])));
            assert_eq!(one.unusual, Some(("reference.scale", "0.5".into())));
            assert_eq!(each.unusual, Some(("reference.scale", "[0.5, 0.5, 0.5]".into())));
        }
        let moved = ground("mean = [0.0, 1.0, 0.0]").unwrap();
        assert_eq!(moved.unusual, Some(("reference.mean", "[0, 1, 0]".into())));
        assert!(ground("mean = 0.0\nscale = [1, 1, 1]").unwrap().unusual.is_none());
        assert_eq!(said(&ground("").unwrap().reference), said(&Reference::standard_normal(3)));
    }

    #[test]
    fn errors_name_the_field_the_value_and_the_cure() {
        for (text, parts) in [
            (
                "mean = [1.0, 2.0]",
                &["reference.mean = [1, 2]", "has 2 numbers", "dimension 3", "one number"][..],
            ),
            ("scale = [1, 2, 3, 4, 5]", &["reference.scale = [1, 2, 3, 4, …]", "5 numbers", "3 of them"]),
            ("scale = 0.0", &["reference.scale = 0 is impossible", "positive"]),
            ("scale = [1.0, -2.0, 1.0]", &["reference.scale[1] = -2", "positive"]),
            ("scale = inf", &["reference.scale = inf", "finite"]),
            ("mean = nan", &["reference.mean = NaN", "finite"]),
            ("mean = \"x\"", &["line 5", "expected a number or a list of numbers"]),
            ("maen = 1", &["`maen`", "did you mean `mean`?"]),
        ] {
            let message = ground(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            parts
                .iter()
                .for_each(|part| assert!(message.contains(part), "{message:?} does not say {part:?}"));
        }
        let config =
            Config::parse("[target]\nkind = \"alanine-dipeptide\"\n[reference]\nmean = 1.0", &[]).unwrap();
        let refused = config.reference.settled(&config.problem().unwrap(), &config).unwrap_err().to_string();
        assert!(refused.contains("reference.mean = 1 is impossible for a molecule"), "{refused}");
    }

    /// What older versions wrote of a run reads as what this one makes of the same config.
    #[test]
    fn resolved_configs_of_older_runs_compare_equal() {
        let problem = Config::parse("[target]\nkind = \"funnel\"\ndim = 3", &[]).unwrap().problem().unwrap();
        let settled = Config::default().reference.settled(&problem, &Config::default()).unwrap();
        let ours = Config { reference: settled, ..Config::default() };
        assert!(ours.to_toml().contains("[reference]\nkind = \"standard-normal\"\nscale = 1.0\n\n"));
        let theirs = Config::parse("[reference]\nkind = \"standard-normal\"\nscale = 1.0", &[]).unwrap();
        assert_eq!(crate::checkpoint::difference(&ours, &theirs), None);
    }
}
