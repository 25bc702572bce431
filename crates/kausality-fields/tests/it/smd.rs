//! The data of structured-merge-diff's own tests, which lies beside the project and is not part of it.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use kausality_fields::schema::{Atom, Field, List, Map, Relationship, Scalar, ScalarKind, Schema, TypeRef};
use serde_json::Value;
use std::path::PathBuf;

/// A file of the data, or a word on its absence. A clean checkout does not have it.
pub(crate) fn file(name: &str) -> Option<String> {
    let shared = match std::env::var_os("KAUSALITY_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
    };
    let path = shared.join("fixtures/structured-merge-diff").join(name);
    let text = std::fs::read_to_string(&path);
    if text.is_err() {
        println!(
            "skipped: {} is not there. It is not part of the project; set KAUSALITY_SHARED to the folder it is in",
            path.display()
        );
    }
    text.ok()
}

pub(crate) fn yaml(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Null;
    }
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A schema in structured-merge-diff's own notation.
pub(crate) fn schema(text: &str) -> Schema {
    let document = yaml(text);
    let definition = |definition: &Value| (text_of(definition, "name").unwrap(), atom(definition));
    Schema { types: document["types"].as_array().unwrap().iter().map(definition).collect() }
}

fn text_of(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn atom(value: &Value) -> Atom {
    Atom {
        scalar: value["scalar"].as_str().map(|kind| Scalar {
            kind: match kind {
                "numeric" => ScalarKind::Numeric,
                "string" => ScalarKind::String,
                "boolean" => ScalarKind::Boolean,
                "untyped" => ScalarKind::Untyped,
                other => panic!("scalar {other}"),
            },
            format: None,
        }),
        list: value.get("list").map(|list| List {
            element: reference(&list["elementType"]).unwrap(),
            relationship: relationship(list).unwrap(),
            keys: strings(&list["keys"]),
        }),
        map: value.get("map").map(|map| Map {
            fields: map["fields"].as_array().into_iter().flatten().map(field).collect(),
            element: map.get("elementType").and_then(reference),
            relationship: relationship(map).unwrap_or_default(),
        }),
    }
}

fn field(field: &Value) -> (String, Field) {
    let of = reference(&field["type"]).unwrap();
    (text_of(field, "name").unwrap(), Field { of, default: field.get("default").cloned() })
}

fn reference(value: &Value) -> Option<TypeRef> {
    match text_of(value, "namedType") {
        Some(name) => Some(TypeRef::Named(name, relationship(value))),
        None => Some(overridden(atom(value), relationship(value)))
            .filter(|atom| *atom != Atom::default())
            .map(Box::new)
            .map(TypeRef::Inline),
    }
}

/// An inline type with the relationship that stands beside it.
fn overridden(mut atom: Atom, relationship: Option<Relationship>) -> Atom {
    match (relationship, &mut atom.map, &mut atom.list) {
        (Some(relationship), Some(map), _) => map.relationship = relationship,
        (Some(relationship), None, Some(list)) => list.relationship = relationship,
        _ => {}
    }
    atom
}

fn relationship(value: &Value) -> Option<Relationship> {
    value["elementRelationship"].as_str().map(|relationship| match relationship {
        "atomic" => Relationship::Atomic,
        "associative" | "separable" => Relationship::Separable,
        other => panic!("relationship {other}"),
    })
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|key| key.as_str().unwrap().to_owned()).collect()
}
