//! What each identity may do, and what not, asked of the API server.

use serde_json::{Value, json};

use crate::install::stage::*;
use kausality_testbed::{ControlPlane, eventually};

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kausality-system"];

fn account(name: &str) -> String {
    format!("system:serviceaccount:kausality-system:{name}")
}

/// What kubectl says to an identity of ours.
fn as_account(plane: &ControlPlane, name: &str, arguments: &[&str]) -> (bool, String) {
    let output = plane.kubectl(&account(name), &GROUPS).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Whether it may do this: a verb and a resource, perhaps with a name and a namespace.
fn may(plane: &ControlPlane, name: &str, what: &str) -> bool {
    let (_, said) =
        as_account(plane, name, &[&["auth", "can-i"], &what.split(' ').collect::<Vec<_>>()[..]].concat());
    said.lines().any(|line| line == "yes")
}

async fn installed() -> Option<Stage> {
    let plane = stage().await?;
    let (code, said) = kausality(&plane, &["install", "--wait=false"]);
    assert_eq!(code, 0, "{said}");
    Some(plane)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_may_do_its_work_and_little_else() {
    let Some(plane) = installed().await else { return };
    let here = "-n kausality-system";
    for (who, what, expected) in [
        ("kausality-webhook", "watch namespaces", true),
        ("kausality-webhook", "watch kausalities.kausality.io", true),
        ("kausality-webhook", "patch kausalities.kausality.io --subresource=status", true),
        ("kausality-webhook", "patch kausalities.kausality.io", false),
        ("kausality-webhook", "create events.events.k8s.io -n shop", true),
        ("kausality-webhook", &format!("watch secrets/kausality-webhook-tls {here}"), true),
        ("kausality-webhook", &format!("get secrets/kausality-salt {here}"), true),
        ("kausality-webhook", &format!("watch secrets/kausality-salt {here}"), false),
        ("kausality-webhook", &format!("get secrets/other {here}"), false),
        ("kausality-webhook", &format!("patch secrets/kausality-webhook-tls {here}"), false),
        ("kausality-webhook", &format!("patch configmaps/kausality-inputs {here}"), true),
        ("kausality-webhook", &format!("patch configmaps/other {here}"), false),
        ("kausality-webhook", "patch deployments.apps -n shop", false),
        ("kausality-webhook", "patch clusterroles", false),
        ("kausality-controller", "watch kausalities.kausality.io", true),
        ("kausality-controller", "patch kausalities.kausality.io --subresource=status", true),
        ("kausality-controller", "watch customresourcedefinitions.apiextensions.k8s.io", true),
        ("kausality-controller", "patch customresourcedefinitions.apiextensions.k8s.io", false),
        ("kausality-controller", "patch mutatingwebhookconfigurations/kausality", true),
        ("kausality-controller", "patch mutatingwebhookconfigurations/other", false),
        ("kausality-controller", "delete validatingwebhookconfigurations/kausality", true),
        ("kausality-controller", "delete validatingwebhookconfigurations/other", false),
        ("kausality-controller", &format!("create secrets {here}"), true),
        ("kausality-controller", &format!("update secrets/kausality-webhook-tls {here}"), true),
        ("kausality-controller", &format!("get secrets/kausality-salt {here}"), true),
        // It fills one that is empty.
        ("kausality-controller", &format!("update secrets/kausality-salt {here}"), true),
        ("kausality-controller", &format!("delete secrets/kausality-salt {here}"), false),
        ("kausality-controller", &format!("get secrets/other {here}"), false),
        ("kausality-controller", "get secrets/kausality-webhook-tls -n default", false),
        ("kausality-controller", &format!("update leases/kausality-controller {here}"), true),
        ("kausality-controller", &format!("update leases/other {here}"), false),
        ("kausality-controller", "bind clusterroles", false),
        ("kausality-controller", "create clusterrolebindings", false),
    ] {
        assert_eq!(may(&plane, who, what), expected, "{who}: {what}");
    }
}

/// The controller may write every ClusterRole as far as RBAC goes. The admission policy of the chart narrows that to what
/// policies need, and what it writes reaches the webhook.
#[tokio::test(flavor = "multi_thread")]
async fn the_controller_writes_roles_of_policies_only() {
    let Some(plane) = installed().await else { return };
    let apply = |object: &Value, more: &[&str]| {
        let path = file(&plane, "role.json", &object.to_string());
        let arguments = ["apply", "--server-side", "--field-manager=kausality-controller", "-f", &path];
        as_account(&plane, "kausality-controller", &[&arguments, more].concat())
    };
    let role = |name: &str, change: &Value| {
        let mut role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"kausality.io/aggregate-to-webhook": "true"}},
            "rules": [
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
            ],
        });
        for (key, value) in change.as_object().unwrap() {
            *role.pointer_mut(key).unwrap() = value.clone();
        }
        role
    };
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let admin = json!({"rbac.authorization.k8s.io/aggregate-to-admin": "true"});
    let urls = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    // The API server learns of a policy for admission some time after it is made.
    eventually(PATIENCE, "the policy to hold", async || {
        let (accepted, said) = apply(&role("evil", &json!({})), &["--dry-run=server"]);
        if accepted { Err(said) } else { Ok(()) }
    })
    .await
    .unwrap();
    for (object, reason) in [
        (role("evil", &json!({})), "the roles of policies only"),
        (role("kausality-webhook-policies", &json!({})), "the roles of policies only"),
        (role("kausality:policy:a", &json!({"/rules": all.clone()})), "get, list, watch and patch"),
        (role("kausality:policy:a", &json!({"/rules": urls})), "get, list, watch and patch"),
        (
            role("kausality:policy:a", &json!({"/metadata/labels": admin.clone()})),
            "are gathered into no role",
        ),
        (
            role("kausality:policy:a", &json!({"/metadata/labels": {"team": "a"}})),
            "have no labels but their own",
        ),
    ] {
        let (accepted, said) = apply(&object, &[]);
        assert!(!accepted && said.contains(reason), "{object}: {said}");
    }
    let (deleted, said) =
        as_account(&plane, "kausality-controller", &["delete", "clusterrole", "kausality-webhook"]);
    assert!(!deleted && said.contains("the roles of policies only"), "{said}");

    // Of its own role, it changes the owners and nothing else.
    let uid = get(&plane, &["namespace", "kausality-system"])["metadata"]["uid"].clone();
    let owners = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "kausality-system", "uid": uid}]);
    let all_rules = json!({"rules": all});
    let gathered = json!({"metadata": {"labels": admin}});
    for (patch, refusal) in [
        (&json!({"metadata": {"ownerReferences": owners}}), None),
        (&all_rules, Some("does not change what it may do")),
        (&gathered, Some("are gathered into no role")),
    ] {
        let patch = patch.to_string();
        let arguments = ["patch", "clusterrole", "kausality-controller", "--type=merge", "-p", &patch];
        let (accepted, said) = as_account(&plane, "kausality-controller", &arguments);
        assert_eq!(accepted, refusal.is_none(), "{said}");
        assert!(refusal.is_none_or(|refusal| said.contains(refusal)), "{said}");
    }
    let (deleted, said) =
        as_account(&plane, "kausality-controller", &["delete", "clusterrole", "kausality-controller"]);
    assert!(!deleted && said.contains("the roles of policies only"), "{said}");

    assert!(!may(&plane, "kausality-webhook", "patch deployments.apps -n shop"));
    let (accepted, said) = apply(&role("kausality:policy:workloads", &json!({})), &[]);
    assert!(accepted, "{said}");
    eventually(PATIENCE, "the right to reach the webhook", async || {
        may(&plane, "kausality-webhook", "patch deployments.apps -n shop").then_some(())
    })
    .await
    .unwrap();
    // What others have put onto it keeps nobody from writing it.
    must(&plane, &["label", "clusterrole", "kausality:policy:workloads", "team=a"]);
    let wider =
        json!([{"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get"]}]);
    let (accepted, said) = apply(&role("kausality:policy:workloads", &json!({"/rules": wider})), &[]);
    assert!(accepted, "{said}");
    let (deleted, said) =
        as_account(&plane, "kausality-controller", &["delete", "clusterrole", "kausality:policy:workloads"]);
    assert!(deleted, "{said}");
    // Registrations are its to write, by apply.
    for object in controllers_work(&plane) {
        let (accepted, said) = apply(&object, &[]);
        assert!(accepted, "{said}");
    }
}

/// What a namespace or a policy says of all that is in it is not for a service account to say, which may be one of those that it is
/// about. Those who apply what people have reviewed have the right to approve.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_changes_modes_and_policies_only_with_the_right_to_approve() {
    const ROBOT: &str = "system:serviceaccount:ci:robot";
    let Some(plane) = installed().await else { return };
    must(
        &plane,
        &["create", "clusterrole", "robot", "--verb=*", "--resource=namespaces,kausalities.kausality.io"],
    );
    must(
        &plane,
        &["create", "clusterrolebinding", "robot", "--clusterrole=robot", "--serviceaccount=ci:robot"],
    );
    must(&plane, &["create", "namespace", "shop"]);
    let robot = |arguments: &[&str]| {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:ci"];
        let output = plane.kubectl(ROBOT, &groups).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let policy = |name: &str| {
        json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": name},
            "spec": {"resources": [{"apiGroups": ["example.com"], "resources": ["toys"]}], "mode": "enforce"}})
    };
    let toys = file(&plane, "toys.json", &policy("toys").to_string());
    let more = file(&plane, "more.json", &policy("more").to_string());
    let dark = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "dark", "labels": {"kausality.io/exclude": ""}}});
    let dark = file(&plane, "dark.json", &dark.to_string());
    must(&plane, &["create", "-f", &toys]);
    must(&plane, &["create", "namespace", "strict"]);
    must(&plane, &["annotate", "namespace", "strict", "kausality.io/mode=enforce"]);
    must(&plane, &["label", "namespace", "strict", "kausality.io/exclude=yes"]);

    let owned = r#"{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "x"}]}}"#;
    let namespaces = [
        &["annotate", "namespace", "shop", "kausality.io/mode=log"][..],
        &["label", "namespace", "shop", "kausality.io/exclude="],
        &["annotate", "namespace", "strict", "kausality.io/mode-"],
        &["label", "namespace", "strict", "kausality.io/exclude-"],
        &["create", "-f", &dark],
    ];
    let policies = [
        &["patch", "kausality", "toys", "--type=merge", "-p", r#"{"spec": {"mode": "log"}}"#][..],
        &["patch", "kausality", "toys", "--type=merge", "-p", owned],
        &["create", "-f", &more],
        &["delete", "kausality", "toys"],
    ];
    // The API server learns of a policy for admission some time after it is made.
    eventually(PATIENCE, "the policies to hold", async || {
        let held =
            [namespaces[0], policies[0]].map(|attempt| robot(&[attempt, &["--dry-run=server"]].concat()));
        if held.iter().any(|(done, _)| *done) { Err(format!("{held:?}")) } else { Ok(()) }
    })
    .await
    .unwrap();
    for (attempts, reason) in [
        (&namespaces[..], "may not change kausality.io/mode or kausality.io/exclude of a namespace"),
        (&policies[..], "may not change Kausality policies"),
    ] {
        for attempt in attempts {
            let (done, said) = robot(attempt);
            assert!(!done && said.contains(reason) && said.contains(ROBOT), "{attempt:?}: {said}");
        }
    }
    // Everything else is its own business.
    for attempt in [
        &["label", "namespace", "shop", "team=a"][..],
        &["annotate", "namespace", "strict", "team=a"],
        &["label", "kausality", "toys", "team=a"],
        &["create", "namespace", "plain"],
    ] {
        let (done, said) = robot(attempt);
        assert!(done, "{attempt:?}: {said}");
    }

    // The right in one namespace is for that one.
    let grant = ["--clusterrole=kausality-approver", "--serviceaccount=ci:robot"];
    must(&plane, &[&["create", "rolebinding", "robot", "-n", "shop"], &grant[..]].concat());
    eventually(PATIENCE, "the right in shop", async || {
        let (done, said) = robot(namespaces[0]);
        if done { Ok(()) } else { Err(said) }
    })
    .await
    .unwrap();
    assert!(!robot(namespaces[2]).0 && !robot(policies[0]).0);
    must(&plane, &[&["create", "clusterrolebinding", "robot-approves"], &grant[..]].concat());
    eventually(PATIENCE, "the right everywhere", async || {
        let (done, said) = robot(policies[0]);
        if done { Ok(()) } else { Err(said) }
    })
    .await
    .unwrap();
    for attempt in [&namespaces[1..], &policies[2..]].concat() {
        let (done, said) = robot(attempt);
        assert!(done, "{attempt:?}: {said}");
    }
    // People have the rights that RBAC gives them.
    must(&plane, &["annotate", "namespace", "shop", "kausality.io/mode-"]);
    must(&plane, &["delete", "kausality", "more"]);
}

/// What the Job before an upgrade runs can do what it is for, with the rights that it has.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_brings_the_definitions_up_to_date() {
    let Some(plane) = stage().await else { return };
    let mut old = objects(&read("deploy/crds/kausality.io_kausalities.yaml")).remove(0);
    old["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
    must(&plane, &["create", "-f", &file(&plane, "old.json", &old.to_string())]);
    must(&plane, &["apply", "--server-side", "-f", "deploy/manifests/00-namespace.yaml"]);
    let hook = plane.helm.template(&["--show-only", "templates/crds-upgrade.yaml"]);
    let job = objects(&hook).into_iter().find(|object| object["kind"] == "Job").unwrap();
    must(&plane, &["apply", "--server-side", "-f", &file(&plane, "hook.yaml", &hook)]);

    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let who = account("kausality-crds");
    let identity = [
        "--as",
        &who,
        "--as-group",
        GROUPS[0],
        "--as-group",
        GROUPS[1],
        "--as-group",
        "system:authenticated",
    ];
    let (code, said) = kausality(&plane, &[&arguments[..], &identity].concat());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("CustomResourceDefinition kausalities.kausality.io: changed"), "{said}");
    assert!(said.contains("CustomResourceDefinition drifts.kausality.io: created"), "{said}");
    let found = get(&plane, &["crd", "kausalities.kausality.io"]);
    let columns = found["spec"]["versions"][0]["additionalPrinterColumns"].as_array().map_or(0, Vec::len);
    assert!(columns > 2, "{found}");
    let (code, said) = kausality(&plane, &[&["install", "--wait=false"], &identity[..]].concat());
    assert!(code == 2 && said.contains("administrator"), "{said}");
}
