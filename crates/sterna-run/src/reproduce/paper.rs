//! What the paper prints.

use serde::Deserialize;

const TABLES: &str = include_str!("../../assets/tables.json");

/// A table of round trips.
#[derive(Clone, Debug, Deserialize)]
pub struct Table {
    /// Numbers of chains, one for each column.
    pub chains: Vec<usize>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// `nf`, `cmcd`, `diff` or `pt`.
    pub method: String,
    /// K.
    #[serde(rename = "K")]
    pub steps: usize,
    /// Calls of the network.
    pub neural_calls: usize,
    /// Λ̂ at the largest number of chains.
    pub lambda_hat: f64,
    /// R, for each number of chains.
    pub round_trips: Vec<f64>,
    /// R by the evaluations that the paper counts.
    pub compute_normalised: Vec<f64>,
}

/// The printed table of this name: `gmm10`, `mw32`, `dw4` or `alanine_dipeptide`.
///
/// # Panics
/// If there is none.
pub fn table(name: &str) -> Table {
    let all: serde_json::Value = serde_json::from_str(TABLES).expect("the asset is JSON");
    serde_json::from_value(all[name].clone()).expect("the asset holds the table")
}
