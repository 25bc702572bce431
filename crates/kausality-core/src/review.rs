//! An `AdmissionReview`, borrowed from its bytes.
//!
//! One pass over the text finds what decisions need; everything else (specs, managed fields, labels) stays
//! a slice of the text until a rule asks for it. The API server encodes `object` and `oldObject` with one
//! encoder, so equal slices are equal values and most comparisons are a `memcmp`.

use std::{collections::BTreeSet, fmt, ops::Deref, sync::OnceLock};

use kausality_api::annotation::Suffix;
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    intent::IntentHash,
    status::{self, Reading, Rules},
    summary::group,
};

mod metadata;
mod text;

pub use metadata::{Annotations, Metadata, OwnerReference};
pub use text::Text;

/// Why a text is no review.
#[derive(Debug, thiserror::Error)]
pub enum BadReview {
    /// It is not UTF-8.
    #[error("not UTF-8: {0}")]
    NotUtf8(#[from] std::str::Utf8Error),
    /// It is not JSON, or has fields of other types than the API server writes.
    #[error("not an AdmissionReview: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It is another kind of object.
    #[error("not an AdmissionReview but apiVersion {api_version:?}, kind {kind:?}")]
    OtherKind {
        /// What it says it is.
        api_version: String,
        /// What it says it is.
        kind: String,
    },
    /// It holds no request: an answer, perhaps.
    #[error("an AdmissionReview without a request")]
    NoRequest,
    /// The request lacks the object that its operation is about.
    #[error("{operation} without {missing}")]
    NoObject {
        /// The operation.
        operation: &'static str,
        /// The missing field.
        missing: &'static str,
    },
}

/// A review, with the text it was read from.
#[derive(Debug)]
pub struct Review<'a> {
    /// The text.
    pub text: &'a str,
    /// The request in it.
    pub request: Request<'a>,
}

impl<'a> Review<'a> {
    /// Reads a review.
    ///
    /// # Errors
    /// If the bytes are none: see [`BadReview`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadReview> {
        let text = std::str::from_utf8(bytes)?;
        let envelope: Envelope<'a> = serde_json::from_str(text)?;
        if envelope.kind != "AdmissionReview" || envelope.api_version != "admission.k8s.io/v1" {
            return Err(BadReview::OtherKind {
                api_version: kausality_api::text::shorten(&envelope.api_version, 80),
                kind: kausality_api::text::shorten(&envelope.kind, 80),
            });
        }
        let request = envelope.request.ok_or(BadReview::NoRequest)?;
        request.check()?;
        Ok(Self { text, request })
    }

    /// Reads `object` and `oldObject` once more, as whole values.
    #[must_use]
    pub fn values(&self) -> Values {
        #[derive(Deserialize)]
        struct Whole {
            request: Values,
        }
        serde_json::from_str::<Whole>(self.text).map(|whole| whole.request).unwrap_or_default()
    }
}

impl Review<'_> {
    /// The request as it was sent, without its objects.
    #[must_use]
    pub fn request_alone(&self) -> serde_json::Value {
        #[derive(Deserialize)]
        struct Whole<'a> {
            #[serde(borrow)]
            request: std::collections::BTreeMap<String, &'a RawValue>,
        }
        let whole = serde_json::from_str::<Whole<'_>>(self.text).ok();
        let fields = whole.map(|whole| whole.request).unwrap_or_default().into_iter();
        fields
            .filter(|(key, _)| key != "object" && key != "oldObject")
            .filter_map(|(key, raw)| Some((key, serde_json::from_str::<serde_json::Value>(raw.get()).ok()?)))
            .collect()
    }
}

impl Review<'_> {
    /// The Pod that an eviction is about, by namespace and name.
    #[must_use]
    pub fn evicted(&self) -> Option<(&str, &str)> {
        let request = &self.request;
        let is_eviction = request.operation == Operation::Create
            && request.sub_resource == "eviction"
            && request.resource.group.is_empty()
            && request.resource.resource == "pods";
        is_eviction.then_some((&*request.namespace, &*request.name))
    }

    /// An eviction as a review of what it does: the Pod, as it is stored, is deleted.
    #[must_use]
    pub fn as_deletion_of(&self, pod: &serde_json::Value) -> Vec<u8> {
        let mut request = self.request_alone();
        for (field, value) in [
            ("operation", "DELETE".into()),
            ("subResource", "".into()),
            ("requestSubResource", "eviction".into()),
            ("kind", serde_json::json!({"group": "", "version": "v1", "kind": "Pod"})),
            ("oldObject", pod.clone()),
        ] {
            request[field] = value;
        }
        serde_json::json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
            .to_string()
            .into_bytes()
    }
}

/// The objects of a request as whole values.
#[derive(Debug, Default, Deserialize)]
pub struct Values {
    /// The object as it will be.
    pub object: Option<serde_json::Value>,
    /// The object as it is stored.
    #[serde(rename = "oldObject")]
    pub old_object: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

/// What the API server asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Names the request.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// The kind of `object`.
    #[serde(borrow)]
    pub kind: GroupVersionKind<'a>,
    /// The resource that is written to.
    #[serde(borrow)]
    pub resource: GroupVersionResource<'a>,
    /// `status`, `scale` and so on; empty for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Text<'a>,
    /// The subresource that the client wrote to: of a review [as a deletion](Review::as_deletion_of), that of the eviction.
    #[serde(borrow, default)]
    pub request_sub_resource: Text<'a>,
    /// The object's name; empty on CREATE with `generateName`.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// The object's namespace; empty for cluster-scoped kinds.
    #[serde(borrow, default)]
    pub namespace: Text<'a>,
    /// What is done.
    pub operation: Operation,
    /// Who does it.
    #[serde(borrow, default)]
    pub user_info: UserInfo<'a>,
    /// The object as it will be.
    #[serde(borrow, default)]
    pub object: Option<Object<'a>>,
    /// The object as it is stored.
    #[serde(borrow, default)]
    pub old_object: Option<Object<'a>>,
    /// Whether this is a trial.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// How it is done.
    #[serde(borrow, default)]
    pub options: Option<Options<'a>>,
}

impl Request<'_> {
    fn check(&self) -> Result<(), BadReview> {
        let missing = match self.operation {
            Operation::Create if self.object.is_none() => "object",
            Operation::Update if self.object.is_none() => "object",
            Operation::Update if self.old_object.is_none() => "oldObject",
            Operation::Delete if self.old_object.is_none() => "oldObject",
            _ => return Ok(()),
        };
        Err(BadReview::NoObject { operation: self.operation.as_str(), missing })
    }

    /// Whether its body is an object of another kind, with other labels, which selectors of objects are held against.
    pub(crate) fn is_by_another_kind(&self) -> bool {
        self.sub_resource == "scale" || self.request_sub_resource == "eviction"
    }

    /// Whether nothing must come of it.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or_default()
    }

    /// Who sends it, for people: the user name, else the uid.
    #[must_use]
    pub fn user(&self) -> &str {
        if self.user_info.username.is_empty() { &self.user_info.uid } else { &self.user_info.username }
    }
}

/// A kind.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct GroupVersionKind<'a> {
    /// Its API group; empty for the core group.
    #[serde(borrow, default)]
    pub group: Text<'a>,
    /// Its version.
    #[serde(borrow, default)]
    pub version: Text<'a>,
    /// Its name.
    #[serde(borrow, default)]
    pub kind: Text<'a>,
}

/// A resource.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct GroupVersionResource<'a> {
    /// Its API group; empty for the core group.
    #[serde(borrow, default)]
    pub group: Text<'a>,
    /// Its version.
    #[serde(borrow, default)]
    pub version: Text<'a>,
    /// Its plural name.
    #[serde(borrow, default)]
    pub resource: Text<'a>,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to it: not a change.
    Connect,
}

impl Operation {
    /// The word that the API server uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A user, as the API server authenticated them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UserInfo<'a> {
    /// The name.
    #[serde(borrow, default)]
    pub username: Text<'a>,
    /// The uid, where there is one.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// The groups.
    #[serde(borrow, default)]
    pub groups: Option<Vec<Text<'a>>>,
    /// Many groups, once somebody has looked for one of them.
    #[serde(skip)]
    pub(crate) sorted: OnceLock<BTreeSet<String>>,
}

/// Groups that are looked through one by one.
const FEW_GROUPS: usize = 16;

impl UserInfo<'_> {
    /// Whether the user is in a group. Rules may ask for thousands.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        let groups = self.groups.as_deref().unwrap_or_default();
        if groups.len() <= FEW_GROUPS {
            return groups.iter().any(|known| *known == *group);
        }
        self.sorted.get_or_init(|| groups.iter().map(ToString::to_string).collect()).contains(group)
    }
}

/// The options of a request, as far as they matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options<'a> {
    /// The field manager that the client named.
    #[serde(borrow, default)]
    pub field_manager: Text<'a>,
    /// Of a DELETE: what becomes of the children.
    #[serde(borrow, default)]
    pub propagation_policy: Text<'a>,
    /// Of a DELETE: how long the object has.
    #[serde(default)]
    pub grace_period_seconds: Option<i64>,
}

/// An object: what it says of itself, what is wanted (`intent`), and what is (`status`).
#[derive(Clone, Debug, Default)]
pub struct Object<'a> {
    /// Its apiVersion.
    pub api_version: Text<'a>,
    /// Its kind.
    pub kind: Text<'a>,
    /// Its metadata.
    pub metadata: Metadata<'a>,
    /// Its status, unread.
    pub status: Option<&'a RawValue>,
    /// Every other field, unread, in the order of the text.
    pub intent: Intent<'a>,
    rules: Rules,
    reading: OnceLock<Reading>,
}

/// What is wanted of an object: everything but apiVersion, kind, metadata and status.
#[derive(Clone, Debug, Default)]
pub struct Intent<'a> {
    fields: Vec<(Text<'a>, &'a RawValue)>,
    hash: OnceLock<IntentHash>,
}

impl<'a> Deref for Intent<'a> {
    type Target = [(Text<'a>, &'a RawValue)];

    fn deref(&self) -> &Self::Target {
        &self.fields
    }
}

impl<'a> Intent<'a> {
    /// Its hash, which is made once.
    #[must_use]
    pub fn hash(&self) -> IntentHash {
        *self.hash.get_or_init(|| IntentHash::of(self))
    }

    /// The field of this name, `spec` mostly.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a RawValue> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

impl<'a> Object<'a> {
    /// Reads one object.
    ///
    /// # Errors
    /// If the text is no JSON object with Kubernetes metadata.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The suffix of its own facts.
    #[must_use]
    pub fn suffix(&self) -> Suffix {
        let Metadata { generate_name, name, namespace, .. } = &self.metadata;
        suffix(&self.api_version, &self.kind, namespace, generate_name, name)
    }

    /// Has its status read by the rules that policies have for its kind.
    pub fn read_by(&mut self, rules: Rules) {
        if self.rules != rules {
            (self.rules, self.reading) = (rules, OnceLock::new());
        }
    }

    /// The rules by which its status is read.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What its status says, which is found out once.
    #[must_use]
    pub fn reading(&self) -> &Reading {
        self.reading.get_or_init(|| status::read(self, self.status, &self.rules))
    }

    /// What it would say of itself with this status.
    #[must_use]
    pub fn reading_with(&self, status: Option<&RawValue>) -> Reading {
        match (self.status, status) {
            (Some(own), Some(status)) if own.get() == status.get() => self.reading().clone(),
            _ => status::read(self, status, &self.rules),
        }
    }
}

fn suffix(api_version: &str, kind: &str, namespace: &str, generate_name: &str, name: &str) -> Suffix {
    let name = if generate_name.is_empty() { name } else { generate_name };
    Suffix::of(group(api_version), kind, namespace, name)
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Kubernetes object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut object = Object::default();
                let mut seen_metadata = false;
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "apiVersion" => object.api_version = map.next_value()?,
                        "kind" => object.kind = map.next_value()?,
                        "metadata" if seen_metadata => return Err(de::Error::duplicate_field("metadata")),
                        "metadata" => {
                            object.metadata = map.next_value::<Option<Metadata<'de>>>()?.unwrap_or_default();
                            seen_metadata = true;
                        }
                        "status" => object.status = Some(map.next_value()?),
                        _ => object.intent.fields.push((key, map.next_value()?)),
                    }
                }
                let Object { api_version, kind, metadata, .. } = &mut object;
                let Metadata { annotations, generate_name, name, namespace, .. } = metadata;
                annotations.claim(|| suffix(api_version, kind, namespace, generate_name, name));
                Ok(object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Skips a value of any kind.
fn skip<'de, M: MapAccess<'de>>(map: &mut M) -> Result<(), M::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

#[cfg(test)]
mod tests;
