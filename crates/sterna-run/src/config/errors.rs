//! What is wrong with a config's text, said so that it can be mended: place, field, value and the nearest name.

use super::Config;
use crate::error::{JobError, nearest};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Faults of one text that are told at once.
const MOST: usize = 5;

/// The config, or all that is wrong with its text.
pub(super) fn parse(text: &str) -> Result<Config, JobError> {
    let mut faults: Vec<(usize, String)> = Vec::new();
    let mut rest = text.to_string();
    loop {
        let mut error = match toml::from_str(&rest) {
            Ok(config) if faults.is_empty() => return Ok(config),
            Ok(_) => break,
            Err::<Config, _>(error) => error,
        };
        error.set_input(Some(text));
        let place = error.span().unwrap_or(0..0);
        let entry = entry_at(text, &place);
        faults.push((place.start, explain(&error, entry.as_ref().map(|entry| entry.0.as_str()))));
        // Without what is wrong the rest can be read, and its faults told as well.
        match entry.filter(|(_, place)| faults.len() < MOST && !rest[place.clone()].trim().is_empty()) {
            Some((_, place)) => rest.replace_range(place.clone(), &" ".repeat(place.len())),
            None => break,
        }
    }
    faults.sort();
    Err(JobError::Text(faults.into_iter().map(|fault| fault.1).collect::<Vec<_>>().join("\n\n")))
}

/// The message of an error, with the field it is about and the nearest of the names that serde expected.
pub(super) fn explain(error: &toml::de::Error, path: Option<&str>) -> String {
    let whole = error.to_string();
    let (mut whole, message) = (whole.trim_end().to_string(), error.message());
    // What comes from no text says where it is on a line of its own.
    let keys = whole.rsplit_once("\nin `").and_then(|(_, keys)| keys.strip_suffix('`')).map(str::to_string);
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        if let Some(name) = quoted.next().and_then(|found| nearest(found, quoted)) {
            whole.push_str(&format!("\ndid you mean `{name}`?"));
        }
    } else if message.starts_with("unknown variant") {
        let value = quoted.next().unwrap_or_default().to_string();
        let known: Vec<String> = quoted.map(str::to_string).collect();
        let key = path.map(str::to_string).or(keys).unwrap_or_else(|| "a value".into());
        let place = whole.find(message).unwrap_or(0);
        whole.replace_range(place.., &JobError::Unknown { key, value, known }.to_string());
    }
    whole
}

/// The innermost `key = value` around a place: its dotted name, and where it stands.
fn entry_at(text: &str, place: &Range<usize>) -> Option<(String, Range<usize>)> {
    let table = DeTable::parse(text).ok()?;
    let mut table = table.get_ref();
    let mut path = String::new();
    let mut found = None;
    'inner: loop {
        for (key, value) in table.iter() {
            let span = key.span().start..value.span().end.max(key.span().end);
            // A table's own span need not hold what stands under its header.
            let around = span.start <= place.start && place.end <= span.end;
            if let DeValue::Table(inner) = value.get_ref()
                && (around || holds(inner, place))
            {
                path = format!("{path}{}.", key.get_ref());
                table = inner;
                continue 'inner;
            }
            if around {
                found = Some((format!("{path}{}", key.get_ref()), span));
            }
        }
        return found;
    }
}

fn holds(table: &DeTable, place: &Range<usize>) -> bool {
    let within = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    table.iter().any(|(key, value): (&Spanned<_>, &Spanned<DeValue>)| {
        within(key.span().start..value.span().end.max(key.span().end))
            || matches!(value.get_ref(), DeValue::Table(inner) if holds(inner, place))
    })
}
