//! Sections that have one shape: the ladder, its tuning, networks and their training, the length of a run.

use super::memory::USUAL_GIB;
use crate::error::JobError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use sterna::run::{Criterion, Until as Goals};
use sterna_neural::{Compute, Loss, Precision};

/// `[chains]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainsConfig {
    /// Chains, so count − 1 pairs; or "auto": twice the barrier that a pilot run finds.
    pub count: Count,
    /// Independent copies advanced as one batch.
    pub ensembles: usize,
}

/// `[schedule]`
///
/// ```
/// use sterna_run::config::{Config, ScheduleConfig};
///
/// let config = Config { schedule: ScheduleConfig { rounds: 5, ..ScheduleConfig::default() }, ..Config::default() };
/// assert_eq!(config, Config::parse("[schedule]\nrounds = 5", &[])?);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// Tuning rounds.
    pub rounds: usize,
    /// Iterations of a round.
    pub iterations: u64,
    /// How many of them are passed over.
    pub burn_in: u64,
    /// `barrier`, `rejection`, or `fixed`: the first schedule stays, which for molecules is geometric in temperature.
    pub criterion: Criterion,
    /// `geometric`, the straight path from reference to target, or `spline`: over exponents that tuning moves to where the barrier
    /// is lower.
    #[serde(skip_serializing_if = "PathShape::is_geometric")]
    pub path: PathShape,
}

/// How the path leads from reference to target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathShape {
    /// Straight, in the exponents of both.
    #[default]
    Geometric,
    /// Over knots that tuning moves.
    Spline,
}

impl PathShape {
    fn is_geometric(&self) -> bool {
        *self == Self::Geometric
    }
}

/// `[network]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// `small`, for CPUs, or `paper`: the sizes below where they are not given.
    pub preset: Preset,
    /// `flow`: coupling layers. `cmcd`, `diffusion`: hidden layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
    /// Width of hidden layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// On particles: whether the network turns and permutes with them (an EGNN), which it does if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivariant: Option<bool>,
    /// `cmcd`, `diffusion`: whether the network sees all coordinates `together` or each by itself (`apart`), which is
    /// right for products; if not given, whichever does better after a short training of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Sight>,
    /// `cmcd`: whether the drift has a part along the path's score, a multiple of it learned for each pair and step; if
    /// not given, it has one unless it moves particles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along_score: Option<bool>,
}

/// `[training]`
///
/// ```
/// use sterna_run::config::{Config, NetworkConfig, TrainingConfig};
///
/// let training = TrainingConfig { steps: Some(2000), batch: Some(512), ..TrainingConfig::default() };
/// let network = NetworkConfig { layers: Some(4), width: Some(64), ..NetworkConfig::default() };
/// let config = Config { training, network, ..Config::default() };
/// assert_eq!(Config::parse(&config.to_toml(), &[])?, config);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Iterations whose samples an accelerator is fitted to; if not given, 5000, and 20000 for networks, or
    /// 50000 for diffusions: a mode that these never saw would be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<u64>,
    /// How often samples are collected and an accelerator fitted: from the second time on, with the help
    /// of the one before. If not given, once, and 3 times on molecules, unless `kind = "auto"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Steps of the optimiser in each round; if not given, what a minute or two on two cores allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Steps that follow in each round on the round-trip loss, which puts the effort on the worst pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<u64>,
    /// Journeys of a step, in each direction; noised samples of a diffusion. If not given, 256, and for a `cmcd` of more than
    /// ten chains as many for each pair as ten chains have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Learning rate at the beginning; it falls along a half cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weight of the past in the average of the weights.
    pub ema: f64,
    /// `skl`, `forward-kl`, `reverse-kl`; `cmcd` also `log-variance`, `flow` also `likelihood` and `scores`.
    pub loss: Loss,
    /// Whether pairs that do better without the transport are swapped plainly.
    pub guard: bool,
    /// Where networks are trained: `cpu`, or `cuda` in programs built with that feature.
    pub device: Device,
    /// `cuda`: `f32`, or `tf32` for products of 11-bit factors, which are faster.
    pub precision: Precision,
    /// `cuda`: whether the CPU may take over where there is no GPU.
    pub fallback: bool,
}

/// `[run]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Iterations of sampling.
    pub iterations: u64,
    /// Iterations before it, with everything frozen; more where transports that were chosen are looked at again.
    pub burn_in: u64,
    /// Keep every so many draws.
    pub thin: u64,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Seconds that an evaluation of the target may take: one that hangs then ends the run with a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_seconds: Option<f64>,
    /// Where burn-in and sampling run: `cpu`, or `cuda` in programs built with that feature, for built-in targets with
    /// plain swaps or a trained `cmcd`.
    pub device: Device,
    /// `cuda`: `f32`, or `tf32` for products of 11-bit factors in the drift, which are faster.
    pub precision: Precision,
    /// `cuda`: whether the CPU may take over where there is no GPU.
    pub fallback: bool,
    /// GiB of memory that the run may take: one that might take more is refused before it begins.
    #[serde(skip_serializing_if = "is_usual_memory")]
    pub memory_gib: f64,
    /// When it is enough.
    #[serde(skip_serializing_if = "Until::is_empty")]
    pub until: Until,
}

/// `[run.until]`: when a run has done enough; what is not given asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Until {
    /// Effective draws of every coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ess: Option<f64>,
    /// Standard error of log Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_z_error: Option<f64>,
    /// Minutes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Evaluations of the target at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<u64>,
}

/// Goals are at most this: so many minutes fit into every clock.
const MOST: f64 = 1e12;

impl Until {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a run itself looks at; time is its caller's.
    pub fn goals(&self) -> Option<Goals> {
        let Self { ess, log_z_error, minutes: _, evaluations } = *self;
        let goals = Goals { ess, log_z_error, evaluations };
        (ess.is_some() || log_z_error.is_some() || evaluations.is_some()).then_some(goals)
    }

    /// Refuses what no run could reach.
    pub fn check(&self) -> Result<(), JobError> {
        let numbers = [("ess", self.ess), ("log_z_error", self.log_z_error), ("minutes", self.minutes)];
        for (name, number) in numbers {
            if let Some(number) = number.filter(|number| !(*number > 0.0 && *number <= MOST)) {
                let reason = "it must be positive, finite and at most 1e12; leave it out to ask for nothing";
                return Err(JobError::setting(&format!("run.until.{name}"), number, reason));
            }
        }
        match self.evaluations {
            Some(0) => {
                let reason = "it must be positive; leave it out to ask for nothing";
                Err(JobError::setting("run.until.evaluations", 0, reason))
            }
            _ => Ok(()),
        }
    }
}

/// `[output]`
///
/// ```
/// use sterna_run::config::{Config, OutputConfig};
///
/// let output = OutputConfig { trajectories: true, distances: vec![[4, 14]], ..OutputConfig::default() };
/// assert_eq!(output, Config::parse("[output]\ntrajectories = true\ndistances = [[4, 14]]", &[])?.output);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Whether to keep draws of all chains: `chain-<n>.nc`, laid out as `draws.nc` is; of molecules a trajectory of each chain (DCD,
    /// beside `topology.pdb`).
    pub trajectories: bool,
    /// One of them every so many iterations.
    pub every: u64,
    /// Molecules: distances (nm) to write with each draw, as pairs of atoms counted from 0.
    pub distances: Vec<[usize; 2]>,
    /// Molecules: dihedrals (degrees) to write beside those of the backbone.
    pub dihedrals: Vec<[usize; 4]>,
}

/// A number, of chains or of steps, or "auto".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Number(usize),
    /// As many as the run finds to be best.
    Auto,
}

impl From<usize> for Count {
    fn from(count: usize) -> Self {
        Self::Number(count)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Number(count) => count.fmt(f),
            Self::Auto => f.write_str("\"auto\""),
        }
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(count) => count.serialize(to),
            Self::Auto => "auto".serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberOrAuto;
        impl de::Visitor<'_> for NumberOrAuto {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or \"auto\"")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(count), &self);
                usize::try_from(count).map(Count::Number).map_err(wrong)
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(count), &self);
                usize::try_from(count).map(Count::Number).map_err(wrong)
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Count, E> {
                if word == "auto" { Ok(Count::Auto) } else { Err(E::unknown_variant(word, &["auto"])) }
            }
        }
        from.deserialize_any(NumberOrAuto)
    }
}

/// Sizes of networks where they are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// For CPUs.
    #[default]
    Small,
    /// The paper's.
    Paper,
}

/// How a network sees coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// All of them.
    Together,
    /// Each by itself.
    Apart,
}

/// Where something is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// On the cores.
    #[default]
    Cpu,
    /// On an NVIDIA GPU.
    Cuda,
}

impl Device {
    /// As networks know it.
    pub fn compute(self, precision: Precision, fall_back: bool) -> Compute {
        match self {
            Self::Cpu => Compute::Cpu,
            Self::Cuda => Compute::Cuda { precision, fall_back },
        }
    }
}

impl Default for ChainsConfig {
    fn default() -> Self {
        Self { count: Count::Number(10), ensembles: 1 }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        let criterion = Criterion::Barrier;
        Self { rounds: 10, iterations: 1100, burn_in: 100, criterion, path: PathShape::default() }
    }
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            collect: None,
            rounds: None,
            steps: None,
            fine_tune: None,
            batch: None,
            learning_rate: 1e-3,
            clip: 1.0,
            ema: 0.99,
            loss: Loss::Skl,
            guard: true,
            device: Device::Cpu,
            precision: Precision::F32,
            fallback: false,
        }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            iterations: 100_000,
            burn_in: 1000,
            thin: 1,
            checkpoint_seconds: 30.0,
            device: Device::Cpu,
            precision: Precision::F32,
            fallback: false,
            memory_gib: USUAL_GIB,
            evaluation_seconds: None,
            until: Until::default(),
        }
    }
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { trajectories: false, every: 10, distances: Vec::new(), dihedrals: Vec::new() }
    }
}

/// Configs that do not say read as those did that could not say it.
fn is_usual_memory(gib: &f64) -> bool {
    *gib == USUAL_GIB
}

/// The word that stands for a value in configs.
pub fn word(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.trim_matches('"').to_string()
}
