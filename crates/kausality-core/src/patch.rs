//! The patch of a decision: annotations to set and to remove.

use std::collections::BTreeMap;

use kausality_api::annotation::{self, Suffix};
use serde::Serialize;

use crate::review::Object;

/// Changes of annotations, nothing else: Kausality never touches what an object wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The new value of an annotation, by its plain name; `None` removes it.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Whether facts were left out, since the object has no room for more annotations.
    pub left_out: bool,
    suffix: Suffix,
    needs_map: bool,
}

/// One operation of a JSON patch (RFC 6902).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Adds or replaces a value.
    Add {
        /// Where.
        path: String,
        /// What.
        value: serde_json::Value,
    },
    /// Removes a value.
    Remove {
        /// Where.
        path: String,
    },
}

impl Patch {
    /// The patch that turns the annotations of ours that were sent into the ones that are wanted.
    pub(crate) fn between(object: &Object<'_>, wanted: &BTreeMap<String, String>) -> Self {
        let sent = &object.metadata.annotations;
        let fitting = fitting(sent.size_of_others(), wanted);
        let left_out = fitting.is_some();
        let wanted = fitting.as_ref().unwrap_or(wanted);
        let mut annotations = BTreeMap::new();
        for (key, value) in wanted {
            if sent.get(key) != Some(value) {
                annotations.insert(key.clone(), Some(value.clone()));
            }
        }
        for (key, _) in sent.ours() {
            if !wanted.contains_key(key) {
                annotations.insert(key.to_owned(), None);
            }
        }
        Self { annotations, left_out, suffix: object.suffix(), needs_map: !sent.is_present() }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.annotations.is_empty()
    }

    /// As a JSON patch of the object.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let map = "/metadata/annotations";
        let mut operations = Vec::new();
        if self.needs_map && !self.is_empty() {
            operations.push(Operation::Add { path: map.to_owned(), value: serde_json::json!({}) });
        }
        for (key, value) in &self.annotations {
            let key = self.suffix.key(key);
            let path = format!("{map}/{}", key.replace('~', "~0").replace('/', "~1"));
            operations.push(match value {
                Some(value) => Operation::Add { path, value: value.as_str().into() },
                None => Operation::Remove { path },
            });
        }
        operations
    }
}

/// How many bytes all annotations of an object may have, names and values, before an API server refuses it.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// What fits of the annotations that are wanted beside others of this size; nothing, if all of it does. Facts go first: an
/// object without them is judged leniently, and one that is refused is an outage.
fn fitting(others: usize, wanted: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    const SUFFIX: usize = 8;
    let size = |key: &str, value: &str| key.len() + value.len() + SUFFIX;
    let mut total = others + wanted.iter().map(|(key, value)| size(key, value)).sum::<usize>();
    if total <= MAX_ANNOTATIONS {
        return None;
    }
    let mut fitting = wanted.clone();
    let mut facts: Vec<(usize, String)> = (wanted.iter())
        .filter(|(key, _)| annotation::owner(key) == annotation::Owner::System)
        .map(|(key, value)| (size(key, value), key.clone()))
        .collect();
    facts.sort();
    while total > MAX_ANNOTATIONS
        && let Some((size, key)) = facts.pop()
    {
        fitting.remove(&key);
        total = total.saturating_sub(size);
    }
    Some(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_make_way_where_there_is_no_room() {
        let wanted: BTreeMap<String, String> = [
            (annotation::TRACE, "t".repeat(4000)),
            (annotation::UPDATERS, "u".repeat(100)),
            (annotation::FREEZE, "true".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        assert_eq!(fitting(0, &wanted), None);
        assert_eq!(fitting(MAX_ANNOTATIONS - 5000, &wanted), None);
        let keys = |others| fitting(others, &wanted).map(|left| left.into_keys().collect::<Vec<_>>());
        // The largest first; what people write never.
        assert_eq!(
            keys(MAX_ANNOTATIONS - 2000),
            Some(vec![annotation::FREEZE.to_owned(), annotation::UPDATERS.to_owned()])
        );
        assert_eq!(keys(MAX_ANNOTATIONS), Some(vec![annotation::FREEZE.to_owned()]));
    }
}
