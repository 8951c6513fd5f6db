//! What it cost: seconds and evaluations by stage.

use super::Section;
use crate::report::chart::{Axis, Chart};
use crate::report::figure::Figure;
use crate::report::format::{count, duration, number, percent};
use crate::report::load::Folder;
use crate::summary::{Cost, Time};

pub fn section(folder: &Folder) -> Option<Section> {
    let (cost, swaps) = (&folder.summary.cost, &folder.summary.swaps);
    let charts = [seconds(&cost.time), points(cost), payoff(cost)];
    let normalised = &swaps.compute_normalised_round_trips;
    // Of a replica, in an iteration.
    let each = swaps.round_trips as f64 / normalised.all_evaluations;
    let worth = match each.is_finite() && swaps.round_trips > 0 {
        true => format!(
            " A replica asks for {} evaluations in an iteration; with one each, as much work would have brought {} round trips: \
             the number by which to compare settings.",
            number(each),
            number(normalised.all_evaluations)
        ),
        false => String::new(),
    };
    Some(Section {
        id: "cost",
        title: "What it cost",
        table: String::new(),
        introduction: format!(
            "{} round trips and {} iterations a second of sampling.{worth}",
            number(normalised.per_second),
            number(cost.time.iterations_per_second)
        ),
        figures: charts.into_iter().flatten().map(Figure::from).collect(),
    })
}

fn seconds(time: &Time) -> Option<Chart> {
    let stages = &time.clock;
    let rows = [
        ("tuning", stages.tuning_s),
        ("collecting", stages.collecting_s),
        ("training", stages.training_s),
        ("sampling", stages.sampling_s),
    ];
    bars("cost-time", "Time by stage", "seconds", &rows, duration, None)
}

fn points(cost: &Cost) -> Option<Chart> {
    let evaluations = &cost.evaluations;
    let rows = [
        ("target, trial", evaluations.trial),
        ("target, climbing", evaluations.climbing),
        ("target, tuning", evaluations.tuning()),
        ("target, training", evaluations.training),
        ("target, sampling", evaluations.sampling),
        ("target, last look", evaluations.last_look),
        ("network, training", evaluations.network_training),
        ("network, sampling", evaluations.network_sampling()),
    ]
    .map(|(name, points)| (name, points as f64));
    let say = |n: f64| count(n as u64);
    let networks = match evaluations.network {
        0 => String::new(),
        n => format!(", {} of networks", count(n)),
    };
    let collecting = match cost.time.clock.collecting_s > 0.0 {
        true => " Samples to train on were collected in tuning's.",
        false => "",
    };
    let words = format!("{} of the target{networks}, in all.{collecting}", count(evaluations.target));
    bars("cost-evaluations", "Evaluations by stage", "points evaluated", &rows, say, Some(words))
}

/// Bars of what is more than nothing.
pub(super) fn bars(
    id: &str,
    title: &str,
    unit: &str,
    rows: &[(&str, f64)],
    say: impl Fn(f64) -> String,
    caption: Option<String>,
) -> Option<Chart> {
    let rows: Vec<(&str, f64)> = rows.iter().copied().filter(|r| r.1 > 0.0 && r.1.is_finite()).collect();
    let total: f64 = rows.iter().map(|r| r.1).sum();
    if rows.is_empty() {
        return None;
    }
    let n = rows.len() as f64;
    let ticks = rows.iter().enumerate().map(|(i, r)| (n - 1.0 - i as f64, r.0.to_string())).collect();
    let y = Axis::linear("", -0.6, n - 0.4).ticks(ticks).no_grid();
    let most = rows.iter().map(|r| r.1).fold(0.0, f64::max);
    let words = rows.iter().map(|r| format!("{}: {}", r.0, say(r.1))).collect::<Vec<_>>().join("; ");
    let mut chart = Chart::new(id, title, Axis::linear(unit, 0.0, 1.25 * most), y)
        .height(80.0 + 36.0 * n)
        .caption(caption.unwrap_or_else(|| format!("{} in all.", say(total))))
        .description(words);
    for (i, &(name, value)) in rows.iter().enumerate() {
        let at = n - 1.0 - i as f64;
        chart.bar("c1", (0.0, at - 0.3), (value, at + 0.3));
        chart.text("value", value + 0.015 * most, at - 0.12, "start", &say(value));
        chart.tip(value, at, format!("{name}: {} ({})", say(value), percent(value / total)));
    }
    Some(chart)
}

/// Round trips for a million evaluations, with plain swaps and with the transport.
fn payoff(cost: &Cost) -> Option<Chart> {
    let (payoff, break_even) = (cost.payoff.as_ref()?, cost.break_even.as_ref()?);
    let rows = [
        ("plain swaps", 1e6 * payoff.plain.per_evaluation),
        ("with the transport", 1e6 * payoff.sampling.per_evaluation),
        ("its making included", 1e6 * payoff.everything.per_evaluation),
    ];
    let unit = "round trips for 10⁶ evaluations";
    bars("payoff", "Does the transport pay?", unit, &rows, number, Some(payoff.sentence(break_even)))
}
