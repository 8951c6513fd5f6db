//! Tuning and local moves: did the barrier and the step sizes settle, and what do moves do now?

use super::{Section, shade};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{number, percent, significant};
use crate::report::load::Folder;
use crate::summary::ExplorerSummary;
use crate::traces::Traces;

pub fn section(folder: &Folder) -> Option<Section> {
    let (traces, explorer) = (folder.traces.as_ref(), &folder.summary.moves.explorer);
    let wanted = traces.and_then(|traces| traces.labels.wanted_acceptance);
    let charts = [
        traces.and_then(barriers),
        traces.and_then(|traces| step_sizes(traces, explorer)),
        acceptance(explorer, wanted, &folder.summary.way()),
        final_steps(explorer, &folder.summary.way()),
    ];
    Some(Section {
        id: "tuning",
        title: "Tuning and local moves",
        table: String::new(),
        introduction: "Schedule and step sizes change between tuning rounds and are frozen before sampling. Curves that \
                       still climb in the last round ask for more rounds."
            .into(),
        figures: charts.into_iter().flatten().map(Figure::from).collect(),
    })
}

fn barriers(traces: &Traces) -> Option<Chart> {
    let rounds = &traces.rounds;
    if rounds.len() < 2 {
        return None;
    }
    let rejections: Vec<(f64, f64)> = rounds
        .iter()
        .enumerate()
        .map(|(i, r)| (i as f64 + 1.0, r.rejection_rates.iter().map(|r| r.unwrap_or(f64::NAN)).sum()))
        .collect();
    let integral: Vec<(f64, f64)> =
        rounds.iter().enumerate().map(|(i, r)| (i as f64 + 1.0, r.barrier.unwrap_or(f64::NAN))).collect();
    let all = rejections.iter().chain(&integral).map(|p| p.1);
    let mut chart = Chart::new(
        "tuning-barrier",
        "The barrier, round by round",
        rounds_axis(rounds.len()),
        Axis::around("barrier Λ", all, true),
    )
    .caption("∫λ does not saturate when there are few chains; Σr does. They agree once chains are many.")
    .description(format!(
        "Sum of rejection rates from {} in the first round to {} in the last.",
        number(rejections[0].1),
        number(rejections[rejections.len() - 1].1)
    ));
    for (class, name, line) in [("c1", "∫ λ(β) dβ", &integral), ("c2", "Σ r", &rejections)] {
        chart.line(class, line);
        chart.key(Key::Line, class, name);
        for &(round, value) in line.iter() {
            chart.dot(class, round, value, 3.0);
            chart.tip(round, value, format!("round {round}: {name} = {}", significant(value, 4)));
        }
    }
    Some(chart)
}

fn rounds_axis(rounds: usize) -> Axis {
    let step = rounds.div_ceil(12);
    let ticks = (1..=rounds).step_by(step).map(|r| (r as f64, r.to_string())).collect();
    Axis::linear("tuning round", 0.7, rounds as f64 + 0.3).ticks(ticks).no_grid()
}

fn step_sizes(traces: &Traces, explorer: &ExplorerSummary) -> Option<Chart> {
    let rounds = &traces.rounds;
    let chains = rounds.last()?.step_size.len();
    // Where the number of chains changed as well, a line has no meaning.
    if rounds.iter().any(|r| r.step_size.len() != chains) {
        return None;
    }
    // Fixed steps have nothing to show, nor has a chain that draws exactly.
    let moves = |n: usize| rounds.iter().any(|r| r.acceptance[n].is_some());
    if rounds.len() < 2 || rounds.iter().all(|r| r.step_size == rounds[0].step_size) {
        return None;
    }
    let all = || {
        rounds.iter().flat_map(|r| r.step_size.iter().enumerate().filter(|(n, _)| moves(*n)).map(|p| *p.1))
    };
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let mut chart = Chart::new(
        "tuning-steps",
        "Sizes of moves, round by round",
        rounds_axis(rounds.len()),
        Axis::log(&explorer.size, low / 1.3, 1.3 * high),
    )
    .caption(match explorer.size.as_str() {
        "step size" => "One line for each chain, relative to the scales of its coordinates.",
        _ => "One line for each chain, the mean over its coordinates.",
    })
    .description(format!(
        "Sizes of moves of {chains} chains over {} rounds, between {} and {}.",
        rounds.len(),
        number(low),
        number(high)
    ));
    for n in (0..chains).filter(|n| moves(*n)) {
        let line: Vec<(f64, f64)> =
            rounds.iter().enumerate().map(|(i, r)| (i as f64 + 1.0, r.step_size[n])).collect();
        chart.line(&format!("thin {}", shade(n, chains)), &line);
        for &(round, size) in &line {
            chart.tip(round, size, format!("chain {n}, round {round}: {}", significant(size, 3)));
        }
    }
    chart.key(Key::Line, "q0", "near the reference");
    chart.key(Key::Line, "q7", "target");
    Some(chart)
}

fn acceptance(explorer: &ExplorerSummary, wanted: Option<f64>, way: &str) -> Option<Chart> {
    let acceptance = &explorer.acceptance;
    let chains = acceptance.len();
    if acceptance.iter().all(|a| a.is_nan()) {
        return None;
    }
    let least = acceptance.iter().copied().filter(|a| a.is_finite()).fold(1.0, f64::min);
    let mut chart = Chart::new(
        "acceptance",
        "Accepted local moves",
        Axis::whole(&format!("chain, {way}"), chains, 0.6),
        Axis::linear("share of moves accepted", 0.0, 1.0),
    )
    .height(240.0)
    .caption({
        let size = match steps_in_use(explorer)[..] {
            [(_, size)] => format!(" The {} in use is {}.", explorer.size, significant(size, 3)),
            _ => String::new(),
        };
        let moves = match explorer.moves.is_empty() {
            true => "",
            false => " How many moves a chain makes between two swaps was found in tuning: point at a bar to see it.",
        };
        format!("Chains without a bar draw exactly.{size}{moves}")
    })
    .description(format!("Acceptance of local moves on {chains} chains; the least is {}.", percent(least)));
    for (n, &a) in acceptance.iter().enumerate().filter(|(_, a)| a.is_finite()) {
        let at = n as f64;
        chart.column(&shade(n, chains), at, a);
        let moves = match explorer.moves.get(n) {
            None => String::new(),
            Some(1) => ", 1 move an iteration".into(),
            Some(moves) => format!(", {moves} moves an iteration"),
        };
        chart.tip(at, a, format!("chain {n}: {}{moves}", percent(a)));
    }
    if let Some(wanted) = wanted {
        chart.line("dash ink", &[(-0.6, wanted), (chains as f64 - 0.4, wanted)]);
        chart.key(Key::Dash, "ink", format!("wanted: {}", percent(wanted)));
    }
    Some(chart)
}

/// Chains that move, with the size of their moves.
fn steps_in_use(explorer: &ExplorerSummary) -> Vec<(f64, f64)> {
    let moves = |n: usize| explorer.acceptance.get(n).is_some_and(|a| a.is_finite());
    let all = explorer.step_size.iter().enumerate().filter(|(n, size)| **size > 0.0 && moves(*n));
    all.map(|(n, &size)| (n as f64, size)).collect()
}

fn final_steps(explorer: &ExplorerSummary, way: &str) -> Option<Chart> {
    let (sizes, points) = (&explorer.step_size, steps_in_use(explorer));
    let (low, high) = (
        points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min),
        points.iter().map(|p| p.1).fold(0.0, f64::max),
    );
    // One alone is told beside its acceptance.
    if points.len() < 2 {
        return None;
    }
    let mut chart = Chart::new(
        "step-sizes",
        "Sizes of moves in use",
        Axis::whole(&format!("chain, {way}"), sizes.len(), 0.6),
        Axis::log(&explorer.size, low / 1.5, 1.5 * high),
    )
    .height(240.0)
    .caption("Frozen for sampling.")
    .description(format!("Sizes of moves between {} and {}.", number(low), number(high)));
    chart.line("faint", &points);
    for &(n, size) in &points {
        chart.dot(&shade(n as usize, sizes.len()), n, size, 4.0);
        chart.tip(n, size, format!("chain {n}: {}", significant(size, 3)));
    }
    Some(chart)
}
