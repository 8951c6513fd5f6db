//! Round-trip rates against the dimension, on the exact diffusion of GMM-d (§6.2).

use super::cell::{Cell, Keep};
use super::page::{Block, Check, Section};
use super::store::Store;
use super::{Budget, Experiment, plan};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::format::{count, significant};
use serde_json::json;

/// K of each line; none for parallel tempering along the geometric path.
const LINES: [Option<usize>; 5] = [None, Some(0), Some(1), Some(2), Some(5)];

fn dimensions(budget: Budget) -> &'static [usize] {
    if budget == Budget::Quick { &[2, 10] } else { &[2, 10, 50, 100] }
}

fn cell(dim: usize, steps: Option<usize>, budget: Budget) -> Cell {
    let (chains, iterations) = if budget == Budget::Quick { (10, "3000") } else { (30, "100000") };
    let mut settings = vec![
        ("target.kind", "gmm".to_string()),
        ("target.dim", dim.to_string()),
        ("chains.count", chains.to_string()),
        ("explorer.step_size", "0.03".into()),
        ("schedule.criterion", "rejection".into()),
        ("run.iterations", iterations.into()),
    ];
    if let Some(steps) = steps {
        settings.push(("accelerator.kind", "diffusion".into()));
        settings.push(("accelerator.score", "exact".into()));
        settings.push(("accelerator.steps", steps.to_string()));
    }
    let line = steps.map_or("plain".into(), |k| format!("exact-diffusion-k{k}"));
    plan::cell(format!("gmm{dim}-{line}"), &settings, Keep::default())
}

/// One run for each dimension and line.
pub fn cells(budget: Budget) -> Vec<Cell> {
    let pairs = dimensions(budget).iter().flat_map(|&d| LINES.map(|steps| (d, steps)));
    pairs.map(|(d, steps)| cell(d, steps, budget)).collect()
}

/// Rates of one K against the dimension: as counted, and divided by the evaluations of a swap.
struct Line {
    name: String,
    rates: Vec<(f64, f64)>,
    normalised: Vec<(f64, f64)>,
}

/// Rates against the dimension.
pub fn section(budget: Budget, store: &Store) -> Section {
    let dimensions = dimensions(budget);
    let chains = if budget == Budget::Quick { 10 } else { 30 };
    let name = |steps: Option<usize>| match steps {
        None => "PT".to_string(),
        Some(0) => "Diff-PT".into(),
        Some(k) => format!("Diff-APT, K = {k}"),
    };
    let mut rows = Vec::new();
    let mut data = Vec::new();
    let mut lines = Vec::new();
    for steps in LINES {
        let mut row = vec![name(steps)];
        let (mut rates, mut normalised) = (Vec::new(), Vec::new());
        for &d in dimensions {
            let Some(m) = store.get(&cell(d, steps, budget)) else {
                row.push("–".into());
                continue;
            };
            let (iterations, trips) = (m.summary.iterations as f64, m.summary.round_trips as f64);
            let paper = m.summary.compute_normalised_round_trips.paper;
            row.push(count(m.summary.round_trips));
            rates.push((d as f64, trips / iterations));
            normalised.push((d as f64, paper / iterations));
            data.push(json!({"dim": d, "steps": steps, "round_trips": trips, "iterations": iterations,
                "compute_normalised": paper}));
        }
        rows.push(row);
        lines.push(Line { name: name(steps), rates, normalised });
    }
    let chart = |id: &str, title: &str, normal: bool| {
        let all = lines
            .iter()
            .flat_map(|l| if normal { &l.normalised } else { &l.rates })
            .map(|p| p.1)
            .filter(|r| *r > 0.0);
        let (low, high) = all.fold((1f64, 1e-6f64), |(low, high), r| (low.min(r), high.max(r)));
        let ticks = dimensions.iter().map(|d| (*d as f64, d.to_string())).collect();
        let last = *dimensions.last().expect("some dimension") as f64;
        let x = Axis::log("dimension d", 1.8, 1.1 * last).ticks(ticks);
        let mut chart =
            Chart::new(id, title, x, Axis::log("round trips per iteration", 0.7 * low, 1.4 * high));
        for (Line { name, rates, normalised }, class) in lines.iter().zip(["c5", "faint", "c1", "c3", "c2"]) {
            let points = if normal { normalised } else { rates };
            chart.line(class, points);
            points.iter().for_each(|p| chart.dot(class, p.0, p.1, 3.0));
            points
                .iter()
                .for_each(|p| chart.tip(p.0, p.1, format!("{name}, d = {}: {}", p.0, significant(p.1, 3))));
            chart.key(Key::Line, class, name.clone());
        }
        chart
    };
    let charts = vec![
        chart("dimension-rate", "Round-trip rate", false),
        chart("dimension-normalised", "Divided by evaluations of a swap", true),
    ];
    let mut header = vec!["round trips".to_string()];
    header.extend(dimensions.iter().map(|d| format!("d = {d}")));
    Section {
        name: Experiment::Dimension.name(),
        budget,
        title: "Scaling with the dimension".into(),
        blocks: vec![
            Block::Text(format!(
                "GMM-d along its exact diffusion, {chains} chains, HMC with step size 0.03, one seed. Nothing is trained: \
                 this is what a perfect network would give. The right chart divides by the evaluations of a swap as the \
                 paper counts them."
            )),
            Block::Charts(charts),
            Block::Table { header, rows },
        ],
        checks: monotone(&lines),
        data: data.into(),
    }
}

/// More steps, more round trips, in every dimension.
fn monotone(lines: &[Line]) -> Vec<Check> {
    let complete = lines.iter().all(|l| l.rates.len() == lines[0].rates.len());
    if lines[0].rates.is_empty() || !complete {
        return vec![];
    }
    let rises = |i: usize| lines[1..].windows(2).all(|w| w[0].rates[i].1 < w[1].rates[i].1);
    let passed = (0..lines[0].rates.len()).all(rises);
    let what = "in every dimension each K makes more round trips than the K before".into();
    vec![Check { what, passed, must: true }]
}
