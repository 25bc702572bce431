use super::*;
use crate::managed::decode_value;
use serde_json::json;

/// `path: value < owners`, a line each.
#[track_caller]
fn check(object: Value, entries: Value, expected: &[&str]) {
    let entries: Vec<Value> = entries.as_object().unwrap().iter().map(entry).collect();
    let entries = decode_value(&Value::Array(entries)).unwrap();
    let line = |field: &Owned<'_>| {
        let owners: Vec<&str> = field.owners.iter().map(|entry| entry.manager.as_str()).collect();
        let value = field.value.map(Value::to_string).unwrap_or_default();
        format!("{}: {value} < {}", field.path, owners.join(" "))
    };
    assert_eq!(fields(&object, &entries).iter().map(line).collect::<Vec<_>>(), expected);
}

fn entry((manager, fields): (&String, &Value)) -> Value {
    json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
}

#[test]
fn each_field_has_its_owners() {
    check(
        json!({"spec": {"replicas": 3, "paused": false, "selector": {"app": "web"}}, "data": {}}),
        json!({"a": {"f:spec": {"f:replicas": {}, "f:selector": {}}, "f:data": {}}, "b": {"f:spec": {"f:replicas": {}}}}),
        &[
            "data: {} < a",
            "spec:  < ",
            "spec.paused: false < ",
            "spec.replicas: 3 < a b",
            r#"spec.selector: {"app":"web"} < a"#,
        ],
    );
}

#[test]
fn items_are_named_by_what_their_owners_know_them_by() {
    check(
        json!({"ports": [{"port": 80, "protocol": "TCP", "nodePort": 31000}, {"port": 53, "protocol": "UDP"}]}),
        json!({"a": {"f:ports": {"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}}}}}),
        &[
            "ports:  < ",
            "ports[port=80,protocol=TCP]:  < ",
            "ports[port=80,protocol=TCP].nodePort: 31000 < ",
            "ports[port=80,protocol=TCP].port: 80 < ",
            r#"ports[port=80,protocol=TCP].protocol: "TCP" < "#,
            "ports[port=53,protocol=UDP]:  < a",
            "ports[port=53,protocol=UDP].port: 53 < a",
            r#"ports[port=53,protocol=UDP].protocol: "UDP" < "#,
        ],
    );
}

#[test]
fn a_key_whose_default_was_not_written_is_found() {
    check(
        json!({"ports": [{"port": 53}]}),
        json!({"a": {"f:ports": {"k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}),
        &["ports:  < ", "ports[port=53,protocol=TCP]:  < a", "ports[port=53,protocol=TCP].port: 53 < a"],
    );
}

#[test]
fn sets_go_member_by_member_and_other_lists_as_a_whole() {
    check(
        json!({"finalizers": ["x", "y"], "args": ["-v"], "free": [1, 2]}),
        json!({"a": {"f:finalizers": {".": {}, "v:\"x\"": {}}, "f:args": {}}}),
        &[
            r#"args: ["-v"] < a"#,
            "finalizers:  < a",
            r#"finalizers["x"]: "x" < a"#,
            r#"finalizers["y"]: "y" < "#,
            "free: [1,2] < ",
        ],
    );
}

#[test]
fn texts_of_a_secret_are_owned_under_another_name() {
    check(
        json!({"kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}}),
        json!({"a": {"f:stringData": {"f:a": {}}}, "b": {"f:data": {"f:b": {}}}}),
        &["data:  < ", r#"data.a: "eA==" < a"#, r#"data.b: "eQ==" < b"#, r#"kind: "Secret" < "#],
    );
}

#[test]
fn deep_values_end() {
    let deep = (0..1000).fold(json!(1), |inner, _| json!({"a": inner}));
    let entries = [];
    assert_eq!(fields(&deep, &entries).len(), MAX_DEPTH);
}
