use std::{collections::BTreeMap, fmt};

use kausality_api::{annotation::PREFIX, selector::Labels};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
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
    /// The owner with `controller: true`.
    pub owner: Option<OwnerReference<'a>>,
    /// The annotations.
    pub annotations: Annotations<'a>,
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

/// An object's annotations: ours read, the others left as they stand.
#[derive(Clone, Debug, Default)]
pub struct Annotations<'a> {
    ours: BTreeMap<Text<'a>, Text<'a>>,
    others: Vec<(Text<'a>, &'a RawValue)>,
    present: bool,
}

impl<'a> Annotations<'a> {
    /// The value of one of our annotations (`kausality.io/…`).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.ours.get(key).map(|value| &**value)
    }

    /// Our annotations, ordered by name.
    pub fn ours(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ours.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether the object has an annotations map at all, be it empty.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Whether the annotations that are not ours are the same in both.
    #[must_use]
    pub fn same_others(&self, other: &Annotations<'_>) -> bool {
        self.others.len() == other.others.len()
            && self.others.iter().all(|(key, value)| {
                (other.others.iter())
                    .any(|(other_key, other_value)| **key == **other_key && value.get() == other_value.get())
            })
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
                        "deletionTimestamp" => metadata.deletion_timestamp = map.next_value()?,
                        "finalizers" => {
                            metadata.finalizers = map.next_value::<Option<_>>()?.unwrap_or_default();
                        }
                        "ownerReferences" => metadata.owner = map.next_value::<Owners<'de>>()?.0,
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

/// Finds the controlling owner among an object's owners.
struct Owners<'a>(Option<OwnerReference<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Owners<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OwnersVisitor;

        impl<'de> Visitor<'de> for OwnersVisitor {
            type Value = Owners<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of owner references")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Owners(None))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                let mut controller = None;
                while let Some(owner) = seq.next_element::<OwnerReference<'de>>()? {
                    if owner.controller == Some(true) {
                        controller = Some(owner);
                    }
                }
                Ok(Owners(controller))
            }
        }

        deserializer.deserialize_any(OwnersVisitor)
    }
}
