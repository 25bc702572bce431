//! What an object controls, found by owner references: no index of the cluster answers that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use kausality_api::GROUP;
use kausality_cluster::{Kind, Kinds};
use kube::{
    Api, Client,
    api::ListParams,
    core::{DynamicObject, ObjectMeta},
};

use super::Node;
use crate::{ledger::within, live::in_order};

/// Objects of one kind that are looked at.
const MAX_OBJECTS: usize = 5_000;

/// Objects that are asked for at once.
const PAGE: u32 = 500;

/// How far down it goes.
const MAX_DEPTH: usize = 10;

/// Objects that are shown.
const MAX_SHOWN: usize = 1_000;

/// Groups whose objects are nobody's intent: records, leases, locks.
const RECORDS: [&str; 4] = ["coordination.k8s.io", "events.k8s.io", "metrics.k8s.io", GROUP];

/// All objects that are controlled by others, by who controls them.
#[derive(Debug, Default)]
pub(super) struct Family {
    by_owner: BTreeMap<String, Vec<Node>>,
    /// Kinds that could not be listed.
    hidden: BTreeSet<String>,
    /// Kinds of which there are more than were looked at.
    cut: BTreeSet<String>,
    /// Groups whose servers do not say what they serve.
    uncertain: BTreeSet<String>,
}

/// The objects of a kind.
enum Listed {
    All(Vec<ObjectMeta>),
    Some(Vec<ObjectMeta>),
    /// They may not be listed, or cannot be.
    None,
}

impl Family {
    /// Looks at all objects of a namespace; of the whole cluster, if it is none.
    pub(super) async fn gather(client: &Client, kinds: &Kinds, namespace: Option<&str>) -> Result<Self> {
        let listing = kinds.all().await?;
        let is_meant = |kind: &&Arc<Kind>| {
            let resource = &kind.resource;
            let record = RECORDS.contains(&resource.group.as_str()) || resource.plural == "events";
            !record && (kind.namespaced || namespace.is_none())
        };
        let wanted: Vec<Arc<Kind>> = listing.kinds.iter().filter(is_meant).cloned().collect();
        let tasks = wanted.iter().map(|kind| {
            let resource = &kind.resource;
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
                None => Api::all_with(client.clone(), resource),
            };
            list(api)
        });
        let listed = in_order(tasks.collect()).await?;
        let mut family = Self { uncertain: listing.uncertain, ..Self::default() };
        for (kind, listed) in wanted.iter().zip(listed) {
            family.add(kind, listed);
        }
        Ok(family)
    }

    fn add(&mut self, kind: &Kind, listed: Listed) {
        let resource = &kind.resource;
        let objects = match listed {
            Listed::All(objects) => objects,
            Listed::Some(objects) => {
                self.cut.insert(resource.plural.clone());
                objects
            }
            Listed::None => {
                self.hidden.insert(resource.plural.clone());
                return;
            }
        };
        for metadata in objects {
            let owners = metadata.owner_references.as_deref().unwrap_or_default();
            if let Some(owner) = owners.iter().find(|owner| owner.controller == Some(true)) {
                let node = Node::new(&resource.api_version, &resource.kind, &metadata);
                self.by_owner.entry(owner.uid.clone()).or_default().push(node);
            }
        }
    }

    /// What an object controls, and what that controls.
    pub(super) fn children(&self, uid: &str) -> Vec<Node> {
        let mut left = MAX_SHOWN;
        self.below(uid, MAX_DEPTH, &mut left)
    }

    fn below(&self, uid: &str, depth: usize, left: &mut usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        // Depth bounds what objects that own each other would make endless.
        if depth == 0 {
            return nodes;
        }
        for node in self.by_owner.get(uid).into_iter().flatten() {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let mut node = node.clone();
            node.children = Some(self.below(&node.uid, depth - 1, left)).filter(|below| !below.is_empty());
            nodes.push(node);
        }
        nodes.sort_by(|a, b| (&a.kind, &a.namespace, &a.name).cmp(&(&b.kind, &b.namespace, &b.name)));
        nodes
    }

    /// What may be missing.
    pub(super) fn notes(&self) -> Vec<String> {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut notes = Vec::new();
        if !self.hidden.is_empty() {
            notes.push(format!("could not be listed, and may hold more: {}", list(&self.hidden)));
        }
        if !self.cut.is_empty() {
            notes.push(format!("only the first {MAX_OBJECTS} were looked at: {}", list(&self.cut)));
        }
        if !self.uncertain.is_empty() {
            notes.push(format!("API groups that do not answer may hold more: {}", list(&self.uncertain)));
        }
        notes
    }
}

async fn list(api: Api<DynamicObject>) -> Listed {
    let mut objects = Vec::new();
    let mut parameters = ListParams { limit: Some(PAGE), ..ListParams::default() };
    loop {
        let Ok(page) = within("no list", api.list_metadata(&parameters)).await else { return Listed::None };
        objects.extend(page.items.into_iter().map(|item| item.metadata));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            None => return Listed::All(objects),
            Some(_) if objects.len() >= MAX_OBJECTS => return Listed::Some(objects),
            Some(token) => parameters.continue_token = Some(token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(uid: &str) -> Node {
        let metadata = ObjectMeta {
            name: Some(format!("name-{uid}")),
            uid: Some(uid.to_owned()),
            ..ObjectMeta::default()
        };
        Node::new("v1", "Pod", &metadata)
    }

    #[test]
    fn objects_that_own_each_other_do_not_go_on_for_ever() {
        let by_owner = [("a".to_owned(), vec![node("b")]), ("b".to_owned(), vec![node("a")])].into();
        let family = Family { by_owner, ..Family::default() };
        let mut depth = 0;
        let mut below = family.children("a");
        while let Some(next) = below.pop() {
            depth += 1;
            below = next.children.unwrap_or_default();
        }
        assert_eq!(depth, MAX_DEPTH);
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let many = (0..2 * MAX_SHOWN).map(|number| node(&number.to_string())).collect();
        let family = Family { by_owner: [("a".to_owned(), many)].into(), ..Family::default() };
        assert_eq!(family.children("a").len(), MAX_SHOWN);
    }
}
