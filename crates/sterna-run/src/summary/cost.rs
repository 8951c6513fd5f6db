//! What a run cost, training among it: evaluations, where the time went, and whether the accelerator pays.

use super::{About, Setup, number};
use crate::payoff::{BreakEven, Payoff};
use crate::platform::processor_s;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use sterna::acceleration::{FitReport, Weighed};
use sterna::last_look::Seen;
use sterna::run::{Results, Run};

/// Points evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluations {
    /// Of the target, tuning and training included.
    pub target: u64,
    /// Of these, in the trial before the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trial: u64,
    /// Of these, climbs to optima.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub climbing: u64,
    /// Of these, in the last look around the draws.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_look: u64,
    /// Of these, in sampling.
    pub sampling: u64,
    /// Of these, inside losses.
    pub training: u64,
    /// Of a network.
    pub network: u64,
    /// Of these, inside losses.
    pub network_training: u64,
}

impl Evaluations {
    fn of(about: &About, setup: &Setup, run: &Run, results: &Results) -> Self {
        let fit = Training::report(run);
        let inside_losses = |count: fn(&FitReport) -> u64| fit.map_or(0, count);
        let has_network = fit.is_some() || about.transport_given;
        let in_swaps = if has_network { in_swaps(about, setup, fit) } else { 0 };
        let network_training = inside_losses(|fit| fit.network_evaluations);
        Self {
            target: about.tried.evaluations
                + results.evaluations
                + inside_losses(|fit| fit.target_evaluations),
            trial: about.tried.evaluations,
            climbing: run.climbing_evaluations(),
            last_look: 0,
            sampling: results.sampling_evaluations,
            training: inside_losses(|fit| fit.target_evaluations),
            network: network_training + in_swaps + results.network_evaluations,
            network_training,
        }
    }

    /// Of the target, after trial and climbs, before sampling and outside losses.
    pub fn tuning(&self) -> u64 {
        let others = [self.trial, self.climbing, self.last_look, self.sampling, self.training];
        others.iter().fold(self.target, |left, other| left.saturating_sub(*other))
    }

    /// Of a network, outside losses.
    pub fn network_sampling(&self) -> u64 {
        self.network.saturating_sub(self.network_training)
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Points at which swaps of all pairs ask a network, in both directions, over all of sampling.
fn in_swaps(about: &About, setup: &Setup, fit: Option<&FitReport>) -> u64 {
    // Pairs 1, 3, … are proposed in iterations 1, 3, …
    let t = setup.iterations;
    let proposals = |n: usize| if n.is_multiple_of(2) { t.div_ceil(2) } else { t / 2 };
    let each: u64 = (0..setup.pairs).map(|n| proposals(n) * points(about, setup, fit, n)).sum();
    2 * setup.ensembles as u64 * each
}

/// Points at which a journey of a pair asks a network.
fn points(about: &About, setup: &Setup, fit: Option<&FitReport>, pair: usize) -> u64 {
    let planned = match about.steps == 0 && about.accelerator == CONTROLLED {
        true => of_controlled(setup.accelerator.steps),
        false => about.network_points,
    };
    let Some(fit) = fit else { return planned };
    match &fit.choice {
        Some(choice) => {
            let way = choice.of_pair.get(pair).and_then(|&way| choice.weighed.get(way));
            way.map_or(0, of_way)
        }
        None if fit.pairs.get(pair).is_none_or(|pair| pair.plain) => 0,
        None => planned,
    }
}

/// Those of a way that was weighed: only what is trained has a network.
fn of_way(way: &Weighed) -> u64 {
    match way.trained {
        0 => 0,
        _ if way.name.starts_with(CONTROLLED) => of_controlled(way.steps),
        _ => 1,
    }
}

/// What a controlled diffusion is called.
const CONTROLLED: &str = "cmcd";

/// It asks where it begins and after each step.
fn of_controlled(steps: usize) -> u64 {
    steps as u64 + 1
}

/// What a run cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Points evaluated.
    pub evaluations: Evaluations,
    /// Seconds.
    pub time: Time,
    /// Round trips for what they cost, with and without the accelerator, where one was fitted.
    pub payoff: Option<Payoff>,
    /// When the accelerator pays.
    pub break_even: Option<BreakEven>,
}

impl Cost {
    pub(super) fn of(about: &About, setup: &Setup, run: &Run, results: &Results, times: &Times) -> Self {
        let (payoff, break_even) = crate::payoff::payoff(run, results, times).unzip();
        Self {
            evaluations: Evaluations::of(about, setup, run, results),
            time: Time::of(times, results.iterations),
            payoff,
            break_even,
        }
    }
}

impl Cost {
    /// With what a last look cost.
    pub(super) fn with_last_look(mut self, seen: Option<&Seen>) -> Self {
        let asked = seen.map_or(0, |seen| seen.evaluations);
        self.evaluations.last_look = asked;
        self.evaluations.target += asked;
        self
    }
}

/// The `training` of a summary: where a network was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Steps of the optimiser, over all rounds.
    pub steps: u64,
    /// Mean loss of each twentieth of the last round's steps.
    #[serde(deserialize_with = "number::list")]
    pub losses: Vec<f64>,
    /// Likewise of the steps that made the round-trip loss small, where there were any.
    #[serde(deserialize_with = "number::list")]
    pub fine_tuning_losses: Vec<f64>,
    /// The step of the last round whose weights were kept, where held-out samples found later ones worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_step: Option<u64>,
    /// Of each pair with the transport, on samples that training did not see.
    #[serde(deserialize_with = "number::list")]
    pub rejection_rates: Vec<f64>,
    /// Of each pair with plain swaps, on the same samples.
    #[serde(deserialize_with = "number::list")]
    pub plain_rejection_rates: Vec<f64>,
    /// Pairs on which plain swaps took over.
    pub replaced: Vec<bool>,
}

impl Training {
    /// What a run's fit did, where it had steps to make: closed forms have none.
    pub(super) fn report(run: &Run) -> Option<&FitReport> {
        run.fit_report().filter(|report| report.steps > 0)
    }

    pub(super) fn of(report: &FitReport) -> Self {
        Self {
            steps: report.steps,
            losses: report.losses.clone(),
            fine_tuning_losses: report.fine_tuning_losses.clone(),
            kept_step: report.kept_step,
            rejection_rates: report.pairs.iter().map(|pair| pair.rejection).collect(),
            plain_rejection_rates: report.pairs.iter().map(|pair| pair.plain_rejection).collect(),
            replaced: report.pairs.iter().map(|pair| pair.plain).collect(),
        }
    }
}

/// Time spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Seconds on the clock.
    pub clock_s: f64,
    /// Seconds of processors, over all threads: what a busy machine does not change.
    pub processor_s: f64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.clock_s += more.clock_s;
        self.processor_s += more.processor_s;
    }
}

/// Counts from its making: time on the clock and time of processors.
pub struct Stopwatch {
    clock: Instant,
    processor_s: f64,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Self { clock: Instant::now(), processor_s: processor_s() }
    }

    /// Time since the start.
    pub fn stop(&self) -> Spent {
        Spent { clock_s: self.clock.elapsed().as_secs_f64(), processor_s: processor_s() - self.processor_s }
    }
}

/// Seconds by stage: on the clock, and of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Tuning.
    pub tuning: Spent,
    /// Collecting samples for an accelerator.
    pub collecting: Spent,
    /// The part of it without an accelerator.
    pub plain: Spent,
    /// Training of transports.
    pub training: Spent,
    /// Burn-in and sampling.
    pub sampling: Spent,
}

impl Times {
    /// Of processors, over all stages.
    pub fn processor_s(&self) -> f64 {
        self.stages(|spent| spent.processor_s).total()
    }

    /// By the clock, over all stages.
    pub fn total_s(&self) -> f64 {
        self.stages(|spent| spent.clock_s).total()
    }

    fn stages(&self, seconds: impl Fn(&Spent) -> f64) -> Stages {
        Stages {
            tuning_s: seconds(&self.tuning),
            collecting_s: seconds(&self.collecting),
            training_s: seconds(&self.training),
            sampling_s: seconds(&self.sampling),
        }
    }
}

/// Seconds of each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Tuning.
    pub tuning_s: f64,
    /// Collecting samples for an accelerator.
    pub collecting_s: f64,
    /// Training of transports.
    pub training_s: f64,
    /// Burn-in and sampling.
    pub sampling_s: f64,
}

impl Stages {
    /// All stages together.
    pub fn total(&self) -> f64 {
        self.tuning_s + self.collecting_s + self.training_s + self.sampling_s
    }
}

/// The `time` of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// On the clock.
    #[serde(flatten)]
    pub clock: Stages,
    /// Of processors, over all threads.
    pub processor: Stages,
    /// Iterations of sampling in a second on the clock.
    #[serde(deserialize_with = "number::one")]
    pub iterations_per_second: f64,
}

impl Time {
    /// Of so many iterations of sampling.
    pub(super) fn of(times: &Times, iterations: u64) -> Self {
        Self {
            clock: times.stages(|spent| spent.clock_s),
            processor: times.stages(|spent| spent.processor_s),
            iterations_per_second: iterations as f64 / times.sampling.clock_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::AcceleratorName;
    use super::super::tests::sound;
    use super::*;
    use sterna::Schedule;
    use sterna::acceleration::{Choice, Moved, PairReport};

    fn way(name: &str, steps: usize, trained: u64) -> Weighed {
        Weighed { name: name.into(), steps, trained, ..Weighed::default() }
    }

    /// Chains have moved, so that no pair has rates of its own: each asks as often as what was chosen for it does.
    #[test]
    fn what_was_chosen_asks_its_network_wherever_chains_are() {
        let (about, setup) = (About { network_points: 1, ..About::default() }, sound().setup);
        let moved = Moved { to: Schedule::uniform(5), from: Schedule::uniform(3), of_pair: vec![3, 4] };
        let weighed = vec![
            way("plain", 0, 0),
            way("affine, full", 1, 0),
            way("flow", 1, 250),
            way("cmcd, K = 2", 2, 500),
            way("cmcd, K = 5", 5, 0),
        ];
        let choice = Choice { weighed, of_pair: vec![0, 1, 2, 3], moved: Some(moved), ..Choice::default() };
        let fit = FitReport { steps: 750, choice: Some(choice), ..FitReport::default() };
        let of = |fit: &FitReport| [0, 1, 2, 3].map(|pair| points(&about, &setup, Some(fit), pair));
        assert_eq!(of(&fit), [0, 0, 1, 3]);
        // Half of a thousand iterations for each pair, there and back.
        assert_eq!(in_swaps(&about, &setup, Some(&fit)), 2 * 500 * (1 + 3));
        // Where nothing was tried there is nothing to ask.
        let nothing = Choice { of_pair: vec![0; 4], ..Choice::default() };
        assert_eq!(of(&FitReport { choice: Some(nothing), ..fit }), [0; 4]);
    }

    /// Of a transport that was asked for, pairs on which plain swaps took over ask nothing.
    #[test]
    fn a_transport_that_was_asked_for_counts_as_it_was_planned() {
        let pair = |plain: bool| PairReport { rejection: 0.1, plain_rejection: 0.2, plain };
        let fit = FitReport { pairs: vec![pair(true), pair(false)], ..FitReport::default() };
        let setup = sound().setup;
        let of = |about: &About| [0, 1].map(|n| points(about, &setup, Some(&fit), n));
        let planned = About { accelerator: "cmcd".into(), steps: 5, network_points: 6, ..About::default() };
        assert_eq!(of(&planned), [0, 6]);
        // K was found out.
        let found = About { steps: 0, network_points: 1, ..planned };
        let setup = Setup { accelerator: AcceleratorName { kind: "cmcd".into(), steps: 2 }, ..setup };
        assert_eq!([0, 1].map(|n| points(&found, &setup, Some(&fit), n)), [0, 3]);
    }
}
