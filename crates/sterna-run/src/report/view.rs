//! A run at a glance, as a part of somebody else's page: verdict, a table and three charts, for notebooks.

use super::format::{count, escape, number, with_error};
use super::load::Folder;
use super::sections;
use super::verdict::{self, Mood, mood_of, three};
use crate::error::JobError;
use crate::summary::{Quantity, Summary};
use std::fmt::Write;
use std::path::Path;

/// Rows of the table.
const MOST_ROWS: usize = 20;

/// Sections whose first chart is shown, and how wide each is: two beside each other, a long one below.
const SHOWN: [(&str, &str); 3] = [
    ("draws", "width:48%;min-width:18em"),
    ("free-energy", "width:48%;min-width:18em"),
    ("communication", "width:100%"),
];

/// HTML that brings its own styles along and touches nobody else's: charts are pictures.
pub fn view(folder: &Path) -> Result<String, JobError> {
    let folder = Folder::read(folder)?;
    let summary = &folder.summary;
    let mut out = String::from("<div style=\"max-width:60em\">");
    for sentence in std::iter::once(verdict::judgement(summary)).chain(verdict::verdict(summary)) {
        let (colour, sign) = (colour(sentence.mood), sentence.mood.sign());
        let what = if sentence.mood == Mood::Hint { "What would help most: " } else { "" };
        let (headline, detail) = (escape(&sentence.headline), escape(&sentence.detail));
        let more: String = sentence.more.iter().map(|text| format!("<br>then: {}", escape(text))).collect();
        let _ = write!(
            out,
            "<p style=\"margin:.3em 0\"><b style=\"color:{colour}\">{sign} {what}{headline}</b><br><small>{detail}{more}</small></p>"
        );
    }
    for alarm in &summary.alarms {
        let (code, message) = (escape(alarm.code.name()), escape(&alarm.message));
        let colour = colour(mood_of(alarm.code.class()));
        let _ = write!(
            out,
            "<p style=\"margin:.3em 0\"><code style=\"color:{colour}\">{code}</code> {message}</p>"
        );
    }
    out += &table(summary);
    out += "<div style=\"display:flex;flex-wrap:wrap;align-items:flex-start;gap:.5em\">";
    let sections = sections::all(&folder);
    for (id, style) in SHOWN {
        let section = sections.iter().find(|section| section.id == id);
        if let Some((section, figure)) = section.and_then(|section| Some((section, section.figures.first()?)))
        {
            let (alt, svg) = (escape(section.title), in_address(&figure.titled_svg()));
            let _ = write!(out, "<img style=\"{style}\" alt=\"{alt}\" src=\"data:image/svg+xml,{svg}\">");
        }
    }
    Ok(out + "</div></div>")
}

/// Numbers of a column stand below each other.
const CELL: &str = "text-align:right;padding:.1em .6em";

/// Legible on light and on dark ground.
fn colour(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "#2a8f4f",
        Mood::Doubtful => "#b8860b",
        Mood::Bad => "#cc4433",
        Mood::Hint => "#3577c0",
    }
}

/// log Z, round trips, and what the draws say of what has a name.
fn table(summary: &Summary) -> String {
    let z = &summary.log_z;
    let name = escape(&z.name());
    let mut out = format!(
        "<p>{name} = <b>{}</b> · {} round trips · {} iterations of {} chains in {} ladders</p>",
        with_error(z.bar, z.standard_error),
        count(summary.swaps.round_trips),
        count(summary.setup.iterations),
        summary.setup.chains,
        summary.setup.ensembles
    );
    let rows: Vec<&Quantity> = summary.parameters.iter().chain(&summary.observables).collect();
    if rows.is_empty() {
        return out;
    }
    out += "<table><thead><tr>";
    for head in ["", "mean", "sd", "5%", "50%", "95%", "MCSE", "ESS bulk", "ESS tail", "R̂"] {
        let _ = write!(out, "<th style=\"{CELL}\">{head}</th>");
    }
    out += "</tr></thead><tbody>";
    for row in rows.iter().take(MOST_ROWS) {
        let ranks = &row.ranks;
        let _ = write!(out, "<tr><th>{}</th>", escape(&row.name));
        let numbers = [row.mean, row.sd, ranks.q05, ranks.q50, ranks.q95, row.mcse];
        let sizes = [ranks.ess_bulk.round(), ranks.ess_tail.round()].map(number);
        let cells =
            numbers.map(|value| row.shown(value)).into_iter().chain(sizes).chain([three(ranks.r_hat)]);
        cells.for_each(|cell| _ = write!(out, "<td style=\"{CELL}\">{cell}</td>"));
        out += "</tr>";
    }
    out += "</tbody></table>";
    if rows.len() > MOST_ROWS {
        let _ = write!(out, "<p><small>and {} more</small></p>", rows.len() - MOST_ROWS);
    }
    out
}

/// What an address may hold: all but letters and digits as %XX.
fn in_address(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for &byte in text.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => out.push(byte.into()),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, job};

    #[test]
    fn a_run_at_a_glance() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse("[run]\niterations = 400\n[chains]\ncount = 4", &[]).unwrap();
        job::run(&config, folder.path(), &mut ()).unwrap();
        let html = view(folder.path()).unwrap();
        assert_eq!(html.matches("<img").count(), 3);
        assert!(html.contains("log Z") && !html.contains("<style"), "{html}");
        assert!(html.contains("What would help most") && html.contains(">MCSE<"), "{html}");
        assert_eq!(in_address("<é>"), "%3C%C3%A9%3E");
    }
}
