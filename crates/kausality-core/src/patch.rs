//! The patch of a decision: annotations to set and to remove.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::review::Annotations;

/// Changes of annotations, nothing else: Kausality never touches what an object wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The new value of an annotation; `None` removes it.
    pub annotations: BTreeMap<String, Option<String>>,
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
    pub(crate) fn between(sent: &Annotations<'_>, wanted: &BTreeMap<String, String>) -> Self {
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
        Self { annotations, needs_map: !sent.is_present() }
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
            let path = format!("{map}/{}", key.replace('~', "~0").replace('/', "~1"));
            operations.push(match value {
                Some(value) => Operation::Add { path, value: value.as_str().into() },
                None => Operation::Remove { path },
            });
        }
        operations
    }
}
