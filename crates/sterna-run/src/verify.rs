//! `sterna verify`: is this target, and this accelerator, sound?
//!
//! Gradients are held against differences; deterministic transports must lead back to where they
//! came from; and for every pair the path weights must satisfy Crooks' relation: whatever bounded a,
//! E_P[σ(l − c) a] = E_Q[σ(c − l) a], with l the log-weight of a path and c = log Zₙ/Zₙ₋₁.

use crate::accelerators::{self, AcceleratorKind, Plan};
use crate::alarms::Code;
use crate::config::Config;
use crate::error::JobError;
use crate::job::Progress;
use crate::job::{no_start, with_chains};
use crate::problem::Problem;
use crate::progress::{Goals, StageClock};
use crate::trial;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sterna::accelerator::{Accelerator, Crossing, Direction};
use sterna::accelerators::Identity;
use sterna::estimates::{Bar, bar, long_run_variance};
use sterna::iteration::{Recorder, Step};
use sterna::path::AnnealingPath;
use sterna::run::{Settings, Stage};
use sterna::streams::Phase;
use sterna::{Batch, Ensemble, Points, Sampler, Schedule, Workspace, iterate};
use sterna_testkit::Verdict;
use sterna_testkit::p_values::normal_two_sided;

/// Probability that a sound config fails, over all checks together.
const FALSE_ALARM: f64 = 1e-4;
const COPIES: usize = 16;
const SNAPSHOTS: u64 = 400;
const ITERATIONS_BETWEEN: u64 = 4;

/// Hears what is being done, how much of it is, and how much there is to do (0 if that is not known).
pub type Watch<'a> = dyn FnMut(&str, u64, u64) + 'a;

/// Checks a problem and the accelerator that a config gives it, tuned as a run would be.
pub fn verify(problem: &Problem, config: &Config) -> Result<Verdict, JobError> {
    verify_watched(problem, config, &mut |_, _, _| ())
}

/// The same, which somebody watches.
pub fn verify_watched(problem: &Problem, config: &Config, watch: &mut Watch) -> Result<Verdict, JobError> {
    let asked = config.accelerator.clone();
    let mut config = config.clone().settled(problem)?;
    if asked == AcceleratorKind::default() {
        // The question is about the target: what a run might choose is verified where that was asked for.
        config.accelerator = asked;
    }
    let plan = accelerators::plan(problem, &config)?;
    if let Some(verdict) = refused(problem, &plan) {
        return Ok(verdict);
    }
    let (mut config, plan) = with_chains(problem, &config, plan)?;
    config.chains.ensembles = COPIES;
    // It ends where sampling would begin: no room is needed for that, unless the choice of a transport looks ahead to it.
    if !matches!(config.accelerator, AcceleratorKind::Auto(_)) {
        config.run.iterations = config.run.thin;
    }
    verify_tuned(problem, plan, config.settings(problem)?, watch).map_err(|error| match error {
        JobError::Sampler(error) => no_start(error, problem),
        other => other,
    })
}

fn verify_tuned(
    problem: &Problem,
    plan: Plan,
    settings: Settings,
    watch: &mut Watch,
) -> Result<Verdict, JobError> {
    // There is no gradient to hold against differences, or Stan's, which the trial has looked at: solvers of differential equations
    // leave it open by more than these differences allow.
    let judge = match problem.target.has_score() && !trial::is_of_stan(problem) {
        true => Judge::watched(plan, &settings, watch)?,
        false => Judge::without_score(tuned(plan, &settings, watch)?, settings.ensembles, watch)?,
    };
    judge.verdict_watched(judge.accelerator(), watch)
}

/// What the trial of a target finds, before which nothing else is worth a look.
fn refused(problem: &Problem, plan: &Plan) -> Option<Verdict> {
    let found = match trial::tried(problem, plan) {
        Ok(tried) => {
            let of_stan = trial::is_of_stan(problem);
            let is_wrong =
                |code: &Code| *code == Code::UnsteadyTarget || (of_stan && *code == Code::ScoreNotGradient);
            tried.alarms.into_iter().find(|alarm| is_wrong(&alarm.code))?.message
        }
        Err(error) => error.to_string(),
    };
    let mut verdict = Verdict::new(FALSE_ALARM);
    verdict.require(false, found);
    Some(verdict)
}

/// Checks a path and its accelerator, once this has been replaced: by itself, or by a broken twin.
pub fn verify_plan(
    plan: Plan,
    settings: Settings,
    replace: impl Fn(Arc<dyn Accelerator>) -> Arc<dyn Accelerator>,
) -> Result<Verdict, JobError> {
    let judge = Judge::new(plan, &settings)?;
    judge.verdict(replace(judge.accelerator()))
}

/// A tuned sampler and points of all its chains, on which accelerators are judged: its own, and broken twins of it.
pub struct Judge {
    sampler: Sampler,
    snapshots: Snapshots,
    round_trips: u64,
    /// What was found of the path itself.
    gradients: Verdict,
}

impl Judge {
    /// Tunes and fits what was planned, and samples its chains.
    pub fn new(plan: Plan, settings: &Settings) -> Result<Self, JobError> {
        Self::watched(plan, settings, &mut |_, _, _| ())
    }

    fn watched(plan: Plan, settings: &Settings, watch: &mut Watch) -> Result<Self, JobError> {
        let mut gradients = Gradients(Verdict::new(FALSE_ALARM));
        gradients.check_at_reference(&*plan.path)?;
        Self::of(tuned(plan, settings, watch)?, settings.ensembles, gradients, watch)
    }

    /// Of a sampler that is frozen for sampling, with so many copies of its chains.
    pub fn of_sampler(sampler: Sampler, copies: usize) -> Result<Self, JobError> {
        let gradients = Gradients(Verdict::new(FALSE_ALARM));
        Self::of(sampler, copies, gradients, &mut |_, _, _| ())
    }

    /// The same where the target has no score.
    fn without_score(sampler: Sampler, copies: usize, watch: &mut Watch) -> Result<Self, JobError> {
        let (snapshots, round_trips) = snapshots(&sampler, copies, watch)?;
        Ok(Self { sampler, snapshots, round_trips, gradients: Verdict::new(FALSE_ALARM) })
    }

    fn of(
        sampler: Sampler,
        copies: usize,
        mut gradients: Gradients,
        watch: &mut Watch,
    ) -> Result<Self, JobError> {
        let (snapshots, round_trips) = snapshots(&sampler, copies, watch)?;
        // The path may have been learned since.
        gradients.check_at_draws(&*sampler.path, &sampler.schedule, &snapshots)?;
        Ok(Self { sampler, snapshots, round_trips, gradients: gradients.0 })
    }

    /// The sampler's own.
    pub fn accelerator(&self) -> Arc<dyn Accelerator> {
        self.sampler.accelerator.clone()
    }

    /// Whether this one is sound on the sampler's path.
    pub fn verdict(&self, accelerator: Arc<dyn Accelerator>) -> Result<Verdict, JobError> {
        self.verdict_watched(accelerator, &mut |_, _, _| ())
    }

    fn verdict_watched(
        &self,
        accelerator: Arc<dyn Accelerator>,
        watch: &mut Watch,
    ) -> Result<Verdict, JobError> {
        let sampler = Sampler { accelerator, ..self.sampler.clone() };
        let mut verdict = self.gradients.clone();
        let pairs = sampler.schedule.pairs();
        for pair in 1..=pairs {
            watch("weighing pairs", pair as u64 - 1, pairs as u64);
            check_pair(&sampler, pair, &self.snapshots, self.round_trips >= 200, &mut verdict)?;
        }
        Ok(verdict)
    }
}

/// The sampler as it would be frozen for sampling.
fn tuned(plan: Plan, settings: &Settings, watch: &mut Watch) -> Result<Sampler, JobError> {
    let mut run = plan.begin(settings.clone())?;
    let (mut clock, mut block) = (StageClock::default(), 1);
    while !matches!(run.progress().0, Stage::Sampling | Stage::Finished) {
        if let Some(at) = clock.snapshot(&Progress::of(&run, Goals::default())) {
            watch(&at.stage, at.done, at.total);
        }
        // Blocks of about a twentieth of a second, so that whoever watches hears something.
        let began = Instant::now();
        run.advance(block)?;
        let is_short = began.elapsed() < Duration::from_millis(50);
        block = if is_short { (2 * block).min(1 << 20) } else { (block / 2).max(1) };
    }
    Ok(run.sampler().clone())
}

/// Every replica's point, by chain: `[chain][copy]`, times one after the other.
struct Snapshots {
    points: Vec<Vec<Vec<f64>>>,
    recorded: u64,
}

impl Recorder for Snapshots {
    fn record(&mut self, step: &Step) -> sterna::Result<()> {
        self.recorded += 1;
        if self.recorded.is_multiple_of(ITERATIONS_BETWEEN) {
            for (chain, copies) in self.points.iter_mut().enumerate() {
                for (copy, points) in copies.iter_mut().enumerate() {
                    points.extend_from_slice(step.ensemble.points.x.row(step.ensemble.row(copy, chain)));
                }
            }
        }
        Ok(())
    }
}

/// Samples of all chains, and the round trips made on the way.
fn snapshots(sampler: &Sampler, copies: usize, watch: &mut Watch) -> Result<(Snapshots, u64), JobError> {
    let schedule = &sampler.schedule;
    let mut ensemble = Ensemble::start(&*sampler.path, &sampler.streams, schedule, 0, copies)?;
    let mut work = Workspace::new(&ensemble);
    let mut out = Snapshots { points: vec![vec![Vec::new(); copies]; schedule.chains()], recorded: 0 };
    let burn_in = 2000;
    // Plain swaps bring the chains to their laws: a broken accelerator must not spoil its own test.
    let plain = Sampler { accelerator: Arc::new(Identity), ..sampler.clone() };
    let total = burn_in + SNAPSHOTS * ITERATIONS_BETWEEN;
    let mut hear = |t| watch("sampling all chains", t, total);
    for t in 1..=burn_in {
        hear(t);
        iterate(t, &mut ensemble, &plain, &mut work, &mut ())?;
    }
    let before = ensemble.round_trips();
    for t in burn_in + 1..=total {
        hear(t);
        iterate(t, &mut ensemble, &plain, &mut work, &mut out)?;
    }
    Ok((out, ensemble.round_trips() - before))
}

/// Whether scores are gradients.
struct Gradients(Verdict);

impl Gradients {
    fn check_at_reference(&mut self, path: &dyn AnnealingPath) -> Result<(), JobError> {
        let streams = sterna::Streams::new(17);
        let mut x = Batch::zeros(8, path.dim());
        path.draw_reference(0.0, &streams, Phase::Check.into(), 0, &[0, 1, 2, 3, 4, 5, 6, 7], &mut x);
        self.compare_with_differences(path, 1.0, &x, "at draws of the reference")
    }

    fn check_at_draws(
        &mut self,
        path: &dyn AnnealingPath,
        schedule: &Schedule,
        snapshots: &Snapshots,
    ) -> Result<(), JobError> {
        let dim = path.dim();
        for chain in [1, schedule.chains() / 2, schedule.chains() - 1] {
            let x: Vec<f64> =
                snapshots.points[chain].iter().take(8).flat_map(|p| p[..dim].to_vec()).collect();
            let (name, beta) = (format!("at draws of chain {chain}"), schedule.betas()[chain]);
            self.compare_with_differences(path, beta, &Batch::from_vec(dim, x), &name)?;
        }
        Ok(())
    }

    /// Central differences at two steps: their disagreement bounds their own error.
    fn compare_with_differences(
        &mut self,
        path: &dyn AnnealingPath,
        beta: f64,
        x: &Batch,
        place: &str,
    ) -> Result<(), JobError> {
        let betas = vec![beta; x.rows()];
        let at = |x: &Batch| -> Result<Points, JobError> {
            let mut points = Points::zeros(x.rows(), x.dim());
            points.x.as_mut_slice().copy_from_slice(x.as_slice());
            path.evaluate(&betas, &mut points)?;
            Ok(points)
        };
        let here = at(x)?;
        for j in 0..x.dim().min(50) {
            let difference = |h: f64| -> Result<Vec<f64>, JobError> {
                let shifted = |h: f64| {
                    let mut x = x.clone();
                    (0..x.rows()).for_each(|i| x.row_mut(i)[j] += h);
                    x
                };
                let (up, down) = (at(&shifted(h))?, at(&shifted(-h))?);
                Ok(up.log_density.iter().zip(&down.log_density).map(|(u, d)| (u - d) / (2.0 * h)).collect())
            };
            let (coarse, fine) = (difference(2e-5)?, difference(1e-5)?);
            for i in 0..x.rows() {
                let score = here.score.row(i)[j];
                let rounding = 1e-10 * here.log_density[i].abs().max(1.0);
                let allowed = 10.0 * (coarse[i] - fine[i]).abs() + rounding + 1e-5 * fine[i].abs().max(1.0);
                if fine[i].is_finite() {
                    let fact = format!(
                        "the score is the gradient {place}: coordinate {j} is {score}, differences give {}",
                        fine[i]
                    );
                    self.0.require((score - fine[i]).abs() <= allowed, fact);
                }
            }
        }
        Ok(())
    }
}

/// Paths of one pair from all snapshots of the chain they start from.
struct Paths {
    /// End points on the lower and on the upper chain.
    ends: [Batch; 2],
    log_weight: Vec<f64>,
}

fn travel(
    sampler: &Sampler,
    pair: usize,
    direction: Direction,
    starts: &[f64],
    t: u64,
) -> Result<Paths, JobError> {
    let Sampler { path, schedule, accelerator, streams, .. } = sampler;
    let crossing = Crossing { accelerator: &**accelerator, path: &**path, schedule, streams };
    let start = Batch::from_vec(path.dim(), starts.to_vec());
    let journey = crossing.cross(pair, direction, t, crossing.start(pair, direction, start.clone())?)?;
    let end = journey.points.x;
    let ends = if direction == Direction::Forward { [start, end] } else { [end, start] };
    Ok(Paths { ends, log_weight: journey.log_weight })
}

fn check_pair(
    sampler: &Sampler,
    pair: usize,
    snapshots: &Snapshots,
    well_mixed: bool,
    verdict: &mut Verdict,
) -> Result<(), JobError> {
    let (lower, upper) = (snapshots.points[pair - 1].concat(), snapshots.points[pair].concat());
    let forward = travel(sampler, pair, Direction::Forward, &lower, 1)?;
    let backward = travel(sampler, pair, Direction::Backward, &upper, 1)?;
    let name = |what: &str| format!("pair {pair}: {what}");
    let numbers = forward.log_weight.iter().chain(&backward.log_weight).all(|w| !w.is_nan());
    verdict.require(numbers, name("no path weight is NaN"));
    if numbers {
        check_return(sampler, pair, &forward, &lower, verdict)?;
        check_crooks(sampler, &name, &forward, &backward, well_mixed, verdict);
        let plain = Sampler { accelerator: Arc::new(Identity), ..sampler.clone() };
        let plain_forward = travel(&plain, pair, Direction::Forward, &lower, 1)?;
        let plain_backward = travel(&plain, pair, Direction::Backward, &upper, 1)?;
        let (ours, variance) = ratio_with_variance(&forward, &backward);
        let (plain, plain_variance) = ratio_with_variance(&plain_forward, &plain_backward);
        // Without overlap neither the ratio nor its error means anything.
        if ours.overlap.min(plain.overlap) > 0.1 {
            // Both come from the same points, which only makes them agree better than the error says.
            let z = (ours.log_ratio - plain.log_ratio) / ((variance + plain_variance).sqrt() + 1e-9);
            verdict.add(name("accelerated and plain weights give the same log Z"), normal_two_sided(z));
        }
    }
    Ok(())
}

/// log Zₙ/Zₙ₋₁ by BAR and its variance.
fn ratio_with_variance(forward: &Paths, backward: &Paths) -> (Bar, f64) {
    let estimate = bar(&forward.log_weight, &backward.log_weight);
    let influence: Vec<f64> = forward
        .log_weight
        .iter()
        .zip(&backward.log_weight)
        .map(|(f, b)| (sigmoid(f - estimate.log_ratio) - sigmoid(estimate.log_ratio - b)) / estimate.slope)
        .collect();
    let copies = influence.chunks_exact(SNAPSHOTS as usize);
    (estimate, copies.map(|s| s.len() as f64 * long_run_variance(s)).sum())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A deterministic transport leads back, with the same weight.
fn check_return(
    sampler: &Sampler,
    pair: usize,
    forward: &Paths,
    starts: &[f64],
    verdict: &mut Verdict,
) -> Result<(), JobError> {
    let again = travel(sampler, pair, Direction::Forward, starts, 2)?;
    if again.ends[1] != forward.ends[1] {
        return Ok(());
    }
    let back = travel(sampler, pair, Direction::Backward, forward.ends[1].as_slice(), 3)?;
    let scale = starts.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let far = apart(back.ends[0].as_slice(), starts) / scale;
    verdict.require(
        far < 1e-8,
        format!("pair {pair}: the transport leads back to its start (off by {far:.1e})"),
    );
    let largest = forward.log_weight.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
    let far = apart(&back.log_weight, &forward.log_weight) / largest;
    verdict.require(
        far < 1e-8,
        format!("pair {pair}: both directions weigh the same path alike (off by {far:.1e})"),
    );
    Ok(())
}

/// E_P[σ(l − c) a] = E_Q[σ(c − l) a] for several a.
fn check_crooks(
    sampler: &Sampler,
    name: &dyn Fn(&str) -> String,
    forward: &Paths,
    backward: &Paths,
    well_mixed: bool,
    verdict: &mut Verdict,
) {
    let are_finite = [forward, backward].map(|paths| paths.log_weight.iter().any(|w| w.is_finite()));
    if are_finite != [true; 2] {
        return verdict.require(false, name("some path weights are finite on both sides"));
    }
    let c = bar(&forward.log_weight, &backward.log_weight).log_ratio;
    if c.is_nan() {
        // Sides that do not meet have nothing that could be compared.
        return;
    }
    let mut compare = |what: String, a: &dyn Fn(&Paths, usize) -> f64| {
        let side = |paths: &Paths, sign: f64| -> (f64, f64) {
            // A path that is never accepted counts nothing, even where `a` of an infinite weight is no number.
            let value = |i: usize| match sigmoid(sign * (paths.log_weight[i] - c)) {
                0.0 => 0.0,
                accepted => accepted * a(paths, i),
            };
            let values: Vec<f64> = (0..paths.log_weight.len()).map(value).collect();
            let copies = values.chunks_exact(SNAPSHOTS as usize);
            let n = values.len() as f64;
            let variance: f64 = copies.map(|s| s.len() as f64 * long_run_variance(s)).sum();
            (values.iter().sum::<f64>() / n, variance / (n * n))
        };
        let ((p, p_variance), (q, q_variance)) = (side(forward, 1.0), side(backward, -1.0));
        // Sides without any spread agree to rounding or not at all.
        let error = (p_variance + q_variance).sqrt() + 1e-12;
        verdict.add(name(&what), normal_two_sided((p - q) / error));
    };
    compare("weights of both directions satisfy Crooks' relation (1)".into(), &|p, i| {
        (p.log_weight[i] - c).tanh()
    });
    compare("weights of both directions satisfy Crooks' relation (2)".into(), &|p, i| {
        (2.0 * (p.log_weight[i] - c)).cos()
    });
    // Where the ladder mixes slowly, chains may not agree on how much each mode weighs.
    if well_mixed {
        for (end, which) in ["lower", "upper"].into_iter().enumerate() {
            for j in 0..sampler.path.dim().min(3) {
                compare(format!("coordinate {j} at the {which} end"), &|p, i| p.ends[end].row(i)[j].tanh());
                compare(format!("square of coordinate {j} at the {which} end"), &|p, i| {
                    p.ends[end].row(i)[j].powi(2).min(100.0)
                });
            }
        }
    }
}

/// What `verify` is run on in the tests: every built-in combination that needs no training.
pub fn combinations() -> Vec<String> {
    let mut out = Vec::new();
    for kind in ["gmm", "dw4", "many-well", "normal", "funnel", "banana"] {
        let target = format!("[target]\nkind = \"{kind}\"\n");
        let mut add = |accelerator: &str| out.push(format!("{target}[accelerator]\n{accelerator}\n"));
        add("kind = \"none\"");
        add("kind = \"affine\"");
        add("kind = \"affine\"\ncovariance = \"full\"");
        add("kind = \"cmcd\"\ndrift = \"none\"\nsteps = 2");
        if kind == "normal" {
            add("kind = \"cmcd\"\ndrift = \"exact\"\nsteps = 3");
        }
        if matches!(kind, "gmm" | "normal") {
            add("kind = \"auto\"");
            for (steps, integrator) in
                [(0, "exponential"), (1, "exponential"), (3, "exponential"), (2, "euler")]
            {
                add(&format!(
                    "kind = \"diffusion\"\nscore = \"exact\"\nsteps = {steps}\nintegrator = \"{integrator}\""
                ));
            }
        }
    }
    out
}
