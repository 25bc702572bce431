//! What helm makes of the chart, and what an API server says to it.

use std::collections::BTreeSet;

use clap::Parser as _;
use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::install::stage::*;

const EVERYTHING: &str = "deploy/golden/everything.values.yaml";

/// Each rendering that is kept, with the arguments that `cargo xtask manifests` has for it.
const KEPT: [(&str, &[&str]); 2] = [
    ("deploy/manifests/kausality.yaml", &["--no-hooks"]),
    ("deploy/golden/everything.yaml", &["--values", EVERYTHING]),
];

#[tokio::test]
async fn helm_finds_no_fault() {
    let Some(helm) = Helm::find().await else { return };
    for arguments in [
        &[][..],
        &["--values", EVERYTHING],
        &["--set", "certificates.mode=external"],
        &[
            "--set",
            "podDisruptionBudget.enabled=false,networkPolicy.enabled=false,priorityClass.create=false",
        ],
        &["--set", "crds.upgrade=false,admissionPolicy.enabled=false"],
    ] {
        helm.must(&[&["lint", "--strict", "deploy/chart"], arguments].concat());
    }
}

#[tokio::test]
async fn what_is_kept_is_what_helm_makes() {
    let Some(helm) = Helm::find().await else { return };
    for (file, arguments) in KEPT {
        let (made, kept) = (helm.template(arguments), read(file));
        let differs = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
        assert!(made == kept, "{file} is out of date (line {differs:?}): run `cargo xtask manifests`");
    }
}

/// A value that is misspelt or makes no sense does not pass in silence.
#[tokio::test]
async fn values_are_checked() {
    let Some(helm) = Helm::find().await else { return };
    for (value, named) in [
        ("webhok.replicas=3", "webhok"),
        ("webhook.replica=3", "replica"),
        ("webhook.replicas=many", "replicas"),
        ("webhook.defaultMode=warn", "defaultMode"),
        ("webhook.clientAuthentication.caSecret.nam=a", "nam"),
        ("webhook.clientAuthentication.tokenSecret.key=a", "name"),
        ("webhook.clientAuthentication.names={kube-apiserver}", "give caSecret or caConfigMap, too"),
        (
            "webhook.clientAuthentication.caSecret.name=a,webhook.clientAuthentication.caConfigMap.name=b",
            "give caSecret or caConfigMap, not both",
        ),
        ("certificates.mode=mine", "mode"),
        ("image.digest=latest", "digest"),
        ("policies[0].name=a", "spec"),
        ("podDisruptionBudget.maxUnavailable=abc", "maxUnavailable"),
        ("podDisruptionBudget.maxUnavailable=101%", "maxUnavailable"),
        ("priorityClass.name=", "priorityClass"),
        ("priorityClass.name=system-cluster-critical", "priorityClass"),
        ("commonLabels.app\\.kubernetes\\.io/name=mine", "commonLabels"),
        ("webhook.podLabels.app\\.kubernetes\\.io/component=mine", "podLabels"),
        ("serviceMonitor.labels.app\\.kubernetes\\.io/component=mine", "serviceMonitor"),
        ("commonLabels.kausality\\.io/aggregate-to-webhook=yes", "commonLabels"),
        ("curatedPolicies.excluded={fluxx}", "\"fluxx\" is no curated policy; there are argo-cd, "),
    ] {
        let (accepted, said) = helm.run(&["template", "deploy/chart", "--set", value]);
        assert!(!accepted && said.contains(named), "{value}: {said}");
    }
}

/// Values that look like something else in YAML stay what they are.
#[tokio::test]
async fn values_that_pass_make_objects() {
    let Some(helm) = Helm::find().await else { return };
    let spec = r#"{"resources": [{"apiGroups": ["apps"], "resources": ["*"]}], "mode": "log"}"#;
    for name in ["123", "true", "1e3"] {
        let policies = format!(r#"policies=[{{"name": "{name}", "spec": {spec}}}]"#);
        let made = objects(&helm.template(&["--set-json", &policies]));
        assert!(
            made.iter().any(|one| one["kind"] == "Kausality" && one["metadata"]["name"] == name),
            "{name}"
        );
    }
    let others = [
        "priorityClass.create=false,priorityClass.name=system-cluster-critical",
        "podDisruptionBudget.maxUnavailable=50%,commonLabels.app\\.kubernetes\\.io/part-of=shop",
    ];
    let [priority, budget] = others.map(|values| objects(&helm.template(&["--set", values])));
    assert!(priority.iter().all(|one| one["kind"] != "PriorityClass"));
    let budget = budget.iter().find(|one| one["kind"] == "PodDisruptionBudget").unwrap();
    assert_eq!(budget["spec"]["maxUnavailable"], "50%");
}

/// What API servers are known by is mounted, and the flags are those of the program.
#[tokio::test]
async fn the_webhook_asks_who_posts_reviews_if_it_is_told_by_what() {
    let Some(helm) = Helm::find().await else { return };
    for (values, flags, sources) in [
        ("", &[][..], Value::Null),
        (
            "webhook.clientAuthentication.caSecret.name=a,webhook.clientAuthentication.names={b,c}",
            &["--client-ca=/etc/kausality/clients/ca.crt", "--client-names=b,c"],
            json!([{"secret": {"name": "a", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]),
        ),
        (
            "webhook.clientAuthentication.caConfigMap.name=a,webhook.clientAuthentication.caConfigMap.key=b",
            &["--client-ca=/etc/kausality/clients/ca.crt"],
            json!([{"configMap": {"name": "a", "items": [{"key": "b", "path": "ca.crt"}]}}]),
        ),
        (
            "webhook.clientAuthentication.tokenSecret.name=a",
            &["--client-token-file=/etc/kausality/clients/token"],
            json!([{"secret": {"name": "a", "items": [{"key": "token", "path": "token"}]}}]),
        ),
    ] {
        let made = objects(&helm.template(&["--show-only", "templates/webhook.yaml", "--set", values]));
        let pod = &made.iter().find(|one| one["kind"] == "Deployment").unwrap()["spec"]["template"]["spec"];
        let given = pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str);
        let given: Vec<&str> = given.filter(|flag| flag.starts_with("--client-")).collect();
        assert_eq!(given, flags, "{values}");
        assert_eq!(pod["volumes"][0]["projected"]["sources"], sources, "{values}");
        let mounted = &pod["containers"][0]["volumeMounts"][0]["mountPath"];
        let folder = if flags.is_empty() { Value::Null } else { "/etc/kausality/clients".into() };
        assert_eq!(*mounted, folder, "{values}");
    }
}

/// Only the port for reviews is narrowed: probes and metrics have a value of their own.
#[tokio::test]
async fn a_network_policy_names_who_may_post_reviews() {
    let Some(helm) = Helm::find().await else { return };
    let peer = json!({"ipBlock": {"cidr": "10.0.0.0/28"}});
    let value = format!("networkPolicy.apiServer.from=[{peer}]");
    for (value, expected) in [("networkPolicy.apiServer.from=[]", Value::Null), (&value, json!([peer]))] {
        let made = objects(&helm.template(&["--show-only", "templates/network.yaml", "--set-json", value]));
        let of = |name: &str| {
            made.iter().find(|one| one["metadata"]["name"] == name).unwrap()["spec"]["ingress"].clone()
        };
        let webhook = of("kausality-webhook");
        assert_eq!((&webhook[0]["ports"][0]["port"], &webhook[0]["from"]), (&json!("https"), &expected));
        assert_eq!((&webhook[1]["ports"][0]["port"], &webhook[1]["from"]), (&json!("metrics"), &Value::Null));
        assert_eq!(of("kausality-controller")[0]["from"], Value::Null);
    }
}

/// A curated policy is left out by each of its names.
#[tokio::test]
async fn curated_policies_are_left_out_by_file_or_name() {
    let Some(helm) = Helm::find().await else { return };
    for name in ["flux", "flux.yaml", "kausality-flux"] {
        let excluded = format!("curatedPolicies.excluded={{{name}}}");
        let made = helm.template(&["--show-only", "templates/exceptions.yaml", "--set", &excluded]);
        let made = objects(&made);
        let names: Vec<&str> = made.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
        assert!(
            !names.contains(&"kausality-flux") && names.contains(&"kausality-argo-cd"),
            "{name}: {names:?}"
        );
    }
}

/// The Job before an upgrade is as confined as all else, and leaves nothing that may anything.
#[tokio::test]
async fn what_an_upgrade_needs_goes_with_it() {
    let Some(helm) = Helm::find().await else { return };
    let made = objects(&helm.template(&["--show-only", "templates/crds-upgrade.yaml"]));
    for object in &made {
        let policy = object["metadata"]["annotations"]["helm.sh/hook-delete-policy"].as_str().unwrap();
        assert!(policy.contains("before-hook-creation") && policy.contains("hook-succeeded"), "{policy}");
        // What has failed is kept for its log.
        assert_eq!(policy.contains("hook-failed"), object["kind"] != "Job", "{object}");
    }
    let of = |kind: &str| made.iter().find(|object| object["kind"] == kind).unwrap();
    let (network, job) = (&of("NetworkPolicy")["spec"], &of("Job")["spec"]["template"]["metadata"]["labels"]);
    for (key, value) in network["podSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&job[key], value);
    }
    assert_eq!((network["egress"].as_array().unwrap().len(), network.get("ingress")), (2, None));
}

/// Each way to certificates has the controller do its part, and no more rights than that takes.
#[tokio::test]
async fn certificates_come_from_one_place() {
    let Some(helm) = Helm::find().await else { return };
    for (mode, flag, writes, issued) in [
        ("own", "--certificates=own", true, 0),
        ("external", "--certificates=external", false, 0),
        ("cert-manager", "--certificates=external", false, 2),
    ] {
        let made = objects(&helm.template(&["--set", &format!("certificates.mode={mode}")]));
        let of = |kind: &str, name: &str| {
            let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            made.iter().find(is).unwrap_or_else(|| panic!("{mode}: no {kind} {name}")).clone()
        };
        let arguments =
            &of("Deployment", "kausality-controller")["spec"]["template"]["spec"]["containers"][0]["args"];
        assert!(arguments.as_array().unwrap().contains(&flag.into()), "{mode}: {arguments}");
        let rules = of("Role", "kausality-controller")["rules"].to_string();
        let secrets = rules.split(r#""resources":["secrets"]"#).count() - 1;
        // It makes the salt in any case: that takes the right to create, and to see whether it is there.
        assert_eq!(secrets, 3, "{mode}: {rules}");
        assert_eq!(rules.contains(r#""watch","update""#), writes, "{mode}: {rules}");
        assert_eq!(made.iter().filter(|one| one["kind"] == "Certificate").count(), issued, "{mode}");
    }
}

/// Nobody is asked about them: a webhook that is down must not keep an installation from being mended or removed.
#[test]
fn the_roles_of_the_chart_are_known_as_our_own() {
    let of_roles =
        |object: &&Value| matches!(object["kind"].as_str(), Some("ClusterRole" | "ClusterRoleBinding"));
    let objects = objects(&read("deploy/golden/everything.yaml"));
    let names: BTreeSet<&str> =
        objects.iter().filter(of_roles).map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, kausality_controller::desired::OWN_ROLES.into());
}

#[test]
fn the_chart_has_our_version() {
    let chart = &objects(&read("deploy/chart/Chart.yaml"))[0];
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_command_takes_the_arguments_that_the_chart_gives() {
    let mut commands = Vec::new();
    for object in KEPT.iter().flat_map(|(file, _)| objects(&read(file))) {
        let containers = &object["spec"]["template"]["spec"]["containers"];
        for container in containers.as_array().into_iter().flatten() {
            let arguments = container["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
            let line: Vec<&str> = ["kausality"].into_iter().chain(arguments).collect();
            let parsed = kausality::Cli::try_parse_from(&line);
            assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
            commands.push(line.join(" "));
        }
    }
    for command in ["kausality webhook ", "kausality controller ", "kausality install "] {
        assert!(commands.iter().any(|line| line.starts_with(command)), "{commands:?}");
    }
}

/// Alerts and dashboard ask for metrics that are there, by labels that they have.
#[test]
fn metrics_that_are_asked_for_exist() {
    let code = [
        "crates/kausality-controller/src/metrics.rs",
        "crates/kausality-webhook/src/metrics.rs",
        "crates/kausality/src/webhook/health.rs",
        "crates/kausality/src/webhook/served.rs",
    ]
    .map(read)
    .join("\n");
    let asked = read("deploy/golden/everything.yaml") + &read("deploy/chart/dashboards/kausality.json");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = asked
        .split(|c| !is_word(c))
        .filter(|word| word.starts_with("kausality_") || word.starts_with("controller_runtime_"))
        .collect();
    assert!(words.len() >= 10, "{words:?}");
    for word in words {
        let base = word.strip_suffix("_total").or(word.strip_suffix("_bucket")).unwrap_or(word);
        assert!(code.contains(&format!("\"{base}\"")), "{word} is no metric of ours");
    }
}

/// What can go wrong without anybody being asked is told by somebody else, or by its absence.
#[test]
fn alerts_see_what_the_webhook_does_not() {
    let rules = objects(&read("deploy/golden/everything.yaml"));
    let rules = rules.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    let rules = rules["spec"]["groups"][0]["rules"].as_array().unwrap();
    for (alert, asks) in [
        ("KausalityWebhookAbsent", r#"absent(kausality_webhook_ready{namespace="kausality-system"} == 1)"#),
        (
            "KausalityWebhookNotReached",
            r#"apiserver_admission_webhook_rejection_count{name=~".*[.]kausality[.]io",error_type="calling_webhook_error"}"#,
        ),
        (
            "KausalityWebhookPassedBy",
            r#"apiserver_admission_webhook_fail_open_count{name=~".*[.]kausality[.]io"}"#,
        ),
        ("KausalityParentUnreadable", r#"resolution="parent-unreadable""#),
        ("KausalityReconcileFails", r#"outcome="failed""#),
    ] {
        let rule = rules.iter().find(|rule| rule["alert"] == alert).unwrap();
        assert!(rule["expr"].as_str().unwrap().contains(asks), "{rule:#}");
    }
    let dashboard = read("deploy/chart/dashboards/kausality.json");
    for metric in [
        "kausality_controller_leading",
        "kausality_controller_reconciles_total",
        "kausality_certificate_expiry",
    ] {
        assert!(dashboard.contains(metric), "{metric}");
    }
}

/// A server-side dry run of every object, hooks too, with strict validation and the Pod security of our namespace.
///
/// The kinds of others are defined in `foreign.yaml`, with the fields that we use: their own definitions are not here.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_accepts_every_object() {
    let Some(plane) = stage().await else { return };
    must(
        &plane,
        &["apply", "--server-side", "-f", "deploy/crds", "-f", "deploy/manifests/00-namespace.yaml"],
    );
    must(&plane, &["apply", "--server-side", "-f", "crates/kausality/tests/it/install/foreign.yaml"]);
    must(&plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);

    for (name, arguments) in [
        ("default", &[][..]),
        ("everything", &["--values", EVERYTHING]),
        ("least", &["--set", "certificates.mode=external,priorityClass.create=false,priorityClass.name="]),
    ] {
        let rendering = plane.helm.template(arguments);
        let path = file(&plane, &format!("{name}.yaml"), &rendering);
        let apply = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", &path];
        // What a new kind is known by may take the API server a moment.
        let said = eventually(PATIENCE, name, async || {
            let (accepted, said) = kubectl(&plane, &apply);
            if accepted || !said.contains("no matches for kind") { Ok((accepted, said)) } else { Err(said) }
        });
        let (accepted, said) = said.await.unwrap();
        assert!(accepted, "{name}: {said}");
        let applied = said.lines().filter(|line| line.ends_with("(server dry run)")).count();
        assert_eq!(applied, objects(&rendering).len(), "{name}: {said}");
        // Of Pods that the namespace will not admit, and of fields that go away.
        assert!(!said.contains("Warning"), "{name}: {said}");
    }
}
