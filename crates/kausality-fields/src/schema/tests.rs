//! Resolving types, and a short way to write them for the tests of their sources.

use super::{
    Atom, Field, GroupVersionKind, Kinds, List, Map, Relationship, Scalar, ScalarKind, Schema, TypeRef,
};
use std::collections::BTreeMap;

/// A type as text: its shapes, with `!` at those owned as a whole and `*` for fields not declared.
pub(super) fn show(atom: &Atom) -> String {
    let scalar = atom.scalar.map(|Scalar { kind, format }| {
        format!("{kind:?}{}", format.map(|format| format!(" as {format:?}")).unwrap_or_default())
    });
    let list = atom.list.as_ref().map(|list| {
        let keys = list.keys.join(",");
        format!("[{}{}]{}", show_type(&list.element), by(&keys), mark(list.relationship))
    });
    let map = atom.map.as_ref().map(|map| {
        let fields = map.fields.iter().map(|(name, field)| {
            let default = field.default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
            format!("{name}: {}{default}", show_type(&field.of))
        });
        let others = map.element.iter().map(|element| format!("*: {}", show_type(element)));
        let fields = fields.chain(others).collect::<Vec<_>>().join(", ");
        format!("{{{fields}}}{}", mark(map.relationship))
    });
    [scalar, list, map].into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

fn show_type(of: &TypeRef) -> String {
    match of {
        TypeRef::Named(name, relationship) => {
            let name = name.replace("__untyped_atomic_", "untyped").replace("__untyped_deduced_", "deduced");
            format!("{name}{}", relationship.map(|it| format!(" {it:?}")).unwrap_or_default())
        }
        TypeRef::Inline(atom) => show(atom),
    }
}

fn by(keys: &str) -> String {
    if keys.is_empty() { String::new() } else { format!(" by {keys}") }
}

fn mark(relationship: Relationship) -> &'static str {
    match relationship {
        Relationship::Atomic => "!",
        Relationship::Separable => "",
    }
}

fn schema(definitions: impl IntoIterator<Item = (&'static str, Atom)>) -> Schema {
    Schema { types: definitions.into_iter().map(|(name, atom)| (name.to_owned(), atom)).collect() }
}

fn text() -> Atom {
    Atom { scalar: Some(Scalar { kind: ScalarKind::String, format: None }), ..Atom::default() }
}

fn list(relationship: Relationship) -> List {
    List { element: TypeRef::Inline(Box::new(text())), relationship, keys: vec!["name".to_owned()] }
}

fn map(relationship: Relationship) -> Map {
    let child = Field { of: TypeRef::Named("node".to_owned(), None), default: None };
    Map { fields: BTreeMap::from([("child".to_owned(), child)]), element: None, relationship }
}

fn named(name: &str, relationship: impl Into<Option<Relationship>>) -> TypeRef {
    TypeRef::Named(name.to_owned(), relationship.into())
}

#[test]
fn a_type_is_resolved_by_name_or_inline() {
    let schema = schema([("text", text())]);
    let inline = TypeRef::Inline(Box::new(text()));
    assert_eq!(schema.resolve(&named("text", None)), schema.resolve(&inline));
    assert_eq!(schema.resolve(&named("text", None)).unwrap().scalar, text().scalar);
    assert_eq!(schema.resolve(&named("other", None)), None);
}

#[test]
fn a_use_may_replace_the_relationship() {
    use Relationship::{Atomic, Separable};
    let schema = schema([
        ("list", Atom { list: Some(list(Separable)), ..Atom::default() }),
        ("map", Atom { map: Some(map(Atomic)), ..Atom::default() }),
    ]);
    let list = |by| schema.resolve(&named("list", by)).unwrap().list.unwrap().relationship;
    let map = |by| schema.resolve(&named("map", by)).unwrap().map.unwrap().relationship;
    assert_eq!([list(None), list(Some(Atomic))], [Separable, Atomic]);
    assert_eq!([map(None), map(Some(Separable))], [Atomic, Separable]);
}

#[test]
fn of_an_object_or_list_only_the_object_takes_the_relationship() {
    use Relationship::{Atomic, Separable};
    let both = Atom { list: Some(list(Separable)), map: Some(map(Separable)), ..text() };
    let schema = schema([("both", both)]);
    let of = named("both", Atomic);
    let resolved = schema.resolve(&of).unwrap();
    assert_eq!(resolved.map.unwrap().relationship, Atomic);
    assert_eq!(resolved.list.unwrap().relationship, Separable);
    assert_eq!(resolved.scalar, text().scalar);
}

#[test]
fn a_scalar_cannot_take_a_relationship() {
    let schema = schema([("text", text()), ("nothing", Atom::default())]);
    assert_eq!(schema.resolve(&named("text", Relationship::Atomic)), None);
    assert_eq!(schema.resolve(&named("nothing", Relationship::Atomic)), None);
}

#[test]
fn a_type_that_contains_itself_is_resolved_step_by_step() {
    let schema = schema([("node", Atom { map: Some(map(Relationship::Separable)), ..Atom::default() })]);
    let root = named("node", None);
    let mut at = &root;
    for _ in 0..1000 {
        at = schema.resolve(at).unwrap().map.unwrap().field("child").unwrap();
    }
    assert_eq!(at, &root);
}

#[test]
fn fields_that_are_not_declared_have_the_type_of_all_others() {
    let open = Map { element: Some(TypeRef::deduced()), ..map(Relationship::Separable) };
    let schema = schema([
        ("open", Atom { map: Some(open), ..Atom::default() }),
        ("node", Atom { map: Some(map(Relationship::Separable)), ..Atom::default() }),
    ]);
    let (open, closed) = (named("open", None), named("node", None));
    let open = schema.resolve(&open).unwrap().map.unwrap();
    let closed = schema.resolve(&closed).unwrap().map.unwrap();
    assert_eq!(open.field("child"), Some(&named("node", None)));
    assert_eq!(open.field("other"), Some(&TypeRef::deduced()));
    assert_eq!(closed.field("other"), None);
}

#[test]
fn deduced_objects_are_owned_field_by_field_and_the_rest_as_a_whole() {
    let schema = Schema::deduced();
    let shown = |of: &TypeRef| match of {
        TypeRef::Named(name, _) => show(schema.definition(name).unwrap()),
        TypeRef::Inline(atom) => show(atom),
    };
    assert_eq!(shown(&TypeRef::deduced()), "Untyped | [untyped]! | {*: deduced}");
    assert_eq!(shown(&TypeRef::untyped()), "Untyped | [untyped]! | {*: untyped}!");
}

#[test]
fn kinds_are_found_by_what_an_object_says_of_itself() {
    let kind = |api_version, kind| GroupVersionKind::new(api_version, kind);
    let kinds = Kinds {
        schema: schema([("a.Pod", text()), ("a.Deployment", text())]),
        types: BTreeMap::from([
            (kind("v1", "Pod"), "a.Pod".to_owned()),
            (kind("apps/v1", "Deployment"), "a.Deployment".to_owned()),
            (kind("apps/v1", "Lost"), "a.Lost".to_owned()),
        ]),
    };
    assert_eq!(kinds.type_of(&kind("v1", "Pod")), Some(named("a.Pod", None)));
    assert_eq!(kinds.type_of(&kind("apps/v1", "Pod")), None);
    assert!(kinds.resolve(&kind("apps/v1", "Deployment")).is_some());
    assert_eq!(kinds.resolve(&kind("apps/v1", "Lost")), None);
    assert_eq!(kind("apps/v1", "Deployment").to_string(), "apps/v1, Kind=Deployment");
    assert_eq!(kind("v1", "Pod").to_string(), "v1, Kind=Pod");
}
