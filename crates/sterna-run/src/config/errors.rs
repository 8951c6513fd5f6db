//! What is wrong with a config's text, said so that it can be mended: place, field, value and the nearest name.

use super::Config;
use crate::error::{JobError, nearest};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// Faults of one text that are told at once.
const MOST: usize = 5;

/// What serde says of a value at most, if it is to be read.
const LONG: usize = 120;

/// How serde names what it expected, and what people call it.
const PLAIN: [(&str, &str); 7] = [
    ("expected u64", "expected a whole number from 0 up"),
    ("expected usize", "expected a whole number from 0 up"),
    ("expected u32", "expected a whole number from 0 up"),
    ("expected f64", "expected a number"),
    ("data did not match any variant of untagged enum Numbers", "expected a number or a list of numbers"),
    ("expected a map", "expected a table"),
    (
        "invalid type: map, expected a sequence",
        "expected a list: write its name with two brackets, as in [[parameters]]",
    ),
];

/// The config, or all that is wrong with its text.
pub(super) fn parse(text: &str) -> Result<Config, JobError> {
    let mut rest = DeTable::parse(text).map_err(|error| JobError::Text(explain(&error, None, None)))?;
    let mut faults: Vec<(usize, String)> = Vec::new();
    loop {
        let mut error = match read(&rest) {
            Ok(config) if faults.is_empty() => return Ok(config),
            Ok(_) => break,
            Err(error) => error,
        };
        error.set_input(Some(text));
        let place = error.span().unwrap_or(0..0);
        let path = path_to(rest.get_ref(), &place);
        let wanted = path.as_ref().filter(|_| wants_word(error.message()));
        let word = wanted.and_then(|path| known_words(&rest, path, text[place.clone()].trim()));
        let name = path.as_ref().map(|path| path.join("."));
        faults.push((place.start, explain(&error, name.as_deref(), word.as_deref())));
        // Without what is wrong the rest can be read, and its faults told as well.
        match path.as_ref().filter(|_| faults.len() < MOST).and_then(|path| at(&mut rest, path)) {
            Some((table, key)) => table.remove(key.as_str()),
            None => break,
        };
    }
    faults.sort();
    Err(JobError::Text(faults.into_iter().map(|fault| fault.1).collect::<Vec<_>>().join("\n\n")))
}

fn read(table: &Spanned<DeTable>) -> Result<Config, Error> {
    Config::deserialize(Deserializer::from(table.clone()))
}

/// The message of an error, with the field it is about and the nearest of the names that serde expected.
///
/// `as_word` is what serde says of the same value in quotes.
pub(super) fn explain(error: &Error, path: Option<&str>, as_word: Option<&str>) -> String {
    let whole = error.to_string();
    let (mut whole, found) = (whole.trim_end().to_string(), error.message());
    // What comes from no text says where it is on a line of its own.
    let keys = whole.rsplit_once("\nin `").and_then(|(_, keys)| keys.strip_suffix('`')).map(str::to_string);
    let place = whole.find(found).unwrap_or(0);
    let message = as_word.filter(|message| message.starts_with("unknown variant")).unwrap_or(found);
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        if let Some(name) = quoted.next().and_then(|found| nearest(found, quoted)) {
            whole.push_str(&format!("\ndid you mean `{name}`?"));
        }
    } else if message.starts_with("unknown variant") {
        let value = quoted.next().unwrap_or_default().to_string();
        let known: Vec<String> = quoted.map(str::to_string).collect();
        let key = path.map(str::to_string).or(keys).unwrap_or_else(|| "a value".into());
        let (in_quotes, bare) = (format!("= \"{value}\""), format!("= {value}"));
        let mut said = JobError::Unknown { key, value, known }.to_string();
        if as_word.is_some() {
            said = said.replacen(&in_quotes, &bare, 1);
        }
        whole.replace_range(place.., &said);
    } else {
        whole.replace_range(place..place + found.len(), &plain(found));
    }
    whole
}

/// An explanation of an override, which names the key and the value itself: only what is beyond them.
pub(super) fn in_one_line(message: &str, key: &str) -> String {
    let message = message.trim_end();
    let (message, place) =
        match message.rsplit_once("\nin `").and_then(|(m, keys)| Some((m, keys.strip_suffix('`')?))) {
            Some((message, keys)) if key.starts_with(keys) => (message, None),
            Some((message, keys)) => (message, Some(keys)),
            None => (message, None),
        };
    // A number of three hundred digits says nothing.
    let is_of_type = message.starts_with("invalid type: ") || message.starts_with("invalid value: ");
    let message = match message.rfind("expected ").filter(|_| is_of_type && message.len() > LONG) {
        Some(at) => &message[at..],
        None => message,
    };
    let message = message.lines().collect::<Vec<_>>().join("; ");
    place.map_or(message.clone(), |keys| format!("{message}, in `{keys}`"))
}

/// What serde says, in words for people.
fn plain(message: &str) -> String {
    if let Some((before, _)) = message.split_once("expected struct ") {
        return format!("{before}expected a table");
    }
    let known = PLAIN.iter().find_map(|(end, words)| Some((message.strip_suffix(end)?, words)));
    known.map_or(message.to_string(), |(before, words)| format!("{before}{words}"))
}

/// What serde says of a value that is no string where one of some words belongs: it names them once the value is quoted.
fn known_words(table: &Spanned<DeTable>, path: &[String], value: &str) -> Option<String> {
    let mut table = table.clone();
    let (section, key) = at(&mut table, path)?;
    *section.get_mut(key.as_str())?.get_mut() = DeValue::String(value.to_string().into());
    Some(read(&table).err()?.message().to_string())
}

/// Whether serde found something else where a word belongs.
pub(super) fn wants_word(message: &str) -> bool {
    ["wanted string or table", "expected string only", "expected a string"]
        .iter()
        .any(|end| message.ends_with(end))
}

/// The keys of the innermost entry around a place.
fn path_to(table: &DeTable, place: &Range<usize>) -> Option<Vec<String>> {
    let around = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    table.iter().find_map(|(key, value): (&Spanned<_>, &Spanned<DeValue>)| {
        let name = key.get_ref().to_string();
        // A table's own span need not hold what stands under its header.
        if let DeValue::Table(inner) = value.get_ref()
            && let Some(below) = path_to(inner, place)
        {
            return Some([vec![name], below].concat());
        }
        let leaf = !place.is_empty() && (around(key.span()) || around(value.span()));
        leaf.then(|| vec![name])
    })
}

/// The table that holds an entry, and the entry's key.
fn at<'a, 'i, 'p>(
    table: &'a mut Spanned<DeTable<'i>>,
    path: &'p [String],
) -> Option<(&'a mut DeTable<'i>, &'p String)> {
    let (key, sections) = path.split_last()?;
    let mut table = table.get_mut();
    for section in sections {
        table = match table.get_mut(section.as_str())?.get_mut() {
            DeValue::Table(inner) => inner,
            _ => return None,
        };
    }
    Some((table, key))
}
