//! The command line: parse, run, print. All work is done in `sterna-run`.

mod baseline;
mod manual;
mod print;
mod progress;
mod ranks;
mod reproduce;
mod several;
mod terminal;
mod zoo;

use clap::{Args, Parser, Subcommand};
use progress::Bar;
use ranks::Ranks;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sterna_run::alarms::Verdict;
use sterna_run::config::{Count, Until};
use sterna_run::{Config, Job, JobError, Summary, job};

const EXAMPLES: &str = "\
Examples:
  sterna run                                   the built-in demo
  sterna run my.toml --out runs/mine           sample what the config says
  sterna run --set target.kind=dw4 --set chains.count=5 --seed 3
  sterna resume runs/mine --iterations 200000  go on after a stop or a crash, or for longer
  sterna resume runs/mine --set run.until.ess=5000
  sterna watch runs/mine                       its progress, from another shell
  sterna report runs/mine                      write runs/mine/report.html again
  sterna compare runs/a runs/b                 runs side by side: log Z, draws for their cost, barriers
  sterna baseline smc my.toml                  the same by sequential Monte Carlo, to compare with
  sterna merge runs/mine-* --out runs/all       independent runs joined into one result
  sterna verify my.toml                        gradients, weights, invariance
  sterna evaluate my.toml points.csv           log density and score at given points
  sterna init stan my.toml                     a config to begin with
  sterna targets                               what is built in, and how to bring your own
  sterna zoo                                   how often a verdict is wrong, on targets whose truth is known
  sterna reproduce table-gmm                   a table of the paper, ours beside the printed one";

/// Parallel tempering accelerated by transports: samples of multimodal densities, and free energies.
#[derive(Parser)]
#[command(name = "sterna", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    voice: Voice,
    #[command(subcommand)]
    command: Command,
}

/// How much is said, and for whom.
#[derive(Args, Clone, Copy)]
struct Voice {
    /// Say nothing but what is wrong, and what --json asks for
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print results as JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Sample; with no config, the built-in demo
    Run(RunArgs),
    /// Go on after a stop, a crash or with more iterations: same bits as an uninterrupted run
    Resume(ResumeArgs),
    /// Write a config to begin with, with all that can be said in it
    Init {
        /// The kind of target: stan, library, molecule, or one that is built in
        kind: String,
        /// The file to write [default: KIND.toml]
        file: Option<PathBuf>,
    },
    /// List the kinds of targets: what is built in, and how to bring your own
    Targets,
    /// Log density and score of the config's target at points from a .json, .csv or .npy file
    Evaluate {
        /// The config; only its [target] matters
        config: PathBuf,
        /// Points, one per row
        points: PathBuf,
    },
    /// Is this target, and its accelerator, sound? Exit code 1 if not
    Verify {
        /// The config (TOML)
        config: PathBuf,
    },
    /// Live progress of a run, from another shell
    Watch {
        /// The run folder
        folder: PathBuf,
    },
    /// (Re)write the report of a run folder: one page that opens offline
    Report {
        /// The run folder
        folder: PathBuf,
        /// Print this one chart as SVG instead, for slides and papers
        #[arg(long, value_name = "ID")]
        chart: Option<String>,
    },
    /// Runs side by side, on the terminal and on one page: log Z, effective draws for their cost, barriers
    Compare {
        /// Their folders
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// The page to write
        #[arg(long, default_value = "compare.html")]
        out: PathBuf,
    },
    /// Annealed importance sampling or sequential Monte Carlo, on the ladder that a run would tune
    Baseline(baseline::BaselineArgs),
    /// Independent runs of one problem, as of a job array, joined into one result
    Merge {
        /// Their folders
        #[arg(required = true, num_args = 2..)]
        folders: Vec<PathBuf>,
        /// The folder for draws.nc, summary.json and report.html
        #[arg(long)]
        out: PathBuf,
    },
    /// The paper's tables and figures: ours beside the printed ones
    Reproduce(ReproduceArgs),
    /// How far verdicts can be trusted: targets whose truth is known, many seeds each
    Zoo(ZooArgs),
    /// Speed on this machine
    Bench {
        /// What is measured: `cpu`, or `cuda` in programs built with that feature
        #[arg(long, default_value = "cpu")]
        device: String,
        /// `cuda`: one measurement alone (see docs/cuda.md)
        #[arg(long)]
        only: Option<String>,
    },
    /// Completions for a shell: sterna completions bash > ~/.local/share/bash-completion/completions/sterna
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// The manual page: sterna man > sterna.1
    Man,
    /// Runs one cell of an experiment
    #[command(hide = true)]
    MeasureCell {
        /// Its folder
        folder: PathBuf,
        /// The transport it uses
        transport: Option<PathBuf>,
    },
    /// Loads a shared library and evaluates one point, in a process of its own that may crash
    #[command(hide = true)]
    ProbeLibrary {
        /// The library
        library: PathBuf,
        /// The function
        symbol: String,
        /// Coordinates of a point, where the library does not say
        dim: Option<usize>,
    },
}

#[derive(Args)]
struct RunArgs {
    /// The config (TOML)
    config: Option<PathBuf>,
    /// Run folder [default: runs/<target>-<accelerator>-<time>]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seed of all randomness
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Threads: changes speed, never a bit of the result
    #[arg(long)]
    threads: Option<usize>,
    /// Override any field of the config
    #[arg(long = "set", value_name = "key.path=value")]
    overrides: Vec<String>,
    /// Exit with code 3 where the verdict is unsound
    #[arg(long)]
    strict: bool,
}

#[derive(Args)]
struct ResumeArgs {
    /// The run folder
    folder: PathBuf,
    /// Iterations of sampling in all: as many as before, or more
    #[arg(long)]
    iterations: Option<u64>,
    /// Other goals: run.until.ess, log_z_error, minutes, evaluations
    #[arg(long = "set", value_name = "run.until.goal=value")]
    overrides: Vec<String>,
    /// Threads: changes speed, never a bit of the result
    #[arg(long)]
    threads: Option<usize>,
    /// Exit with code 3 where the verdict is unsound
    #[arg(long)]
    strict: bool,
}

#[derive(Args)]
struct ReproduceArgs {
    /// table-gmm, table-mw, table-dw, table-alanine, fig-overview, fig-dimension, fig-free-energy,
    /// fig-neural-samplers, fig-many-well, fig-ou, or all
    #[arg(default_value = "all")]
    name: String,
    /// quick (minutes), standard (an hour or several; what the docs show), full (networks of the paper's sizes, for a GPU)
    #[arg(long, default_value = "quick")]
    budget: String,
    /// Folder for the page and the results
    #[arg(long, default_value = "runs/reproduce")]
    out: PathBuf,
    /// Runs at a time [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Make only the runs whose names hold this word, and the page from what is there
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
}

#[derive(Args)]
struct ZooArgs {
    /// Seeds of each target
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Only targets whose names hold this word
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// Runs at a time [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Folder for trust.md and trust/zoo.jsonl
    #[arg(long, default_value = "runs/zoo")]
    out: PathBuf,
    /// Run again what is there already
    #[arg(long)]
    again: bool,
    /// Folder for the summary, draws and weights of each run
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// Runs the program: 0 well, 1 the run failed, 2 the input was wrong, 3 the results are unsound and that was not to be.
pub fn main_with(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    terminal::mind_readers();
    if let Ok(program) = std::env::current_exe() {
        sterna_run::library::probe_with(program);
    }
    if let Some(folder) = bridgestan() {
        sterna_run::stan::compile::bridgestan_in(folder);
    }
    let voice = cli.voice;
    let outcome = match cli.command {
        Command::Run(arguments) => {
            let work = |ranks: &Ranks, voice| run(&arguments, ranks, voice);
            return ranks::on_all(voice, work, |outcome| ended(outcome, arguments.strict));
        }
        Command::ProbeLibrary { library, symbol, dim } => sterna_run::library::probe(&library, &symbol, dim),
        Command::Resume(arguments) => {
            let work = |ranks: &Ranks, voice| resume(&arguments, ranks, voice);
            return ranks::on_all(voice, work, |outcome| ended(outcome, arguments.strict));
        }
        Command::Init { kind, file } => init(&kind, file, voice),
        Command::Targets => {
            if voice.json {
                print::targets_json()
            } else {
                print::targets()
            }
            Ok(())
        }
        Command::Completions { shell } => {
            print!("{}", manual::completions(shell));
            Ok(())
        }
        Command::Man => {
            print!("{}", manual::page());
            Ok(())
        }
        Command::Evaluate { config, points } => evaluate(&config, &points, voice),
        Command::Verify { config } => return verify(&config, voice),
        Command::Watch { folder } => progress::watch(&folder, voice),
        Command::Report { folder, chart } => report(&folder, chart.as_deref(), voice),
        Command::Compare { folders, out } => several::compare(&folders, &out, voice),
        Command::Merge { folders, out } => several::merge(&folders, out, voice),
        Command::Baseline(arguments) => baseline::baseline(&arguments, voice),
        Command::Zoo(arguments) => return zoo::zoo(&arguments, voice),
        Command::Reproduce(arguments) => return reproduce::reproduce(&arguments, voice),
        Command::MeasureCell { folder, transport } => reproduce::measure_cell(&folder, transport.as_deref()),
        Command::Bench { device, only } => sterna_run::bench::run(&device, only.as_deref(), voice.json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// BridgeStan's folder: what the environment says, or the newest of those that its Python package fetched.
#[expect(
    clippy::disallowed_methods,
    reason = "where a tool is installed is no part of a run: its library is named in the config"
)]
fn bridgestan() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("BRIDGESTAN") {
        return Some(folder.into());
    }
    let all = std::fs::read_dir(PathBuf::from(std::env::var_os("HOME")?).join(".bridgestan")).ok()?;
    let folders =
        all.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.join("Makefile").is_file());
    folders.max_by_key(|path| std::fs::metadata(path).and_then(|folder| folder.modified()).ok())
}

/// Whether a run is to be believed, where that was asked.
fn ended(outcome: Result<Verdict, JobError>, strict: bool) -> ExitCode {
    match outcome {
        Ok(Verdict::Unsound) if strict => ExitCode::from(3),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &JobError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(error.exit_code() as u8)
}

fn verify(path: &Path, voice: Voice) -> ExitCode {
    let mut bar = Bar::watching(voice.quiet);
    let verdict = read(path, &[], voice).and_then(|config| {
        let problem = config.problem()?;
        sterna_run::verify::verify_watched(&problem, &config, &mut |what, done, total| {
            bar.step(what, done, total)
        })
    });
    bar.finish();
    match verdict {
        Ok(verdict) => {
            match (voice.json, voice.quiet) {
                (true, _) => print::verdict_json(&verdict),
                (false, true) => {}
                (false, false) => print::verdict(&verdict),
            }
            ExitCode::from(u8::from(!verdict.passed()))
        }
        Err(error) => failed(&error),
    }
}

/// Writes a config to begin with; what is there stays.
fn init(kind: &str, file: Option<PathBuf>, voice: Voice) -> Result<(), JobError> {
    let text = sterna_run::starter::text(kind)?;
    let file = file.unwrap_or_else(|| PathBuf::from(format!("{kind}.toml")));
    let mut open = std::fs::OpenOptions::new();
    let mut out = open.write(true).create_new(true).open(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            JobError::Config(format!("{} is there already: name another file", file.display()))
        }
        _ => JobError::file("write", &file)(error),
    })?;
    out.write_all(text.as_bytes()).map_err(JobError::file("write", &file))?;
    let file = file.display();
    if voice.json {
        println!("{}", serde_json::json!({"written": file.to_string()}));
    } else if !voice.quiet {
        println!("written: {file}\nsterna verify {file}\nsterna run {file} --out runs/{kind}");
    }
    Ok(())
}

/// Reads a config, and tells what should be known of it.
fn read(path: &Path, overrides: &[(&str, &str)], voice: Voice) -> Result<Config, JobError> {
    let config = Config::read(path, overrides)?;
    config.notes().iter().filter(|_| !voice.quiet).for_each(|note| eprintln!("note: {note}"));
    Ok(config)
}

/// What `--set` says: keys and values.
fn pairs<'a>(overrides: &'a [String], example: &str) -> Result<Vec<(&'a str, &'a str)>, JobError> {
    let pair = |entry: &'a String| {
        let message = || format!("--set {entry}: write key.path=value, for example {example}");
        entry.split_once('=').ok_or_else(|| JobError::Config(message()))
    };
    overrides.iter().map(pair).collect()
}

fn run(arguments: &RunArgs, ranks: &Ranks, given: Voice) -> Result<Verdict, JobError> {
    let voice = ranks.voice(given);
    let demo = arguments.config.is_none() && arguments.overrides.is_empty();
    let overrides = pairs(&arguments.overrides, "chains.count=10")?;
    let mut config = match &arguments.config {
        Some(path) => read(path, &overrides, voice)?,
        // The demo is what it is; whoever sets a field starts from the defaults.
        None => Config::parse(if demo { sterna_run::DEMO } else { "" }, &overrides)?,
    };
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.threads = arguments.threads.unwrap_or(config.threads);
    let folder = ranks.folder(arguments.out.clone().unwrap_or_else(|| job::default_folder(&config)))?;
    if demo && !voice.json && !voice.quiet {
        print::demo_introduction(&config);
    }
    let chains = match config.chains.count {
        Count::Number(chains) => Some(chains),
        Count::Auto => None,
    };
    if let Some(note) = ranks.note(config.chains.ensembles, chains).filter(|_| !voice.quiet) {
        eprintln!("note: {note}");
    }
    let mut bar = Bar::among(given.quiet, ranks, &folder);
    let problem = config.problem()?.among(ranks.exchange.clone());
    let summary = Job::new(problem, config, &folder)?.run(&mut bar);
    bar.finish();
    show(summary?, folder, ranks.voice(given))
}

fn resume(arguments: &ResumeArgs, ranks: &Ranks, given: Voice) -> Result<Verdict, JobError> {
    if ranks.is_first() && !sterna_run::checkpoint::has_begun(&arguments.folder) {
        let folder = arguments.folder.display();
        return Err(JobError::Config(format!(
            "{folder} holds no run; begin one with: sterna run my.toml --out {folder}"
        )));
    }
    let changes = job::Changes {
        iterations: arguments.iterations,
        until: other_goals(arguments)?,
        threads: arguments.threads,
    };
    let folder = &arguments.folder;
    let mut bar = Bar::among(given.quiet, ranks, folder);
    let summary = Job::resume_config(folder, ranks.exchange.clone(), &changes)?.run(&mut bar);
    bar.finish();
    show(summary?, folder.clone(), ranks.voice(given))
}

/// The goals of a run that goes on, where they are to be others.
fn other_goals(arguments: &ResumeArgs) -> Result<Option<Until>, JobError> {
    let overrides = pairs(&arguments.overrides, "run.until.ess=4000")?;
    if let Some((key, value)) = overrides.iter().find(|(key, _)| !key.starts_with("run.until.")) {
        return Err(JobError::Config(format!(
            "--set {key}={value}: a run goes on as it began; its goals (run.until.ess and others), --iterations and \
             --threads may change, for all else begin another run"
        )));
    }
    if overrides.is_empty() {
        return Ok(None);
    }
    Ok(Some(Config::read(&arguments.folder.join("config.toml"), &overrides)?.run.until))
}

fn show(summary: Summary, folder: PathBuf, voice: Voice) -> Result<Verdict, JobError> {
    if voice.json {
        print!("{}", summary.to_json());
    } else if !voice.quiet {
        print::summary(&summary, &folder);
    }
    if summary.finished { Ok(summary.verdict) } else { Err(JobError::Stopped { folder, own: false }) }
}

fn report(folder: &Path, chart: Option<&str>, voice: Voice) -> Result<(), JobError> {
    let Some(id) = chart else {
        let page = sterna_run::report::write(folder)?;
        if voice.json {
            println!("{}", serde_json::json!({"report": page}));
        } else if !voice.quiet {
            println!("{}", page.display());
        }
        return Ok(());
    };
    let drawing = sterna_run::report::drawing(folder, id)?;
    if voice.json {
        println!("{}", serde_json::json!({"chart": id, "svg": drawing}));
    } else {
        print!("{drawing}");
    }
    Ok(())
}

fn evaluate(config: &Path, points: &Path, voice: Voice) -> Result<(), JobError> {
    let config = read(config, &[], voice)?;
    let points = sterna_run::points_file::read_points(points)?;
    let out = sterna_run::evaluate::evaluate(&config.problem()?, &points)?;
    // JSON has no infinities: they are null, as NaN is.
    let score: Vec<&[f64]> = out.score.iter_rows().collect();
    println!("{}", serde_json::json!({"log_density": out.log_density, "score": score}));
    Ok(())
}
