use super::sample::{OBJECT, schema};
use super::{Duplicates, Invalid, Keys, MAX_DEPTH, Type};
use crate::schema::{Atom, Map, Relationship, Scalar, ScalarKind, Schema, TypeRef};
use crate::set::FieldSet;
use serde_json::{Value, json};

fn with_type<R>(check: impl FnOnce(Type<'_>) -> R) -> R {
    let (schema, of) = (schema(), TypeRef::Named(OBJECT.to_owned(), None));
    check(Type::new(&schema, &of))
}

fn spec(value: Value) -> Value {
    json!({ "spec": value })
}

fn lines(set: &FieldSet) -> Vec<String> {
    set.iter().map(|path| path.to_string().replacen("spec.", "", 1)).collect()
}

#[track_caller]
fn check_fields(value: Value, expected: &[&str]) {
    let set = with_type(|of| of.field_set(&spec(value)).unwrap());
    assert_eq!(lines(&set), expected);
}

#[track_caller]
fn check_fault(value: Value, expected: &str) {
    let fault = with_type(|of| of.validate(&spec(value), Duplicates::Refused).unwrap_err());
    assert_eq!(fault.to_string(), expected);
}

/// What was added, modified and removed, with a sign before each.
#[track_caller]
fn check_change(old: Value, new: Value, expected: &[&str]) {
    let change = with_type(|of| of.compare(&spec(old), &spec(new)).unwrap());
    let signed = |sign: &str, set: &FieldSet| -> Vec<String> {
        lines(set).into_iter().map(|path| format!("{sign}{path}")).collect()
    };
    let found =
        [signed("+", &change.added), signed("~", &change.modified), signed("-", &change.removed)].concat();
    assert_eq!(found, expected);
    assert_eq!(change.is_empty(), expected.is_empty());
}

#[track_caller]
fn check_merge(old: Value, new: Value, expected: Value) {
    let merged = with_type(|of| of.merge(&spec(old), &spec(new)).unwrap());
    assert_eq!(merged, spec(expected));
}

fn set_of(value: Value) -> FieldSet {
    with_type(|of| of.field_set(&spec(value)).unwrap())
}

#[track_caller]
fn check_extract(value: Value, owned: &str, keys: Keys, expected: Value) {
    let set = FieldSet::from_fields_v1(owned).unwrap();
    assert_eq!(with_type(|of| of.extract(&spec(value), &set, keys).unwrap()), spec(expected));
}

#[test]
fn fields_are_owned_by_their_leaves() {
    check_fields(json!({"replicas": 3, "options": {"a": "x"}}), &["options.a", "replicas"]);
}

#[test]
fn keys_of_maps_and_items_are_owned_themselves() {
    let value = json!({"metadata": {"labels": {"app.kubernetes.io/name": "x"}, "finalizers": ["b", "a"]}});
    let set = with_type(|of| of.field_set(&value).unwrap());
    assert_eq!(
        set.to_string(),
        "metadata.finalizers[\"a\"]\nmetadata.finalizers[\"b\"]\nmetadata.labels[\"app.kubernetes.io/name\"]"
    );
    check_fields(
        json!({"containers": [{"name": "app", "image": "x"}]}),
        &["containers[name=app]", "containers[name=app].image", "containers[name=app].name"],
    );
}

#[test]
fn what_is_atomic_is_owned_as_a_whole() {
    check_fields(json!({"selector": {"a": "b"}}), &["selector"]);
    check_fields(
        json!({"containers": [{"name": "app", "args": ["a", "b"]}]}),
        &["containers[name=app]", "containers[name=app].args", "containers[name=app].name"],
    );
}

#[test]
fn null_and_empty_objects_are_owned() {
    check_fields(
        json!({"options": {}, "replicas": null, "config": null}),
        &["config", "options", "replicas"],
    );
    check_fields(json!({"ports": null}), &["ports"]);
    // The API server does not own an empty list.
    check_fields(json!({"ports": []}), &[]);
}

#[test]
fn without_a_schema_objects_are_owned_by_parts_and_lists_as_a_whole() {
    check_fields(
        json!({"config": {"a": {"b": 1, "c": [{"name": "x"}]}}}),
        &["config.a", "config.a.b", "config.a.c"],
    );
}

#[test]
fn a_key_that_is_omitted_has_its_default() {
    check_fields(
        json!({"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}),
        &[
            "ports[port=53,protocol=TCP]",
            "ports[port=53,protocol=TCP].port",
            "ports[port=53,protocol=UDP]",
            "ports[port=53,protocol=UDP].port",
            "ports[port=53,protocol=UDP].protocol",
        ],
    );
    let implied = json!({"ports": [{"port": 53}, {"port": 53, "protocol": "TCP"}]});
    check_fault(implied, "spec.ports: more than one item is [port=53,protocol=TCP]");
}

#[test]
fn mounts_are_known_by_their_path() {
    check_fields(
        json!({"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/x", "name": "v"}, {"mountPath": "/y", "name": "v"}]}]}),
        &[
            "containers[name=a]",
            "containers[name=a].name",
            "containers[name=a].volumeMounts[mountPath=/x]",
            "containers[name=a].volumeMounts[mountPath=/x].mountPath",
            "containers[name=a].volumeMounts[mountPath=/x].name",
            "containers[name=a].volumeMounts[mountPath=/y]",
            "containers[name=a].volumeMounts[mountPath=/y].mountPath",
            "containers[name=a].volumeMounts[mountPath=/y].name",
        ],
    );
}

#[test]
fn duplicate_items_are_owned_together() {
    let twice = json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}, {"port": 2}]});
    check_fields(
        twice.clone(),
        &["ports[port=1,protocol=TCP]", "ports[port=2,protocol=TCP]", "ports[port=2,protocol=TCP].port"],
    );
    with_type(|of| of.validate(&spec(twice.clone()), Duplicates::Allowed).unwrap());
    check_fault(twice.clone(), "spec.ports: more than one item is [port=1,protocol=TCP]");

    let once = json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]});
    let parts = |sign| ["", ".name", ".port"].map(|part| format!("{sign}ports[port=1,protocol=TCP]{part}"));
    let [item, name, port] = parts("+");
    check_change(twice.clone(), once.clone(), &[&item, &name, &port, "-ports[port=1,protocol=TCP]"]);
    let [item, name, port] = parts("-");
    check_change(once, twice.clone(), &["+ports[port=1,protocol=TCP]", &item, &name, &port]);
    let other = json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "c"}, {"port": 2}]});
    check_change(twice.clone(), other, &["~ports[port=1,protocol=TCP]"]);
    check_change(twice.clone(), twice, &[]);
}

#[test]
fn faults_are_located() {
    check_fault(json!({"replicas": "3"}), "spec.replicas: must be a number");
    check_fault(json!({"options": {"a": 1}}), "spec.options.a: must be a string");
    check_fault(json!({"options": []}), "spec.options: must be an object");
    check_fault(json!({"ports": {}}), "spec.ports: must be a list");
    check_fault(json!({"options": {"c": "x"}}), "spec.options.c: the schema declares no such field");
    check_fault(
        json!({"containers": [{"name": "a", "args": ["x", 1]}]}),
        "spec.containers[name=a].args[1]: must be a string",
    );
    check_fault(
        json!({"containers": [{"name": "a"}, {}]}),
        "spec.containers[1]: an item has none of the fields that identify it",
    );
    check_fault(
        json!({"containers": [null]}),
        "spec.containers[0]: an item of a list with keys must be an object",
    );
    check_fault(json!({"numbers": [[1]]}), "spec.numbers[0]: an item of a set must be a scalar");
    check_fault(json!({"numbers": [1, 1.0]}), "spec.numbers: more than one item is [=1]");
    check_fault(
        json!({"ports": [{"port": [1]}]}),
        "spec.ports[0]: a field that identifies an item must be a scalar",
    );
    let of = TypeRef::Named("gone".to_owned(), None);
    let fault = Type::new(&Schema::default(), &of).validate(&json!({}), Duplicates::Refused).unwrap_err();
    assert_eq!(fault.problem, Invalid::UndefinedType("gone".to_owned()));
}

#[test]
fn types_may_refer_to_themselves_but_depth_is_bounded() {
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"spec": {"self": inner}}));
    with_type(|of| {
        of.validate(&nested(40), Duplicates::Refused).unwrap();
        let deep = nested(MAX_DEPTH);
        assert_eq!(of.validate(&deep, Duplicates::Refused).unwrap_err().problem, Invalid::TooDeep);
        assert_eq!(of.field_set(&deep).unwrap_err().problem, Invalid::TooDeep);
        assert_eq!(of.compare(&deep, &json!({})).unwrap_err().problem, Invalid::TooDeep);
        assert_eq!(of.merge(&deep, &deep).unwrap_err().problem, Invalid::TooDeep);
    });
}

#[test]
fn what_is_added_or_removed_is_named_with_its_parts() {
    check_change(json!({}), json!({"options": {"a": "x"}}), &["+options", "+options.a"]);
    check_change(json!({"options": {"a": "x"}}), json!({}), &["-options", "-options.a"]);
    check_change(json!({"numbers": [1, 2]}), json!({"numbers": [3, 1.0]}), &["+numbers[=3]", "-numbers[=2]"]);
    check_change(json!({"replicas": 1}), json!({"replicas": 1.0}), &[]);
    check_change(json!({"replicas": 1}), json!({"replicas": null}), &["~replicas"]);
    check_change(json!({"selector": {"a": "b"}}), json!({"selector": {"a": "c"}}), &["~selector"]);
    check_change(json!({"options": {}}), json!({"options": null}), &["~options"]);
    check_change(json!({"options": {}}), json!({"options": {"a": "x"}}), &["+options.a"]);
}

#[test]
fn a_value_that_changes_its_shape_loses_its_parts() {
    check_change(json!({"config": {"a": 1}}), json!({"config": "x"}), &["~config", "-config.a"]);
    check_change(json!({"config": "x"}), json!({"config": {"a": 1}}), &["+config.a", "~config"]);
    check_change(json!({"config": [1]}), json!({"config": "x"}), &["~config"]);
}

#[test]
fn a_foreign_item_that_is_inserted_first_changes_no_other() {
    check_change(
        json!({"containers": [{"name": "app", "image": "x"}]}),
        json!({"containers": [{"name": "proxy"}, {"name": "app", "image": "x"}]}),
        &["+containers[name=proxy]", "+containers[name=proxy].name"],
    );
}

#[test]
fn a_merge_keeps_what_is_not_said() {
    check_merge(
        json!({"replicas": 1, "options": {"a": "x", "b": "y"}, "selector": {"a": "b"}}),
        json!({"replicas": 2, "options": {"a": "z"}, "selector": {"c": "d"}}),
        json!({"replicas": 2, "options": {"a": "z", "b": "y"}, "selector": {"c": "d"}}),
    );
    check_merge(json!({"options": {"a": "x"}}), json!({"options": null}), json!({"options": {"a": "x"}}));
    check_merge(json!({"replicas": 1}), json!({"replicas": null}), json!({"replicas": null}));
    check_merge(json!({"config": {"a": 1}}), json!({"config": [1]}), json!({"config": [1]}));
    check_merge(json!({"config": [1]}), json!({"config": {"a": 1}}), json!({"config": {"a": 1}}));
}

#[test]
fn merged_items_come_in_the_order_that_was_applied() {
    let check = |old: &[i32], new: &[i32], merged: &[i32]| {
        check_merge(json!({"numbers": old}), json!({"numbers": new}), json!({"numbers": merged}));
    };
    check(&[1, 2, 3], &[3, 2], &[1, 3, 2]);
    check(&[1, 2, 3, 4, 5], &[5, 3], &[1, 2, 4, 5, 3]);
    check(&[1, 2], &[3, 1], &[3, 1, 2]);
    check(&[1], &[2], &[1, 2]);
    check(&[], &[2, 1], &[2, 1]);
    check(&[1, 1, 2], &[1], &[1, 2]);
    check(&[1, 1, 2], &[1, 3, 4], &[1, 3, 2, 4]);
    check_merge(
        json!({"containers": [{"name": "proxy", "image": "p"}, {"name": "app", "image": "x"}]}),
        json!({"containers": [{"name": "app", "image": "y"}]}),
        json!({"containers": [{"name": "proxy", "image": "p"}, {"name": "app", "image": "y"}]}),
    );
}

#[test]
fn duplicates_are_replaced_by_what_is_applied() {
    check_merge(
        json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}),
        json!({"ports": [{"port": 1, "nodePort": 3}]}),
        json!({"ports": [{"port": 1, "nodePort": 3}]}),
    );
}

#[test]
fn only_owned_fields_are_extracted() {
    let live = json!({
        "replicas": 3, "options": {"a": "x", "b": "y"},
        "containers": [{"name": "proxy"}, {"name": "app", "image": "x", "args": ["1"]}],
    });
    let owned = r#"{"f:spec":{"f:options":{"f:a":{}},"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{}}}}}"#;
    let app = json!({"image": "x"});
    check_extract(live.clone(), owned, Keys::AsAsked, json!({"options": {"a": "x"}, "containers": [app]}));
    let app = json!({"name": "app", "image": "x"});
    check_extract(live, owned, Keys::Included, json!({"options": {"a": "x"}, "containers": [app]}));
}

#[test]
fn of_what_is_owned_without_parts_only_its_being_there_is_extracted() {
    let owned =
        r#"{"f:spec":{"f:options":{},"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{}},"f:selector":{}}}"#;
    check_extract(
        json!({"options": {"a": "x"}, "ports": [{"port": 1, "name": "a"}], "selector": {"a": "b"}}),
        owned,
        Keys::Included,
        json!({"options": {}, "ports": [{"port": 1}], "selector": {"a": "b"}}),
    );
    let twice = json!([{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]);
    check_extract(json!({"ports": twice.clone()}), owned, Keys::AsAsked, json!({"ports": twice}));
    check_extract(json!({"options": null}), owned, Keys::AsAsked, json!({"options": null}));
}

#[test]
fn removed_fields_are_gone() {
    let check = |value: Value, removed: Value, expected: Value| {
        let removed = set_of(removed);
        assert_eq!(with_type(|of| of.remove(&spec(value), &removed).unwrap()), spec(expected));
    };
    check(
        json!({"replicas": 1, "numbers": [1, 2, 3]}),
        json!({"numbers": [2]}),
        json!({"replicas": 1, "numbers": [1, 3]}),
    );
    check(
        json!({"options": {"a": "x", "b": "y"}}),
        json!({"options": {"a": "x"}}),
        json!({"options": {"b": "y"}}),
    );
    check(json!({"options": {"a": "x"}}), json!({"options": {"a": "x"}}), json!({"options": null}));
    check(
        json!({"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}),
        json!({"ports": [{"port": 53, "protocol": "TCP"}]}),
        json!({"ports": [{"port": 53, "protocol": "UDP"}]}),
    );
}

#[test]
fn declared_fields_are_members_if_something_below_them_is() {
    let set = FieldSet::from_fields_v1(
        r#"{"f:spec":{"f:config":{"f:m":{"f:x":{}}},"f:ports":{"k:{\"port\":1}":{"f:name":{}}}}}"#,
    );
    let set = with_type(|of| of.with_declared_fields(&set.unwrap()));
    assert_eq!(lines(&set), ["spec", "config", "config.m.x", "ports", "ports[port=1].name"]);
}

/// What a value of no known type is made of could not have become atomic.
#[test]
fn sets_of_deduced_values_are_not_reconciled() {
    let map_of = |element: TypeRef, relationship| Map {
        fields: Default::default(),
        element: Some(element),
        relationship,
    };
    let untyped = Atom {
        scalar: Some(Scalar { kind: ScalarKind::Untyped, format: None }),
        map: Some(map_of(TypeRef::untyped(), Relationship::Atomic)),
        list: None,
    };
    let schema = Schema::deduced();
    let set = FieldSet::from_fields_v1(r#"{"f:k":{"f:x":{}}}"#).unwrap();
    for (element, expected) in [
        (TypeRef::Inline(Box::new(untyped.clone())), r#"{"f:k":{"f:x":{}}}"#),
        (TypeRef::Inline(Box::new(Atom { scalar: None, ..untyped })), r#"{"f:k":{}}"#),
        (TypeRef::untyped(), r#"{"f:k":{}}"#),
        (TypeRef::deduced(), r#"{"f:k":{"f:x":{}}}"#),
    ] {
        let map = map_of(element, Relationship::Separable);
        let of = TypeRef::Inline(Box::new(Atom { map: Some(map), ..Atom::default() }));
        assert_eq!(Type::new(&schema, &of).reconcile(set.clone()).unwrap().to_fields_v1(), expected);
    }
}

#[test]
fn an_empty_object_has_the_fields_that_are_never_absent() {
    let mut schema = schema();
    let fields = &mut schema.types.get_mut(OBJECT).unwrap().map.as_mut().unwrap().fields;
    for name in ["metadata", "spec"] {
        fields.get_mut(name).unwrap().default = Some(json!({}));
    }
    fields.get_mut("kind").unwrap().default = Some(json!("Thing"));
    let TypeRef::Inline(spec) = &mut fields.get_mut("spec").unwrap().of else { panic!() };
    let spec = &mut spec.map.as_mut().unwrap().fields;
    spec.get_mut("options").unwrap().default = Some(json!({}));
    let of = TypeRef::Named(OBJECT.to_owned(), None);
    assert_eq!(Type::new(&schema, &of).empty(), json!({"metadata": {}, "spec": {"options": {}}}));
}
