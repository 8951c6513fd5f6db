//! What a run cost: evaluations, seconds, and whether the accelerator pays.

use super::{About, Setup, Time, Times, Training};
use crate::payoff::{BreakEven, Payoff};
use serde::{Deserialize, Serialize};
use sterna::acceleration::FitReport;
use sterna::run::{Results, Run};

/// Points evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluations {
    /// Of the target, tuning and training included.
    pub target: u64,
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
    fn of(about: &About, setup: &Setup, results: &Results, fit: Option<&FitReport>) -> Self {
        let inside_losses = |count: fn(&FitReport) -> u64| fit.map_or(0, count);
        let has_network = fit.is_some() || about.transport_given;
        let in_swaps = if has_network { about.network_points * journeys(setup, fit) } else { 0 };
        let network_training = inside_losses(|fit| fit.network_evaluations);
        Self {
            target: results.evaluations + inside_losses(|fit| fit.target_evaluations),
            sampling: results.sampling_evaluations,
            training: inside_losses(|fit| fit.target_evaluations),
            network: network_training + in_swaps + results.network_evaluations,
            network_training,
        }
    }

    /// Of the target, before sampling and outside losses.
    pub fn tuning(&self) -> u64 {
        self.target.saturating_sub(self.sampling + self.training)
    }

    /// Of a network, outside losses.
    pub fn network_sampling(&self) -> u64 {
        self.network.saturating_sub(self.network_training)
    }
}

/// Journeys of the pairs that use a transport, in both directions, over all of sampling.
fn journeys(setup: &Setup, fit: Option<&FitReport>) -> u64 {
    let plain = |n: usize| fit.is_some_and(|fit| fit.pairs.get(n).is_none_or(|pair| pair.plain));
    // Pairs 1, 3, … are proposed in iterations 1, 3, …
    let t = setup.iterations;
    let proposals = |n: usize| if n.is_multiple_of(2) { t.div_ceil(2) } else { t / 2 };
    let each: u64 = (0..setup.pairs).filter(|&n| !plain(n)).map(proposals).sum();
    2 * setup.ensembles as u64 * each
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
        let fit = Training::report(run);
        let (payoff, break_even) = crate::payoff::payoff(run, results, times).unzip();
        Self {
            evaluations: Evaluations::of(about, setup, results, fit),
            time: Time::of(times, results.iterations),
            payoff,
            break_even,
        }
    }
}
