use serde_json::json;

use super::*;

fn served(groups: serde_json::Value) -> Served {
    let groups: Vec<APIGroupDiscovery> = serde_json::from_value(groups).unwrap();
    Served::new(groups.into_iter(), Instant::now())
}

fn resource(plural: &str, kind: &str, scope: &str, verbs: &[&str]) -> serde_json::Value {
    json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs,
        "singularResource": kind.to_lowercase(), "shortNames": [&plural[..2]]})
}

#[test]
fn a_kind_is_reached_in_the_first_version_that_has_it() {
    let served = served(json!([{"metadata": {"name": "example.com"}, "versions": [
        {"version": "v1", "resources": [resource("pools", "Pool", "Namespaced", &["get", "list"])]},
        {"version": "v1beta1", "resources": [
            resource("pools", "Pool", "Namespaced", &["get", "list"]),
            resource("farms", "Farm", "Cluster", &["get", "list"])]}]}]));
    let pool = served.of_kind("example.com", "Pool").unwrap();
    assert_eq!((pool.resource.api_version.as_str(), pool.namespaced), ("example.com/v1", true));
    let farm = served.of_resource("example.com", "farms").unwrap();
    assert_eq!((farm.resource.api_version.as_str(), farm.namespaced), ("example.com/v1beta1", false));
    assert!(served.of_kind("", "Pool").is_none());
}

#[test]
fn what_cannot_be_read_is_no_kind_of_object() {
    let served = served(json!([{"metadata": {"name": "authorization.k8s.io"}, "versions": [
        {"version": "v1", "resources": [resource("reviews", "Review", "Cluster", &["create"])]}]}]));
    assert!(served.of_kind("authorization.k8s.io", "Review").is_none());
}

#[test]
fn a_pattern_means_kinds_of_a_group_that_is_served() {
    let served = served(json!([{"metadata": {"name": "ex.io"}, "versions": [
        {"version": "v1", "resources": [resource("pools", "Pool", "Namespaced", &["get"])]}]}]));
    for (group, kind, expected) in [
        ("ex.io", "Pool", true),
        ("ex.io", "Poool", false),
        ("ex.io", "*", true),
        ("ex.io", "Po*", true),
        ("ex.org", "*", false),
        ("", "*", false),
        ("*", "Pool", true),
        ("*", "Poool", false),
        ("*.io", "Pool", true),
        ("*.org", "Pool", false),
    ] {
        assert_eq!(served.like(group, kind).is_some(), expected, "{group} {kind}");
    }
}

#[test]
fn people_name_a_kind_as_kubectl_has_it() {
    let group = |name: &str, version: &str| {
        json!({"metadata": {"name": name}, "versions": [
            {"version": version, "resources": [resource("pools", "Pool", "Namespaced", &["get"])]}]})
    };
    let served = served(json!([group("example.com", "v1"), group("example.org", "v2")]));
    let group_of = |name, group| Some(served.named(name, group)?.resource.group.clone());
    for name in ["pools", "pool", "Pool", "po"] {
        assert_eq!(group_of(name, None).as_deref(), Some("example.com"), "{name}");
        assert_eq!(group_of(name, Some("example.org")).as_deref(), Some("example.org"), "{name}");
    }
    assert_eq!(group_of("poo", None), None);
    assert_eq!(group_of("pools", Some("example.net")), None);
}

#[test]
fn a_group_whose_server_does_not_answer_may_serve_more() {
    let group = |name: &str, freshness: &str| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "freshness": freshness, "resources": []}]});
    let served = served(json!([group("example.com", "Current"), group("example.org", "Stale")]));
    assert_eq!(served.uncertain, BTreeSet::from(["example.org".to_owned()]));
}
