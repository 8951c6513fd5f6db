//! The page: the same sections as Markdown, for the docs, and as one HTML file that loads nothing.

use super::Budget;
use crate::error::JobError;
use crate::files::write_whole;
use crate::report::chart::Chart;
use crate::report::{self, escape};
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

    fn file(&self, index: usize) -> String {
        if self.charts().count() == 1 {
            return format!("{}.svg", self.name);
        }
        format!("{}-{}.svg", self.name, index + 1)
    }

    /// Writes each chart and the data into the budget's folder.
    pub fn write_files(&self, folder: &Path) -> Result<(), JobError> {
        fs::create_dir_all(folder).map_err(JobError::file("create", folder))?;
        for (index, chart) in self.charts().enumerate() {
            write_whole(&folder.join(self.file(index)), report::standalone(chart).as_bytes())?;
        }
        if self.data.is_null() {
            return Ok(());
        }
        let text = serde_json::to_string(&self.data).expect("plain data") + "\n";
        write_whole(&folder.join(format!("{}.json", self.name)), text.as_bytes())
    }

    fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", self.heading());
        let mut shown = 0;
        for block in &self.blocks {
            match block {
                Block::Text(text) => _ = write!(out, "{text}\n\n"),
                Block::Table { header, rows } => {
                    let _ = writeln!(out, "| {} |", header.join(" | "));
                    let _ = writeln!(out, "|{}", " --- |".replace(" --- ", "---").repeat(header.len()));
                    rows.iter().for_each(|row| _ = writeln!(out, "| {} |", row.join(" | ")));
                    out.push('\n');
                }
                Block::Charts(charts) => {
                    let width = if charts.len() == 1 { "" } else { " width=\"49%\"" };
                    for chart in charts {
                        let (file, title) = (self.file(shown), escape(chart.title()));
                        let folder = self.budget.name();
                        let _ = writeln!(
                            out,
                            "<img src=\"reproduction/{folder}/{file}\" alt=\"{title}\"{width}>"
                        );
                        shown += 1;
                    }
                    out.push('\n');
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

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// Writes `reproduction.md` and `reproduction.html`.
pub fn write(out: &Path, introduction: &[String], sections: &[Section]) -> Result<(), JobError> {
    let mut markdown = String::from("# The paper, reproduced\n\n");
    introduction.iter().for_each(|text| _ = write!(markdown, "{text}\n\n"));
    sections.iter().for_each(|s| markdown += &s.markdown());
    write_whole(&out.join("reproduction.md"), format!("{}\n", markdown.trim_end()).as_bytes())?;

    let paragraphs = |text: &String| format!("<p class=\"text\">{}</p>", inline(text));
    let link = |s: &Section| format!("<a href=\"#{}\">{}</a>", s.id(), escape(&s.heading()));
    let html = report::fill(
        PAGE,
        &[
            ("style", format!("{}{STYLE}", report::STYLE)),
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

    #[test]
    fn words_stay_words() {
        assert_eq!(
            inline("a < b, `x<y` **and** more"),
            "a &lt; b, <code>x&lt;y</code> <strong>and</strong> more"
        );
    }
}
