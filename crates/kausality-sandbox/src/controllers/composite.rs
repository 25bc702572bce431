//! A small controller for custom resources: children from templates, and a status.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    Cache, Change, Controller, Key, Outcome, Propagation, Resource, Time, Watched, Write,
    conditions::{self, Condition},
    object,
};

/// A controller that makes children from a parent's spec, as a cloud operator would: an EKSCluster's NodePool and
/// ConfigMap, say. It reverts what others do to them, deletes those it knows no template for, and writes the parent's
/// status: `observedGeneration` and `Ready`.
#[derive(Debug)]
pub struct Composite {
    name: String,
    user: String,
    parent: Resource,
    children: Vec<Child>,
    version: u64,
    manner: Manner,
}

/// How a controller speaks of what it does. Operators differ.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// It says in `observedGeneration` what it has seen.
    pub tells_generation: bool,
    /// It takes `Ready` back whenever it has to write to a child, not only after a change of its parent.
    pub flaps: bool,
    /// It reports a change of its parent as done before it writes any child.
    pub reports_first: bool,
    /// It copies the parent's annotations to the children whenever they differ.
    pub copies_annotations: bool,
    /// It writes its version into the parent's `spec.version` before it acts on it.
    pub writes_spec: bool,
    /// It writes no status: another loop of the same operator does.
    pub is_silent: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            tells_generation: true,
            flaps: false,
            reports_first: false,
            copies_annotations: false,
            writes_spec: false,
            is_silent: false,
        }
    }
}

/// A template of a child. In its texts, `$(spec.size)` stands for that field of the parent, `$(metadata.name)` for its
/// name, and `$(version)` for the version of the controller. A text that is nothing else takes the value as it is, a
/// number as a number.
#[derive(Clone, Debug)]
pub struct Child {
    /// What it is.
    pub resource: Resource,
    /// Its `metadata` and all that its controller decides. Fields that are not in here are left to others.
    pub template: Value,
}

impl Composite {
    /// A controller of a name, which acts as a user, for a resource.
    pub fn new(name: &str, user: &str, parent: Resource, children: Vec<Child>) -> Self {
        Self {
            name: name.to_owned(),
            user: user.to_owned(),
            parent,
            children,
            version: 1,
            manner: Manner::default(),
        }
    }

    /// Upgrades the controller: whatever in its templates depends on the version changes although no parent has. The
    /// driver has it look at everything again ([`Cache::all`]).
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Has the controller speak otherwise of what it does.
    pub fn set_manner(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// Gives the controller other templates.
    pub fn set_children(&mut self, children: Vec<Child>) {
        self.children = children;
    }

    fn writes(&self, cache: &Cache, parent: &Value) -> Vec<Write> {
        let mut writes = Vec::new();
        let mut wanted = BTreeSet::new();
        for child in &self.children {
            let mut desired = self.fill(&child.template, parent);
            desired["apiVersion"] = json!(child.resource.api_version());
            desired["kind"] = json!(child.resource.kind);
            if child.resource.namespaced && self.parent.namespaced {
                object::entry(&mut desired, "metadata")["namespace"] = json!(object::namespace(parent));
            }
            if let Some(copied) = parent["metadata"]["annotations"].as_object()
                && self.manner.copies_annotations
            {
                let annotations = object::entry(object::entry(&mut desired, "metadata"), "annotations");
                lay(annotations, &Value::Object(copied.clone()));
            }
            let key = child.resource.key_of(&desired);
            match cache.at(&key) {
                None => {
                    desired["metadata"]["ownerReferences"] = object::owned_by(&self.parent, parent);
                    writes.push(Write::create(&child.resource, desired));
                }
                Some(held) => {
                    let mine = object::controller(held).is_some_and(|it| it.uid() == object::uid(parent));
                    if mine && !object::deleting(held) && !covers(held, &desired) {
                        let mut copy = (**held).clone();
                        lay(&mut copy, &desired);
                        writes.push(Write::update(&child.resource, copy));
                    }
                }
            }
            wanted.insert(key);
        }
        let resources: BTreeSet<_> = self.children.iter().map(|child| &child.resource).collect();
        for resource in resources {
            for held in cache.owned(resource, object::uid(parent)) {
                if !wanted.contains(&resource.key_of(held)) && !object::deleting(held) {
                    writes.push(Write::delete(resource, held, Some(Propagation::Background)));
                }
            }
        }
        writes
    }

    /// The status after a pass that had to write, or had nothing to write.
    fn status(&self, parent: &Value, wrote: bool, now: Time) -> Option<Value> {
        let mut status = match &parent["status"] {
            Value::Object(fields) => Value::Object(fields.clone()),
            _ => Value::Object(Map::new()),
        };
        let generation = object::generation(parent);
        // Most of those who correct children of a parent that is done do not tell.
        if wrote && !self.manner.flaps && object::int(&status["observedGeneration"]) == generation {
            return None;
        }
        if self.manner.tells_generation {
            status["observedGeneration"] = json!(generation);
        }
        let (state, reason, message) = if wrote {
            ("False", "Reconciling", "children are being written")
        } else {
            ("True", "Available", "all children are as they should be")
        };
        let condition = Condition { kind: "Ready", status: state, reason, message: message.to_owned() };
        conditions::set_plain(&mut status, &condition, now);
        (status != parent["status"]).then_some(status)
    }

    /// A template with the parent's values in it.
    fn fill(&self, template: &Value, parent: &Value) -> Value {
        match template {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.fill(value, parent)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().map(|item| self.fill(item, parent)).collect(),
            Value::String(text) => self.fill_text(text, parent),
            other => other.clone(),
        }
    }

    fn fill_text(&self, text: &str, parent: &Value) -> Value {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, (path, after))) =
            rest.split_once("$(").and_then(|(before, tail)| Some((before, tail.split_once(')')?)))
        {
            let value = self.value(path, parent);
            if before.is_empty() && after.is_empty() && filled.is_empty() {
                return value;
            }
            filled.push_str(before);
            filled.push_str(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            rest = after;
        }
        filled.push_str(rest);
        Value::String(filled)
    }

    fn value(&self, path: &str, parent: &Value) -> Value {
        if path == "version" {
            return json!(self.version);
        }
        path.split('.').fold(parent, |value, field| &value[field]).clone()
    }
}

impl Controller for Composite {
    fn name(&self) -> &str {
        &self.name
    }

    fn user(&self) -> String {
        self.user.clone()
    }

    fn watches(&self) -> Watched {
        let children = self.children.iter().map(|child| child.resource.clone());
        let all: BTreeSet<_> = children.chain([self.parent.clone()]).collect();
        Watched::These(all.into_iter().collect())
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        let mut keys = Vec::new();
        if change.resource == self.parent {
            keys.push(change.key());
        }
        for it in [&change.before, &change.after].into_iter().flatten() {
            let owner =
                object::controller(it).filter(|owner| self.parent.is(owner.api_version(), owner.kind()));
            keys.extend(owner.map(|owner| self.parent.key(object::namespace(it), owner.name())));
        }
        keys.dedup();
        keys
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let Some(parent) = cache.at(key).filter(|parent| !object::deleting(parent)) else {
            return Outcome::default();
        };
        if self.manner.writes_spec && parent["spec"]["version"] != json!(self.version) {
            let mut copy = (**parent).clone();
            copy["spec"]["version"] = json!(self.version);
            if copy["status"].is_null() {
                // A typed client sends an empty one along, and the API server leaves it out.
                copy["status"] = json!({"conditions": []});
            }
            return Outcome::writes(vec![Write::update(&self.parent, copy)]);
        }
        let report = |wrote: bool| {
            let status = self.status(parent, wrote, now).filter(|_| !self.manner.is_silent)?;
            Some(Write::update_status(&self.parent, object::with_status(parent, status)))
        };
        let is_new = object::int(&parent["status"]["observedGeneration"]) != object::generation(parent);
        if self.manner.reports_first && is_new {
            // The children follow when it sees its own report.
            return Outcome::writes(report(false).into_iter().collect());
        }
        let mut writes = self.writes(cache, parent);
        writes.extend(report(!writes.is_empty()));
        Outcome::writes(writes)
    }
}

/// Whether an object has all that is desired. What the API server adds to the items of a list does not matter either.
fn covers(held: &Value, desired: &Value) -> bool {
    match (held, desired) {
        (Value::Object(held), Value::Object(desired)) => {
            desired.iter().all(|(key, value)| held.get(key).is_some_and(|held| covers(held, value)))
        }
        (Value::Array(held), Value::Array(desired)) => {
            held.len() == desired.len() && held.iter().zip(desired).all(|(held, value)| covers(held, value))
        }
        _ => held == desired,
    }
}

/// Lays what is desired over an object.
fn lay(held: &mut Value, desired: &Value) {
    match (held, desired) {
        (Value::Object(held), Value::Object(desired)) => {
            for (key, value) in desired {
                lay(held.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(held), Value::Array(desired)) if held.len() == desired.len() => {
            held.iter_mut().zip(desired).for_each(|(held, value)| lay(held, value));
        }
        (held, desired) => *held = desired.clone(),
    }
}
