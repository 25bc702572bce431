use std::sync::Arc;

use kausality_api::identity::UserHash;
use serde_json::json;

use super::*;
use crate::review::{Object, Review};

/// A change of `namespace/name` of a kind by a user, so many milliseconds after the hour.
fn change(resource: &str, place: &str, user: &str, millis: i64) -> Changed {
    let (namespace, name) = place.split_once('/').unwrap();
    let at = Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap();
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let hop =
        json!([{"apiVersion": api_version, "kind": resource, "name": name, "user": user, "timestamp": at}]);
    Changed {
        object: ObjectId {
            api_version,
            kind: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        resource: resource.to_owned(),
        operation: InputOperation::Update,
        at,
        user: Some(UserHash::of(user, "")),
        trace: Trace::decode(&hop.to_string()).ok(),
        extent: Extent::Intent,
        labels: Labels::new(),
        labels_before: Labels::new(),
        owner: None,
    }
}

fn parent(spec: &Value) -> Summary {
    let object = json!({"apiVersion": "example.com/v1", "kind": "App", "spec": spec,
        "metadata": {"name": "shop", "namespace": "prod", "uid": "app-1"}});
    let text = object.to_string();
    let mut summary = Summary::of(&Object::parse(&text).unwrap());
    summary.whole = Some(Arc::new(object));
    summary
}

/// What is hinted at when `operator` changes a Deployment of the parent's, 10 s after the hour.
fn hints(changes: &[Changed], inputs: &[&Input]) -> Vec<String> {
    let mut recent = Recent::default();
    changes.iter().cloned().for_each(|change| recent.note(change));
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "r", "operation": "DELETE", "name": "shop-web", "namespace": "prod",
        "oldObject": {"apiVersion": "apps/v1", "kind": "deployments", "metadata": {"name": "shop-web"}},
        "kind": {"group": "apps", "version": "v1", "kind": "deployments"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "userInfo": {"username": "operator"},
    }})
    .to_string();
    let review = Review::parse(review.as_bytes()).unwrap();
    let now = Timestamp::from_millisecond(1_700_000_010_000).unwrap();
    let mut controllers = Hashes::default();
    controllers.note(UserHash::of("loop", ""), &Hashes::default());
    let parent = parent(&json!({"settings": "settings"}));
    let hints = recent.hints(&review.request, &parent, &controllers, inputs, now);
    hints.iter().map(|hint| hint.told(now)).collect()
}

#[test]
fn what_came_shortly_before_is_hinted_at_newest_first() {
    let found = hints(
        &[
            change("configmaps", "prod/settings", "alice", 9_200),
            change("nodes", "/n1", "bob", 9_500),
            change("compositions.apiextensions.crossplane.io", "/web", "carol", 100),
        ],
        &[],
    );
    assert_eq!(
        found,
        [
            "nodes n1 changed by bob 0.5 s earlier (not declared as an input)",
            "configmaps prod/settings changed by alice 0.8 s earlier (not declared as an input)",
            "compositions web changed by carol 9.9 s earlier (not declared as an input)",
        ]
    );
}

#[test]
fn what_is_elsewhere_or_the_controllers_own_or_long_ago_is_not() {
    let mut child = change("configmaps", "prod/shop-config", "alice", 9_000);
    child.owner = Some("app-1".to_owned());
    let none = [
        change("configmaps", "test/settings", "alice", 9_000),
        change("configmaps", "prod/a", "operator", 9_000),
        change("configmaps", "prod/b", "loop", 9_000),
        change("configmaps", "prod/c", "system:serviceaccount:kube-system:generic-garbage-collector", 9_000),
        change("nodes", "/n2", "system:node:n2", 9_000),
        change("configmaps", "prod/d", "alice", -30_000),
        change("configmaps", "prod/e", "alice", 11_000),
        change("deployments.apps", "prod/shop-web", "alice", 9_000),
        change("App.example.com", "prod/shop", "alice", 9_000),
        change("leases.coordination.k8s.io", "prod/lock", "alice", 9_000),
        change("drifts.kausality.io", "prod/x", "alice", 9_000),
        child,
    ];
    for change in none {
        assert_eq!(hints(std::slice::from_ref(&change), &[]), Vec::<String>::new(), "{change:?}");
    }
    let gitops = change("configmaps", "prod/a", "system:serviceaccount:argocd:controller", 9_000);
    assert_eq!(hints(&[gitops], &[]).len(), 1, "GitOps tools ask for things");
}

#[test]
fn a_declared_input_is_no_hint() {
    let declared = input(Relation::Reference, Some("spec.settings"));
    let changes = [
        change("configmaps", "prod/settings", "alice", 9_000),
        change("configmaps", "prod/other", "alice", 8_000),
    ];
    let found = hints(&changes, &[&declared]);
    assert_eq!(found, ["configmaps prod/other changed by alice 2.0 s earlier (not declared as an input)"]);
}

#[test]
fn one_object_and_one_namespace_take_no_more_than_their_place() {
    let mut changes = vec![change("configmaps", "prod/settings", "alice", 5_000)];
    changes.extend((0..500).map(|number| change("configmaps", "prod/hot", "bob", 5_001 + number)));
    changes.extend(
        (0..300)
            .map(|number| change("configmaps", &format!("n{number}/a"), "bob", 5_600 + i64::from(number))),
    );
    // The namespace has been forgotten: others were changed later.
    assert_eq!(hints(&changes, &[]), Vec::<String>::new());
    assert_eq!(hints(&changes[..501], &[]).len(), 2, "a hot loop pushes out nobody");
    let many: Vec<Changed> =
        (0..40).map(|number| change("configmaps", &format!("prod/c{number}"), "bob", number)).collect();
    assert_eq!(hints(&many, &[]).len(), 3);
}

fn input(relation: Relation, field: Option<&str>) -> Input {
    Input {
        api_groups: vec![String::new()],
        resources: vec!["configmaps".to_owned()],
        relation,
        field: field.map(ToOwned::to_owned),
        operations: Vec::new(),
    }
}

/// How a change could be declared, in short.
fn candidates(spec: &Value, change: &Changed) -> Vec<String> {
    let tell = |input: &Input| {
        format!("{:?} {}", input.relation, input.field.as_deref().unwrap_or_default()).trim().to_owned()
    };
    super::candidates::candidates(&parent(spec), change).iter().map(tell).collect()
}

#[test]
fn candidates_come_from_the_narrowest_to_the_widest() {
    let spec =
        json!({"from": [{"ref": {"name": "settings"}}], "pods": {"matchLabels": {"app": "a"}}, "title": "x"});
    let mut settings = change("configmaps", "prod/settings", "alice", 0);
    settings.labels.insert("app".to_owned(), "a".to_owned());
    assert_eq!(
        candidates(&spec, &settings),
        ["Reference spec.from.ref.name", "Selector spec.pods", "Namespace", "Cluster"]
    );
    assert_eq!(candidates(&spec, &change("configmaps", "test/settings", "alice", 0)), ["Cluster"]);
    assert_eq!(candidates(&spec, &change("nodes", "/n1", "alice", 0)), ["Cluster"]);
}

/// What changes how a controller works is what drift means.
#[test]
fn a_new_composition_function_or_controller_is_never_an_input() {
    let spec = json!({"compositionRef": {"name": "web"}});
    for resource in [
        "compositions.apiextensions.crossplane.io",
        "compositionrevisions.apiextensions.crossplane.io",
        "functions.pkg.crossplane.io",
        "functionrevisions.pkg.crossplane.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
    ] {
        assert_eq!(
            candidates(&spec, &change(resource, "/web", "alice", 0)),
            Vec::<String>::new(),
            "{resource}"
        );
    }
    let deployment = change("deployments.apps", "prod/web", "alice", 0);
    assert_eq!(candidates(&json!({}), &deployment), Vec::<String>::new(), "perhaps the controller itself");
    assert_eq!(candidates(&json!({"target": {"name": "web"}}), &deployment), ["Reference spec.target.name"]);
}

/// Whether a change of a ConfigMap opens a parent that has a selector and a reference.
fn opens(relation: Relation, field: Option<&str>, change: &Changed) -> bool {
    let parent = parent(&json!({"pick": {"matchLabels": {"app": "a"}}, "settings": "settings"}));
    let input = input(relation, field);
    last(&[&input], &parent, &Hashes::default(), [change].into_iter()).is_some()
}

fn labels(text: &str) -> Labels {
    let label = |pair: &str| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    text.split(',').filter_map(label).collect()
}

#[test]
fn an_object_that_enters_or_leaves_a_selection_opens_who_selects() {
    let relabelled = |before: &str, after: &str| Changed {
        extent: Extent::Labels,
        labels_before: labels(before),
        labels: labels(after),
        ..change("configmaps", "prod/x", "alice", 0)
    };
    let selector = |change: &Changed| opens(Relation::Selector, Some("spec.pick"), change);
    assert!(selector(&relabelled("", "app=a")), "it enters");
    assert!(selector(&relabelled("app=a", "app=b")), "it leaves");
    assert!(!selector(&relabelled("app=a", "app=a,tier=web")), "it stays");
    assert!(!selector(&relabelled("app=b", "app=c")), "it never was");
    let rewritten = Changed { extent: Extent::Intent, ..relabelled("app=a", "app=b") };
    assert!(selector(&rewritten), "changed, and gone from the selection");

    let settings = Changed { extent: Extent::Labels, ..change("configmaps", "prod/settings", "alice", 0) };
    assert!(opens(Relation::Cluster, None, &settings), "as of nodes, which DaemonSets choose by label");
    assert!(opens(Relation::Namespace, None, &settings));
    assert!(!opens(Relation::Reference, Some("spec.settings"), &settings), "a name is no label");
    let settings = Changed { extent: Extent::Intent, ..settings };
    assert!(opens(Relation::Reference, Some("spec.settings"), &settings));
}

#[test]
fn the_parents_own_annotations_are_an_input_where_that_is_declared() {
    let input = Input {
        api_groups: vec!["example.com".to_owned()],
        resources: vec!["apps".to_owned()],
        ..input(Relation::Metadata, None)
    };
    let opens = |extent: Extent, place: &str| {
        let mut change = Changed { extent, ..change("App.example.com", place, "alice", 0) };
        change.resource = "apps".to_owned();
        last(&[&input], &parent(&json!({})), &Hashes::default(), [&change].into_iter()).is_some()
    };
    assert!(opens(Extent::Annotations, "prod/shop") && opens(Extent::Labels, "prod/shop"));
    assert!(!opens(Extent::Intent, "prod/shop"), "that is its own intent");
    assert!(!opens(Extent::Annotations, "prod/other"));
}

/// What a user changes of a node, and who stands in the trace of that.
fn of_node(user: &str, before: &Value, after: &Value) -> Option<(Extent, String)> {
    let node = |metadata: &Value| {
        let mut node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n"}, "spec": {}});
        for (key, value) in metadata.as_object().unwrap() {
            node["metadata"][key] = value.clone();
        }
        node
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "r", "operation": "UPDATE", "name": "n1", "kind": {"version": "v1", "kind": "Node"},
        "resource": {"version": "v1", "resource": "nodes"}, "userInfo": {"username": user},
        "object": node(after), "oldObject": node(before),
    }})
    .to_string();
    let review = Review::parse(review.as_bytes()).unwrap();
    let settings = crate::Settings::default();
    let facts = crate::Facts::new(Timestamp::UNIX_EPOCH, &settings);
    let decision = crate::decide(&review, &facts);
    let change = Changed::of(&review.request, &decision, facts.now)?;
    let trace = change.trace?;
    assert_eq!(trace.hops().len(), 1);
    Some((change.extent, trace.hops()[0].user.clone()))
}

#[test]
fn a_label_that_is_taken_off_is_a_change_by_who_did_it() {
    let (edge, none) = (json!({"labels": {"edge": "yes"}}), json!({}));
    assert_eq!(of_node("alice", &edge, &none), Some((Extent::Labels, "alice".to_owned())));
    assert_eq!(of_node("system:serviceaccount:kube-system:node-controller", &edge, &none), None);
    let noted = json!({"annotations": {"note": "x"}});
    assert_eq!(of_node("alice", &none, &noted), Some((Extent::Annotations, "alice".to_owned())));
    let applied = json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}});
    assert_eq!(of_node("alice", &none, &applied), None);
}

/// What is known must be what a policy could say.
#[test]
fn what_is_known_is_valid() {
    for Input { relation, field, api_groups, resources, .. } in KNOWN.iter().map(|known| &known.input) {
        let needs = matches!(relation, Relation::Reference | Relation::Selector);
        assert_eq!(field.is_some(), needs, "{api_groups:?} {resources:?}");
        for (group, resource) in api_groups.iter().zip(resources) {
            let what = change(&format!("{resource}.{group}"), "/x", "alice", 0);
            let drift = super::candidates::candidates(&parent(&json!({})), &what).is_empty();
            assert!(
                !drift || resource == "namespaces" || resource == "deployments",
                "{resource}.{group} is what drift means"
            );
        }
    }
}

/// A review of a Secret, whoever owns it.
fn observed(user: &str, operation: &str, owned: bool) -> Option<InputOperation> {
    let owner = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "a", "controller": true}]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {},
        "metadata": {"name": "s", "uid": "s", "ownerReferences": if owned { owner } else { json!([]) }}});
    let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "r", "operation": operation, "name": "s", "kind": {"version": "v1", "kind": "Secret"},
        "resource": {"version": "v1", "resource": "secrets"}, "userInfo": {"username": user}}});
    review["request"][if operation == "DELETE" { "oldObject" } else { "object" }] = secret;
    let text = review.to_string();
    let review = Review::parse(text.as_bytes()).unwrap();
    let settings = crate::Settings { own_users: ["us".to_owned()].into(), ..crate::Settings::default() };
    let change = Changed::observed(&review.request, &settings, Timestamp::UNIX_EPOCH)?;
    assert_eq!(change.trace.unwrap().hops()[0].user, user);
    Some(change.operation)
}

#[test]
fn who_deletes_an_input_is_observed_and_controllers_are_not() {
    let operator = "system:serviceaccount:ops:operator";
    assert_eq!(observed("alice", "DELETE", false), Some(InputOperation::Delete));
    assert_eq!(observed("alice", "DELETE", true), Some(InputOperation::Delete));
    assert_eq!(observed(operator, "CREATE", false), Some(InputOperation::Create), "as GitOps does");
    assert_eq!(observed(operator, "DELETE", true), None, "perhaps its controller");
    assert_eq!(observed("us", "DELETE", false), None);
}
