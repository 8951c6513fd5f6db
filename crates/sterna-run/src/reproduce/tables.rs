//! Tables of round trips: the paper's columns, ours beside them, and what the paper does not count.

use super::page::{Block, Check, Section};
use super::plan::{Method, Problem, Row};
use super::store::Store;
use super::{Budget, Experiment, notes, paper};
use crate::report::format::{count, number, significant, with_error};
use crate::report::sections;
use serde_json::{Value, json};

/// Estimates of log Z further off than this, in standard errors, are an error of the program: one in 150,000
/// sound runs is.
const FAR_OFF: f64 = 4.5;

/// A number over seeds.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    /// Mean.
    pub value: f64,
    /// Its standard error, from the spread between seeds; none for one seed.
    pub error: f64,
}

impl Mean {
    /// Of the finite ones of some numbers.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let all: Vec<f64> = values.filter(|x| x.is_finite()).collect();
        let n = all.len() as f64;
        let value = all.iter().sum::<f64>() / n;
        let squares: f64 = all.iter().map(|x| (x - value).powi(2)).sum();
        Self { value, error: (squares / (n - 1.0) / n).sqrt() }
    }

    fn text(&self) -> String {
        match (self.value.is_finite(), self.error.is_finite()) {
            (false, _) => "–".into(),
            (_, true) => format!("{} ± {}", whole(self.value), whole(self.error)),
            _ => whole(self.value),
        }
    }
}

fn whole(x: f64) -> String {
    if x.abs() < 10.0 { number((10.0 * x).round() / 10.0) } else { count(x.round() as u64) }
}

/// Results of one place of a table, one for each seed that is there.
pub fn results(store: &Store, problem: Problem, row: Row, chains: usize, budget: Budget) -> Vec<Value> {
    let of = |seed| {
        let cell = problem.cell(row, chains, seed, budget);
        let mut summary = store.get(&cell)?.summary;
        // A transport that was made elsewhere cost as much as if it had been made here.
        if let Some(name) = &cell.transport_of {
            let making = store.read(name)?.summary;
            for part in ["collecting_s", "training_s"] {
                summary["time"]["processor"][part] = making["time"]["processor"][part].clone();
            }
            let number = |s: &Value, key: &str| s["evaluations"][key].as_f64().unwrap_or(0.0);
            let made = number(&making, "target") - number(&making, "sampling");
            summary["evaluations"]["target"] = json!(made + number(&summary, "sampling"));
        }
        Some(summary)
    };
    problem.seeds(row, budget).filter_map(of).collect()
}

fn round_trips(summary: &Value) -> f64 {
    summary["round_trips"].as_f64().unwrap_or(f64::NAN)
}

fn seconds(summary: &Value, part: &str) -> f64 {
    summary["time"]["processor"][part].as_f64().unwrap_or(f64::NAN)
}

fn all_seconds(summary: &Value) -> f64 {
    ["tuning_s", "collecting_s", "training_s", "sampling_s"].iter().map(|part| seconds(summary, part)).sum()
}

/// Error of log Z in standard errors.
fn deviation(summary: &Value) -> f64 {
    let z = &summary["log_z"];
    let number = |key: &str| z[key].as_f64().unwrap_or(f64::NAN);
    (number("bar") - number("truth")) / number("standard_error")
}

fn ratio(ours: f64, paper: f64) -> String {
    if (ours / paper).is_finite() { format!("×{}", significant(ours / paper, 2)) } else { "–".into() }
}

/// The section of a table.
pub fn section(problem: Problem, budget: Budget, store: &Store) -> Section {
    let columns = problem.chains(budget);
    let printed = paper::table(problem.in_paper());
    let of = |row: Row| {
        printed.rows.iter().find(|r| Some(r.method.as_str()) == row.in_paper() && r.steps == row.steps)
    };
    let (mut main, mut normalised, mut honest) = (Vec::new(), Vec::new(), Vec::new());
    let (mut checks, mut data) = (Vec::new(), Vec::new());
    let mut short = Vec::new();
    for row in problem.rows(budget) {
        let results: Vec<Vec<Value>> =
            columns.iter().map(|&n| results(store, problem, row, n, budget)).collect();
        if results.iter().all(Vec::is_empty) {
            continue;
        }
        let theirs = of(row);
        let their = |list: fn(&paper::Row) -> &Vec<f64>, chains: usize| {
            let column = printed.chains.iter().position(|&n| n == chains)?;
            // Round trips are as many as there is time for them.
            let share = problem.iterations(budget) as f64 / problem.iterations(Budget::Standard) as f64;
            theirs.and_then(|r| list(r).get(column).map(|x| x * share))
        };
        let last = results.iter().rev().find(|r| !r.is_empty()).expect("one is not empty");
        let barrier = Mean::of(last.iter().map(|s| s["global_barrier"].as_f64().unwrap_or(f64::NAN)));
        let mut main_row = vec![
            row.title(),
            neural_calls(row).to_string(),
            format!("{:.3}", barrier.value),
            theirs.map_or("–".into(), |r| format!("{:.3}", r.lambda_hat)),
        ];
        let (mut normal_row, mut honest_row) = (vec![row.title()], vec![row.title()]);
        for (&chains, results) in columns.iter().zip(&results) {
            let ours = Mean::of(results.iter().map(round_trips));
            let theirs = their(|r| &r.round_trips, chains);
            main_row.push(ours.text());
            main_row.push(theirs.map_or("–".into(), whole));
            main_row.push(theirs.map_or("–".into(), |t| ratio(ours.value, t)));
            if let Some(theirs) = theirs.filter(|t| ours.value < *t) {
                short.push((row, chains, ours, theirs));
            }
            let normal =
                |s: &Value| s["compute_normalised_round_trips"]["paper"].as_f64().unwrap_or(f64::NAN);
            let ours_normal = Mean::of(results.iter().map(normal));
            let theirs_normal = their(|r| &r.compute_normalised, chains);
            normal_row.push(ours_normal.text());
            normal_row.push(theirs_normal.map_or("–".into(), whole));
            normal_row.push(theirs_normal.map_or("–".into(), |t| ratio(ours_normal.value, t)));
            let per = |f: &dyn Fn(&Value) -> f64| Mean::of(results.iter().map(f)).value;
            let evaluations = |s: &Value| s["evaluations"]["target"].as_f64().unwrap_or(f64::NAN);
            honest_row.push(number(per(&|s| 1e6 * round_trips(s) / evaluations(s))));
            honest_row.push(whole(per(&|s| round_trips(s) / seconds(s, "sampling_s"))));
            honest_row.push(whole(per(&|s| round_trips(s) / all_seconds(s))));
            let error = per(&|s| {
                (s["log_z"]["bar"].as_f64().unwrap_or(f64::NAN)
                    - s["log_z"]["truth"].as_f64().unwrap_or(f64::NAN))
                .abs()
            });
            let z = results
                .iter()
                .map(deviation)
                .fold(0f64, |worst, z| if z.abs() > worst.abs() { z } else { worst });
            honest_row.push(if error.is_finite() { format!("{error:.4} ({z:+.1})") } else { "–".into() });
            if z.abs() > FAR_OFF {
                let what =
                    format!("log Z of {} with {chains} chains is {z:+.1} standard errors off", row.title());
                checks.push(Check { what, passed: false, must: true });
            }
            data.push(json!({
                "row": row.title(), "chains": chains, "round_trips": ours.value, "standard_error": finite(ours.error),
                "seeds": results.len(), "paper": theirs, "barrier": finite(Mean::of(results.iter()
                    .map(|s| s["global_barrier"].as_f64().unwrap_or(f64::NAN))).value),
                "z": finite(z), "training_s": finite(per(&|s| seconds(s, "training_s"))),
            }));
        }
        main.push(main_row);
        normalised.push(normal_row);
        honest.push(honest_row);
    }
    let head = |first: &[&str], each: &[&str]| {
        let mut out: Vec<String> = first.iter().map(|h| h.to_string()).collect();
        columns.iter().for_each(|n| out.extend(each.iter().map(|h| h.replace("{n}", &n.to_string()))));
        out
    };
    if problem != Problem::Alanine {
        let within = !checks.iter().any(|c: &Check| !c.passed);
        let what = format!("every log Z lies within {FAR_OFF} standard errors of the exact value");
        checks.push(Check { what, passed: within, must: true });
    }
    checks.extend(gains(problem, budget, store));
    let mut blocks = vec![
        Block::Text(notes::table(problem, budget)),
        Block::Table {
            header: head(&["method", "neural calls", "Λ̂", "paper"], &["R, {n} chains", "paper", "ratio"]),
            rows: main,
        },
    ];
    blocks.extend(notes::shortfalls(problem, budget, &short).map(Block::Text));
    blocks.push(Block::Text(
        "Round trips divided by the evaluations that the paper counts for a swap (2 for PT and NF, K + 1 else):".into(),
    ));
    blocks.push(Block::Table {
        header: head(&["method"], &["CN-R, {n} chains", "paper", "ratio"]),
        rows: normalised,
    });
    blocks.push(Block::Text(
        "What the paper leaves out. Round trips per million target evaluations with every one counted (local moves, \
         tuning, collecting, training); round trips per processor-second of sampling alone, and of the whole run with \
         training; the error of log Z, with the farthest seed in standard errors:"
            .into(),
    ));
    blocks.push(Block::Table {
        header: head(
            &["method"],
            &[
                "R per 10⁶ evaluations, {n} chains",
                "R per s sampling",
                "R per s in all",
                "error of log Z (worst z)",
            ],
        ),
        rows: honest,
    });
    if problem == Problem::Alanine {
        blocks.extend(molecule(budget, store));
    }
    Section {
        name: Experiment::Table(problem).name(),
        budget,
        title: format!("Round trips on {}", problem.title()),
        blocks,
        checks,
        data: json!({ "budget": budget.name(), "cells": data }),
    }
}

/// The molecule itself: free energy over φ and ψ, and populations of the basins, by the first row that crosses often.
fn molecule(budget: Budget, store: &Store) -> Vec<Block> {
    let row = Row { method: Method::Affine, steps: 1 };
    let Some(found) = store.get(&Problem::Alanine.cell(row, 4, 1, budget)) else { return vec![] };
    let mut out = Vec::new();
    if let Some(chart) = sections::molecule::map(0, &found.kept.map) {
        out.push(Block::Text(format!(
            "Free energy over φ and ψ at 300 K, and populations, by {}:",
            row.title()
        )));
        out.push(Block::Charts(vec![chart]));
    }
    let basins = found.summary["molecule"]["residues"][0]["basins"].as_object();
    let rows = basins.into_iter().flatten().map(|(name, basin)| {
        let [share, error] =
            ["population", "standard_error"].map(|key| basin[key].as_f64().unwrap_or(f64::NAN));
        vec![name.clone(), with_error(share, error)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        out.push(Block::table(&["basin", "population"], rows));
    }
    out
}

fn finite(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

/// As the paper counts them.
fn neural_calls(row: Row) -> usize {
    match row.method {
        Method::Flow => 1,
        Method::Cmcd => row.steps + 1,
        Method::Diffusion => (row.steps + 1).max(2),
        _ => 0,
    }
}

/// What accelerated swaps must bring at the least, even in a minute: a wrong sign in a backward kernel still
/// samples exactly, and brings nothing.
fn gains(problem: Problem, budget: Budget, store: &Store) -> Vec<Check> {
    let wanted: &[(Method, usize, f64)] = match problem {
        Problem::Gmm => &[(Method::Cmcd, 5, 3.0), (Method::Flow, 1, 3.0), (Method::Diffusion, 5, 2.0)],
        Problem::ManyWell => &[(Method::Cmcd, 5, 1.3)],
        Problem::Dw4 => &[(Method::Cmcd, 5, 1.3)],
        Problem::Alanine => &[(Method::Scaling, 1, 3.0), (Method::Affine, 1, 6.0)],
    };
    let chains = problem.middle(budget);
    let mean = |row: Row| {
        let found = results(store, problem, row, chains, budget);
        (!found.is_empty()).then(|| Mean::of(found.iter().map(round_trips)).value)
    };
    let Some(plain) = mean(Row { method: Method::Plain, steps: 0 }) else { return vec![] };
    let check = |&(method, steps, factor): &(Method, usize, f64)| {
        let row = Row { method, steps };
        let ours = mean(row)?;
        let what = format!(
            "{} makes at least {factor} times as many round trips as PT with {chains} chains: {} to {}",
            row.title(),
            whole(ours),
            whole(plain)
        );
        Some(Check { what, passed: ours >= factor * plain, must: true })
    };
    wanted.iter().filter_map(check).collect()
}
