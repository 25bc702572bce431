//! Whatever a schema looks like, it is made types of, or refused with the place in it that is wrong.

use kausality_fields::schema::{Atom, Schema, SchemaError, TypeRef, openapi, structural};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Values that mean something somewhere in a schema, in the wrong places as well as in the right ones.
fn word() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        prop::sample::select(vec![
            "", "object", "array", "string", "integer", "map", "set", "atomic", "merge"
        ])
        .prop_map(Value::from),
        prop::sample::select(vec!["#/components/schemas/A", "#/components/schemas/Lost", "date-time"])
            .prop_map(Value::from),
    ]
}

fn keyword() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "format",
        "items",
        "properties",
        "additionalProperties",
        "allOf",
        "$ref",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-group-version-kind",
    ])
    .prop_map(str::to_owned)
}

fn anything() -> impl Strategy<Value = Value> {
    word().prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keyword(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A schema that is right more often than not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf =
        prop::sample::select(vec!["string", "integer", "boolean"]).prop_map(|name| json!({"type": name}));
    let leaf = prop_oneof![
        4 => leaf,
        1 => Just(json!({"$ref": "#/components/schemas/A"})),
        1 => Just(json!({})),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|items| {
                json!({"type": "array", "items": items, "x-kubernetes-list-type": "map",
                       "x-kubernetes-list-map-keys": ["a"]})
            }),
            prop::collection::btree_map("[a-c]", inner.clone(), 0..3)
                .prop_map(|fields| json!({"type": "object", "properties": fields})),
            inner.prop_map(|other| json!({"type": "object", "additionalProperties": other})),
        ]
    })
}

fn served(definition: &Value) -> Value {
    json!({"components": {"schemas": {"A": definition}}})
}

fn declared(definition: &Value) -> Value {
    json!({"spec": {"group": "example.com", "names": {"kind": "Thing"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": definition}}]}})
}

/// Every type that is used is defined.
fn is_complete(schema: &Schema) -> bool {
    fn atom(schema: &Schema, of: &Atom) -> bool {
        let list = of.list.iter().map(|list| &list.element);
        let fields = of.map.iter().flat_map(|map| map.fields.values().map(|field| &field.of));
        let others = of.map.iter().filter_map(|map| map.element.as_ref());
        list.chain(fields).chain(others).all(|of| match of {
            TypeRef::Named(name, _) => schema.definition(name).is_some(),
            TypeRef::Inline(inner) => atom(schema, inner),
        })
    }
    schema.types.values().all(|definition| atom(schema, definition))
}

/// The place that an error names is in the document.
fn names_a_place(document: &Value, error: &SchemaError) -> bool {
    document.pointer(&error.place).is_some()
}

proptest! {
    #[test]
    fn any_document_has_complete_types_or_a_wrong_place(definition in anything()) {
        for document in [served(&definition), definition] {
            match openapi::document(&document) {
                Ok(kinds) => prop_assert!(is_complete(&kinds.schema)),
                Err(error) => prop_assert!(names_a_place(&document, &error), "{error} in {document}"),
            }
        }
    }

    #[test]
    fn any_definition_has_complete_types_or_a_wrong_place(definition in anything()) {
        for document in [declared(&definition), definition] {
            match structural::custom_resource(&document) {
                Ok(kinds) => prop_assert!(is_complete(&kinds.schema)),
                Err(error) => prop_assert!(names_a_place(&document, &error), "{error} in {document}"),
            }
        }
    }

    #[test]
    fn proper_schemas_have_types(definition in schema()) {
        prop_assume!(definition.get("$ref").is_none());
        let kinds = openapi::document(&served(&definition)).unwrap();
        prop_assert!(kinds.schema.definition("A").is_some());
        prop_assert!(is_complete(&kinds.schema));
    }

    #[test]
    fn text_that_is_no_document_is_refused(text in ".{0,64}") {
        prop_assert!(openapi::parse(&text).is_err());
    }
}
