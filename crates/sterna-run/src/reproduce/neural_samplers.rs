//! Distances between the particles of DW-4 (§6.4): samplers made of transports alone, the same transports inside
//! accelerated tempering, and the truth.

use super::cell::{Cell, Keep};
use super::kept::{DISTANCE_BINS, LONGEST};
use super::page::{Block, Check, Section};
use super::plan::{self, Method, Problem, Row};
use super::store::Store;
use super::{Budget, Experiment};
use crate::report::chart::{Axis, Chart, Key};
use serde_json::json;
use std::f64::consts::PI;

fn rows(budget: Budget) -> Vec<Row> {
    let shown = |row: &Row| match row.method {
        Method::Cmcd => true,
        Method::Diffusion => row.steps > 0,
        _ => false,
    };
    Problem::Dw4.rows(budget).into_iter().filter(shown).collect()
}

/// The truth: plain swaps between many chains for long.
fn truth(budget: Budget) -> Cell {
    let iterations = if budget == Budget::Quick { "40000" } else { "200000" };
    let settings = [
        ("target.kind", "dw4".to_string()),
        ("seed", "7".into()),
        ("chains.count", "12".into()),
        ("chains.ensembles", "8".into()),
        ("run.thin", "4".into()),
        ("run.iterations", iterations.into()),
    ];
    plan::cell("dw-truth".into(), &settings, Keep { distances: true, ..Keep::default() })
}

/// Runs of the table with the most chains, and the truth.
pub fn cells(budget: Budget) -> Vec<Cell> {
    let chains = *Problem::Dw4.chains(budget).last().expect("a table has columns");
    let of = |row: &Row| Problem::Dw4.cell(*row, chains, 1, budget);
    rows(budget).iter().map(of).chain([truth(budget)]).collect()
}

/// Shares of a histogram.
fn shares(counts: &[u64]) -> Vec<f64> {
    let sum: u64 = counts.iter().sum();
    counts.iter().map(|&c| c as f64 / sum as f64).collect()
}

fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()
}

/// Total variation that chance makes with so many draws that are worth one each, in a histogram of these shares.
fn noise(shares: &[f64], draws: f64) -> f64 {
    0.5 * shares.iter().map(|p| (2.0 * p * (1.0 - p) / (PI * draws)).sqrt()).sum::<f64>()
}

/// Histograms of each sampler beside the truth.
pub fn section(budget: Budget, store: &Store) -> Section {
    let mut blocks = vec![Block::Text(
        "Distances between the four particles of DW-4. CMCD and Diffusion carry points of the reference to the target by \
         the trained kernels alone (20,000 points); nothing corrects what they have not learned. Inside accelerated \
         tempering the same kernels only propose. The truth is plain tempering with adapted moves, 8 ladders of 12 chains."
            .into(),
    )];
    let mut checks = Vec::new();
    let mut data = Vec::new();
    if let Some(truth) = store.get(&truth(budget)) {
        let truth = shares(&truth.kept.distances);
        let chains = *Problem::Dw4.chains(budget).last().expect("a table has columns");
        let (mut charts, mut table) = (Vec::new(), Vec::new());
        for row in rows(budget) {
            let found = store.get(&Problem::Dw4.cell(row, chains, 1, budget));
            let Some(m) = found.filter(|m| m.is_whole()) else { continue };
            let name = if row.method == Method::Cmcd { "CMCD" } else { "Diffusion" };
            let [accelerated, plain] = [&m.kept.distances, &m.kept.plain_distances].map(|c| shares(c));
            let [ours, theirs] = [&accelerated, &plain].map(|p| total_variation(p, &truth));
            table.push(vec![row.title(), format!("{ours:.4}"), format!("{theirs:.4}")]);
            data.push(json!({"row": row.title(), "cell": m.cell.name, "accelerated": ours, "plain": theirs,
                "histogram": accelerated, "plain_histogram": plain, "truth": truth}));
            let bound = if budget == Budget::Quick { 0.05 } else { 0.02 };
            let what = format!("{}: total variation to the truth {ours:.4}, below {bound}", row.title());
            checks.push(Check { what, passed: ours < bound, must: true });
            if row.steps == 1 {
                let what = format!("{name} alone with K = 1 is visibly worse: {theirs:.4}");
                checks.push(Check { what, passed: theirs > 3.0 * ours, must: false });
            }
            charts.push(histogram(row, name, &truth, &plain, &accelerated));
        }
        blocks.push(Block::Charts(charts));
        blocks.push(Block::table(
            &["transport", "total variation inside tempering", "of the transport alone"],
            table,
        ));
        blocks.push(Block::Text(format!(
            "Chance alone makes a total variation of about {:.4} with 10,000 independent draws, {:.4} with 100,000 (six \
             distances each, taken as one draw).",
            noise(&truth, 1e4),
            noise(&truth, 1e5)
        )));
    }
    Section {
        name: Experiment::NeuralSamplers.name(),
        budget,
        title: "Transports alone, and inside accelerated tempering".into(),
        blocks,
        checks,
        data: data.into(),
    }
}

fn histogram(row: Row, name: &str, truth: &[f64], plain: &[f64], accelerated: &[f64]) -> Chart {
    let width = LONGEST / DISTANCE_BINS as f64;
    let line = |shares: &[f64]| -> Vec<(f64, f64)> {
        shares.iter().enumerate().map(|(i, s)| ((i as f64 + 0.5) * width, s / width)).collect()
    };
    let most = truth.iter().chain(plain).copied().fold(0.0, f64::max) / width;
    let mut chart = Chart::new(
        &format!("distances-{}-{}", name.to_lowercase(), row.steps),
        &format!("{name}, K = {}", row.steps),
        Axis::linear("distance", 0.0, LONGEST),
        Axis::linear("density", 0.0, 1.05 * most),
    );
    chart.area("c5", &line(truth), 0.0);
    chart.line("c2", &line(plain));
    chart.line("c1", &line(accelerated));
    chart.key(Key::Area, "c5", "truth");
    chart.key(Key::Line, "c2", name);
    chart.key(Key::Line, "c1", row.title());
    chart
}
