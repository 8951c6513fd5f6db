//! The paper's first figure: draws of GMM-10 by few chains, and their round trips over time.

use super::cell::{Cell, Measured};
use super::kept::exact_draws;
use super::page::{Block, Section};
use super::plan::{Method, Problem, Row};
use super::store::Store;
use super::{Budget, Experiment};
use crate::report::chart::{Axis, Chart, Key};
use serde_json::json;
use std::collections::BTreeSet;
use sterna::targets::Gmm;

/// What is shown: plain swaps, then those of each accelerator.
pub const ROWS: [Row; 4] = [
    Row { method: Method::Plain, steps: 0 },
    Row { method: Method::Flow, steps: 1 },
    Row { method: Method::Cmcd, steps: 5 },
    Row { method: Method::Diffusion, steps: 5 },
];

/// Runs of the table with the fewest chains.
pub fn cells(budget: Budget) -> Vec<Cell> {
    let chains = Problem::Gmm.chains(budget)[0];
    ROWS.iter().map(|&row| Problem::Gmm.cell(row, chains, 1, budget)).collect()
}

/// Draws of each method, and round trips of all.
pub fn section(budget: Budget, store: &Store) -> Section {
    let chains = Problem::Gmm.chains(budget)[0];
    let found: Vec<(Row, &Measured)> =
        ROWS.iter().zip(cells(budget)).filter_map(|(&row, cell)| Some((row, store.get(&cell)?))).collect();
    let truth = exact_draws(&Gmm::paper(10));
    let axis = |label: &str| Axis::linear(label, -1.2, 1.2);
    let scatter = |id: String, title: String, draws: &[Vec<f64>]| {
        let mut chart = Chart::new(&id, &title, axis("x₁"), axis("x₂")).height(380.0);
        chart.cloud("c1", draws.iter().map(|x| (x[0], x[1])), 2.0);
        chart
    };
    let mut charts: Vec<Chart> = found
        .iter()
        .enumerate()
        .map(|(i, (row, m))| {
            let title = format!("{}: {} modes in 1,000 consecutive draws", row.title(), modes(&m.kept.draws));
            scatter(format!("overview-{i}"), title, &m.kept.draws)
        })
        .collect();
    let title = format!("Truth: {} modes in 1,000 independent draws", modes(&truth));
    charts.push(scatter("overview-truth".into(), title, &truth));
    let most = found.iter().filter_map(|(_, m)| m.kept.round_trips.last()).map(|p| p.1).max().unwrap_or(1);
    let last = found.iter().filter_map(|(_, m)| m.kept.round_trips.last()).map(|p| p.0).max().unwrap_or(1);
    let mut trips = Chart::new(
        "overview-round-trips",
        &format!("Round trips with {chains} chains"),
        Axis::linear("iterations", 0.0, last as f64),
        Axis::linear("round trips so far", 0.0, most as f64),
    );
    trips = trips.height(380.0);
    for ((row, m), class) in found.iter().zip(["c5", "c1", "c2", "c3"]) {
        let points: Vec<(f64, f64)> = m.kept.round_trips.iter().map(|p| (p.0 as f64, p.1 as f64)).collect();
        trips.line(class, &points);
        trips.key(Key::Line, class, row.title());
    }
    charts.push(trips);
    let data = found.iter().map(|(row, m)| {
        json!({
            "row": row.title(), "cell": m.cell.name, "modes": modes(&m.kept.draws), "draws": m.kept.draws.len(),
            "round_trips": m.kept.round_trips.last(),
        })
    });
    Section {
        name: Experiment::Overview.name(),
        budget,
        title: "Overview: few chains on GMM-10".into(),
        data: data.collect(),
        blocks: vec![
            Block::Text(format!(
                "The first 1,000 consecutive draws of the target chain with {chains} chains (two of ten coordinates), and \
                 round trips over the whole run. A replica that makes a round trip brings news of another mode."
            )),
            Block::Charts(charts),
        ],
        checks: vec![],
    }
}

/// Modes that draws visit: the mean that is nearest to each.
fn modes(draws: &[Vec<f64>]) -> usize {
    let gmm = Gmm::paper(10);
    let distance = |x: &[f64], mean: &[f64; 2]| (x[0] - mean[0]).hypot(x[1] - mean[1]);
    let nearest = |x: &Vec<f64>| {
        let means = gmm.means().iter().enumerate();
        means.min_by(|a, b| distance(x, a.1).total_cmp(&distance(x, b.1))).expect("40 means").0
    };
    draws.iter().map(nearest).collect::<BTreeSet<_>>().len()
}
