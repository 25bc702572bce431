//! What every object has. The schema of a CustomResourceDefinition leaves it out, and the API server adds it.

use super::{Atom, Field, Format, List, Map, Relationship, Scalar, ScalarKind, TypeRef};
use serde_json::Value;
use std::collections::BTreeMap;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const OWNER_REFERENCE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference";
const MANAGED_FIELDS_ENTRY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

/// The fields that are added to an object, in place of what it may say of them itself.
pub(super) fn fields() -> BTreeMap<String, Field> {
    fields_of([("apiVersion", string()), ("kind", string()), ("metadata", named(OBJECT_META))])
}

/// The definitions that these fields are made of. They are open if they may have fields not declared here.
pub(super) fn definitions(open: bool) -> BTreeMap<String, Atom> {
    let object = |fields, relationship| Atom {
        map: Some(Map { fields, element: open.then(TypeRef::deduced), relationship }),
        ..Atom::default()
    };
    let free = Map {
        fields: BTreeMap::new(),
        element: Some(TypeRef::deduced()),
        relationship: Relationship::Separable,
    };
    BTreeMap::from([
        (OBJECT_META.to_owned(), object(object_meta(), Relationship::Separable)),
        (OWNER_REFERENCE.to_owned(), object(owner_reference(), Relationship::Atomic)),
        (MANAGED_FIELDS_ENTRY.to_owned(), object(managed_fields_entry(), Relationship::Separable)),
        (FIELDS_V1.to_owned(), Atom { map: Some(free), ..Atom::default() }),
        (TIME.to_owned(), scalar(ScalarKind::Untyped, Some(Format::DateTime))),
    ])
}

fn object_meta() -> BTreeMap<String, Field> {
    fields_of([
        ("annotations", map_of_strings()),
        ("creationTimestamp", named(TIME)),
        ("deletionGracePeriodSeconds", number()),
        ("deletionTimestamp", named(TIME)),
        ("finalizers", list(string(), Relationship::Separable, &[])),
        ("generateName", string()),
        ("generation", number()),
        ("labels", map_of_strings()),
        ("managedFields", list(named(MANAGED_FIELDS_ENTRY), Relationship::Atomic, &[])),
        ("name", string()),
        ("namespace", string()),
        ("ownerReferences", list(named(OWNER_REFERENCE), Relationship::Separable, &["uid"])),
        ("resourceVersion", string()),
        ("selfLink", string()),
        ("uid", string()),
    ])
}

fn owner_reference() -> BTreeMap<String, Field> {
    let mut fields = fields_of([("blockOwnerDeletion", boolean()), ("controller", boolean())]);
    // These are required, and empty by default like every required text of the API server's own types.
    for name in ["apiVersion", "kind", "name", "uid"] {
        fields.insert(name.to_owned(), Field { of: string(), default: Some(Value::from("")) });
    }
    fields
}

fn managed_fields_entry() -> BTreeMap<String, Field> {
    fields_of([
        ("apiVersion", string()),
        ("fieldsType", string()),
        ("fieldsV1", named(FIELDS_V1)),
        ("manager", string()),
        ("operation", string()),
        ("subresource", string()),
        ("time", named(TIME)),
    ])
}

fn fields_of<const N: usize>(fields: [(&str, TypeRef); N]) -> BTreeMap<String, Field> {
    fields.into_iter().map(|(name, of)| (name.to_owned(), Field { of, default: None })).collect()
}

fn named(name: &str) -> TypeRef {
    TypeRef::Named(name.to_owned(), None)
}

fn string() -> TypeRef {
    inline(scalar(ScalarKind::String, None))
}

fn number() -> TypeRef {
    inline(scalar(ScalarKind::Numeric, None))
}

fn boolean() -> TypeRef {
    inline(scalar(ScalarKind::Boolean, None))
}

fn map_of_strings() -> TypeRef {
    let map = Map { fields: BTreeMap::new(), element: Some(string()), relationship: Relationship::Separable };
    inline(Atom { map: Some(map), ..Atom::default() })
}

fn list(element: TypeRef, relationship: Relationship, keys: &[&str]) -> TypeRef {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    inline(Atom { list: Some(List { element, relationship, keys }), ..Atom::default() })
}

fn scalar(kind: ScalarKind, format: Option<Format>) -> Atom {
    Atom { scalar: Some(Scalar { kind, format }), ..Atom::default() }
}

fn inline(atom: Atom) -> TypeRef {
    TypeRef::Inline(Box::new(atom))
}
