//! Alarms: what a user should know of a run, each with what would help. `docs/alarms.md` explains every code.

mod class;
mod code;
mod density;
mod explained;
mod fitted;
mod free_energy;
mod ladder;
mod mixing;
mod moves;
mod occupation;
mod swaps;
mod truth;

pub use class::{Class, Verdict};
pub use code::Code;
pub use explained::Explained;
pub(crate) use mixing::LOW_ESS;
pub use mixing::Looked;
pub(crate) use mixing::{FOR_MOLECULES, few_draws, few_for_a_mean, low_ess, r_hat_beyond_chance};
pub(crate) use moves::wanted_acceptance;
pub(crate) use swaps::{MOST_ADVISED, barrier};
pub use truth::exact_draws;

use crate::chemistry::Molecule;
use crate::error::JobError;
use crate::problem::Observable;
use serde::{Deserialize, Serialize};
use sterna::Batch;
use sterna::acceleration::FitReport;
use sterna::fitted::Optimum;
use sterna::last_look::{CutTail, LeftOut};
use sterna::records::Draws;
use sterna::run::{Reached, Results, Run, StoppedBy, Until};

/// Something a user should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "class::Written", into = "class::Written")]
pub struct Alarm {
    /// Short name.
    pub code: Code,
    /// What was seen, and what would help.
    pub message: String,
}

/// What alarms are judged by.
pub struct Evidence<'a> {
    /// Estimates.
    pub results: &'a Results,
    /// Draws of each ladder's target chain, or some of them, evenly spread.
    pub draws: Vec<&'a Draws>,
    /// Length of a point.
    pub dim: usize,
    /// What people call a coordinate.
    pub name_of: &'a dyn Fn(usize) -> String,
    /// What to compare between ladders instead of coordinates, by name: angles of a molecule, which may turn
    /// as a whole without meaning anything.
    pub features: Vec<(String, Vec<Vec<f64>>)>,
    /// How well the ladders have mixed for each quantity that was looked at.
    pub looked: Vec<Looked>,
    /// Functions of a draw that the problem watches.
    pub watched: &'a [Observable],
    /// Acceptance that step sizes were adapted to, if they were.
    pub wanted_acceptance: Option<f64>,
    /// Whether transports carried the swaps.
    pub accelerated: bool,
    /// What a fit did, where there was one.
    pub training: Option<&'a FitReport>,
    /// What climbs found, where the reference was fitted.
    pub optima: &'a [Optimum],
    /// Optima that no draw came near, where a last look was taken.
    pub unvisited: Option<&'a [Optimum]>,
    /// A tail that draws do not reach, where a last look saw one.
    pub cut_tail: Option<CutTail>,
    /// Mass that the reference leaves out and draws have not found, where a last look saw some.
    pub left_out: Option<LeftOut>,
    /// Share of the mass that may lie where the target has no answer, where a last look asked.
    pub unanswered: Option<f64>,
    /// Exact draws of the target, where it can draw.
    pub exact: Option<Batch>,
    /// Standard deviations of the broad normal that a run with a fitted reference began from.
    pub given: Option<&'a [f64]>,
    /// What the run was to reach and how far it came, where it ended before.
    pub unreached: Option<(Until, Reached, StoppedBy)>,
    /// Why the first point without a density has none, where the target can tell.
    pub said: Option<String>,
}

/// A coordinate that nobody named.
pub(crate) fn coordinate(j: usize) -> String {
    format!("coordinate {j}")
}

impl<'a> Evidence<'a> {
    /// Whether angles stand for coordinates.
    fn is_molecule(&self) -> bool {
        !self.features.is_empty()
    }

    /// What a run offers.
    pub fn new(
        run: &'a Run,
        results: &'a Results,
        training: Option<&'a FitReport>,
        draws: &'a [Draws],
    ) -> Self {
        let ended = run.stopped_by().filter(|by| *by != StoppedBy::Goals);
        let wanted = run.settings().until.clone().zip(ended);
        Self {
            results,
            draws: draws.iter().collect(),
            dim: run.sampler().path.dim(),
            name_of: &coordinate,
            features: Vec::new(),
            looked: Vec::new(),
            watched: &[],
            wanted_acceptance: wanted_acceptance(run),
            accelerated: run.sampler().accelerator.steps() > 0,
            training,
            optima: run.optima(),
            unvisited: None,
            cut_tail: None,
            left_out: None,
            unanswered: None,
            exact: None,
            given: run.given_anchor().map(|(_, deviation)| deviation),
            unreached: wanted.map(|(until, by)| (until, run.reached(), by)),
            said: None,
        }
    }

    /// All alarms; the gravest come first.
    pub fn alarms(&self) -> Vec<Alarm> {
        let mut all = Vec::new();
        let own = [
            (Code::BadDensity, self.bad_density()),
            (Code::CarriedOff, self.carried_off()),
            (Code::NoRoundTrip, self.no_round_trip()),
            (Code::MissedMode, self.missed_mode()),
            (Code::FewDraws, few_draws(&self.looked, self.is_molecule())),
            (Code::TruthMissed, self.truth_missed()),
            (Code::LegsDisagree, self.legs_disagree()),
            (Code::UnvisitedOptimum, self.unvisited_optimum()),
            (Code::LeftOut, self.left_out()),
            (Code::CutTail, self.cut_tail()),
            (Code::PartsDisagree, self.parts_disagree()),
            (Code::RHat, self.r_hat()),
            (Code::LowEss, self.low_ess()),
            (Code::FewRoundTrips, self.few_round_trips()),
            (Code::LooksLikeReference, self.looks_like_reference()),
            (Code::TooFewChains, self.too_few_chains()),
            (Code::StarvingPair, self.starving_pair()),
            (Code::LogZDisagrees, self.log_z_disagrees()),
            (Code::StepSizeBound, self.step_size_bound()),
            (Code::NotReached, self.not_reached()),
            (Code::LowExploration, self.low_exploration()),
            (Code::IdleLadder, self.idle_ladder()),
            (Code::Coverage, self.coverage()),
        ];
        for (code, message) in own {
            all.extend(message.map(|message| Alarm { code, message }));
        }
        // Those of a fit bear the names that the library gave them.
        let fits = self.training.iter().flat_map(|t| &t.alarms);
        all.extend(
            fits.map(|(code, message)| Alarm { code: code.as_str().into(), message: message.clone() }),
        );
        all.sort_by_key(|alarm: &Alarm| alarm.code.class());
        all
    }

    /// Draws of the target chain where the samples that a transport was trained on had none.
    fn coverage(&self) -> Option<String> {
        let draws: Vec<&[f64]> = self.draws.iter().map(|d| &d.x[..]).collect();
        let outside = self.training?.seen.as_ref()?.outside(&draws)?;
        Some(format!(
            "{:.1}% of the draws lie where the samples that the transport was trained on had none (chance explains \
             {:.1}%): it helps less there than it could, though the draws are right; more samples (training.collect) \
             or another round (training.rounds) would help",
            100.0 * outside.share,
            100.0 * outside.allowed
        ))
    }

    /// Pairs of the leg that leads from the reference to the target.
    fn pairs(&self) -> usize {
        self.results.schedule.target()
    }
}

/// A GPU that the CPU took over from, and why.
pub(crate) fn device_replaced(why: Option<&str>) -> Option<Alarm> {
    why.map(|why| Alarm { code: Code::DeviceReplaced, message: why.into() })
}

/// What chemists look at, or why there is nothing to see.
pub(crate) fn of_molecule(observed: Result<Option<&Molecule>, &JobError>) -> Vec<Alarm> {
    match observed {
        Ok(molecule) => molecule.map_or(Vec::new(), Molecule::alarms),
        Err(error) => {
            let message = format!("nothing can be said about the molecule: {error}");
            vec![Alarm { code: Code::MoleculeUnreadable, message }]
        }
    }
}

#[cfg(test)]
mod tests;
