//! What changed between two versions of a Kubernetes object, as readable paths, and who owns which of its fields.
//!
//! ```
//! use kausality_fields::{Redaction, intent};
//! use serde_json::json;
//!
//! let old = json!({"kind": "Deployment", "spec": {"replicas": 3, "template": {"spec": {"containers": [
//!     {"name": "proxy", "image": "envoy:1.30"}, {"name": "app", "image": "shop:1.0"}]}}}});
//! let new = json!({"kind": "Deployment", "spec": {"replicas": 3, "template": {"spec": {"containers": [
//!     {"name": "app", "image": "shop:1.1"}, {"name": "proxy", "image": "envoy:1.30"}]}}}});
//!
//! let diff = intent(Some(&old), Some(&new), &Redaction::new("salt of this cluster"));
//! assert_eq!(diff.to_string(), "spec.template.spec.containers[name=app].image: shop:1.0 → shop:1.1");
//! assert_eq!(diff.hash(), intent(Some(&old), Some(&new), &Redaction::new("any")).hash());
//! ```
//!
//! [`intent`] looks at what somebody wants of an object, [`object`] at nearly all of it. Both return a [`Diff`]:
//! changes ordered by [`Path`], which can be shown, serialised, and named by a stable [`Diff::hash`].
//!
//! A [`Path`] also names what somebody owns. A [`FieldSet`] is read and written as the API server does it (FieldsV1),
//! [`managed`] is the list of them in an object. [`schema`] says what objects are made of, [`typed`] what that means
//! for the fields of a value, and [`ownership`] who owns them after an apply or an update. All of it follows the API
//! server to the byte: what is computed here is what it would store.
//!
//! # Rules of diffs
//!
//! * **Equal means equal in meaning.** Numbers compare by value (`1` is `1.0`), the order of JSON keys is nothing.
//!   `null` is a value: it differs from an absent field.
//! * **List items are matched by what identifies them.** There is no schema at hand, so the key is chosen from what
//!   is known of Kubernetes' lists by their field name, else from `name`, `key`, `id`, `type`, `uid`: the first that
//!   every item of both lists has, uniquely in each. The order of such a list is no change: Kubernetes merges
//!   these lists as maps, and controllers rewrite them in any order. Where it has an effect (`initContainers`),
//!   [`intent_and_orders`] tells of it. A few field names are known to be sets of
//!   strings (`finalizers`, `accessModes`).
//! * **All other lists are ordered.** Of equal length, they are compared by index; else the list is one change.
//! * **What is added or removed is one change**, at the highest path, with the whole value.
//! * **An absent object counts as an empty one**: CREATE adds every field that is looked at, DELETE removes it.
//! * **Depth is bounded.** A difference more than 64 steps down is reported as one change at step 64.
//! * **Secret values never get in.** A v1 Secret's values are replaced by salted digests before anything is
//!   compared ([`Redaction`]), so no rendering of a diff, present or future, can leak them.

pub mod attribution;
pub mod delegation;
mod diff;
mod encoding;
mod fieldsv1;
pub mod fight;
mod gojson;
mod key;
pub mod managed;
pub mod meaning;
pub mod owned;
pub mod ownership;
mod path;
pub mod places;
mod redact;
mod render;
mod scalar;
pub mod schema;
mod scope;
mod set;
pub mod typed;
pub mod verdict;

pub use diff::{Change, Diff, Leaf};
pub use fieldsv1::{FieldsV1Error, FieldsV1Problem};
pub use path::{Path, Step, parse as parse_path};
pub use redact::{Redaction, redact, redact_both};
pub use scalar::Scalar;
pub use set::FieldSet;

use scope::Scope;
use serde_json::Value;

/// The difference in intent: every top-level field except `apiVersion`, `kind`, `metadata` and `status`.
///
/// An absent object (CREATE, DELETE) counts as one without fields, so an object without intent, such as a plain
/// ServiceAccount, comes and goes with an empty diff.
pub fn intent(old: Option<&Value>, new: Option<&Value>, redaction: &Redaction) -> Diff {
    diff::between(Scope::Intent, old, new, redaction).0
}

/// The same, with the lists whose items are matched by key and come in another order, which is no change of any of them.
pub fn intent_and_orders(
    old: Option<&Value>,
    new: Option<&Value>,
    redaction: &Redaction,
) -> (Diff, Vec<Path>) {
    diff::between(Scope::Intent, old, new, redaction)
}

/// The difference of whole objects, except `metadata.managedFields`, `metadata.resourceVersion` and
/// `metadata.generation`: the API server changes these as bookkeeping of any other change.
pub fn object(old: Option<&Value>, new: Option<&Value>, redaction: &Redaction) -> Diff {
    diff::between(Scope::Object, old, new, redaction).0
}
