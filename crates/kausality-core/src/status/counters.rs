//! Counters, for kinds that have neither conditions nor a phase: replicas as the scale subresource has them, and Pods.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Standing, parse};
use crate::review::Object;

/// Counters that must have arrived where the first of their list says that it goes.
const COUNTERS: [&[&str]; 2] = [
    &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
    // StrimziPodSet.
    &["pods", "readyPods", "currentPods"],
];

/// Where an object stands by its counters; `None` if it has none. One counter alone tells nothing.
pub(super) fn standing(object: &Object<'_>, status: Option<&RawValue>) -> Option<Standing> {
    let status: BTreeMap<String, &RawValue> = serde_json::from_str(status?.get()).ok()?;
    let spec: BTreeMap<String, &RawValue> =
        object.intent.field("spec").map(|raw| serde_json::from_str(raw.get()).unwrap_or_default())?;
    let number = |fields: &BTreeMap<String, &RawValue>, name: &str| -> Option<i64> {
        parse::<Option<i64>>(fields.get(name)?)
    };
    // A rollout that stops half-way on purpose leaves the others as they are.
    let is_partial = object.intent.field("spec").is_some_and(|spec| {
        [r#""partition":"#, r#""paused":true"#, r#""OnDelete""#].iter().any(|part| spec.get().contains(part))
    });
    let counts = |name: &&&str| !(is_partial && **name == "updatedReplicas");
    COUNTERS.into_iter().find_map(|names| {
        let counted: Vec<i64> =
            names.iter().filter(counts).filter_map(|name| number(&status, name)).collect();
        let [first, _, ..] = *counted else { return None };
        let wanted = number(&spec, names.first()?).unwrap_or(first);
        let arrived = counted.iter().all(|count| *count == wanted);
        Some(if arrived { Standing::Done } else { Standing::Busy("its counters differ from what is wanted") })
    })
}
