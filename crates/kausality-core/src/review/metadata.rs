use std::{collections::BTreeMap, fmt};

use kausality_api::{
    annotation::{self, Owner, PREFIX, Suffix},
    selector::Labels,
};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Text, skip};
use crate::summary::group;

/// As much of an object's metadata as decisions need.
#[derive(Clone, Debug, Default)]
pub struct Metadata<'a> {
    /// The name; empty on CREATE with `generateName`.
    pub name: Text<'a>,
    /// What the name will start with.
    pub generate_name: Text<'a>,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Text<'a>,
    /// The uid; empty on CREATE.
    pub uid: Text<'a>,
    /// The version of what is stored.
    pub resource_version: Text<'a>,
    /// Counts changes of intent, on kinds that do so.
    pub generation: Option<i64>,
    /// Set once deletion has begun.
    pub deletion_timestamp: Option<Text<'a>>,
    /// What must be done before the object can go.
    pub finalizers: Vec<Text<'a>>,
    /// When it was created; empty on CREATE.
    pub creation_timestamp: Option<Text<'a>>,
    /// The owner with `controller: true`.
    pub owner: Option<OwnerReference<'a>>,
    /// The owner, if there is just one, and it does not control the object.
    pub only_owner: Option<OwnerReference<'a>>,
    /// The annotations.
    pub annotations: Annotations<'a>,
    /// All owners, unread.
    owners: Option<&'a RawValue>,
    pub(crate) labels: Option<&'a RawValue>,
    pub(crate) managed_fields: Option<&'a RawValue>,
}

impl Metadata<'_> {
    /// Whether deletion has begun.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The name, or what it will start with.
    #[must_use]
    pub fn any_name(&self) -> &str {
        if self.name.is_empty() { &self.generate_name } else { &self.name }
    }

    /// Whether the same objects own both, in whichever versions and order they are named, and the same one controls them.
    pub(crate) fn same_owners(&self, other: &Self) -> bool {
        let owners = |metadata: &Self| {
            let owners =
                metadata.owners.map(|raw| serde_json::from_str::<Option<Vec<OwnerReference<'_>>>>(raw.get()));
            let mut owners = owners.and_then(Result::ok).flatten().unwrap_or_default();
            let key = |owner: &OwnerReference<'_>| {
                let [kind, name, uid] = [&owner.kind, &owner.name, &owner.uid].map(ToString::to_string);
                (group(&owner.api_version).to_owned(), kind, name, uid, owner.controller == Some(true))
            };
            owners.sort_by_cached_key(key);
            owners.iter().map(key).collect::<Vec<_>>()
        };
        self.owners.map(RawValue::get) == other.owners.map(RawValue::get) || owners(self) == owners(other)
    }

    /// The labels. What is not a map of strings counts as none.
    #[must_use]
    pub fn labels(&self) -> Labels {
        self.labels.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// The owner that controls an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    /// The owner's apiVersion.
    #[serde(borrow, default)]
    pub api_version: Text<'a>,
    /// The owner's kind.
    #[serde(borrow, default)]
    pub kind: Text<'a>,
    /// The owner's name.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// The owner's uid.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    #[serde(default)]
    controller: Option<bool>,
}

impl OwnerReference<'_> {
    /// Whether both are the same object, in whichever version they are named.
    #[must_use]
    pub fn is_same(&self, other: &OwnerReference<'_>) -> bool {
        group(&self.api_version) == group(&other.api_version)
            && (&*self.kind, &*self.name, &*self.uid) == (&*other.kind, &*other.name, &*other.uid)
    }
}

/// An object's annotations: ours read, under their plain names; all others left as they stand.
#[derive(Clone, Debug, Default)]
pub struct Annotations<'a> {
    ours: BTreeMap<Text<'a>, Text<'a>>,
    /// With our prefix, but neither this object's facts nor people's: copies of another object's facts, for instance.
    strays: BTreeMap<Text<'a>, Text<'a>>,
    others: Vec<(Text<'a>, &'a RawValue)>,
    present: bool,
}

/// What kubectl remembers of the manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl<'a> Annotations<'a> {
    /// The value of one of our annotations (`kausality.io/…`).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.ours.get(key).map(|value| &**value)
    }

    /// The value of an annotation that is not ours.
    pub(crate) fn other(&self, key: &str) -> Option<String> {
        let (_, value) = self.others.iter().find(|(other, _)| **other == *key)?;
        serde_json::from_str(value.get()).ok()
    }

    /// Whether others than ours differ, but for kubectl's record of what was applied.
    pub(crate) fn differ(&self, before: &Self) -> bool {
        let told = |annotations: &Self| -> BTreeMap<String, String> {
            let others = annotations.others.iter().filter(|(key, _)| **key != *LAST_APPLIED);
            others.map(|(key, value)| (key.to_string(), value.get().to_owned())).collect()
        };
        told(self) != told(before)
    }

    /// Tells this object's facts from copies of another's.
    pub(super) fn claim(&mut self, suffix: impl FnOnce() -> Suffix) {
        if self.ours.is_empty() {
            return;
        }
        let suffix = suffix();
        for (key, value) in std::mem::take(&mut self.ours) {
            if let Some(fact) = suffix.fact(&key) {
                self.ours.insert(fact.into(), value);
            } else if annotation::owner(&key) == Owner::User {
                self.ours.insert(key, value);
            } else {
                self.strays.insert(key, value);
            }
        }
    }

    /// Our annotations, ordered by name.
    pub fn ours(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ours.iter().map(|(key, value)| (&**key, &**value))
    }

    /// The names with our prefix that are neither this object's facts nor people's.
    pub(crate) fn strays(&self) -> impl Iterator<Item = &str> {
        self.strays.keys().map(|key| &**key)
    }

    /// The annotations that are not ours, unread.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.others.iter().map(|(key, value)| (&**key, *value))
    }

    /// The size of the annotations that are not ours, names and values.
    pub(crate) fn size_of_others(&self) -> usize {
        let others = self.others.iter().map(|(key, value)| key.len() + value.get().len());
        let strays = self.strays.iter().map(|(key, value)| key.len() + value.len());
        others.chain(strays).sum()
    }

    /// Whether the object has an annotations map at all, be it empty.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Whether the annotations that are not ours are the same in both.
    #[must_use]
    pub fn same_others(&self, other: &Annotations<'_>) -> bool {
        self.strays == other.strays && same_pairs(&self.others, &other.others)
    }

    /// Sets one of our annotations, for shells that keep them beside the object.
    pub fn set(&mut self, key: impl Into<Text<'a>>, value: impl Into<Text<'a>>) {
        self.ours.insert(key.into(), value.into());
    }

    /// Removes one of our annotations, for shells that keep them beside the object.
    pub fn remove(&mut self, key: &str) {
        self.ours.remove(key);
    }
}

/// Whether both hold the same pairs. An API server sorts them, so that order tells at once; anybody else need not.
fn same_pairs(left: &[(Text<'_>, &RawValue)], right: &[(Text<'_>, &RawValue)]) -> bool {
    fn texts<'t>(pairs: &'t [(Text<'_>, &'t RawValue)]) -> impl Iterator<Item = (&'t str, &'t str)> {
        pairs.iter().map(|(key, value)| (&**key, value.get()))
    }
    let sorted = |pairs| {
        let mut pairs: Vec<(&str, &str)> = texts(pairs).collect();
        pairs.sort_unstable();
        pairs
    };
    left.len() == right.len() && (texts(left).eq(texts(right)) || sorted(left) == sorted(right))
}

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnnotationsVisitor;

        impl<'de> Visitor<'de> for AnnotationsVisitor {
            type Value = Annotations<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of annotations")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Annotations::default())
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut annotations = Annotations { present: true, ..Annotations::default() };
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if key.starts_with(PREFIX) {
                        annotations.ours.insert(key, map.next_value()?);
                    } else {
                        annotations.others.push((key, map.next_value()?));
                    }
                }
                Ok(annotations)
            }
        }

        deserializer.deserialize_any(AnnotationsVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetadataVisitor;

        impl<'de> Visitor<'de> for MetadataVisitor {
            type Value = Metadata<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object's metadata")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut metadata = Metadata::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "name" => metadata.name = map.next_value()?,
                        "generateName" => metadata.generate_name = map.next_value()?,
                        "namespace" => metadata.namespace = map.next_value()?,
                        "uid" => metadata.uid = map.next_value()?,
                        "resourceVersion" => metadata.resource_version = map.next_value()?,
                        "generation" => metadata.generation = map.next_value()?,
                        "creationTimestamp" => metadata.creation_timestamp = map.next_value()?,
                        "deletionTimestamp" => metadata.deletion_timestamp = map.next_value()?,
                        "finalizers" => {
                            metadata.finalizers = map.next_value::<Option<_>>()?.unwrap_or_default();
                        }
                        "ownerReferences" => {
                            let owners: &RawValue = map.next_value()?;
                            let Owners { controller, only } =
                                serde_json::from_str(owners.get()).map_err(de::Error::custom)?;
                            metadata.owners = Some(owners);
                            (metadata.owner, metadata.only_owner) = (controller, only);
                        }
                        "annotations" => metadata.annotations = map.next_value()?,
                        "labels" => metadata.labels = Some(map.next_value()?),
                        "managedFields" => metadata.managed_fields = Some(map.next_value()?),
                        _ => skip(&mut map)?,
                    }
                }
                Ok(metadata)
            }
        }

        deserializer.deserialize_map(MetadataVisitor)
    }
}

/// Finds the controlling owner among an object's owners, and the only one, if that does not control it.
#[derive(Default)]
struct Owners<'a> {
    controller: Option<OwnerReference<'a>>,
    only: Option<OwnerReference<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Owners<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OwnersVisitor;

        impl<'de> Visitor<'de> for OwnersVisitor {
            type Value = Owners<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of owner references")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Owners::default())
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                let (mut owners, mut count) = (Owners::default(), 0);
                while let Some(owner) = seq.next_element::<OwnerReference<'de>>()? {
                    count += 1;
                    if owner.controller == Some(true) {
                        owners.controller = Some(owner);
                    } else {
                        owners.only = Some(owner);
                    }
                }
                owners.only = owners.only.filter(|_| count == 1);
                Ok(owners)
            }
        }

        deserializer.deserialize_any(OwnersVisitor)
    }
}
