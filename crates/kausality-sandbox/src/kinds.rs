//! What the API serves: kinds, their names, and the rules that differ between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use hyper::body::Bytes;
use kausality_fields::schema::{GroupVersionKind, Kinds, TypeRef};
use kausality_fields::typed::Type;
use serde_json::Value;

mod built_in;
pub(crate) mod custom;
pub(crate) mod structural;

use crate::status::Subject;

/// A resource in one version.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether the status is written through `/status`, and only there.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) generation: Generation,
    pub(crate) shape: Shape,
    /// What is stored together, whatever the group and version: `apps/deployments`.
    pub(crate) collection: String,
    /// Questions that are answered and not stored.
    pub(crate) review: bool,
    /// Whether an update need not say which version it changes.
    pub(crate) unconditional: bool,
    /// Whether an update of what is not there creates it.
    pub(crate) created_by_update: bool,
    kinds: Arc<Kinds>,
    of: TypeRef,
    /// An object before it is created.
    pub(crate) empty: Value,
}

/// Where `/scale` finds its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// What bumps `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    None,
    /// Any change outside of metadata and status.
    Intent,
    /// The same, or a change of annotations.
    IntentOrAnnotations,
    /// Any change outside of metadata.
    AllButMetadata,
}

/// What objects look like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// As the API server was built to know them, by the name of their definition.
    BuiltIn(String),
    /// As a CustomResourceDefinition says.
    Custom(custom::Version),
}

impl Definition {
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The object that messages are about.
    pub(crate) fn subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.plural.clone(), name: name.to_owned() }
    }

    /// The same, for messages that name the kind.
    pub(crate) fn kind_subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.kind.clone(), name: name.to_owned() }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.shape, Shape::Custom(_))
    }

    /// The type that managed fields are kept by.
    pub(crate) fn typed(&self) -> Type<'_> {
        Type::new(&self.kinds.schema, &self.of)
    }

    /// An object as this version has it, of what is stored.
    pub(crate) fn serve(&self, stored: &Arc<Value>) -> Arc<Value> {
        let version = self.api_version();
        if stored.get("apiVersion").and_then(Value::as_str) == Some(&version) {
            return Arc::clone(stored);
        }
        let mut object = Value::clone(stored);
        if self.is("events.k8s.io", "events") {
            rename(&mut object, EVENT_FIELDS.iter().copied());
            if let Some(event) = object.as_object_mut() {
                event.retain(|key, value| !(key.starts_with("reporting") && value == ""));
            }
        }
        set_version(&mut object, &version);
        Arc::new(object)
    }

    /// An object as it is stored.
    pub(crate) fn store(&self, mut object: Value) -> Value {
        if self.is("events.k8s.io", "events") {
            rename(&mut object, EVENT_FIELDS.iter().map(|(core, events)| (*events, *core)));
            set_version(&mut object, "v1");
        }
        if let Shape::Custom(custom) = &self.shape
            && custom.stored != self.version
        {
            set_version(&mut object, &api_version(&self.group, &custom.stored));
        }
        object
    }

    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        if self.review {
            return &["create"];
        }
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    }

    /// Subresources: name, kind, its group and version, verbs.
    pub(crate) fn subresources(&self) -> Vec<Subresource<'_>> {
        const WRITE: &[&str] = &["get", "patch", "update"];
        let mut all = Vec::new();
        if self.is("", "pods") {
            all.push(Subresource {
                name: "eviction",
                group: "policy",
                version: "v1",
                kind: "Eviction",
                verbs: &["create"],
            });
            all.push(Subresource {
                name: "binding",
                group: "",
                version: "v1",
                kind: "Binding",
                verbs: &["create"],
            });
        }
        if self.is("", "namespaces") {
            all.push(Subresource {
                name: "finalize",
                group: "",
                version: "v1",
                kind: "Namespace",
                verbs: &["update"],
            });
        }
        if self.scale.is_some() {
            all.push(Subresource {
                name: "scale",
                group: "autoscaling",
                version: "v1",
                kind: "Scale",
                verbs: WRITE,
            });
        }
        if self.status {
            all.push(Subresource {
                name: "status",
                group: &self.group,
                version: &self.version,
                kind: &self.kind,
                verbs: WRITE,
            });
        }
        all
    }
}

/// A part of a resource that is written on its own.
pub(crate) struct Subresource<'a> {
    pub(crate) name: &'static str,
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) verbs: &'static [&'static str],
}

/// Fields of core events, and their names in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename<'a>(object: &mut Value, fields: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(object) = object.as_object_mut() else { return };
    for (from, to) in fields {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

fn set_version(object: &mut Value, version: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), version.into());
    }
}

pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All that is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// By group, version and plural.
    definitions: BTreeMap<(String, String, String), Arc<Definition>>,
    /// Groups and versions that are left to other servers.
    elsewhere: BTreeSet<(String, String)>,
    told: Told,
}

/// What has been told of all that is served. Who changes that, or a copy of it, begins anew.
#[derive(Debug, Default)]
struct Told([OnceLock<Bytes>; 2]);

impl Clone for Told {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Registry {
    /// The built-in kinds: the same for all sandboxes.
    pub(crate) fn built_in() -> Self {
        static READ: OnceLock<Registry> = OnceLock::new();
        let read = READ.get_or_init(|| {
            let mut registry = Self::default();
            built_in::definitions().for_each(|definition| registry.add(definition));
            registry
        });
        read.clone()
    }

    pub(crate) fn add(&mut self, definition: Definition) {
        self.told = Told::default();
        let key = (definition.group.clone(), definition.version.clone(), definition.plural.clone());
        self.definitions.insert(key, Arc::new(definition));
    }

    /// Removes what a CustomResourceDefinition has defined.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.told = Told::default();
        self.definitions.retain(|(in_group, _, name), _| in_group != group || name != plural);
    }

    /// Leaves a group and version to another server, or takes it back.
    pub(crate) fn leave(&mut self, api: (String, String), to_another: bool) {
        self.told = Told::default();
        if to_another {
            self.elsewhere.insert(api);
        } else {
            self.elsewhere.remove(&api);
        }
    }

    /// Whether a group and version is left to another server.
    pub(crate) fn is_elsewhere(&self, group: &str, version: &str) -> bool {
        self.elsewhere.contains(&(group.to_owned(), version.to_owned()))
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// What is told of the core group or of all others, which is found out when it is first asked for.
    pub(crate) fn told(&self, core: bool, tell: impl FnOnce() -> Bytes) -> Bytes {
        let Told([of_core, of_others]) = &self.told;
        if core { of_core } else { of_others }.get_or_init(tell).clone()
    }

    /// Groups and their versions, the preferred one first.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let own = self.definitions.keys().map(|(group, version, _)| (group.as_str(), version.as_str()));
        let others = self.elsewhere.iter().map(|(group, version)| (group.as_str(), version.as_str()));
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (group, version) in own.chain(others) {
            groups.entry(group).or_default().insert(version);
        }
        let mut groups: Vec<(&str, Vec<&str>)> =
            groups.into_iter().map(|(group, versions)| (group, versions.into_iter().collect())).collect();
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        }
        groups
    }

    pub(crate) fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Definition>> {
        self.all().filter(move |definition| definition.group == group && definition.version == version)
    }
}

/// Stable versions before betas before alphas, each by number.
fn priority(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse().unwrap_or(0);
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    if let Some((major, beta)) = rest.split_once("beta") {
        return (2, number(major), number(beta));
    }
    if let Some((major, alpha)) = rest.split_once("alpha") {
        return (1, number(major), number(alpha));
    }
    if rest.parse::<u32>().is_ok() { (3, number(rest), 0) } else { (0, 0, 0) }
}

/// The name of the type of a kind.
fn type_of(kinds: &Kinds, group: &str, version: &str, kind: &str) -> Option<TypeRef> {
    let kind =
        GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
    kinds.type_of(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_share_the_built_in_kinds() {
        let (one, other) = (Registry::built_in(), Registry::built_in());
        let shared = one.all().zip(other.all()).filter(|(one, other)| Arc::ptr_eq(one, other)).count();
        assert_eq!(shared, one.all().count());
        assert!(shared > 0);
    }
}
