//! A thousand consecutive draws of ManyWell-32 beside as many independent ones (App. G).

use super::cell::Cell;
use super::kept::exact_draws;
use super::page::{Block, Section};
use super::plan::{Method, Problem, Row};
use super::store::Store;
use super::{Budget, Experiment};
use crate::report::chart::{Axis, Chart};
use serde_json::json;
use sterna::targets::ManyWell;

fn rows(budget: Budget) -> Vec<Row> {
    let shown =
        |row: &Row| matches!(row.method, Method::Cmcd | Method::Diffusion) && matches!(row.steps, 1 | 5);
    Problem::ManyWell.rows(budget).into_iter().filter(shown).collect()
}

/// Runs of the table.
pub fn cells(budget: Budget) -> Vec<Cell> {
    let mut out = Vec::new();
    for row in rows(budget) {
        let chains = Problem::ManyWell.chains(budget);
        out.extend(chains.iter().map(|&n| Problem::ManyWell.cell(row, n, 1, budget)));
    }
    out
}

/// A panel for each run, and one of independent draws.
pub fn section(budget: Budget, store: &Store) -> Section {
    let panel = |id: &str, title: String, draws: &[Vec<f64>]| {
        let axis = |label: &str| Axis::linear(label, -3.0, 3.0);
        let mut chart = Chart::new(id, &title, axis("x₁"), axis("x₃"));
        chart.cloud("c1", draws.iter().map(|x| (x[0], x[2])), 2.0);
        chart
    };
    let target = ManyWell::new(32);
    let truth = exact_draws(&target);
    let (mut charts, mut data, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows(budget) {
        for chains in Problem::ManyWell.chains(budget) {
            let Some(m) = store.get(&Problem::ManyWell.cell(row, chains, 1, budget)) else { continue };
            let id = format!("many-well-{}", charts.len());
            let title = format!("{}, {chains} chains", row.title());
            charts.push(panel(&id, title.clone(), &m.kept.draws));
            let weights = quadrants(&m.kept.draws);
            table.push([vec![title.clone()], weights.iter().map(|w| format!("{w:.3}")).collect()].concat());
            data.push(
                json!({"panel": title, "cell": m.cell.name, "draws": m.kept.draws.len(), "weights": weights}),
            );
        }
    }
    let weights = quadrants(&truth);
    table.push(
        [vec!["independent draws".to_string()], weights.iter().map(|w| format!("{w:.3}")).collect()].concat(),
    );
    charts.push(panel("many-well-truth", "1,000 independent draws".into(), &truth));
    Section {
        name: Experiment::ManyWell.name(),
        budget,
        title: "Draws of ManyWell-32".into(),
        blocks: vec![
            Block::Text(
                "The first 1,000 consecutive draws of the target chain, in the first and the third coordinate, each of which \
                 has two wells of different weights. The table has the share of the draws in each of the four wells."
                    .into(),
            ),
            Block::Charts(charts),
            Block::table(&["panel", "x₁ < 0, x₃ < 0", "x₁ < 0, x₃ > 0", "x₁ > 0, x₃ < 0", "x₁ > 0, x₃ > 0"], table),
        ],
        checks: vec![],
        data: data.into(),
    }
}

/// Shares of the draws in the four wells.
fn quadrants(draws: &[Vec<f64>]) -> [f64; 4] {
    let mut out = [0.0; 4];
    for x in draws {
        out[2 * usize::from(x[0] > 0.0) + usize::from(x[2] > 0.0)] += 1.0 / draws.len() as f64;
    }
    out
}
