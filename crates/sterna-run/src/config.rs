//! The config file: every field has a default, unknown names are errors that suggest the nearest.

use crate::error::JobError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sterna::run::{Criterion, Settings, StepSize};

/// A whole config. `Config::default()` is the built-in demo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seed of all randomness.
    pub seed: u64,
    /// Threads; 0 means one per core. Changes speed, never a bit of the result.
    pub threads: usize,
    /// What is sampled.
    pub target: TargetConfig,
    /// Where replicas start anew.
    pub reference: ReferenceConfig,
    /// The ladder.
    pub chains: ChainsConfig,
    /// Local moves.
    pub explorer: ExplorerConfig,
    /// Tuning of the schedule.
    pub schedule: ScheduleConfig,
    /// What carries the proposals of swaps.
    pub accelerator: AcceleratorConfig,
    /// Networks of trained accelerators.
    pub network: NetworkConfig,
    /// What accelerators are fitted to, and how.
    pub training: TrainingConfig,
    /// Length of the run.
    pub run: RunConfig,
    /// Further files, for molecules.
    pub output: OutputConfig,
}

/// `[target]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetConfig {
    /// One of the built-in targets.
    pub kind: String,
    /// Dimension, where the target has a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// `normal`: precision of each coordinate, or one for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Numbers>,
    /// `normal`: mean of each coordinate, or one for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Numbers>,
    /// Molecules: temperature in kelvin, 300 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `molecule`: OpenMM's serialized System (XML). File names are relative to the config's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<PathBuf>,
    /// `molecule`: a file whose first conformation is the start: .pdb, or .json or .csv in nm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<PathBuf>,
    /// `library`: the shared library, from the current folder if the path is not absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// `library`: the function that it exports, `sterna_evaluate` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

impl TargetConfig {
    /// Whether the target is a molecule.
    pub fn is_molecule(&self) -> bool {
        matches!(self.kind.as_str(), "alanine-dipeptide" | "molecule")
    }
}

/// One number for all, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// One for all.
    One(f64),
    /// One for each.
    Each(Vec<f64>),
}

/// `[reference]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReferenceConfig {
    /// `standard-normal`, or for molecules `tempered`; what fits the target if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `tempered`: its temperature in kelvin, 1200 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Its standard deviation in every coordinate: 1, or more where the target is wider.
    pub scale: f64,
}

/// `[chains]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainsConfig {
    /// Chains, so count − 1 pairs; or "auto": twice the barrier that a pilot run finds.
    pub count: Count,
    /// Independent copies advanced as one batch.
    pub ensembles: usize,
}

/// A number or "auto".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// So many.
    Number(usize),
    /// A word: only "auto" is one.
    Word(String),
}

/// `[explorer]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExplorerConfig {
    /// `hmc` or `mala`.
    pub kind: String,
    /// Proposals an iteration.
    pub steps: usize,
    /// Leapfrog steps a proposal (`hmc`).
    pub leapfrog_steps: usize,
    /// A number, one per chain, or "adapt".
    pub step_size: StepSizeConfig,
    /// Mean acceptance that "adapt" aims at.
    pub acceptance: f64,
    /// How "adapt" adapts: `acceptance`, to the one wanted; or `paper`, by factors of 1.2.
    pub adaptation: String,
    /// Masses of the moves: `adapt` (one per coordinate and chain), `unit`, or for molecules `atoms`.
    pub masses: String,
    /// Molecules: how many Metropolis moves of each iteration turn a torsion.
    pub torsion_moves: usize,
}

/// A number, a list or a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StepSizeConfig {
    /// One for all chains.
    One(f64),
    /// One per chain.
    Each(Vec<f64>),
    /// Only "adapt" is one.
    Word(String),
}

/// `[schedule]`
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
    pub criterion: String,
}

/// `[accelerator]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcceleratorConfig {
    /// `none`, `affine`, `flow`, `cmcd` or `diffusion`; on molecules also `scaling`.
    pub kind: String,
    /// K; what the kind does by default if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// `affine`: match variances (`diagonal`) or covariances (`full`).
    pub covariance: String,
    /// `cmcd`: `none` for no drift, `exact` where it is known (normals); trained if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// `cmcd`: variance of a step's noise relative to the local variance, per unit of barrier.
    pub noise: f64,
    /// A `transport.safetensors` of an earlier run, used instead of training a new one: of a `flow` or `cmcd` on
    /// the schedule it was made for, of a `diffusion` with any K and any number of chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// `diffusion`: `exact`, where the target knows its own diffusion (gmm, normal); trained if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// `diffusion`: `exponential` or `euler`.
    pub integrator: String,
}

/// `[network]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// `small`, for CPUs, or `paper`: the sizes below where they are not given.
    pub preset: String,
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
    pub coordinates: Option<String>,
    /// `cmcd`: whether the drift has a part along the path's score, a multiple of it learned for each pair and step; if
    /// not given, it has one unless it moves particles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along_score: Option<bool>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            preset: "small".into(),
            layers: None,
            width: None,
            equivariant: None,
            coordinates: None,
            along_score: None,
        }
    }
}

/// `[training]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Iterations whose samples an accelerator is fitted to; if not given, 5000, and 20000 for networks, or
    /// 50000 for diffusions: a mode that these never saw would be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<u64>,
    /// How often samples are collected and an accelerator fitted: from the second time on, with the help
    /// of the one before. If not given, once, and 3 times on molecules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Steps of the optimiser in each round; if not given, what a minute or two on two cores allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Steps that follow in each round on the round-trip loss, which puts the effort on the worst pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<u64>,
    /// Journeys of a step, in each direction; noised samples of a diffusion.
    pub batch: usize,
    /// Learning rate at the beginning; it falls along a half cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weight of the past in the average of the weights.
    pub ema: f64,
    /// `skl`, `forward-kl`, `reverse-kl`; `cmcd` also `log-variance`.
    pub loss: String,
    /// Whether pairs that do better without the transport are swapped plainly.
    pub guard: bool,
    /// Where networks are trained: `cpu`, or `cuda` in programs built with that feature.
    pub device: String,
    /// `cuda`: `f32`, or `tf32` for products of 11-bit factors, which are faster.
    pub precision: String,
    /// `cuda`: whether the CPU may take over where there is no GPU.
    pub fallback: bool,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            collect: None,
            rounds: None,
            steps: None,
            fine_tune: None,
            batch: 256,
            learning_rate: 1e-3,
            clip: 1.0,
            ema: 0.99,
            loss: "skl".into(),
            guard: true,
            device: "cpu".into(),
            precision: "f32".into(),
            fallback: false,
        }
    }
}

/// `[run]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Iterations of sampling.
    pub iterations: u64,
    /// Iterations before it, with everything frozen.
    pub burn_in: u64,
    /// Keep every so many draws.
    pub thin: u64,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Where burn-in and sampling run: `cpu`, or `cuda` in programs built with that feature, for built-in targets with
    /// plain swaps or a trained `cmcd`.
    pub device: String,
    /// `cuda`: `f32`, or `tf32` for products of 11-bit factors in the drift, which are faster.
    pub precision: String,
    /// `cuda`: whether the CPU may take over where there is no GPU.
    pub fallback: bool,
}

/// `[output]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Molecules: whether to write a trajectory of each chain (DCD, beside `topology.pdb`).
    pub trajectories: bool,
    /// A frame every so many iterations.
    pub every: u64,
    /// Molecules: distances (nm) to write with each draw, as pairs of atoms counted from 0.
    pub distances: Vec<[usize; 2]>,
    /// Molecules: dihedrals (degrees) to write beside those of the backbone.
    pub dihedrals: Vec<[usize; 4]>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { trajectories: false, every: 10, distances: Vec::new(), dihedrals: Vec::new() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            threads: 0,
            target: TargetConfig::default(),
            reference: ReferenceConfig::default(),
            chains: ChainsConfig::default(),
            explorer: ExplorerConfig::default(),
            schedule: ScheduleConfig::default(),
            accelerator: AcceleratorConfig::default(),
            network: NetworkConfig::default(),
            training: TrainingConfig::default(),
            run: RunConfig::default(),
            output: OutputConfig::default(),
        }
    }
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            kind: "gmm".into(),
            dim: None,
            precision: None,
            mean: None,
            temperature: None,
            system: None,
            positions: None,
            library: None,
            symbol: None,
        }
    }
}

impl Default for ReferenceConfig {
    fn default() -> Self {
        Self { kind: None, temperature: None, scale: 1.0 }
    }
}

impl Default for ChainsConfig {
    fn default() -> Self {
        Self { count: Count::Number(10), ensembles: 1 }
    }
}

impl Default for ExplorerConfig {
    fn default() -> Self {
        Self {
            kind: "hmc".into(),
            steps: 1,
            leapfrog_steps: 5,
            step_size: StepSizeConfig::Word("adapt".into()),
            acceptance: 0.92,
            adaptation: "acceptance".into(),
            masses: "adapt".into(),
            torsion_moves: 0,
        }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { rounds: 10, iterations: 1100, burn_in: 100, criterion: "barrier".into() }
    }
}

impl Default for AcceleratorConfig {
    fn default() -> Self {
        Self {
            kind: "none".into(),
            steps: None,
            covariance: "diagonal".into(),
            drift: None,
            noise: 0.1,
            transport: None,
            score: None,
            integrator: "exponential".into(),
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
            device: "cpu".into(),
            precision: "f32".into(),
            fallback: false,
        }
    }
}

impl Config {
    /// Reads a config from TOML text, then applies `key.path=value` overrides.
    ///
    /// ```
    /// let config = sterna_run::Config::parse("seed = 7\n[target]\nkind = \"dw4\"", &[("chains.count", "5")]).unwrap();
    /// assert_eq!(config.seed, 7);
    /// let error = sterna_run::Config::parse("[chains]\ncuont = 5", &[]).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `count`?"));
    /// ```
    pub fn parse(text: &str, overrides: &[(&str, &str)]) -> Result<Self, JobError> {
        let config: Self = toml::from_str(text).map_err(|e| JobError::Config(with_suggestion(&e)))?;
        if overrides.is_empty() {
            return Ok(config);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(|e| JobError::Config(e.to_string()))?;
        for (key, value) in overrides {
            set(&mut table, key, value)?;
            let merged: Result<Self, _> = table.clone().try_into();
            merged.map_err(|e| JobError::Config(format!("--set {key}={value}: {}", with_suggestion(&e))))?;
        }
        table.try_into().map_err(|e: toml::de::Error| JobError::Config(with_suggestion(&e)))
    }

    /// Reads a config file; names of files in it are relative to its own folder.
    pub fn read(path: &Path, overrides: &[(&str, &str)]) -> Result<Self, JobError> {
        let text = std::fs::read_to_string(path).map_err(JobError::file("read", path))?;
        let config = Self::parse(&text, overrides).map_err(|error| match error {
            JobError::Config(message) => JobError::Config(format!("{}: {message}", path.display())),
            other => other,
        })?;
        Ok(config.within(path.parent().unwrap_or(Path::new(""))))
    }

    /// The same config, seen from elsewhere: relative names of files are those in `folder`.
    pub fn within(mut self, folder: &Path) -> Self {
        for file in [&mut self.target.system, &mut self.target.positions].into_iter().flatten() {
            *file = folder.join(&*file);
        }
        self
    }

    /// Undoes [`within`](Self::within).
    pub fn seen_from(&self, folder: &Path) -> Self {
        let mut config = self.clone();
        for file in [&mut config.target.system, &mut config.target.positions].into_iter().flatten() {
            if let Ok(name) = file.strip_prefix(folder) {
                *file = name.to_path_buf();
            }
        }
        config
    }

    /// The resolved config as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a config is plain data")
    }

    /// Whether a network is trained.
    pub fn trains(&self) -> bool {
        let accelerator = &self.accelerator;
        let is_network = match accelerator.kind.as_str() {
            "flow" => true,
            // Those of molecules are fitted in closed form.
            "cmcd" => accelerator.drift.is_none() && !self.target.is_molecule(),
            "diffusion" => accelerator.score.is_none(),
            _ => false,
        };
        is_network && accelerator.transport.is_none()
    }

    /// How often an accelerator is fitted.
    pub fn fits(&self) -> usize {
        self.training.rounds.unwrap_or(if self.target.is_molecule() { 3 } else { 1 })
    }

    /// The library's settings; "auto" chains must have been resolved to a number.
    pub fn settings(&self) -> Result<Settings, JobError> {
        let molecule = self.target.is_molecule();
        let reference = if molecule { "tempered" } else { "standard-normal" };
        known("reference.kind", self.reference.kind.as_deref().unwrap_or(reference), &[reference])?;
        known("explorer.kind", &self.explorer.kind, &["hmc", "mala"])?;
        known("explorer.adaptation", &self.explorer.adaptation, &["acceptance", "paper"])?;
        let masses: &[&str] = if molecule { &["adapt", "unit", "atoms"] } else { &["adapt", "unit"] };
        known("explorer.masses", &self.explorer.masses, masses)?;
        known("schedule.criterion", &self.schedule.criterion, &["barrier", "rejection", "fixed"])?;
        let chains = match &self.chains.count {
            Count::Number(n) => *n,
            Count::Word(word) => {
                known("chains.count", word, &["auto"])?;
                return Err(JobError::Config("chains.count = \"auto\" needs a pilot run first".into()));
            }
        };
        let seconds = self.run.checkpoint_seconds;
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(JobError::Config(format!(
                "run.checkpoint_seconds = {seconds} is impossible: it must not be negative"
            )));
        }
        let step_size = match &self.explorer.step_size {
            StepSizeConfig::One(size) => StepSize::Fixed(*size),
            StepSizeConfig::Each(sizes) => StepSize::PerChain(sizes.clone()),
            StepSizeConfig::Word(word) => {
                known("explorer.step_size", word, &["adapt"])?;
                match self.explorer.adaptation.as_str() {
                    "paper" => StepSize::Paper,
                    _ => StepSize::Adapt { acceptance: self.explorer.acceptance },
                }
            }
        };
        let settings = Settings {
            seed: self.seed,
            chains,
            ensembles: self.chains.ensembles,
            steps: self.explorer.steps,
            leapfrog_steps: if self.explorer.kind == "mala" { 1 } else { self.explorer.leapfrog_steps },
            step_size,
            adapt_masses: self.explorer.masses == "adapt",
            rounds: self.schedule.rounds,
            round_iterations: self.schedule.iterations,
            round_burn_in: self.schedule.burn_in,
            criterion: match self.schedule.criterion.as_str() {
                "barrier" => Criterion::Barrier,
                "rejection" => Criterion::Rejection,
                _ => Criterion::Fixed,
            },
            collect: self.training.collect.unwrap_or(match self.accelerator.kind.as_str() {
                "diffusion" => 50_000,
                _ if self.trains() || molecule => 20_000,
                _ => 5000,
            }),
            fits: self.fits(),
            guard: self.training.guard,
            burn_in: self.run.burn_in,
            iterations: self.run.iterations,
            thin: self.run.thin,
            trajectories: self.output.trajectories.then_some(self.output.every),
        };
        settings.check().map_err(|e| JobError::Config(e.to_string()))?;
        Ok(settings)
    }
}

/// Checks a name against the known ones.
pub fn known(field: &str, value: &str, names: &[&str]) -> Result<(), JobError> {
    if names.contains(&value) {
        return Ok(());
    }
    let list = names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let hint =
        nearest(value, names.iter().copied()).map(|n| format!(" Did you mean \"{n}\"?")).unwrap_or_default();
    Err(JobError::Config(format!("{field} = \"{value}\" is not known; known are {list}.{hint}")))
}

fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    scored.filter(|(distance, name)| *distance <= name.len().max(3) / 2).min().map(|(_, name)| name)
}

/// serde says which names it expected: add the nearest to the one it found.
fn with_suggestion(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let mut quoted = error.message().split('`').skip(1).step_by(2);
    let is_unknown = error.message().starts_with("unknown field");
    let hint = quoted.next().filter(|_| is_unknown).and_then(|found| nearest(found, quoted));
    match hint {
        Some(name) => format!("{}\ndid you mean `{name}`?", text.trim_end()),
        None => text.trim_end().to_string(),
    }
}

/// Sets `a.b.c` in a table, making tables on the way.
fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), JobError> {
    // A bare word such as barrier is meant as a string.
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut t| t.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_string()));
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().expect("split gives at least one part");
    let mut table = table;
    for part in parts {
        let entry = table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table = entry.as_table_mut().ok_or_else(|| {
            JobError::Config(format!("--set {key}={value}: `{part}` is a value, not a table"))
        })?;
    }
    table.insert(last.to_string(), parsed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, overrides: &[(&str, &str)]) -> String {
        match Config::parse(text, overrides).and_then(|c| c.settings()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text} was accepted"),
        }
    }

    #[test]
    fn a_resolved_config_reads_back_as_itself() {
        let config = Config::parse("[explorer]\nstep_size = [0.1, 0.2]\n[chains]\ncount = 2", &[]).unwrap();
        assert_eq!(Config::parse(&config.to_toml(), &[]).unwrap(), config);
    }

    #[test]
    fn errors_name_the_field_the_value_and_the_cure() {
        for (text, overrides, parts) in [
            ("[schedule]\ncriterium = \"barrier\"", &[][..], &["criterium", "did you mean `criterion`?"][..]),
            ("[explorer]\nkind = \"hcm\"", &[], &["explorer.kind", "hcm", "Did you mean \"hmc\"?"]),
            ("[chains]\ncount = 1", &[], &["chains.count", "1", "at least 2"]),
            ("[chains]\ncount = \"many\"", &[], &["chains.count", "many", "\"auto\""]),
            ("[explorer]\nstep_size = -0.5", &[], &["explorer.step_size", "-0.5", "positive"]),
            ("[explorer]\nstep_size = [0.1]", &[], &["explorer.step_size", "per chain"]),
            ("[schedule]\niterations = 50", &[], &["schedule.iterations", "50", "longer than its burn-in"]),
            ("[run]\nthin = 0", &[], &["run.thin", "0"]),
            ("seed = -1", &[], &["seed", "-1"]),
            ("", &[("run.iterations", "x")], &["--set run.iterations=x"]),
            ("", &[("run.itertions", "5")], &["--set run.itertions=5", "did you mean `iterations`?"]),
            ("", &[("seed.deep", "5")], &["seed"]),
            ("[target", &[], &["line 1"]),
        ] {
            let message = message(text, overrides);
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
        }
    }
}
