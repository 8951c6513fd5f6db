//! The config file: every field has a default, unknown names are errors that suggest the nearest.

mod defaults;
mod errors;
mod files;
mod in_force;
pub(crate) mod kinds;
mod memory;
mod numbers;
mod parameters;
mod sections;

pub use crate::accelerators::AcceleratorKind;
pub use crate::error::known;
pub use crate::explorers::ExplorerKind;
pub use crate::references::ReferenceKind;
pub use crate::targets::TargetKind;
pub use defaults::Given;
pub(crate) use numbers::MOST;
pub use numbers::Numbers;
pub use parameters::{ParameterConfig, described, parameters};
pub(crate) use parameters::{constrained, posterior};
pub use sections::{
    ChainsConfig, Count, Device, NetworkConfig, OutputConfig, PathShape, Preset, RunConfig, ScheduleConfig,
    Sight, TrainingConfig, Until, word,
};

use crate::error::JobError;
use crate::problem::Problem;
use crate::targets;
use files::Found;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sterna::run::Settings;

/// A whole config. `Config::default()` is all defaults.
///
/// It is one way to make a [`Problem`], and says how to sample any: a job of a problem that a program made takes all of it
/// but `target`.
///
/// ```
/// use sterna_run::Config;
/// use sterna_run::config::{ChainsConfig, Count, RunConfig};
///
/// let config = Config {
///     seed: 7,
///     chains: ChainsConfig { count: Count::Auto, ensembles: 4 },
///     run: RunConfig { iterations: 20_000, ..RunConfig::default() },
///     ..Config::default()
/// };
/// assert_eq!(Config::parse(&config.to_toml(), &[])?, config);
/// # Ok::<(), sterna_run::JobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seed of all randomness.
    pub seed: u64,
    /// Threads; 0 means one per core. Changes speed, never a bit of the result.
    pub threads: usize,
    /// What is sampled.
    pub target: TargetKind,
    /// Names, supports and priors of what a library computes a density of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterConfig>,
    /// Where replicas start anew.
    pub reference: ReferenceKind,
    /// The ladder.
    pub chains: ChainsConfig,
    /// Local moves.
    pub explorer: ExplorerKind,
    /// Tuning of the schedule.
    pub schedule: ScheduleConfig,
    /// What carries the proposals of swaps.
    pub accelerator: AcceleratorKind,
    /// Networks of trained accelerators.
    pub network: NetworkConfig,
    /// What accelerators are fitted to, and how.
    pub training: TrainingConfig,
    /// Length of the run.
    pub run: RunConfig,
    /// Further files, for molecules.
    pub output: OutputConfig,
    /// What of all this was said, and not taken from defaults.
    #[serde(skip)]
    #[doc(hidden)]
    pub given: Given,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            threads: 0,
            target: TargetKind::default(),
            parameters: Vec::new(),
            reference: ReferenceKind::default(),
            chains: ChainsConfig::default(),
            explorer: ExplorerKind::default(),
            schedule: ScheduleConfig::default(),
            accelerator: AcceleratorKind::default(),
            network: NetworkConfig::default(),
            training: TrainingConfig::default(),
            run: RunConfig::default(),
            output: OutputConfig::default(),
            given: Given::default(),
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
        let mut config = errors::parse(text)?;
        let mut table: toml::Table = toml::from_str(text).map_err(|e| JobError::Text(e.to_string()))?;
        for (key, value) in overrides {
            set(&mut table, key, value)?;
            config = table.clone().try_into().map_err(|error: toml::de::Error| {
                let message = match errors::wants_word(error.message()) {
                    true => errors::explain(&error, Some(key), as_word(&mut table, key, value).as_deref()),
                    false => errors::explain(&error, None, None),
                };
                JobError::Text(format!("--set {key}={value}: {}", errors::in_one_line(&message, key)))
            })?;
        }
        config.refuse_misplaced(&table)?;
        config.given = Given::new(table);
        Ok(config)
    }

    /// Reads a config file; names of files in it are relative to its own folder. One that is not there, but in the current
    /// folder, is taken from here, with a [note](Self::notes).
    pub fn read(path: &Path, overrides: &[(&str, &str)]) -> Result<Self, JobError> {
        let text = std::fs::read_to_string(path).map_err(JobError::file("read", path))?;
        let mut config = Self::parse(&text, overrides).map_err(JobError::within(path))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut notes = Vec::new();
        for name in config.files() {
            match files::found(name, folder) {
                Found::Beside(there) => *name = there,
                Found::Here(note) => notes.push(note),
            }
        }
        config.given.notes = notes;
        Ok(config)
    }

    /// What a user should know of how the config was read.
    pub fn notes(&self) -> &[String] {
        &self.given.notes
    }

    /// Names of all files that it speaks of.
    fn files(&mut self) -> Vec<&mut PathBuf> {
        let transport = self.accelerator.transport_mut();
        self.target.files().into_iter().map(|file| file.path).chain(transport).collect()
    }

    /// Fields of kinds that are not in use have no effect; those whose absence would surprise are errors.
    fn refuse_misplaced(&self, table: &toml::Table) -> Result<(), JobError> {
        let given = |section: &str| {
            let fields = table.get(section).and_then(toml::Value::as_table);
            fields.into_iter().flat_map(|table| table.keys()).map(String::as_str).collect::<Vec<_>>()
        };
        targets::refuse_misplaced(&self.target, &given("target"))?;
        if given("accelerator").contains(&"transport") && !self.accelerator.has("transport") {
            return Err(JobError::Belongs {
                what: "accelerator.transport".into(),
                to: "kind = \"flow\", \"cmcd\" or \"diffusion\"".into(),
                here: format!("\"{}\"", self.accelerator.kind()),
            });
        }
        Ok(())
    }

    /// The same config, seen from elsewhere: relative names of files are those in `folder`.
    pub fn within(mut self, folder: &Path) -> Self {
        for name in self.files() {
            *name = folder.join(&*name);
        }
        self
    }

    /// Undoes [`within`](Self::within).
    pub fn seen_from(&self, folder: &Path) -> Self {
        let mut config = self.clone();
        for name in config.files() {
            if let Ok(inside) = name.strip_prefix(folder) {
                *name = inside.to_path_buf();
            }
        }
        config
    }

    /// The config as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a config is plain data")
    }

    /// The same, with what a run is yet to decide in words.
    pub(crate) fn to_toml_with_notes(&self) -> String {
        let notes: String = self.given.open.iter().map(|line| format!("# {line}\n")).collect();
        let blank = if notes.is_empty() { "" } else { "\n" };
        format!("{notes}{blank}{}", self.to_toml())
    }

    /// What the config says is sampled.
    pub fn problem(&self) -> Result<Problem, JobError> {
        match &self.target {
            TargetKind::Library(library) => {
                Ok(Problem { kind: self.target.clone(), ..library.with_parameters(&self.parameters)? })
            }
            target if self.parameters.is_empty() => target.problem(),
            target => Err(JobError::Belongs {
                what: "[[parameters]]".into(),
                to: "kind = \"library\"".into(),
                here: format!("\"{}\"", target.kind()),
            }),
        }
    }

    /// How often an accelerator is fitted.
    pub fn fits(&self, on_molecule: bool) -> usize {
        self.training.rounds.unwrap_or_else(|| self.accelerator.fits(on_molecule))
    }

    /// The library's settings for a problem; "auto" chains must have been resolved to a number.
    pub fn settings(&self, problem: &Problem) -> Result<Settings, JobError> {
        let fit = match &self.reference {
            ReferenceKind::Fitted(fitted) => Some(fitted.fit()),
            _ => None,
        };
        let chains = match self.chains.count {
            Count::Number(chains) => chains,
            Count::Auto if fit.is_some() => MOST_CHAINS,
            Count::Auto => {
                return Err(JobError::setting("chains.count", Count::Auto, "a pilot run must come first"));
            }
        };
        let seconds = self.run.checkpoint_seconds;
        if !(0.0..=MOST_SECONDS).contains(&seconds) {
            let reason = format!("it must be finite and not negative, at most {MOST_SECONDS}");
            return Err(JobError::setting("run.checkpoint_seconds", seconds, reason));
        }
        self.run.until.check()?;
        let on_molecule = problem.molecule.is_some();
        let mut settings = Settings {
            seed: self.seed,
            chains,
            ensembles: self.chains.ensembles,
            rounds: self.schedule.rounds,
            round_iterations: self.schedule.iterations,
            round_burn_in: self.schedule.burn_in,
            criterion: self.schedule.criterion,
            collect: self.to_collect(problem),
            fits: self.fits(on_molecule),
            guard: self.training.guard,
            burn_in: self.run.burn_in,
            iterations: self.run.iterations,
            thin: self.run.thin,
            trajectories: self.output.trajectories.then_some(self.output.every),
            fit,
            until: self.run.until.goals(),
            ..Settings::default()
        };
        self.explorer.choose(problem, &mut settings)?;
        settings.check()?;
        Settings::check_dimension(problem.dim())?;
        memory::check(self, problem, &settings)?;
        Ok(settings)
    }
}

/// Seconds between checkpoints, at most: some thirty years.
const MOST_SECONDS: f64 = 1e9;

/// Chains of a run that chooses their number itself, at most.
const MOST_CHAINS: usize = 64;

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

/// What serde says of an override once its value is a string.
fn as_word(table: &mut toml::Table, key: &str, value: &str) -> Option<String> {
    set(table, key, &format!("'{value}'")).ok()?;
    let read: Result<Config, _> = table.clone().try_into();
    Some(read.err()?.message().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, overrides: &[(&str, &str)]) -> String {
        match Config::parse(text, overrides).and_then(|c| c.settings(&c.problem()?)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text} was accepted"),
        }
    }

    #[test]
    fn a_resolved_config_reads_back_as_itself() {
        let config = Config::parse("[explorer]\nstep_size = [0.1, 0.2]\n[chains]\ncount = 2", &[]).unwrap();
        assert_eq!(Config::parse(&config.to_toml(), &[]).unwrap(), config);
    }

    /// A config that says nothing of when to stop reads as those did that could not say it.
    #[test]
    fn until_is_shown_where_it_is_given() {
        let text = "[run.until]\ness = 1000\nlog_z_error = 0.1\nminutes = 30\nevaluations = 50_000_000";
        let config = Config::parse(text, &[]).unwrap();
        let until = Until {
            ess: Some(1000.0),
            log_z_error: Some(0.1),
            minutes: Some(30.0),
            evaluations: Some(50_000_000),
        };
        assert_eq!(config.run.until, until);
        assert!(config.to_toml().contains("[run.until]\ness = 1000.0\n"), "{}", config.to_toml());
        assert_eq!(Config::parse(&config.to_toml(), &[]).unwrap(), config);
        assert!(!Config::default().to_toml().contains("until"));
    }

    #[test]
    fn errors_name_the_field_the_value_and_the_cure() {
        for (text, overrides, parts) in [
            ("[schedule]\ncriterium = \"barrier\"", &[][..], &["criterium", "did you mean `criterion`?"][..]),
            ("[explorer]\nkind = \"hcm\"", &[], &["explorer.kind", "hcm", "Did you mean \"hmc\"?"]),
            ("[chains]\ncount = 1", &[], &["chains.count", "1", "at least 2"]),
            ("[chains]\ncount = \"many\"", &[], &["chains.count", "many", "\"auto\""]),
            ("[explorer]\nstep_size = -0.5", &[], &["explorer.step_size", "-0.5", "positive"]),
            ("[explorer]\nstep_size = [0.1]", &[], &["explorer.step_size has 1 number; 10 chains need 10"]),
            ("[explorer]\nkind = \"mala\"\nstep_size = [0.1, 0.2]", &[], &["has 2 numbers; 10 chains"]),
            (
                "[run]\ncheckpoint_seconds = nan",
                &[],
                &["run.checkpoint_seconds = NaN", "finite", "not negative"],
            ),
            ("[run.until]\ness = 0.0", &[], &["run.until.ess = 0 is impossible", "positive"]),
            ("[run.until]\nlog_z_error = -0.1", &[], &["run.until.log_z_error = -0.1", "positive"]),
            ("[run.until]\nminutes = inf", &[], &["run.until.minutes = inf", "finite"]),
            ("[run.until]\nevaluations = 0", &[], &["run.until.evaluations = 0", "positive"]),
            ("[run.until]\nevaluations = 2.5", &[], &["line 2", "2.5", "a whole number from 0 up"]),
            ("[run.until]\nminuts = 3", &[], &["line 2", "`minuts`", "did you mean `minutes`?"]),
            ("", &[("run.until.es", "3")], &["--set run.until.es=3", "did you mean `ess`?"]),
            ("[run]\nuntil = 3", &[], &["integer `3`, expected a table"]),
            ("chains = 3", &[], &["integer `3`, expected a table"]),
            ("run = 3", &[], &["integer `3`, expected a table"]),
            ("explorer = 3", &[], &["integer `3`, expected a table"]),
            ("[target]\nkind = \"normal\"\nmean = \"x\"", &[], &["expected a number or a list of numbers"]),
            ("", &[("target.mean", "x")], &["expected a number or a list of numbers"]),
            ("[training]\nclip = \"x\"", &[], &["line 2", "expected a number"]),
            ("", &[("run.thin", "-2")], &["integer `-2`, expected a whole number from 0 up", "run.thin"]),
            (
                "",
                &[("schedule.criterion", "3")],
                &["schedule.criterion = 3 is not known; known are \"barrier\""],
            ),
            ("", &[("accelerator.integrator", "3")], &["accelerator.integrator = 3 is not known"]),
            ("[schedule]\ncriterion = 3", &[], &["line 2", "schedule.criterion = 3 is not known"]),
            ("[network]\npreset = true", &[], &["network.preset = true is not known", "\"paper\""]),
            ("[accelerator]\nintegrator = 3", &[], &["accelerator.integrator = 3 is not known", "\"euler\""]),
            ("[explorer]\nkind = \"slice\"\nwidth = 0.0", &[], &["explorer.width = 0", "positive"]),
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

    #[test]
    fn errors_in_sections_with_kinds_point_at_the_place() {
        for (text, parts) in [
            // A typo in a field of a kind that is not in use.
            (
                "seed = 2\n[accelerator]\nkind = \"none\"\nintegratr = \"euler\"",
                &["line 4, column 1", "^^^^^^^^^", "`integratr`", "did you mean `integrator`?"][..],
            ),
            (
                "[accelerator]\nkind = \"none\"\nintegrator = \"eulr\"",
                &["line 3", "accelerator.integrator = \"eulr\" is not known", "Did you mean \"euler\"?"],
            ),
            ("[target]\ndim = \"ten\"", &["line 2, column 7", "invalid type", "^^^^^"]),
            ("[target]\nkind = 3", &["line 2, column 8", "target.kind = 3 is not known; known are \"gmm\""]),
            (
                "[target]\nkind = \"gnm\"",
                &["line 2, column 8", "target.kind = \"gnm\"", "Did you mean \"gmm\"?"],
            ),
            (
                "[schedule]\ncriterion = \"bar\"",
                &["schedule.criterion = \"bar\"", "\"barrier\", \"rejection\""],
            ),
            ("[target]\nprecision = 3.0", &["target.precision", "kind = \"normal\", not \"gmm\""]),
            (
                "[target]\nkind = \"gmm\"\nlibrary = \"x.so\"",
                &["target.library", "kind = \"library\", not \"gmm\""],
            ),
            ("[accelerator]\ntransport = \"a\"", &["accelerator.transport", "\"flow\"", "not \"none\""]),
            // All faults at once.
            ("seed = -1\n[chains]\ncount = 'some'\nensembles = -2", &["line 1", "line 3", "line 4", "-2"]),
            ("[chans]\ncount = 3\n[run]\nthin = -1", &["line 1", "`chains`?", "line 4", "`-1`"]),
        ] {
            let message = message(text, &[]);
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
        }
    }

    /// What is wrong in one place is told once, however the text says where it is.
    #[test]
    fn one_fault_is_one_message() {
        for text in [
            "run.thin = -1\nrun.burn_in = 3",
            "run = { thin = -1, burn_in = 3 }",
            "run = { thin = -1 }\n[chains]\ncount = 4",
            "[chans]\ncount = 3\n[chains]\ncount = 4",
            "chans.count = 3",
            "[target]\nkind = 3\ndim = 2",
        ] {
            let message = message(text, &[]);
            assert_eq!(message.matches("TOML parse error").count(), 1, "{message}");
        }
    }

    /// Fields of other kinds, which older resolved configs hold, change nothing.
    #[test]
    fn fields_of_kinds_that_are_not_in_use_have_no_effect() {
        let old = "[reference]\nscale = 1.0\n[explorer]\nkind = \"mala\"\nleapfrog_steps = 5\n\
                   [accelerator]\nkind = \"none\"\ncovariance = \"diagonal\"\nnoise = 0.1\nintegrator = \"exponential\"";
        let new = Config::parse("[explorer]\nkind = \"mala\"", &[]).unwrap();
        assert_eq!(Config::parse(old, &[]).unwrap(), new);
        // As each override is read by itself, their order does not matter.
        let [precision, kind] = [("target.precision", "3.0"), ("target.kind", "normal")];
        assert_eq!(
            Config::parse("", &[precision, kind]).unwrap(),
            Config::parse("", &[kind, precision]).unwrap()
        );
    }
}
