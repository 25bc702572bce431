//! What rules may ask for that the ledger does not hold, read from the cluster as it is now.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use kausality_api::{drift::DriftSpec, selector::Labels};
use kausality_core::exceptions::{Exceptions, Need};
use serde_json::Value;

use super::hold::needs;
use crate::{
    act::{Editor, ParentName},
    ledger::{Entry, rules::labels, within},
    target::api,
};

/// How many parents are read: each is a request of its own.
const MAX_PARENTS: usize = 100;

/// Parents and namespaces of drifts; or why they are not known.
#[derive(Debug, Default)]
pub(super) struct Known {
    parents: BTreeMap<ParentName, Result<Value, String>>,
    namespaces: BTreeMap<String, Result<Labels, String>>,
}

impl Known {
    /// Reads what the rules ask for that are about these drifts.
    pub(super) async fn gather(
        &mut self,
        editor: &Editor,
        rules: &Exceptions,
        entries: &[Entry],
        now: Timestamp,
    ) {
        for Entry { drift, .. } in entries {
            let needs = needs(rules, &drift.spec, now);
            let parent = ParentName::from(&drift.spec.parent);
            let namespace = &drift.spec.child.namespace;
            if needs.contains(&Need::Parent)
                && self.parents.len() < MAX_PARENTS
                && !self.parents.contains_key(&parent)
            {
                let read = read_parent(editor, &parent).await.map_err(|error| format!("{error:#}"));
                self.parents.insert(parent, read);
            }
            if needs.contains(&Need::Namespace)
                && !namespace.is_empty()
                && !self.namespaces.contains_key(namespace)
            {
                let read =
                    labels(&editor.ledger.client, namespace).await.map_err(|error| format!("{error:#}"));
                self.namespaces.insert(namespace.clone(), read);
            }
        }
    }

    /// Whether anything was read.
    pub(super) fn is_any(&self) -> bool {
        self.parents.values().any(Result::is_ok) || self.namespaces.values().any(Result::is_ok)
    }

    /// The parent of a drift.
    pub(super) fn parent(&self, drift: &DriftSpec) -> Result<&Value, String> {
        let read = self.parents.get(&ParentName::from(&drift.parent));
        let parent = read.ok_or("there are too many parents to read them all")?.as_ref()?;
        let uid = parent.pointer("/metadata/uid").and_then(Value::as_str);
        match drift.parent.uid.is_none() || drift.parent.uid.as_deref() == uid {
            true => Ok(parent),
            false => Err("the parent is gone".to_owned()),
        }
    }

    /// The labels of a namespace.
    pub(super) fn labels(&self, namespace: &str) -> Result<&Labels, String> {
        Ok(self.namespaces.get(namespace).ok_or("the namespace has not been read")?.as_ref()?)
    }
}

async fn read_parent(editor: &Editor, parent: &ParentName) -> Result<Value> {
    let kind = editor.kinds().of_kind(&parent.api_version, &parent.kind).await?;
    let api = api(&editor.ledger.client, &kind, &parent.namespace);
    let found = within("the parent cannot be read", api.get_opt(&parent.name)).await?;
    Ok(serde_json::to_value(found.context("the parent is gone")?)?)
}

#[cfg(test)]
impl Known {
    /// This parent and these labels of its namespace.
    pub(super) fn these(drift: &DriftSpec, parent: Value, labels: Labels) -> Self {
        Self {
            parents: [(ParentName::from(&drift.parent), Ok(parent))].into(),
            namespaces: [(drift.child.namespace.clone(), Ok(labels))].into(),
        }
    }
}
