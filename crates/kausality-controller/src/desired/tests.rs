use std::{fs, path::Path, sync::Arc};

use jiff::Timestamp;
use kausality_cluster::Kind;
use kube::core::ApiResource;

use super::{conditions::Trouble, *};

fn resource(group: &str, version: &str, plural: &str) -> Resource {
    Resource { group: group.to_owned(), plural: plural.to_owned(), version: version.to_owned() }
}

fn served() -> BTreeSet<Resource> {
    let served = [
        ("", "v1", "configmaps"),
        ("", "v1", "secrets"),
        ("", "v1", "services"),
        ("apps", "v1", "deployments"),
        ("apps", "v1", "replicasets"),
        ("batch", "v1", "jobs"),
        ("example.com", "v2", "widgets"),
        ("example.com", "v1beta1", "gadgets"),
    ];
    served.map(|(group, version, plural)| resource(group, version, plural)).into()
}

fn place() -> Place {
    Place {
        namespace: "kausality-system".to_owned(),
        target: Target::Service {
            namespace: "kausality-system".to_owned(),
            name: "kausality-webhook".to_owned(),
        },
        bundle: "PEM".to_owned(),
        anchor: Some(Anchor { name: "kausality-controller".to_owned(), uid: "u-1".to_owned() }),
    }
}

/// Each file in `cases` holds the specs of policies by their names; what follows from them is golden.
#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let cases: BTreeMap<String, Value> = serde_saphyr::from_str(&text).unwrap();
        let policies = cases.into_iter().map(|(name, case)| {
            let object = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
                "metadata": {"name": name, "generation": 7}, "spec": case["spec"], "status": case["status"]});
            Policy::read(&object)
        });
        let policies: Vec<Policy> = policies.collect();
        let name = file.file_stem().unwrap().to_str().unwrap();
        insta::with_settings!({description => text.lines().next().unwrap().trim_start_matches("# ").to_owned(),
            omit_expression => true}, {
            insta::assert_snapshot!(name, show(&policies, &desired(&policies, &served(), &[], &place())));
        });
    }
}

/// What differs between cases, one line for each thing.
fn show(policies: &[Policy], desired: &Desired) -> String {
    let mut lines = Vec::new();
    let webhooks =
        desired.mutating.as_ref().map(|mutating| mutating["webhooks"].as_array().cloned().unwrap());
    for webhook in webhooks.unwrap_or_default() {
        lines.push(format!("{}: {}", webhook["name"].as_str().unwrap(), webhook["failurePolicy"]));
        for rule in webhook["rules"].as_array().unwrap() {
            let part = |field: &str| {
                rule[field]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|name| name.as_str().unwrap())
                    .collect::<Vec<_>>()
                    .join(",")
            };
            lines.push(format!(
                "  {} {}/{} {} {}",
                part("operations"),
                part("apiGroups"),
                part("apiVersions"),
                part("resources"),
                rule["scope"]
            ));
        }
        lines.push(format!("  namespaces {}", webhook["namespaceSelector"]));
        lines.push(format!("  objects {}", webhook["objectSelector"]));
        for condition in webhook["matchConditions"].as_array().unwrap().iter().skip(1) {
            lines.push(format!(
                "  {}: {}",
                condition["name"].as_str().unwrap(),
                condition["expression"].as_str().unwrap()
            ));
        }
    }
    for role in &desired.roles {
        lines.push(format!("role {}", role["metadata"]["name"].as_str().unwrap()));
        lines.extend(
            role["rules"]
                .as_array()
                .unwrap()
                .iter()
                .map(|rule| format!("  {} {}", rule["apiGroups"], rule["resources"])),
        );
    }
    for policy in policies {
        let status =
            conditions::status(policy, &desired.findings[&policy.name], Ok(()), Timestamp::UNIX_EPOCH);
        for condition in status.conditions {
            let kausality_api::status::Condition { kind, status, reason, message, .. } = condition;
            lines.push(format!("{}: {kind}={status} {reason}: {message}", policy.name));
        }
    }
    lines.join("\n")
}

fn policy(spec: &Value) -> Policy {
    Policy::read(&json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
        "metadata": {"name": "p", "generation": 7}, "spec": spec}))
}

fn deployments(mode: &str) -> Value {
    json!({"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}], "mode": mode})
}

/// The objects as they are applied, to the last field.
#[test]
fn objects() {
    let desired = desired(&[policy(&deployments("enforce"))], &served(), &[], &place());
    insta::assert_json_snapshot!("whole", json!([desired.mutating, desired.validating, desired.roles]));
}

#[test]
fn a_webhook_elsewhere_is_reached_by_its_url() {
    let place = Place { target: Target::Url("https://10.0.0.1:9443/".to_owned()), ..place() };
    let desired = desired(&[policy(&deployments("log"))], &served(), &[], &place);
    let expected = json!({"url": "https://10.0.0.1:9443/admit", "caBundle": "UEVN"});
    assert_eq!(desired.mutating.unwrap()["webhooks"][0]["clientConfig"], expected);
    let expected = json!({"url": "https://10.0.0.1:9443/validate", "caBundle": "UEVN"});
    assert_eq!(desired.validating.unwrap()["webhooks"][0]["clientConfig"], expected);
}

#[test]
fn without_policies_there_is_nothing() {
    let desired = desired(&[], &served(), &[], &place());
    assert!(desired.mutating.is_none() && desired.validating.is_none() && desired.roles.is_empty());
}

/// An edit must not lift protection by mistake, also not with a new CA.
#[test]
fn what_cannot_be_understood_holds_as_it_did() {
    let before = desired(&[policy(&deployments("enforce"))], &served(), &[], &place());
    let stored = before.mutating.unwrap()["webhooks"].as_array().cloned().unwrap();
    let bad = [policy(&json!({"mode": "sometimes"}))];
    let place = Place { bundle: "OTHER".to_owned(), ..place() };
    let after = desired(&bad, &served(), &stored, &place);
    let kept = after.mutating.unwrap()["webhooks"].as_array().cloned().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["rules"], stored[0]["rules"]);
    assert_ne!(kept[0]["clientConfig"], stored[0]["clientConfig"]);
    let status = conditions::status(&bad[0], &after.findings["p"], Ok(()), Timestamp::UNIX_EPOCH);
    assert_eq!((&*status.conditions[0].status, &*status.conditions[0].reason), ("False", "PolicyInvalid"));
}

/// A group whose server does not answer stays watched; one that is gone for sure does not.
#[test]
fn what_cannot_be_told_narrows_nothing() {
    let everything =
        json!({"resources": [{"apiGroups": ["example.com", "batch"], "resources": ["*"]}], "mode": "log"});
    let before = desired(&[policy(&everything)], &served(), &[], &place());
    let stored = before.mutating.unwrap()["webhooks"].as_array().cloned().unwrap();
    let kind = |group: &str, plural: &str| {
        let resource = ApiResource {
            group: group.to_owned(),
            version: "v3".to_owned(),
            api_version: format!("{group}/v3"),
            kind: String::new(),
            plural: plural.to_owned(),
        };
        Arc::new(Kind { resource, namespaced: true, names: Vec::new() })
    };
    let mut listing = Listing { kinds: vec![kind("example.com", "widgets")], uncertain: BTreeSet::new() };
    assert_eq!(known(&listing, &stored), [resource("example.com", "v3", "widgets")].into());
    listing.uncertain.insert("example.com".to_owned());
    let expected = [resource("example.com", "v3", "widgets"), resource("example.com", "v1beta1", "gadgets")];
    assert_eq!(known(&listing, &stored), expected.into());
}

#[test]
fn conditions_keep_their_time_while_their_status_stays() {
    let mut policy = policy(&deployments("log"));
    let finding = Finding { watched: vec!["deployments.apps".to_owned()], ..Finding::default() };
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let refused = Trouble::Refused("no".to_owned());
    let mut tell = |outcome: Result<(), &Trouble>, now: i64| {
        policy.status = conditions::status(&policy, &finding, outcome, at(now));
        let of = |kind: &str| policy.status.conditions.iter().find(|one| one.kind == kind).unwrap().clone();
        let ready = of("Ready");
        (ready.status, ready.reason, ready.last_transition_time.as_second())
    };
    let told = |status: &str, reason: &str, time: i64| (status.to_owned(), reason.to_owned(), time);
    assert_eq!(tell(Ok(()), 10), told("True", "Configured", 10));
    assert_eq!(tell(Ok(()), 20), told("True", "Configured", 10));
    assert_eq!(tell(Err(&refused), 30), told("False", "ConfigurationFailed", 30));
    let missing = Trouble::NoCertificate("none".to_owned());
    assert_eq!(tell(Err(&missing), 40), told("False", "NoCertificate", 30));
}
