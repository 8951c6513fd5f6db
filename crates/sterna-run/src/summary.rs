//! `summary.json`: what a run found. The file, the terminal, the report and the verdict all read this one type.

mod choice;
mod cost;
mod quantity;
mod reference;
mod setup;
mod swaps;
mod target_chain;

pub use choice::{ChoiceSummary, FirstBlockSummary, WeighedWay};
pub use cost::{Cost, Evaluations, Spent, Stages, Stopwatch, Time, Times, Training};
pub use quantity::{Quantity, Ranks, WorstMixing};
pub(crate) use quantity::{UNNAMED, heights};
pub use reference::{AnchorState, FittedReference, OptimumSummary};
pub use setup::{About, AcceleratorName, Setup, TargetName};
pub use swaps::{LegSummary, LocalBarrier, LogZ, Normalised, PairRatio, Swaps};
pub use target_chain::{BadDensities, BadDensity, Ess, Expectations, ExplorerSummary, Moves, TargetChain};

use crate::alarms::{self, Alarm, Code, Evidence, Looked, Verdict};
use crate::checkpoint;
use crate::chemistry::{Molecule, Observed};
use crate::error::JobError;
use crate::merge::Member;
use crate::problem::{Constrain, Observable, Says};
use crate::progress::Goals;
use quantity::{Source, coordinate_name};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use sterna::Batch;
use sterna::last_look::Seen;
use sterna::records::Draws;
use sterna::run::{Results, Run, Stage, StoppedBy};

/// The number of this version's summaries. A new field that readers may miss does not raise it; one that changes its
/// name or its meaning does.
pub const SCHEMA: u32 = 1;

/// What is said of a text that is cut short or something else altogether.
const NO_SUMMARY: &str = "it is no summary of a run";

/// What a run found, field by field as `summary.json` has it; groups of fields lie side by side in the file. NaN and
/// the infinities are null there and NaN when read back.
///
/// ```
/// use sterna_run::{Config, Summary, job};
///
/// let folder = tempfile::tempdir()?;
/// let config = Config::parse("[target]\nkind = \"normal\"\n[run]\niterations = 500", &[("chains.count", "4")])?;
/// job::run(&config, folder.path(), &mut ())?;
///
/// let summary = Summary::read(folder.path())?;
/// assert!(summary.finished && summary.swaps.round_trips > 0);
/// println!("{:?}", summary.verdict);
/// println!("log Z = {} ± {}", summary.log_z.bar, summary.log_z.standard_error);
/// for alarm in &summary.alarms {
///     println!("{}: {}", alarm.code, alarm.message);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`] of the version that wrote it; 0 of those that wrote none.
    #[serde(default)]
    pub schema: u32,
    /// The version that wrote it.
    pub sterna: String,
    /// What its alarms come to.
    #[serde(default)]
    pub verdict: Verdict,
    /// Whether the run went to its end.
    pub finished: bool,
    /// Why sampling ended, where it was to reach something and has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// What was to be reached, and what there is of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
    /// What a fitted reference came to, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<FittedReference>,
    /// What was run.
    #[serde(flatten)]
    pub setup: Setup,
    /// What swaps did.
    #[serde(flatten)]
    pub swaps: Swaps,
    /// Normalising constants.
    pub log_z: LogZ,
    /// What the draws say.
    #[serde(flatten)]
    pub target_chain: TargetChain,
    /// The worst of all that was looked at, by ranks.
    #[serde(default)]
    pub mixing: Option<WorstMixing>,
    /// Parameters: values with names, or the coordinates. Of a molecule, and of very many coordinates, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Quantity>,
    /// The problem's own functions of a draw, where it has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observables: Vec<Quantity>,
    /// What local moves did.
    #[serde(flatten)]
    pub moves: Moves,
    /// What it cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// What training did, where a network was trained.
    pub training: Option<Training>,
    /// What was weighed, where the program was to choose what carries swaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceSummary>,
    /// What chemists look at, where the target is a molecule.
    pub molecule: Option<Molecule>,
    /// What a user should know.
    pub alarms: Vec<Alarm>,
    /// The runs that it was joined from, where it is of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<Member>,
}

/// All that a summary is made of.
pub struct Findings<'a> {
    /// Names, and what was planned.
    pub about: &'a About,
    /// The run, once it has sampled.
    pub run: &'a Run,
    /// Seconds so far.
    pub times: &'a Times,
    /// Draws of each ladder, or some of them evenly spread: what alarms look at.
    pub draws: &'a [Draws],
    /// What was seen where no draw came near, where somebody looked.
    pub seen: Option<&'a Seen>,
    /// Exact draws, where the target can draw.
    pub exact: Option<Batch>,
    /// The values of a draw that the problem names, where those are not its coordinates.
    pub values: Option<&'a dyn Constrain>,
    /// Functions of a draw that the problem watches.
    pub observables: &'a [Observable],
    /// What the target says of a point where it has no density, if it can tell.
    pub says: Option<&'a Says>,
    /// What chemists look at, where the target is a molecule, or why there is nothing to see.
    pub observed: Result<Option<&'a Observed>, &'a JobError>,
}

impl Findings<'_> {
    /// What the target says of the first point where it had no density.
    fn said(&self, results: &Results) -> Option<String> {
        self.says?(&results.bad.1.as_ref()?.point)
    }

    /// What people call a coordinate of the points that are sampled.
    fn name_of(&self, j: usize) -> String {
        let first = self.draws.iter().find_map(|draws| draws.x.get(..self.run.sampler().path.dim()));
        first.map_or_else(
            || alarms::coordinate(j),
            |point| coordinate_name(j, point, &self.about.parameters, self.values),
        )
    }

    /// What is compared between ladders instead of coordinates, where those mean nothing by themselves.
    fn features(&self) -> Vec<(String, Vec<Vec<f64>>)> {
        let Ok(Some(observed)) = &self.observed else { return Vec::new() };
        let log_density = self.draws.iter().map(|d| d.log_density.clone()).collect();
        let series = observed.series.iter().map(|s| (s.name.clone(), s.values.clone()));
        std::iter::once(("log density".into(), log_density)).chain(series).collect()
    }

    fn alarms(
        &self,
        results: &Results,
        features: Vec<(String, Vec<Vec<f64>>)>,
        looked: Vec<Looked>,
    ) -> Vec<Alarm> {
        // Fits in closed form have their own to say as well.
        let evidence = Evidence::new(self.run, results, self.run.fit_report(), self.draws);
        let (exact, said) = (self.exact.clone(), self.said(results));
        let unvisited = self.seen.map(|seen| &seen.unvisited[..]);
        let cut_tail = self.seen.and_then(|seen| seen.cut_tail);
        let left_out = self.seen.and_then(|seen| seen.left_out);
        let unanswered = self.seen.and_then(|seen| seen.unanswered);
        let name_of = |j: usize| self.name_of(j);
        let evidence = Evidence {
            name_of: &name_of,
            features,
            looked,
            watched: self.observables,
            exact,
            said,
            unvisited,
            cut_tail,
            left_out,
            unanswered,
            ..evidence
        };
        let mut alarms = evidence.alarms();
        alarms.extend(self.about.tried.alarms.iter().cloned());
        alarms.extend(alarms::device_replaced(self.run.engine_replaced()));
        let molecule = self.observed.map(|observed| observed.map(|observed| &observed.molecule));
        alarms.extend(alarms::of_molecule(molecule));
        alarms.sort_by_key(|alarm| alarm.code.class());
        alarms
    }
}

impl Summary {
    /// The summary of a run that has sampled.
    pub fn of(findings: &Findings) -> Self {
        let Findings { about, run, times, draws, .. } = *findings;
        let results = run.results();
        let setup = Setup::of(about, run, &results);
        let molecule = findings.observed.ok().flatten().map(|observed| observed.molecule.clone());
        let features = findings.features();
        let quantities = Source {
            names: &about.parameters,
            dim: setup.target.dim,
            draws,
            results: &results,
            values: findings.values,
            observables: findings.observables,
            features: &features,
        }
        .quantities();
        let mixing = WorstMixing::of(&quantities.looked);
        let alarms = findings.alarms(&results, features, quantities.looked);
        Self {
            schema: SCHEMA,
            sterna: env!("CARGO_PKG_VERSION").into(),
            verdict: Verdict::of(&alarms),
            finished: run.progress().0 == Stage::Finished,
            swaps: Swaps::of(about, &setup, &results, times),
            goals: Goals::at_the_end(run),
            reference: FittedReference::of(run, &results),
            stopped_by: run.settings().until.as_ref().and_then(|_| run.stopped_by()),
            log_z: LogZ::of(&results, about.is_evidence),
            target_chain: TargetChain::of(&results, molecule.as_ref()),
            mixing,
            parameters: quantities.parameters,
            observables: quantities.observables,
            moves: Moves::of(run, &results, findings.said(&results)),
            cost: Cost::of(about, &setup, run, &results, times).with_last_look(findings.seen),
            training: Training::report(run).map(Training::of),
            choice: run.fit_report().and_then(|report| report.choice.as_ref()).map(ChoiceSummary::of),
            molecule,
            alarms,
            merged: Vec::new(),
            setup,
        }
    }

    /// Reads the summary of a run folder.
    ///
    /// # Errors
    /// If there is none, or none that this version can read; the message says which version wrote it.
    pub fn read(folder: &Path) -> Result<Self, JobError> {
        let path = folder.join("summary.json");
        if !path.exists() {
            return Err(JobError::Config(format!(
                "{} holds no summary.json: is it a run folder, and has sampling begun?",
                folder.display()
            )));
        }
        let text = fs::read_to_string(&path).map_err(JobError::file("read", &path))?;
        Self::parse(&text).map_err(|why| {
            let cure = match why.starts_with(NO_SUMMARY) {
                false => String::new(),
                true if checkpoint::is_in(folder) => {
                    format!("; sterna resume {} writes it again from the checkpoint", folder.display())
                }
                true => {
                    "; without a checkpoint it cannot be made again: run its config.toml with another --out"
                        .into()
                }
            };
            JobError::Config(format!("{}: {why}{cure}", path.display()))
        })
    }

    /// Reads the file's text, or says why it cannot.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Origin {
            schema: Option<u32>,
            sterna: Option<String>,
        }
        let origin: Origin = serde_json::from_str(text).map_err(|e| format!("{NO_SUMMARY} ({e})"))?;
        let version = origin.sterna.map_or("an unknown version of sterna".into(), |v| format!("sterna {v}"));
        let schema = origin.schema.unwrap_or(0);
        if schema > SCHEMA {
            return Err(format!(
                "it was written by {version} with schema {schema}, and this is sterna {} which reads schemas up to \
                 {SCHEMA}: use that version, or a newer one",
                env!("CARGO_PKG_VERSION")
            ));
        }
        let read: Self = serde_json::from_str(text).map_err(|e| {
            format!(
                "it was written by {version} with schema {schema} and lacks what this version (schema {SCHEMA}) needs \
                 ({e}): use that version, or run its config.toml again with another --out"
            )
        })?;
        if !read.is_sound() {
            return Err(
                "its numbers and the lengths of its lists do not fit together: it was damaged or edited"
                    .into(),
            );
        }
        // It follows from the alarms, whoever wrote them down.
        Ok(Self { verdict: Verdict::of(&read.alarms), ..read })
    }

    /// Whether lists have the lengths that its numbers say: a file may claim anything, and readers rely on it.
    fn is_sound(&self) -> bool {
        let (setup, swaps, chain) = (&self.setup, &self.swaps, &self.target_chain);
        let (chains, pairs, dim) = (setup.chains, setup.pairs, setup.target.dim);
        let of_chains =
            [setup.schedule.len(), self.moves.explorer.acceptance.len(), self.moves.explorer.step_size.len()];
        let of_coordinates = [
            chain.expectations.mean.len(),
            chain.expectations.standard_error.len(),
            chain.ess.coordinates.len(),
        ];
        let of_legs: Vec<usize> = swaps.legs.iter().map(|leg| leg.chains).collect();
        let both_legs = of_legs.iter().fold(0usize, |sum, leg| sum.saturating_add(*leg));
        let fits = |training: &Training| {
            let all = [
                training.rejection_rates.len(),
                training.plain_rejection_rates.len(),
                training.replaced.len(),
            ];
            all.iter().all(|length| [0, pairs].contains(length))
        };
        chains == pairs.saturating_add(1)
            && of_chains.iter().all(|length| *length == chains)
            && swaps.rejection_rates.len() == pairs
            && swaps.local_barrier.beta.len() == swaps.local_barrier.lambda.len()
            && of_coordinates.iter().all(|length| *length == dim)
            // Two legs share the target.
            && (of_legs.len() < 2 || both_legs == chains + of_legs.len() - 1)
            && self.training.as_ref().is_none_or(fits)
    }

    /// The file's text. Keys are sorted, so that two files can be compared line by line.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("plain data");
        let mut text = serde_json::to_string_pretty(&value).expect("plain data");
        text.push('\n');
        text
    }

    /// Effective draws of each value that has a name, or of each coordinate where none has.
    pub fn shown_ess(&self) -> Vec<f64> {
        match self.parameters.is_empty() {
            true => self.target_chain.ess.coordinates.clone(),
            false => self.parameters.iter().map(|parameter| parameter.ess).collect(),
        }
    }

    /// The fewest effective draws of a parameter in its bulk; where some were wanted, of the coordinates that a goal counts.
    pub fn fewest_draws(&self) -> (f64, String) {
        let of_parameters = self.parameters.iter().map(|parameter| parameter.ranks.ess_bulk);
        let fewest = of_parameters.filter(|ess| ess.is_finite()).reduce(f64::min);
        match self.goals.and_then(|goals| goals.ess) {
            Some(ess) => (ess.reached, format!("slowest free coordinate; {:.0} wanted", ess.wanted)),
            None if fewest.is_some() => (fewest.unwrap_or(f64::NAN), "slowest parameter, in the bulk".into()),
            None if self.molecule.is_some() => (self.target_chain.ess.minimum, "slowest dihedral".into()),
            None => (self.target_chain.ess.minimum, "slowest coordinate".into()),
        }
    }

    /// What has so few effective draws in its bulk, or in its tails; where no parameter has, it is the log density.
    pub fn slowest(&self, ess: f64, of: fn(&Ranks) -> f64) -> &str {
        let all = self.parameters.iter().chain(&self.observables);
        let found = all.into_iter().find(|quantity| of(&quantity.ranks) <= ess * (1.0 + 1e-9));
        found.map_or("the log density", |quantity| &quantity.name)
    }

    /// What is known of the modes where one ladder had nothing to be held against.
    pub fn not_cross_checked(&self) -> Option<&'static str> {
        (self.setup.ensembles == 1).then_some(
            "modes were not cross-checked: there is one ladder (chains.ensembles = 4 compares four)",
        )
    }

    /// Whether an alarm was raised.
    pub fn has(&self, code: &Code) -> bool {
        self.alarms.iter().any(|alarm| alarm.code == *code)
    }
}

/// Numbers that JSON cannot hold: NaN and the infinities are written as null (`serde_json` does so by itself), and null
/// is read as NaN. Fields name these functions in `deserialize_with`.
pub mod number {
    use serde::{Deserialize, Deserializer};

    /// One number.
    pub fn one<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Option::<f64>::deserialize(from).map(|x| x.unwrap_or(f64::NAN))
    }

    /// A list of numbers.
    pub fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let all = Vec::<Option<f64>>::deserialize(from)?;
        Ok(all.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
    }

    #[cfg(test)]
    mod tests {
        use serde::{Deserialize, Serialize};

        #[derive(Serialize, Deserialize)]
        struct Both {
            #[serde(deserialize_with = "super::one")]
            one: f64,
            #[serde(deserialize_with = "super::list")]
            list: Vec<f64>,
        }

        #[test]
        fn what_is_no_number_is_null_and_comes_back_as_nan() {
            let both = Both { one: f64::INFINITY, list: vec![1.0, f64::NAN, 0.1] };
            let text = serde_json::to_string(&both).unwrap();
            assert_eq!(text, r#"{"one":null,"list":[1.0,null,0.1]}"#);
            let back: Both = serde_json::from_str(&text).unwrap();
            assert!(back.one.is_nan() && back.list[1].is_nan());
            assert_eq!((back.list[0], back.list[2]), (1.0, 0.1));
            assert!(serde_json::from_str::<Both>(r#"{"one":"many","list":[]}"#).is_err());
            assert!(serde_json::from_str::<Both>(r#"{"list":[]}"#).is_err());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
