//! The sections of the report, in the order of the page. One that does not apply is left out.

mod communication;
mod cost;
mod draws;
mod free_energy;
mod ladder;
pub(crate) mod molecule;
mod training;
mod tuning;

use super::load::Folder;

/// A part of the page with its own heading.
pub struct Section {
    /// Where links lead.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// A sentence or two.
    pub introduction: String,
    /// Figures, one after the other.
    pub figures: Vec<String>,
}

/// All sections that apply.
pub fn all(folder: &Folder) -> Vec<Section> {
    let sections = [
        communication::section(folder),
        free_energy::section(folder),
        molecule::section(folder),
        draws::section(folder),
        ladder::section(folder),
        training::section(folder),
        tuning::section(folder),
        cost::section(folder),
    ];
    sections.into_iter().flatten().filter(|section| !section.figures.is_empty()).collect()
}

/// One of eight colours from reference to target.
fn shade(i: usize, count: usize) -> String {
    format!("q{}", (i * 7 + (count.max(2) - 1) / 2) / (count.max(2) - 1))
}

/// A choice between drawings, of which one is seen: buttons or a list, and the drawings.
fn choice(label: &str, options: &[(String, String)], chosen: usize) -> String {
    let mut names = String::new();
    let mut panels = String::new();
    for (i, (name, drawing)) in options.iter().enumerate() {
        let selected = if i == chosen { " selected" } else { "" };
        let hidden = if i == chosen { "" } else { " hidden" };
        names += &format!("<option value=\"{i}\"{selected}>{}</option>", super::format::escape(name));
        panels += &format!("<div class=\"panel\" data-panel=\"{i}\"{hidden}>{drawing}</div>");
    }
    format!(
        "<div class=\"choice\"><label>{} <select>{names}</select></label>{panels}</div>",
        super::format::escape(label)
    )
}
