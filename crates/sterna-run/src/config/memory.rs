//! How much memory a run would take at most: what is beyond all bounds is refused before anything is written.

use super::{Config, PathShape};
use crate::accelerators::MOST_FULL;
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::Components;
use sterna::estimates::most_kept;
use sterna::fitted::Covariance as Fitted;
use sterna::records::LATEST;
use sterna::run::Settings;
use sterna_neural::Loss;

/// GiB that a run may take, where the config does not say.
pub const USUAL_GIB: f64 = 4.0;

const GIB: f64 = (1u64 << 30) as f64;

/// Weights of a pair that are kept in memory one by one; more are folded.
const KEPT: u64 = 2 * LATEST;

/// Iterations of a round of tuning that are kept, where its length is not said by the config but doubles.
const KEPT_OF_DOUBLING: u64 = 1 << 20;

/// One number of a config, and what it usually is at most: the one that exceeds this most is to blame.
struct Factor {
    key: &'static str,
    value: f64,
    usual: f64,
}

/// Something that takes memory: so many bytes times all factors. In floating point nothing overflows.
struct Need {
    what: &'static str,
    bytes: f64,
    factors: Vec<Factor>,
}

impl Need {
    fn gib(&self) -> f64 {
        self.factors.iter().map(|factor| factor.value).product::<f64>() * self.bytes / GIB
    }

    fn to_blame(&self) -> Option<&Factor> {
        let excess = |factor: &&Factor| factor.value / factor.usual;
        self.factors.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)))
    }
}

/// Refuses a run that would take more than it may.
pub(super) fn check(config: &Config, problem: &Problem, settings: &Settings) -> Result<(), JobError> {
    let most = config.run.memory_gib;
    if !(most > 0.0 && most.is_finite()) {
        return Err(JobError::setting("run.memory_gib", most, "it must be positive and finite"));
    }
    let needs = needs(config, problem, settings);
    let in_all: f64 = needs.iter().map(Need::gib).sum();
    if in_all <= most {
        return Ok(());
    }
    let largest = needs.iter().max_by(|a, b| a.gib().total_cmp(&b.gib()));
    let Some((need, factor)) = largest.and_then(|need| Some((need, need.to_blame()?))) else { return Ok(()) };
    let reason = format!(
        "the run might take {} GiB of memory, most of it for {}; give less, or allow more than run.memory_gib = {most}",
        rounded(in_all),
        need.what
    );
    Err(JobError::setting(factor.key, factor.value, reason))
}

fn rounded(gib: f64) -> String {
    if gib < 1e6 { format!("{gib:.0}") } else { format!("{gib:.0e}") }
}

fn needs(config: &Config, problem: &Problem, settings: &Settings) -> Vec<Need> {
    let factor = |key, value: f64, usual| Factor { key, value, usual };
    let chains = || factor("chains.count", settings.chains as f64, 12.0);
    let ensembles = || factor("chains.ensembles", settings.ensembles as f64, 4.0);
    let dim = || factor("target.dim", problem.dim() as f64, 32.0);
    let kept = |iterations: u64, most: u64| factor("run.iterations", iterations.min(most) as f64, 1e5);
    // Of more draws there are block means, or an even share.
    let of_draws = most_kept(problem.dim()) as u64;
    let rows = || vec![chains(), ensembles()];
    let with = |mut factors: Vec<Factor>, more: Factor| {
        factors.push(more);
        factors
    };
    let round = match settings.fit {
        None => settings.round_iterations,
        Some(_) => settings.round_iterations.clamp(4, KEPT_OF_DOUBLING >> 8) << 8,
    };
    let mut needs = vec![
        // Points, scores, momenta, journeys and their copies; what is counted of each row.
        Need { what: "the points of all chains", bytes: 400.0, factors: with(rows(), dim()) },
        Need { what: "the records of all chains", bytes: 1200.0, factors: rows() },
        // A thousand energies of each chain, for the pictures; a checkpoint is a copy.
        Need {
            what: "the energies of the first ladders",
            bytes: 2.0 * 8.0 * 1024.0,
            factors: vec![chains(), factor("chains.ensembles", settings.ensembles.min(4) as f64, 4.0)],
        },
        Need {
            what: "a round of tuning",
            // A path over knots keeps what each sample says of both ends.
            bytes: if config.schedule.path == PathShape::Spline { 72.0 } else { 24.0 },
            factors: with(rows(), factor("schedule.iterations", round as f64, 1100.0)),
        },
        // Each pair swaps in every other iteration, in two directions; a checkpoint is a copy.
        Need {
            what: "the weights of all pairs",
            bytes: 24.0,
            factors: with(rows(), kept(settings.iterations, KEPT)),
        },
        Need {
            what: "the draws",
            bytes: 48.0,
            factors: vec![ensembles(), dim(), kept(settings.iterations / settings.thin.max(1), of_draws)],
        },
    ];
    if let Some(every) = settings.trajectories {
        let frames = factor("run.iterations", settings.iterations as f64 / every.max(1) as f64, 1e4);
        // Beside each point its log density, replica and moves.
        let numbers = factor("target.dim", problem.dim() as f64 + 3.0, 32.0);
        let factors = with(with(rows(), numbers), frames);
        needs.push(Need { what: "trajectories (output.every)", bytes: 16.0, factors });
    }
    if config.accelerator.kind() != "none" {
        let samples = settings.collect as f64 * 2f64.powi(settings.fits as i32 - 1);
        let factors = with(with(rows(), dim()), factor("training.collect", samples, 5e4));
        // Some come with the path's scores at them.
        let bytes = if config.training.loss == Loss::Scores { 16.0 } else { 8.0 };
        needs.push(Need { what: "the samples that a transport is fitted to", bytes, factors });
    }
    needs.extend(covariances(config, problem, settings));
    needs.extend(networks(config, problem, settings));
    needs
}

/// Matrices of dim² numbers, where they are asked for.
fn covariances(config: &Config, problem: &Problem, settings: &Settings) -> Option<Need> {
    let count = match &config.reference {
        super::ReferenceKind::Fitted(fitted) if fitted.covariance == Some(Fitted::Dense) => {
            let most = match fitted.components {
                Components::Auto => 8,
                Components::Number(count) => count,
            };
            most + settings.chains
        }
        _ => match &config.accelerator {
            super::AcceleratorKind::Affine(affine) if affine.is_full() => settings.chains,
            super::AcceleratorKind::Auto(_) if problem.dim() <= MOST_FULL => settings.chains,
            _ => return None,
        },
    };
    let dim = |usual| Factor { key: "target.dim", value: problem.dim() as f64, usual };
    let count = Factor { key: "chains.count", value: count as f64, usual: 12.0 };
    Some(Need { what: "covariances", bytes: 48.0, factors: vec![dim(512.0), dim(512.0), count] })
}

/// Weights of networks with their gradients and moments, and all values of a step of training.
fn networks(config: &Config, problem: &Problem, settings: &Settings) -> Vec<Need> {
    if !config.accelerator.trains() {
        return Vec::new();
    }
    let network = &config.network;
    let layers = Factor { key: "network.layers", value: network.layers.unwrap_or(20) as f64, usual: 20.0 };
    let width = |usual| Factor { key: "network.width", value: network.width.unwrap_or(128) as f64, usual };
    let inputs = (problem.dim() + settings.chains + 8) as f64;
    // A layer of the given width, and one from and to the coordinates, eight bytes each with five copies.
    let weights = layers.value * width(1.0).value * (width(1.0).value + 4.0 * inputs) * 80.0;
    let steps = config.accelerator.steps().unwrap_or(5).max(1);
    let batch = config.training.batch.unwrap_or_else(|| config.accelerator.batch(config.chains.count));
    let of_step = 60.0 * (1.0 + inputs / width(1.0).value.max(1.0));
    let journeys = vec![
        Factor { key: "network.layers", value: layers.value, usual: 20.0 },
        width(512.0),
        Factor { key: "training.batch", value: batch as f64, usual: 1024.0 },
        Factor { key: "accelerator.steps", value: steps as f64, usual: 5.0 },
    ];
    let only_layers = vec![layers, width(512.0)];
    let share =
        |bytes: f64, factors: &[Factor]| bytes / factors.iter().map(|f| f.value.max(1.0)).product::<f64>();
    vec![
        Need { what: "the weights of networks", bytes: share(weights, &only_layers), factors: only_layers },
        Need { what: "a step of training", bytes: of_step, factors: journeys },
    ]
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn refusal(overrides: &[(&str, &str)]) -> Option<String> {
        let config = Config::parse("", overrides).unwrap();
        let problem = config.problem().unwrap();
        config.settings(&problem).err().map(|error| error.to_string())
    }

    #[test]
    fn what_takes_too_much_is_named() {
        let cmcd = ("accelerator.kind", "cmcd");
        for (key, value, more) in [
            ("chains.count", "10000000", None),
            ("chains.count", "1000000", None),
            ("chains.ensembles", "10000000", None),
            ("schedule.iterations", "1000000000", None),
            ("target.dim", "131072", None),
            ("training.collect", "1000000000", Some(cmcd)),
            ("training.batch", "1000000000", Some(cmcd)),
            ("network.width", "100000", Some(cmcd)),
        ] {
            let overrides: Vec<_> = more.into_iter().chain([(key, value)]).collect();
            let said = refusal(&overrides).unwrap_or_else(|| panic!("{key} = {value} was accepted"));
            assert!(said.starts_with(&format!("{key} = {value} is impossible")), "{said}");
            assert!(said.contains("GiB of memory") && said.contains("run.memory_gib = 4"), "{said}");
        }
        assert_eq!(
            refusal(&[("chains.count", "1000000"), ("run.iterations", "100"), ("run.memory_gib", "90")]),
            None
        );
        // Of a wide density fewer draws are kept in memory: defaults run it.
        for dim in ["500", "2000"] {
            let wide = [("target.kind", "normal"), ("target.dim", dim), ("reference.kind", "fitted")];
            let usual = [("chains.ensembles", "4"), ("run.iterations", "1048576")];
            assert_eq!(refusal(&[wide.as_slice(), &usual].concat()), None, "{dim}");
        }
        assert!(refusal(&[("run.memory_gib", "0")]).unwrap().contains("run.memory_gib = 0 is impossible"));
    }
}
