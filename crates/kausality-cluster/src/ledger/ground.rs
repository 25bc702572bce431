//! What an entry rests on besides what its name says.

use std::hash::{DefaultHasher, Hash, Hasher};

use kausality_api::{drift::DriftSpec, report::ChildReference};
use kausality_core::Drift;
use kube::core::DynamicObject;
use serde_json::Value;

/// Which parent with which intent, and which child. The same drift on another ground is another occurrence: what was decided
/// about the one says nothing about the other, and the one is over when the other is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    parent: u64,
    facts: u64,
    generation: Option<i64>,
}

impl Ground {
    fn new(parent: Option<&str>, generation: Option<i64>, intent: &str, child: Option<&str>) -> Self {
        Self { parent: hash(parent), facts: hash((parent, intent, child)), generation }
    }

    /// The ground on which a drift is seen.
    pub(super) fn of(drift: &Drift) -> Self {
        let report = &drift.report.spec;
        let intent = drift.parent_intent.to_string();
        Self::new(
            report.parent.uid.as_deref(),
            report.parent.generation,
            &intent,
            report.child.uid.as_deref(),
        )
    }

    /// The ground of an entry.
    pub(super) fn of_entry(spec: &DriftSpec) -> Self {
        let parent = &spec.parent;
        Self::new(parent.uid.as_deref(), parent.generation, &spec.parent_intent, spec.child.uid.as_deref())
    }

    /// The ground of an entry that has not been read.
    pub(super) fn of_object(object: &DynamicObject) -> Self {
        let at = |pointer| object.data.pointer(pointer);
        let text = |pointer| at(pointer).and_then(Value::as_str);
        let generation = at("/spec/parent/generation").and_then(Value::as_i64);
        let intent = text("/spec/parentIntent").unwrap_or_default();
        Self::new(text("/spec/parent/uid"), generation, intent, text("/spec/child/uid"))
    }

    /// Whether what is seen on another ground belongs to this one. What is judged by a watch that is late does: the
    /// entry knows a later generation of the same parent.
    pub(super) fn covers(self, seen: Self) -> bool {
        let is_late = || self.generation.zip(seen.generation).is_some_and(|(known, seen)| seen < known);
        self.facts == seen.facts || self.parent == seen.parent && is_late()
    }
}

/// Names the child of an entry within its namespace.
pub(super) fn child(reference: &ChildReference) -> u64 {
    let ChildReference { api_version, kind, name, .. } = reference;
    hash((api_version, kind, name))
}

/// The same, of an entry that has not been read.
pub(super) fn child_of(object: &DynamicObject) -> u64 {
    let text = |pointer| object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    hash((text("/spec/child/apiVersion"), text("/spec/child/kind"), text("/spec/child/name")))
}

fn hash(it: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish()
}
