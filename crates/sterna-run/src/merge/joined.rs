//! The summary of runs that were joined.

use super::Source;
use super::draws::Joined;
use crate::alarms::{Alarm, Code, Looked, Verdict, few_draws, few_for_a_mean, low_ess, r_hat_beyond_chance};
use crate::summary::{Quantity, Summary, WorstMixing, number};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sterna::estimates::mixing;
use sterna_testkit::p_values::chi_square;

/// A run that was joined with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its folder.
    pub folder: PathBuf,
    /// Its seed.
    pub seed: u64,
    /// What its own alarms came to.
    pub verdict: Verdict,
    /// Its own estimate.
    #[serde(deserialize_with = "number::one")]
    pub log_z: f64,
    /// Of `log_z`.
    #[serde(deserialize_with = "number::one")]
    pub log_z_error: f64,
}

/// Estimates of log Z that chance lets lie so far apart less often than this are told to disagree.
const FALSE_ALARM: f64 = 1e-3;

/// What all runs together found. What belongs to one ladder, as its schedule and its rejections, is that of the first run.
pub(super) fn summary(runs: &[Source], draws: &Joined) -> Summary {
    let first = &runs[0].summary;
    let members: Vec<Member> = runs.iter().map(Member::of).collect();
    let (quantities, looked) = quantities(first, draws);
    let (parameters, observables) = quantities.split_at(first.parameters.len().min(quantities.len()));
    let mut all = Summary {
        stopped_by: None,
        goals: None,
        mixing: WorstMixing::of(&looked),
        parameters: parameters.to_vec(),
        observables: observables.to_vec(),
        molecule: None,
        ..first.clone()
    };
    all.setup.ensembles = draws.x.len();
    all.setup.iterations = runs.iter().map(|run| run.summary.setup.iterations).min().unwrap_or(0);
    (all.log_z.bar, all.log_z.standard_error) = log_z(&members);
    all.log_z.geometric_mean = mean(runs, |run| run.log_z.geometric_mean);
    all.log_z.forward = mean(runs, |run| run.log_z.forward);
    all.log_z.backward = mean(runs, |run| run.log_z.backward);
    all.swaps.round_trips = runs.iter().map(|run| run.summary.swaps.round_trips).sum();
    all.swaps.round_trip_rate = mean(runs, |run| run.swaps.round_trip_rate);
    of_target_chain(&mut all, runs);
    of_cost(&mut all, runs);
    all.alarms = alarms(runs, &members, &looked, &all);
    all.verdict = Verdict::of(&all.alarms);
    all.merged = members;
    all
}

impl Member {
    fn of(run: &Source) -> Self {
        let Summary { setup, verdict, log_z, .. } = &run.summary;
        let (seed, verdict) = (setup.seed, *verdict);
        Self {
            folder: run.folder.clone(),
            seed,
            verdict,
            log_z: log_z.bar,
            log_z_error: log_z.standard_error,
        }
    }
}

fn mean(runs: &[Source], of: impl Fn(&Summary) -> f64) -> f64 {
    runs.iter().map(|run| of(&run.summary)).sum::<f64>() / runs.len() as f64
}

/// The rows of parameters and observables, and what R̂ is judged by.
fn quantities(first: &Summary, draws: &Joined) -> (Vec<Quantity>, Vec<Looked>) {
    let names: Vec<&str> = first.parameters.iter().chain(&first.observables).map(|q| &*q.name).collect();
    let names = if names.len() == draws.coordinates() { names } else { Vec::new() };
    let of = |(coordinate, name): (usize, &&str)| {
        let (quantity, mixing) = Quantity::of(name, &draws.column(coordinate), 1);
        (quantity, Looked { name: name.to_string(), mixing, moves: false })
    };
    let (quantities, mut looked): (Vec<_>, Vec<_>) = names.par_iter().enumerate().map(of).unzip();
    let views: Vec<&[f64]> = draws.log_density.iter().map(|ladder| &ladder[..]).collect();
    looked.push(Looked { name: "the log density".into(), mixing: mixing(&views), moves: false });
    (quantities, looked)
}

/// Each by the weight of its error; the error grows with how far apart they are, where that is more than theirs let expect.
fn log_z(members: &[Member]) -> (f64, f64) {
    let known: Vec<&Member> = members.iter().filter(|m| m.log_z.is_finite() && m.log_z_error > 0.0).collect();
    let precision: f64 = known.iter().map(|m| m.log_z_error.powi(-2)).sum();
    let mean = known.iter().map(|m| m.log_z * m.log_z_error.powi(-2)).sum::<f64>() / precision;
    let (apart, degrees) = (apart(members, mean), known.len().saturating_sub(1).max(1));
    (mean, (1.0f64.max(apart / degrees as f64) / precision).sqrt())
}

/// Σ (distance / error)² from a mean, of those whose estimate is known.
fn apart(members: &[Member], mean: f64) -> f64 {
    let of = |m: &Member| ((m.log_z - mean) / m.log_z_error).powi(2);
    members.iter().filter(|m| m.log_z_error > 0.0).map(of).filter(|distance| !distance.is_nan()).sum()
}

fn of_target_chain(all: &mut Summary, runs: &[Source]) {
    let chains = || runs.iter().map(|run| &run.summary.target_chain);
    let count = runs.len() as f64;
    let chain = &mut all.target_chain;
    for j in 0..chain.expectations.mean.len() {
        chain.expectations.mean[j] = chains().map(|c| c.expectations.mean[j]).sum::<f64>() / count;
        let variance: f64 = chains().map(|c| c.expectations.standard_error[j].powi(2)).sum();
        chain.expectations.standard_error[j] = variance.sqrt() / count;
        chain.ess.coordinates[j] = chains().map(|c| c.ess.coordinates[j]).sum();
    }
    chain.ess.minimum = match chain.ess.coordinates.is_empty() {
        true => chains().map(|c| c.ess.minimum).sum(),
        false => chain.ess.coordinates.iter().copied().fold(f64::INFINITY, f64::min),
    };
}

fn of_cost(all: &mut Summary, runs: &[Source]) {
    for run in &runs[1..] {
        let (sum, more) = (&mut all.cost.evaluations, &run.summary.cost.evaluations);
        for (sum, more) in [
            (&mut sum.target, more.target),
            (&mut sum.trial, more.trial),
            (&mut sum.climbing, more.climbing),
            (&mut sum.last_look, more.last_look),
            (&mut sum.sampling, more.sampling),
            (&mut sum.training, more.training),
            (&mut sum.network, more.network),
            (&mut sum.network_training, more.network_training),
        ] {
            *sum += more;
        }
        let (sum, more) = (&mut all.cost.time, &run.summary.cost.time);
        for (sum, more) in [(&mut sum.clock, more.clock), (&mut sum.processor, more.processor)] {
            sum.tuning_s += more.tuning_s;
            sum.collecting_s += more.collecting_s;
            sum.training_s += more.training_s;
            sum.sampling_s += more.sampling_s;
        }
        all.moves.bad_densities.count += run.summary.moves.bad_densities.count;
    }
    // Those compare one run with itself.
    (all.cost.payoff, all.cost.break_even) = (None, None);
}

/// What each run was warned of, but for what more draws have cured, and what is seen between them.
fn alarms(runs: &[Source], members: &[Member], looked: &[Looked], all: &Summary) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    for run in runs {
        for alarm in run.summary.alarms.iter().filter(|alarm| !is_judged_anew(&alarm.code)) {
            let message = format!("{}: {}", run.folder.display(), alarm.message);
            alarms.push(Alarm { code: alarm.code.clone(), message });
        }
    }
    let (names, means): (Vec<String>, Vec<f64>) =
        all.parameters.iter().chain(&all.observables).map(|q| (q.name.clone(), q.ess)).unzip();
    let seen = [
        (Code::RHat, r_hat_beyond_chance(looked, "runs, their ladders or halves of these")),
        (Code::FewDraws, few_draws(looked, all.molecule.is_some())),
        (Code::LowEss, low_ess(looked).or_else(|| few_for_a_mean(looked, &means, &|j| names[j].clone()))),
    ];
    let seen = seen.into_iter().filter_map(|(code, message)| Some(Alarm { code, message: message? }));
    alarms.extend(seen);
    let apart = apart(members, all.log_z.bar);
    let known = members.iter().filter(|m| m.log_z.is_finite() && m.log_z_error > 0.0).count();
    if known > 1 && chi_square(apart, known - 1) < FALSE_ALARM {
        let each = members.iter().map(|m| format!("{:.2} ± {:.2}", m.log_z, m.log_z_error));
        let message = format!(
            "log Z of the runs lie farther apart than their errors let expect: {}; some may have missed a mode: look at their means, \
             and run longer or with more chains",
            each.collect::<Vec<_>>().join(", ")
        );
        alarms.push(Alarm { code: Code::LogZDisagrees, message });
    }
    alarms.sort_by_key(|alarm| alarm.code.class());
    alarms
}

/// Whether all draws together say more of it than those of one run.
fn is_judged_anew(code: &Code) -> bool {
    matches!(code, Code::RHat | Code::FewDraws | Code::LowEss)
}
