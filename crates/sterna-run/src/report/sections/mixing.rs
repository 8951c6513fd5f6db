//! Are the draws enough? Traces, ranks and autocorrelations of the slowest coordinates, ladder by ladder.

use super::Section;
use crate::report::chart::{Axis, Chart, Key};
use crate::report::draws::{Columns, turn};
use crate::report::figure::Figure;
use crate::report::format::{count, number, significant};
use crate::report::load::Folder;
use crate::report::verdict::three;
use crate::traces::Labels;
use sterna::estimates::autocorrelation;

/// Points of a ladder's trace, bins of its ranks, lags.
const POINTS: usize = 300;
const BINS: usize = 20;
const LAGS: usize = 100;
/// Ladders that are drawn, a colour each.
const LADDERS: usize = 5;

pub fn section(folder: &Folder) -> Option<Section> {
    let draws =
        folder.draws.as_ref().filter(|draws| draws.values.iter().all(|v| v.len() >= 2 * draws.ladders))?;
    let labels = folder.traces.as_ref().map_or_else(Labels::default, |traces| traces.labels.clone());
    let names: Vec<String> = (0..draws.coordinates.len()).map(|i| draws.name(i, &labels)).collect();
    let figures = [
        choice("traces", draws, &names, trace),
        choice("ranks", draws, &names, ranks),
        choice("autocorrelations", draws, &names, lags),
    ];
    Some(Section {
        id: "mixing",
        title: "Are the draws enough?",
        introduction: introduction(&folder.summary, draws),
        table: String::new(),
        figures: figures.into_iter().flatten().collect(),
    })
}

fn introduction(summary: &crate::summary::Summary, draws: &Columns) -> String {
    let worst = summary.mixing.as_ref().map_or(String::new(), |worst| {
        format!(
            "The fewest independent draws of any quantity are {} in its bulk and {} in its tails; the largest R̂ is {} ({}). ",
            number(worst.ess_bulk.round()),
            number(worst.ess_tail.round()),
            three(worst.r_hat),
            worst.r_hat_of
        )
    });
    let shown = draws.values.first().map_or(0, Vec::len);
    let ladders = match draws.ladders {
        1 => "one ladder, so nothing speaks for it but itself".into(),
        n if n > LADDERS => format!("the first {LADDERS} of {n} ladders"),
        n => format!("{n} ladders"),
    };
    format!(
        "{worst}Shown are the slowest {} of {ladders}: {} of {} draws.",
        if draws.observables.is_empty() { "coordinates" } else { "dihedrals and distances" },
        count(shown as u64),
        count(draws.of as u64)
    )
}

/// A drawing for each coordinate, where there is something to draw.
fn choice(
    id: &str,
    draws: &Columns,
    names: &[String],
    draw: fn(&str, &Columns, usize, &str) -> Option<Chart>,
) -> Option<Figure> {
    let of = |i: usize| Some((names[i].clone(), draw(&format!("{id}-{i}"), draws, i, &names[i])?));
    let panels: Vec<(String, Chart)> = (0..names.len()).filter_map(of).collect();
    let frame = panels.first()?.1.clone();
    Some(Figure::choice(id, frame, "Of", panels, 0))
}

fn class(ladder: usize) -> String {
    format!("c{}", ladder % LADDERS + 1)
}

fn keys(chart: &mut Chart, key: Key, ladders: usize) {
    for ladder in 0..ladders.min(LADDERS) {
        chart.key(key, &class(ladder), format!("ladder {ladder}"));
    }
}

fn trace(id: &str, draws: &Columns, i: usize, name: &str) -> Option<Chart> {
    let length = draws.values[i].len() / draws.ladders.max(1);
    let stride = length.div_ceil(POINTS).max(1);
    let of_file = (draws.of / draws.ladders.max(1)) as f64 / length as f64;
    let y = match draws.cut(i) {
        Some(cut) => turn(name, cut),
        None => Axis::around(name, draws.values[i].iter().copied(), false),
    };
    let x = Axis::linear("draw of a ladder", 0.0, length as f64 * of_file);
    let mut chart = Chart::new(id, "Traces", x, y).wide().height(250.0).description(format!(
        "{name}, draw after draw, of {} ladders, {} draws of each shown.",
        draws.ladders,
        length.div_ceil(stride)
    ));
    chart = chart
        .caption("Ladders should cover the same range all the time, without drift, steps or long flats.");
    for (ladder, values) in draws.by_ladder(i).enumerate().take(LADDERS) {
        let points: Vec<(f64, f64)> =
            values.iter().enumerate().step_by(stride).map(|(k, y)| (k as f64 * of_file, *y)).collect();
        for &(x, y) in points.iter().step_by(10) {
            chart.tip(x, y, format!("ladder {ladder}, draw {x:.0}: {}", significant(y, 4)));
        }
        let line = if draws.cut(i).is_some() { across_the_cut(&points) } else { points };
        chart.line(&format!("thin {}", class(ladder)), &line);
    }
    keys(&mut chart, Key::Line, draws.ladders);
    Some(chart)
}

/// A step of more than half a circle went the other way round: the line is broken there.
fn across_the_cut(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(points.len());
    for (k, point) in points.iter().enumerate() {
        if k > 0 && (point.1 - points[k - 1].1).abs() > 180.0 {
            line.push((point.0, f64::NAN));
        }
        line.push(*point);
    }
    line
}

/// Where a ladder's draws stand among all, as shares of its draws relative to even ones.
fn rank_shares(draws: &Columns, i: usize) -> Vec<[f64; BINS]> {
    let all = &draws.values[i];
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*a].total_cmp(&all[*b]));
    let length = (all.len() / draws.ladders.max(1)).max(1);
    let mut shares = vec![[0.0; BINS]; draws.ladders];
    for (rank, place) in order.into_iter().enumerate() {
        if let Some(shares) = shares.get_mut(place / length) {
            shares[rank * BINS / all.len()] += BINS as f64 / length as f64;
        }
    }
    shares
}

fn ranks(id: &str, draws: &Columns, i: usize, name: &str) -> Option<Chart> {
    if draws.ladders < 2 {
        return None;
    }
    let shares = rank_shares(draws, i);
    let top = shares.iter().flatten().copied().fold(1.5, f64::max);
    let x = Axis::linear(&format!("rank of {name} among all draws, %"), 0.0, 100.0);
    let y = Axis::linear("share of draws, 1 if even", 0.0, 1.05 * top);
    let mut chart = Chart::new(id, "Ranks", x, y)
        .caption("Where each ladder's draws stand among those of all. Level lines: the ladders agree.")
        .description(format!(
            "Shares of the draws of {} ladders in {BINS} ranges of the ranks of {name}.",
            draws.ladders
        ));
    chart.line("dash ink", &[(0.0, 1.0), (100.0, 1.0)]);
    let width = 100.0 / BINS as f64;
    for (ladder, shares) in shares.iter().enumerate().take(LADDERS) {
        let corners = |(b, s): (usize, &f64)| [(b as f64 * width, *s), ((b + 1) as f64 * width, *s)];
        let line: Vec<(f64, f64)> = shares.iter().enumerate().flat_map(corners).collect();
        chart.line(&class(ladder), &line);
        for (b, s) in shares.iter().enumerate() {
            let middle = (b as f64 + 0.5) * width;
            chart.tip(middle, *s, format!("ladder {ladder}, {middle:.0}%: {}", significant(*s, 3)));
        }
    }
    keys(&mut chart, Key::Line, draws.ladders);
    Some(chart)
}

/// Autocorrelations of each ladder, up to where they are near zero, or a quarter of the draws.
fn autocorrelations(draws: &Columns, i: usize) -> Vec<Vec<f64>> {
    const NEAR_ZERO: f64 = 0.1;
    let mut lags = LAGS;
    loop {
        let found: Vec<Vec<f64>> = draws.by_ladder(i).map(|values| autocorrelation(values, lags)).collect();
        let remember = found.iter().any(|values| values.last().is_some_and(|last| *last > NEAR_ZERO));
        let longest = draws.by_ladder(i).map(<[f64]>::len).max().unwrap_or(0);
        if !remember || 12 * lags > longest {
            return found;
        }
        lags *= 3;
    }
}

fn lags(id: &str, draws: &Columns, i: usize, name: &str) -> Option<Chart> {
    let stride = draws.stride?;
    let of_ladders = autocorrelations(draws, i);
    let most = of_ladders.iter().map(Vec::len).max().filter(|lags| *lags > 1)?;
    let x = Axis::linear("lag, in draws", 0.0, ((most - 1) * stride) as f64);
    let low = of_ladders.iter().flatten().copied().fold(-0.1, f64::min);
    let mut chart = Chart::new(id, "Autocorrelation", x, Axis::linear("autocorrelation", low, 1.0))
        .caption("How long a ladder remembers where it was. Soon at zero: draws are nearly independent.")
        .description(format!("Autocorrelations of {name} up to lag {}.", (most - 1) * stride));
    chart.line("dash ink", &[(0.0, 0.0), (((most - 1) * stride) as f64, 0.0)]);
    for (ladder, values) in of_ladders.iter().enumerate().take(LADDERS) {
        let points: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .step_by(most.div_ceil(2 * LAGS))
            .map(|(k, r)| ((k * stride) as f64, *r))
            .collect();
        chart.line(&class(ladder), &points);
        for &(lag, r) in points.iter().step_by(4) {
            chart.tip(lag, r, format!("ladder {ladder}, lag {lag}: {}", significant(r, 2)));
        }
    }
    keys(&mut chart, Key::Line, draws.ladders);
    Some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ladders that agree, and two of which one lies above the other.
    #[test]
    fn ranks_tell_ladders_apart() {
        let scrambled = |shift: f64| (0..1000).map(move |i| f64::from(i * 7919 % 1000) + shift);
        let columns = |shift: f64| Columns {
            coordinates: vec![0],
            values: vec![scrambled(0.0).chain(scrambled(shift)).collect()],
            ladders: 2,
            stride: Some(1),
            of: 2000,
            observables: Vec::new(),
        };
        let even = rank_shares(&columns(0.5), 0);
        assert!(even.iter().flatten().all(|s| (s - 1.0).abs() < 0.05), "{even:?}");
        let apart = rank_shares(&columns(5000.0), 0);
        let near = |s: &f64, wanted: f64| (s - wanted).abs() < 1e-9;
        assert!(apart[0][..10].iter().all(|s| near(s, 2.0)), "{apart:?}");
        assert!(apart[1][..10].iter().all(|s| near(s, 0.0)), "{apart:?}");
        let sums = apart.iter().map(|shares| shares.iter().sum::<f64>() / BINS as f64);
        assert!(sums.into_iter().all(|sum| near(&sum, 1.0)));
    }
}
