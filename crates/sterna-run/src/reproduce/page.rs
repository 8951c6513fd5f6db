//! The page: the same sections as Markdown, for the docs, and as one HTML file that loads nothing.

use super::Budget;
use crate::error::JobError;
use crate::files::write_whole;
use crate::report::chart::Chart;
use crate::report::{self, escape, standalone_svg};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What a section is made of.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Words in rows and columns, the first column being names.
    Table {
        /// Above the columns.
        header: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
    /// Charts side by side.
    Charts(Vec<Chart>),
}

impl Block {
    /// A table of anything that is text.
    pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self::Table { header: header.iter().map(|h| h.to_string()).collect(), rows }
    }
}

/// Something that must hold, whatever is spent; or a goal that may be missed.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was expected, with the numbers.
    pub what: String,
    /// Whether it came out.
    pub passed: bool,
    /// Whether missing it is a fault of the program.
    pub must: bool,
}

/// One experiment's part of the page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it was spent.
    pub budget: Budget,
    /// Heading.
    pub title: String,
    /// Content.
    pub blocks: Vec<Block>,
    /// What was expected of it.
    pub checks: Vec<Check>,
    /// What is plotted, as data.
    pub data: Value,
}

impl Section {
    fn id(&self) -> String {
        format!("{}-{}", self.name, self.budget.name())
    }

    fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().flat_map(|b| if let Block::Charts(charts) = b { &charts[..] } else { &[] })
    }

    /// The file of its charts in a page's folder, if it has any.
    fn file(&self) -> Option<String> {
        self.charts().next()?;
        Some(format!("reproduction/{}/{}.svg", self.budget.name(), self.name))
    }

    fn write_charts(&self, out: &Path) -> Result<(), JobError> {
        let Some(file) = self.file() else { return Ok(()) };
        let charts: Vec<&Chart> = self.charts().collect();
        write_whole(&out.join(file), sheet(&charts).as_bytes())
    }

    fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", self.heading());
        for block in &self.blocks {
            match block {
                Block::Text(text) => _ = write!(out, "{text}\n\n"),
                Block::Table { header, rows } => {
                    let _ = writeln!(out, "| {} |", header.join(" | "));
                    let _ = writeln!(out, "|{}", " --- |".replace(" --- ", "---").repeat(header.len()));
                    rows.iter().for_each(|row| _ = writeln!(out, "| {} |", row.join(" | ")));
                    out.push('\n');
                }
                Block::Charts(charts) if charts.is_empty() => {}
                Block::Charts(_) => {
                    let titles: Vec<String> = self.charts().map(|c| escape(c.title())).collect();
                    let file = self.file().expect("it has charts");
                    let _ = write!(out, "<img src=\"{file}\" alt=\"{}\">\n\n", titles.join("; "));
                }
            }
        }
        if !self.checks.is_empty() {
            self.checks.iter().for_each(|c| _ = writeln!(out, "- {} {}", c.sign(), c.what));
            out.push('\n');
        }
        let _ = write!(out, "`sterna reproduce {} --budget {}`\n\n", self.name, self.budget.name());
        out
    }

    fn heading(&self) -> String {
        match self.budget {
            Budget::Standard => self.title.clone(),
            other => format!("{} ({} budget)", self.title, other.name()),
        }
    }

    fn html(&self) -> String {
        let mut out = format!("<section id=\"{}\"><h2>{}</h2>", self.id(), escape(&self.heading()));
        for block in &self.blocks {
            match block {
                Block::Text(text) => _ = write!(out, "<p class=\"text\">{}</p>", inline(text)),
                Block::Table { header, rows } => out += &html_table(header, rows),
                Block::Charts(charts) => {
                    let figures: String = charts.iter().map(Chart::figure).collect();
                    let _ = write!(out, "<div class=\"figures\">{figures}</div>");
                }
            }
        }
        if !self.checks.is_empty() {
            out += "<ul class=\"checks\">";
            for check in &self.checks {
                let class = if check.passed { "good" } else { "bad" };
                let _ = write!(out, "<li class=\"{class}\">{} {}</li>", check.sign(), inline(&check.what));
            }
            out += "</ul>";
        }
        let _ = write!(
            out,
            "<p class=\"quiet\"><code>sterna reproduce {} --budget {}</code></p></section>",
            self.name,
            self.budget.name()
        );
        out
    }
}

impl Check {
    /// A tick or a cross.
    pub fn sign(&self) -> &'static str {
        if self.passed { "✓" } else { "✗" }
    }
}

fn html_table(header: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    header.iter().for_each(|h| _ = write!(out, "<th>{}</th>", inline(h)));
    out += "</tr></thead><tbody>";
    for row in rows {
        out += "<tr>";
        row.iter().for_each(|cell| _ = write!(out, "<td>{}</td>", inline(cell)));
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

/// Text with `code` and **strong** words.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split("**").enumerate() {
        let mut words = String::new();
        for (j, part) in part.split('`').enumerate() {
            let part = escape(part);
            words += &if j % 2 == 1 { format!("<code>{part}</code>") } else { part };
        }
        out += &if i % 2 == 1 { format!("<strong>{words}</strong>") } else { words };
    }
    out
}

/// Between charts.
const GAP: f64 = 16.0;
/// A chart of this width has a row of its own.
const WIDE: f64 = 500.0;

/// Charts of a section in one drawing, a file with one style: in rows of two, or one where it is wide, with their titles and legends.
fn sheet(charts: &[&Chart]) -> String {
    let drawings: Vec<(f64, f64, String)> = charts.iter().map(|c| c.with_legend()).collect();
    let widest = drawings.iter().map(|d| d.0).fold(0.0, f64::max);
    let narrow = |pair: &&[(f64, f64, String)]| pair.iter().all(|d| d.0 < WIDE);
    let two = drawings.windows(2).filter(narrow).map(|pair| pair[0].0 + GAP + pair[1].0);
    let width = two.fold(widest, f64::max);
    let (mut x, mut top, mut bottom, mut content) = (0.0, 0.0, 0.0f64, String::new());
    for (wide, high, drawing) in &drawings {
        if x > 0.0 && x + wide > width {
            (x, top) = (0.0, bottom + GAP);
        }
        let _ =
            write!(content, "<svg x=\"{x}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\">{drawing}</svg>");
        bottom = bottom.max(top + high);
        x += wide + GAP;
    }
    standalone_svg(width, bottom, &content)
}

const PAGE: &str = include_str!("page.html");

/// What is plotted, as data: a line for each section.
fn data(sections: &[&Section]) -> String {
    let line = |s: &&Section| format!("{:?}: {}", s.name, s.data);
    let lines: Vec<String> = sections.iter().map(line).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Writes `reproduction.md` with its charts, `reproduction.html`, which needs no other file, and for each budget what is
/// plotted.
pub fn write(out: &Path, introduction: &[String], sections: &[Section]) -> Result<(), JobError> {
    for budget in Budget::ALL {
        let ours: Vec<&Section> = sections.iter().filter(|s| s.budget == budget).collect();
        if ours.is_empty() {
            continue;
        }
        let folder = out.join("reproduction").join(budget.name());
        fs::create_dir_all(&folder).map_err(JobError::file("create", &folder))?;
        write_whole(&folder.join("data.json"), data(&ours).as_bytes())?;
        ours.iter().try_for_each(|s| s.write_charts(out))?;
    }
    let mut markdown = String::from("# The paper, reproduced\n\n");
    introduction.iter().for_each(|text| _ = write!(markdown, "{text}\n\n"));
    sections.iter().for_each(|s| markdown += &s.markdown());
    write_whole(&out.join("reproduction.md"), format!("{}\n", markdown.trim_end()).as_bytes())?;

    let paragraphs = |text: &String| format!("<p class=\"text\">{}</p>", inline(text));
    let link = |s: &Section| format!("<a href=\"#{}\">{}</a>", s.id(), escape(&s.heading()));
    let html = report::fill(
        PAGE,
        &[
            ("style", report::STYLE.into()),
            ("introduction", introduction.iter().map(paragraphs).collect()),
            ("links", sections.iter().map(link).collect()),
            ("sections", sections.iter().map(Section::html).collect()),
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("script", report::SCRIPT.into()),
        ],
    );
    write_whole(&out.join("reproduction.html"), html.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Axis;

    #[test]
    fn two_in_a_row() {
        let chart = |id: &str| {
            let axis = || Axis::linear("x", 0.0, 1.0);
            Chart::new(id, id, axis(), axis())
        };
        let all = [chart("a"), chart("b"), chart("c"), chart("d").wide()];
        let text = sheet(&all.iter().collect::<Vec<_>>());
        let places = text.split("<svg x=\"").skip(1).map(|part| part.split('"').nth(2).unwrap());
        let y: Vec<f64> = places.map(|y| y.parse().unwrap()).collect();
        assert!(y[0] == y[1] && y[1] < y[2] && y[2] < y[3], "{y:?}");
        assert_eq!(text.matches("<style>").count(), 1);
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }

    #[test]
    fn words_stay_words() {
        assert_eq!(
            inline("a < b, `x<y` **and** more"),
            "a &lt; b, <code>x&lt;y</code> <strong>and</strong> more"
        );
    }
}
