//! What tables and figures need of a run's summary: small enough to keep for good. Names are those of `summary.json`.

use crate::summary::number::one;
use crate::summary::{Stages, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a summary that is kept. Results of earlier versions, which kept more, can be read as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Essence {
    /// Iterations of sampling.
    pub iterations: u64,
    /// R.
    pub round_trips: u64,
    /// Λ̂.
    #[serde(deserialize_with = "one")]
    pub global_barrier: f64,
    /// Round trips to those that rejections allow.
    #[serde(deserialize_with = "one")]
    pub exploration_efficiency: f64,
    /// β of each chain.
    pub schedule: Vec<f64>,
    /// Of each pair.
    pub rejection_rates: Vec<f64>,
    /// Calls of the target.
    pub evaluations: Evaluations,
    /// R by evaluations.
    pub compute_normalised_round_trips: Normalised,
    /// log Z.
    pub log_z: LogZ,
    /// Seconds.
    pub time: Time,
    /// Training, where there was any.
    pub training: Option<Training>,
    /// What chemists look at, where the target is a molecule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub molecule: Option<Molecule>,
    /// Codes of the alarms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
}

/// Calls of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evaluations {
    /// All of them: tuning, collecting, training and sampling.
    pub target: u64,
    /// Those of sampling.
    pub sampling: u64,
}

/// R by evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Normalised {
    /// As the paper counts them.
    #[serde(deserialize_with = "one")]
    pub paper: f64,
}

/// log Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogZ {
    /// By Bennett's acceptance ratio.
    #[serde(deserialize_with = "one")]
    pub bar: f64,
    /// Its standard error.
    #[serde(deserialize_with = "one")]
    pub standard_error: f64,
    /// The exact value, where it is known.
    pub truth: Option<f64>,
}

impl LogZ {
    /// bar − truth; NaN where the truth is not known.
    pub fn error(&self) -> f64 {
        self.bar - self.truth.unwrap_or(f64::NAN)
    }

    /// The error in standard errors.
    pub fn deviation(&self) -> f64 {
        self.error() / self.standard_error
    }
}

/// Seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Time {
    /// Of processors.
    pub processor: Stages,
}

/// Training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// Steps of the optimiser.
    pub steps: u64,
}

/// What chemists look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Molecule {
    /// Of each residue.
    pub residues: Vec<Residue>,
}

/// Basins of a residue, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Residue {
    /// How much of the time it spends in each.
    pub basins: BTreeMap<String, Population>,
}

/// How much of the time something holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// Share of the draws.
    #[serde(deserialize_with = "one")]
    pub population: f64,
    /// Its standard error.
    #[serde(deserialize_with = "one")]
    pub standard_error: f64,
}

impl Population {
    fn of(population: crate::chemistry::Population) -> Self {
        Self { population: population.share, standard_error: population.standard_error }
    }
}

impl Essence {
    /// Of a summary.
    pub fn of(summary: &Summary) -> Self {
        let Summary { setup, swaps, log_z, cost, .. } = summary;
        let residue = |r: &crate::chemistry::Basins| Residue {
            basins: r.all.iter().map(|(basin, p)| (basin.name().into(), Population::of(*p))).collect(),
        };
        Self {
            iterations: setup.iterations,
            round_trips: swaps.round_trips,
            global_barrier: swaps.global_barrier,
            exploration_efficiency: swaps.exploration_efficiency,
            schedule: setup.schedule.clone(),
            rejection_rates: swaps.rejection_rates.clone(),
            evaluations: Evaluations { target: cost.evaluations.target, sampling: cost.evaluations.sampling },
            compute_normalised_round_trips: Normalised { paper: swaps.compute_normalised_round_trips.paper },
            log_z: LogZ { bar: log_z.bar, standard_error: log_z.standard_error, truth: log_z.truth },
            time: Time { processor: cost.time.processor },
            training: summary.training.as_ref().map(|t| Training { steps: t.steps }),
            molecule: summary
                .molecule
                .as_ref()
                .map(|m| Molecule { residues: m.residues.iter().map(residue).collect() }),
            alarms: summary.alarms.iter().map(|alarm| alarm.code.to_string()).collect(),
        }
    }

    /// Basins of the first residue.
    pub fn basins(&self) -> impl Iterator<Item = (&String, &Population)> {
        self.molecule.iter().flat_map(|m| m.residues.first()).flat_map(|r| &r.basins)
    }

    /// Whose transport was made by another run: it cost as much as if it had been made here.
    pub fn with_transport_of(mut self, making: &Essence) -> Self {
        self.time.processor.collecting_s = making.time.processor.collecting_s;
        self.time.processor.training_s = making.time.processor.training_s;
        let made = making.evaluations.target - making.evaluations.sampling;
        self.evaluations.target = made + self.evaluations.sampling;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let text = r#"{"iterations": 10, "round_trips": 3, "global_barrier": null, "seed": 1,
            "log_z": {"bar": 1.5, "standard_error": 0.5, "truth": 2.5}, "alarms": ["few-round-trips"],
            "time": {"processor": {"tuning_s": 1.0, "collecting_s": 0.0, "training_s": 0.0, "sampling_s": 2.0}},
            "evaluations": {"target": 100, "sampling": 60, "network": 7}, "training": null, "molecule": null}"#;
        let read: Essence = serde_json::from_str(text).unwrap();
        assert!(read.global_barrier.is_nan());
        assert_eq!((read.round_trips, read.log_z.deviation(), read.time.processor.total()), (3, -2.0, 3.0));
        let text = serde_json::to_string(&read).unwrap();
        let again: Essence = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);

        let mut other = again.clone();
        other.time.processor.training_s = 5.0;
        let whole = again.with_transport_of(&other);
        assert_eq!((whole.time.processor.training_s, whole.evaluations.target), (5.0, 100));
    }

    #[test]
    fn a_summary_has_its_essence() {
        let config = "[target]\nkind = \"normal\"\n[schedule]\nrounds = 2\n[run]\niterations = 200";
        let config = crate::Config::parse(config, &[("chains.count", "3")]).unwrap();
        let (_, summary) = crate::job::sample(&config, &mut ()).unwrap();
        let essence = Essence::of(&summary);
        // The names are those of the file, so that its text can be read as well.
        let mut text: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
        text["alarms"] = serde_json::to_value(&essence.alarms).unwrap();
        let read: Essence = serde_json::from_value(text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&essence).unwrap());
        assert_eq!(essence.iterations, 200);
    }
}
