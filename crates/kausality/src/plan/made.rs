//! What a plan itself makes: kinds and namespaces that other objects of the plan need.

use std::collections::{HashMap, HashSet};

use kausality_fields::schema::{self, GroupVersionKind, structural};
use serde_json::Value;

use crate::manifests::Manifest;

/// What is declared in the manifests of a plan.
#[derive(Debug, Default)]
pub(super) struct Made {
    kinds: HashMap<GroupVersionKind, Definition>,
    /// The definitions by group and kind.
    definitions: HashMap<(String, String), String>,
    namespaces: HashSet<String>,
}

/// A kind that the plan defines.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) namespaced: bool,
    /// Its types, unless they make no sense.
    pub(super) types: Option<schema::Kinds>,
}

impl Made {
    pub(super) fn by(manifests: &[Manifest]) -> Self {
        let mut made = Self::default();
        for manifest in manifests {
            match (manifest.text("/apiVersion"), manifest.text("/kind")) {
                ("v1", "Namespace") => {
                    made.namespaces.insert(manifest.text("/metadata/name").to_owned());
                }
                ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => made.define(manifest),
                _ => {}
            }
        }
        made
    }

    fn define(&mut self, definition: &Manifest) {
        let (group, kind) = (definition.text("/spec/group"), definition.text("/spec/names/kind"));
        let name = definition.text("/metadata/name").to_owned();
        self.definitions.insert((group.to_owned(), kind.to_owned()), name);
        let versions = definition.object.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten().filter(|version| version["served"] != false) {
            let version = version["name"].as_str().unwrap_or_default().to_owned();
            let kind = GroupVersionKind { group: group.to_owned(), version, kind: kind.to_owned() };
            let namespaced = definition.text("/spec/scope") == "Namespaced";
            let types = structural::custom_resource(&definition.object).ok();
            self.kinds.insert(kind, Definition { namespaced, types });
        }
    }

    /// The definition of a kind in this version.
    pub(super) fn kind(&self, kind: &GroupVersionKind) -> Option<&Definition> {
        self.kinds.get(kind)
    }

    /// The name of what defines a kind, in whatever version.
    pub(super) fn definition(&self, kind: &GroupVersionKind) -> Option<&str> {
        self.definitions.get(&(kind.group.clone(), kind.kind.clone())).map(String::as_str)
    }

    pub(super) fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.contains(name)
    }
}
