//! A schema for tests, with one of everything.

use crate::schema::{Atom, Field, List, Map, Relationship, Scalar, ScalarKind, Schema, TypeRef};
use serde_json::json;

/// The name of the type of objects.
pub(crate) const OBJECT: &str = "object";

/// A workload, more or less.
pub(crate) fn schema() -> Schema {
    let string = || scalar(ScalarKind::String);
    let number = || scalar(ScalarKind::Numeric);
    let mount =
        object([("mountPath", string()), ("name", string()), ("readOnly", scalar(ScalarKind::Boolean))]);
    let variable = object([("name", string()), ("value", string())]);
    let mut port =
        fields([("port", number()), ("protocol", string()), ("name", string()), ("nodePort", number())]);
    port.get_mut("protocol").unwrap().default = Some(json!("TCP"));
    let container = object([
        ("name", string()),
        ("image", string()),
        ("args", list(string(), Relationship::Atomic, &[])),
        ("env", list(variable, Relationship::Separable, &["name"])),
        ("volumeMounts", list(mount, Relationship::Separable, &["mountPath"])),
    ]);
    let metadata = object([
        ("name", string()),
        ("uid", string()),
        ("resourceVersion", string()),
        ("labels", map_of(string(), Relationship::Separable)),
        ("annotations", map_of(string(), Relationship::Separable)),
        ("finalizers", list(string(), Relationship::Separable, &[])),
    ]);
    let spec = object([
        ("replicas", number()),
        ("selector", map_of(string(), Relationship::Atomic)),
        ("ports", list(struct_of(port), Relationship::Separable, &["protocol", "port"])),
        ("containers", list(container, Relationship::Separable, &["name"])),
        ("numbers", list(number(), Relationship::Separable, &[])),
        ("options", object([("a", string()), ("b", string())])),
        ("config", TypeRef::deduced()),
        ("self", TypeRef::Named(OBJECT.to_owned(), None)),
    ]);
    let condition = object([("type", string()), ("status", string())]);
    let status =
        object([("phase", string()), ("conditions", list(condition, Relationship::Separable, &["type"]))]);
    let object = fields([
        ("apiVersion", string()),
        ("kind", string()),
        ("metadata", metadata),
        ("spec", spec),
        ("status", status),
    ]);
    let mut schema = Schema::deduced();
    schema.types.insert(
        OBJECT.to_owned(),
        Atom {
            map: Some(Map { fields: object, element: None, relationship: Relationship::Separable }),
            ..Atom::default()
        },
    );
    schema
}

/// Makes the field at these names atomic.
pub(crate) fn make_atomic(schema: &mut Schema, names: [&str; 2]) {
    let mut atom = schema.types.get_mut(OBJECT).unwrap();
    for name in names {
        match &mut atom.map.as_mut().unwrap().fields.get_mut(name).unwrap().of {
            TypeRef::Inline(inner) => atom = inner,
            TypeRef::Named(name, _) => panic!("{name}"),
        }
    }
    match (&mut atom.map, &mut atom.list) {
        (Some(map), _) => map.relationship = Relationship::Atomic,
        (_, Some(list)) => list.relationship = Relationship::Atomic,
        _ => panic!("a scalar is atomic"),
    }
}

fn inline(atom: Atom) -> TypeRef {
    TypeRef::Inline(Box::new(atom))
}

fn scalar(kind: ScalarKind) -> TypeRef {
    inline(Atom { scalar: Some(Scalar { kind, format: None }), ..Atom::default() })
}

fn fields<const N: usize>(fields: [(&str, TypeRef); N]) -> std::collections::BTreeMap<String, Field> {
    fields.into_iter().map(|(name, of)| (name.to_owned(), Field { of, default: None })).collect()
}

fn struct_of(fields: std::collections::BTreeMap<String, Field>) -> TypeRef {
    inline(Atom {
        map: Some(Map { fields, element: None, relationship: Relationship::Separable }),
        ..Atom::default()
    })
}

fn object<const N: usize>(of: [(&str, TypeRef); N]) -> TypeRef {
    struct_of(fields(of))
}

fn map_of(element: TypeRef, relationship: Relationship) -> TypeRef {
    let map = Map { fields: Default::default(), element: Some(element), relationship };
    inline(Atom { map: Some(map), ..Atom::default() })
}

fn list(element: TypeRef, relationship: Relationship, keys: &[&str]) -> TypeRef {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    inline(Atom { list: Some(List { element, relationship, keys }), ..Atom::default() })
}
