//! Tables of round trips: the paper's columns, ours beside them, and what the paper does not count.

use super::essence::Essence;
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
    if !x.is_finite() {
        return "–".into();
    }
    if x.abs() < 10.0 { number((10.0 * x).round() / 10.0) } else { count(x.round() as u64) }
}

/// Results of one place of a table, one for each seed that is there.
pub fn results(store: &Store, problem: Problem, row: Row, chains: usize, budget: Budget) -> Vec<Essence> {
    let of = |seed| {
        let cell = problem.cell(row, chains, seed, budget);
        let summary = store.get(&cell)?.summary.clone();
        match &cell.transport_of {
            Some(source) => Some(summary.with_transport_of(&store.named(&source.cell)?.summary)),
            None => Some(summary),
        }
    };
    problem.seeds(row, chains, budget).filter_map(of).collect()
}

fn round_trips(summary: &Essence) -> f64 {
    summary.round_trips as f64
}

fn ratio(ours: f64, paper: f64) -> String {
    if (ours / paper).is_finite() { format!("×{}", significant(ours / paper, 2)) } else { "–".into() }
}

/// One place of a table: a row with one number of chains.
struct Place<'a> {
    row: Row,
    chains: usize,
    results: Vec<Essence>,
    printed: Option<&'a paper::Row>,
    /// Which of the printed columns it is.
    column: Option<usize>,
    /// Iterations for one printed.
    share: f64,
}

impl Place<'_> {
    fn mean(&self, of: impl Fn(&Essence) -> f64) -> Mean {
        Mean::of(self.results.iter().map(of))
    }

    /// A printed number, as it would be with our number of iterations.
    fn printed(&self, list: fn(&paper::Row) -> &Vec<f64>) -> Option<f64> {
        Some(self.share * list(self.printed?).get(self.column?)?)
    }

    /// Ours, theirs and their ratio.
    fn beside(&self, ours: Mean, theirs: Option<f64>) -> [String; 3] {
        let none = || "–".to_string();
        [ours.text(), theirs.map_or_else(none, whole), theirs.map_or_else(none, |t| ratio(ours.value, t))]
    }

    fn round_trips(&self) -> [String; 3] {
        self.beside(self.mean(round_trips), self.printed(|r| &r.round_trips))
    }

    fn normalised(&self) -> [String; 3] {
        let ours = self.mean(|s| s.compute_normalised_round_trips.paper);
        self.beside(ours, self.printed(|r| &r.compute_normalised))
    }

    /// What the paper does not count.
    fn honest(&self) -> [String; 4] {
        let error = self.mean(|s| s.log_z.error().abs()).value;
        let per_million = self.mean(|s| 1e6 * round_trips(s) / s.evaluations.target as f64).value;
        [
            if per_million.is_finite() { number(per_million) } else { "–".into() },
            whole(self.mean(|s| round_trips(s) / s.time.processor.sampling_s).value),
            whole(self.mean(|s| round_trips(s) / s.time.processor.total()).value),
            if error.is_finite() { format!("{error:.4} ({:+.1})", self.farthest()) } else { "–".into() },
        ]
    }

    /// The error of log Z of the seed that is farthest off, in standard errors.
    fn farthest(&self) -> f64 {
        let all = self.results.iter().map(|s| s.log_z.deviation()).filter(|z| z.is_finite());
        all.fold(0.0, |worst: f64, z| if z.abs() > worst.abs() { z } else { worst })
    }

    fn data(&self) -> Value {
        let ours = self.mean(round_trips);
        json!({
            "row": self.row.title(), "chains": self.chains, "seeds": self.results.len(),
            "round_trips": finite(ours.value), "standard_error": finite(ours.error),
            "paper": self.printed(|r| &r.round_trips),
            "barrier": finite(self.mean(|s| s.global_barrier).value),
            "z": finite(self.farthest()),
            "training_s": finite(self.mean(|s| s.time.processor.training_s).value),
        })
    }
}

/// The section of a table.
pub fn section(problem: Problem, budget: Budget, store: &Store) -> Section {
    let printed = paper::table(problem.in_paper());
    let columns = problem.chains(budget);
    let share = problem.iterations(budget) as f64 / problem.iterations(Budget::Standard) as f64;
    let places = |row: Row| -> Vec<Place> {
        let in_paper = |r: &&paper::Row| Some(r.method.as_str()) == row.in_paper() && r.steps == row.steps;
        let place = |&chains: &usize| Place {
            row,
            chains,
            results: results(store, problem, row, chains, budget),
            printed: printed.rows.iter().find(in_paper),
            column: printed.chains.iter().position(|&n| n == chains),
            share,
        };
        columns.iter().map(place).collect()
    };
    let rows: Vec<Vec<Place>> = problem.rows(budget).into_iter().map(places).collect();
    let rows: Vec<&Vec<Place>> =
        rows.iter().filter(|places| places.iter().any(|p| !p.results.is_empty())).collect();
    let head = |first: &[&str], each: &[&str]| -> Vec<String> {
        let each = columns.iter().flat_map(|n| each.iter().map(|h| h.replace("{n}", &n.to_string())));
        first.iter().map(|h| h.to_string()).chain(each).collect()
    };
    let all = || rows.iter().flat_map(|places| places.iter()).filter(|p| !p.results.is_empty());
    let short: Vec<(Row, usize, Mean, f64)> = all()
        .filter_map(|p| Some((p.row, p.chains, p.mean(round_trips), p.printed(|r| &r.round_trips)?)))
        .filter(|(_, _, ours, theirs)| ours.value < *theirs)
        .collect();

    let mut blocks = vec![
        Block::Text(notes::table(problem, budget)),
        Block::Table {
            header: head(&["method", "neural calls", "Λ̂", "paper"], &["R, {n} chains", "paper", "ratio"]),
            rows: rows.iter().map(|places| main_row(places)).collect(),
        },
    ];
    blocks.extend(notes::shortfalls(problem, budget, &short).map(Block::Text));
    let named = |places: &&Vec<Place>, cells: Vec<String>| [vec![places[0].row.title()], cells].concat();
    blocks.push(notes::normalised());
    blocks.push(Block::Table {
        header: head(&["method"], &["CN-R, {n} chains", "paper", "ratio"]),
        rows: rows.iter().map(|p| named(p, p.iter().flat_map(Place::normalised).collect())).collect(),
    });
    blocks.push(notes::honest());
    let each = [
        "R per 10⁶ evaluations, {n} chains",
        "R per s sampling",
        "R per s in all",
        "error of log Z (worst z)",
    ];
    blocks.push(Block::Table {
        header: head(&["method"], &each),
        rows: rows.iter().map(|p| named(p, p.iter().flat_map(Place::honest).collect())).collect(),
    });
    if problem == Problem::Alanine {
        blocks.extend(molecule(budget, store));
    }
    let mut checks = Vec::new();
    if problem != Problem::Alanine {
        checks.extend(exactness(all()));
    }
    checks.extend(gains(problem, budget, store));
    Section {
        name: Experiment::Table(problem).name(),
        budget,
        title: format!("Round trips on {}", problem.title()),
        checks,
        data: json!({ "budget": budget.name(), "cells": all().map(Place::data).collect::<Vec<_>>() }),
        blocks,
    }
}

fn main_row(places: &Vec<Place>) -> Vec<String> {
    let (row, printed) = (places[0].row, places[0].printed);
    // Λ̂ is that of the most chains.
    let last = places.iter().rev().find(|p| !p.results.is_empty()).expect("one has results");
    let mut out = vec![
        row.title(),
        neural_calls(row).to_string(),
        format!("{:.3}", last.mean(|s| s.global_barrier).value),
        printed.map_or("–".into(), |r| format!("{:.3}", r.lambda_hat)),
    ];
    out.extend(places.iter().flat_map(Place::round_trips));
    out
}

/// log Z of every run against the exact value.
fn exactness<'a>(places: impl Iterator<Item = &'a Place<'a>>) -> Vec<Check> {
    let off = places.filter(|p| p.farthest().abs() > FAR_OFF);
    let mut out: Vec<Check> = off
        .map(|p| {
            let (title, chains, z) = (p.row.title(), p.chains, p.farthest());
            let what = format!("log Z of {title} with {chains} chains is {z:+.1} standard errors off");
            Check { what, passed: false, must: true }
        })
        .collect();
    if out.is_empty() {
        let what = format!("every log Z lies within {FAR_OFF} standard errors of the exact value");
        out.push(Check { what, passed: true, must: true });
    }
    out
}

/// The molecule itself: free energy over φ and ψ, and populations of the basins over seeds, by the first row that
/// crosses often.
fn molecule(budget: Budget, store: &Store) -> Vec<Block> {
    let row = Row { method: Method::Affine, steps: 1 };
    let Some(found) = store.get(&Problem::Alanine.cell(row, 4, 1, budget)) else { return vec![] };
    let mut out = Vec::new();
    if let Some(chart) = found.kept.map.as_ref().and_then(|residue| sections::molecule::map(0, residue)) {
        out.push(Block::Text(format!(
            "Free energy over φ and ψ at 300 K (seed 1), and populations (all seeds), by {}:",
            row.title()
        )));
        out.push(Block::Charts(vec![chart]));
    }
    let seeds = results(store, Problem::Alanine, row, 4, budget);
    let rows = found.summary.basins().map(|(name, basin)| {
        let of = |seed: &Essence| seed.basins().find(|b| b.0 == name).map_or(f64::NAN, |b| b.1.population);
        let mean = Mean::of(seeds.iter().map(of));
        // The spread between seeds is the better witness of rare crossings; one seed has its own alone.
        let error = if seeds.len() > 1 { mean.error } else { basin.standard_error };
        vec![name.clone(), with_error(mean.value, error)]
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
        Method::Flow | Method::Spline => 1,
        Method::Cmcd => row.steps + 1,
        Method::Diffusion => (row.steps + 1).max(2),
        _ => 0,
    }
}

/// What accelerated swaps must bring at the least, even in a minute: a wrong sign in a backward kernel still
/// samples exactly, and brings a third of what it should.
fn gains(problem: Problem, budget: Budget, store: &Store) -> Vec<Check> {
    let wanted: &[(Method, usize, f64)] = match problem {
        Problem::Gmm => &[(Method::Cmcd, 5, 9.0), (Method::Flow, 1, 3.0), (Method::Diffusion, 5, 2.0)],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_seeds() {
        let mean = Mean::of([10.0, f64::NAN, 14.0].into_iter());
        assert_eq!((mean.value, mean.error), (12.0, 2.0));
        assert_eq!(mean.text(), "12 ± 2");
        assert_eq!(Mean::of([1234.0].into_iter()).text(), "1234");
        assert_eq!(Mean::of(std::iter::empty()).text(), "–");
    }

    #[test]
    fn printed_rows_are_found() {
        let printed = paper::table(Problem::Gmm.in_paper());
        for row in Problem::Gmm.rows(Budget::Standard).into_iter().filter(|r| r.in_paper().is_some()) {
            let found = printed
                .rows
                .iter()
                .find(|r| Some(r.method.as_str()) == row.in_paper() && r.steps == row.steps);
            assert!(found.is_some(), "{row:?}");
        }
    }
}
