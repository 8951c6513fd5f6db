//! Can log Z be trusted? Estimators, overlaps, and the works that Crooks' relation ties together.

use super::{Section, choice};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::format::{beside_error, number, percent, significant, with_error};
use crate::report::load::Folder;
use crate::report::number_at;
use crate::traces::Works;

pub fn section(folder: &Folder) -> Option<Section> {
    let mut figures = Vec::new();
    figures.extend(estimators(folder));
    figures.extend(overlaps(folder));
    if let Some(traces) = &folder.traces {
        figures.extend(work_histograms(folder, &traces.works));
    }
    Some(Section {
        id: "free-energy",
        title: "Can log Z be trusted?",
        introduction:
            "Each pair of chains gives a ratio of normalising constants from the weights of its swaps; their \
                       sum is log Z. The free-energy difference to the reference is its negative."
                .into(),
        figures,
    })
}

fn estimators(folder: &Folder) -> Option<String> {
    let z = &folder.summary["log_z"];
    let (bar, error) = (number_at(z, "bar"), number_at(z, "standard_error"));
    let rows: Vec<(&str, f64, f64)> = [
        ("BAR", "bar", error),
        ("geometric mean", "geometric_mean", f64::NAN),
        ("forward", "forward", f64::NAN),
        ("backward", "backward", f64::NAN),
    ]
    .into_iter()
    .map(|(name, key, error)| (name, number_at(z, key), error))
    .filter(|row| row.1.is_finite())
    .collect();
    if rows.is_empty() {
        return None;
    }
    let truth = z["truth"].as_f64();
    let spread = rows.iter().map(|r| r.1).chain(truth).chain([bar - 2.0 * error, bar + 2.0 * error]);
    let ticks =
        rows.iter().enumerate().map(|(i, r)| ((rows.len() - 1 - i) as f64, r.0.to_string())).collect();
    let y = Axis::linear("", -0.6, rows.len() as f64 - 0.4).ticks(ticks).no_grid();
    let mut chart = Chart::new("log-z", "log Z by estimator", Axis::around("log Z", spread, false), y)
        .height(230.0)
        .caption("Bennett's ratio uses both directions and is the one to quote; where one-sided estimates stray, chains overlap too little.")
        .description(rows.iter().map(|r| format!("{}: {}", r.0, number(r.1))).collect::<Vec<_>>().join("; "));
    if let Some(truth) = truth {
        chart.line("dash c3", &[(truth, -0.6), (truth, rows.len() as f64 - 0.4)]);
        chart.key(Key::Dash, "c3", format!("exact: {}", beside_error(truth, error)));
        chart.tip(truth, -0.4, format!("exact: {}", significant(truth, 8)));
    }
    for (i, &(name, value, error)) in rows.iter().enumerate() {
        let y = (rows.len() - 1 - i) as f64;
        let class = if name == "BAR" { "c1" } else { "c5" };
        if error.is_finite() {
            chart.line(&format!("heavy {class}"), &[(value - error, y), (value + error, y)]);
            chart.line(class, &[(value - 2.0 * error, y), (value + 2.0 * error, y)]);
        }
        chart.dot(class, value, y, 5.0);
        let text = if error.is_finite() { with_error(value, error) } else { significant(value, 7) };
        chart.tip(value, y, format!("{name}: {text}"));
    }
    if error.is_finite() {
        chart.key(Key::Line, "c1", "one and two standard errors");
    }
    Some(chart.figure())
}

fn overlaps(folder: &Folder) -> Option<String> {
    let pairs = folder.summary["log_z"]["pairs"].as_array()?;
    let overlaps: Vec<f64> = pairs.iter().map(|p| number_at(p, "overlap")).collect();
    let n = overlaps.len();
    let ticks = (0..n).step_by(n.div_ceil(7)).map(|n| (n as f64, format!("{}–{}", n, n + 1))).collect();
    let x =
        Axis::linear("pair of chains, from reference to target", -0.6, n as f64 - 0.4).ticks(ticks).no_grid();
    let least = overlaps.iter().copied().fold(f64::INFINITY, f64::min);
    let mut chart = Chart::new("overlap", "Overlap of each pair", x, Axis::linear("overlap", 0.0, 1.0))
        .height(230.0)
        .caption(
            "1 means identical weights in both directions; below 3% the error of log Z may be too small.",
        )
        .description(format!("Overlaps of {n} pairs; the least is {}.", percent(least)));
    for (n, &overlap) in overlaps.iter().enumerate() {
        let at = n as f64;
        chart.bar("c3", (at - 0.36, 0.0), (at + 0.36, if overlap.is_nan() { 0.0 } else { overlap }));
        let ratio = number(number_at(&pairs[n], "bar"));
        chart.tip(
            at,
            overlap,
            format!("chains {n} and {}: overlap {}, log ratio {ratio}", n + 1, percent(overlap)),
        );
    }
    chart.line("dash c2", &[(-0.6, 0.03), (n as f64 - 0.4, 0.03)]);
    Some(chart.figure())
}

fn work_histograms(folder: &Folder, works: &[Works]) -> Option<String> {
    let pairs = folder.summary["log_z"]["pairs"].as_array()?;
    let drawings: Vec<(String, String)> = works
        .iter()
        .enumerate()
        .filter(|(_, w)| !w.forward.counts.is_empty())
        .map(|(n, works)| {
            (format!("chains {n} and {}", n + 1), work_chart(n, works, pairs.get(n)).inline_svg())
        })
        .collect();
    let overlap = |n: usize| pairs.get(n).map_or(1.0, |p| number_at(p, "overlap"));
    // The hardest pair first.
    let hardest = (0..drawings.len()).min_by(|&a, &b| overlap(a).total_cmp(&overlap(b)))?;
    let frame = work_chart(hardest, &works[hardest], pairs.get(hardest));
    let frame = frame.caption(
        "Forward and backward works of a swap cross at the log ratio of the two normalising constants, and their \
         log-ratio rises with slope 1 (Crooks' relation). Shown first: the pair with the least overlap.",
    );
    Some(frame.figure_around(&choice("Pair", &drawings, hardest)).replacen(
        &format!("id=\"works-{hardest}\""),
        "id=\"works\"",
        1,
    ))
}

fn work_chart(n: usize, works: &Works, estimate: Option<&serde_json::Value>) -> Chart {
    let (forward, backward) = (works.forward.density(), works.backward.density());
    let top = forward.iter().chain(&backward).copied().fold(0.0, f64::max);
    let (low, high) = (works.forward.low, works.forward.high());
    let at = |i: usize| low + i as f64 * works.forward.width;
    let ratio = estimate.map_or(f64::NAN, |e| number_at(e, "bar"));
    let slope = estimate.map_or(f64::NAN, |e| number_at(e, "crossing_slope"));
    let mut chart = Chart::new(
        &format!("works-{n}"),
        "Works of swaps, both directions",
        Axis::linear(&format!("log-weight of paths between chains {n} and {}", n + 1), low, high),
        Axis::linear("probability density", 0.0, 1.1 * top),
    )
    .wide()
    .height(290.0)
    .description(format!(
        "Histograms of log-weights of forward and backward paths between chains {n} and {}. Bennett's ratio is {}; the \
         slope of the log-ratio is {}, 1 if all is well.",
        n + 1,
        number(ratio),
        significant(slope, 3)
    ));
    for (density, class) in [(&forward, "c1"), (&backward, "c2")] {
        let mut outline = vec![(at(0), 0.0)];
        outline.extend(density.iter().enumerate().map(|(i, &d)| (at(i), d)));
        outline.push((at(density.len()), *density.last().unwrap_or(&0.0)));
        outline.push((at(density.len()), 0.0));
        let mut corners = Vec::new();
        for pair in outline.windows(2) {
            corners.extend([pair[0], (pair[1].0, pair[0].1)]);
        }
        corners.push((at(density.len()), 0.0));
        chart.area(class, &corners, 0.0);
        chart.line(class, &corners);
    }
    for (i, (f, b)) in forward.iter().zip(&backward).enumerate() {
        let middle = at(i) + 0.5 * works.forward.width;
        let text = format!(
            "at {}: forward {}, backward {}",
            significant(middle, 3),
            significant(*f, 2),
            significant(*b, 2)
        );
        chart.tip(middle, f.max(*b), text);
    }
    if ratio.is_finite() {
        chart.line("dash ink", &[(ratio, 0.0), (ratio, 1.1 * top)]);
    }
    chart.key(Key::Area, "c1", "forward, from the lower chain");
    chart.key(Key::Area, "c2", "backward, from the upper chain");
    chart.key(Key::Dash, "ink", "Bennett's ratio");
    chart
}
