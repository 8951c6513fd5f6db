//! What it cost: seconds and evaluations by stage.

use super::Section;
use crate::report::chart::{Axis, Chart};
use crate::report::format::{count, duration, number, percent};
use crate::report::load::Folder;
use crate::report::number_at;

pub fn section(folder: &Folder) -> Option<Section> {
    let summary = &folder.summary;
    let time = &summary["time"];
    let stages = [
        ("tuning", "tuning_s"),
        ("collecting", "collecting_s"),
        ("training", "training_s"),
        ("sampling", "sampling_s"),
    ];
    let seconds: Vec<(&str, f64)> =
        stages.iter().map(|(name, key)| (*name, number_at(time, key))).filter(|s| s.1 > 0.0).collect();
    let evaluations = &summary["evaluations"];
    let of = |key: &str| evaluations[key].as_f64().unwrap_or(0.0);
    let before = of("target") - of("sampling") - of("training");
    let points: Vec<(&str, f64)> = [
        ("target, tuning", before),
        ("target, training", of("training")),
        ("target, sampling", of("sampling")),
        ("network, training", of("network_training")),
        ("network, sampling", of("network") - of("network_training")),
    ]
    .into_iter()
    .filter(|e| e.1 > 0.0)
    .collect();
    let figures = [
        bars("cost-time", "Time by stage", "seconds", &seconds, duration, None),
        bars(
            "cost-evaluations",
            "Evaluations by stage",
            "points evaluated",
            &points,
            |n| count(n as u64),
            None,
        ),
    ];
    let figures: Vec<String> = figures.into_iter().flatten().chain(payoff(folder)).collect();
    let normalised = &summary["compute_normalised_round_trips"];
    Some(Section {
        id: "cost",
        title: "What it cost",
        introduction: format!(
            "{} round trips a second of sampling, {} iterations a second; divided by the evaluations that each replica \
             makes in an iteration, {} round trips.",
            number(number_at(normalised, "per_second")),
            number(number_at(time, "iterations_per_second")),
            number(number_at(normalised, "all_evaluations"))
        ),
        figures,
    })
}

fn bars(
    id: &str,
    title: &str,
    unit: &str,
    rows: &[(&str, f64)],
    say: impl Fn(f64) -> String,
    caption: Option<String>,
) -> Option<String> {
    let total: f64 = rows.iter().map(|r| r.1).sum();
    if rows.is_empty() || total <= 0.0 {
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
    Some(chart.figure())
}

/// Round trips for a million evaluations, with plain swaps and with the transport.
fn payoff(folder: &Folder) -> Option<String> {
    let payoff = &folder.summary["payoff"];
    let of = |key: &str| 1e6 * number_at(&payoff[key], "per_evaluation");
    let rows: Vec<(&str, f64)> = [
        ("plain swaps", of("plain")),
        ("with the transport", of("sampling")),
        ("its making included", of("everything")),
    ]
    .into_iter()
    .filter(|row| row.1.is_finite())
    .collect();
    let even = folder.summary["break_even"]["iterations"].as_f64();
    let words = match even {
        Some(n) => format!(
            "At the present cost of an evaluation the transport pays for itself after {} iterations.",
            count(n as u64)
        ),
        None => "At the present cost of an evaluation plain swaps make more round trips a second.".into(),
    };
    bars(
        "payoff",
        "Does the transport pay?",
        "round trips for a million evaluations of the target",
        &rows,
        number,
        Some(words),
    )
}
