//! What `auto` weighed: a table of ways to carry swaps, and their rejections pair by pair.

use super::{Section, pair_ticks};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::figure::Figure;
use crate::report::format::{escape, percent};
use crate::report::load::Folder;
use crate::summary::ChoiceSummary;

pub fn section(folder: &Folder) -> Option<Section> {
    let choice = folder.summary.choice.as_ref()?;
    Some(Section {
        id: "choice",
        title: "Choice of transport",
        introduction: format!(
            "{} It was frozen before sampling; whatever carries swaps, every path is weighed, so the run stays exact.",
            choice.sentence()
        ),
        table: table(choice),
        figures: held_out(choice).into_iter().map(Figure::from).collect(),
    })
}

fn table(choice: &ChoiceSummary) -> String {
    let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", escape(text));
    let row = |tag: &str, cells: &[String]| {
        format!("<tr>{}</tr>", cells.iter().map(|text| cell(tag, text)).collect::<String>())
    };
    let head = row("th", &ChoiceSummary::COLUMNS.map(String::from));
    let rows: String = choice.rows().iter().map(|cells| row("td", cells)).collect();
    let refused = choice.weighed.iter().filter_map(|way| Some((&way.name, way.refused.as_ref()?)));
    let refused: String =
        refused.map(|(name, why)| format!("<p>{}: {}</p>", escape(name), escape(why))).collect();
    match choice.weighed.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"scroll\"><table class=\"quantities\"><thead>{head}</thead><tbody>{rows}</tbody></table></div>{refused}"
        ),
    }
}

fn held_out(choice: &ChoiceSummary) -> Option<Chart> {
    let pairs = choice.weighed.first()?.rejection_rates.len();
    let ways: Vec<_> = choice.weighed.iter().filter(|way| way.rejection_rates.len() == pairs).collect();
    if ways.len() < 2 || pairs == 0 {
        return None;
    }
    let stayed = choice.moved_from.is_empty();
    let x = Axis::linear("pair of chains, from reference to target", -0.6, pairs as f64 - 0.4)
        .ticks(pair_ticks(pairs, 7))
        .no_grid();
    let y = Axis::linear("share of swaps rejected", 0.0, 1.0);
    let mut chart = Chart::new("choice-rejections", "Swaps that were weighed", x, y)
        .caption(match stayed {
            true => "On samples that no transport was fitted to; large dots carry the pair.",
            false => "On samples that no transport was fitted to, where chains were before they moved.",
        })
        .description(format!("Rejections of {} ways to carry swaps on {pairs} pairs.", ways.len()));
    let colours = ["c5", "c1", "c2", "c3", "c4"];
    for (way, colour) in ways.iter().zip(colours) {
        for (n, &rate) in way.rejection_rates.iter().enumerate() {
            let carries = stayed && choice.pairs.get(n) == Some(&way.name);
            chart.dot(colour, n as f64, rate, if carries { 5.0 } else { 2.5 });
            chart.tip(n as f64, rate, format!("chains {n} and {}: {} {}", n + 1, percent(rate), way.name));
        }
        chart.key(Key::Dot, colour, &way.name);
    }
    Some(chart)
}
