//! What was drawn: the target chain against exact draws, where those are possible.

use super::Section;
use crate::report::chart::{Axis, Chart, Key};
use crate::report::draws::{Columns, Observable, turn};
use crate::report::figure::Figure;
use crate::report::format::{count, number, significant, with_error};
use crate::report::load::Folder;
use crate::summary::Summary;
use crate::traces::{Histogram, Labels};

/// A whole circle.
const TURN: f64 = 360.0;
/// Petals of a rose.
const PETALS: usize = 72;
/// Heights of a histogram on a line, and of one on a circle.
const MARGINAL: f64 = 220.0;
const ROSE: f64 = 280.0;
/// Points of a scatter plot.
const POINTS: usize = 1000;

pub fn section(folder: &Folder) -> Option<Section> {
    let draws = folder.draws.as_ref()?;
    let exact = folder.exact.as_ref();
    let labels = folder.traces.as_ref().map_or_else(Labels::default, |traces| traces.labels.clone());
    let mut figures = Vec::new();
    // On the same axes, so that they can be compared.
    let beside = exact.unwrap_or(draws);
    // Alone, it stands beside two histograms or roses.
    let beside_it = (0..2).map(|i| if draws.cut(i).is_some() { ROSE } else { MARGINAL });
    let height = if exact.is_some() { 400.0 } else { 100.0 + beside_it.sum::<f64>() };
    let title = "Draws of the target chain";
    figures.extend(pair_plots("pair-plot", title, height, &labels, [draws, beside], "c1"));
    let of_exact =
        |exact| pair_plots("pair-plot-exact", "Exact draws", height, &labels, [exact, draws], "c3");
    figures.extend(exact.and_then(of_exact));
    let marginals = (0..draws.coordinates.len()).map(|i| match draws.cut(i) {
        Some(_) => rose(draws, i),
        None => marginal(&folder.summary, &labels, draws, exact, i),
    });
    figures.extend(marginals.map(Figure::from));
    let compared =
        if exact.is_some() { " This target can be drawn from exactly, for comparison." } else { "" };
    Some(Section {
        id: "draws",
        title: "What was drawn?",
        table: String::new(),
        introduction: format!(
            "Draws of the target chain, all ladders together. {} with the smallest effective sample size come \
             first: trouble shows there.{compared}",
            if draws.observables.is_empty() { "Coordinates" } else { "Dihedrals and distances" }
        ),
        figures,
    })
}

/// Bounds that hold nearly all values of both.
fn bounds(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut all: Vec<f64> = a.iter().chain(b).copied().filter(|x| x.is_finite()).collect();
    all.sort_unstable_by(f64::total_cmp);
    let Some(last) = all.len().checked_sub(1) else { return (0.0, 1.0) };
    let (low, high) = (all[last / 500], all[last - last / 500]);
    let margin = 0.08 * (high - low);
    (low - margin, high + margin)
}

/// A scatter plot of every two coordinates, to choose from; first the two slowest.
fn pair_plots(
    id: &str,
    title: &str,
    height: f64,
    labels: &Labels,
    [shown, beside]: [&Columns; 2],
    class: &str,
) -> Option<Figure> {
    let count = shown.coordinates.len();
    let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| [i, j]));
    // The lower coordinate across, whichever is slower.
    let ordered =
        pairs.map(|[i, j]| if shown.coordinates[i] < shown.coordinates[j] { [i, j] } else { [j, i] });
    let panel = |axes: [usize; 2]| {
        let [x, y] = axes.map(|k| shown.name(k, labels));
        let id = format!("{id}-{}-{}", axes[0], axes[1]);
        (format!("{x} and {y}"), pair_plot(&id, (title, height), [&x, &y], axes, [shown, beside], class))
    };
    let panels: Vec<(String, Chart)> = ordered.map(panel).collect();
    let frame = panels.first()?.1.clone();
    Some(Figure::choice(id, frame, "Of", panels, 0))
}

fn pair_plot(
    id: &str,
    (title, height): (&str, f64),
    [i, j]: [&str; 2],
    axes: [usize; 2],
    [shown, beside]: [&Columns; 2],
    class: &str,
) -> Chart {
    let whole_turn = |k| shown.cut(k).map(|cut| (cut, cut + TURN));
    let [x, y] = axes.map(|k| whole_turn(k).unwrap_or_else(|| bounds(&shown.values[k], &beside.values[k])));
    let axis = |k, name: &str, (low, high): (f64, f64)| match shown.cut(k) {
        Some(cut) => turn(name, cut),
        None => Axis::linear(name, low, high),
    };
    let total = shown.values[0].len();
    let stride = total.div_ceil(POINTS).max(1);
    let points = total.div_ceil(stride);
    let mut chart = Chart::new(id, title, axis(axes[0], i, x), axis(axes[1], j, y))
        .height(height)
        .caption(format!("{} of {} shown.", count(points as u64), count(shown.of as u64)))
        .description(format!("Scatter plot of {points} points in {i} and {j}."));
    let inside = |&(a, b): &(f64, f64)| a >= x.0 && a <= x.1 && b >= y.0 && b <= y.1;
    let thinned = (0..total).step_by(stride).map(|k| axes.map(|axis| shown.values[axis][k]).into());
    let cloud: Vec<(f64, f64)> = thinned.filter(inside).collect();
    for &(a, b) in cloud.iter().step_by(8) {
        chart.tip(a, b, format!("({}, {})", significant(a, 3), significant(b, 3)));
    }
    chart.cloud(class, cloud, 2.2);
    chart
}

/// Mean and effective draws of a named value, or of a coordinate, in words.
fn moments(summary: &Summary, i: usize) -> String {
    let found = &summary.target_chain;
    let of = |list: &[f64]| list.get(i).copied().unwrap_or(f64::NAN);
    let [mean, error, ess] = match summary.parameters.get(i) {
        // The same number as in the table.
        Some(named) => [named.mean, named.mcse, named.ranks.ess_bulk],
        None => [&found.expectations.mean, &found.expectations.standard_error, &found.ess.coordinates]
            .map(|l| of(l)),
    };
    format!("Mean {}; {} effective draws.", with_error(mean, error), number(ess.round()))
}

/// An angle on its circle. It has no mean that says much.
fn rose(draws: &Columns, i: usize) -> Chart {
    let angles = draws.values[i].iter().filter(|angle| angle.is_finite());
    let mut shares = [0.0; PETALS];
    let one = 1.0 / angles.clone().count().max(1) as f64;
    for angle in angles {
        shares[(angle.rem_euclid(TURN) / TURN * PETALS as f64) as usize % PETALS] += one;
    }
    let (largest, even) = (shares.iter().copied().fold(0.0, f64::max), 1.0 / PETALS as f64);
    let (name, worth) = (draws.name(i, &Labels::default()), worth(&draws.observables[i]));
    let mut chart = Chart::rose(&format!("marginal-{i}"), &name)
        .height(ROSE)
        .caption(format!("{worth} Areas are shares of the draws."))
        .description(format!("Histogram of the angle {name} on its circle, 0° at the top. {worth}"));
    chart.petals("c1", &shares, largest);
    chart.ring("dash c5", even, largest);
    chart.key(Key::Area, "c1", "drawn");
    chart.key(Key::Dash, "c5", "if every angle were as likely");
    chart
}

/// What a dihedral or distance is worth, in words.
fn worth(observable: &Observable) -> String {
    format!("{} effective draws.", number(observable.ess.round()))
}

fn marginal(summary: &Summary, labels: &Labels, draws: &Columns, exact: Option<&Columns>, i: usize) -> Chart {
    let coordinate = draws.coordinates[i];
    let values = &draws.values[i];
    let empty = Histogram::around(&[&values[..], exact.map_or(&[], |e| &e.values[i][..])].concat());
    let histogram = |values: &[f64]| {
        let mut out = empty.clone();
        out.add(values);
        out.density()
    };
    let ours = histogram(values);
    let theirs = exact.map(|e| histogram(&e.values[i]));
    let top = ours.iter().chain(theirs.iter().flatten()).copied().fold(0.0, f64::max);
    let name = draws.name(i, labels);
    let words = draws.observables.get(i).map_or_else(|| moments(summary, coordinate), worth);
    let x = Axis::linear(&name, empty.low, empty.high());
    let at = |b: usize| empty.low + b as f64 * empty.width;
    let corners = |density: &[f64]| -> Vec<(f64, f64)> {
        density.iter().enumerate().flat_map(|(b, &d)| [(at(b), d), (at(b + 1), d)]).collect()
    };
    let mut chart =
        Chart::new(&format!("marginal-{i}"), &name, x, Axis::linear("probability density", 0.0, 1.1 * top))
            .height(MARGINAL)
            .caption(words.clone())
            .description(format!("Histogram of {name}. {words}"));
    chart.area("c1", &corners(&ours), 0.0);
    chart.line("c1 thin", &corners(&ours));
    if let Some(theirs) = &theirs {
        chart.key(Key::Area, "c1", "drawn");
        chart.line("c2", &corners(theirs));
        chart.key(Key::Line, "c2", "exact");
    }
    for (b, &d) in ours.iter().enumerate() {
        let beside = theirs.as_ref().map_or(String::new(), |t| format!(", exact {}", significant(t[b], 3)));
        let middle = at(b) + 0.5 * empty.width;
        chart.tip(middle, d, format!("at {}: {}{beside}", significant(middle, 3), significant(d, 3)));
    }
    chart
}
