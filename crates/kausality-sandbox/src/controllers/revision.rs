//! ControllerRevisions: the templates that a StatefulSet or DaemonSet has had.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CONTROLLER_REVISIONS, Cache, Resource, Write, hash, object};

/// The label with the hash of a revision's template.
const HASH: &str = "controller.kubernetes.io/hash";

/// A template that an object has had.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    object: Arc<Value>,
}

impl Revision {
    pub(crate) fn name(&self) -> &str {
        object::name(&self.object)
    }

    pub(crate) fn hash(&self) -> &str {
        object::label(&self.object, HASH).unwrap_or_default()
    }

    /// The template, for those who make Pods from it.
    pub(crate) fn template(&self) -> Value {
        let mut template = self.object["data"]["spec"]["template"].clone();
        if let Some(fields) = template.as_object_mut() {
            fields.remove("$patch");
        }
        template
    }

    fn number(&self) -> i64 {
        object::int(&self.object["revision"])
    }
}

/// The revisions of an object.
#[derive(Debug)]
pub(crate) struct Revisions {
    /// The oldest first.
    known: Vec<Revision>,
    /// That of the present template.
    pub(crate) update: Revision,
    /// What must be written so that it is the latest.
    pub(crate) write: Option<Write>,
}

impl Revisions {
    /// Those that the cache holds; that of the present template is found, brought to the end, or made.
    pub(crate) fn of(cache: &Cache, resource: &Resource, owner: &Value) -> Self {
        let owned = cache.owned(&CONTROLLER_REVISIONS, object::uid(owner));
        let mut known: Vec<_> = owned.map(|it| Revision { object: Arc::clone(it) }).collect();
        known.sort_by(|a, b| (a.number(), a.name()).cmp(&(b.number(), b.name())));
        let template = &owner["spec"]["template"];
        let next = known.last().map(Revision::number).unwrap_or_default() + 1;
        let (update, write) = match known.iter().rev().find(|it| it.template() == *template).cloned() {
            Some(held) if held.number() + 1 == next => (held, None),
            Some(held) => {
                let mut again = (*held.object).clone();
                again["revision"] = json!(next);
                (held, Some(Write::update(&CONTROLLER_REVISIONS, again)))
            }
            None => {
                let made = make(resource, owner, next);
                (
                    Revision { object: Arc::new(made.clone()) },
                    Some(Write::create(&CONTROLLER_REVISIONS, made)),
                )
            }
        };
        Self { known, update, write }
    }

    /// The revision of a name, or that of the present template.
    pub(crate) fn named(&self, name: &str) -> &Revision {
        self.known.iter().find(|it| it.name() == name).unwrap_or(&self.update)
    }

    /// Deletions of the oldest that are not in use, beyond those that are kept to return to.
    pub(crate) fn surplus(&self, owner: &Value, in_use: impl Fn(&Revision) -> bool) -> Vec<Write> {
        let keep =
            usize::try_from(object::int_or(&owner["spec"]["revisionHistoryLimit"], 10)).unwrap_or_default();
        let idle: Vec<_> =
            self.known.iter().filter(|it| it.name() != self.update.name() && !in_use(it)).collect();
        let surplus = idle.len().saturating_sub(keep);
        idle.into_iter()
            .take(surplus)
            .map(|it| Write::delete(&CONTROLLER_REVISIONS, &it.object, None))
            .collect()
    }
}

fn make(resource: &Resource, owner: &Value, number: i64) -> Value {
    let mut template = owner["spec"]["template"].clone();
    let hash = hash::short(&template);
    let mut labels = template["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[HASH] = json!(hash);
    if template.is_object() {
        template["$patch"] = json!("replace");
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{}-{hash}", object::name(owner)),
            "namespace": object::namespace(owner),
            "labels": labels,
            "annotations": owner["metadata"]["annotations"].as_object().cloned().unwrap_or_default(),
            "ownerReferences": object::owned_by(resource, owner),
        },
        "data": { "spec": { "template": template } },
        "revision": number,
    })
}
