//! Can log Z be trusted? Estimators, overlaps, and the works that Crooks' relation ties together.

use super::{Section, pair_ticks};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{beside_error, count, number, percent, significant, with_error};
use crate::report::load::Folder;
use crate::summary::{LegSummary, LogZ, PairRatio, Summary};
use crate::traces::{Growing, Works};

pub fn section(folder: &Folder) -> Option<Section> {
    let mut figures = Vec::new();
    let z = &folder.summary.log_z;
    figures.extend(estimators(z, &folder.summary.swaps.legs).map(Figure::from));
    figures.extend(overlaps(z, &folder.summary.way()).map(Figure::from));
    if let Some(traces) = &folder.traces {
        figures.extend(growing(z, &folder.summary.swaps.legs, &traces.log_z).map(Figure::from));
        figures.extend(work_histograms(z, &traces.works));
    }
    Some(Section {
        id: "free-energy",
        title: "Can log Z be trusted?",
        table: String::new(),
        introduction: introduction(&folder.summary),
        figures,
    })
}

fn introduction(summary: &Summary) -> String {
    let words = "Each pair of chains gives a ratio of normalising constants from the weights of its swaps; their sum is log Z.";
    let legs = match (summary.swaps.legs.len(), &summary.molecule) {
        (2, _) => {
            "Both ways to the target, from the fitted reference and from the anchor, estimate it; they are combined by their errors, \
             and where they disagree one of them has not seen all of the target."
        }
        (_, Some(_)) => {
            "Its negative is F/kT of the target less F/kT of the hot reference. What lies between basins stands in the first table."
        }
        _ => "The free-energy difference to the reference is its negative.",
    };
    // What people take for the evidence, and is not always.
    let of_stan = match summary.setup.target.kind.as_str() {
        "stan" => {
            " It is the log evidence where all of the model is written with target +=: what is written with ~ lacks its constants."
        }
        _ => "",
    };
    format!("{words} {legs}{of_stan}")
}

fn estimators(z: &LogZ, legs: &[LegSummary]) -> Option<Chart> {
    let (bar, error) = (z.bar, z.standard_error);
    let of_leg = |leg: &LegSummary| match leg.reference.as_str() {
        "anchor" => ("from the anchor", leg.log_z, leg.log_z_error),
        _ => ("from the fit", leg.log_z, leg.log_z_error),
    };
    let of_legs = legs.iter().filter(|_| legs.len() == 2).map(of_leg);
    let one_sided = [
        ("geometric mean", z.geometric_mean, f64::NAN),
        ("forward", z.forward, f64::NAN),
        ("backward", z.backward, f64::NAN),
    ];
    let all = [("BAR", bar, error)].into_iter().chain(of_legs).chain(one_sided);
    let rows: Vec<(&str, f64, f64)> = all.filter(|row| row.1.is_finite()).collect();
    if rows.is_empty() {
        return None;
    }
    let ends = |r: &(&str, f64, f64)| [-2.0, 0.0, 2.0].map(|k| if k == 0.0 { r.1 } else { r.1 + k * r.2 });
    let spread = rows.iter().flat_map(ends).filter(|x| x.is_finite()).chain(z.truth);
    let ticks =
        rows.iter().enumerate().map(|(i, r)| ((rows.len() - 1 - i) as f64, r.0.to_string())).collect();
    let y = Axis::linear("", -0.6, rows.len() as f64 - 0.4).ticks(ticks).no_grid();
    let mut chart = Chart::new("log-z", "log Z by estimator", Axis::around("log Z", spread, false), y)
        .height(110.0 + 30.0 * rows.len() as f64)
        .caption("Bennett's ratio uses both directions and is the one to quote; where one-sided estimates stray, chains overlap too little.")
        .description(rows.iter().map(|r| format!("{}: {}", r.0, number(r.1))).collect::<Vec<_>>().join("; "));
    if let Some(truth) = z.truth {
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
    Some(chart)
}

/// Lowest and highest of what is known.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let known = values.filter(|x| x.is_finite());
    known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// Early estimates may be anywhere: so many of the first are left out as would make the range more than this times as wide as it is
/// for the later half.
const WIDEST: f64 = 4.0;

/// How many of the first spans are left out, and the range that holds all others whole.
fn in_sight(spans: &[(f64, f64)], also: (f64, f64)) -> (usize, (f64, f64)) {
    let both = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    let half = spans.len() / 2;
    let later = spans[half..].iter().fold(also, |range, span| both(range, *span));
    let most = WIDEST * (later.1 - later.0);
    let mut range = later;
    for (i, span) in spans[..half].iter().enumerate().rev() {
        let wider = both(range, *span);
        if wider.1 - wider.0 > most {
            return (i + 1, range);
        }
        range = wider;
    }
    (0, range)
}

/// log Z as the run went on, from each leg.
fn growing(z: &LogZ, legs: &[LegSummary], traces: &[Growing]) -> Option<Chart> {
    let (first, last) = (traces.first()?, traces.last()?);
    if traces.len() < 2 {
        return None;
    }
    let ends = |g: &Growing| {
        let of = g.log_z.iter().zip(&g.error).flat_map(|(z, e)| [z - 2.0 * e, *z, z + 2.0 * e]);
        of.collect::<Vec<_>>()
    };
    let spans: Vec<(f64, f64)> = traces.iter().map(|growing| span(ends(growing).into_iter())).collect();
    let (beyond, (low, high)) = in_sight(&spans, span(z.truth.into_iter()));
    let left_out = match &traces[..beyond] {
        [] => String::new(),
        early => {
            let of = |growing: &Growing| {
                growing.log_z.iter().map(|z| number(*z)).collect::<Vec<_>>().join(" and ")
            };
            let values = early.iter().map(of).collect::<Vec<_>>().join(", ");
            format!(" Earlier ones lie beyond the chart: {values}.")
        }
    };
    let traces = &traces[beyond..];
    let x =
        Axis::log("iterations (logarithmic)", 0.9 * first.iterations as f64, 1.1 * last.iterations as f64);
    let mut chart = Chart::new("log-z-growing", "log Z as the run went on", x, Axis::around("log Z", [low, high].into_iter(), false))
        .wide()
        .height(240.0)
        .caption(format!(
            "Estimates from the beginning of the run alone, with two standard errors: they should close in without drift.{left_out}"
        ))
        .description(format!("log Z after {} to {} iterations.", first.iterations, last.iterations));
    if let Some(truth) = z.truth {
        chart.line(
            "dash c3",
            &[(0.9 * first.iterations as f64, truth), (1.1 * last.iterations as f64, truth)],
        );
        chart.key(Key::Dash, "c3", "exact");
    }
    for leg in 0..first.log_z.len() {
        let class = ["c1", "c2"][leg % 2];
        let name = match legs.get(leg).map(|leg| leg.reference.as_str()) {
            Some("anchor") => "from the anchor",
            _ if first.log_z.len() == 2 => "from the fit",
            _ => "Bennett's ratio",
        };
        let points: Vec<(f64, f64)> = traces.iter().map(|g| (g.iterations as f64, g.log_z[leg])).collect();
        chart.line(class, &points);
        for (g, &(x, y)) in traces.iter().zip(&points) {
            chart.whisker(class, x, y - 2.0 * g.error[leg], y + 2.0 * g.error[leg]);
            chart.dot(class, x, y, 3.0);
            chart.tip(
                x,
                y,
                format!("{name}, {} iterations: {}", count(g.iterations), with_error(y, g.error[leg])),
            );
        }
        chart.key(Key::Line, class, name);
    }
    Some(chart)
}

fn overlaps(z: &LogZ, way: &str) -> Option<Chart> {
    let n = z.pairs.len();
    let (_, least) = z.least_overlap()?;
    let x = Axis::linear(&format!("pair of chains, {way}"), -0.6, n as f64 - 0.4)
        .ticks(pair_ticks(n, 7))
        .no_grid();
    let mut chart = Chart::new("overlap", "Overlap of each pair", x, Axis::linear("overlap", 0.0, 1.0))
        .height(230.0)
        .caption(
            "1 means identical weights in both directions; below 3% the error of log Z may be too small.",
        )
        .description(format!("Overlaps of {n} pairs; the least is {}.", percent(least)));
    for (n, pair) in z.pairs.iter().enumerate() {
        let (at, overlap) = (n as f64, pair.overlap);
        chart.column("c3", at, if overlap.is_nan() { 0.0 } else { overlap });
        let ratio = number(pair.bar);
        chart.tip(
            at,
            overlap,
            format!("chains {n} and {}: overlap {}, log ratio {ratio}", n + 1, percent(overlap)),
        );
    }
    chart.line("dash c2", &[(-0.6, 0.03), (n as f64 - 0.4, 0.03)]);
    Some(chart)
}

fn work_histograms(z: &LogZ, works: &[Works]) -> Option<Figure> {
    let chart = |n: usize| work_chart(n, &works[n], z.pairs.get(n));
    let filled: Vec<usize> = (0..works.len()).filter(|&n| !works[n].forward.counts.is_empty()).collect();
    let overlap = |n: usize| z.pairs.get(n).map_or(1.0, |pair| pair.overlap);
    // The hardest pair first.
    let chosen = (0..filled.len()).min_by(|&a, &b| overlap(filled[a]).total_cmp(&overlap(filled[b])))?;
    let panels = filled.iter().map(|&n| (format!("chains {n} and {}", n + 1), chart(n))).collect();
    let frame = chart(filled[chosen]).caption(
        "Forward and backward works of a swap cross at the log ratio of the two normalising constants, and their \
         log-ratio rises with slope 1 (Crooks' relation). Shown first: the pair with the least overlap.",
    );
    Some(Figure::choice("works", frame, "Pair", panels, chosen))
}

fn work_chart(n: usize, works: &Works, estimate: Option<&PairRatio>) -> Chart {
    let (forward, backward) = (works.forward.density(), works.backward.density());
    let top = forward.iter().chain(&backward).copied().fold(0.0, f64::max);
    let (low, high) = (works.forward.low, works.forward.high());
    let at = |i: usize| low + i as f64 * works.forward.width;
    let ratio = estimate.map_or(f64::NAN, |e| e.bar);
    let slope = estimate.map_or(f64::NAN, |e| e.crossing_slope);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_shown_whole_or_not_at_all() {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let spans = [(-90.0, -80.0), (-3.0, -1.0), (-2.0, 1.0), (-1.0, 1.0), (-0.5, 0.5)];
        assert_eq!(in_sight(&spans, none), (1, (-3.0, 1.0)));
        // A truth far away widens what there is room for.
        assert_eq!(in_sight(&spans, (-30.0, -30.0)), (0, (-90.0, 1.0)));
        assert_eq!(in_sight(&spans[1..], none), (0, (-3.0, 1.0)));
        assert_eq!(span([f64::NAN, 2.0, -1.0].into_iter()), (-1.0, 2.0));
    }
}
