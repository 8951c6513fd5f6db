//! Changes of a JSON value that leave it JSON.

use serde_json::{Value, json};
use sterna::streams::RowStream;

/// One change somewhere.
pub fn mutate(whole: &mut Value, stream: &mut RowStream) {
    let spare = pick(&mut whole.clone(), stream).clone();
    let place = pick(whole, stream);
    match stream.below(5) {
        0 => *place = spare,
        1 => *place = odd(stream),
        _ => resize(place, stream),
    }
}

/// A value that few expect.
fn odd(stream: &mut RowStream) -> Value {
    let all = [
        json!(0),
        json!(-1),
        json!(1),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(u64::MAX),
        json!(1u64 << 40),
        json!(100_000_000),
        json!(null),
        json!(true),
        json!("<b>words</b>"),
        json!(""),
        json!([]),
        json!({}),
    ];
    all[stream.below(all.len())].clone()
}

/// A list that is longer or shorter, a table with a field less; anything else becomes odd.
fn resize(place: &mut Value, stream: &mut RowStream) {
    match place {
        Value::Array(list) if !list.is_empty() => {
            let at = stream.below(list.len());
            match stream.below(3) {
                0 => list.truncate(at),
                1 => drop(list.remove(at)),
                _ => list.push(list[at].clone()),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let key = fields.keys().nth(stream.below(fields.len())).cloned().unwrap_or_default();
            fields.remove(&key);
        }
        other => *other = odd(stream),
    }
}

/// Some part of a value, deep or not.
fn pick<'a>(value: &'a mut Value, stream: &mut RowStream) -> &'a mut Value {
    let (size, stays) = match value {
        Value::Array(list) => (list.len(), stream.below(4) == 0),
        Value::Object(fields) => (fields.len(), stream.below(16) == 0),
        _ => (0, true),
    };
    if size == 0 || stays {
        return value;
    }
    let at = stream.below(size);
    match value {
        Value::Array(list) => pick(&mut list[at], stream),
        Value::Object(fields) => pick(fields.values_mut().nth(at).expect("it has as many"), stream),
        _ => unreachable!("others have no parts"),
    }
}
