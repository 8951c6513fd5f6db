//! Boxes of 30 estimates of log Z (§6.3): from subsets of one run, as printed, and from independent ladders.

use super::cell::{Cell, Keep, Measured};
use super::kept::ESTIMATES;
use super::notes;
use super::page::{Block, Check, Section};
use super::plan::{Method, Problem, Row, trained_elsewhere};
use super::store::Store;
use super::{Budget, Experiment};
use crate::config::Count;
use crate::report::chart::{Axis, Chart, Key};
use crate::report::format::count;
use serde_json::json;

/// The targets.
const PROBLEMS: [Problem; 2] = [Problem::Dw4, Problem::ManyWell];

/// Rows of the tables that the figure shows.
fn rows(problem: Problem, budget: Budget) -> Vec<Row> {
    let shown = |row: &Row| matches!(row.method, Method::Plain | Method::Cmcd | Method::Diffusion);
    problem.rows(budget).into_iter().filter(shown).collect()
}

/// Iterations of an independent ladder.
fn iterations(budget: Budget) -> u64 {
    if budget == Budget::Quick { 500 } else { 2000 }
}

/// Independent ladders with the schedule and the transport of a run of the table. Each pair proposes in every
/// other iteration, so twice as many iterations as weights.
fn independent(problem: Problem, row: Row, chains: usize, budget: Budget) -> Cell {
    let table = problem.cell(row, chains, 1, budget);
    let mut config = table.config.clone();
    // Other random numbers than those that the transport was trained with.
    config.seed = 101;
    config.chains.count = Count::Number(chains);
    config.chains.ensembles = ESTIMATES;
    config.run.iterations = iterations(budget);
    config.run.thin = 10;
    let trained = row.is_trained();
    if trained {
        config.training = trained_elsewhere();
    }
    if row.method == Method::Cmcd {
        // Nothing is left to be tuned: the transport brings its schedule.
        config.schedule.rounds = 0;
    } else {
        // So many ladders see in short rounds what one sees in long ones.
        (config.schedule.rounds, config.schedule.iterations) = (5, 200);
    }
    let keep = Keep { ladders: true, ..Keep::default() };
    let name = format!("{}-independent", table.name);
    let transport_of = trained.then(|| table.transport_of.clone().unwrap_or_else(|| table.as_source()));
    Cell { name, config, keep, transport_of }
}

/// Runs of the tables, and independent ladders for each.
pub fn cells(budget: Budget) -> Vec<Cell> {
    let mut out = Vec::new();
    for problem in PROBLEMS {
        for row in rows(problem, budget) {
            for chains in problem.chains(budget) {
                out.push(problem.cell(row, chains, 1, budget));
                out.push(independent(problem, row, chains, budget));
            }
        }
    }
    out
}

/// Quartiles and ends of some estimates' errors.
struct Box5 {
    low: f64,
    first: f64,
    median: f64,
    third: f64,
    high: f64,
    spread: f64,
    /// Estimates that are off by more than 3.
    lost: usize,
}

impl Box5 {
    fn of(estimates: &[f64], truth: f64) -> Self {
        let mut sorted: Vec<f64> = estimates.iter().map(|z| z - truth).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let (low, part) = (place.floor() as usize, place.fract());
            sorted[low] * (1.0 - part) + sorted[(low + 1).min(sorted.len() - 1)] * part
        };
        let lost = sorted.iter().filter(|error| error.abs() > 3.0).count();
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let squares: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
        let spread = (squares / (sorted.len() - 1) as f64).sqrt();
        Self { low: at(0.0), first: at(0.25), median: at(0.5), third: at(0.75), high: at(1.0), spread, lost }
    }
}

struct Place {
    row: Row,
    chains: usize,
    /// From subsets of one run, and from independent ladders.
    boxes: [Option<Box5>; 2],
}

fn places(problem: Problem, budget: Budget, store: &Store) -> Vec<Place> {
    let mut out = Vec::new();
    for chains in problem.chains(budget) {
        for row in rows(problem, budget) {
            let table = store.get(&problem.cell(row, chains, 1, budget));
            let independent = store.get(&independent(problem, row, chains, budget));
            let of = |m: &Measured, estimates: &[[f64; 2]]| {
                let truth = m.summary.log_z.truth?;
                let by_bar: Vec<f64> = estimates.iter().map(|e| e[0]).collect();
                (by_bar.len() > 1).then(|| Box5::of(&by_bar, truth))
            };
            let boxes = [
                table.and_then(|m| of(m, &m.kept.subsets)),
                independent.and_then(|m| of(m, &m.kept.ladders)),
            ];
            out.push(Place { row, chains, boxes });
        }
    }
    out
}

fn chart(problem: Problem, places: &[Place], kind: usize) -> Chart {
    let how = ["30 subsets of one run, as printed", "30 independent ladders"][kind];
    // Lost ladders would leave no room for the others: their boxes are cut off at the ends of those.
    let whole = places.iter().filter_map(|p| p.boxes[kind].as_ref()).filter(|b| b.lost == 0);
    let ends: Vec<f64> = whole.flat_map(|b| [b.low, b.high]).collect();
    let (lowest, highest) = ends.iter().fold((0.0f64, 0.0f64), |(l, h), &e| (l.min(e), h.max(e)));
    let cut = |error: f64| error.clamp(lowest, highest);
    let columns: Vec<usize> = places.iter().map(|p| p.chains).collect();
    let gap = |i: usize| {
        columns[..i].windows(2).filter(|w| w[0] != w[1]).count() as f64
            + if i > 0 && columns[i - 1] != columns[i] { 1.0 } else { 0.0 }
    };
    let at = |i: usize| i as f64 + gap(i);
    let ticks = (0..places.len()).filter(|&i| i == 0 || columns[i] != columns[i - 1]).map(|i| {
        let width = columns.iter().filter(|c| **c == columns[i]).count() as f64;
        (at(i) + 0.5 * (width - 1.0), format!("{} chains", columns[i]))
    });
    let x = Axis::linear("", -1.0, at(places.len() - 1) + 1.0).ticks(ticks.collect()).no_grid();
    let y = Axis::around("error of log Z", ends.into_iter(), true);
    let id = format!("free-energy-{}-{kind}", problem.name());
    let mut chart = Chart::new(&id, &format!("{}: {how}", problem.title()), x, y).wide().height(320.0);
    chart.line("ink thin dash", &[(-1.0, 0.0), (at(places.len() - 1) + 1.0, 0.0)]);
    let mut named: Vec<Row> = Vec::new();
    for (i, place) in places.iter().enumerate() {
        let class = colour(place.row);
        if !named.contains(&place.row) {
            named.push(place.row);
            chart.key(Key::Area, class, place.row.title());
        }
        let Some(b) = &place.boxes[kind] else { continue };
        let x = at(i);
        chart.whisker(class, x, cut(b.low), cut(b.high));
        chart.bar(class, (x - 0.36, cut(b.first)), (x + 0.36, cut(b.third)));
        chart.line("ink", &[(x - 0.36, cut(b.median)), (x + 0.36, cut(b.median))]);
        chart.tip(
            x,
            cut(b.median),
            format!(
                "{}, {} chains: median error {:+.4}, standard deviation {:.4}",
                place.row.title(),
                place.chains,
                b.median,
                b.spread
            ),
        );
    }
    chart
}

fn colour(row: Row) -> &'static str {
    match (row.method, row.steps) {
        (Method::Plain, _) => "c5",
        (Method::Cmcd, 1) => "c1 o3",
        (Method::Cmcd, 2) => "c1 o1",
        (Method::Cmcd, _) => "c1 o0",
        (_, 0) => "c2 o4",
        (_, 1) => "c2 o3",
        (_, 2) => "c2 o1",
        _ => "c2 o0",
    }
}

/// Boxes for both targets.
pub fn section(budget: Budget, store: &Store) -> Section {
    let (mut charts, mut rows, mut data) = (Vec::new(), Vec::new(), Vec::new());
    let (mut checks, mut lost) = (Vec::new(), Vec::new());
    for problem in PROBLEMS {
        let places = places(problem, budget, store);
        for p in &places {
            if let Some(b) = p.boxes[1].as_ref().filter(|b| b.lost > 0) {
                lost.push(format!(
                    "{} of {}, {} with {} chains",
                    b.lost,
                    problem.title(),
                    p.row.title(),
                    p.chains
                ));
            }
        }
        charts.extend([0, 1].map(|kind| chart(problem, &places, kind)));
        for p in &places {
            let text = |b: &Option<Box5>| match b {
                Some(b) => [format!("{:+.4}", b.median), format!("{:.4}", b.spread)],
                None => ["–".into(), "–".into()],
            };
            let mut row = vec![problem.title().to_string(), p.row.title(), p.chains.to_string()];
            row.extend(p.boxes.iter().flat_map(text));
            rows.push(row);
            let value = |b: &Option<Box5>| {
                b.as_ref().map(|b| {
                    json!({
                        "median_error": b.median, "standard_deviation": b.spread,
                        "quartiles": [b.low, b.first, b.median, b.third, b.high],
                    })
                })
            };
            data.push(json!({"target": problem.name(), "row": p.row.title(), "chains": p.chains,
                "subsets": value(&p.boxes[0]), "independent": value(&p.boxes[1])}));
        }
        if budget != Budget::Quick {
            checks.extend(claims(problem, &places));
        }
    }
    let lost = (!lost.is_empty()).then(|| {
        Block::Text(format!(
            "**Lost ladders.** Of 30 short ladders these are off by more than 3: {}. Their boxes are cut off in the \
             chart; alarms of the runs tell more.",
            lost.join("; ")
        ))
    });
    Section {
        name: Experiment::FreeEnergy.name(),
        budget,
        title: "Free energies".into(),
        blocks: [
            Block::Text(format!(
                "Errors of 30 estimates of log Z by Bennett's acceptance ratio, each from 1,000 weights of every pair. The \
                 paper draws subsets from one run of 100,000 iterations; these share the run's own error and look better \
                 than estimates are (errata E17). So the second chart of each target shows 30 independent ladders of {} \
                 iterations, in which each pair proposes {} times. A standard deviation of 30 estimates is itself known to \
                 13%, and the ratio of two to 19%: 0.41 to 0.59 are not told from one half. All subsets share the error of \
                 their run, which with many chains is as large as their spread, and so may be off by more than that; \
                 independent ladders share nothing, and show what so few iterations have not yet forgotten.",
                count(iterations(budget)),
                count(iterations(budget) / 2)
            )),
            Block::Charts(charts),
            Block::table(
                &["target", "method", "chains", "median error, subsets", "standard deviation", "median error, independent", "standard deviation"],
                rows,
            ),
        ]
        .into_iter()
        .chain(lost)
        .chain((budget == Budget::Standard).then(notes::independent).into_iter().flatten())
        .collect(),
        checks,
        data: data.into(),
    }
}

/// What the figure is to show: no bias beyond the spread, and half of PT's spread at K = 5.
fn claims(problem: Problem, places: &[Place]) -> Vec<Check> {
    let mut out = Vec::new();
    for (kind, how) in ["subsets", "independent ladders"].into_iter().enumerate() {
        let all: Vec<(&Place, &Box5)> =
            places.iter().filter_map(|p| Some((p, p.boxes[kind].as_ref()?))).collect();
        if all.is_empty() {
            continue;
        }
        let biased: Vec<String> = all
            .iter()
            .filter(|(_, b)| b.median.abs() >= b.spread)
            .map(|(p, _)| format!("{} with {} chains", p.row.title(), p.chains))
            .collect();
        let mut what = format!("{}, {how}: every median error is smaller than the spread", problem.title());
        if !biased.is_empty() {
            what = format!("{what}, but for {}", biased.join(", "));
        }
        out.push(Check { what, passed: biased.is_empty(), must: false });
        for method in [Method::Cmcd, Method::Diffusion] {
            for (plain, b) in all.iter().filter(|(p, _)| p.row.method == Method::Plain) {
                let best = all
                    .iter()
                    .find(|(p, _)| p.chains == plain.chains && p.row.method == method && p.row.steps == 5);
                let Some((place, best)) = best else { continue };
                let what = format!(
                    "{}, {how}: with {} chains the spread of {} is at most half of PT's: {:.4} to {:.4}",
                    problem.title(),
                    plain.chains,
                    place.row.title(),
                    best.spread,
                    b.spread
                );
                out.push(Check { what, passed: best.spread <= 0.5 * b.spread, must: false });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_the_usual_quartiles() {
        let b = Box5::of(&[4.0, 1.0, 3.0, 2.0, 5.0], 1.0);
        assert_eq!([b.low, b.first, b.median, b.third, b.high], [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert!((b.spread - 2.5f64.sqrt()).abs() < 1e-12);
    }
}
