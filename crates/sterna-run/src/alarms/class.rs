//! How grave alarms are, and the verdict that follows from them alone.

use super::{Alarm, Code};
use serde::{Deserialize, Serialize};

/// How grave an alarm is; the gravest is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The results are not to be used as they are.
    DoNotUse,
    /// They may be wrong by more than their errors say.
    Doubtful,
    /// Good to know; the results stand.
    Note,
}

/// What the alarms of a run come to.
///
/// ```
/// use sterna_run::alarms::{Alarm, Code, Verdict};
/// let alarm = |code| Alarm { code, message: String::new() };
/// assert_eq!(Verdict::of(&[]), Verdict::Sound);
/// assert_eq!(Verdict::of(&[alarm(Code::NotReached)]), Verdict::Sound);
/// assert_eq!(Verdict::of(&[alarm(Code::RHat), alarm(Code::NoRoundTrip)]), Verdict::Unsound);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing that was seen speaks against the results.
    #[default]
    Sound,
    /// Something does.
    Doubtful,
    /// They are not to be used as they are.
    Unsound,
}

impl Code {
    /// How grave it is.
    pub fn class(&self) -> Class {
        match self {
            Self::NoRoundTrip
            | Self::MissedMode
            | Self::CarriedOff
            | Self::FewDraws
            | Self::TruthMissed
            | Self::Dissociated
            | Self::LegsDisagree => Class::DoNotUse,
            Self::LowExploration
            | Self::IdleLadder
            | Self::NotReached
            | Self::Coverage
            | Self::TransportReplaced
            | Self::TrainingDiverged
            | Self::TrainingSkipped
            | Self::DeviceReplaced
            | Self::FlowReplaced
            | Self::CisPeptide
            | Self::MoleculeUnreadable => Class::Note,
            Self::BadDensity
            | Self::UnvisitedOptimum
            | Self::LeftOut
            | Self::CutTail
            | Self::RHat
            | Self::PartsDisagree
            | Self::LowEss
            | Self::FewRoundTrips
            | Self::LooksLikeReference
            | Self::TooFewChains
            | Self::StarvingPair
            | Self::LogZDisagrees
            | Self::StepSizeBound
            | Self::UnsteadyTarget
            | Self::ScoreNotGradient
            | Self::FewTrainingSamples
            | Self::ChiralityFlipped
            | Self::Other(_) => Class::Doubtful,
        }
    }
}

impl Class {
    /// What stands before an alarm of it.
    pub fn word(self) -> &'static str {
        match self {
            Self::DoNotUse => "do not use",
            Self::Doubtful => "doubtful",
            Self::Note => "note",
        }
    }
}

impl Verdict {
    /// Of these alarms.
    pub fn of(alarms: &[Alarm]) -> Self {
        match alarms.iter().map(|alarm| alarm.code.class()).min() {
            Some(Class::DoNotUse) => Self::Unsound,
            Some(Class::Doubtful) => Self::Doubtful,
            Some(Class::Note) | None => Self::Sound,
        }
    }

    /// As it stands in `summary.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Doubtful => "doubtful",
            Self::Unsound => "unsound",
        }
    }
}

/// An alarm in a file: its class is written for those who read, and known by its code.
#[derive(Serialize, Deserialize)]
pub(super) struct Written {
    code: Code,
    #[serde(default)]
    class: Option<Class>,
    message: String,
}

impl From<Written> for Alarm {
    fn from(Written { code, message, .. }: Written) -> Self {
        Self { code, message }
    }
}

impl From<Alarm> for Written {
    fn from(Alarm { code, message }: Alarm) -> Self {
        Self { class: Some(code.class()), code, message }
    }
}
