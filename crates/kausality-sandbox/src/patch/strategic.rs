//! Strategic merge patches: merge patches that know the lists of Kubernetes.
//!
//! The type of the object says which lists are merged, and what identifies their items. Directives in the patch
//! (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`) say the rest.

use serde_json::{Map, Value};

use crate::types::{built_in, resolve};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges a patch into an object of a definition.
pub(super) fn merge(object: &mut Value, patch: &Value, definition: &str) -> Result<(), String> {
    let schema = built_in().schemas.get(definition).unwrap_or(&Value::Null);
    merge_value(object, patch, schema)
}

fn merge_value(value: &mut Value, patch: &Value, schema: &Value) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return Ok(());
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(fields) = value.as_object_mut() else { return Ok(()) };
    merge_fields(fields, patch, schema)
}

fn merge_fields(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    schema: &Value,
) -> Result<(), String> {
    let (_, schema) = resolve(&built_in().schemas, schema);
    match patch.get(DIRECTIVE) {
        Some(directive) if directive == "replace" => {
            *fields = patch
                .iter()
                .filter(|(key, _)| *key != DIRECTIVE)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            return Ok(());
        }
        Some(directive) if directive == "delete" => {
            fields.clear();
            return Ok(());
        }
        None => {}
        Some(other) => return Err(format!("unknown patch type: {other}")),
    }
    if let Some(keep) = patch.get(RETAIN).and_then(Value::as_array) {
        fields.retain(|key, _| keep.iter().any(|kept| kept == key));
    }
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            if let (Some(list), Some(gone)) =
                (fields.get_mut(field).and_then(Value::as_array_mut), value.as_array())
            {
                list.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        let property = property.or_else(|| schema.get("additionalProperties")).unwrap_or(&Value::Null);
        match value {
            Value::Null => {
                fields.remove(key);
            }
            Value::Object(below) if below.get(DIRECTIVE).is_some_and(|it| it == "delete") => {
                fields.remove(key);
            }
            // Such as the selector of a PodDisruptionBudget.
            Value::Object(_) if has_strategy(property, "replace") => {
                let mut new = Value::Null;
                merge_value(&mut new, value, property)?;
                fields.insert(key.clone(), new);
            }
            Value::Object(_) => {
                merge_value(fields.entry(key.clone()).or_insert(Value::Null), value, property)?
            }
            Value::Array(items) if has_strategy(property, "merge") => {
                let list = fields.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
                if !list.is_array() {
                    *list = Value::Array(Vec::new());
                }
                if let Some(list) = list.as_array_mut() {
                    merge_list(list, items, property)?;
                }
            }
            _ => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
    for (key, order) in patch {
        let Some(field) = key.strip_prefix(ORDER) else { continue };
        let property =
            schema.get("properties").and_then(|properties| properties.get(field)).unwrap_or(&Value::Null);
        if let (Some(list), Some(order)) =
            (fields.get_mut(field).and_then(Value::as_array_mut), order.as_array())
        {
            *list = ordered(std::mem::take(list), order, merge_key(property));
        }
    }
    Ok(())
}

fn has_strategy(schema: &Value, wanted: &str) -> bool {
    let strategy = schema.get("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
    strategy.split(',').any(|strategy| strategy == wanted)
}

fn merge_key(schema: &Value) -> Option<&str> {
    schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str)
}

fn merge_list(list: &mut Vec<Value>, patch: &[Value], schema: &Value) -> Result<(), String> {
    let Some(key) = merge_key(schema) else {
        for item in patch {
            if !list.contains(item) {
                list.push(item.clone());
            }
        }
        list.sort_by_key(Value::to_string);
        return Ok(());
    };
    if patch.iter().any(|item| item.get(DIRECTIVE).is_some_and(|it| it == "replace")) {
        *list = patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect();
        return Ok(());
    }
    let element = schema.get("items").unwrap_or(&Value::Null);
    for item in patch {
        let Some(id) = item.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key}"));
        };
        if item.get(DIRECTIVE).is_some_and(|it| it == "delete") {
            list.retain(|existing| existing.get(key) != Some(id));
            continue;
        }
        match list.iter_mut().find(|existing| existing.get(key) == Some(id)) {
            Some(existing) => merge_value(existing, item, element)?,
            None => {
                let mut new = Value::Object(Map::new());
                merge_value(&mut new, item, element)?;
                list.push(new);
            }
        }
    }
    Ok(())
}

/// The items that an order names come in that order; others keep their place before the item that they preceded.
fn ordered(list: Vec<Value>, order: &[Value], key: Option<&str>) -> Vec<Value> {
    let rank = |item: &Value| {
        order.iter().position(|wanted| match key {
            Some(key) => wanted.get(key).is_some() && wanted.get(key) == item.get(key),
            None => wanted == item,
        })
    };
    let mut named: Vec<(usize, Value)> = Vec::new();
    let mut others: Vec<(Option<usize>, Value)> = Vec::new();
    let ranks: Vec<_> = list.iter().map(rank).collect();
    for (at, item) in list.into_iter().enumerate() {
        match ranks[at] {
            Some(rank) => named.push((rank, item)),
            None => others.push((ranks[at + 1..].iter().flatten().next().copied(), item)),
        }
    }
    named.sort_by_key(|(rank, _)| *rank);
    let mut result = Vec::new();
    for (rank, item) in named {
        let (before, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(next, _)| *next == Some(rank));
        result.extend(before.into_iter().map(|(_, other)| other));
        others = rest;
        result.push(item);
    }
    result.extend(others.into_iter().map(|(_, other)| other));
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Value, patch: &Value, expected: &Value) {
        let wrap = |containers: Value| json!({"spec": {"template": {"spec": containers}}});
        let mut object = wrap(object);
        merge(&mut object, &wrap(patch.clone()), "io.k8s.api.apps.v1.Deployment").unwrap();
        assert_eq!(object, wrap(expected.clone()));
    }

    #[test]
    fn lists_are_merged_by_their_keys() {
        check(
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
            &json!({"containers": [{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]}),
            &json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}, {"name": "c", "image": "4"}]}),
        );
        check(
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            &json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            &json!({"containers": [{"name": "b"}]}),
        );
        check(
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            &json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            &json!({"containers": [{"name": "b"}, {"name": "a"}]}),
        );
    }

    #[test]
    fn other_lists_and_directives() {
        check(
            json!({"tolerations": [{"key": "a"}]}),
            &json!({"tolerations": [{"key": "b"}]}),
            &json!({"tolerations": [{"key": "b"}]}),
        );
        check(
            json!({"nodeSelector": {"a": "b"}}),
            &json!({"nodeSelector": {"$patch": "replace", "c": "d"}}),
            &json!({"nodeSelector": {"c": "d"}}),
        );
        let mut strategy = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        merge(&mut strategy, &patch, "io.k8s.api.apps.v1.Deployment").unwrap();
        assert_eq!(strategy, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    }
}
