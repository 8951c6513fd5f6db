//! The path and the accelerator that a config names.

use crate::builtin;
use crate::config::{Config, Count, known};
use crate::error::JobError;
use crate::molecules;
use std::sync::Arc;
use sterna::Target;
use sterna::acceleration::{Acceleration, Fit, FitAffine, FitCmcd};
use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator, NoDrift, NormalDrift};
use sterna::engine::MakeEngine;
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric, Reference};
use sterna::transport::Drift;
use sterna_neural::{
    Candidate, CmcdSize, Compute, DiffusionSize, FlowSize, Hidden, LadderEngines, Loss, Made, Particles,
    Precision, TrainCmcd, TrainDiffusion, TrainFlow, Training, Trial, load_transport, with_stand_in,
};

/// Path and accelerator of a config, and K.
pub struct Plan {
    /// From reference to target.
    pub path: Arc<dyn AnnealingPath>,
    /// What carries the proposals of swaps.
    pub acceleration: Acceleration,
    /// K.
    pub steps: usize,
}

/// Sizes of a network: those given, else those of the preset.
pub(crate) fn size(
    config: &Config,
    small: (usize, usize),
    paper: (usize, usize),
) -> Result<(usize, usize), JobError> {
    let network = &config.network;
    known("network.preset", &network.preset, &["small", "paper"])?;
    let (layers, width) = if network.preset == "paper" { paper } else { small };
    let (layers, width) = (network.layers.unwrap_or(layers), network.width.unwrap_or(width));
    for (field, value) in [("layers", layers), ("width", width)] {
        if !(1..=100_000).contains(&value) {
            return Err(JobError::Config(format!(
                "network.{field} = {value} is impossible: it must lie between 1 and 100000"
            )));
        }
    }
    Ok((layers, width))
}

/// Settings of training; `steps` and `fine_tune` are used where the config gives none.
pub(crate) fn training(config: &Config, steps: u64, fine_tune: u64) -> Result<Training, JobError> {
    let t = &config.training;
    known("training.loss", &t.loss, &["skl", "forward-kl", "reverse-kl", "log-variance"])?;
    Ok(Training {
        seed: config.seed,
        steps: t.steps.unwrap_or(steps),
        fine_tune: t.fine_tune.unwrap_or(fine_tune),
        batch: t.batch,
        learning_rate: t.learning_rate,
        clip: t.clip,
        ema: t.ema,
        loss: match t.loss.as_str() {
            "forward-kl" => Loss::ForwardKl,
            "reverse-kl" => Loss::ReverseKl,
            "log-variance" => Loss::LogVariance,
            _ => Loss::Skl,
        },
        threads: rayon::current_num_threads(),
        compute: compute(config)?,
        guard: t.guard,
    })
}

/// Where the config has networks trained.
pub(crate) fn compute(config: &Config) -> Result<Compute, JobError> {
    let t = &config.training;
    compute_of("training", &t.device, &t.precision, t.fallback)
}

/// What a section says with its fields `device`, `precision` and `fallback`.
fn compute_of(section: &str, device: &str, precision: &str, fall_back: bool) -> Result<Compute, JobError> {
    known(&format!("{section}.device"), device, &["cpu", "cuda"])?;
    known(&format!("{section}.precision"), precision, &["f32", "tf32"])?;
    let precision = if precision == "tf32" { Precision::Tf32 } else { Precision::F32 };
    Ok(if device == "cuda" { Compute::Cuda { precision, fall_back } } else { Compute::Cpu })
}

/// Targets that a GPU samples: they are operations of its graphs.
const ON_GPU: [&str; 6] = ["gmm", "dw4", "many-well", "normal", "funnel", "banana"];

/// What carries out burn-in and sampling, where the config asks for a GPU, or why that cannot be had.
pub fn engine_maker(config: &Config) -> Result<Option<Arc<dyn MakeEngine>>, JobError> {
    let r = &config.run;
    let compute = compute_of("run", &r.device, &r.precision, r.fallback)?;
    if compute == Compute::Cpu {
        return Ok(None);
    }
    let (kind, accelerator, scale) = (&config.target.kind, &config.accelerator, config.reference.scale);
    let wrong = |why: String| {
        let cure = "use run.device = \"cpu\"";
        Err(JobError::Config(format!("run.device = \"cuda\" is impossible {why}; {cure}")))
    };
    if !ON_GPU.contains(&&kind[..]) {
        let known = ON_GPU.join(", ");
        return wrong(format!(
            "for target.kind = \"{kind}\": a GPU samples built-in targets alone ({known})"
        ));
    }
    if scale != 1.0 {
        return wrong(format!("with reference.scale = {scale}: a GPU starts from N(0, I)"));
    }
    if !["none", "cmcd"].contains(&&accelerator.kind[..]) {
        let kind = &accelerator.kind;
        return wrong(format!(
            "with accelerator.kind = \"{kind}\": a GPU makes plain swaps (\"none\") and those of a trained \"cmcd\""
        ));
    }
    if let Some(drift) = accelerator.drift.as_ref().filter(|_| accelerator.kind == "cmcd") {
        return wrong(format!("with accelerator.drift = \"{drift}\": a GPU knows trained drifts alone"));
    }
    let engines = LadderEngines::open(compute, builtin::graph_target(&config.target)?);
    let cure = "run.fallback = true lets the CPU take over";
    let engines = engines.map_err(|e| JobError::Config(format!("run.device = \"cuda\": {e}; {cure}")))?;
    let Some(engines) = engines else { return Ok(None) };
    let engines = match &accelerator.transport {
        Some(file) => {
            let path = std::path::Path::new(file);
            let bytes = std::fs::read(path).map_err(JobError::file("read accelerator.transport", path))?;
            engines.carried_by(bytes.into())
        }
        None => engines,
    };
    Ok(Some(Arc::new(engines)))
}

fn impossible(error: sterna_neural::Error) -> JobError {
    JobError::Config(match error {
        sterna_neural::Error::Config { field, value, reason } => {
            format!("{field} = {value} is impossible: {reason}")
        }
        error => error.to_string(),
    })
}

/// Steps of a flow's training.
const FLOW_STEPS: u64 = 6000;

/// Steps of a controlled diffusion's training. A step costs about K + 1 calls of the drift, forth and back; an EGNN costs
/// some five times as much as an MLP, and so does a network for each of 32 coordinates, which learns in fewer steps. So
/// trainings take one to four minutes of one core.
fn cmcd_steps(steps: usize, particles: bool, apart: bool) -> u64 {
    let steps = steps.max(1) as u64;
    match (particles, apart) {
        (true, _) => (12_500 / steps).clamp(500, 6000),
        (_, true) => (20_000 / steps).clamp(1000, 8000),
        _ => (120_000 / steps).clamp(1000, 30_000),
    }
}

/// Steps of an energy model's training; half as many where it sees coordinates apart.
const DIFFUSION_STEPS: u64 = 24_000;

/// The particles of the target, if the network is to be one of particles.
fn particles(config: &Config) -> Result<Option<Particles>, JobError> {
    let known = builtin::particles(&config.target);
    match config.network.equivariant {
        Some(true) if known.is_none() => Err(JobError::Config(format!(
            "network.equivariant = true is impossible: target.kind = \"{}\" has no particles",
            config.target.kind
        ))),
        Some(false) => Ok(None),
        _ => Ok(known),
    }
}

/// Hidden layers of a network that sees coordinates apart, small and as large as the paper's.
const APART: ((usize, usize), (usize, usize)) = ((2, 32), (3, 64));

/// This share of the steps of a training apart shows which network suits a target.
const TRIAL_SHARE: u64 = 6;

/// How far a network that sees coordinates apart must lead, in round trips on held-out samples, to be preferred. Drifts
/// did by 2.1 on ManyWell-32 and by 1.3 on GMM-10 after 667 steps; learned paths by 1.26 and by 1.01 after 2000, and there
/// held-out samples flatter the other, whose chains leave them (K = 5, 10 chains, seed 1).
const DRIFT_LEAD: f64 = 1.5;
/// See [`DRIFT_LEAD`].
const PATH_LEAD: f64 = 1.1;

/// How a network sees coordinates, and whether it is made for a trial alone.
#[derive(Clone, Copy)]
struct Sight {
    apart: bool,
    on_trial: bool,
}

/// Trains the network that sees coordinates as the config says; if it says nothing, the better of the two. Both are told
/// whether they are seen apart: `settings` of training, and `make` of the network.
fn better_of(
    config: &Config,
    particles: Option<Particles>,
    lead: f64,
    settings: impl Fn(bool) -> Result<Training, JobError>,
    make: impl Fn(Sight, Training) -> Result<Arc<dyn Fit>, JobError>,
) -> Result<Acceleration, JobError> {
    let coordinates = config.network.coordinates.as_deref();
    if let Some(word) = coordinates {
        known("network.coordinates", word, &["together", "apart"])?;
        if particles.is_some() && word == "apart" {
            return Err(JobError::Config(
                "network.coordinates = \"apart\" is impossible on particles, unless network.equivariant = false"
                    .into(),
            ));
        }
    }
    if coordinates.is_some() || particles.is_some() {
        let apart = coordinates == Some("apart");
        return Ok(Acceleration::Fitted(make(Sight { apart, on_trial: false }, settings(apart)?)?));
    }
    let short_steps = settings(true)?.steps.div_ceil(TRIAL_SHARE);
    let candidate = |apart| -> Result<Candidate, JobError> {
        let training = settings(apart)?;
        let short_training = Training { steps: short_steps, fine_tune: 0, ..training.clone() };
        let short = make(Sight { apart, on_trial: true }, short_training)?;
        let full_steps = training.steps + training.fine_tune;
        let full = make(Sight { apart, on_trial: false }, training)?;
        Ok(Candidate { short, full, short_steps, full_steps })
    };
    Ok(Acceleration::Fitted(Arc::new(Trial::new(vec![candidate(false)?, candidate(true)?], lead))))
}

/// K as given, or the default; the kind must allow it.
fn steps(
    config: &Config,
    default: usize,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<usize, JobError> {
    let steps = config.accelerator.steps.unwrap_or(default);
    if allowed.contains(&steps) {
        return Ok(steps);
    }
    let (kind, low, high) = (&config.accelerator.kind, allowed.start(), allowed.end());
    Err(JobError::Config(format!(
        "accelerator.steps = {steps} is impossible for kind = \"{kind}\": it must lie between {low} and {high}"
    )))
}

fn integrator(config: &Config) -> Result<Integrator, JobError> {
    let name = &config.accelerator.integrator;
    known("accelerator.integrator", name, &["exponential", "euler"])?;
    Ok(if name == "euler" { Integrator::Euler } else { Integrator::Exponential })
}

/// Along a diffusion path that is known before the run.
fn along(path: Diffused, config: &Config) -> Result<Plan, JobError> {
    let steps = steps(config, 5, 0..=10_000)?;
    let acceleration = match steps {
        0 => Acceleration::None,
        _ => Acceleration::Given(Arc::new(Diffusion {
            steps: DiffusionSteps::new(steps, integrator(config)?)?,
        })),
    };
    Ok(Plan { path: Arc::new(path), acceleration, steps })
}

/// The trained transport of a file, if it fits the config.
fn transport(config: &Config, file: &str, target: Arc<dyn Target>) -> Result<Plan, JobError> {
    let (accelerator, dim) = (&config.accelerator, target.dim());
    let path = std::path::Path::new(file);
    let bytes = std::fs::read(path).map_err(JobError::file("read accelerator.transport", path))?;
    let loaded = load_transport(bytes, file).map_err(|e| JobError::Config(e.to_string()))?;
    let wrong = |ours: String, theirs: String| {
        Err(JobError::Config(format!("{ours}, but the transport in {file} was made for {theirs}")))
    };
    if accelerator.kind != loaded.kind {
        return wrong(format!("accelerator.kind = \"{}\"", accelerator.kind), format!("\"{}\"", loaded.kind));
    }
    let other = [("accelerator.drift", &accelerator.drift), ("accelerator.score", &accelerator.score)];
    if let Some((name, _)) = other.iter().find(|(_, given)| given.is_some()) {
        return Err(JobError::Config(format!("{name} and accelerator.transport exclude each other")));
    }
    if config.reference.scale != 1.0 {
        return wrong(format!("reference.scale = {}", config.reference.scale), "1".into());
    }
    if dim != loaded.dim {
        return wrong(format!("the target has dimension {dim}"), format!("dimension {}", loaded.dim));
    }
    let (carrier, steps, schedule) = match loaded.made {
        // A path does not know how many chains lie along it, nor in how many steps they are joined.
        Made::Path(path) => return along(path.to(target)?, config),
        Made::Pairs { accelerator, steps, schedule } => (accelerator, steps, schedule),
    };
    if let Some(ours) = accelerator.steps.filter(|&s| s != steps) {
        return wrong(format!("accelerator.steps = {ours}"), format!("{steps} steps"));
    }
    let chains = schedule.chains();
    match &config.chains.count {
        Count::Number(count) if *count != chains => {
            wrong(format!("chains.count = {count}"), format!("{chains} chains"))
        }
        Count::Word(word) => wrong(format!("chains.count = \"{word}\""), format!("{chains} chains")),
        Count::Number(_) => {
            let path = Arc::new(Geometric::new(Reference::standard_normal(dim), target)?);
            Ok(Plan { path, acceleration: Acceleration::Kept(carrier, schedule), steps })
        }
    }
}

/// What the config asks for, or why it cannot be had.
pub fn plan(config: &Config, target: Arc<dyn Target>) -> Result<Plan, JobError> {
    if config.target.is_molecule() {
        return molecules::plan(config);
    }
    molecules::refuse_settings(config)?;
    let accelerator = &config.accelerator;
    let scale = config.reference.scale;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(JobError::Config(format!(
            "reference.scale = {scale} is impossible: it must be positive"
        )));
    }
    known("accelerator.kind", &accelerator.kind, &["none", "affine", "flow", "cmcd", "diffusion"])?;
    let wrong = |message: String| Err(JobError::Config(message));
    let geometric = |target: Arc<dyn Target>| -> Result<Arc<dyn AnnealingPath>, JobError> {
        let reference = Reference::normal(vec![0.0; target.dim()], vec![scale; target.dim()]);
        Ok(Arc::new(Geometric::new(reference, target)?))
    };
    if let Some(file) = &accelerator.transport {
        return transport(config, file, target);
    }
    let trained = accelerator.kind == "flow" || (accelerator.kind == "cmcd" && accelerator.drift.is_none());
    if trained && scale != 1.0 {
        return wrong(format!(
            "reference.scale = {scale} is impossible for a trained transport: its loss knows N(0, I)"
        ));
    }
    Ok(match accelerator.kind.as_str() {
        "none" => {
            let steps = steps(config, 0, 0..=0)?;
            Plan { path: geometric(target)?, acceleration: Acceleration::None, steps }
        }
        "flow" => {
            let path = geometric(target)?;
            let (layers, width) = size(config, (8, 48), (20, 128))?;
            let size = FlowSize { layers, hidden: Hidden::new(2, width) };
            let graph_target = builtin::graph_target(&config.target)?;
            let training = training(config, FLOW_STEPS, 0)?;
            let fit =
                with_stand_in(training, |t| TrainFlow::new(path.clone(), graph_target.clone(), size, t));
            let acceleration = Acceleration::Fitted(fit.map_err(impossible)?);
            Plan { path, acceleration, steps: steps(config, 1, 1..=1)? }
        }
        "cmcd" if accelerator.drift.is_none() => {
            let path = geometric(target)?;
            let particles = particles(config)?;
            let steps = steps(config, 5, 1..=10_000)?;
            let graph_target = builtin::graph_target(&config.target)?;
            let settings = |apart| training(config, cmcd_steps(steps, particles.is_some(), apart), 0);
            let make = |Sight { apart, on_trial }: Sight, training| -> Result<Arc<dyn Fit>, JobError> {
                let (layers, width) = match particles {
                    Some(_) => size(config, (2, 32), (4, 64))?,
                    None if apart => size(config, APART.0, APART.1)?,
                    None => size(config, (3, 96), (4, 512))?,
                };
                let hidden = Hidden::new(layers, width);
                let size = CmcdSize {
                    steps,
                    hidden,
                    particles,
                    apart,
                    // On DW-4 it brought nothing. A trial compares what the networks see by themselves.
                    along_score: !on_trial && config.network.along_score.unwrap_or(particles.is_none()),
                    noise: accelerator.noise,
                };
                with_stand_in(training, |t| TrainCmcd::new(path.clone(), graph_target.clone(), size, t))
                    .map_err(impossible)
            };
            let acceleration = better_of(config, particles, DRIFT_LEAD, settings, make)?;
            Plan { path, acceleration, steps }
        }
        "affine" => {
            known("accelerator.covariance", &accelerator.covariance, &["diagonal", "full"])?;
            let fit = FitAffine { full: accelerator.covariance == "full" };
            Plan {
                path: geometric(target)?,
                acceleration: Acceleration::Fitted(Arc::new(fit)),
                steps: steps(config, 1, 1..=1)?,
            }
        }
        "cmcd" => {
            let drift: Arc<dyn Drift> = match accelerator.drift.as_deref() {
                Some("none") => Arc::new(NoDrift),
                Some("exact") if scale != 1.0 => {
                    return wrong(format!(
                        "accelerator.drift = \"exact\" needs reference.scale = 1, not {scale}"
                    ));
                }
                Some("exact") => match crate::builtin::normal(&config.target)? {
                    Some(normal) => Arc::new(NormalDrift::new(normal)),
                    None => {
                        return wrong(format!(
                            "accelerator.drift = \"exact\" is known for target.kind = \"normal\" alone, not \"{}\"",
                            config.target.kind
                        ));
                    }
                },
                Some(other) => {
                    known("accelerator.drift", other, &["none", "exact"])?;
                    unreachable!("known names are handled above")
                }
                None => unreachable!("a drift that is not given is trained"),
            };
            if !(accelerator.noise > 0.0 && accelerator.noise.is_finite()) {
                return wrong(format!(
                    "accelerator.noise = {} is impossible: it must be positive",
                    accelerator.noise
                ));
            }
            let steps = steps(config, 5, 1..=10_000)?;
            let fit = FitCmcd { drift, steps, noise: accelerator.noise };
            let acceleration = Acceleration::Fitted(Arc::new(fit));
            Plan { path: geometric(target)?, acceleration, steps }
        }
        _ => {
            let integrator = integrator(config)?;
            if scale != 1.0 {
                return wrong(format!(
                    "reference.scale = {scale} is impossible with a diffusion, which starts at N(0, I)"
                ));
            }
            if let Some(score) = accelerator.score.as_deref() {
                known("accelerator.score", score, &["exact"])?;
                let Some(path) = Diffused::exact(target) else {
                    return wrong(format!(
                        "accelerator.score = \"exact\" needs a target that knows its own diffusion (gmm, normal), not \"{}\"",
                        config.target.kind
                    ));
                };
                return along(path, config);
            }
            let path = geometric(target.clone())?;
            let particles = particles(config)?;
            let graph_target = builtin::graph_target(&config.target)?;
            let steps = steps(config, 5, 0..=10_000)?;
            // Waves of the coordinates help where modes are many in few dimensions; in more they lead chains astray.
            let waves = if target.dim() > 16 { 0 } else { 3 };
            let settings = |apart: bool| training(config, DIFFUSION_STEPS / if apart { 2 } else { 1 }, 0);
            let acceleration =
                better_of(config, particles, PATH_LEAD, settings, |Sight { apart, .. }, training| {
                    let (layers, width) = match particles {
                        Some(_) => size(config, (3, 16), (3, 128))?,
                        None if apart => size(config, APART.0, APART.1)?,
                        None if config.target.kind == "many-well" => size(config, (3, 128), (3, 256))?,
                        None => size(config, (3, 96), (3, 128))?,
                    };
                    let hidden = Hidden::new(layers, width);
                    let size = DiffusionSize { steps, integrator, hidden, waves, particles, apart };
                    let make = |training| {
                        let fit = TrainDiffusion::new(path.clone(), target.clone(), size, training)?;
                        Ok(fit.with_recorded(graph_target.clone()))
                    };
                    with_stand_in(training, make).map_err(impossible)
                })?;
            Plan { path, acceleration, steps }
        }
    })
}
