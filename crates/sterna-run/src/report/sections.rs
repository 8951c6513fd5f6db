//! The sections of the report, in the order of the page. One that does not apply is left out.

mod choice;
mod communication;
mod cost;
mod draws;
mod free_energy;
mod ladder;
mod mixing;
pub(crate) mod molecule;
mod parameters;
mod reference;
mod training;
mod tuning;

use super::figure::Figure;
use super::format::escape;
use super::load::Folder;
use crate::summary::Summary;

/// Charts that are drawn from `traces.json`.
pub const FROM_TRACES: [&str; 8] = [
    "log-z-growing",
    "index-process",
    "round-trips",
    "works",
    "energies",
    "tuning-barrier",
    "tuning-steps",
    "pair-plot-exact",
];

/// A part of the page with its own heading.
pub struct Section {
    /// Where links lead.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// A sentence or two.
    pub introduction: String,
    /// A table above the figures, as HTML; empty if there is none.
    pub table: String,
    /// Figures, one after the other.
    pub figures: Vec<Figure>,
}

impl Section {
    /// As part of the page.
    pub fn html(&self) -> String {
        format!(
            "<section id=\"{}\"><h2>{}</h2><p class=\"introduction\">{}</p>{}<div class=\"figures\">{}</div></section>",
            self.id,
            escape(self.title),
            escape(&self.introduction),
            self.table,
            self.figures.iter().map(Figure::html).collect::<String>()
        )
    }
}

/// All sections that apply.
pub fn all(folder: &Folder) -> Vec<Section> {
    let sections = [
        parameters::section(folder),
        molecule::section(folder),
        mixing::section(folder),
        communication::section(folder),
        free_energy::section(folder),
        draws::section(folder),
        reference::section(folder),
        ladder::section(folder),
        choice::section(folder),
        training::section(folder),
        tuning::section(folder),
        cost::section(folder),
    ];
    sections.into_iter().flatten().filter(|s| !s.figures.is_empty() || !s.table.is_empty()).collect()
}

/// One of eight colours from reference to target.
fn shade(i: usize, count: usize) -> String {
    format!("q{}", (i * 7 + (count.max(2) - 1) / 2) / (count.max(2) - 1))
}

/// Ticks of an axis of chains: their names, and some of the numbers between.
fn chain_ticks(summary: &Summary, most: usize) -> Vec<(f64, String)> {
    let chains = summary.setup.chains;
    let step = chains.saturating_sub(1).div_ceil(most).max(1);
    let named: Vec<usize> = (0..chains).filter(|n| summary.chain_name(*n).is_some()).collect();
    // Numbers must not touch names.
    let apart = |n: &usize| named.iter().all(|name| 2 * n.abs_diff(*name) > step);
    let numbers = (0..chains).step_by(step).filter(apart).map(|n| (n as f64, n.to_string()));
    let names = named.iter().filter_map(|n| Some((*n as f64, summary.chain_name(*n)?.to_string())));
    names.chain(numbers).collect()
}

/// Names of pairs of chains along an axis, so many at most.
fn pair_ticks(pairs: usize, most: usize) -> Vec<(f64, String)> {
    let step = pairs.div_ceil(most).max(1);
    (0..pairs).step_by(step).map(|n| (n as f64, format!("{}–{}", n, n + 1))).collect()
}
