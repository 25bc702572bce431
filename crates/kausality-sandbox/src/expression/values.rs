//! JSON as CEL has it.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use serde_json::Value;

/// Whole numbers are `int`, as in objects that an API server reads.
pub(super) fn of(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(it) => cel::Value::Bool(*it),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(of).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), of(value)));
            cel::Value::Map(Map { map: Arc::new(fields.collect::<HashMap<_, _>>()) })
        }
    }
}

/// The length of the longest list or map in it: so often a loop is taken at most.
pub(super) fn longest(value: &Value) -> u64 {
    let within = |length: usize, inner: Option<u64>| (length as u64).max(inner.unwrap_or_default());
    match value {
        Value::Array(items) => within(items.len(), items.iter().map(longest).max()),
        Value::Object(fields) => within(fields.len(), fields.values().map(longest).max()),
        _ => 0,
    }
}
