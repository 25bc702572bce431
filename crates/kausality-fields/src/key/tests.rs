use super::items;
use crate::path::Path;
use serde_json::{Value, json};

/// The identities of the items in both lists, or `ordered`.
fn check(field: &str, old: Value, new: Value, expected: &str) {
    let lists = [&old, &new].map(|list| list.as_array().unwrap().as_slice());
    let found = match items(Some(field), lists) {
        None => "ordered".to_owned(),
        Some(lists) => {
            let show = |step: crate::Step| Path::from_iter([step]).to_string();
            lists.map(|items| items.into_keys().map(show).collect::<Vec<_>>().join(" ")).join(" | ")
        }
    };
    assert_eq!(found, expected, "{field} from {old} to {new}");
}

/// The identity of a single item that has every field that could be one.
fn check_choice(field: &str, expected: &str) {
    let item = json!({
        "name": "n", "key": "k", "id": "i", "type": "t", "uid": "u", "containerPort": 1, "port": 2, "protocol": "UDP",
        "mountPath": "/m", "devicePath": "/d", "ip": "::1", "topologyKey": "z", "whenUnsatisfiable": "w", "effect": "e",
    });
    check(field, json!([item]), json!([]), &format!("{expected} | "));
}

#[test]
fn known_lists_have_their_own_keys() {
    check_choice("ports", "[containerPort=1,protocol=UDP]");
    check_choice("ownerReferences", "[uid=u]");
    check_choice("conditions", "[type=t]");
    check_choice("volumeMounts", "[mountPath=/m]");
    check_choice("volumeDevices", "[devicePath=/d]");
    check_choice("hostAliases", "[ip=::1]");
    check_choice("podIPs", "[ip=::1]");
    check_choice("hostIPs", "[ip=::1]");
    check_choice("topologySpreadConstraints", "[topologyKey=z,whenUnsatisfiable=w]");
    check_choice("taints", "[key=k,effect=e]");
    for field in ["env", "containers", "volumes", "whatever"] {
        check_choice(field, "[name=n]");
    }
}

#[test]
fn unknown_lists_use_the_first_generic_key() {
    let mut item = json!({"name": "n", "key": "k", "id": 1, "type": true, "uid": "u", "other": 1});
    for (name, expected) in [
        ("name", "[name=n]"),
        ("key", "[key=k]"),
        ("id", "[id=1]"),
        ("type", "[type=true]"),
        ("uid", "[uid=u]"),
    ] {
        check("l", json!([item]), json!([]), &format!("{expected} | "));
        item.as_object_mut().unwrap().remove(name);
    }
    check("l", json!([item]), json!([]), "ordered");
}

#[test]
fn ports_default_to_tcp() {
    check(
        "ports",
        json!([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]),
        json!([{"containerPort": 53, "protocol": "TCP"}]),
        "[containerPort=53,protocol=TCP] [containerPort=53,protocol=UDP] | [containerPort=53,protocol=TCP]",
    );
    check("ports", json!([{"port": 80, "name": "a"}]), json!([]), "[port=80,protocol=TCP] | ");
    check("ports", json!([{"name": "a", "x": 1}]), json!([]), "[name=a] | ");
}

#[test]
fn a_key_must_be_there_and_unique_in_both_lists() {
    let ids = "[id=1] [id=2] | [id=1]";
    check("l", json!([{"name": "a", "id": 1}, {"name": "a", "id": 2}]), json!([{"name": "a", "id": 1}]), ids);
    check("l", json!([{"name": "a", "id": 1}, {"id": 2}]), json!([{"id": 1}]), ids);
    check("l", json!([{"name": "a", "id": 1}, {"name": null, "id": 2}]), json!([{"id": 1}]), ids);
    check("l", json!([{"name": "a", "id": 1}, {"name": [], "id": 2}]), json!([{"name": "a", "id": 1}]), ids);
    check("l", json!([{"id": 1}]), json!([{"id": 1}, {"id": 1.0}]), "ordered");
    check("l", json!([{"name": "a"}]), json!(["a"]), "ordered");
}

#[test]
fn a_number_is_not_its_text() {
    check("l", json!([{"name": 1}, {"name": "1"}]), json!([]), r#"[name=1] [name="1"] | "#);
}

#[test]
fn only_known_lists_of_unique_strings_are_sets() {
    for set in [
        "finalizers",
        "accessModes",
        "verbs",
        "apiGroups",
        "resourceNames",
        "nonResourceURLs",
        "policyTypes",
        "usages",
        "externalIPs",
        "loadBalancerSourceRanges",
    ] {
        check(set, json!(["b"]), json!(["b", "a"]), r#"["b"] | ["a"] ["b"]"#);
    }
    check("accessModes", json!(["a"]), json!(["a", "a"]), "ordered");
    check("accessModes", json!([1]), json!([2]), "ordered");
    check("args", json!(["a"]), json!(["b"]), "ordered");
    check("resources", json!(["a"]), json!(["b"]), "ordered");
}
