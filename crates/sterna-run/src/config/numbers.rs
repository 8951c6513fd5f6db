//! A field that takes one number for all coordinates, or a list with one for each.

use crate::error::JobError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One number for all, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// One for all.
    One(f64),
    /// One for each.
    Each(Vec<f64>),
}

/// Entries of a list that a message shows.
const SHOWN: usize = 4;

/// Means and widths are at most this: their squares are numbers too.
pub(crate) const MOST: f64 = 1e100;

impl Numbers {
    /// A number for each of `dim` coordinates; `key` is the field that a message names.
    pub fn each(&self, key: &str, dim: usize) -> Result<Vec<f64>, JobError> {
        match self {
            Self::One(number) => Ok(vec![*number; dim]),
            Self::Each(all) if all.len() == dim => Ok(all.clone()),
            Self::Each(all) => {
                let reason = format!(
                    "it has {} numbers, but the target has dimension {dim}: give one number for all coordinates or \
                     {dim} of them",
                    all.len()
                );
                Err(JobError::setting(key, self, reason))
            }
        }
    }

    /// The same, where each must be finite.
    pub fn finite(&self, key: &str, dim: usize) -> Result<Vec<f64>, JobError> {
        self.checked(key, dim, "it must be finite, and no larger than 1e100", |x| x.abs() <= MOST)
    }

    /// The same, where each must be positive and finite.
    pub fn positive(&self, key: &str, dim: usize) -> Result<Vec<f64>, JobError> {
        let must = "it must be positive and finite, between 1e-100 and 1e100";
        self.checked(key, dim, must, |x| (1.0 / MOST..=MOST).contains(&x))
    }

    fn checked(
        &self,
        key: &str,
        dim: usize,
        must: &str,
        is_right: fn(f64) -> bool,
    ) -> Result<Vec<f64>, JobError> {
        let all = self.each(key, dim)?;
        match (all.iter().position(|x| !is_right(*x)), self) {
            (None, _) => Ok(all),
            (Some(_), Self::One(number)) => Err(JobError::setting(key, number, must)),
            (Some(at), Self::Each(_)) => Err(JobError::setting(&format!("{key}[{at}]"), all[at], must)),
        }
    }
}

impl From<f64> for Numbers {
    fn from(number: f64) -> Self {
        Self::One(number)
    }
}

/// As a config has it; long lists are cut short.
impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::One(number) => number.fmt(f),
            Self::Each(all) => {
                let mut shown: Vec<String> = all.iter().take(SHOWN).map(f64::to_string).collect();
                if all.len() > SHOWN {
                    shown.push("…".into());
                }
                write!(f, "[{}]", shown.join(", "))
            }
        }
    }
}
