//! Alarms: what a user should know of a run, each with what would help. `docs/alarms.md` explains every code.

mod code;
mod fitted;
mod occupation;

pub use code::Code;

use occupation::{FALSE_ALARM, disagreement};
use serde::{Deserialize, Serialize};
use sterna::acceleration::FitReport;
use sterna::estimates::global_barrier;
use sterna::explorers::{STEP_SIZE_BOUNDS as BOUNDS, StepSize};
use sterna::fitted::Optimum;
use sterna::records::Draws;
use sterna::run::{Reached, Results, Run, StoppedBy, Until};
use sterna::schedule::cumulative_barrier;

/// Something a user should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What to compare between ladders instead of coordinates, by name: angles of a molecule, which may turn
    /// as a whole without meaning anything.
    pub features: Vec<(String, Vec<Vec<f64>>)>,
    /// Acceptance that step sizes were adapted to, if they were.
    pub wanted_acceptance: Option<f64>,
    /// Whether transports carried the swaps.
    pub accelerated: bool,
    /// What a fit did, where there was one.
    pub training: Option<&'a FitReport>,
    /// What climbs found, where the reference was fitted.
    pub optima: &'a [Optimum],
    /// What the run was to reach and how far it came, where it ended before.
    pub unreached: Option<(Until, Reached, StoppedBy)>,
}

/// Chains that make most round trips for their cost: about half of all swaps are then accepted.
pub(crate) fn chains_for(barrier: f64) -> usize {
    ((2.0 * barrier).ceil() as usize).saturating_add(1)
}

/// Acceptance that a run adapts its step sizes to, if it does.
pub(crate) fn wanted_acceptance(run: &Run) -> Option<f64> {
    match run.settings().explorer.as_hmc()?.step_size {
        StepSize::Adapt { acceptance } => Some(acceptance),
        _ => None,
    }
}

impl<'a> Evidence<'a> {
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
            features: Vec::new(),
            wanted_acceptance: wanted_acceptance(run),
            accelerated: run.sampler().accelerator.steps() > 0,
            training,
            optima: run.optima(),
            unreached: wanted.map(|(until, by)| (until, run.reached(), by)),
        }
    }

    /// All alarms, the gravest first.
    pub fn alarms(&self) -> Vec<Alarm> {
        let mut all = Vec::new();
        let own = [
            (Code::BadDensity, self.bad_density()),
            (Code::NoRoundTrip, self.no_round_trip()),
            (Code::MissedMode, self.missed_mode()),
            (Code::TooFewChains, self.too_few_chains()),
            (Code::StarvingPair, self.starving_pair()),
            (Code::UnvisitedOptimum, self.unvisited_optimum()),
            (Code::LegsDisagree, self.legs_disagree()),
            (Code::LogZDisagrees, self.log_z_disagrees()),
            (Code::NotReached, self.not_reached()),
            (Code::LowExploration, self.low_exploration()),
            (Code::StepSizeBound, self.step_size_bound()),
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

    fn bad_density(&self) -> Option<String> {
        let (count, first) = &self.results.bad;
        let first = first.as_ref()?;
        // A point of many coordinates is in summary.json.
        let shown: Vec<String> = first.point.iter().take(8).map(|x| format!("{x}")).collect();
        let more = if first.point.len() > 8 { ", …" } else { "" };
        Some(format!(
            "the target answered NaN or +inf at {count} proposals, which were rejected; the first in iteration {}, on \
             chain {}, replica {}, at [{}{more}]; mend the density there, or answer -inf where it vanishes",
            first.iteration,
            first.chain,
            first.replica,
            shown.join(", ")
        ))
    }

    /// Pairs of the leg that leads from the reference to the target.
    fn pairs(&self) -> usize {
        self.results.schedule.target()
    }

    fn starving_pair(&self) -> Option<String> {
        let rates = self.results.rejection_rates[..self.pairs()].iter().copied().enumerate();
        let (pair, rate) = rates.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        (rate > 0.95).then(|| {
            format!(
                "swaps between chains {} and {} are rejected {:.1}% of the time: little passes this pair; more chains, \
                 or a transport, would help",
                pair,
                pair + 1,
                100.0 * rate
            )
        })
    }

    /// Λ: by λ(β), which does not saturate, for plain swaps; by the rejections of accelerated ones.
    fn barrier(&self) -> f64 {
        let r = self.results;
        let rejections = global_barrier(&r.rejection_rates[..self.pairs()]);
        let (betas, lambda): (Vec<f64>, Vec<f64>) =
            r.local_barrier.iter().copied().filter(|(beta, _)| *beta <= 1.0).unzip();
        let integral = cumulative_barrier(&betas, &lambda).last().copied().unwrap_or(f64::NAN);
        if self.accelerated || integral.is_nan() { rejections } else { integral.max(rejections) }
    }

    fn too_few_chains(&self) -> Option<String> {
        let (barrier, pairs) = (self.barrier(), self.pairs());
        // A plain swap across a barrier of 1 is rejected about two times in three: Σr of accelerated
        // pairs says the same at two thirds of their number.
        let limit = if self.accelerated { 0.67 * pairs as f64 } else { pairs as f64 };
        let wanted = chains_for(barrier);
        (barrier > limit && wanted > pairs + 1).then(|| {
            let (more, or) = match self.accelerated {
                true => ("at least ", "more steps (accelerator.steps)"),
                false => ("about ", "a transport"),
            };
            format!(
                "{} chains are few for a barrier of {barrier:.1}: {more}{wanted} (twice the barrier plus one) make most \
                 round trips for their cost; set chains.count = {wanted}, or use {or}",
                pairs + 1
            )
        })
    }

    fn no_round_trip(&self) -> Option<String> {
        (self.results.round_trips == 0).then(|| {
            "no replica went from the reference to the target and back: draws may miss modes, and log Z may be wrong \
             beyond its error; more chains or iterations are needed"
                .into()
        })
    }

    fn low_exploration(&self) -> Option<String> {
        let r = self.results;
        let share = r.round_trip_rate / r.round_trip_rate_predicted;
        (r.round_trips >= 20 && share < 0.3).then(|| {
            format!(
                "round trips are {:.0}% of what the swaps allow: local moves are the bottleneck; more of them \
                 (explorer.steps) or longer ones (explorer.leapfrog_steps) would help",
                100.0 * share
            )
        })
    }

    fn log_z_disagrees(&self) -> Option<String> {
        let z = &self.results.log_z;
        let gap = (z.forward - z.backward).abs();
        (gap.is_nan() || gap > 1.0 + 10.0 * z.standard_error).then(|| {
            format!(
                "log Z from forward weights ({:.3}) and from backward weights ({:.3}) disagree: the chains overlap too \
                 little for either; trust BAR with caution, or use more chains",
                z.forward, z.backward
            )
        })
    }

    fn step_size_bound(&self) -> Option<String> {
        let wanted = self.wanted_acceptance?;
        let r = self.results;
        let chains = r.step_size.iter().zip(&r.acceptance).enumerate();
        let at_bound = |size: f64| size <= 2.0 * BOUNDS.0 || size >= 0.5 * BOUNDS.1;
        let far = |(_, (size, acceptance)): &(usize, (&f64, &f64))| {
            // Exact draws have no acceptance and no step.
            !acceptance.is_nan() && (at_bound(**size) || **acceptance < 0.5 * wanted)
        };
        let (chain, (size, acceptance)) = chains.clone().find(far)?;
        let count = chains.filter(far).count();
        let others = if count > 1 { format!(" (and on {} other chains)", count - 1) } else { String::new() };
        Some(format!(
            "step sizes did not settle: on chain {chain}{others} the step is {size:.2e} and {:.0}% of moves are accepted \
             where {:.0}% were wanted; check the score with `sterna verify`, rescale coordinates, or tune longer \
             (schedule.rounds)",
            100.0 * acceptance,
            100.0 * wanted
        ))
    }

    fn missed_mode(&self) -> Option<String> {
        let series = |i: usize| -> Draws {
            let draws = self.features.iter().map(|(_, ladders)| ladders[i].len()).min().unwrap_or(0);
            let x = (0..draws).flat_map(|t| self.features.iter().map(move |(_, ladders)| ladders[i][t]));
            Draws { x: x.collect(), ..Draws::default() }
        };
        let (found, what) = match self.features.first() {
            None => {
                let found = disagreement(&self.draws, self.dim)?;
                (found, format!("coordinate {}", found.coordinate))
            }
            Some((_, ladders)) => {
                let all: Vec<Draws> = (0..ladders.len()).map(series).collect();
                let found = disagreement(&all.iter().collect::<Vec<_>>(), self.features.len())?;
                (found, self.features[found.coordinate].0.clone())
            }
        };
        Some(format!(
            "ladders, or the two halves of the run, disagree about where the mass is: of the draws of the target chain \
             between {:.0}% and {:.0}% have {what} below {:.4} (p = {:.0e}, false-alarm level {FALSE_ALARM:.0e}); some \
             of them may have missed a mode: run longer, with more chains, and compare ladders (chains.ensembles)",
            100.0 * found.lowest,
            100.0 * found.highest,
            found.threshold,
            found.p_value
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna::Schedule;
    use sterna::estimates::{Bar, Crooks, LogZ, PairEstimate};
    use sterna::records::BadPoint;
    use sterna::streams::{Phase, Streams};

    /// A run without a fault.
    fn healthy() -> Results {
        let pair = PairEstimate {
            forward: 1.0,
            backward: 1.0,
            bar: Bar { log_ratio: 1.0, slope: 1.0, overlap: 0.5 },
            crooks: Crooks { crossing: 1.0, slope: 1.0 },
        };
        Results {
            iterations: 10_000,
            schedule: Schedule::uniform(5),
            rejection_rates: vec![0.4; 4],
            local_barrier: [0.0, 0.25, 0.5, 0.75, 1.0].map(|beta| (beta, 1.6)).to_vec(),
            round_trips: 900,
            round_trip_rate: 0.09,
            round_trip_rate_predicted: 0.12,
            log_z: LogZ {
                forward: 4.01,
                backward: 3.99,
                geometric_mean: 4.0,
                bar: 4.0,
                standard_error: 0.01,
                pairs: vec![pair; 4],
            },
            legs: Vec::new(),
            log_z_truth: None,
            means: vec![(0.0, 0.01)],
            ess: vec![5000.0],
            acceptance: vec![f64::NAN, 0.9, 0.9, 0.9, 0.9],
            step_size: vec![0.1; 5],
            bad: (0, None),
            evaluations: 1000,
            sampling_evaluations: 900,
            network_evaluations: 0,
            sampling_network_evaluations: 0,
        }
    }

    /// Draws of two humps, the share of the right one given for each ladder.
    fn draws(shares: &[f64]) -> Vec<Draws> {
        let ladder = |(i, share): (usize, &f64)| {
            let mut stream = Streams::new(7).row(Phase::Check, 0, i as u32);
            let mut draw = || if stream.uniform() < *share { 3.0 } else { -3.0 } + stream.normal();
            Draws { x: (0..4000).map(|_| draw()).collect(), ..Draws::default() }
        };
        shares.iter().enumerate().map(ladder).collect()
    }

    fn codes(results: &Results) -> Vec<String> {
        codes_with(results, &[0.5, 0.5], |_| {})
    }

    fn codes_with(results: &Results, shares: &[f64], change: impl Fn(&mut Evidence)) -> Vec<String> {
        let draws = draws(shares);
        let mut evidence = Evidence {
            results,
            draws: draws.iter().collect(),
            dim: 1,
            features: Vec::new(),
            wanted_acceptance: Some(0.92),
            accelerated: false,
            training: None,
            optima: &[],
            unreached: None,
        };
        change(&mut evidence);
        evidence.alarms().iter().map(|alarm| alarm.code.name().to_string()).collect()
    }

    /// The silent half of every test below.
    #[test]
    fn a_healthy_run_raises_none() {
        assert!(codes(&healthy()).is_empty(), "{:?}", codes(&healthy()));
    }

    #[test]
    fn bad_density_says_where() {
        let point = BadPoint { iteration: 7, chain: 3, replica: 11, point: vec![1.5; 20] };
        let results = Results { bad: (2, Some(point)), ..healthy() };
        assert_eq!(codes(&results), ["bad-density"]);
        let evidence = Evidence {
            results: &results,
            draws: Vec::new(),
            dim: 1,
            features: Vec::new(),
            wanted_acceptance: None,
            accelerated: false,
            training: None,
            optima: &[],
            unreached: None,
        };
        let message = &evidence.alarms()[0].message;
        for part in ["2 proposals", "iteration 7", "chain 3", "replica 11", "[1.5, 1.5"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn starving_pair_needs_nearly_all_rejected() {
        let with = |rate| Results { rejection_rates: vec![0.4, rate, 0.4, 0.4], ..healthy() };
        assert_eq!(codes(&with(0.97)), ["starving-pair"]);
        assert!(codes(&with(0.9)).is_empty());
    }

    #[test]
    fn too_few_chains_compares_with_the_barrier() {
        let with = |lambda| Results {
            local_barrier: vec![(0.0, lambda), (0.5, lambda), (1.0, lambda)],
            ..healthy()
        };
        assert_eq!(codes(&with(4.5)), ["too-few-chains"]);
        assert!(codes(&with(3.5)).is_empty());
        // Accelerated swaps are judged by their own rejections, whatever λ says of plain ones.
        let accelerated = |e: &mut Evidence| e.accelerated = true;
        assert!(codes_with(&with(20.0), &[0.5, 0.5], accelerated).is_empty());
        let rejecting = Results { rejection_rates: vec![0.8; 4], ..healthy() };
        assert_eq!(codes_with(&rejecting, &[0.5, 0.5], accelerated), ["too-few-chains"]);
    }

    #[test]
    fn no_round_trip_and_low_exploration_exclude_each_other() {
        assert_eq!(codes(&Results { round_trips: 0, round_trip_rate: 0.0, ..healthy() }), ["no-round-trip"]);
        assert_eq!(codes(&Results { round_trip_rate: 0.02, ..healthy() }), ["low-exploration"]);
        // Too few to judge.
        assert!(codes(&Results { round_trips: 5, round_trip_rate: 0.02, ..healthy() }).is_empty());
    }

    #[test]
    fn log_z_disagrees_beyond_its_error() {
        let with = |forward| Results { log_z: LogZ { forward, ..healthy().log_z }, ..healthy() };
        assert_eq!(codes(&with(5.5)), ["log-z-disagrees"]);
        assert_eq!(codes(&with(f64::NAN)), ["log-z-disagrees"]);
        assert!(codes(&with(4.5)).is_empty());
    }

    #[test]
    fn step_size_bound_needs_an_adaptation_that_failed() {
        let mut results = healthy();
        results.step_size[2] = 1e-8;
        assert_eq!(codes(&results), ["step-size-bound"]);
        assert!(codes_with(&results, &[0.5, 0.5], |e| e.wanted_acceptance = None).is_empty());
        let mut results = healthy();
        results.acceptance[3] = 0.2;
        assert_eq!(codes(&results), ["step-size-bound"]);
        // Chain 0 draws exactly: its step size means nothing.
        let mut results = healthy();
        results.step_size[0] = 1e-8;
        assert!(codes(&results).is_empty());
    }

    #[test]
    fn missed_mode_needs_ladders_that_disagree() {
        assert_eq!(codes_with(&healthy(), &[0.5, 0.5, 0.0], |_| {}), ["missed-mode"]);
        assert!(codes_with(&healthy(), &[0.2, 0.2, 0.2], |_| {}).is_empty());
        // A molecule that turns as a whole: its angles are compared, not its coordinates.
        let angles =
            |shares: &[f64]| vec![("phi".to_string(), draws(shares).into_iter().map(|d| d.x).collect())];
        let turned = |e: &mut Evidence| e.features = angles(&[0.5, 0.5, 0.5]);
        assert!(codes_with(&healthy(), &[0.5, 0.5, 0.0], turned).is_empty());
        let missed = |e: &mut Evidence| e.features = angles(&[0.5, 0.0, 0.5]);
        assert_eq!(codes_with(&healthy(), &[0.5, 0.5, 0.5], missed), ["missed-mode"]);
        // One ladder, whose second half has found what the first had not.
        let mut late = draws(&[0.0, 0.5]);
        let second = late.pop().unwrap();
        late[0].x.extend(second.x);
        let results = healthy();
        let evidence = Evidence {
            results: &results,
            draws: late.iter().collect(),
            dim: 1,
            features: Vec::new(),
            wanted_acceptance: None,
            accelerated: false,
            training: None,
            optima: &[],
            unreached: None,
        };
        assert_eq!(evidence.alarms()[0].code, Code::MissedMode);
    }

    #[test]
    fn training_passes_its_own_on() {
        for code in ["transport-replaced", "training-diverged", "training-skipped"] {
            let report = FitReport { alarms: vec![(code.into(), "seen".into())], ..FitReport::default() };
            let results = healthy();
            let evidence = Evidence {
                results: &results,
                draws: Vec::new(),
                dim: 1,
                features: Vec::new(),
                wanted_acceptance: None,
                accelerated: true,
                training: Some(&report),
                optima: &[],
                unreached: None,
            };
            assert_eq!(evidence.alarms(), [Alarm { code: code.into(), message: "seen".into() }]);
            let quiet = FitReport::default();
            assert!(Evidence { training: Some(&quiet), ..evidence }.alarms().is_empty());
        }
    }
}
