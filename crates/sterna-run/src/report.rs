//! `report.html`: one page, no network: what a person should see of a run.
//!
//! It is made from the run folder alone, so `sterna report DIR` can make it again at any time.

pub mod chart;
pub(crate) mod format;
mod load;
pub(crate) mod sections;
mod verdict;

use crate::checkpoint::write_whole;
use crate::config::known;
use crate::error::JobError;
use crate::job::date;
pub(crate) use format::escape;
use format::{count, number, percent, with_error};
use load::Folder;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
    let sections = sections::all(&folder);
    let mut links = String::new();
    let mut body = String::new();
    for section in &sections {
        let _ = write!(links, "<a href=\"#{}\">{}</a>", section.id, escape(section.title));
        let _ = write!(
            body,
            "<section id=\"{}\"><h2>{}</h2><p class=\"introduction\">{}</p><div class=\"figures\">{}</div></section>",
            section.id,
            escape(section.title),
            escape(&section.introduction),
            section.figures.concat()
        );
    }
    links += "<a href=\"#repeat\">Repeat this run</a>";
    let target = format!(
        "{}, {} dimensions",
        text(&folder.summary["target"]["kind"]),
        folder.summary["target"]["dim"]
    );
    let parts = [
        ("title", escape(&format!("{target} — Sterna report"))),
        ("style", STYLE.into()),
        ("heading", escape(&target)),
        ("subtitle", subtitle(&folder)),
        ("verdict", verdict_html(&folder.summary)),
        ("numbers", key_numbers(&folder.summary)),
        ("alarms", alarms(&folder.summary)),
        ("links", links),
        ("sections", body),
        ("repeat", repeat(&folder, &name)),
        ("version", escape(&text(&folder.summary["sterna"]))),
        ("script", SCRIPT.into()),
    ];
    Ok(fill(PAGE, &parts))
}

/// One chart of a run folder's report as a file of its own, light or dark as the reader prefers: the first
/// drawing of the figure of that name.
pub fn drawing(folder: &Path, id: &str) -> Result<String, JobError> {
    let page = page(folder)?;
    let names: Vec<&str> =
        page.split("<figure id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    known("chart", id, &names)?;
    let figure = page.split(&format!("<figure id=\"{id}\"")).nth(1).expect("a figure of that name");
    let figure = figure.split("</figure>").next().unwrap_or_default();
    let inside = figure.split("role=\"img\"").nth(1).and_then(|rest| rest.split_once('>'));
    let content = inside.and_then(|(_, rest)| rest.split_once("</svg>")).expect("a figure has a drawing").0;
    let size = figure.split("viewBox=\"").find(|part| part.contains("role=\"img\""));
    let size = size.and_then(|part| part.split('"').next()).expect("a drawing has a size");
    let side = size.split(' ').collect::<Vec<_>>();
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{size}\" width=\"{}\" height=\"{}\"><style>{STYLE}</style>\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--card)\"/>{content}</svg>\n",
        side[2], side[3]
    ))
}

/// A chart as a file of its own, with its title and its legend inside.
pub(crate) fn standalone(chart: &chart::Chart) -> String {
    let (width, height, content) = chart.with_legend();
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

/// Numbers of a JSON array; what is none becomes NaN.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().map_or(&[][..], |all| &all[..]);
    all.iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

/// A number of a JSON object, or NaN.
pub(crate) fn number_at(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

fn subtitle(folder: &Folder) -> String {
    let summary = &folder.summary;
    let kind = folder.config.accelerator.kind.as_str();
    let swaps = match kind {
        "none" => "plain swaps".to_string(),
        kind => {
            let steps = summary["accelerator"]["steps"].as_u64().unwrap_or(1);
            format!("swaps accelerated by {kind}, K = {steps}")
        }
    };
    let ladders = summary["ensembles"].as_u64().unwrap_or(1);
    let mut parts = vec![
        swaps,
        format!("{} ladder{} of {} chains", ladders, if ladders == 1 { "" } else { "s" }, summary["chains"]),
        format!("{} iterations", count(summary["iterations"].as_u64().unwrap_or(0))),
        format!("seed {}", summary["seed"]),
    ];
    if let Some(began) = folder.began {
        let d = date(began as u64);
        parts.push(format!("{}-{}-{} {}:{} UTC", &d[..4], &d[4..6], &d[6..8], &d[9..11], &d[11..13]));
    }
    let mut out = escape(&parts.join(" · "));
    if summary["finished"] == false {
        out += " · <strong class=\"unfinished\">not finished</strong>";
    }
    out
}

fn verdict_html(summary: &Value) -> String {
    let mut out = String::new();
    for sentence in verdict::verdict(summary) {
        let _ = write!(
            out,
            "<li class=\"{}\"><span class=\"sign\" aria-hidden=\"true\">{}</span><div><strong>{}</strong><p>{}</p></div></li>",
            sentence.mood.class(),
            sentence.mood.sign(),
            escape(&sentence.headline),
            escape(&sentence.detail)
        );
    }
    out
}

fn key_numbers(summary: &Value) -> String {
    let z = &summary["log_z"];
    let ess = number_at(&summary["ess"], "minimum");
    let barrier = number_at(summary, "global_barrier");
    let tiles = [
        (
            "round trips",
            summary["round_trips"].as_u64().map_or_else(|| "unknown".into(), count),
            "there and back",
        ),
        ("efficiency", percent(number_at(summary, "exploration_efficiency")), "of what the swaps allow"),
        ("barrier Λ", number(barrier), "sum of rejections"),
        ("log Z", with_error(number_at(z, "bar"), number_at(z, "standard_error")), "by Bennett's ratio"),
        ("smallest ESS", number(ess.round()), "effective draws, at least"),
        (
            "speed",
            format!("{}/s", number(number_at(&summary["time"], "iterations_per_second").round())),
            "iterations",
        ),
    ];
    let mut out = String::new();
    for (name, value, note) in tiles {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd><span>{note}</span></div>", escape(&value));
    }
    out
}

fn alarms(summary: &Value) -> String {
    let all = summary["alarms"].as_array().map_or(&[][..], |all| &all[..]);
    if all.is_empty() {
        return "<p class=\"quiet\" id=\"alarms\">No alarms.</p>".into();
    }
    let mut out = String::from("<section id=\"alarms\" class=\"alarms\"><h2>Alarms</h2><dl>");
    for alarm in all {
        let (code, message) = (escape(&text(&alarm["code"])), escape(&text(&alarm["message"])));
        let _ = write!(out, "<dt><code>{code}</code></dt><dd>{message}</dd>");
    }
    out + "</dl></section>"
}

fn repeat(folder: &Folder, name: &str) -> String {
    format!(
        "<pre class=\"command\">sterna run {name}/config.toml --out {name}-again</pre>\
         <details open><summary>config.toml, as it was resolved</summary><pre>{config}</pre></details>",
        name = escape(name),
        config = escape(folder.config_text.trim_end())
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
