//! The verdict in words: do the chains communicate, can log Z be trusted, what would help most?

use super::format::{beside_error, count, duration, percent, with_error};
use super::{number_at, numbers};
use serde_json::Value;

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
pub fn verdict(summary: &Value) -> [Sentence; 3] {
    [communication(summary), log_z(summary), advice(summary)]
}

fn has(summary: &Value, code: &str) -> bool {
    summary["alarms"].as_array().is_some_and(|all| all.iter().any(|alarm| alarm["code"] == code))
}

fn worst_pair(summary: &Value) -> Option<(usize, f64)> {
    let rates = numbers(&summary["rejection_rates"]);
    rates.into_iter().enumerate().filter(|r| r.1.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn communication(summary: &Value) -> Sentence {
    let trips = summary["round_trips"].as_u64().unwrap_or(0);
    let efficiency = number_at(summary, "exploration_efficiency");
    let (pair, rate) = worst_pair(summary).unwrap_or((0, f64::NAN));
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
    } else if has(summary, "missed-mode") {
        (Mood::Bad, "The ladders disagree")
    } else if trips < 20 || rate > 0.95 {
        (Mood::Doubtful, "The chains hardly communicate")
    } else if has(summary, "low-exploration") {
        (Mood::Doubtful, "The chains communicate, but local moves lag behind")
    } else {
        (Mood::Good, "The chains communicate")
    };
    Sentence { mood, headline: headline.into(), detail: trips_text + &share }
}

fn log_z(summary: &Value) -> Sentence {
    let z = &summary["log_z"];
    let (value, error) = (number_at(z, "bar"), number_at(z, "standard_error"));
    let overlap = z["pairs"].as_array().into_iter().flatten().map(|p| number_at(p, "overlap"));
    let (pair, least) = overlap
        .enumerate()
        .map(|(n, o)| (n, if o.is_nan() { 0.0 } else { o }))
        .fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
    let mut detail = format!("log Z = {}", with_error(value, error));
    let truth = z["truth"].as_f64();
    let off = truth.map(|truth| (value - truth) / error).filter(|off| off.is_finite());
    if let (Some(truth), Some(off)) = (truth, off) {
        detail += &format!(
            "; exactly {}, so it is {:.1} standard errors off",
            beside_error(truth, error),
            off.abs()
        );
    }
    detail +=
        &format!(". The least overlap, {}, is between chains {} and {}.", percent(least), pair, pair + 1);
    let trips = summary["round_trips"].as_u64().unwrap_or(0);
    let (mood, headline) = if !value.is_finite() || !error.is_finite() {
        (Mood::Bad, "log Z is unknown")
    } else if trips == 0 {
        (Mood::Bad, "log Z cannot be trusted")
    } else if off.is_some_and(|off| off.abs() > 5.0) {
        (Mood::Bad, "log Z is off")
    } else if has(summary, "log-z-disagrees") || has(summary, "missed-mode") || least < 0.03 || trips < 20 {
        (Mood::Doubtful, "Take log Z with care")
    } else {
        (Mood::Good, "log Z is trustworthy")
    };
    Sentence { mood, headline: headline.into(), detail }
}

fn advice(summary: &Value) -> Sentence {
    let barrier = number_at(summary, "global_barrier");
    let chains = summary["chains"].as_u64().unwrap_or(2);
    let wanted = (2.0 * barrier).ceil() as u64 + 1;
    let plain = summary["accelerator"]["kind"] == "none";
    let trips = summary["round_trips"].as_u64().unwrap_or(0);
    let (_, worst) = worst_pair(summary).unwrap_or((0, f64::NAN));
    let mean = barrier / (chains as f64 - 1.0);
    let hint =
        |headline: &str, detail: String| Sentence { mood: Mood::Hint, headline: headline.into(), detail };
    if has(summary, "bad-density") {
        return hint(
            "Mend the density first",
            "It answered NaN or +∞ at some points; nothing else is as urgent.".into(),
        );
    }
    if has(summary, "step-size-bound") {
        return hint(
            "Look at the local moves first",
            "Step sizes did not settle. A wrong score is the usual cause: `sterna verify` tells.".into(),
        );
    }
    if has(summary, "too-few-chains") || mean > 0.67 || (trips < 20 && mean > 0.5) {
        // Σr of few chains understates the barrier.
        let number = if has(summary, "too-few-chains") {
            "as many as the alarm below says".into()
        } else {
            format!("at least {wanted}")
        };
        let or = if plain { ", or a transport ([accelerator])" } else { "" };
        return hint(
            "More chains",
            match mean.is_finite() {
                true => format!("On average {} of all swaps are rejected; try {number}{or}.", percent(mean)),
                false => format!("Try {number}{or}."),
            },
        );
    }
    if worst > 0.95 {
        return hint(
            "Even out the ladder",
            "One pair starves while others do not: more tuning rounds (schedule.rounds), or more chains."
                .into(),
        );
    }
    if has(summary, "low-exploration") {
        return hint(
            "More local moves",
            "Raise explorer.steps or explorer.leapfrog_steps: swaps are not the bottleneck.".into(),
        );
    }
    if summary["finished"] == false {
        return hint("Let it finish", "The run was stopped before its end.".into());
    }
    if mean < 0.25 && chains > wanted + 1 {
        return hint(
            "Fewer chains would do",
            format!(
                "Swaps are rejected only {} of the time; about {wanted} chains make more round trips for their cost.",
                percent(mean)
            ),
        );
    }
    let time = number_at(&summary["time"], "sampling_s");
    hint(
        "Only more iterations",
        format!(
            "The ladder is in good shape. Errors fall with the square root of time: to halve them, run four times as long (about {}).",
            duration(4.0 * time)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary() -> Value {
        json!({
            "finished": true, "chains": 5, "round_trips": 900, "exploration_efficiency": 0.8, "global_barrier": 1.6,
            "rejection_rates": [0.4, 0.4, 0.4, 0.4], "accelerator": {"kind": "none"}, "alarms": [],
            "time": {"sampling_s": 10.0},
            "log_z": {"bar": 1.0, "standard_error": 0.1, "truth": 1.05, "pairs": [{"overlap": 0.5}]},
        })
    }

    fn with(change: impl Fn(&mut Value)) -> [Sentence; 3] {
        let mut summary = summary();
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
            s["round_trips"] = json!(0);
            s["rejection_rates"] = json!([0.9, 0.99, 0.9, 0.9]);
            s["global_barrier"] = json!(3.69);
        });
        assert_eq!((chains.mood, z.mood), (Mood::Bad, Mood::Bad));
        assert!(chains.detail.contains("1–2") && advice.headline == "More chains", "{chains:?} {advice:?}");
    }

    #[test]
    fn log_z_far_from_the_truth_is_bad() {
        assert_eq!(with(|s| s["log_z"]["bar"] = json!(2.0))[1].mood, Mood::Bad);
        assert_eq!(with(|s| s["log_z"]["bar"] = Value::Null)[1].mood, Mood::Bad);
        assert_eq!(with(|s| s["log_z"]["pairs"][0]["overlap"] = json!(0.01))[1].mood, Mood::Doubtful);
    }

    #[test]
    fn alarms_decide_the_advice() {
        for (code, word) in [
            ("bad-density", "density"),
            ("step-size-bound", "local moves"),
            ("low-exploration", "local moves"),
        ] {
            let [_, _, advice] = with(|s| s["alarms"] = json!([{"code": code, "message": ""}]));
            assert!(advice.headline.to_lowercase().contains(word), "{advice:?}");
        }
        let [_, _, advice] = with(|s| {
            s["chains"] = json!(40);
            s["rejection_rates"] = json!(vec![0.04; 39])
        });
        assert!(advice.headline.contains("Fewer"), "{advice:?}");
    }
}
