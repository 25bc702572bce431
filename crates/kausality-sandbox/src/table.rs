//! Objects as tables, for `kubectl get`.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use crate::answer::{self, Body};
use crate::call::Call;
use crate::controllers::Time;
use crate::kinds::{Definition, Shape};
use crate::metadata;
use crate::request::Form;
use crate::sandbox::Sandbox;
use crate::verbs::metadata_of;

mod columns;
mod json_path;

/// A column: its name, its type, and whether only `-o wide` shows it.
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i64,
}

/// The cells of an object's row.
type Cells = Box<dyn Fn(&Value) -> Vec<Value>>;

/// An answer in the form that is wanted.
pub(crate) fn in_form(sandbox: &Sandbox, call: &Call, code: u16, object: Arc<Value>) -> Response<Body> {
    let is_object = object.get("kind").and_then(Value::as_str) == Some(&call.definition.kind);
    match call.form {
        Form::Table if is_object => {
            let list = json!({"resourceVersion": metadata::version(&object)});
            answer::json(code, &of(&call.definition, &[object], list, sandbox.now(), call))
        }
        Form::Metadata if is_object => answer::json(code, &metadata_of(&object)),
        _ => answer::json(code, &*object),
    }
}

/// Objects as a table.
pub(crate) fn of(
    definition: &Definition,
    objects: &[Arc<Value>],
    list: Value,
    now: Time,
    call: &Call,
) -> Value {
    let (columns, cells): (Vec<Column>, Cells) = match &definition.shape {
        Shape::Custom(custom) if !custom.columns.is_empty() => {
            let mut columns = vec![Column::new("Name", "string")];
            columns.extend(custom.columns.iter().map(Column::of));
            let custom = custom.columns.clone();
            (columns, Box::new(move |object| custom_cells(&custom, object, now)))
        }
        _ => {
            let kind = if definition.is_custom() { "" } else { definition.kind.as_str() };
            let columns = columns::of(kind).iter().map(|name| Column::built_in(name)).collect();
            let kind = kind.to_owned();
            (columns, Box::new(move |object| columns::cells(&kind, object, now)))
        }
    };
    let include = call.query.get("includeObject").to_owned();
    let row = |object: &Arc<Value>| {
        let included = match include.as_str() {
            "None" => Value::Null,
            "Object" => Value::clone(object),
            _ => metadata_of(object),
        };
        json!({"cells": cells(object), "object": included})
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list,
        "columnDefinitions": columns.iter().map(Column::to_value).collect::<Vec<_>>(),
        "rows": objects.iter().map(row).collect::<Vec<_>>(),
    })
}

impl Column {
    fn new(name: &str, kind: &str) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self { name: name.to_owned(), kind: kind.to_owned(), format: format.to_owned(), priority: 0 }
    }

    /// A `+` before the name says that only `-o wide` shows it.
    fn built_in(name: &str) -> Self {
        match name.strip_prefix('+') {
            Some(name) => Self { priority: 1, ..Self::new(name, "string") },
            None => Self::new(name, "string"),
        }
    }

    /// Of an additionalPrinterColumn.
    fn of(column: &Value) -> Self {
        let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            priority: column["priority"].as_i64().unwrap_or(0),
        }
    }

    fn to_value(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": "", "priority": self.priority})
    }
}

fn custom_cells(columns: &[Value], object: &Value, now: Time) -> Vec<Value> {
    let mut cells = vec![json!(metadata::name(object))];
    for column in columns {
        let found = json_path::find(object, column["jsonPath"].as_str().unwrap_or_default());
        cells.push(match (column["type"].as_str(), found) {
            (_, None) => Value::Null,
            (Some("date"), Some(Value::String(time))) => age(&time, now).into(),
            (Some("string"), Some(value)) if !value.is_string() => value.to_string().into(),
            (_, Some(value)) => value,
        });
    }
    cells
}

/// How long ago a time was, as kubectl says it.
pub(crate) fn age(time: &str, now: Time) -> String {
    match Time::parse(time) {
        Some(time) => duration(now.0.saturating_sub(time.0) / 1000),
        None => "<unknown>".to_owned(),
    }
}

/// A time in seconds, as short as kubectl writes it.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds.is_multiple_of(60) => format!("{minutes}m"),
        120..600 => format!("{minutes}m{}s", seconds % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes.is_multiple_of(60) => format!("{hours}h"),
        10_800..28_800 => format!("{hours}h{}m", minutes % 60),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 if hours.is_multiple_of(24) => format!("{days}d"),
        172_800..691_200 => format!("{days}d{}h", hours % 24),
        _ if days < 730 => format!("{days}d"),
        _ => format!("{}y{}d", days / 365, days % 365),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [
            (5, "5s"),
            (119, "119s"),
            (125, "2m5s"),
            (700, "11m"),
            (12_000, "3h20m"),
            (90_000, "25h"),
            (800_000, "9d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
