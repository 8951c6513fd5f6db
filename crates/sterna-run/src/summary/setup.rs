//! What was run: target, ladder, accelerator.

use super::number;
use crate::trial::Tried;
use serde::{Deserialize, Serialize};
use sterna::run::{Results, Run};

/// What a run cannot say of itself: names, and what its plan decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The target's kind.
    pub target: String,
    /// Names of its parameters, one for each coordinate; none if they have none.
    pub parameters: Vec<String>,
    /// Whether log Z is the log evidence.
    pub is_evidence: bool,
    /// The reference's kind.
    pub reference: String,
    /// The accelerator's kind.
    pub accelerator: String,
    /// K; 0 where a run is yet to choose it.
    pub steps: usize,
    /// Points at which one journey of a pair asks a network, by the paper's count: K + 1 for a controlled diffusion,
    /// 1 for a flow. None where a learned path counts for itself.
    pub network_points: u64,
    /// Whether the transport was made earlier and read from a file.
    pub transport_given: bool,
    /// The loss that networks are trained with.
    pub loss: String,
    /// What the trial of the target found.
    pub tried: Tried,
}

impl About {
    /// K: as planned, or of what was chosen.
    fn steps_of(&self, run: &Run) -> usize {
        let choice = run.fit_report().is_some_and(|report| report.choice.is_some());
        if choice || self.steps == 0 { run.sampler().accelerator.steps() } else { self.steps }
    }
}

/// The `target` of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetName {
    /// Its kind, as a config names it.
    pub kind: String,
    /// Coordinates of a point.
    pub dim: usize,
}

/// The `accelerator` of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceleratorName {
    /// Its kind, as a config names it.
    pub kind: String,
    /// K.
    pub steps: usize,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Seed of all randomness.
    pub seed: u64,
    /// The target.
    pub target: TargetName,
    /// Chains of a ladder.
    pub chains: usize,
    /// Pairs of neighbouring chains.
    pub pairs: usize,
    /// Ladders.
    pub ensembles: usize,
    /// Iterations of sampling so far.
    pub iterations: u64,
    /// What carried the proposals of swaps.
    pub accelerator: AcceleratorName,
    /// β of each chain.
    #[serde(deserialize_with = "number::list")]
    pub schedule: Vec<f64>,
}

impl Setup {
    pub(super) fn of(about: &About, run: &Run, results: &Results) -> Self {
        Self {
            seed: run.settings().seed,
            target: TargetName { kind: about.target.clone(), dim: run.sampler().path.dim() },
            chains: results.schedule.chains(),
            pairs: results.schedule.pairs(),
            ensembles: run.settings().ensembles,
            iterations: results.iterations,
            accelerator: AcceleratorName { kind: about.accelerator.clone(), steps: about.steps_of(run) },
            schedule: results.schedule.betas().to_vec(),
        }
    }
}
