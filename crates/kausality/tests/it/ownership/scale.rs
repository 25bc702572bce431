//! What a request for the scale of a Deployment does to its entries.
//!
//! The API server translates the entries that own the replicas into entries of a Scale, has the Scale updated, and
//! translates back.

use std::collections::BTreeMap;

use kausality_fields::{
    FieldSet,
    managed::{self, Entry, Request, Server, Wire, sort},
    ownership::Rules,
    typed::Type,
};
use serde_json::{Value, json, value::RawValue};

use crate::ownership::model::{entries, path};

const SCALE: &str = "autoscaling/v1";

pub(crate) fn update(of: Type<'_>, before: &Value, after: &Value, request: &Request<'_>) -> Vec<Entry> {
    // Of two entries with one identity, which a request for the scale can leave behind, the last counts.
    let parents = entries(before).unwrap_or_default().into_iter().map(|entry| (entry.identity(), entry));
    let parents: Vec<Entry> = parents.collect::<BTreeMap<_, _>>().into_values().collect();
    let replicas: FieldSet = [path(&["spec", "replicas"])].into_iter().collect();
    let owns = |entry: &Entry| entry.fields.has(&path(&["spec", "replicas"]));
    let scaled: Vec<Entry> = parents
        .iter()
        .filter(|entry| owns(entry))
        .map(|entry| Entry { fields: replicas.clone(), api_version: SCALE.to_owned(), ..entry.clone() })
        .collect();

    let server = Server {
        of,
        rules: Rules::new(),
        empty: json!({"metadata": {}, "spec": {}, "status": {"replicas": 0}}),
    };
    let request_for_scale = Request { api_version: SCALE, ..*request };
    let live = scale(before, json!(scaled));
    let new = scale(after, json!(scaled));
    let Ok(served) = server.update(Some(&live), &new, &request_for_scale) else { return Vec::new() };

    let mut back = Vec::new();
    let mut scaled = served.entries;
    for parent in &parents {
        let at = scaled.iter().position(|entry| entry.identity() == parent.identity());
        match at {
            _ if !owns(parent) => back.push(parent.clone()),
            Some(at) => {
                scaled.remove(at);
                back.push(parent.clone());
            }
            None => {
                let fields = parent.fields.difference(&replicas);
                if !fields.is_empty() {
                    back.push(Entry { fields, ..parent.clone() });
                }
            }
        }
    }
    for entry in scaled.into_iter().filter(owns) {
        // An entry that is not the parent's has no time there.
        back.push(Entry {
            fields: replicas.clone(),
            api_version: request.api_version.to_owned(),
            time: None,
            ..entry
        });
    }
    sort(&mut back);
    back
}

fn scale(deployment: &Value, entries: Value) -> Value {
    let metadata = &deployment["metadata"];
    let mut scale = json!({
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "creationTimestamp": metadata["creationTimestamp"], "managedFields": entries},
        "spec": {}, "status": {"replicas": 0, "selector": "app=web"},
    });
    if let Some(replicas) = deployment["spec"]["replicas"].as_i64().filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = json!(replicas);
    }
    scale
}

/// The entries of a Deployment as a request for its scale leaves them. They have been read as plain JSON, so the steps
/// of each set are sorted as text. The next write puts them in the usual order again.
pub(crate) fn encode(entries: &[Entry]) -> String {
    const ORDER: [&str; 7] =
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    let custom = managed::encode(entries, Wire::Custom);
    let parts: Vec<BTreeMap<&str, &RawValue>> = serde_json::from_str(&custom).unwrap();
    let entry = |parts: &BTreeMap<&str, &RawValue>| {
        let part = |name: &&str| Some(format!("{name:?}:{}", parts.get(name)?.get()));
        format!("{{{}}}", ORDER.iter().filter_map(part).collect::<Vec<_>>().join(","))
    };
    format!("[{}]", parts.iter().map(entry).collect::<Vec<_>>().join(","))
}
