//! What is said beside the numbers: `notes.toml`, and sentences made of results.

use super::Budget;
use super::page::Block;
use super::plan::{Problem, Row};
use super::tables::Mean;
use crate::report::format::count;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    introduction: Vec<String>,
    normalised: String,
    honest: String,
    tables: BTreeMap<String, String>,
    shortfall: Vec<Shortfall>,
    independent: Independent,
}

/// Why round trips are below the printed ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shortfall {
    target: Option<String>,
    method: String,
    steps_below: Option<usize>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Independent {
    text: String,
    after: String,
    tried: Vec<Tried>,
}

/// A setting changed, and the spread it made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tried {
    target: String,
    change: String,
    plain: Option<f64>,
    cmcd: f64,
}

static NOTES: LazyLock<Notes> =
    LazyLock::new(|| toml::from_str(include_str!("notes.toml")).expect("a test reads the notes"));

/// What stands above all.
pub fn introduction() -> Vec<String> {
    NOTES.introduction.clone()
}

/// What stands above a table.
pub fn table(problem: Problem, budget: Budget) -> String {
    let iterations = count(problem.iterations(budget));
    let scaled = match budget {
        Budget::Quick => " Printed round trips are scaled to as many.",
        _ => "",
    };
    format!("{} {iterations} iterations.{scaled}", NOTES.tables[problem.name()])
}

/// Above the paper's normalised round trips.
pub fn normalised() -> Block {
    Block::Text(NOTES.normalised.clone())
}

/// Above what the paper leaves out.
pub fn honest() -> Block {
    Block::Text(NOTES.honest.clone())
}

/// Below the boxes of free energies: why one method does not show what the other does.
pub fn independent() -> Vec<Block> {
    let Independent { text, after, tried } = &NOTES.independent;
    let row = |t: &Tried| {
        let plain = t.plain.map_or("–".into(), |spread| format!("{spread:.3}"));
        vec![t.target.clone(), t.change.clone(), plain, format!("{:.3}", t.cmcd)]
    };
    let header = ["target", "changed", "PT", "CMCD-APT, K = 5"];
    vec![
        Block::Text(text.clone()),
        Block::table(&header, tried.iter().map(row).collect()),
        Block::Text(after.clone()),
    ]
}

/// Where we are below the paper, and why.
pub fn shortfalls(problem: Problem, budget: Budget, short: &[(Row, usize, Mean, f64)]) -> Option<String> {
    if budget == Budget::Quick {
        return None;
    }
    if short.is_empty() {
        return Some("In no cell are our round trips below the printed ones.".into());
    }
    let mut out = String::from("**Below the paper:** ");
    let cells: Vec<String> = short
        .iter()
        .map(|(row, chains, ours, theirs)| {
            let [ours, theirs] = [ours.value, *theirs].map(|r| count(r.round() as u64));
            format!("{} with {chains} chains ({ours} against {theirs})", row.title())
        })
        .collect();
    out += &cells.join(", ");
    out.push('.');
    let mut reasons: Vec<&str> = short.iter().filter_map(|(row, ..)| reason(problem, *row)).collect();
    reasons.dedup();
    for reason in reasons {
        out.push(' ');
        out += reason;
    }
    Some(out)
}

fn reason(problem: Problem, row: Row) -> Option<&'static str> {
    let fits = |s: &&Shortfall| {
        s.target.as_ref().is_none_or(|target| target == problem.name())
            && row.in_paper() == Some(in_paper(&s.method))
            && s.steps_below.is_none_or(|steps| row.steps < steps)
    };
    NOTES.shortfall.iter().find(fits).map(|s| s.reason.as_str())
}

/// The paper's short name of a method.
fn in_paper(method: &str) -> &'static str {
    match method {
        "plain" => "pt",
        "diffusion" => "diff",
        "cmcd" => "cmcd",
        "flow" => "nf",
        other => panic!("notes.toml knows no method {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Method;
    use super::*;

    #[test]
    fn notes_are_read() {
        assert_eq!(introduction().len(), 2);
        for problem in [Problem::Gmm, Problem::ManyWell, Problem::Dw4, Problem::Alanine] {
            assert!(table(problem, Budget::Quick).contains("iterations. Printed"));
            for row in problem.rows(Budget::Standard) {
                let known = reason(problem, row).is_some();
                let expected = match (problem, row.method) {
                    (_, Method::Plain) => true,
                    (Problem::Gmm, Method::Diffusion) => row.steps < 2,
                    (Problem::Dw4, method) => matches!(method, Method::Diffusion | Method::Cmcd),
                    _ => false,
                };
                assert_eq!(known, expected, "{problem:?} {row:?}");
            }
        }
        assert_eq!(independent().len(), 3);
    }
}
