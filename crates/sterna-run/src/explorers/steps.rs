//! How many local moves an iteration makes: a number, or as many as tuning finds to pay.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::sync::Arc;
use sterna::explorer::Explorer;
use sterna::explorers::Repeated;

/// A number, or "auto".
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::explorers::{Hmc, Steps};
///
/// let config = Config::parse("[explorer]\nsteps = \"auto\"", &[])?;
/// assert_eq!(config.explorer, Hmc { steps: Steps::Auto, ..Hmc::default() }.into());
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// So many on every chain.
    Number(usize),
    /// On each chain as many as bring most independent draws for the evaluations.
    Auto,
}

impl Steps {
    /// Moves of a kernel that makes a given number of them.
    pub(super) fn of<E: Explorer + 'static>(self, kernel: impl Fn(usize) -> E) -> Arc<dyn Explorer> {
        match self {
            Self::Number(steps) => Arc::new(kernel(steps)),
            Self::Auto => Arc::new(Repeated::new(Arc::new(kernel(1)))),
        }
    }
}

impl From<usize> for Steps {
    fn from(steps: usize) -> Self {
        Self::Number(steps)
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(steps) => steps.serialize(to),
            Self::Auto => "auto".serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberOrAuto)
    }
}

struct NumberOrAuto;

impl de::Visitor<'_> for NumberOrAuto {
    type Value = Steps;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number of moves, or \"auto\"")
    }

    fn visit_u64<E: de::Error>(self, steps: u64) -> Result<Steps, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(steps), &self);
        usize::try_from(steps).map(Steps::Number).map_err(wrong)
    }

    fn visit_i64<E: de::Error>(self, steps: i64) -> Result<Steps, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Signed(steps), &self);
        usize::try_from(steps).map(Steps::Number).map_err(wrong)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Steps, E> {
        if word == "auto" { Ok(Steps::Auto) } else { Err(E::unknown_variant(word, &["auto"])) }
    }
}
