//! The verdict in words: what do the alarms come to, do the chains communicate, what speaks against log Z, are the draws
//! enough, what would help most?

use super::format::{beside_error, count, number, percent, significant, with_error};
use super::remedies::remedies;
use crate::alarms::{Alarm, Class, Code, Verdict};
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

/// How grave an alarm is, as a mood.
pub fn mood_of(class: Class) -> Mood {
    match class {
        Class::DoNotUse => Mood::Bad,
        Class::Doubtful => Mood::Doubtful,
        Class::Note => Mood::Hint,
    }
}

/// One of the four sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// How things stand.
    pub mood: Mood,
    /// In a few words.
    pub headline: String,
    /// And why.
    pub detail: String,
    /// What else there is to say, one after the other.
    pub more: Vec<String>,
}

impl Sentence {
    fn new(mood: Mood, headline: &str, detail: String) -> Self {
        Self { mood, headline: headline.into(), detail, more: Vec::new() }
    }
}

/// The four of them.
pub fn verdict(summary: &Summary) -> [Sentence; 4] {
    let sentences = [communication(summary), log_z(summary), draws(summary)];
    let [chains, z, draws] = sentences.map(|sentence| beside(summary.verdict, sentence));
    [chains, z, draws, advice(summary)]
}

/// No card is green beside an alarm that speaks against the results.
fn beside(verdict: Verdict, sentence: Sentence) -> Sentence {
    match (sentence.mood, verdict) {
        (Mood::Good, Verdict::Doubtful | Verdict::Unsound) => Sentence {
            mood: Mood::Doubtful,
            detail: format!("{} But the alarms below stand against it.", sentence.detail),
            ..sentence
        },
        _ => sentence,
    }
}

/// The verdict itself, in a line.
pub fn judgement(summary: &Summary) -> Sentence {
    let of_class = |class| summary.alarms.iter().filter(move |alarm: &&Alarm| alarm.code.class() == class);
    let names = |class| of_class(class).map(|alarm| alarm.code.name()).collect::<Vec<_>>().join(", ");
    let (mood, headline, mut detail) = match summary.verdict {
        Verdict::Sound => (
            Mood::Good,
            "Sound: nothing seen speaks against these results",
            "What no chain came near, nobody has seen.".to_string(),
        ),
        Verdict::Doubtful => (
            Mood::Doubtful,
            "Doubtful: the results may be wrong by more than their errors say",
            format!("What speaks against them: {}.", names(Class::Doubtful)),
        ),
        Verdict::Unsound => (
            Mood::Bad,
            "Unsound: do not use these results as they are",
            format!("What forbids it: {}.", names(Class::DoNotUse)),
        ),
    };
    if let Some(unchecked) = summary.not_cross_checked() {
        detail += &format!(" And {unchecked}.");
    }
    Sentence::new(mood, headline, detail)
}

fn communication(summary: &Summary) -> Sentence {
    let (trips, efficiency) = (summary.swaps.round_trips, summary.swaps.share_of_allowed());
    let (pair, rate) = summary.swaps.worst_pair().unwrap_or((0, f64::NAN));
    let trips_text = match trips {
        0 => "No replica went from reference to target and back".into(),
        1 => "1 round trip".into(),
        n => format!("{} round trips", count(n)),
    };
    let worst =
        format!("the hardest pair, chains {} and {}, rejects {} of its swaps", pair, pair + 1, percent(rate));
    let share = if trips > 0 {
        format!(", {} of what the swaps allow; {worst}.", percent(efficiency))
    } else {
        format!("; {worst}.")
    };
    let (mood, headline) = if trips == 0 {
        (Mood::Bad, "The chains do not communicate")
    } else if summary.has(&Code::MissedMode) {
        (Mood::Bad, "The ladders disagree")
    } else if summary.has(&Code::UnvisitedOptimum) {
        (Mood::Doubtful, "An optimum was never visited")
    } else if summary.has(&Code::LeftOut) {
        (Mood::Doubtful, "The chains communicate, but points beside their draws found more mass")
    } else if summary.has(&Code::CutTail) {
        (Mood::Doubtful, "The chains communicate, but the end of a tail was not reached")
    } else if summary.has(&Code::FewRoundTrips) || rate > 0.95 {
        (Mood::Doubtful, "The chains hardly communicate")
    } else if summary.has(&Code::LowExploration) {
        (Mood::Doubtful, "The chains communicate, but local moves lag behind")
    } else {
        (Mood::Good, "The chains communicate")
    };
    Sentence::new(mood, headline, trips_text + &share)
}

fn log_z(summary: &Summary) -> Sentence {
    let z = &summary.log_z;
    let (value, error, off) = (z.bar, z.standard_error, z.deviation());
    let (pair, least) = z.least_overlap().unwrap_or((0, f64::NAN));
    let mut detail = format!("{} = {}", z.name(), with_error(value, error));
    if let (Some(truth), Some(off)) = (z.truth, off) {
        detail += &format!(
            "; exactly {}, so it is {:.1} standard errors off",
            beside_error(truth, error),
            off.abs()
        );
    }
    detail +=
        &format!(". The least overlap, {}, is between chains {} and {}.", percent(least), pair, pair + 1);
    let (mood, headline) = if !value.is_finite() || !error.is_finite() {
        (Mood::Bad, "log Z is unknown")
    } else if summary.has(&Code::TruthMissed) {
        (Mood::Bad, "log Z is off")
    } else if summary.has(&Code::NoRoundTrip) || summary.has(&Code::CarriedOff) {
        (Mood::Bad, "log Z cannot be trusted")
    } else if summary.has(&Code::LooksLikeReference) {
        (Mood::Doubtful, "log Z claims nothing")
    } else if summary.verdict != Verdict::Sound || least.is_nan() || least < 0.03 {
        (Mood::Doubtful, "Take log Z with care")
    } else {
        (Mood::Good, "Nothing seen speaks against log Z")
    };
    Sentence::new(mood, headline, detail)
}

fn draws(summary: &Summary) -> Sentence {
    let Some(worst) = &summary.mixing else {
        let detail = "Too few draws to say how many they are worth.".into();
        return Sentence::new(Mood::Doubtful, "Draws cannot be counted yet", detail);
    };
    let fewest = worst.ess_bulk.min(worst.ess_tail);
    let [bulk, tails] = [
        summary.slowest(worst.ess_bulk, |ranks| ranks.ess_bulk),
        summary.slowest(worst.ess_tail, |ranks| ranks.ess_tail),
    ];
    let of_tails = if bulk == tails { String::new() } else { format!(" ({tails})") };
    let mut detail = format!(
        "The fewest independent draws are {} in a bulk ({bulk}) and {} in tails{of_tails}; the largest R̂ is {} ({}).",
        number(worst.ess_bulk.round()),
        number(worst.ess_tail.round()),
        three(worst.r_hat),
        worst.r_hat_of
    );
    // Angles have their own count, around the circle.
    let angle = summary.molecule.as_ref().map_or(f64::INFINITY, |_| summary.target_chain.ess.minimum);
    if angle < worst.ess_bulk {
        detail += &format!(" The slowest dihedral is worth {}.", number(angle.round()));
    }
    if fewest >= 100.0 {
        let share = significant(1.0 / worst.ess_bulk.min(angle).sqrt(), 1);
        detail += &format!(" Every mean is known to {share} of its standard deviation, or better.");
    }
    let (mood, headline) = if summary.has(&Code::FewDraws) || fewest < 100.0 {
        (Mood::Bad, "The draws are too few")
    } else if summary.has(&Code::MissedMode) || summary.has(&Code::RHat) {
        (Mood::Doubtful, "Parts of the draws disagree")
    } else if summary.has(&Code::LowEss) || fewest.is_nan() {
        (Mood::Doubtful, "The draws are few")
    } else if summary.has(&Code::NotReached) {
        (Mood::Doubtful, "Less was reached than was asked for")
    } else if summary.verdict != Verdict::Sound {
        detail += " Whether they are draws of the right law, the alarms below doubt.";
        (Mood::Doubtful, "There are enough draws, if they are right")
    } else {
        (Mood::Good, "The draws are enough for means and quantiles")
    };
    Sentence::new(mood, headline, detail)
}

/// R̂ as tables have it.
pub(super) fn three(r_hat: f64) -> String {
    if r_hat.is_finite() { format!("{r_hat:.3}") } else { number(r_hat) }
}

/// What would help most, and then what else.
fn advice(summary: &Summary) -> Sentence {
    let mut all = remedies(summary).into_iter();
    let first = all.next().expect("time always helps");
    let expected = first.expected().map_or(String::new(), |expected| format!(" Expected: {expected}."));
    let more = all.map(|remedy| match remedy.expected() {
        Some(expected) => format!("{}: {expected}.", remedy.headline),
        None => format!("{}. {}", remedy.headline, remedy.detail),
    });
    Sentence {
        mood: Mood::Hint,
        headline: first.headline,
        detail: first.detail + &expected,
        more: more.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::WorstMixing;
    use crate::summary::tests::sound;

    fn with(change: impl Fn(&mut Summary)) -> [Sentence; 4] {
        let mut summary = sound();
        summary.alarms.clear();
        let r_hat_of = "theta[1]".into();
        summary.mixing = Some(WorstMixing { ess_bulk: 2500.0, ess_tail: 1200.0, r_hat: 1.002, r_hat_of });
        change(&mut summary);
        summary.verdict = Verdict::of(&summary.alarms);
        verdict(&summary)
    }

    fn alarm(code: Code) -> Vec<Alarm> {
        vec![Alarm { code, message: String::new() }]
    }

    /// Whatever rings, no card is green that it speaks against; notes speak against none.
    #[test]
    fn no_card_is_green_beside_an_alarm() {
        for code in Code::ALL {
            let [chains, z, draws, _] = with(|s| s.alarms = alarm(code.clone()));
            let green = [&chains, &z, &draws].iter().any(|sentence| sentence.mood == Mood::Good);
            assert_eq!(green, code.class() == Class::Note, "{code}: {chains:?} {z:?} {draws:?}");
        }
    }

    #[test]
    fn the_verdict_names_what_speaks_and_what_was_not_checked() {
        let mut summary = sound();
        let line = judgement(&summary);
        assert!(line.mood == Mood::Bad && line.detail.contains("missed-mode"), "{line:?}");
        assert!(line.detail.contains("modes were not cross-checked"), "{line:?}");
        summary.setup.ensembles = 4;
        summary.alarms.clear();
        summary.verdict = Verdict::Sound;
        let line = judgement(&summary);
        assert!(line.mood == Mood::Good && !line.detail.contains("cross-checked"), "{line:?}");
    }

    #[test]
    fn a_good_run_is_called_good() {
        let [chains, z, draws, advice] = with(|_| {});
        let moods = (chains.mood, z.mood, draws.mood, advice.mood);
        assert_eq!(moods, (Mood::Good, Mood::Good, Mood::Good, Mood::Hint));
        assert!(draws.detail.contains("2500") && draws.detail.contains("0.02 of its standard"), "{draws:?}");
        assert!(advice.headline.contains("more iterations"), "{advice:?}");
        assert!(z.detail.contains("0.5 standard errors"), "{z:?}");
    }

    #[test]
    fn a_bad_run_is_called_bad() {
        let [chains, z, _, advice] = with(|s| {
            s.swaps.round_trips = 0;
            s.swaps.rejection_rates = vec![0.9, 0.99, 0.9, 0.9];
            s.swaps.global_barrier = 3.69;
            s.alarms = alarm(Code::NoRoundTrip);
        });
        assert_eq!((chains.mood, z.mood), (Mood::Bad, Mood::Bad));
        assert!(
            chains.detail.contains("chains 1 and 2") && advice.headline == "More chains",
            "{chains:?} {advice:?}"
        );
    }

    #[test]
    fn log_z_far_from_the_truth_is_bad() {
        assert_eq!(with(|s| s.alarms = alarm(Code::TruthMissed))[1].mood, Mood::Bad);
        assert_eq!(with(|s| s.log_z.bar = f64::NAN)[1].mood, Mood::Bad);
        assert_eq!(with(|s| s.log_z.pairs[0].overlap = 0.01)[1].mood, Mood::Doubtful);
        // No pair, or one of which nothing is known, is nothing to trust.
        assert_eq!(with(|s| s.log_z.pairs[0].overlap = f64::NAN)[1].mood, Mood::Doubtful);
        assert_eq!(with(|s| s.log_z.pairs.clear())[1].mood, Mood::Doubtful);
    }

    #[test]
    fn draws_that_are_few_or_disagree_are_never_enough() {
        let of = |ess: f64, codes: &[Code]| {
            with(|s| {
                s.alarms = codes.iter().flat_map(|code| alarm(code.clone())).collect();
                let worst = s.mixing.as_mut().expect("it was set");
                (worst.ess_bulk, worst.ess_tail) = (ess, ess);
            })[2]
                .mood
        };
        assert_eq!((of(50.0, &[]), of(5000.0, &[Code::FewDraws])), (Mood::Bad, Mood::Bad));
        for code in [Code::RHat, Code::MissedMode, Code::LowEss, Code::NotReached] {
            assert_eq!(of(5000.0, &[code]), Mood::Doubtful);
        }
        assert_eq!((of(f64::NAN, &[]), with(|s| s.mixing = None)[2].mood), (Mood::Doubtful, Mood::Doubtful));
    }

    #[test]
    fn alarms_decide_the_advice() {
        for (code, word) in [
            (Code::BadDensity, "density"),
            (Code::StepSizeBound, "local moves"),
            (Code::LowExploration, "local moves"),
            (Code::CarriedOff, "integral"),
            (Code::NotReached, "go on"),
            (Code::FewDraws, "independent draws"),
        ] {
            let [.., advice] = with(|s| s.alarms = alarm(code.clone()));
            assert!(advice.headline.to_lowercase().contains(word), "{advice:?}");
        }
        let [.., advice] = with(|s| {
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
            let worst = s.mixing.as_mut().expect("it was set");
            (worst.ess_bulk, worst.ess_tail, worst.r_hat) = (f64::NAN, f64::NAN, f64::NAN);
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
