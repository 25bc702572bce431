//! Field selectors: `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use super::{Requirement, Test};
use crate::kinds::{Definition, Shape};
use crate::status::Failure;

/// Reads a selector of a kind's fields.
pub(super) fn parse(definition: &Definition, text: &str) -> Result<Vec<Requirement>, Failure> {
    let mut all = Vec::new();
    for term in terms(text).into_iter().filter(|term| !term.is_empty()) {
        let Some((key, equal, value)) = split(term) else {
            let message = format!("invalid selector: '{text}'; can't understand '{term}'");
            return Err(Failure::bad_request(message));
        };
        let value = plain(value).map_err(Failure::bad_request)?;
        if !is_selectable(definition, key) {
            return Err(Failure::bad_request(unknown(definition, key)));
        }
        // Events are stored as those of the core group.
        let key = key.replacen("regarding.", "involvedObject.", 1);
        let test = if equal { Test::In(vec![value]) } else { Test::NotIn(vec![value]) };
        all.push(Requirement { key, test });
    }
    Ok(all)
}

/// At commas that no backslash is before.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        if letter == ',' && !escaped {
            terms.push(&text[start..at]);
            start = at + 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    terms.push(&text[start..]);
    terms
}

/// A key, whether it is to be equal, and a value.
fn split(term: &str) -> Option<(&str, bool, &str)> {
    let at =
        term.find(['!', '=']).filter(|at| !term[*at..].starts_with('!') || term[*at..].starts_with("!="))?;
    let (key, rest) = term.split_at(at);
    let operators = [("!=", false), ("==", true), ("=", true)];
    operators.into_iter().find_map(|(sign, equal)| Some((key, equal, rest.strip_prefix(sign)?)))
}

/// A value without its backslashes.
fn plain(value: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            '=' | ',' => {
                return Err(format!("invalid field selector: unescaped character in value: {letter}"));
            }
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

fn unknown(definition: &Definition, key: &str) -> String {
    let own = ["Pod", "Event", "Namespace", "Secret", "Node", "ReplicationController", "Service"];
    match definition.kind.as_str() {
        _ if definition.is_custom() => format!("field label not supported: {key}"),
        kind if own.contains(&kind) => format!("field label not supported: {key}"),
        "Job" => format!("field label {key:?} not supported for Job"),
        _ => format!("{key:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    }
}

/// What is not set counts as empty, or as zero.
pub(super) fn of(object: &Value, key: &str) -> String {
    let value = object.pointer(&format!("/{}", key.replace('.', "/")));
    match (value, key) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Object(_)), "source") => {
            object.pointer("/source/component").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        // It may be asked for, and is never found.
        (_, "status.podIPs") => String::new(),
        (Some(value), _) if !value.is_null() => value.to_string(),
        (_, "status.replicas" | "status.successful") => "0".to_owned(),
        (_, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => String::new(),
    }
}

fn is_selectable(definition: &Definition, key: &str) -> bool {
    if key == "metadata.name" || (key == "metadata.namespace" && definition.namespaced) {
        return true;
    }
    if let Shape::Custom(custom) = &definition.shape {
        return custom.selectable.iter().any(|field| field == key);
    }
    let known: &[&str] = match definition.kind.as_str() {
        "Pod" => &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        ],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "Namespace" => &["status.phase"],
        "Secret" => &["type"],
        "Node" => &["spec.unschedulable"],
        "Service" => &["spec.clusterIP", "spec.type"],
        "ReplicaSet" | "ReplicationController" => &["status.replicas"],
        "Job" => &["status.successful"],
        _ => &[],
    };
    known.contains(&key)
}
