//! Whether two answers are the same, except for what is made up.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::differential::exchange::Answer;

/// What differs by nature.
const MADE_UP: [&str; 11] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
];

/// Code and reason.
pub(crate) fn verdict((code, body): &Answer) -> Answer {
    let reason = if *code < 300 { Value::Null } else { body["reason"].clone() };
    (*code, reason)
}

/// All that is not made up.
pub(crate) fn whole((code, body): &Answer) -> Answer {
    let mut body = without_generated(body);
    normalise(&mut body, "");
    (*code, body)
}

/// The places where answers differ. Of refusals code and reason count, and the faults that the sandbox tells: words are
/// Go's, and a real API server looks for more faults in what is refused anyway.
pub(crate) fn differences(real: &Answer, ours: &Answer) -> Vec<String> {
    if verdict(real) != verdict(ours) {
        return vec![format!("real {}\n    ours {}", told(real), told(ours))];
    }
    if real.0 >= 300 {
        let (real_faults, our_faults) = (faults(&real.1), faults(&ours.1));
        if our_faults.is_subset(&real_faults) {
            return Vec::new();
        }
        let more: Vec<_> = our_faults.difference(&real_faults).collect();
        return vec![format!("faults {more:?}\n    real {real_faults:?}\n    ours {}", told(ours))];
    }
    let mut places = Vec::new();
    differ(&whole(real).1, &whole(ours).1, "", &mut places);
    places
}

fn told((code, body): &Answer) -> String {
    let message = &body["message"];
    if *code < 300 { format!("{code}") } else { format!("{code} {} {message}", body["reason"]) }
}

fn faults(status: &Value) -> BTreeSet<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    causes.map(|cause| format!("{} {}", cause["reason"], without_uids(&cause["field"].to_string()))).collect()
}

fn differ(real: &Value, ours: &Value, path: &str, places: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let below = format!("{path}.{key}");
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => differ(one, other, &below, places),
                    (one, other) => places.push(format!("{below}: real {} ours {}", text(one), text(other))),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (nth, (one, other)) in one.iter().zip(other).enumerate() {
                differ(one, other, &format!("{path}[{nth}]"), places);
            }
        }
        _ if real != ours => places.push(format!("{path}: real {real} ours {ours}")),
        _ => {}
    }
}

fn text(value: Option<&Value>) -> String {
    value.map_or_else(|| "-".to_owned(), Value::to_string)
}

/// Without the ends of generated names, wherever they are.
fn without_generated(body: &Value) -> Value {
    let items = body["items"].as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
    let mut text = body.to_string();
    for metadata in items.iter().map(|item| &item["metadata"]) {
        let (prefix, name) = (metadata["generateName"].as_str(), metadata["name"].as_str());
        if let (Some(prefix), Some(name)) = (prefix, name)
            && name.len() == prefix.len() + 5
            && name.starts_with(prefix)
        {
            text = text.replace(name, &format!("{prefix}<end>"));
        }
    }
    serde_json::from_str(&text).unwrap()
}

fn normalise(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| normalise(value, key));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| normalise(item, key));
            // Their order depends on the second in which they were written.
            if key == "managedFields" {
                items.sort_by_key(|entry| {
                    format!("{}{}{}", entry["operation"], entry["manager"], entry["subresource"])
                });
            }
            // Their order depends on the names that were generated, and of conflicts on chance.
            if key == "items" || key == "causes" {
                items.sort_by_key(Value::to_string);
            }
        }
        value if MADE_UP.contains(&key) && !value.is_null() => *value = json!("made up"),
        Value::String(text) => *text = without_uids(text),
        _ => {}
    }
}

/// Uids in messages and in the keys of fields.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    words
        .map(|word| {
            if is_uid(word.trim_end_matches(|it: char| !it.is_ascii_alphanumeric())) { "<uid>" } else { word }
        })
        .collect()
}
