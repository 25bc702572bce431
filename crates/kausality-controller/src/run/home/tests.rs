use super::*;

fn anchor(owners: Value) -> DynamicObject {
    serde_json::from_value(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "kausality-controller", "uid": "a-1", "resourceVersion": "7", "ownerReferences": owners}}))
    .unwrap()
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid})
}

/// The namespace owns the anchor once; the one before it, of the same name, does not any more; others stay.
#[test]
fn the_namespace_owns_the_anchor() {
    let home = || owner("Namespace", "kausality-system", "n-2");
    let other = || owner("ConfigMap", "kausality-system", "c-1");
    let tied = |owners: Value| tied(&anchor(owners), "kausality-system", "n-2");
    let owners = |owners: Value| {
        let patch = tied(owners)?;
        assert_eq!(
            (&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]),
            (&json!("a-1"), &json!("7"))
        );
        Some(patch["metadata"]["ownerReferences"].clone())
    };
    assert_eq!(owners(json!([])), Some(json!([home()])));
    assert_eq!(owners(json!([home()])), None);
    assert_eq!(owners(json!([other()])), Some(json!([other(), home()])));
    let before = owner("Namespace", "kausality-system", "n-1");
    assert_eq!(owners(json!([before, other()])), Some(json!([other(), home()])));
}
