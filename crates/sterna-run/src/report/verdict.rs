//! The verdict in words: do the chains communicate, can log Z be trusted, what would help most?

use super::format::{beside_error, count, duration, percent, with_error};
use crate::alarms::{Code, chains_for};
use crate::summary::Summary;

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Well.
    Good,
    /// Usable with care.
    Doubtful,
    /// Not usable as it is.
    Bad,
    /// Advice.
    Hint,
}

impl Mood {
    /// Class of the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
            Self::Hint => "hint",
        }
    }

    /// A sign that needs no colour.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Doubtful => "!",
            Self::Bad => "✕",
            Self::Hint => "→",
        }
    }
}

/// One of the three sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// How things stand.
    pub mood: Mood,
    /// In a few words.
    pub headline: String,
    /// And why.
    pub detail: String,
}

/// The three of them.
pub fn verdict(summary: &Summary) -> [Sentence; 3] {
    [communication(summary), log_z(summary), advice(summary)]
}

fn communication(summary: &Summary) -> Sentence {
    let (trips, efficiency) = (summary.swaps.round_trips, summary.swaps.exploration_efficiency);
    let (pair, rate) = summary.swaps.worst_pair().unwrap_or((0, f64::NAN));
    let trips_text = match trips {
        0 => "No replica went from reference to target and back".into(),
        1 => "1 round trip".into(),
        n => format!("{} round trips", count(n)),
    };
    let worst = format!("the hardest pair, {}–{}, rejects {} of its swaps", pair, pair + 1, percent(rate));
    let share = if trips > 0 {
        format!(", {} of what the swaps allow; {worst}.", percent(efficiency))
    } else {
        format!("; {worst}.")
    };
    let (mood, headline) = if trips == 0 {
        (Mood::Bad, "The chains do not communicate")
    } else if summary.has(&Code::MissedMode) {
        (Mood::Bad, "The ladders disagree")
    } else if trips < 20 || rate > 0.95 {
        (Mood::Doubtful, "The chains hardly communicate")
    } else if summary.has(&Code::LowExploration) {
        (Mood::Doubtful, "The chains communicate, but local moves lag behind")
    } else {
        (Mood::Good, "The chains communicate")
    };
    Sentence { mood, headline: headline.into(), detail: trips_text + &share }
}

fn log_z(summary: &Summary) -> Sentence {
    let z = &summary.log_z;
    let (value, error, off) = (z.bar, z.standard_error, z.deviation());
    let (pair, least) = z.least_overlap().unwrap_or((0, f64::NAN));
    let mut detail = format!("log Z = {}", with_error(value, error));
    if let (Some(truth), Some(off)) = (z.truth, off) {
        detail += &format!(
            "; exactly {}, so it is {:.1} standard errors off",
            beside_error(truth, error),
            off.abs()
        );
    }
    detail +=
        &format!(". The least overlap, {}, is between chains {} and {}.", percent(least), pair, pair + 1);
    let trips = summary.swaps.round_trips;
    let (mood, headline) = if !value.is_finite() || !error.is_finite() {
        (Mood::Bad, "log Z is unknown")
    } else if trips == 0 {
        (Mood::Bad, "log Z cannot be trusted")
    } else if off.is_some_and(|off| off.abs() > 5.0) {
        (Mood::Bad, "log Z is off")
    } else if summary.has(&Code::LogZDisagrees)
        || summary.has(&Code::MissedMode)
        || least.is_nan()
        || least < 0.03
        || trips < 20
    {
        (Mood::Doubtful, "Take log Z with care")
    } else {
        (Mood::Good, "log Z is trustworthy")
    };
    Sentence { mood, headline: headline.into(), detail }
}

/// The most urgent advice there is; a run in good shape only needs time.
fn advice(summary: &Summary) -> Sentence {
    let what_is_broken = broken(summary).or_else(|| more_chains(summary)).or_else(|| uneven(summary));
    what_is_broken.or_else(|| unfinished(summary)).or_else(|| fewer_chains(summary)).unwrap_or_else(|| {
        let time = duration(4.0 * summary.cost.time.clock.sampling_s);
        hint(
            "Only more iterations",
            format!(
                "The ladder is in good shape. Errors fall with the square root of time: to halve them, run four times \
                 as long (about {time})."
            ),
        )
    })
}

fn hint(headline: &str, detail: impl Into<String>) -> Sentence {
    Sentence { mood: Mood::Hint, headline: headline.into(), detail: detail.into() }
}

/// What makes all else pointless.
fn broken(summary: &Summary) -> Option<Sentence> {
    if summary.has(&Code::BadDensity) {
        let detail = "It answered NaN or +∞ at some points; nothing else is as urgent.";
        return Some(hint("Mend the density first", detail));
    }
    let detail = "Step sizes did not settle. A wrong score is the usual cause: `sterna verify` tells.";
    summary.has(&Code::StepSizeBound).then(|| hint("Look at the local moves first", detail))
}

/// Share of all swaps that are rejected.
fn mean_rejection(summary: &Summary) -> f64 {
    summary.swaps.global_barrier / (summary.setup.chains as f64 - 1.0)
}

fn more_chains(summary: &Summary) -> Option<Sentence> {
    let (mean, alarm) = (mean_rejection(summary), summary.has(&Code::TooFewChains));
    let rejecting = mean > 0.67 || (summary.swaps.round_trips < 20 && mean > 0.5);
    if !alarm && !rejecting {
        return None;
    }
    // Σr of few chains understates the barrier.
    let number = match alarm {
        true => "as many as the alarm below says".into(),
        false => format!("at least {}", chains_for(summary.swaps.global_barrier)),
    };
    let plain = summary.setup.accelerator.kind == "none";
    let or = if plain { ", or a transport ([accelerator])" } else { "" };
    let detail = match mean.is_finite() {
        true => format!("On average {} of all swaps are rejected; try {number}{or}.", percent(mean)),
        false => format!("Try {number}{or}."),
    };
    Some(hint("More chains", detail))
}

/// One pair, or the local moves, lag behind the rest.
fn uneven(summary: &Summary) -> Option<Sentence> {
    if summary.swaps.worst_pair().is_some_and(|(_, rate)| rate > 0.95) {
        let detail =
            "One pair starves while others do not: more tuning rounds (schedule.rounds), or more chains.";
        return Some(hint("Even out the ladder", detail));
    }
    let detail = "Raise explorer.steps or explorer.leapfrog_steps: swaps are not the bottleneck.";
    summary.has(&Code::LowExploration).then(|| hint("More local moves", detail))
}

fn unfinished(summary: &Summary) -> Option<Sentence> {
    (!summary.finished).then(|| hint("Let it finish", "The run was stopped before its end."))
}

fn fewer_chains(summary: &Summary) -> Option<Sentence> {
    let (mean, wanted) = (mean_rejection(summary), chains_for(summary.swaps.global_barrier));
    (mean < 0.25 && summary.setup.chains > wanted.saturating_add(1)).then(|| {
        hint(
            "Fewer chains would do",
            format!(
                "Swaps are rejected only {} of the time; about {wanted} chains make more round trips for their cost.",
                percent(mean)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarms::Alarm;
    use crate::summary::tests::sound;

    fn with(change: impl Fn(&mut Summary)) -> [Sentence; 3] {
        let mut summary = sound();
        summary.alarms.clear();
        change(&mut summary);
        verdict(&summary)
    }

    #[test]
    fn a_good_run_is_called_good() {
        let [chains, z, advice] = with(|_| {});
        assert_eq!((chains.mood, z.mood, advice.mood), (Mood::Good, Mood::Good, Mood::Hint));
        assert!(advice.headline.contains("more iterations"), "{advice:?}");
        assert!(z.detail.contains("0.5 standard errors"), "{z:?}");
    }

    #[test]
    fn a_bad_run_is_called_bad() {
        let [chains, z, advice] = with(|s| {
            s.swaps.round_trips = 0;
            s.swaps.rejection_rates = vec![0.9, 0.99, 0.9, 0.9];
            s.swaps.global_barrier = 3.69;
        });
        assert_eq!((chains.mood, z.mood), (Mood::Bad, Mood::Bad));
        assert!(chains.detail.contains("1–2") && advice.headline == "More chains", "{chains:?} {advice:?}");
    }

    #[test]
    fn log_z_far_from_the_truth_is_bad() {
        assert_eq!(with(|s| s.log_z.bar = 2.0)[1].mood, Mood::Bad);
        assert_eq!(with(|s| s.log_z.bar = f64::NAN)[1].mood, Mood::Bad);
        assert_eq!(with(|s| s.log_z.pairs[0].overlap = 0.01)[1].mood, Mood::Doubtful);
        // No pair, or one of which nothing is known, is nothing to trust.
        assert_eq!(with(|s| s.log_z.pairs[0].overlap = f64::NAN)[1].mood, Mood::Doubtful);
        assert_eq!(with(|s| s.log_z.pairs.clear())[1].mood, Mood::Doubtful);
    }

    #[test]
    fn alarms_decide_the_advice() {
        for (code, word) in [
            (Code::BadDensity, "density"),
            (Code::StepSizeBound, "local moves"),
            (Code::LowExploration, "local moves"),
        ] {
            let [_, _, advice] =
                with(|s| s.alarms = vec![Alarm { code: code.clone(), message: String::new() }]);
            assert!(advice.headline.to_lowercase().contains(word), "{advice:?}");
        }
        let [_, _, advice] = with(|s| {
            s.setup.chains = 40;
            s.swaps.rejection_rates = vec![0.04; 39];
        });
        assert!(advice.headline.contains("Fewer"), "{advice:?}");
    }

    /// Nothing is known: every sentence is still one.
    #[test]
    fn a_run_of_which_nothing_is_known_has_a_verdict() {
        let sentences = with(|s| {
            s.swaps.rejection_rates = vec![f64::NAN; 4];
            s.swaps.global_barrier = f64::NAN;
            s.swaps.exploration_efficiency = f64::NAN;
            s.log_z.bar = f64::NAN;
            s.log_z.standard_error = f64::NAN;
            s.log_z.pairs.clear();
            s.cost.time.clock.sampling_s = 0.0;
        });
        let absurd = with(|s| {
            s.swaps.global_barrier = 1e308;
            s.log_z.standard_error = 1e-308;
            s.cost.time.clock.sampling_s = 1e308;
        });
        for sentence in sentences.into_iter().chain(absurd) {
            let text = sentence.headline + &sentence.detail;
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
