//! Do replicas travel? Index process, round trips, rejection rates.

use super::{Section, chain_ticks, pair_ticks};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{count, number, percent, significant};
use crate::report::load::Folder;
use crate::summary::Summary;
use crate::traces::{IndexProcess, Traces};

pub fn section(folder: &Folder) -> Option<Section> {
    let mut figures = Vec::new();
    if let Some(traces) = &folder.traces {
        figures.extend(index_process(&folder.summary, traces));
        figures.extend(round_trips(&folder.summary, traces).map(Figure::from));
    }
    figures.extend(rejection_rates(folder).map(Figure::from));
    Some(Section {
        id: "communication",
        title: "Do the chains communicate?",
        table: String::new(),
        introduction: introduction(&folder.summary),
        figures,
    })
}

fn introduction(summary: &Summary) -> String {
    let words = "A replica that travels from the reference to the target and back has carried an independent sample all the \
                 way. Round trips are the currency; rejected swaps are what they cost.";
    match &summary.swaps.legs[..] {
        [fitted, anchor] => format!(
            "{words} Here there are two ways to the target: {} round trips began at the fitted reference and {} at the anchor, \
             which moves in every {} of the iterations.",
            count(fitted.round_trips),
            count(anchor.round_trips),
            if anchor.every == 1 { "one".into() } else { format!("{}th", anchor.every) }
        ),
        _ => words.into(),
    }
}

/// Replicas drawn in colour.
const COLOURED: usize = 4;

fn index_process(summary: &Summary, traces: &Traces) -> Option<Figure> {
    let start = &traces.start;
    let replicas = start.replicas.len();
    let recorded = start.chains.first()?.len();
    let chains = summary.setup.chains;
    if recorded < 2 || chains < 2 {
        return None;
    }
    // A little more than a round trip of each replica, but not more than the eye can follow.
    let rate = summary.swaps.round_trip_rate;
    let trip = if rate > 0.0 { chains as f64 / rate } else { f64::INFINITY };
    let shown = ((1.3 * trip).clamp(150.0, 900.0) as usize).min(recorded);
    let coloured = COLOURED.min(replicas);
    let picked: Vec<usize> = (0..coloured).map(|i| i * (replicas - 1) / (coloured - 1).max(1)).collect();
    let mut chart = Chart::new(
        "index-process",
        "Where replicas travel",
        Axis::linear("iteration of sampling", 0.0, shown as f64),
        chain_axis(summary),
    )
    .wide()
    .height(320.0)
    .caption(format!(
        "Chains of {replicas} replicas of the first ladder; {} in colour. Full crossings are good; a height that \
         nobody crosses is a barrier.",
        picked.len()
    ))
    .description(format!(
        "Lines of {replicas} replicas over the first {shown} iterations, {}. {} round trips were made in the whole run.",
        summary.way(),
        summary.swaps.round_trips
    ));
    first_iterations(&mut chart, start, &picked, shown);
    let mut panels = vec![(format!("first {} iterations", count(shown as u64)), chart.clone())];
    panels.extend(whole_run(&traces.index, &picked, chains));
    Some(Figure::choice("index-process", chart, "Show", panels, 0))
}

/// Chains from the reference at the bottom upwards.
fn chain_axis(summary: &Summary) -> Axis {
    Axis::linear("chain", -0.4, summary.setup.chains as f64 - 0.6).ticks(chain_ticks(summary, 8))
}

/// Lines of all replicas, those picked in colour.
fn first_iterations(chart: &mut Chart, start: &IndexProcess, picked: &[usize], shown: usize) {
    let points = |m: usize| -> Vec<(f64, f64)> {
        start.chains[m].iter().take(shown).enumerate().map(|(t, &c)| (t as f64 + 1.0, f64::from(c))).collect()
    };
    for m in (0..start.replicas.len()).filter(|m| !picked.contains(m)) {
        chart.levels("faint", &points(m));
    }
    for (i, &m) in picked.iter().enumerate() {
        let (class, replica) = (format!("c{}", i + 1), start.replicas[m]);
        let line = points(m);
        chart.levels(&class, &line);
        chart.key(Key::Line, &class, format!("replica {replica}"));
        for &(t, c) in line.iter().step_by((shown / 120).max(1)) {
            chart.tip(t, c, format!("replica {replica}: chain {c} at iteration {}", count(t as u64)));
        }
    }
}

/// Strips of the coloured replicas over the whole run.
fn whole_run(index: &IndexProcess, picked: &[usize], chains: usize) -> Option<(String, Chart)> {
    let entries = index.chains.first()?.len();
    if entries < 2 || index.stride < 2 || picked.iter().any(|&m| m >= index.replicas.len()) {
        return None;
    }
    let end = entries as f64 * index.stride as f64;
    let gap = chains as f64 * 1.15;
    let base = |i: usize| gap * (picked.len() - 1 - i) as f64;
    let middle = 0.5 * (chains as f64 - 1.0);
    let names =
        picked.iter().enumerate().map(|(i, &m)| (base(i) + middle, format!("replica {}", index.replicas[m])));
    let y = Axis::linear("", -0.5, gap * picked.len() as f64 - 0.15 * chains as f64)
        .ticks(names.collect())
        .no_grid();
    let mut chart = Chart::new(
        "index-process-whole",
        "The same replicas over the whole run",
        Axis::linear("iteration of sampling", 0.0, end),
        y,
    )
    .wide()
    .height(320.0)
    .description(format!(
        "Chains of {} replicas at every {}th iteration of the run.",
        picked.len(),
        index.stride
    ));
    let at = |e: usize| (e as f64 + 1.0) * index.stride as f64;
    for (i, &m) in picked.iter().enumerate() {
        for edge in [base(i), base(i) + chains as f64 - 1.0] {
            chart.line("rule", &[(0.0, edge), (end, edge)]);
        }
        let line: Vec<(f64, f64)> =
            index.chains[m].iter().enumerate().map(|(e, &c)| (at(e), base(i) + f64::from(c))).collect();
        chart.line(&format!("thin c{}", i + 1), &line);
        for (e, &c) in index.chains[m].iter().enumerate().step_by(4) {
            let text =
                format!("replica {}: chain {c} at iteration {}", index.replicas[m], count(at(e) as u64));
            chart.tip(at(e), base(i) + f64::from(c), text);
        }
    }
    Some((format!("whole run, every {}th iteration", index.stride), chart))
}

fn round_trips(summary: &Summary, traces: &Traces) -> Option<Chart> {
    let trips: Vec<(f64, f64)> = traces.round_trips.iter().map(|&(t, n)| (t as f64, n as f64)).collect();
    let last = *trips.last()?;
    let ladders = summary.setup.ensembles;
    let predicted = summary.swaps.round_trip_rate_predicted * ladders as f64;
    let expected = if predicted.is_finite() { predicted * last.0 } else { 0.0 };
    let of_ladders = if ladders > 1 { format!(", {ladders} ladders together") } else { String::new() };
    let mut chart = Chart::new(
        "round-trips",
        "Round trips so far",
        Axis::linear("iteration of sampling", 0.0, last.0),
        Axis::linear("round trips", 0.0, 1.06 * last.1.max(expected).max(1.0)),
    )
    .caption("A straight line means steady travel; the dashed one is what the rejection rates would allow.")
    .description(format!(
        "Cumulative round trips reach {} after {} iterations{of_ladders}; the rejection rates allow {}.",
        count(last.1 as u64),
        count(last.0 as u64),
        number(expected.round())
    ));
    let mut line = vec![(0.0, 0.0)];
    line.extend(&trips);
    if expected > 0.0 {
        chart.line("dash c5", &[(0.0, 0.0), (last.0, expected)]);
        chart.key(Key::Dash, "c5", format!("allowed by the swaps: {}", number(expected.round())));
    }
    chart.line("c1", &line);
    chart.key(Key::Line, "c1", format!("made{of_ladders}: {}", count(summary.swaps.round_trips)));
    for &(t, n) in trips.iter().step_by(trips.len().div_ceil(128)) {
        chart.tip(t, n, format!("{} round trips after {} iterations", count(n as u64), count(t as u64)));
    }
    Some(chart)
}

/// Rejection rates of plain swaps, where the run knows them, and where they come from.
fn plain_rates(folder: &Folder) -> Option<(Vec<f64>, &'static str)> {
    let training = folder.summary.training.as_ref();
    if let Some(training) = training.filter(|training| !training.plain_rejection_rates.is_empty()) {
        return Some((training.plain_rejection_rates.clone(), "plain swap, on held-out samples"));
    }
    // Accelerators that are fitted are not there yet while the schedule is tuned.
    let fitted = ["affine", "monotone", "cmcd"].contains(&folder.summary.setup.accelerator.kind.as_str());
    let last = folder.traces.as_ref().filter(|_| fitted)?.rounds.last()?;
    Some((
        last.rejection_rates.iter().map(|r| r.unwrap_or(f64::NAN)).collect(),
        "plain swap, last tuning round",
    ))
}

fn rejection_rates(folder: &Folder) -> Option<Chart> {
    let rates = &folder.summary.swaps.rejection_rates;
    if rates.is_empty() {
        return None;
    }
    let pairs = rates.len();
    let plain = plain_rates(folder).filter(|(plain, _)| plain.len() == pairs);
    // Names of pairs are long: fewer of them where there are many.
    let x = Axis::linear(&format!("pair of chains, {}", folder.summary.way()), -0.6, pairs as f64 - 0.4)
        .ticks(pair_ticks(pairs, if pairs > 8 { 7 } else { 8 }))
        .no_grid();
    let worst = rates.iter().copied().fold(0.0, f64::max);
    let mut chart = Chart::new(
        "rejection-rates",
        "Rejected swaps of each pair",
        x,
        Axis::linear("share of swaps rejected", 0.0, 1.0),
    )
    .caption("Even bars are what tuning aims at; around one half serves best. A bar near 1 is a bottleneck.")
    .description(format!(
        "Rejection rates of {pairs} pairs: {}. The largest is {}, their sum, the barrier, {}.",
        rates.iter().map(|r| significant(*r, 3)).collect::<Vec<_>>().join(", "),
        percent(worst),
        number(folder.summary.swaps.global_barrier)
    ));
    let kind = folder.summary.setup.accelerator.kind.as_str();
    for (n, &rate) in rates.iter().enumerate() {
        let at = n as f64;
        chart.column("c1", at, rate);
        let mut tip = format!("chains {n} and {}: {} rejected", n + 1, percent(rate));
        if let Some((plain, _)) = &plain {
            chart.level("c2 heavy", at, plain[n]);
            tip += &format!("; a plain swap {}", percent(plain[n]));
        }
        chart.tip(at, rate, tip);
    }
    if folder.summary.setup.accelerator.steps > 0 || plain.is_some() {
        chart.key(Key::Area, "c1", format!("in this run ({kind})"));
    }
    if let Some((_, from)) = plain {
        chart.key(Key::Line, "c2 heavy", from);
    }
    Some(chart)
}
