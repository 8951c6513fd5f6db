//! The `choice` of a summary: what `accelerator.kind = "auto"` weighed, and what it chose.

use super::number;
use crate::report::format::count;
use serde::{Deserialize, Serialize};
use sterna::acceleration::{Choice, FirstBlock, Weighed};

/// What was weighed, and what was chosen; where nothing was worth trying, why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChoiceSummary {
    /// Which way carries each pair.
    pub pairs: Vec<String>,
    /// Draws for their cost, as many times those of plain swaps, that held-out samples promised.
    #[serde(deserialize_with = "number::one")]
    pub gain: f64,
    /// Plain swaps, and the transports beside them.
    pub weighed: Vec<WeighedWay>,
    /// Multiply-adds that an evaluation of the target was taken to be worth.
    #[serde(deserialize_with = "number::one")]
    pub evaluation_multiply_adds: f64,
    /// Evaluations of the target that judging took.
    pub evaluations: u64,
    /// Why there was nothing to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// β of each chain where the samples lay that the choice was made from, if chains have moved since.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "number::list")]
    pub moved_from: Vec<f64>,
    /// What the run's first block has shown of the swaps, where transports carried some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_block: Option<FirstBlockSummary>,
}

/// What the run's first block, whose draws do not count, has shown of the swaps that were chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstBlockSummary {
    /// Its iterations.
    pub iterations: u64,
    /// Of each pair, in the proposals that transports carried.
    #[serde(deserialize_with = "number::list")]
    pub rejection_rates: Vec<f64>,
    /// Of each pair, in the plain ones between them.
    #[serde(deserialize_with = "number::list")]
    pub plain_rejection_rates: Vec<f64>,
    /// Pairs, counted from 1, that went back to plain swaps.
    pub back_to_plain: Vec<usize>,
}

impl FirstBlockSummary {
    fn of(block: &FirstBlock) -> Self {
        Self {
            iterations: block.iterations,
            rejection_rates: block.carried.clone(),
            plain_rejection_rates: block.plain.clone(),
            back_to_plain: block.given_back.iter().map(|pair| pair + 1).collect(),
        }
    }

    fn sentence(&self) -> String {
        let mean = |rates: &[f64]| {
            let known = || rates.iter().filter(|rate| rate.is_finite());
            known().sum::<f64>() / known().count() as f64
        };
        let given_back = match self.back_to_plain.len() {
            0 => String::new(),
            1 => "; on one pair they did not pay, and swaps are plain there".into(),
            n => format!("; on {n} pairs they did not pay, and swaps are plain there"),
        };
        format!(
            " In the run's first {} iterations, which do not count, {:.3} of the swaps that transports carried were rejected, and {:.3} of \
             the plain ones between them{given_back}.",
            count(self.iterations),
            mean(&self.rejection_rates),
            mean(&self.plain_rejection_rates)
        )
    }
}

/// A way to carry swaps, weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeighedWay {
    /// What it is called.
    pub name: String,
    /// K.
    pub steps: usize,
    /// Of each pair, on samples that it was not fitted to.
    #[serde(deserialize_with = "number::list")]
    pub rejection_rates: Vec<f64>,
    /// Evaluations of the target that a journey takes.
    #[serde(deserialize_with = "number::one")]
    pub evaluations: f64,
    /// Multiply-adds of a journey, the target's left aside.
    #[serde(deserialize_with = "number::one")]
    pub multiply_adds: f64,
    /// Steps that it was trained for.
    pub training_steps: u64,
    /// Draws for their cost, as many times those of plain swaps, if it carried all pairs.
    #[serde(deserialize_with = "number::one")]
    pub gain: f64,
    /// Pairs that it carries.
    pub pairs: usize,
    /// Why it could not be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl ChoiceSummary {
    pub(super) fn of(choice: &Choice) -> Self {
        let name =
            |way: &usize| choice.weighed.get(*way).map_or("plain", |weighed| &weighed.name).to_string();
        let way = |(way, weighed): (usize, &Weighed)| WeighedWay {
            name: weighed.name.clone(),
            steps: weighed.steps,
            rejection_rates: weighed.rejection_rates.clone(),
            evaluations: weighed.evaluations,
            multiply_adds: weighed.operations,
            training_steps: weighed.trained,
            gain: if weighed.refused.is_some() { f64::NAN } else { weighed.gain },
            pairs: choice.of_pair.iter().filter(|other| **other == way).count(),
            refused: weighed.refused.clone(),
        };
        Self {
            pairs: choice.of_pair.iter().map(name).collect(),
            gain: choice.gain,
            weighed: choice.weighed.iter().enumerate().map(way).collect(),
            evaluation_multiply_adds: choice.evaluation,
            evaluations: choice.evaluations,
            reason: choice.reason.clone(),
            moved_from: choice.moved.as_ref().map_or(Vec::new(), |moved| moved.from.betas().to_vec()),
            first_block: choice.first_block.as_ref().map(FirstBlockSummary::of),
        }
    }

    /// In a sentence or two, for terminal and report.
    pub fn sentence(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("Swaps are plain, and no transport was tried: {reason}.");
        }
        let asked = count(self.evaluations);
        let (before, now) = (self.moved_from.len(), self.pairs.len() + 1);
        let moved = match before {
            0 => String::new(),
            _ if before == now => {
                " Chains have moved to where all pairs would be rejected equally often.".into()
            }
            _ => format!(
                " Chains, {now} in place of {before}, have moved to where all pairs would be rejected equally often."
            ),
        };
        let block = self.first_block.as_ref();
        let seen = block.map_or(String::new(), FirstBlockSummary::sentence);
        match block.is_some() || self.weighed.iter().skip(1).any(|way| way.pairs > 0) {
            true => format!(
                "On samples held out from tuning the mixture promised {:.2} times the draws of plain swaps for their cost; \
                 judging took {asked} evaluations.{moved}{seen}",
                self.gain
            ),
            false => format!(
                "No transport promised enough beside plain swaps for what it costs; judging took {asked} evaluations."
            ),
        }
    }

    /// Rows of a table: name, K, pairs, mean rejection rate, evaluations of a swap, gain.
    pub fn rows(&self) -> Vec<[String; 6]> {
        let row = |way: &WeighedWay| {
            let known = way.refused.is_none();
            let show = |text: String| if known { text } else { "–".into() };
            let rejection = way.rejection_rates.iter().sum::<f64>() / way.rejection_rates.len() as f64;
            [
                way.name.clone(),
                show(way.steps.to_string()),
                way.pairs.to_string(),
                show(format!("{rejection:.3}")),
                show(format!("{:.0}", 2.0 * way.evaluations)),
                show(format!("{:.2}", way.gain)),
            ]
        };
        self.weighed.iter().map(row).collect()
    }

    /// What the rows show.
    pub const COLUMNS: [&str; 6] =
        ["swaps", "K", "pairs", "rejected, held out", "evaluations a swap", "draws for their cost"];
}
