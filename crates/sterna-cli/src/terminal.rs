//! The terminal: how wide it is, whether it has colours, and tables that fit it.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use console::{Style, Term};

/// Columns where nobody knows how many there are.
const USUAL: u16 = 80;

/// Columns below which words would come one letter a line.
const FEWEST: u16 = 20;

/// Columns of the terminal: what `COLUMNS` says, what the terminal says, or 80 where there is none.
#[expect(clippy::disallowed_methods, reason = "how wide a terminal is, is no part of a run")]
pub fn width() -> u16 {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse::<u16>().ok());
    let seen = || Term::stdout().size_checked().map(|(_, columns)| columns);
    said.filter(|columns| *columns > 0).or_else(seen).unwrap_or(USUAL).max(FEWEST)
}

/// An empty table with a rule under its header and no others, at most as wide as the terminal: texts are broken where they must be.
pub fn table(header: &[&str]) -> Table {
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic).set_width(width());
    table.set_header(header);
    table
}

/// The first of these tables that fits the terminal without breaking a word, or else the last, broken.
pub fn first_that_fits(tables: impl IntoIterator<Item = Table>) -> Table {
    let mut last = None;
    for mut table in tables {
        let whole = table.clone().set_content_arrangement(ContentArrangement::Disabled).trim_fmt();
        let fits = whole.lines().all(|line| line.chars().count() <= usize::from(width()));
        if fits {
            table.set_content_arrangement(ContentArrangement::Disabled);
            return table;
        }
        last = Some(table);
    }
    last.expect("a table to choose")
}

/// Numbers stand right.
pub fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A table, as lines without blanks at their ends.
pub fn show(table: &Table) -> String {
    table.trim_fmt()
}

/// A paragraph, broken at blanks.
pub fn paragraph(text: &str) -> String {
    let most = usize::from(width());
    let mut lines = Vec::new();
    for part in text.lines() {
        let mut line = String::new();
        for word in part.split(' ') {
            let length = |text: &str| text.chars().count();
            if !line.is_empty() && length(&line) + 1 + length(word) > most {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// A reader who has enough, as `head` has after a few lines, is no failure; a disk that is full is one, and told in a line.
pub fn mind_readers() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        let Some(reason) = text.strip_prefix("failed printing to stdout: ") else { return usual(panic) };
        if reason.starts_with("Broken pipe") {
            std::process::exit(0);
        }
        eprintln!("error: cannot write to stdout: {reason}");
        std::process::exit(1);
    }));
}

/// How good news is.
#[derive(Clone, Copy)]
pub enum Tone {
    Good,
    Doubtful,
    Bad,
}

/// A word in the colour of its news, where the terminal has colours and `NO_COLOR` is not set.
pub fn coloured(word: &str, tone: Tone) -> String {
    let style = match tone {
        Tone::Good => Style::new().green(),
        Tone::Doubtful => Style::new().yellow(),
        Tone::Bad => Style::new().red(),
    };
    style.bold().apply_to(word).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_broken_at_blanks_and_tables_fit() {
        let text = "word ".repeat(60);
        assert!(paragraph(text.trim()).lines().all(|line| line.chars().count() <= usize::from(width())));
        assert_eq!(paragraph("one\ntwo"), "one\ntwo");
        let of = |text: String| {
            let mut table = table(&["what", "meaning"]);
            table.add_row(["a".to_string(), text]);
            table
        };
        let fits =
            |table: &Table| show(table).lines().all(|line| line.chars().count() <= usize::from(width()));
        let (long, short) = (of(text), of("word".into()));
        assert!(fits(&long));
        let chosen = first_that_fits([long.clone(), short.clone()]);
        assert_eq!((show(&chosen), show(&first_that_fits([long.clone()]))), (show(&short), show(&long)));
    }
}
