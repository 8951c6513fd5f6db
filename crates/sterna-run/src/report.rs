//! `report.html`: one page, no network: what a person should see of a run.
//!
//! It is made from the files of the run folder alone, so `sterna report DIR` can make it again at any time, whatever
//! became of the target.

pub mod chart;
pub(crate) mod draws;
mod figure;
pub mod format;
mod load;
mod remedies;
pub(crate) mod sections;
mod verdict;
mod view;

use crate::alarms::{Class, Code, Explained};
use crate::config::known;
use crate::error::JobError;
use crate::files::write_whole;
use crate::job::date;
use crate::summary::Summary;
pub(crate) use format::escape;
use format::{count, number, percent, with_error};
use load::Folder;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use verdict::{Mood, mood_of};
pub use view::view;

const PAGE: &str = include_str!("report/page.html");
pub(crate) const STYLE: &str = include_str!("report/style.css");
pub(crate) const SCRIPT: &str = include_str!("report/script.js");

/// Writes `report.html` into a run folder, and says where it is.
pub fn write(folder: &Path) -> Result<PathBuf, JobError> {
    let path = folder.join("report.html");
    write_whole(&path, page(folder)?.as_bytes())?;
    Ok(path)
}

/// The page of a run folder.
pub fn page(folder: &Path) -> Result<String, JobError> {
    let name = folder.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned());
    let folder = Folder::read(folder)?;
    let (mut links, mut body) = (String::new(), String::new());
    for section in sections::all(&folder) {
        let _ = write!(links, "<a href=\"#{}\">{}</a>", section.id, escape(section.title));
        body += &section.html();
    }
    links += "<a href=\"#repeat\">Repeat this run</a>";
    let target = &folder.summary.setup.target;
    let whose = if name == target.kind { String::new() } else { format!("{name}: ") };
    let target = format!("{whose}{}, {} dimensions", target.kind, target.dim);
    let parts = [
        ("title", escape(&format!("{target} — Sterna report"))),
        ("style", STYLE.into()),
        ("heading", escape(&target)),
        ("subtitle", subtitle(&folder)),
        ("verdict", verdict_html(&folder.summary)),
        ("numbers", key_numbers(&folder.summary)),
        ("alarms", alarms(&folder.summary) + &unread(&folder)),
        ("links", links),
        ("sections", body),
        ("repeat", repeat(&folder, &name)),
        ("version", escape(&folder.summary.sterna)),
        ("script", SCRIPT.into()),
    ];
    Ok(fill(PAGE, &parts))
}

/// One chart of a run folder's report as a file of its own, light or dark as the reader prefers; of several to choose
/// from, the one that the page shows first.
pub fn drawing(folder: &Path, id: &str) -> Result<String, JobError> {
    let (path, folder) = (folder, Folder::read(folder)?);
    let figures: Vec<_> = sections::all(&folder).into_iter().flat_map(|section| section.figures).collect();
    let names: Vec<&str> = figures.iter().map(|figure| figure.id()).collect();
    if folder.traces.is_none() && sections::FROM_TRACES.contains(&id) && !names.contains(&id) {
        let why = if path.join("traces.json").exists() { "cannot be read" } else { "this folder lacks" };
        return Err(JobError::Config(format!("the chart \"{id}\" needs traces.json, which {why}")));
    }
    known("chart", id, &names)?;
    let figure = figures.iter().find(|figure| figure.id() == id).expect("a known chart");
    Ok(figure.svg())
}

/// A drawing with all that it needs to be a file.
pub(crate) fn standalone_svg(width: f64, height: f64, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <style>{STYLE}</style><rect width=\"100%\" height=\"100%\" fill=\"var(--card)\"/>{content}</svg>\n"
    )
}

/// Puts each part in the place of its `{{name}}`; what is put in is not looked at again.
pub(crate) fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the page closes what it opens");
        out += before;
        out += &parts.iter().find(|(n, _)| *n == name).expect("a part of that name").1;
        rest = after;
    }
    out + rest
}

fn subtitle(folder: &Folder) -> String {
    let setup = &folder.summary.setup;
    let swaps = match setup.accelerator.kind.as_str() {
        _ if setup.accelerator.steps == 0 => "plain swaps".to_string(),
        "auto" => "swaps accelerated by transports that were chosen".to_string(),
        kind => format!("swaps accelerated by {kind}, K = {}", setup.accelerator.steps),
    };
    let ladders = setup.ensembles;
    let temperatures = folder.summary.molecule.as_ref().map(|molecule| &molecule.temperatures[..]);
    let heat = temperatures.and_then(|all| Some((all.first()?, all.last()?)));
    let heat = heat.map(|(hot, cold)| format!("at {} K, from {} K down", number(*cold), number(*hot)));
    let mut parts: Vec<String> = heat.into_iter().collect();
    parts.extend([
        swaps,
        format!("{} ladder{} of {} chains", ladders, if ladders == 1 { "" } else { "s" }, setup.chains),
        format!("{} iterations", count(setup.iterations)),
        format!("seed {}", setup.seed),
    ]);
    if let Some(began) = folder.began {
        let d = date(began as u64);
        parts.push(format!("{}-{}-{} {}:{} UTC", &d[..4], &d[4..6], &d[6..8], &d[9..11], &d[11..13]));
    }
    let mut out = escape(&parts.join(" · "));
    if !folder.summary.finished {
        out += " · <strong class=\"unfinished\">not finished</strong>";
    }
    out
}

fn verdict_html(summary: &Summary) -> String {
    let mut out = String::new();
    for sentence in std::iter::once(verdict::judgement(summary)).chain(verdict::verdict(summary)) {
        let more: String = sentence.more.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
        let more = if more.is_empty() { more } else { format!("<ol start=\"2\">{more}</ol>") };
        let _ = write!(
            out,
            "<li class=\"{}\"><span class=\"sign\" aria-hidden=\"true\">{}</span><div>{}<strong>{}</strong><p>{}</p>{more}</div></li>",
            sentence.mood.class(),
            sentence.mood.sign(),
            if sentence.mood == Mood::Hint {
                "<span class=\"quiet\">What would help most</span><br>"
            } else {
                ""
            },
            escape(&sentence.headline),
            escape(&sentence.detail)
        );
    }
    out
}

fn key_numbers(summary: &Summary) -> String {
    let (swaps, z) = (&summary.swaps, &summary.log_z);
    let (draws, of_what) = summary.fewest_draws();
    let log_z = z.name();
    let of_barrier = match remedies::beyond_saturation(summary) {
        Some(barrier) => format!("sum of rejections; λ(β) says {}", number((10.0 * barrier).round() / 10.0)),
        None => "sum of rejections".into(),
    };
    let tiles = [
        ("round trips", count(swaps.round_trips), "there and back"),
        ("efficiency", percent(swaps.share_of_allowed()), "of what the swaps allow"),
        ("barrier Λ", number(swaps.global_barrier), of_barrier.as_str()),
        (log_z.as_str(), with_error(z.bar, z.standard_error), "by Bennett's ratio"),
        ("smallest ESS", number(draws.round()), of_what.as_str()),
        ("speed", format!("{}/s", number(summary.cost.time.iterations_per_second.round())), "iterations"),
    ];
    let mut out = String::new();
    for (name, value, note) in tiles {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd><span>{note}</span></div>", escape(&value));
    }
    out
}

fn alarms(summary: &Summary) -> String {
    if summary.alarms.is_empty() {
        let note = summary.reference.as_ref().and_then(|reference| reference.note.as_ref());
        let note = note.map_or(String::new(), |note| format!(" But {}.", escape(note)));
        return format!("<p class=\"quiet\" id=\"alarms\">No alarms.{note}</p>");
    }
    let only_notes = summary.alarms.iter().all(|alarm| alarm.code.class() == Class::Note);
    let gravest = summary.alarms.iter().map(|alarm| alarm.code.class()).min().unwrap_or(Class::Note);
    let (mood, heading) = (mood_of(gravest).class(), if only_notes { "Notes" } else { "Alarms" });
    let mut out = format!("<section id=\"alarms\" class=\"alarms {mood}\"><h2>{heading}</h2><dl>");
    for alarm in &summary.alarms {
        let (code, message) = (escape(alarm.code.name()), escape(&alarm.message));
        let class = alarm.code.class();
        let _ = write!(
            out,
            "<dt class=\"{}\"><code>{code}</code> <span>{}</span></dt><dd>{message}{}</dd>",
            mood_of(class).class(),
            class.word(),
            what_to_do(&alarm.code)
        );
    }
    out + "</dl></section>"
}

/// What `docs/alarms.md` says would help, folded up.
fn what_to_do(code: &Code) -> String {
    let of = |explained: Explained| {
        let (help, about) = (marked_up(explained.what_to_do), marked_up(explained.about));
        format!("<details><summary>What to do</summary><p>{help}</p><p>{about}</p></details>")
    };
    code.explained().map_or(String::new(), of)
}

/// What little Markdown those texts have: code, and links, which lead nowhere on a page that opens offline.
fn marked_up(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in escape(text).split('`').enumerate() {
        let _ = if i.is_multiple_of(2) { write!(out, "{part}") } else { write!(out, "<code>{part}</code>") };
    }
    while let Some((before, rest)) = out.split_once("](") {
        let Some((opening, (_, after))) = before.rfind('[').zip(rest.split_once(')')) else { break };
        out = format!("{}{}{after}", &before[..opening], &before[opening + 1..]);
    }
    out.replace("\n\n", "</p><p>")
}

/// What the page cannot show, and why.
fn unread(folder: &Folder) -> String {
    if folder.unread.is_empty() {
        return String::new();
    }
    let list: String = folder.unread.iter().map(|why| format!("<li>{}</li>", escape(why))).collect();
    format!(
        "<section id=\"unread\" class=\"quiet\"><p>Could not be read, and is not shown:</p><ul>{list}</ul></section>"
    )
}

fn repeat(folder: &Folder, name: &str) -> String {
    let Some(config) = &folder.config else { return "<p>Its config.toml is missing.</p>".into() };
    format!(
        "<pre class=\"command\">sterna run {name}/config.toml --out {name}-again</pre>\
         <details open><summary>config.toml, as it was resolved</summary><pre>{config}</pre></details>",
        name = escape(name),
        config = escape(config.trim_end())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_read_again() {
        let parts = [("a", "{{b}}".to_string()), ("b", "x".to_string())];
        assert_eq!(fill("<{{a}}|{{b}}>", &parts), "<{{b}}|x>");
    }

    /// Every alarm unfolds the text of the document, with nothing of its Markdown left.
    #[test]
    fn alarms_unfold_what_to_do() {
        for code in Code::ALL {
            let text = what_to_do(code);
            assert!(text.contains("<summary>What to do</summary>"), "{code}");
            assert!(!text.contains('`') && !text.contains("](") && !text.contains("http"), "{code}: {text}");
            assert_eq!(text.matches("<code>").count(), text.matches("</code>").count(), "{code}");
        }
        assert_eq!(marked_up("see [there](http://a.b/c) and `x < 1`"), "see there and <code>x &lt; 1</code>");
    }

    /// Nothing on the page may ask for anything outside it.
    #[test]
    fn the_page_names_no_address() {
        for text in [PAGE, STYLE, SCRIPT] {
            for word in ["http:", "https:", "//cdn", "@import", "fetch(", "XMLHttp", "src="] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
