use super::{document, parse};
use crate::schema::tests::show;
use crate::schema::{DEDUCED, UNTYPED};
use serde_json::{Value, json};

/// A document that defines `T`, next to an object, a list, and two definitions with names known to the API server.
fn document_of(schema: Value) -> Value {
    json!({"openapi": "3.0.0", "components": {"schemas": {
        "T": schema,
        "Object": {"type": "object", "properties": {"a": {"type": "string"}}},
        "List": {"type": "array", "items": {"type": "string"}},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    }}})
}

/// The type made of a schema.
fn check(schema: Value, expected: &str) {
    let kinds = document(&document_of(schema.clone())).unwrap_or_else(|error| panic!("{error} in {schema}"));
    assert_eq!(show(kinds.schema.definition("T").unwrap()), expected, "{schema}");
}

/// The type made of a schema in the place of a field.
fn check_field(schema: Value, expected: &str) {
    check(json!({"type": "object", "properties": {"f": schema}}), &format!("{{f: {expected}}}"));
}

/// What is wrong with a document, and where: the pointer is that inside of `T`.
fn check_error(schema: Value, place: &str, problem: &str) {
    let error = document(&document_of(schema.clone())).expect_err(&schema.to_string());
    assert_eq!(error.place, format!("/components/schemas/T{place}"), "{schema}");
    assert_eq!(error.problem.to_string(), problem, "{schema}");
}

#[test]
fn scalars() {
    check(json!({"type": "integer", "format": "int32"}), "Numeric");
    check(json!({"type": "number"}), "Numeric");
    check(json!({"type": "boolean"}), "Boolean");
    check(json!({"type": "string"}), "String");
    check(json!({"type": "string", "format": ""}), "String");
    check(json!({"type": "string", "format": "byte"}), "String as Bytes");
    check(json!({"type": "string", "format": "ipv4"}), "Untyped");
    check(json!({"type": "string", "format": "date-time"}), "Untyped as DateTime");
    check(json!({"type": "string", "format": "int-or-string"}), "Untyped as IntOrString");
    check(json!({"type": ["string", "null"]}), "String");
    check(json!({"type": "string", "nullable": true}), "String");
    check(json!({"type": "string", "enum": ["a"], "oneOf": [{"type": "integer"}]}), "String");
}

#[test]
fn without_a_type_it_may_be_anything() {
    let anything = "Untyped | [untyped]! | {*: deduced}";
    check(json!({}), anything);
    check(json!({"type": null}), anything);
    check(json!({"type": []}), anything);
    check(json!({"anyOf": [{"type": "string"}, {"type": "object"}]}), anything);
    check(json!({"allOf": [{"type": "string"}]}), anything);
    check(
        json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        "Untyped as IntOrString | [untyped]! | {*: deduced}",
    );
    check(json!({"x-kubernetes-int-or-string": true}), "Untyped as IntOrString | [untyped]! | {*: deduced}");
    check(
        json!({"properties": {"a": {"type": "string"}}, "items": {"type": "string"},
               "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "atomic"}),
        "Untyped | [String] | {a: String}!",
    );
}

#[test]
fn lists() {
    let items = json!({"type": "string"});
    let list = |extra: Value| {
        let mut list = json!({"type": "array", "items": items});
        list.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        list
    };
    check(list(json!({})), "[String]!");
    check(list(json!({"x-kubernetes-list-type": "atomic"})), "[String]!");
    check(list(json!({"x-kubernetes-list-type": "set"})), "[String]");
    check(
        list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]})),
        "[String by port,protocol]",
    );
    check(json!({"type": "array", "items": {}}), "[Untyped | [untyped]! | {*: deduced}]!");
}

#[test]
fn a_list_without_a_type_of_its_own_is_what_patches_make_of_it() {
    let list = |strategy: &str, key: Value, list_type: Value| {
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": strategy,
               "x-kubernetes-patch-merge-key": key, "x-kubernetes-list-type": list_type})
    };
    check(list("merge", json!("name"), json!(null)), "[String by name]");
    check(list("merge,retainKeys", json!("name"), json!(null)), "[String by name]");
    check(list("merge", json!(null), json!(null)), "[String]");
    check(list("retainKeys", json!("name"), json!(null)), "[String]!");
    check(list("merge", json!("name"), json!("atomic")), "[String]!");
}

#[test]
fn objects() {
    let a = json!({"a": {"type": "string"}});
    check(json!({"type": "object"}), "{*: deduced}");
    check(json!({"type": "object", "properties": {}}), "{*: deduced}");
    check(json!({"type": "object", "properties": a}), "{a: String}");
    check(
        json!({"type": "object", "properties": a, "additionalProperties": true}),
        "{a: String, *: deduced}",
    );
    check(
        json!({"type": "object", "properties": a, "additionalProperties": {}}),
        "{a: String, *: Untyped | [untyped]! | {*: deduced}}",
    );
    check(json!({"type": "object", "additionalProperties": false}), "{}");
    check(json!({"type": "object", "additionalProperties": {"type": "string"}}), "{*: String}");
    check(json!({"type": "object", "x-kubernetes-map-type": "atomic"}), "{*: deduced}!");
    check(json!({"type": "object", "x-kubernetes-map-type": "granular"}), "{*: deduced}");
}

#[test]
fn unknown_fields_are_preserved_in_all_that_is_inside() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "object": inner, "list": {"type": "array", "items": inner}, "named": {"$ref": "#/components/schemas/Object"},
            "map": {"type": "object", "additionalProperties": inner},
            "closed": {"type": "object", "additionalProperties": false}}}),
        "{closed: {}, list: [{a: String, *: deduced}]!, map: {*: {a: String, *: deduced}}, named: Object, \
         object: {a: String, *: deduced}, *: deduced}",
    );
    check(
        json!({"type": "object", "properties": {
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"o": inner}},
            "closed": inner}}),
        "{closed: {a: String}, open: {o: {a: String, *: deduced}, *: deduced}}",
    );
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false, "properties": {"o": inner}}),
        "{o: {a: String}}",
    );
}

#[test]
fn references() {
    let to = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    check_field(to("Object"), "Object");
    check_field(json!({"allOf": [to("Object")], "default": {}}), "Object = {}");
    check_field(json!({"allOf": [to("Object")], "x-kubernetes-map-type": "atomic"}), "Object Atomic");
    check_field(json!({"allOf": [to("List")], "x-kubernetes-map-type": "granular"}), "List Separable");
    check_field(json!({"allOf": [to("List")], "x-kubernetes-list-type": "set"}), "List");
    check_field(json!({"allOf": [to("Object"), to("List")]}), "Untyped | [untyped]! | {*: deduced}");
    check(json!({"type": "array", "items": {"allOf": [to("T")], "default": {}}}), "[T]!");
    check(json!({"type": "object", "additionalProperties": to("T")}), "{*: T}");
}

#[test]
fn names_are_escaped_in_references() {
    let kinds = document(&json!({"components": {"schemas": {
        "T": {"type": "array", "items": {"$ref": "#/components/schemas/example.com~1a~0b.Part"}},
        "example.com/a~b.Part": {"type": "string"},
    }}}));
    assert_eq!(show(&kinds.unwrap().schema.types["T"]), "[example.com/a~b.Part]!");
}

#[test]
fn defaults_of_fields() {
    check_field(json!({"type": "string", "default": "TCP"}), "String = \"TCP\"");
    check_field(json!({"type": "boolean", "default": false}), "Boolean = false");
    check_field(json!({"type": "string", "default": null}), "String");
}

#[test]
fn definitions_known_by_name() {
    let kinds = document(&document_of(json!({}))).unwrap();
    let shown = |name: &str| show(&kinds.schema.types[name]);
    assert_eq!(shown("io.k8s.apimachinery.pkg.api.resource.Quantity"), "Untyped as Quantity");
    assert_eq!(shown("io.k8s.apimachinery.pkg.runtime.RawExtension"), "Untyped | [untyped]! | {*: untyped}!");
    assert_eq!(shown(UNTYPED), "Untyped | [untyped]! | {*: untyped}!");
    assert_eq!(shown(DEDUCED), "Untyped | [untyped]! | {*: deduced}");
}

#[test]
fn kinds() {
    let kind = |group, version, kind| json!({"group": group, "version": version, "kind": kind});
    let kinds = document(&json!({"components": {"schemas": {
        "Pod": {"type": "object", "x-kubernetes-group-version-kind": [kind("", "v1", "Pod")]},
        "Options": {"type": "object",
            "x-kubernetes-group-version-kind": [kind("", "v1", "Options"), kind("apps", "v1", "Options")]},
        "Part": {"type": "object"},
    }}}));
    let found: Vec<_> =
        kinds.unwrap().types.into_iter().map(|(kind, name)| format!("{kind}: {name}")).collect();
    assert_eq!(found, ["v1, Kind=Options: Options", "v1, Kind=Pod: Pod", "apps/v1, Kind=Options: Options"]);
}

#[test]
fn two_types_of_one_kind_are_refused() {
    let pod = json!({"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]});
    let error = document(&json!({"components": {"schemas": {"A": pod, "B": pod}}})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema cannot be used: at /components/schemas/B: another definition is the type of v1, Kind=Pod too"
    );
}

#[test]
fn an_undefined_type_is_refused_where_it_is_used() {
    check_error(
        json!({"type": "object", "properties": {"a/b": {"allOf": [{"$ref": "#/components/schemas/Lost"}]}}}),
        "/properties/a~1b/allOf/0/$ref",
        "the type \"Lost\" is not defined",
    );
    for elsewhere in
        ["#/definitions/Object", "other.json#/components/schemas/Object", "#/components/schemas/a/b"]
    {
        check_error(
            json!({"type": "array", "items": {"$ref": elsewhere}}),
            "/items/$ref",
            &format!("{elsewhere:?} is not a type of this document"),
        );
    }
}

#[test]
fn a_definition_that_is_only_another_name_is_no_type() {
    let alias = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let unused = document(&json!({"components": {"schemas": {"A": alias("B"), "B": alias("A")}}})).unwrap();
    assert_eq!(unused.schema.types.keys().collect::<Vec<_>>(), [UNTYPED, DEDUCED]);

    let used = json!({"components": {"schemas": {"A": alias("B"), "B": alias("A"),
        "C": {"type": "array", "items": alias("A")}}}});
    assert_eq!(document(&used).unwrap_err().place, "/components/schemas/C/items/$ref");
}

#[test]
fn what_has_no_meaning_is_refused() {
    check_error(json!({"type": "file"}), "/type", "\"file\" is not known here");
    check_error(json!({"type": 1}), "/type", "must be a string");
    check_error(json!({"type": [1]}), "/type/0", "must be a string");
    check_error(json!("object"), "", "must be an object");
    check_error(json!({"type": "array"}), "", "items is missing");
    check_error(json!({"type": "array", "items": [{}]}), "/items", "must be an object");
    check_error(json!({"type": "object", "properties": []}), "/properties", "must be an object");
    check_error(json!({"type": "object", "properties": {"a": 1}}), "/properties/a", "must be an object");
    check_error(
        json!({"type": "object", "additionalProperties": "yes"}),
        "/additionalProperties",
        "must be an object",
    );
    check_error(json!({"type": "string", "format": 1}), "/format", "must be a string");
    check_error(
        json!({"allOf": {}, "type": "array", "items": {"allOf": {}}}),
        "/items/allOf",
        "must be a list",
    );
    check_error(
        json!({"x-kubernetes-preserve-unknown-fields": "true"}),
        "/x-kubernetes-preserve-unknown-fields",
        "must be true or false",
    );
    check_error(
        json!({"type": "object", "x-kubernetes-map-type": "set"}),
        "/x-kubernetes-map-type",
        "\"set\" is not known here",
    );
    let list = |name: &str, value: Value| json!({"type": "array", "items": {}, name: value});
    check_error(
        list("x-kubernetes-list-type", json!("bag")),
        "/x-kubernetes-list-type",
        "\"bag\" is not known here",
    );
    check_error(list("x-kubernetes-list-type", json!("map")), "", "x-kubernetes-list-map-keys is missing");
    check_error(
        json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", 1]}),
        "/x-kubernetes-list-map-keys/1",
        "must be a string",
    );
    check_error(
        list("x-kubernetes-patch-strategy", json!("replace")),
        "/x-kubernetes-patch-strategy",
        "\"replace\" is not known here",
    );
    check_error(
        json!({"x-kubernetes-group-version-kind": [{"group": "", "version": "v1"}]}),
        "/x-kubernetes-group-version-kind/0",
        "kind is missing",
    );
}

#[test]
fn a_document_must_have_schemas() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(error("{}"), "the schema cannot be used: at /: components is missing");
    assert_eq!(error("[]"), "the schema cannot be used: at /: must be an object");
    assert!(error("{").starts_with("the schema cannot be used: at /: not readable as JSON: EOF"));
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        (0..levels).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}))
    };
    assert!(document(&document_of(nested(128))).is_ok());
    let error = document(&document_of(nested(129))).unwrap_err();
    assert_eq!(error.problem.to_string(), "nested deeper than 128 types");
    assert!(error.place.ends_with("/items/items"));
}

#[test]
fn text_nested_too_deeply_is_refused() {
    let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&text).unwrap_err().to_string().contains("recursion limit"));
}
