//! Noise: values of any form, and recorded reviews that something happened to.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::properties::texts;

pub(crate) fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts::hostile().prop_map(|text| text.chars().take(50).collect::<String>().into()),
    ];
    let names =
        proptest::string::string_regex("[a-z/.]{0,6}|metadata|spec|status|request|kind").unwrap().boxed();
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
    .boxed()
}

/// Replaces a value somewhere in a value.
pub(crate) fn replace(value: &mut Value, place: &Index, by: &Value) {
    if let Some(found) = pick(value, place) {
        *found = by.clone();
    }
}

fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let at = format!("{at}/{key}");
        all.push(at.clone());
        pointers(child, at, all);
    }
}

fn pick<'a>(value: &'a mut Value, place: &Index) -> Option<&'a mut Value> {
    let mut all = Vec::new();
    pointers(value, String::new(), &mut all);
    let at = all.get(place.index(all.len().max(1)))?;
    value.pointer_mut(at)
}

/// What may happen to a text on the way.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Flip(Index, u8),
    Truncate(Index),
    Replace(Index, Value),
    Delete(Index),
}

pub(crate) fn mutation() -> BoxedStrategy<Mutation> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        any::<Index>().prop_map(Mutation::Truncate),
        (any::<Index>(), any_json()).prop_map(|(at, value)| Mutation::Replace(at, value)),
        any::<Index>().prop_map(Mutation::Delete),
    ]
    .boxed()
}

impl Mutation {
    pub(crate) fn apply(&self, text: &mut Vec<u8>) {
        let edit = |text: &mut Vec<u8>, edit: &dyn Fn(&mut Value)| {
            if let Ok(mut value) = serde_json::from_slice(text) {
                edit(&mut value);
                *text = value.to_string().into_bytes();
            }
        };
        match self {
            _ if text.is_empty() => {}
            Self::Flip(at, bits) => {
                let at = at.index(text.len());
                text[at] ^= bits;
            }
            Self::Truncate(at) => text.truncate(at.index(text.len())),
            Self::Replace(at, by) => edit(text, &|value| replace(value, at, by)),
            Self::Delete(at) => edit(text, &|value| {
                if let Some(Value::Object(map)) = pick(value, at) {
                    let key = map.keys().nth(at.index(map.len().max(1))).cloned();
                    key.and_then(|key| map.remove(&key));
                }
            }),
        }
    }
}

/// The recorded reviews, one a line.
pub(crate) fn recorded() -> &'static [String] {
    static LINES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    LINES.get_or_init(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/admission-reviews");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().filter(|file| file.extension().is_some_and(|it| it == "jsonl"));
        let lines: Vec<String> = texts
            .flat_map(|file| {
                std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        assert!(lines.len() > 100, "the recordings are in {folder}");
        lines
    })
}
