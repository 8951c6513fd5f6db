//! Words and numbers that moves with a step size share.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use sterna::explorers::StepSize;

/// A number, one for each chain, or "adapt".
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::explorers::{Mala, StepSizeConfig};
///
/// let config = Config::parse("[explorer]\nkind = \"mala\"\nstep_size = [0.5, 0.2]", &[])?;
/// let each = Mala { step_size: StepSizeConfig::Each(vec![0.5, 0.2]), ..Mala::default() };
/// assert_eq!(config.explorer, each.into());
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StepSizeConfig {
    /// One for all chains.
    One(f64),
    /// One per chain.
    Each(Vec<f64>),
    /// Per chain, frozen before sampling.
    #[default]
    Adapt,
}

impl StepSizeConfig {
    /// As the library knows it.
    pub(super) fn step_size(&self, adaptation: Adaptation, acceptance: f64) -> StepSize {
        match (self, adaptation) {
            (Self::One(size), _) => StepSize::Fixed(*size),
            (Self::Each(sizes), _) => StepSize::PerChain(sizes.clone()),
            (Self::Adapt, Adaptation::Paper) => StepSize::Paper,
            (Self::Adapt, Adaptation::Acceptance) => StepSize::Adapt { acceptance },
        }
    }

    /// One for each chain, where there is.
    pub(super) fn each(&self) -> Option<&[f64]> {
        match self {
            Self::Each(sizes) => Some(sizes),
            Self::One(_) | Self::Adapt => None,
        }
    }
}

impl Serialize for StepSizeConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(size) => size.serialize(to),
            Self::Each(sizes) => sizes.serialize(to),
            Self::Adapt => "adapt".serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for StepSizeConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumbersOrAdapt)
    }
}

struct NumbersOrAdapt;

impl<'de> de::Visitor<'de> for NumbersOrAdapt {
    type Value = StepSizeConfig;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a step size, one for each chain, or \"adapt\"")
    }

    fn visit_f64<E: de::Error>(self, size: f64) -> Result<StepSizeConfig, E> {
        Ok(StepSizeConfig::One(size))
    }

    fn visit_i64<E: de::Error>(self, size: i64) -> Result<StepSizeConfig, E> {
        Ok(StepSizeConfig::One(size as f64))
    }

    fn visit_u64<E: de::Error>(self, size: u64) -> Result<StepSizeConfig, E> {
        Ok(StepSizeConfig::One(size as f64))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<StepSizeConfig, E> {
        if word == "adapt" { Ok(StepSizeConfig::Adapt) } else { Err(E::unknown_variant(word, &["adapt"])) }
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut numbers: A) -> Result<StepSizeConfig, A::Error> {
        let mut sizes = Vec::new();
        while let Some(size) = numbers.next_element()? {
            sizes.push(size);
        }
        Ok(StepSizeConfig::Each(sizes))
    }
}

/// How "adapt" adapts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adaptation {
    /// To the acceptance wanted.
    #[default]
    Acceptance,
    /// By factors of 1.2, as the paper does.
    Paper,
}

/// Masses of moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Masses {
    /// One per coordinate and chain, adapted.
    #[default]
    Adapt,
    /// All one.
    Unit,
    /// Of molecules: those of the atoms.
    Atoms,
}
