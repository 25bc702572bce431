use super::custom_resource;
use crate::schema::tests::show;
use crate::schema::{Kinds, SchemaError};
use serde_json::{Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

fn definition(schema: Value) -> Value {
    json!({"spec": {"group": "garden.example.io", "names": {"kind": "Bed"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
}

fn bed(kinds: Result<Kinds, SchemaError>) -> String {
    let kinds = kinds.unwrap_or_else(|error| panic!("{error}"));
    show(kinds.schema.definition("io.example.garden.v1.Bed").unwrap()).replace(META, "")
}

/// The type made of the schema of a custom resource.
fn check(schema: Value, expected: &str) {
    assert_eq!(bed(custom_resource(&definition(schema.clone()))), expected, "{schema}");
}

/// The type made of the schema of the field `spec`.
fn check_spec(schema: Value, expected: &str) {
    check(
        json!({"type": "object", "properties": {"spec": schema}}),
        &format!("{{apiVersion: String, kind: String, metadata: ObjectMeta, spec: {expected}}}"),
    );
}

#[test]
fn an_object_has_what_every_object_has() {
    check(json!({"type": "object"}), "{apiVersion: String, kind: String, metadata: ObjectMeta}");
    check(
        json!({"type": "object", "properties": {
            "apiVersion": {"type": "string", "default": "x"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}}}}),
        "{apiVersion: String, kind: String, metadata: ObjectMeta}",
    );
}

#[test]
fn metadata_has_the_types_of_the_api_server() {
    let kinds = custom_resource(&definition(json!({"type": "object"}))).unwrap();
    let shown = |name: &str| show(&kinds.schema.types[&format!("{META}{name}")]).replace(META, "");
    assert_eq!(
        shown("ObjectMeta"),
        "{annotations: {*: String}, creationTimestamp: Time, deletionGracePeriodSeconds: Numeric, \
         deletionTimestamp: Time, finalizers: [String], generateName: String, generation: Numeric, \
         labels: {*: String}, managedFields: [ManagedFieldsEntry]!, name: String, namespace: String, \
         ownerReferences: [OwnerReference by uid], resourceVersion: String, selfLink: String, uid: String}"
    );
    assert_eq!(
        shown("OwnerReference"),
        "{apiVersion: String = \"\", blockOwnerDeletion: Boolean, controller: Boolean, kind: String = \"\", \
         name: String = \"\", uid: String = \"\"}!"
    );
    assert_eq!(
        shown("ManagedFieldsEntry"),
        "{apiVersion: String, fieldsType: String, fieldsV1: FieldsV1, manager: String, operation: String, \
         subresource: String, time: Time}"
    );
    assert_eq!(shown("FieldsV1"), "{*: deduced}");
    assert_eq!(shown("Time"), "Untyped as DateTime");
}

#[test]
fn all_that_it_uses_is_defined() {
    let kinds = custom_resource(&definition(json!({"type": "object"}))).unwrap();
    for atom in kinds.schema.types.values() {
        let fields = atom.map.iter().flat_map(|map| map.fields.values().map(|field| &field.of));
        let elements = atom.map.iter().filter_map(|map| map.element.as_ref());
        for of in fields.chain(elements) {
            let resolved = kinds.schema.resolve(of).unwrap();
            assert!(resolved.list.is_none_or(|list| kinds.schema.resolve(list.element).is_some()));
        }
    }
}

#[test]
fn unknown_fields_are_preserved_where_it_says_so() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    check(open.clone(), "{apiVersion: String, kind: String, metadata: ObjectMeta, *: deduced}");
    check_spec(open, "{*: deduced}");
    check_spec(json!({"x-kubernetes-preserve-unknown-fields": true}), "Untyped | [untyped]! | {*: deduced}");
    check_spec(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
        "{known: {a: String, *: deduced}, *: deduced}",
    );
}

#[test]
fn an_old_definition_may_preserve_all_unknown_fields() {
    let mut definition = definition(json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}));
    definition["spec"]["preserveUnknownFields"] = json!(true);
    let kinds = custom_resource(&definition).unwrap();
    let meta = kinds.schema.types[&format!("{META}ObjectMeta")].map.as_ref().unwrap();
    assert!(meta.element.is_some());
    assert_eq!(
        bed(Ok(kinds)),
        "{apiVersion: String, kind: String, metadata: ObjectMeta, spec: {a: String, *: deduced}, *: deduced}"
    );
}

#[test]
fn embedded_resources_are_objects() {
    check_spec(
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}),
        "{apiVersion: String, kind: String, metadata: ObjectMeta, *: deduced}",
    );
    check_spec(
        json!({"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}}}}),
        "[{apiVersion: String, kind: String, metadata: ObjectMeta, spec: {*: deduced}}]!",
    );
}

#[test]
fn parts_are_as_in_openapi() {
    check_spec(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        "Untyped as IntOrString | [untyped]! | {*: deduced}",
    );
    check_spec(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "side"],
            "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "side": {"type": "string", "default": "north"}}}}),
        "[{name: String, side: String = \"north\"} by name,side]",
    );
    check_spec(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        "[String]",
    );
    check_spec(json!({"type": "array", "items": {"type": "string"}}), "[String]!");
    check_spec(
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}),
        "{a: String}!",
    );
    check_spec(
        json!({"type": "object", "nullable": true, "properties": {"a": {"type": "number"}}}),
        "{a: Numeric}",
    );
    check_spec(json!({"type": "string", "format": "date-time", "nullable": true}), "Untyped as DateTime");
}

#[test]
fn patch_strategies_have_no_meaning_in_a_definition() {
    check_spec(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}),
        "[String]!",
    );
}

#[test]
fn without_a_schema_nothing_is_known_of_the_object() {
    let mut definition = definition(json!(null));
    assert_eq!(bed(custom_resource(&definition)), "{*: deduced}");
    definition["spec"]["versions"][0]["schema"] = json!(null);
    assert_eq!(bed(custom_resource(&definition)), "{*: deduced}");
}

#[test]
fn a_schema_found_not_to_be_structural_is_not_used() {
    let mut definition = definition(json!({"type": "object"}));
    let condition = |status| json!({"conditions": [{"type": "NonStructuralSchema", "status": status}]});
    definition["status"] = condition("True");
    assert_eq!(bed(custom_resource(&definition)), "{*: deduced}");
    definition["status"] = condition("False");
    assert_eq!(bed(custom_resource(&definition)), "{apiVersion: String, kind: String, metadata: ObjectMeta}");
}

#[test]
fn each_version_has_a_type() {
    let mut definition = definition(json!({"type": "object"}));
    definition["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v2alpha1"}]);
    let types = custom_resource(&definition).unwrap().types;
    let types: Vec<_> = types.into_iter().map(|(kind, name)| format!("{kind}: {name}")).collect();
    assert_eq!(
        types,
        [
            "garden.example.io/v1, Kind=Bed: io.example.garden.v1.Bed",
            "garden.example.io/v2alpha1, Kind=Bed: io.example.garden.v2alpha1.Bed"
        ]
    );
    definition["spec"]["versions"] = json!([{"name": "v1"}, {"name": "v1"}]);
    assert_eq!(custom_resource(&definition).unwrap_err().place, "/spec/versions/1");
}

#[test]
fn what_has_no_meaning_is_refused() {
    let check = |definition: Value, expected: &str| {
        let error = custom_resource(&definition).unwrap_err();
        assert_eq!(format!("{}: {}", error.place, error.problem), expected);
    };
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    check(json!({}), ": spec is missing");
    check(json!({"spec": {"group": "g", "names": {"kind": "K"}}}), "/spec: versions is missing");
    check(json!({"spec": {"group": "g", "names": {}}}), "/spec/names: kind is missing");
    check(definition(json!({"type": "string"})), &format!("{schema}: must be the schema of an object"));
    check(
        definition(json!({"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/A"}}})),
        &format!("{schema}/properties/spec/$ref: \"#/components/schemas/A\" is not a type of this document"),
    );
    check(
        definition(json!({"type": "object", "properties": {"spec": {"type": "array"}}})),
        &format!("{schema}/properties/spec: items is missing"),
    );
}
