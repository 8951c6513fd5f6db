//! `sterna baseline`: what a run is held against.

use crate::{Voice, pairs, read};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use sterna::annealing::Annealing;
use sterna_run::baseline::{Outcome, Request, run};
use sterna_run::{Config, JobError, files};

/// Which one.
#[derive(Clone, Copy, ValueEnum)]
pub enum Method {
    /// Annealed importance sampling.
    Ais,
    /// Sequential Monte Carlo.
    Smc,
}

/// What `sterna baseline` is told.
#[derive(Args)]
pub struct BaselineArgs {
    /// ais (annealed importance sampling) or smc (sequential Monte Carlo)
    method: Method,
    /// The config (TOML)
    config: Option<PathBuf>,
    /// Seed of all randomness
    #[arg(long)]
    seed: Option<u64>,
    /// Threads: changes speed, never a bit of the result
    #[arg(long)]
    threads: Option<usize>,
    /// Override any field of the config
    #[arg(long = "set", value_name = "key.path=value")]
    overrides: Vec<String>,
    /// Populations, whose spread is the error of log Z
    #[arg(long, default_value_t = 16)]
    populations: usize,
    /// Points of each population
    #[arg(long, default_value_t = 128)]
    particles: usize,
    /// Moves of each point on each chain
    #[arg(long, default_value_t = 1)]
    moves: usize,
    /// Steps of the schedule [default: eight for each pair of the tuned ladder]
    #[arg(long)]
    chains: Option<usize>,
    /// Write all points, with their log weights and densities, to a file (JSON)
    #[arg(long, value_name = "FILE")]
    draws: Option<PathBuf>,
}

/// Climbs, and prints what came of it.
pub fn baseline(arguments: &BaselineArgs, voice: Voice) -> Result<(), JobError> {
    let overrides = pairs(&arguments.overrides, "chains.count=10")?;
    let mut config = match &arguments.config {
        Some(path) => read(path, &overrides, voice)?,
        None => Config::parse("", &overrides)?,
    };
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.threads = arguments.threads.unwrap_or(config.threads);
    let (populations, particles) = (arguments.populations, arguments.particles);
    let annealing = match arguments.method {
        Method::Ais => Annealing::importance(populations, particles),
        Method::Smc => Annealing::sequential(populations, particles),
    };
    let request =
        Request { annealing: Annealing { moves: arguments.moves, ..annealing }, chains: arguments.chains };
    let (found, weighted) = run(config.problem()?, &config, &request)?;
    if let Some(file) = &arguments.draws {
        files::write_whole(file, serde_json::json!(weighted).to_string().as_bytes())?;
    }
    if voice.json {
        println!("{:#}", serde_json::json!(found));
    } else if !voice.quiet {
        show(&found);
    }
    Ok(())
}

fn show(found: &Outcome) {
    let Outcome { log_z, standard_error, evaluations, spent, .. } = found;
    let truth = found.truth.map_or(String::new(), |truth| format!(" (truth {truth:.4})"));
    println!("{} by {}: log Z = {log_z:.4} ± {standard_error:.4}{truth}", found.target, found.method);
    println!(
        "{} populations of {} points over {} chains, {} effective points, drawn anew {} times",
        found.populations,
        found.particles,
        found.chains,
        found.ess.round(),
        found.resampled
    );
    println!(
        "{} evaluations and {:.2} processor seconds, tuning {} and {:.2}",
        evaluations.annealing, spent.annealing.processor_s, evaluations.tuning, spent.tuning.processor_s
    );
}
