//! What would help: remedies, the best first, with what each should bring.
//!
//! Gains are of round trips for the same evaluations. They follow from τ = 1/(2 + 2 Σ r/(1 − r)) and from what swaps between normals of one width
//! reject across a barrier λ, r = erf(√π λ/2), whose barriers add up; what they promise is worth a try, and no more.

use super::format::{count, duration, percent, significant};
use crate::alarms::{Class, Code, FOR_MOLECULES, LOW_ESS, MOST_ADVISED, Verdict, barrier};
use crate::summary::Summary;
use sterna::estimates::{barrier_of_rejection, rejection_across, round_trip_rate};
use sterna::schedule::chains_for;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// In a few words.
    pub headline: String,
    /// How, and why.
    pub detail: String,
    /// So many times the round trips for the same evaluations, where that can be foretold.
    pub gain: Option<f64>,
}

impl Remedy {
    fn new(headline: &str, detail: impl Into<String>) -> Self {
        Self { headline: headline.into(), detail: detail.into(), gain: None }
    }

    fn bringing(self, gain: f64) -> Self {
        Self { gain: Some(gain).filter(|gain| gain.is_finite()), ..self }
    }

    /// What it should bring, in words.
    pub fn expected(&self) -> Option<String> {
        let gain = self.gain?;
        Some(match gain {
            gain if gain > 100.0 => "more than 100 times the round trips for the same evaluations".into(),
            gain => format!("some {} times the round trips for the same evaluations", significant(gain, 2)),
        })
    }
}

/// So many are worth telling.
const MOST: usize = 3;

/// All that would help: first what makes the rest pointless, then what brings most. A run in good shape only needs time.
pub fn remedies(summary: &Summary) -> Vec<Remedy> {
    let mut first: Vec<Remedy> = broken(summary).into_iter().chain(unfinished(summary)).collect();
    let mut others: Vec<Remedy> =
        [chains(summary), evenness(summary), moves(summary), draws(summary)].into_iter().flatten().collect();
    // What cannot be foretold comes after what brings much, and before what brings little.
    let worth = |remedy: &Remedy| remedy.gain.unwrap_or(1.5);
    others.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    first.append(&mut others);
    first.truncate(MOST);
    if first.is_empty() {
        first.extend(other_alarms(summary));
    }
    first.extend(time(summary, first.is_empty()));
    if first.is_empty() {
        first.push(Remedy::new("The alarms first", "Sampling for longer does not mend what they speak of."));
    }
    first
}

/// What alarms ask for that nothing above speaks of.
fn other_alarms(summary: &Summary) -> Option<Remedy> {
    let gravest = summary.alarms.iter().find(|alarm| alarm.code.class() != Class::Note)?;
    let headline = format!("What the alarm {} asks for", gravest.code);
    Some(Remedy::new(
        &headline,
        "It stands below, with what to do; nothing else in the ladder asks for a change.",
    ))
}

/// Errors fall with the square root of time, where they are those of the right law.
fn time(summary: &Summary, alone: bool) -> Option<Remedy> {
    let needed = duration(4.0 * summary.cost.time.clock.sampling_s);
    match (summary.verdict, alone) {
        (Verdict::Sound, true) => Some(Remedy::new(
            "Only more iterations",
            format!(
                "Nothing in the ladder asks for a change. Four times as long, about {needed} of sampling, halves every error."
            ),
        )),
        (Verdict::Sound, false) => {
            Some(Remedy::new("More iterations", format!("Four times as long ({needed}) halves every error.")))
        }
        (Verdict::Doubtful, _) => Some(Remedy::new(
            "More iterations",
            format!(
                "Four times as long ({needed}) halves the errors that are shown, and shows whether the alarms stay."
            ),
        )),
        // Longer is no cure for draws of something else.
        (Verdict::Unsound, _) => None,
    }
}

/// What makes all else pointless.
fn broken(summary: &Summary) -> Option<Remedy> {
    let says = summary.moves.bad_densities.first.as_ref().is_some_and(|first| first.says.is_some());
    if summary.has(&Code::BadDensity) && !says {
        let detail = "It answered NaN or +∞ at some points; nothing else is as urgent.";
        return Some(Remedy::new("Mend the density first", detail));
    }
    if summary.has(&Code::CarriedOff) {
        let detail = "Draws wander off and hardly come back: bounds, or a proper prior, would give it one.";
        return Some(Remedy::new("Does the density have an integral?", detail));
    }
    let detail = "Step sizes did not settle. A wrong score is the usual cause: `sterna verify` tells.";
    summary.has(&Code::StepSizeBound).then(|| Remedy::new("Look at the local moves first", detail))
}

fn unfinished(summary: &Summary) -> Option<Remedy> {
    if summary.has(&Code::NotReached) {
        let times = summary.goals.and_then(|goals| goals.ess).map(|ess| ess.wanted / ess.reached);
        let how_long = match times.filter(|times| times.is_finite() && *times > 1.0) {
            Some(times) => format!("some {} times as long should do", significant(times, 2)),
            None => "the alarm below says what is missing".into(),
        };
        let detail = format!("It ended before it had reached what it was asked for: {how_long}.");
        return Some(Remedy::new("Let it go on", detail));
    }
    (!summary.finished).then(|| Remedy::new("Let it finish", "The run was stopped before its end."))
}

/// Across such a barrier one swap of a thousand passes.
const FAR: f64 = 2.6;

/// The first leg as swaps see it: its pairs' barriers.
struct Ladder {
    barriers: Vec<f64>,
}

impl Ladder {
    fn of(summary: &Summary) -> Option<Self> {
        let rates = summary.swaps.rejection_rates.get(..summary.target_number())?;
        let known = !rates.is_empty() && rates.iter().all(|rate| (0.0..=1.0).contains(rate));
        // A pair that let nothing pass may be this far apart, or farther.
        known.then(|| Self {
            barriers: rates.iter().map(|rate| barrier_of_rejection(rate.min(0.9995))).collect(),
        })
    }

    fn total(&self) -> f64 {
        self.barriers.iter().sum()
    }

    /// Round trips for an evaluation of each chain, up to a factor.
    fn worth(&self) -> f64 {
        let rates: Vec<f64> = self.barriers.iter().map(|barrier| rejection_across(*barrier)).collect();
        round_trip_rate(&rates) / (self.barriers.len() as f64 + 1.0)
    }

    /// The same barrier on so many pairs alike.
    fn on(&self, pairs: usize) -> Self {
        Self { barriers: vec![self.total() / pairs as f64; pairs] }
    }

    /// What so many pairs alike are worth beside these.
    fn gain(&self, pairs: usize) -> f64 {
        self.on(pairs).worth() / self.worth()
    }
}

/// What λ(β) says of the barrier where so many swaps are rejected that their sum cannot tell.
pub fn beyond_saturation(summary: &Summary) -> Option<f64> {
    let pairs = summary.target_number();
    let rates = summary.swaps.rejection_rates.get(..pairs)?;
    let (sum, integral) = (rates.iter().sum::<f64>(), first_barrier(summary));
    (sum > 0.8 * pairs as f64 && integral > 1.3 * sum).then_some(integral)
}

/// Λ of the first leg, as the alarm about chains has it.
fn first_barrier(summary: &Summary) -> f64 {
    let (swaps, local) = (&summary.swaps, &summary.swaps.local_barrier);
    let rates = swaps.rejection_rates.get(..summary.target_number()).unwrap_or_default();
    let local = local.beta.iter().copied().zip(local.lambda.iter().copied());
    barrier(rates, local, summary.setup.accelerator.steps > 0)
}

/// Chains that a fit of the reference chose are as many as it needs.
fn are_chosen(summary: &Summary) -> bool {
    !summary.swaps.legs.is_empty()
}

/// More chains where swaps are refused, fewer where hardly any are.
fn chains(summary: &Summary) -> Option<Remedy> {
    let mean = summary.swaps.global_barrier / (summary.setup.chains as f64 - 1.0);
    let alarm = summary.has(&Code::TooFewChains);
    let ladder = Ladder::of(summary);
    if alarm || mean > 0.67 || (summary.swaps.round_trips < 20 && mean > 0.5) {
        let asked_for = chains_for(first_barrier(summary));
        if alarm && asked_for > MOST_ADVISED {
            let detail =
                "No number of chains would do: the target is far narrower than the reference, or degenerate.";
            return Some(Remedy::new("Other coordinates, or a nearer reference", detail));
        }
        // The sum of rejections of few chains understates the barrier.
        let wanted = ladder.as_ref().map_or(summary.swaps.global_barrier, Ladder::total);
        let (wanted, plain) = (chains_for(wanted), summary.setup.accelerator.kind == "none");
        let number = match alarm {
            true => format!("about {} (chains.count)", count(asked_for as u64)),
            false => format!("at least {} (chains.count)", count(wanted as u64)),
        };
        let or = if plain { ", or a transport ([accelerator])" } else { "" };
        let detail = match mean.is_finite() {
            true => format!("On average {} of all swaps are rejected; try {number}{or}.", percent(mean)),
            false => format!("Try {number}{or}."),
        };
        // Where hardly a swap passes, nobody can tell how far apart the chains are.
        let known = |ladder: &Ladder| ladder.barriers.iter().all(|barrier| *barrier < FAR);
        let more = ladder.filter(|ladder| known(ladder) && wanted > summary.target_number() + 1);
        let gain = more.map(|ladder| ladder.gain(wanted - 1)).filter(|gain| *gain > 1.1);
        return Some(Remedy::new("More chains", detail).bringing(gain.unwrap_or(f64::NAN)));
    }
    let wanted = chains_for(summary.swaps.global_barrier);
    let fewer = mean < 0.25 && summary.setup.chains > wanted.saturating_add(1) && !are_chosen(summary);
    let gain = ladder.filter(|_| fewer)?.gain(wanted.max(2) - 1);
    let detail = format!(
        "Swaps are rejected only {} of the time; about {} chains do as well for fewer evaluations.",
        percent(mean),
        wanted.max(2)
    );
    (gain > 1.1).then(|| Remedy::new("Fewer chains would do", detail).bringing(gain))
}

/// Whether pairs alike would do better than these.
fn evenness(summary: &Summary) -> Option<Remedy> {
    let ladder = Ladder::of(summary)?;
    let gain = ladder.gain(ladder.barriers.len());
    let (pair, rate) = summary.swaps.worst_pair()?;
    if gain < 1.3 {
        return None;
    }
    let detail = format!(
        "The pair {pair}–{} rejects {} of its swaps, others fewer: more tuning rounds (schedule.rounds) even them out.",
        pair + 1,
        percent(rate)
    );
    Some(Remedy::new("Even out the ladder", detail).bringing(gain))
}

fn moves(summary: &Summary) -> Option<Remedy> {
    let efficiency = summary.swaps.exploration_efficiency;
    let detail = "Raise explorer.steps or explorer.leapfrog_steps: swaps are not the bottleneck.";
    let lagging = summary.has(&Code::LowExploration);
    // At twice the cost, half of the way to what the swaps allow is what can be hoped for.
    lagging.then(|| Remedy::new("More local moves", detail).bringing(0.25 * (1.0 + 1.0 / efficiency)))
}

/// Draws that are worth few, however good the swaps look.
fn draws(summary: &Summary) -> Option<Remedy> {
    let alarms = [Code::FewDraws, Code::RHat, Code::MissedMode, Code::FewRoundTrips, Code::LowEss];
    let first = alarms.iter().find(|code| summary.has(code))?;
    // As many more as are asked for: draws grow with the time, where they are those of the right law.
    let fewest = summary.mixing.as_ref().map_or(f64::NAN, |worst| worst.ess_bulk.min(worst.ess_tail));
    if *first == Code::LowEss && fewest >= 100.0 && fewest < LOW_ESS {
        let times = significant(LOW_ESS / fewest, 2);
        let detail =
            format!("Some {times} times as long brings the {LOW_ESS} that quantiles and errors want.");
        return Some(Remedy::new("More independent draws", detail));
    }
    let help = match (&summary.molecule, are_chosen(summary)) {
        (Some(_), _) => format!("Most help {FOR_MOLECULES}, then more iterations."),
        (None, true) => "Longer local moves help most, then more iterations.".into(),
        (None, false) => {
            "A reference nearer to the target helps most (reference.kind = \"fitted\"), then longer local moves, then more iterations.".into()
        }
    };
    Some(Remedy::new("More independent draws", format!("The alarm {first} says what they lack. {help}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarms::{Alarm, Verdict};
    use crate::summary::LocalBarrier;
    use crate::summary::tests::sound;

    fn with(change: impl Fn(&mut Summary)) -> Vec<Remedy> {
        let mut summary = sound();
        summary.alarms.clear();
        change(&mut summary);
        summary.swaps.global_barrier = summary.swaps.rejection_rates.iter().sum();
        summary.verdict = Verdict::of(&summary.alarms);
        remedies(&summary)
    }

    fn rings(summary: &mut Summary, code: Code) {
        summary.alarms.push(Alarm { code, message: String::new() });
    }

    /// The gain of halves by hand.
    #[test]
    fn gains_are_those_of_the_formula() {
        let unit = 2.0 / std::f64::consts::PI.sqrt();
        let [half, one] = [0.5 * unit, unit].map(rejection_across);
        let ladder = Ladder { barriers: vec![unit, unit] };
        let now = 1.0 / (2.0 + 4.0 * one / (1.0 - one)) / 3.0;
        let then = 1.0 / (2.0 + 8.0 * half / (1.0 - half)) / 5.0;
        assert!((ladder.gain(4) - then / now).abs() < 1e-12);
        assert!((ladder.gain(2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_best_comes_first_and_time_last() {
        let good = with(|_| {});
        assert_eq!((good.len(), &*good[0].headline), (1, "Only more iterations"));
        let starving = with(|s| {
            s.swaps.rejection_rates = vec![0.2, 0.99, 0.2, 0.2];
            rings(s, Code::FewRoundTrips);
        });
        let names: Vec<&str> = starving.iter().map(|remedy| &*remedy.headline).collect();
        assert_eq!(names, ["Even out the ladder", "More independent draws", "More iterations"]);
        assert!(starving[0].gain.unwrap() > 3.0 && starving[0].expected().unwrap().contains("times"));
        let refused = with(|s| {
            s.swaps.rejection_rates = vec![0.95; 4];
            s.swaps.round_trips = 3;
            rings(s, Code::BadDensity);
        });
        assert_eq!(refused[0].headline, "Mend the density first");
        assert!(refused[1].headline == "More chains" && refused[1].gain.unwrap() > 2.0, "{refused:?}");
        assert!(refused[1].detail.contains("14"), "{refused:?}");
    }

    #[test]
    fn what_hardly_brings_anything_is_not_told() {
        let fewer = with(|s| {
            s.setup.chains = 40;
            s.setup.schedule = (0..40).map(|n| f64::from(n) / 39.0).collect();
            s.swaps.rejection_rates = vec![0.04; 39];
        });
        assert!(fewer[0].headline.contains("Fewer") && fewer[0].gain.unwrap() > 1.5, "{fewer:?}");
        // What is not to be used does not get better by being more of the same.
        let unsound = with(|s| rings(s, Code::TruthMissed));
        assert_eq!(
            (unsound.len(), &*unsound[0].headline),
            (1, "What the alarm truth-missed asks for"),
            "{unsound:?}"
        );
        let doubtful = with(|s| rings(s, Code::CutTail));
        assert!(
            doubtful[0].headline.contains("cut-tail") && doubtful[1].detail.contains("alarms stay"),
            "{doubtful:?}"
        );
        let few = with(|s| {
            s.swaps.rejection_rates = vec![1.0; 4];
            s.swaps.local_barrier = LocalBarrier { beta: vec![0.0, 1.0], lambda: vec![9.0, 9.0] };
            rings(s, Code::TooFewChains);
        });
        assert!(few[0].detail.contains("about 19 (chains.count)"), "{few:?}");
        let absurd = with(|s| s.swaps.rejection_rates = vec![f64::NAN, 2.0, -1.0, 0.0]);
        assert!(absurd.iter().all(|remedy| remedy.gain.is_none_or(f64::is_finite)), "{absurd:?}");
        let closed = with(|s| s.swaps.rejection_rates = vec![1.0; 4]);
        assert!(closed[0].headline == "More chains" && closed[0].gain.is_none(), "{closed:?}");
        assert!(!closed.iter().any(|remedy| remedy.headline.contains("Even")), "{closed:?}");
    }
}
