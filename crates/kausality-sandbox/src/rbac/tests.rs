#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::json;

use super::access::{Resource, Target};
use super::*;

fn listed(objects: &[Value]) -> Listed {
    let place = |it: &Value| (metadata::field(it, "namespace").to_owned(), metadata::name(it).to_owned());
    objects.iter().map(|it| (place(it), Arc::new(it.clone()))).collect()
}

/// The defaults, and some more.
fn index() -> Index {
    let role = |namespace: &str, name: &str, rules: Value| json!({"metadata": {"name": name, "namespace": namespace}, "rules": rules});
    let binding = |namespace: &str, name: &str, kind: &str, role: &str, subjects: Value| {
        json!({"metadata": {"name": name, "namespace": namespace},
            "roleRef": {"kind": kind, "name": role}, "subjects": subjects})
    };
    let user = |name: &str| json!({"kind": "User", "name": name});
    let mut cluster_roles: Vec<Value> = Vec::new();
    let mut cluster_bindings: Vec<Value> = Vec::new();
    for (collection, object) in defaults::objects() {
        if collection == CLUSTER_ROLES { &mut cluster_roles } else { &mut cluster_bindings }.push(object);
    }
    cluster_roles.push(json!({"metadata": {"name": "beds", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["get"], "apiGroups": ["garden.io"], "resources": ["beds"]}]}));
    cluster_roles.push(role(
        "",
        "scaler",
        json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}]),
    ));
    // Two that are made of each other.
    for (name, other) in [("a", "b"), ("b", "a")] {
        cluster_roles.push(json!({"metadata": {"name": name, "labels": {"of": name}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"of": other}}]}}));
    }
    cluster_bindings.push(binding("", "carol", "ClusterRole", "view", json!([user("carol")])));
    cluster_bindings.push(binding(
        "",
        "scale",
        "ClusterRole",
        "scaler",
        json!([{"kind": "Group", "name": "system:serviceaccounts"}]),
    ));
    cluster_bindings.push(binding("", "gone", "ClusterRole", "gone", json!([user("erin")])));
    cluster_bindings.push(binding("", "round", "ClusterRole", "a", json!([user("erin")])));
    let roles = [
        role(
            "shop",
            "one-map",
            json!([{"verbs": ["get", "update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"]}]),
        ),
        role("shop", "logs", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}])),
    ];
    let bindings = [
        binding("shop", "alice", "ClusterRole", "edit", json!([user("alice")])),
        binding(
            "shop",
            "bob",
            "Role",
            "one-map",
            json!([user("bob"), {"kind": "ServiceAccount", "name": "robot"}]),
        ),
        binding("shop", "logs", "Role", "logs", json!([{"kind": "Group", "name": "support"}])),
        binding(
            "shop",
            "dave",
            "ClusterRole",
            "admin",
            json!([{"kind": "ServiceAccount", "name": "robot", "namespace": "other"}]),
        ),
    ];
    let mut store = Store::new(1);
    for ((_, name), role) in listed(&cluster_roles) {
        store.put(CLUSTER_ROLES, (String::new(), name), Value::clone(&role));
    }
    aggregate::settle(&mut store);
    let cluster_roles = store.list(CLUSTER_ROLES, None);
    Index::of(&[listed(&roles), cluster_roles, listed(&bindings), listed(&cluster_bindings)])
}

/// `get apps/deployments/scale web shop` as an access.
fn access(text: &str) -> Access<'_> {
    let words: Vec<&str> = text.split(' ').collect();
    let (verb, what) = (words[0], words[1]);
    if what.starts_with('/') {
        return Access { verb: verb.into(), target: Target::Path(what.into()) };
    }
    let parts: Vec<&str> = what.split('/').collect();
    let word = |nth: usize| words.get(nth).copied().filter(|it| *it != "-").unwrap_or_default().into();
    Access {
        verb: verb.into(),
        target: Target::Resource(Resource {
            group: parts[0].trim_start_matches("core").into(),
            resource: parts[1].into(),
            subresource: parts.get(2).copied().unwrap_or_default().into(),
            name: word(2),
            namespace: word(3),
        }),
    }
}

#[test]
fn roles_say_who_may_do_what() {
    let index = index();
    let robot = "system:serviceaccount:shop:robot";
    for (user, groups, asked, allowed) in [
        ("root", vec![MASTERS], "delete core/nodes n", true),
        ("root", vec![MASTERS], "get /metrics", true),
        // edit, in one namespace.
        ("alice", vec![], "create apps/deployments - shop", true),
        ("alice", vec![], "patch apps/deployments/scale web shop", true),
        ("alice", vec![], "create apps/deployments - other", false),
        ("alice", vec![], "list apps/deployments", false),
        ("alice", vec![], "get core/secrets s shop", true),
        ("alice", vec![], "update rbac.authorization.k8s.io/roles r shop", false),
        ("alice", vec![], "update apps/deployments/status web shop", false),
        // What edit is made of by way of view.
        ("alice", vec![], "get garden.io/beds b shop", true),
        // view, everywhere.
        ("carol", vec![], "list apps/deployments", true),
        ("carol", vec![], "watch apps/deployments - any", true),
        ("carol", vec![], "get core/secrets s shop", false),
        ("carol", vec![], "delete apps/deployments web shop", false),
        ("carol", vec![], "get garden.io/beds b any", true),
        ("carol", vec![], "list garden.io/beds - any", false),
        // One object by its name.
        ("bob", vec![], "get core/configmaps settings shop", true),
        ("bob", vec![], "update core/configmaps settings shop", true),
        ("bob", vec![], "get core/configmaps others shop", false),
        ("bob", vec![], "list core/configmaps - shop", false),
        ("bob", vec![], "create core/configmaps - shop", false),
        (robot, vec![], "get core/configmaps settings shop", true),
        // Subresources on their own.
        ("sam", vec!["support"], "get core/pods/log p shop", true),
        ("sam", vec!["support"], "get core/pods p shop", false),
        (robot, vec!["system:serviceaccounts"], "update apps/deployments/scale web any", true),
        (robot, vec!["system:serviceaccounts"], "update apps/deployments web any", false),
        ("system:serviceaccount:other:robot", vec![], "create rbac.authorization.k8s.io/roles - shop", true),
        ("system:serviceaccount:other:robot", vec![], "get core/configmaps settings other", false),
        // What is no resource.
        ("eve", vec!["system:authenticated"], "get /apis/apps/v1", true),
        ("eve", vec!["system:authenticated"], "get /metrics", false),
        ("eve", vec!["system:authenticated"], "post /apis", false),
        ("eve", vec!["system:unauthenticated"], "get /apis", false),
        ("eve", vec!["system:unauthenticated"], "get /version", true),
        ("eve", vec!["system:authenticated"], "create authorization.k8s.io/selfsubjectaccessreviews", true),
        ("eve", vec!["system:authenticated"], "create authorization.k8s.io/subjectaccessreviews", false),
        ("erin", vec![], "get core/pods p shop", false),
    ] {
        let groups: Vec<String> = groups.into_iter().map(str::to_owned).collect();
        let user = User { name: user.to_owned(), groups, ..User::default() };
        let answer = index.allows(&user, &access(asked));
        assert_eq!(answer.allowed, allowed, "{} {:?} {asked}: {}", user.name, user.groups, answer.reason);
    }
}

#[test]
fn reasons_name_the_binding_or_what_is_missing() {
    let index = index();
    let user = |name: &str| User { name: name.to_owned(), ..User::default() };
    let reason = |name: &str, asked: &str| index.allows(&user(name), &access(asked)).reason;
    assert_eq!(
        reason("alice", "get core/pods p shop"),
        r#"RBAC: allowed by RoleBinding "alice/shop" of ClusterRole "edit" to User "alice""#
    );
    assert_eq!(
        reason("system:serviceaccount:shop:robot", "get core/configmaps settings shop"),
        r#"RBAC: allowed by RoleBinding "bob/shop" of Role "one-map" to ServiceAccount "robot/shop""#
    );
    assert_eq!(
        reason("erin", "get core/pods p shop"),
        r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#
    );
    assert_eq!(reason("eve", "get core/pods p shop"), "");
}

#[test]
fn requests_are_understood() {
    use http::Method;
    let check = |method: Method, path: &str, query: &str, expected: &str| {
        assert_eq!(Access::of_request(&method, path, query), access(expected), "{method} {path}");
    };
    check(Method::GET, "/apis/apps/v1", "", "get /apis/apps/v1");
    check(Method::GET, "/api/v1/namespaces/shop", "", "get core/namespaces shop shop");
    check(Method::GET, "/api/v1/namespaces", "", "list core/namespaces");
    check(Method::GET, "/api/v1/pods", "watch=true", "watch core/pods");
    check(Method::GET, "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name%3Dp", "list core/pods p a");
    check(Method::POST, "/api/v1/namespaces/a/pods", "", "create core/pods - a");
    check(
        Method::PATCH,
        "/apis/apps/v1/namespaces/a/deployments/web/scale",
        "",
        "patch apps/deployments/scale web a",
    );
    check(
        Method::DELETE,
        "/apis/apps/v1/namespaces/a/deployments",
        "",
        "deletecollection apps/deployments - a",
    );
}
