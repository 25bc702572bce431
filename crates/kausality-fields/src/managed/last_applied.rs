//! Peace with `kubectl apply` as it was before server-side apply.

use super::server::typed;
use crate::gojson;
use crate::set::FieldSet;
use crate::typed::{Duplicates, Type};
use serde_json::{Map, Value};

/// Where kubectl keeps what it applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager for which the annotation counts.
pub(super) const KUBECTL: &str = "kubectl";

/// Bytes that all annotations of an object may have together.
const MAX_BYTES: usize = 256 * 1024;

/// The fields that kubectl applied last and that are as it applied them: it may take them from anybody.
pub(super) fn still_applied(of: Type<'_>, live: &Value, version: &str) -> Option<FieldSet> {
    let annotation = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let applied: Value = serde_json::from_str(annotation).ok()?;
    if applied.get("apiVersion")?.as_str()? != version {
        return None;
    }
    let live = typed(live, of, Duplicates::Refused).ok()?;
    let applied = typed(&applied, of, Duplicates::Refused).ok()?;
    let change = of.compare(&applied.value, &live.value).ok()?;
    let fields = of.field_set(&applied.value).ok()?;
    Some(fields.difference(&change.modified).difference(&change.added).difference(&change.removed))
}

/// Brings the annotation up to date with what kubectl applied, if the object has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let has = |annotations: &&mut Map<String, Value>| {
        annotations.get(ANNOTATION).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    let Some(annotations) =
        object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut).filter(has)
    else {
        return;
    };
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        match metadata.get_mut("annotations") {
            Some(Value::Object(own)) => drop(own.remove(ANNOTATION)),
            // No annotations are none to write: unlike an empty object, null does not get into the text.
            _ => drop(metadata.remove("annotations")),
        }
    }
    let mut text = String::new();
    gojson::value(&mut text, &config);
    text.push('\n');
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    let bytes = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(bytes).sum::<usize>() > MAX_BYTES {
        annotations.remove(ANNOTATION);
    }
}
