//! What training did.

use super::number;
use serde::{Deserialize, Serialize};
use sterna::acceleration::FitReport;
use sterna::run::Run;

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
            rejection_rates: report.pairs.iter().map(|pair| pair.rejection).collect(),
            plain_rejection_rates: report.pairs.iter().map(|pair| pair.plain_rejection).collect(),
            replaced: report.pairs.iter().map(|pair| pair.plain).collect(),
        }
    }
}
