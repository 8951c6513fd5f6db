//! What a run folder holds, as far as it is there. A report is made from these files alone: nothing is run, no target
//! is asked, no library loaded.

use super::draws::{self, Columns};
use crate::chemistry::PhiPsi;
use crate::error::JobError;
use crate::summary::Summary;
use crate::traces::{Sample, Traces, slowest};
use serde::Deserialize;
use std::fs;
use std::path::Path;

impl From<&Sample> for Columns {
    fn from(sample: &Sample) -> Self {
        let wide = |values: &Vec<f32>| values.iter().map(|&x| f64::from(x)).collect();
        let values: Vec<Vec<f64>> = sample.values.iter().map(wide).collect();
        let of = values.first().map_or(0, Vec::len);
        Self {
            coordinates: sample.coordinates.clone(),
            values,
            ladders: 1,
            stride: Some(1),
            of,
            observables: Vec::new(),
        }
    }
}

/// A run folder as read.
pub struct Folder {
    /// `summary.json`.
    pub summary: Summary,
    /// The resolved config's text.
    pub config: Option<String>,
    /// `traces.json`.
    pub traces: Option<Traces>,
    /// Draws of the target chain.
    pub draws: Option<Columns>,
    /// Exact draws of the same coordinates, where the target can draw.
    pub exact: Option<Columns>,
    /// `phi_psi.json`, where the target is a molecule.
    pub angles: Option<PhiPsi>,
    /// When the run began, in seconds since 1970.
    pub began: Option<f64>,
    /// What should be there and could not be read, and why.
    pub unread: Vec<String>,
}

impl Folder {
    /// Reads what is there; a summary must be.
    pub fn read(folder: &Path) -> Result<Self, JobError> {
        let summary = Summary::read(folder)?;
        let mut unread = Vec::new();
        if summary.schema == 0 {
            unread.push(format!(
                "exact draws to compare with: sterna {} left none in the folder",
                summary.sterna
            ));
        }
        let text = |name: &str| match folder.join(name) {
            path if !path.exists() => Err(format!("{name}: there is no such file")),
            path => fs::read_to_string(path).map_err(|e| format!("{name}: {e}")),
        };
        // Runs that were joined have theirs in folders of their own.
        let mut keep = |read: Result<String, String>| {
            read.map_err(|why| unread.extend(summary.merged.is_empty().then_some(why))).ok()
        };
        let config = keep(text("config.toml"));
        let log = keep(text("log.jsonl"));
        let traces = parsed(text("traces.json"), "traces.json")
            .and_then(|traces| sound_traces(traces, summary.setup.chains));
        let traces = traces.map_err(|why| unread.extend(summary.merged.is_empty().then_some(why))).ok();
        let wanted = slowest(&summary.shown_ess());
        let names: Vec<&str> = summary.parameters.iter().map(|parameter| &*parameter.name).collect();
        let file = folder.join("draws.nc");
        let draws = match &summary.molecule {
            Some(molecule) if molecule.series.is_empty() => None,
            Some(molecule) => Some(draws::read_watched(&file, &molecule.series)),
            None => Some(draws::read(&file, &wanted, &names)),
        };
        let draws = draws.and_then(|read| read.map_err(|why| unread.push(why)).ok());
        let residues = summary.molecule.as_ref().map_or(0, |molecule| molecule.residues.len());
        let angles = (residues > 0).then(|| parsed(text("phi_psi.json"), "phi_psi.json"));
        let angles = angles.and_then(|read| read.map_err(|why| unread.push(why)).ok());
        let exact = traces.as_ref().and_then(|traces| traces.exact.as_ref());
        let exact = exact.filter(|_| summary.molecule.is_none());
        let exact = exact.zip(draws.as_ref()).and_then(|(e, d)| Columns::from(e).only(&d.coordinates));
        let began = log.as_deref().and_then(began);
        Ok(Self { summary, config, traces, draws, exact, angles, began, unread })
    }
}

fn parsed<T: serde::de::DeserializeOwned>(text: Result<String, String>, name: &str) -> Result<T, String> {
    serde_json::from_str(&text?).map_err(|e| format!("{name}: {e}"))
}

/// A file may claim anything: charts rely on lists of equal lengths.
fn sound_traces(traces: Traces, chains: usize) -> Result<Traces, String> {
    match traces.is_sound(chains) {
        true => Ok(traces),
        false => {
            Err("traces.json: its lists have lengths that do not fit together, or not the summary".into())
        }
    }
}

/// When a run began: the time of its log's first event.
fn began(log: &str) -> Option<f64> {
    #[derive(Deserialize)]
    struct Event {
        time: f64,
    }
    let first: Event = serde_json::from_str(log.lines().next()?).ok()?;
    Some(first.time)
}
