use crate::{Diff, Redaction, intent, object};
use serde_json::{Value, json};

fn salt() -> Redaction {
    Redaction::new("salt")
}

/// Compares what `spec` holds; the expected text is relative to it.
fn check(old: Value, new: Value, expected: &[&str]) {
    let diff = spec(&old, &new);
    let lines: Vec<_> = diff.to_string().lines().map(|line| line.replacen("spec.", "", 1)).collect();
    assert_eq!(lines, expected, "from {old} to {new}");
    assert_eq!(diff.len(), expected.len());
    assert_eq!(diff.is_empty(), expected.is_empty());
}

fn spec(old: &Value, new: &Value) -> Diff {
    intent(Some(&json!({"spec": old})), Some(&json!({"spec": new})), &salt())
}

fn nested(levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |value, _| json!({"a": value}))
}

#[test]
fn values_compare_by_meaning() {
    check(json!({"a": "x"}), json!({"a": "y"}), &["a: x → y"]);
    check(json!({"a": 1}), json!({"a": 1.0}), &[]);
    check(json!({"a": 0}), json!({"a": -0.0}), &[]);
    check(json!({"a": 1}), json!({"a": 1.5}), &["a: 1 → 1.5"]);
    check(json!({"a": 1}), json!({"a": "1"}), &[r#"a: 1 → "1""#]);
    check(json!({"a": true}), json!({"a": false}), &["a: true → false"]);
    check(json!({"a": true}), json!({"a": "true"}), &[r#"a: true → "true""#]);
    check(json!({"a": 1u64 << 63}), json!({"a": (1u64 << 63) as f64}), &[]);
    assert_eq!(spec(&json!(u64::MAX), &json!(u64::MAX as f64)).len(), 1);
    check(json!({"a": 1e300}), json!({"a": 1e300}), &[]);
}

#[test]
fn null_is_a_value() {
    check(json!({"a": null}), json!({"a": null}), &[]);
    check(json!({}), json!({"a": null}), &["a: + null"]);
    check(json!({"a": null}), json!({}), &["a: - null"]);
    check(json!({"a": null}), json!({"a": {}}), &["a: null → {}"]);
}

#[test]
fn a_subtree_comes_and_goes_as_one_change() {
    check(json!({}), json!({"a": {"b": {"c": 1}, "d": 2}}), &[r#"a: + {"b":{"c":1},"d":2}"#]);
    check(json!({"a": {"b": [1]}}), json!({}), &[r#"a: - {"b":[1]}"#]);
    check(json!({"a": {"b": 1}}), json!({"a": [1]}), &[r#"a: {"b":1} → [1]"#]);
    check(json!({}), json!({"containers": []}), &["containers: + []"]);
}

#[test]
fn changes_are_ordered_by_path() {
    let args = |arg| vec![arg; 11];
    let old = json!({"ports": [{"port": 443}, {"port": 80}], "b": 1, "args": args("a")});
    let new = json!({"a": 1, "args": args("b"), "ports":
        [{"port": 9, "x": 1}, {"port": 80, "x": 1}, {"port": 443, "x": 1}]});
    let paths: Vec<_> = spec(&old, &new).changes.iter().map(|change| change.path.to_string()).collect();
    let mut expected = vec!["spec.a".to_owned()];
    expected.extend((0..11).map(|index| format!("spec.args[{index}]")));
    expected.push("spec.b".to_owned());
    expected.push("spec.ports[port=9,protocol=TCP]".to_owned());
    expected.push("spec.ports[port=80,protocol=TCP].x".to_owned());
    expected.push("spec.ports[port=443,protocol=TCP].x".to_owned());
    assert_eq!(paths, expected);
}

#[test]
fn keyed_items_are_matched_wherever_they_stand() {
    check(
        json!({"containers": [{"name": "app", "image": "a"}, {"name": "old"}]}),
        json!({"containers": [{"name": "new", "image": "n"}, {"name": "app", "image": "b"}]}),
        &[
            "containers[name=app].image: a → b",
            r#"containers[name=new]: + {"image":"n","name":"new"}"#,
            r#"containers[name=old]: - {"name":"old"}"#,
        ],
    );
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "b"}, {"name": "a"}]}),
        &[],
    );
    check(json!({"env": []}), json!({"env": [{"name": "A"}]}), &[r#"env[name=A]: + {"name":"A"}"#]);
}

#[test]
fn sets_have_no_order() {
    check(json!({"finalizers": ["a", "b"]}), json!({"finalizers": ["b", "a"]}), &[]);
    check(
        json!({"finalizers": ["x/a", "b"]}),
        json!({"finalizers": ["b", "c"]}),
        &[r#"finalizers["c"]: + c"#, r#"finalizers["x/a"]: - x/a"#],
    );
    check(
        json!({"finalizers": ["a", "a"]}),
        json!({"finalizers": ["a"]}),
        &[r#"finalizers: ["a","a"] → ["a"]"#],
    );
}

#[test]
fn other_lists_are_ordered() {
    check(json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}), &["args[0]: a → b", "args[1]: b → a"]);
    check(json!({"args": ["a", "b"]}), json!({"args": ["a", "c"]}), &["args[1]: b → c"]);
    check(json!({"args": ["a"]}), json!({"args": ["a", "b"]}), &[r#"args: ["a"] → ["a","b"]"#]);
    check(json!({"args": []}), json!({"args": ["a"]}), &[r#"args: [] → ["a"]"#]);
    check(
        json!({"rules": [{"a": 1}, {"b": 1}]}),
        json!({"rules": [{"a": 1}, {"b": 2}]}),
        &["rules[1].b: 1 → 2"],
    );
    check(json!({"rules": [{"a": 1}]}), json!({"rules": []}), &[r#"rules: [{"a":1}] → []"#]);
    check(json!({"m": [[1, 2], 3]}), json!({"m": [[1, 5], 3]}), &["m[0][1]: 2 → 5"]);
}

#[test]
fn a_list_in_a_list_has_no_field_name() {
    check(
        json!({"finalizers": [["a", "b"]]}),
        json!({"finalizers": [["b", "a"]]}),
        &["finalizers[0][0]: a → b", "finalizers[0][1]: b → a"],
    );
}

#[test]
fn intent_is_what_is_neither_identity_nor_metadata_nor_status() {
    let old = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "status": {"x": 1}, "data": {"k": "v"}});
    let new =
        json!({"apiVersion": "v2", "kind": "B", "metadata": {"name": "b"}, "status": {"x": 2}, "rules": []});
    let diff = intent(Some(&old), Some(&new), &salt());
    assert_eq!(diff.to_string(), "data: - {\"k\":\"v\"}\nrules: + []");
}

#[test]
fn object_is_all_but_bookkeeping() {
    let old = json!({"apiVersion": "v1", "kind": "A", "metadata":
        {"name": "a", "generation": 1, "resourceVersion": "1", "managedFields": [], "annotations": {"x.io/y": "1"}}});
    let new = json!({"apiVersion": "v1", "kind": "A", "status": {"generation": 2}, "metadata":
        {"name": "a", "generation": 2, "resourceVersion": "2", "annotations": {"x.io/y": "2"}}});
    assert_eq!(
        object(Some(&old), Some(&new), &salt()).to_string(),
        "metadata.annotations[\"x.io/y\"]: \"1\" → \"2\"\nstatus: + {\"generation\":2}"
    );
    assert_eq!(
        object(None, Some(&old), &salt()).to_string(),
        "apiVersion: + v1\nkind: + A\nmetadata: + {\"annotations\":{\"x.io/y\":\"1\"},\"name\":\"a\"}"
    );
}

#[test]
fn an_absent_object_counts_as_an_empty_one() {
    let pod = json!({"kind": "Pod", "metadata": {}, "spec": {"nodeName": "n"}});
    assert_eq!(intent(None, Some(&pod), &salt()).to_string(), r#"spec: + {"nodeName":"n"}"#);
    assert_eq!(intent(Some(&pod), None, &salt()).to_string(), r#"spec: - {"nodeName":"n"}"#);
    assert!(intent(None, Some(&json!({"kind": "ServiceAccount"})), &salt()).is_empty());
    assert!(intent(None, None, &salt()).is_empty());
}

#[test]
fn json_that_is_no_object_is_one_value() {
    let text =
        |old: Option<Value>, new: Option<Value>| intent(old.as_ref(), new.as_ref(), &salt()).to_string();
    assert_eq!(text(Some(json!(1)), Some(json!(2))), ".: 1 → 2");
    assert_eq!(text(Some(json!([1])), Some(json!([2]))), "[0]: 1 → 2");
    assert_eq!(text(None, Some(json!("x"))), ".: + x");
    assert_eq!(text(Some(json!({"kind": "A", "spec": 1})), Some(json!(null))), r#".: {"spec":1} → null"#);
}

#[test]
fn depth_is_bounded() {
    let (old, new) = (nested(100, json!({"b": 1})), nested(100, json!({"b": 2})));
    let diff = spec(&old, &new);
    let depths: Vec<_> = diff.changes.iter().map(|change| change.path.steps().len()).collect();
    assert_eq!(depths, [64]);
    // Spec itself is the first step.
    check(nested(62, json!(1)), nested(62, json!(2)), &[&format!("{}: 1 → 2", ["a"; 62].join("."))]);
}

#[test]
fn meaning_counts_below_the_bound_too() {
    let deep = |leaf| nested(100, leaf);
    check(
        deep(json!({"n": 1, "finalizers": ["a", "b"]})),
        deep(json!({"n": 1.0, "finalizers": ["b", "a"]})),
        &[],
    );
    // The bound itself may fall on a list, whose field name must still be known.
    let at = |list| nested(62, json!({"finalizers": list}));
    check(at(json!(["a", "b"])), at(json!(["b", "a"])), &[]);
}

#[test]
fn deep_values_take_no_stack() {
    let (old, new) = (nested(1_000, json!(1)), nested(1_000, json!(2)));
    let diff = spec(&old, &new);
    assert_eq!((diff.len(), diff.hash().len()), (1, 16));
    assert!(diff.to_string().contains('…'));
}

/// Matching by search instead of by map would take minutes here.
#[test]
fn long_lists_are_matched_in_reasonable_time() {
    let item = |n: usize| json!({"name": format!("item-{n}"), "value": n});
    let old: Vec<_> = (0..50_000).map(item).collect();
    let mut new: Vec<_> = (0..50_000).rev().map(item).collect();
    new[0]["value"] = json!("changed");
    check(json!({"l": old}), json!({"l": new}), &["l[name=item-49999].value: 49999 → changed"]);
}

#[test]
fn serialises_as_a_list_of_changes() {
    let old = json!({"a": null, "b": 1, "containers": [{"name": "x"}]});
    let new = json!({"c": {"d": [1]}, "b": null, "containers": [{"name": "x", "image": "long ".repeat(50)}]});
    let expected = json!([
        {"path": "spec.a", "old": null},
        {"path": "spec.b", "old": 1, "new": null},
        {"path": "spec.c", "new": {"d": [1]}},
        {"path": "spec.containers[name=x].image", "new": "long ".repeat(50)},
    ]);
    assert_eq!(serde_json::to_value(spec(&old, &new)).unwrap(), expected);
}

#[test]
fn a_rollout_reads_well() {
    let old = json!({"replicas": 3, "template": {
        "metadata": {"annotations": {"checksum/config": "1f", "example.com/team": "shop"}},
        "spec": {
            "containers": [
                {"name": "app", "image": "registry.io/shop:1.0", "args": ["--log=info", "--port=80"],
                 "env": [{"name": "MODE", "value": "a b"}, {"name": "OLD"}],
                 "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "tmp", "mountPath": "/var/tmp"}]},
                {"name": "proxy", "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]},
            ],
            "tolerations": [{"operator": "Exists"}]}}});
    let new = json!({"replicas": 5, "template": {
        "metadata": {"annotations": {"checksum/config": "2e", "example.com/team": "pay\nshop"}},
        "spec": {
            "containers": [
                {"name": "proxy", "ports": [{"containerPort": 53, "protocol": "UDP", "hostPort": 53}, {"containerPort": 53}]},
                {"name": "app", "image": "registry.io/shop:1.1", "args": ["--log=debug", "--port=80"],
                 "env": [{"name": "MODE", "value": "a c"}],
                 "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"},
                                  {"name": "tmp", "mountPath": "/var/tmp", "readOnly": true}]},
            ],
            "tolerations": []}}});
    insta::assert_snapshot!(spec(&old, &new), @r#"
    spec.replicas: 3 → 5
    spec.template.metadata.annotations.checksum/config: 1f → 2e
    spec.template.metadata.annotations["example.com/team"]: shop → "pay\nshop"
    spec.template.spec.containers[name=app].args[0]: --log=info → --log=debug
    spec.template.spec.containers[name=app].env[name=MODE].value: "a b" → "a c"
    spec.template.spec.containers[name=app].env[name=OLD]: - {"name":"OLD"}
    spec.template.spec.containers[name=app].image: registry.io/shop:1.0 → registry.io/shop:1.1
    spec.template.spec.containers[name=app].volumeMounts[mountPath=/var/tmp].readOnly: + true
    spec.template.spec.containers[name=proxy].ports[containerPort=53,protocol=UDP].hostPort: + 53
    spec.template.spec.tolerations: [{"operator":"Exists"}] → []
    "#);
}

#[test]
fn hashes_are_pinned() {
    let hash = |old, new| spec(&old, &new).hash();
    assert_eq!(hash(json!({}), json!({})), "b4e7355da8b4bb2d");
    assert_eq!(
        hash(
            json!({"a": 1, "ports": [{"port": 80}], "finalizers": [], "args": ["a"]}),
            json!({"b": [true, 0.5, null], "ports": [{"port": 80, "x": -1}], "finalizers": ["f"], "args": ["b"]})
        ),
        "7c78f4cca51e6463"
    );
}

#[test]
fn hashes_name_the_change() {
    let hash = |old, new| spec(&old, &new).hash();
    let change = hash(json!({"a": 1}), json!({"a": 2}));
    for (old, new) in [
        (json!({"a": 2}), json!({"a": 1})),
        (json!({"b": 1}), json!({"b": 2})),
        (json!({"a": 1}), json!({"a": "2"})),
        (json!({"a": 1}), json!({})),
        (json!({}), json!({"a": 2})),
        (json!({"a": 1}), json!({"a": 2, "b": 1})),
        (json!({"a": {"b": 1}}), json!({"a": {"b": 2}})),
    ] {
        assert_ne!(hash(old.clone(), new.clone()), change, "from {old} to {new}");
    }
    assert_eq!(hash(json!({"a": 1.0, "c": 3}), json!({"a": 2, "c": 3})), change);
}

#[test]
fn hashes_ignore_the_order_of_keyed_lists() {
    let added = |list| spec(&json!({}), &list).hash();
    let (a, b) = (json!({"name": "a", "x": 1}), json!({"name": "b", "x": 2}));
    assert_eq!(added(json!({"pod": {"containers": [a, b]}})), added(json!({"pod": {"containers": [b, a]}})));
    assert_eq!(added(json!({"finalizers": ["a", "b"]})), added(json!({"finalizers": ["b", "a"]})));
    assert_ne!(added(json!({"args": ["a", "b"]})), added(json!({"args": ["b", "a"]})));
}
