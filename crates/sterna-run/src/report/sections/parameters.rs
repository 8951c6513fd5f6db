//! The answer as a statistician reads it: a row for each parameter and observable.

use super::Section;
use crate::report::format::{count, escape};
use crate::report::load::Folder;
use crate::summary::{Quantity, heights};
use std::fmt::Write;

/// Rows of a vector that are seen before it is unfolded.
const SEEN: usize = 5;

/// What a column is called, what it means, and its number in a row.
type Column = (&'static str, &'static str, fn(&Quantity) -> f64);

const COLUMNS: [Column; 9] = [
    ("mean", "mean of the draws", |q| q.mean),
    ("sd", "standard deviation", |q| q.sd),
    ("5%", "quantile of 5%", |q| q.ranks.q05),
    ("50%", "median", |q| q.ranks.q50),
    ("95%", "quantile of 95%", |q| q.ranks.q95),
    ("MCSE", "standard error of the mean", |q| q.mcse),
    ("ESS bulk", "independent draws in the bulk, by ranks", |q| q.ranks.ess_bulk),
    ("ESS tail", "independent draws in the tails, by ranks", |q| q.ranks.ess_tail),
    ("R̂", "disagreement of halves of ladders, by ranks: 1 if there is none", |q| q.ranks.r_hat),
];

/// Whole numbers from here on, R̂ in the last one.
const ESS: usize = 6;
const R_HAT: usize = 8;

pub fn section(folder: &Folder) -> Option<Section> {
    let summary = &folder.summary;
    let (parameters, observables) = (&summary.parameters, &summary.observables);
    if parameters.is_empty() && observables.is_empty() {
        return None;
    }
    let rows = parameters.len() + observables.len();
    let named = if observables.is_empty() { "" } else { " Observables come last." };
    Some(Section {
        id: "parameters",
        title: "What came out?",
        introduction: format!(
            "{} row{}, from the draws of all ladders. A heading sorts by its column; ESS below 400 and R̂ above 1.01 are marked.{named}",
            count(rows as u64),
            if rows == 1 { "" } else { "s" }
        ),
        table: table(parameters, observables),
        figures: Vec::new(),
    })
}

fn table(parameters: &[Quantity], observables: &[Quantity]) -> String {
    let mut head = String::from("<th scope=\"col\"><button type=\"button\">name</button></th>");
    for (name, meaning, _) in COLUMNS {
        let _ = write!(
            head,
            "<th scope=\"col\"><button type=\"button\" title=\"{}\">{name}</button></th>",
            escape(meaning)
        );
    }
    let body: String = vectors(parameters).chain(vectors(observables)).map(vector).collect();
    format!(
        "<div class=\"scroll\"><table class=\"quantities\"><thead><tr>{head}<th scope=\"col\">shape</th></tr></thead>\
         <tbody>{body}</tbody></table></div>"
    )
}

/// What a name is a part of: `theta` of `theta[3]`.
fn variable(name: &str) -> &str {
    name.split_once('[').map_or(name, |(variable, _)| variable)
}

/// Neighbours that are parts of the same.
fn vectors(rows: &[Quantity]) -> impl Iterator<Item = &[Quantity]> {
    rows.chunk_by(|a, b| variable(&a.name) == variable(&b.name))
}

/// The rows of one vector; of a long one the most are data, of which the page makes rows when it is unfolded or sorted.
fn vector(rows: &[Quantity]) -> String {
    // One more row says as much as a line that unfolds it.
    let seen = if rows.len() > SEEN + 1 { SEEN } else { rows.len() };
    let mut out: String = rows[..seen].iter().map(row).collect();
    if seen < rows.len() {
        let (left, name) = (rows.len() - seen, escape(variable(&rows[0].name)));
        let data: Vec<Vec<String>> = rows[seen..].iter().map(data).collect();
        // Nothing in it may end the element.
        let data = serde_json::to_string(&data).expect("texts").replace('<', "\\u003c");
        let _ = write!(
            out,
            "<tr class=\"fold\"><td colspan=\"{}\"><button type=\"button\" aria-expanded=\"false\">{} more of {name}</button>\
             <script type=\"application/json\">{data}</script></td></tr>",
            COLUMNS.len() + 2,
            count(left as u64)
        );
    }
    out
}

/// The text of a cell.
fn cell(quantity: &Quantity, i: usize) -> String {
    let value = COLUMNS[i].2(quantity);
    match i {
        _ if value.is_nan() => "–".into(),
        R_HAT => format!("{value:.3}"),
        ESS.. => count(value.max(0.0).round() as u64),
        _ => quantity.shown(value),
    }
}

/// Whether a number wants to be looked at.
fn is_suspect(i: usize, value: f64) -> bool {
    (i == R_HAT && value > 1.01) || ((ESS..R_HAT).contains(&i) && value < 400.0)
}

fn row(quantity: &Quantity) -> String {
    let mut out = format!("<tr><th scope=\"row\">{}</th>", escape(&quantity.name));
    for (i, (_, _, of)) in COLUMNS.iter().enumerate() {
        let value = of(quantity);
        let class = if is_suspect(i, value) { " class=\"suspect\"" } else { "" };
        // What it is sorted by; nothing where there is no number.
        let key = if value.is_finite() { format!(" data-v=\"{value:e}\"") } else { String::new() };
        let _ = write!(out, "<td{class}{key}>{}</td>", cell(quantity, i));
    }
    let _ = write!(out, "<td>{}</td></tr>", sparkline(&quantity.shape));
    out
}

/// The same as texts: name, cells with a mark before those that want to be looked at, and shape.
fn data(quantity: &Quantity) -> Vec<String> {
    let mark = |i: usize| if is_suspect(i, COLUMNS[i].2(quantity)) { "!" } else { "" };
    let cells = (0..COLUMNS.len()).map(|i| mark(i).to_string() + &cell(quantity, i));
    let (name, shape) = (quantity.name.clone(), quantity.shape.clone());
    std::iter::once(name).chain(cells).chain([shape]).collect()
}

/// A small histogram.
fn sparkline(shape: &str) -> String {
    let heights = heights(shape);
    if heights.is_empty() {
        return String::new();
    }
    let mut path = String::from("M0 18");
    for height in &heights {
        let _ = write!(path, "V{:.1}h4", 18.0 * (1.0 - height));
    }
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {} 18\" aria-hidden=\"true\"><path class=\"area c1\" d=\"{path}V18Z\"/></svg>",
        4 * heights.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Ranks;

    fn quantity(name: &str) -> Quantity {
        let ranks =
            Ranks { q05: -1.0, q50: 0.0, q95: 1.0, ess_bulk: 399.0, ess_tail: 5000.0, r_hat: f64::NAN };
        Quantity {
            name: name.into(), mean: 0.1, sd: 1.0, mcse: 0.01, ess: 1e4, ranks, shape: "▁▄█".into()
        }
    }

    #[test]
    fn long_vectors_fold_and_short_ones_do_not() {
        let long: Vec<Quantity> = (0..100).map(|i| quantity(&format!("theta[{i}]"))).collect();
        let short: Vec<Quantity> = (0..6).map(|i| quantity(&format!("mu[{i}]"))).collect();
        let page = table(&[&long[..], &short].concat(), &[quantity("<tau>")]);
        // Five and six rows and the observable; the rest is data.
        assert_eq!((page.matches("<th scope=\"row\">").count(), page.matches("[\"theta[").count()), (12, 95));
        assert!(page.contains("[\"theta[99]\",\"0.100\",\"1.000\",\"−1.000\",\"0.000\",\"1.000\",\"0.010\",\"!399\",\"5000\",\"–\",\"▁▄█\"]"), "{page}");
        assert!(
            page.contains("95 more of theta") && page.contains("&lt;tau&gt;") && !page.contains("more of mu")
        );
        assert!(
            page.contains("<td class=\"suspect\" data-v=\"3.99e2\">399</td>") && page.contains("<td>–</td>")
        );
    }
}
