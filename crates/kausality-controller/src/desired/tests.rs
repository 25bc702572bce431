use std::{fs, path::Path, sync::Arc};

use jiff::Timestamp;
use kausality_cluster::Kind;
use kube::core::ApiResource;

use super::{conditions::Trouble, *};

/// What there should be, where the API server has refused nothing.
fn desired(policies: &[Policy], served: &BTreeSet<Resource>, stored: &[Value], place: &Place) -> Desired {
    super::desired(policies, served, stored, place, &BTreeMap::new())
}

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
        ("", "v1", "nodes"),
        ("apps", "v1", "daemonsets"),
        ("batch", "v1", "jobs"),
        ("cert-manager.io", "v1", "certificates"),
        ("cert-manager.io", "v1", "clusterissuers"),
        ("cert-manager.io", "v1", "issuers"),
        ("networking.k8s.io", "v1", "ingressclasses"),
        ("networking.k8s.io", "v1", "ingresses"),
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
            let desired = desired(&policies, &served(), &[], &place());
            insta::assert_snapshot!(name, show(&policies, &desired));
            assert_eq!(empty_fields(&desired), [""; 0], "{name}");
        });
    }
}

/// What differs between cases, one line for each thing.
/// What an API server would leave out: what is stored would never be what is wanted, and be repaired for ever.
fn empty_fields(desired: &Desired) -> Vec<String> {
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let of_webhook = |webhook: Value| {
        let fields = webhook.as_object().cloned().unwrap().into_iter();
        fields.filter(|(_, value)| is_empty(value)).map(|(field, _)| field).collect::<Vec<String>>()
    };
    webhooks(desired).into_iter().flat_map(of_webhook).collect()
}

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
        let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
        for condition in conditions.filter(|it| it["name"] != "intent-or-kausality-annotations") {
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
    named("p", spec)
}

fn named(name: &str, spec: &Value) -> Policy {
    Policy::read(&json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
        "metadata": {"name": name, "generation": 7}, "spec": spec}))
}

fn webhooks(desired: &Desired) -> Vec<Value> {
    desired
        .mutating
        .as_ref()
        .map(|mutating| mutating["webhooks"].as_array().cloned().unwrap())
        .unwrap_or_default()
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

/// The first policy is looked at as it is written, too.
#[test]
fn without_policies_only_policies_are_reviewed() {
    let without = desired(&[], &served(), &[], &place());
    assert!(without.mutating.is_none() && without.roles.is_empty());
    assert_eq!(without.validating.unwrap()["webhooks"][0]["name"], "policies.kausality.io");
    // Without a certificate nobody could answer.
    let uncertified = desired(&[], &served(), &[], &Place { bundle: String::new(), ..place() });
    assert!(uncertified.validating.is_none());
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
    assert_eq!(kept.len(), stored.len());
    assert_eq!(kept[0]["rules"], stored[0]["rules"]);
    assert_ne!(kept[0]["clientConfig"], stored[0]["clientConfig"]);
    let status = conditions::status(&bad[0], &after.findings["p"], Ok(()), Timestamp::UNIX_EPOCH);
    assert_eq!((&*status.conditions[0].status, &*status.conditions[0].reason), ("False", "PolicyInvalid"));
}

/// Who decides is asked first, of what was sent; and goes on to be asked where a policy cannot be understood any more.
#[test]
fn decisions_have_a_path_of_their_own() {
    let parents = json!([{"apiGroup": "example.com", "kind": "Widget", "resource": "widgets"}]);
    let mut asked = named("q", &deployments("enforce"));
    asked.status = serde_json::from_value(json!({"parents": parents})).unwrap();
    let before = webhooks(&desired(&[policy(&deployments("log")), asked], &served(), &[], &place()));
    let shown = |found: &[Value]| -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        found
            .iter()
            .map(|one| format!("{} {}", text(&one["name"]), text(&one["clientConfig"]["service"]["path"])))
            .collect()
    };
    let decisions = "q.decisions.kausality.io /decisions";
    let of_status = "q.decisions-status.kausality.io /decisions";
    let [p, q] = ["p.drift.kausality.io /admit", "q.drift.kausality.io /admit"];
    let [of_p, of_q] = ["p.status.kausality.io /admit", "q.status.kausality.io /admit"];
    let metadata = "q.status-metadata.kausality.io /admit";
    let inputs = "q.inputs.kausality.io /inputs";
    let namespaces = "decisions-namespaces.kausality.io /decisions";
    let expected = [decisions, of_status, p, of_p, q, of_q, metadata, inputs, namespaces];
    assert_eq!(shown(&before), expected);
    // No status is refused because nobody answers.
    assert_eq!(
        (&before[0]["failurePolicy"], &before[1]["failurePolicy"]),
        (&json!("Fail"), &json!("Ignore"))
    );
    let bad = [policy(&deployments("log")), named("q", &json!({"mode": "sometimes"}))];
    assert_eq!(shown(&webhooks(&desired(&bad, &served(), &before, &place()))), expected);
    let alone = desired(&bad, &served(), &before, &place()).alone("q").unwrap();
    assert_eq!(
        shown(alone["webhooks"].as_array().unwrap()),
        [decisions, of_status, q, of_q, metadata, inputs]
    );
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

/// The mistake of one is not the outage of all: what it said before holds on, and the others go ahead.
#[test]
fn what_the_api_server_refuses_holds_as_it_did() {
    let before = webhooks(&desired(&[named("bad", &deployments("log"))], &served(), &[], &place()));
    let policies = [named("bad", &deployments("enforce")), named("good", &deployments("enforce"))];
    let refused = [("bad".to_owned(), "no".to_owned())].into();
    let after = super::desired(&policies, &served(), &before, &place(), &refused);
    let found = webhooks(&after);
    let shown = |entry: &Value| format!("{} {}", entry["name"].as_str().unwrap(), entry["failurePolicy"]);
    let shown: Vec<String> = found.iter().map(shown).collect();
    let [bad, good] = ["bad", "good"].map(|policy| format!(r#"{policy}.status.kausality.io "Ignore""#));
    let metadata = r#"good.status-metadata.kausality.io "Fail""#;
    let namespaces = r#"decisions-namespaces.kausality.io "Ignore""#;
    let drifts = [r#"bad.drift.kausality.io "Ignore""#, r#"good.drift.kausality.io "Fail""#];
    let expected = [drifts[0], &bad, drifts[1], &good, metadata, namespaces];
    assert_eq!(shown, expected);
    // What is not registered leaves nothing to others.
    assert_eq!(found[2]["matchConditions"].as_array().unwrap().len(), 2, "{:#}", found[2]);
    let told = |policy: &Policy| {
        let status = conditions::status(policy, &after.findings[&policy.name], Ok(()), Timestamp::UNIX_EPOCH);
        status
            .conditions
            .into_iter()
            .map(|one| format!("{}={} {}", one.kind, one.status, one.reason))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let expected = "Ready=False ConfigurationFailed, WebhookConfigured=False ConfigurationFailed";
    assert_eq!(told(&policies[0]), expected);
    assert_eq!(told(&policies[1]), "Ready=True Configured, WebhookConfigured=True Configured");
}

/// What is tried alone is what there would be of one policy, and of no other with a similar name.
#[test]
fn a_policy_can_be_tried_alone() {
    let overrides = json!([{"namespaces": ["prod"], "mode": "enforce"}]);
    let mut divided = deployments("log");
    divided["overrides"] = overrides;
    let policies = [named("p", &divided), named("p.drift", &deployments("log"))];
    let desired = desired(&policies, &served(), &[], &place());
    let names = |policy: &str| {
        let alone = desired.alone(policy)?;
        assert_eq!(alone["metadata"], desired.mutating.as_ref().unwrap()["metadata"]);
        let names =
            alone["webhooks"].as_array()?.iter().map(|entry| entry["name"].as_str().unwrap().to_owned());
        Some(names.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(
        names("p").unwrap(),
        "p.drift-log.kausality.io p.drift.kausality.io p.status.kausality.io p.status-metadata.kausality.io"
    );
    assert_eq!(names("p.drift").unwrap(), "p.drift.drift.kausality.io p.drift.status.kausality.io");
    assert_eq!(names("q"), None);
}

/// What says why stands at the end of what API servers say.
#[test]
fn a_long_refusal_is_cut_in_its_middle() {
    let refusal =
        format!("webhooks[0].matchConditions[1].expression: Invalid value: {:?}: too long", "x".repeat(5000));
    let refused = Trouble::Refused(refusal);
    let policy = policy(&deployments("log"));
    let status = conditions::status(&policy, &Finding::default(), Err(&refused), Timestamp::UNIX_EPOCH);
    let message = &status.conditions[0].message;
    assert!(
        message.len() < 1100 && message.ends_with("too long") && message.contains("expression"),
        "{message}"
    );
}

/// What does not fit is the fault of the policy that it follows from, and of no other.
#[test]
fn a_policy_for_which_there_is_no_room_is_faulty_by_itself() {
    let plural = |number: usize| format!("{:060}", number);
    let many: BTreeSet<Resource> =
        (0..4000).map(|number| resource("big.example.com", "v1", &plural(number))).collect();
    let served: BTreeSet<Resource> = many.union(&served()).cloned().collect();
    let big = json!({"resources": [{"apiGroups": ["big.example.com"], "resources": ["*"]}], "mode": "log"});
    let policies = [named("a", &big), named("b", &big), named("c", &deployments("enforce"))];
    let desired = desired(&policies, &served, &[], &place());
    let entries: Vec<Value> = webhooks(&desired).iter().map(|entry| entry["name"].clone()).collect();
    let expected = [
        "a.drift",
        "a.status",
        "a.inputs",
        "c.drift",
        "c.status",
        "c.status-metadata",
        "decisions-namespaces",
    ];
    assert_eq!(entries, expected.map(|name| format!("{name}.kausality.io")));
    let fault = desired.findings["b"].fault.clone().unwrap_or_default();
    assert!(fault.contains("does not fit"), "{fault}");
    assert!(desired.findings["a"].fault.is_none() && desired.findings["c"].fault.is_none());
}

/// What keeps nodes and controllers alive, and what Kausality is made of, is meant by whoever names it, and by nobody else.
#[test]
fn star_leaves_out_what_must_go_on() {
    let all = [
        ("", "v1", "events"),
        ("", "v1", "nodes"),
        ("", "v1", "pods"),
        ("certificates.k8s.io", "v1", "certificatesigningrequests"),
        ("cilium.io", "v2", "ciliumnodes"),
        ("coordination.k8s.io", "v1", "leases"),
        ("crd.projectcalico.org", "v1", "ipamblocks"),
        ("events.k8s.io", "v1", "events"),
        ("kausality.io", "v1alpha1", "kausalities"),
    ];
    let served: BTreeSet<Resource> =
        all.map(|(group, version, plural)| resource(group, version, plural)).into();
    let groups = [
        "",
        "certificates.k8s.io",
        "cilium.io",
        "coordination.k8s.io",
        "crd.projectcalico.org",
        "events.k8s.io",
        "kausality.io",
    ];
    let watched = |names: &[&str]| {
        let spec = json!({"resources": [{"apiGroups": groups, "resources": names}], "mode": "enforce"});
        desired(&[policy(&spec)], &served, &[], &place()).findings["p"].watched.clone()
    };
    assert_eq!(watched(&["*"]), ["pods"]);
    let named = watched(&["events", "nodes", "leases", "kausalities"]);
    let expected =
        ["events", "nodes", "leases.coordination.k8s.io", "events.events.k8s.io", "kausalities.kausality.io"];
    assert_eq!(named, expected);
    let leases =
        json!({"resources": [{"apiGroups": ["coordination.k8s.io"], "resources": ["*"]}], "mode": "log"});
    let nothing = desired(&[policy(&leases)], &served, &[], &place());
    let status = conditions::status(&policy(&leases), &nothing.findings["p"], Ok(()), Timestamp::UNIX_EPOCH);
    assert_eq!(status.conditions[0].reason, "NothingMeant");
}

/// The webhook needs these roles to answer, and the registration goes with one of them: a webhook that is down must not keep
/// them from being written or deleted.
#[test]
fn nobody_is_asked_about_our_own_roles() {
    let group = "rbac.authorization.k8s.io";
    let mut served = served();
    served
        .extend(["clusterroles", "clusterrolebindings", "roles"].map(|plural| resource(group, "v1", plural)));
    let conditions = |names: &[&str]| {
        let spec = json!({"resources": [{"apiGroups": [group], "resources": names}], "mode": "enforce"});
        let found = webhooks(&desired(&[policy(&spec)], &served, &[], &place()));
        found[0]["matchConditions"].as_array().unwrap()[2..].to_vec()
    };
    assert_eq!(conditions(&["roles"]), [Value::Null; 0]);
    let found = conditions(&["*"]);
    assert_eq!(found.len(), 1);
    assert_eq!(conditions(&["clusterroles"]), found);
    assert_eq!(conditions(&["clusterrolebindings"]), found);
    let program = cel::Program::compile(found[0]["expression"].as_str().unwrap()).unwrap();
    let text = |text: &str| cel::Value::String(text.to_owned().into());
    let map = |fields: &[(&str, cel::Value)]| {
        let fields = fields.iter().map(|(key, value)| (cel::objects::Key::from(*key), value.clone()));
        cel::Value::Map(cel::objects::Map { map: fields.collect::<std::collections::HashMap<_, _>>().into() })
    };
    for (plural, name, expected) in [
        ("clusterroles", Some("kausality:policy:p"), false),
        ("clusterroles", Some("kausality-controller"), false),
        ("clusterrolebindings", Some("kausality-unregister"), false),
        ("clusterroles", Some("kausality-shop"), true),
        ("clusterrolebindings", Some("admin"), true),
        ("clusterroles", None, true),
        ("roles", Some("kausality-controller"), true),
    ] {
        let resource = map(&[("group", text(group)), ("resource", text(plural))]);
        let mut request = vec![("resource", resource)];
        request.extend(name.map(|name| ("name", text(name))));
        let mut context = cel::Context::default();
        context.add_variable_from_value("request", map(&request));
        assert_eq!(program.execute(&context).unwrap(), cel::Value::Bool(expected), "{plural} {name:?}");
    }
}

/// With Secrets as parents a policy is in force, but not as its author thinks.
#[test]
fn withheld_parents_are_told_of() {
    let finding = Finding { watched: vec!["pods".to_owned()], withheld: true, ..Finding::default() };
    let status = conditions::status(&policy(&deployments("log")), &finding, Ok(()), Timestamp::UNIX_EPOCH);
    let ready = &status.conditions[0];
    assert_eq!((&*ready.status, &*ready.reason), ("True", "ParentsWithheld"));
    assert!(ready.message.contains("Name secrets"), "{}", ready.message);
}

/// A kind whose status tells nothing is named, until a policy says how it is judged, or it has not been seen for a day.
#[test]
fn kinds_that_cannot_be_judged_are_named() {
    let now: Timestamp = "2026-01-24T10:30:00Z".parse().unwrap();
    let conditions = |policies: &[Policy], now: Timestamp| {
        let wanted = desired(policies, &served(), &[], &place());
        let asked = &policies[0];
        let status = conditions::status(asked, &wanted.findings[&asked.name], Ok(()), now);
        status.conditions.into_iter().find(|condition| condition.kind == conditions::JUDGEABLE)
    };
    let mut asked = policy(&deployments("log"));
    asked.status = serde_json::from_value(json!({"unjudged": [{"apiGroup": "example.com", "kind": "App",
        "resource": "apps", "lastSeen": "2026-01-24T09:30:00Z"}]}))
    .unwrap();
    let told = conditions(&[asked.clone()], now).unwrap();
    assert_eq!((&*told.status, &*told.reason), ("False", "NoStatusEvidence"));
    assert!(
        told.message.starts_with("Cannot be judged without settle: quiet: App (example.com)."),
        "{}",
        told.message
    );
    assert!(told.message.ends_with("in a policy that names apps.example.com."), "{}", told.message);
    let quiet = |more: Value| {
        let mut spec =
            json!({"mode": "log", "resources": [{"apiGroups": ["example.com"], "resources": ["apps"]}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        named("quiet", &spec)
    };
    let judged = |more: Value| conditions(&[asked.clone(), quiet(more)], now).is_none();
    assert!(judged(json!({"settle": "quiet"})));
    assert!(judged(json!({"status": {"settled": {"phases": ["Live"]}}})));
    assert!(!judged(json!({"quietTime": "1m"})));
    let tomorrow = "2026-01-25T09:30:00Z".parse().unwrap();
    assert_eq!(conditions(&[asked.clone()], tomorrow), None);
}

/// Most writes of inputs change nothing that controllers act on, or are by controllers themselves.
#[test]
fn inputs_are_asked_about_only_where_somebody_changes_them() {
    let spec = json!({"mode": "log", "resources": [{"apiGroups": ["apps"], "resources": ["daemonsets"]}]});
    let desired = desired(&[policy(&spec)], &served(), &[], &place());
    let is_it = |entry: &&Value| entry["name"].as_str().unwrap().contains(".inputs.");
    let entry = webhooks(&desired).iter().find(is_it).cloned().unwrap();
    let asked = |user: &str, operation: &str, old: &Value, new: &Value| {
        let request = json!({"operation": operation, "userInfo": {"username": user},
            "resource": {"group": "", "resource": "nodes"}});
        let mut context = cel::Context::default();
        for (name, value) in [("request", &request), ("oldObject", old), ("object", new)] {
            context.add_variable(name, value).unwrap();
        }
        entry["matchConditions"].as_array().unwrap().iter().all(|condition| {
            let program = cel::Program::compile(condition["expression"].as_str().unwrap()).unwrap();
            program.execute(&context).unwrap() == cel::Value::Bool(true)
        })
    };
    let node = |change: &dyn Fn(&mut Value)| {
        let mut node =
            json!({"metadata": {"name": "n1", "labels": {"edge": "yes"}}, "spec": {"podCIDR": "a"}});
        change(&mut node);
        node
    };
    let before = node(&|_| ());
    let update = |user: &str, change: &dyn Fn(&mut Value)| asked(user, "UPDATE", &before, &node(change));
    assert!(!update("alice", &|node| node["metadata"]["annotations"] = json!({"a": "b"})));
    assert!(!update("alice", &|node| node["status"] = json!({"phase": "x"})));
    assert!(update("alice", &|node| node["metadata"]["labels"] = json!({})));
    assert!(update("alice", &|node| node["spec"]["taints"] = json!([])));
    assert!(update("system:serviceaccount:ops:autoscaler", &|node| node["spec"]["taints"] = json!([])));
    assert!(asked("system:node:n1", "CREATE", &Value::Null, &before));
    assert!(asked("alice", "DELETE", &before, &Value::Null));
    let owned = node(&|node| node["metadata"]["ownerReferences"] = json!([{"controller": true}]));
    assert!(asked("alice", "DELETE", &owned, &Value::Null));
    assert!(!asked("system:serviceaccount:ops:operator", "DELETE", &owned, &Value::Null));
}

/// What nodes need passes by webhooks that could refuse it, and nothing else does; not every user has groups.
#[test]
fn nobody_is_asked_about_what_nodes_need() {
    let desired = desired(&[policy(&deployments("enforce"))], &served(), &[], &place());
    let entry = &webhooks(&desired)[0];
    let condition = &entry["matchConditions"][1];
    assert_eq!(condition["name"], "not-of-nodes");
    let program = cel::Program::compile(condition["expression"].as_str().unwrap()).unwrap();
    for (user, expected) in [
        (json!({"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}), false),
        (json!({"username": "system:apiserver", "groups": ["system:masters"]}), false),
        // The name alone says nothing.
        (json!({"username": "system:node:n1", "groups": ["system:authenticated"]}), true),
        (json!({"username": "system:serviceaccount:kube-system:deployment-controller", "groups": []}), true),
        (json!({"username": "alice"}), true),
        (json!({}), true),
    ] {
        let mut context = cel::Context::default();
        context.add_variable("request", json!({"userInfo": user})).unwrap();
        assert_eq!(program.execute(&context).unwrap(), cel::Value::Bool(expected), "{user}");
    }
}

/// What takes a namespace out of all policies but those that name it: its name, or a label that its owner sets.
#[test]
fn excluded_namespaces_are_meant_by_name_alone() {
    let meant = |namespaces: Value| {
        let mut spec = deployments("enforce");
        spec["namespaces"] = namespaces;
        let entry = webhooks(&desired(&[policy(&spec)], &served(), &[], &place())).remove(0);
        let selector: kausality_api::selector::LabelSelector =
            serde_json::from_value(entry["namespaceSelector"].clone()).unwrap();
        let labels = |name: &str, more: &[(&str, &str)]| {
            let name = ("kubernetes.io/metadata.name", name);
            let all = [&[name][..], more].concat();
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let (team, excluded) = (("team", "a"), ("kausality.io/exclude", "for a reason"));
        [
            labels("shop", &[team]),
            labels("edge", &[team, excluded]),
            labels("kube-flannel", &[team]),
            labels("kube-system", &[team]),
        ]
        .map(|labels| selector.matches(&labels))
    };
    assert_eq!(meant(json!({})), [true, false, false, false]);
    assert_eq!(meant(json!({"selector": {"matchLabels": {"team": "a"}}})), [true, false, false, false]);
    let named = json!({"names": ["shop", "edge", "kube-flannel", "kube-system"]});
    assert_eq!(meant(named), [true; 4]);
}

/// Whether the conditions of an entry hold for a request.
fn asks(entry: &Value, request: &Value, old: &Value, new: &Value) -> bool {
    let mut context = cel::Context::default();
    for (name, value) in [("request", request), ("oldObject", old), ("object", new)] {
        context.add_variable(name, value).unwrap();
    }
    entry["matchConditions"].as_array().unwrap().iter().all(|condition| {
        let program = cel::Program::compile(condition["expression"].as_str().unwrap()).unwrap();
        program.execute(&context).unwrap() == cel::Value::Bool(true)
    })
}

/// Changes an object as a merge patch says.
fn merge(object: &mut Value, patch: &Value) {
    match patch.as_object() {
        Some(fields) => fields.iter().for_each(|(name, patch)| match patch {
            Value::Null => drop(object.as_object_mut().unwrap().remove(name)),
            _ => merge(&mut object[name], patch),
        }),
        None => *object = patch.clone(),
    }
}

fn entry(desired: &Desired, name: &str) -> Value {
    let found = webhooks(desired).into_iter().find(|entry| entry["name"] == format!("{name}.kausality.io"));
    found.unwrap_or_else(|| panic!("no {name}"))
}

/// Selectors are held against what is sent: a Scale, an Eviction or a Binding has not the labels of the object.
#[test]
fn what_lacks_the_labels_of_its_object_is_not_selected_by_them() {
    let mut served = served();
    served.insert(resource("", "v1", "pods"));
    let resources = json!([{"apiGroups": ["", "apps"], "resources": ["pods", "deployments"]}]);
    let selector = json!({"matchLabels": {"team": "a"}});
    let spec = json!({"resources": resources, "mode": "enforce", "objectSelector": selector});
    let desired = desired(&[policy(&spec)], &served, &[], &place());
    let (whole, parts) = (entry(&desired, "p.drift"), entry(&desired, "p.drift-parts"));
    let reviewed = |entry: &Value| -> Vec<String> {
        let rules = entry["rules"].as_array().unwrap().iter();
        let names = rules.flat_map(|rule| rule["resources"].as_array().unwrap());
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(reviewed(&whole), ["pods", "pods/ephemeralcontainers", "pods/resize", "deployments"]);
    let expected = ["pods/scale", "bindings", "pods/binding", "pods/eviction", "deployments/scale"];
    assert_eq!(reviewed(&parts), expected);
    assert_eq!((&whole["objectSelector"], &parts["objectSelector"]), (&selector, &json!({})));
    assert_eq!((&whole["failurePolicy"], &parts["failurePolicy"]), (&json!("Fail"), &json!("Fail")));

    // A binding that brings nothing of ours must not wait.
    let bind = |resource: &str, part: &str, annotation: &str| {
        let request = json!({"operation": "CREATE", "userInfo": {"username": "scheduler"}, "subResource": part,
            "resource": {"group": "", "resource": resource}});
        asks(&parts, &request, &Value::Null, &json!({"metadata": {"annotations": {annotation: "x"}}}))
    };
    assert!(!bind("pods", "binding", "team") && !bind("bindings", "", "team"));
    assert!(bind("pods", "binding", "kausality.io/freeze") && bind("bindings", "", "kausality.io/freeze"));
    assert!(bind("pods", "eviction", "team"));
}

/// Built-in kinds store metadata by way of the status: what is enforced elsewhere does not pass there because nobody answers.
/// Whoever reports on an object, kubelets first of all, waits for nobody.
#[test]
fn metadata_does_not_pass_by_way_of_the_status() {
    let mut spec = deployments("enforce");
    spec["resources"] = json!([{"apiGroups": ["apps", "example.com"], "resources": ["*"]}]);
    let enforced = desired(&[policy(&spec)], &served(), &[], &place());
    let (all, metadata) = (entry(&enforced, "p.status"), entry(&enforced, "p.status-metadata"));
    assert_eq!((&all["failurePolicy"], &metadata["failurePolicy"]), (&json!("Ignore"), &json!("Fail")));
    assert_eq!((all["rules"].as_array().unwrap().len(), metadata["rules"].as_array().unwrap().len()), (3, 1));
    let labelled = {
        let mut spec = spec.clone();
        spec["objectSelector"] = json!({"matchLabels": {"team": "a"}});
        desired(&[policy(&spec)], &served(), &[], &place())
    };
    let by_labels = [entry(&labelled, "p.status"), entry(&labelled, "p.status-metadata")];
    let before = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"kausality.io/freeze": "true", "a": "b"},
        "ownerReferences": [{"uid": "a", "controller": true}]}, "status": {}});
    let asked = |entries: [&Value; 2], group: &str, user: &str, change: Value| {
        let mut after = before.clone();
        merge(&mut after, &change);
        let request = json!({"operation": "UPDATE", "resource": {"group": group, "resource": "any"},
            "userInfo": {"username": user, "groups": [if user.starts_with("system:node:") { "system:nodes" } else { "all" }]},
            "subResource": "status"});
        entries.map(|entry| asks(entry, &request, &before, &after))
    };
    let plain = |group: &str, user: &str, change: Value| asked([&all, &metadata], group, user, change);
    let (first, second) = ([true, false], [false, true]);
    assert_eq!(plain("apps", "system:node:n1", json!({"status": {"replicas": 1}})), first);
    assert_eq!(plain("apps", "bob", json!({"metadata": {"annotations": {"a": "c"}}})), first);
    let fact = json!({"metadata": {"annotations": {"kausality.io/settled.abcdefg": "x"}}});
    assert_eq!(plain("apps", "bob", fact), first, "a fact of ours is added by ourselves");
    for change in [
        json!({"metadata": {"ownerReferences": null}}),
        json!({"metadata": {"ownerReferences": [{"uid": "b"}]}}),
        json!({"metadata": {"annotations": {"kausality.io/freeze": null}}}),
        json!({"metadata": {"annotations": {"kausality.io/freeze": "false"}}}),
        json!({"metadata": {"annotations": {"kausality.io/approvals": "[]"}}}),
    ] {
        assert_eq!(plain("apps", "bob", change.clone()), second, "{change}");
        assert_eq!(plain("batch", "bob", change.clone()), second, "{change}");
        assert_eq!(plain("storage.k8s.io", "bob", change.clone()), second, "{change}");
        assert_eq!(plain("example.com", "bob", change.clone()), first, "it stores none: {change}");
        assert!(!plain("apps", "system:node:n1", change)[1], "no kubelet waits");
    }
    let relabels = json!({"metadata": {"labels": {"team": "b"}}});
    assert_eq!(plain("apps", "bob", relabels.clone()), first);
    assert_eq!(asked(by_labels.each_ref(), "apps", "bob", relabels), second);

    // Where nothing is enforced, there is one entry for all.
    let log = desired(&[policy(&deployments("log"))], &served(), &[], &place());
    assert!(webhooks(&log).iter().all(|entry| entry["name"] != "p.status-metadata.kausality.io"));
}

/// A freeze goes with the object that carries it; most deletions are nobody's business.
#[test]
fn deletions_of_parents_are_reviewed_where_something_was_decided() {
    let mut asked = policy(&deployments("enforce"));
    let parents = json!([{"apiGroup": "example.com", "kind": "Widget", "resource": "widgets"}]);
    asked.status = serde_json::from_value(json!({"parents": parents})).unwrap();
    let entry = entry(&desired(&[asked], &served(), &[], &place()), "p.decisions");
    assert_eq!(entry["rules"][0]["operations"], json!(["CREATE", "UPDATE", "DELETE"]));
    let object = |key: &str| json!({"metadata": {"annotations": {key: "true"}}});
    let request = |operation: &str| {
        json!({"operation": operation, "userInfo": {"username": "bob"},
            "resource": {"group": "example.com", "resource": "widgets"}})
    };
    for (key, deleted, written) in [
        ("kausality.io/freeze", true, true),
        ("kausality.io/rejections", true, true),
        ("kausality.io/approvals", false, true),
        ("kausality.io/mode", false, true),
        ("kausality.io/mdoe", false, true),
        ("kausality.io/settled.abcdefg", false, true),
        ("kausality.io/trace.abcdefg", false, false),
        ("team", false, false),
    ] {
        let (with, without) = (object(key), json!({"metadata": {}}));
        assert_eq!(asks(&entry, &request("DELETE"), &with, &Value::Null), deleted, "{key}");
        assert_eq!(asks(&entry, &request("CREATE"), &Value::Null, &with), written, "{key}");
        assert_eq!(asks(&entry, &request("UPDATE"), &without, &with), written, "{key}");
        assert_eq!(asks(&entry, &request("UPDATE"), &with, &without), written, "{key}");
        assert!(!asks(&entry, &request("UPDATE"), &with, &with), "{key}");
    }
    assert!(!asks(&entry, &request("DELETE"), &json!({"metadata": {}}), &Value::Null));
    assert!(!asks(&entry, &request("DELETE"), &Value::Null, &Value::Null));
}

/// A misspelt mode is enforced for all that is in a namespace; but nobody's namespace waits for us.
#[test]
fn mistakes_in_annotations_of_namespaces_are_told() {
    let namespaces =
        entry(&desired(&[policy(&deployments("enforce"))], &served(), &[], &place()), "decisions-namespaces");
    assert_eq!(namespaces["failurePolicy"], "Ignore");
    assert_eq!(namespaces["rules"][0]["resources"], json!(["namespaces"]));
    // Where a policy has them reviewed, they are told there.
    let mut served = served();
    served.insert(resource("", "v1", "namespaces"));
    let spec = json!({"resources": [{"apiGroups": [""], "resources": ["namespaces"]}], "mode": "enforce"});
    let names: Vec<Value> = webhooks(&desired(&[policy(&spec)], &served, &[], &place()))
        .iter()
        .map(|entry| entry["name"].clone())
        .collect();
    assert!(!names.contains(&json!("decisions-namespaces.kausality.io")), "{names:?}");
}
