//! What helm makes of the chart, and what an API server says to it.

use std::collections::BTreeSet;

use clap::Parser as _;
use kausality_testbed::eventually;
use serde_json::Value;

use crate::stage::*;

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
        ("certificates.mode=mine", "mode"),
        ("image.digest=latest", "digest"),
        ("policies[0].name=a", "spec"),
    ] {
        let (accepted, said) = helm.run(&["template", "deploy/chart", "--set", value]);
        assert!(!accepted && said.contains(named), "{value}: {said}");
    }
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
        assert_eq!(secrets, if writes { 2 } else { 1 }, "{mode}: {rules}");
        assert_eq!(rules.contains(r#""watch","patch""#), writes, "{mode}: {rules}");
        assert_eq!(made.iter().filter(|one| one["kind"] == "Certificate").count(), issued, "{mode}");
    }
}

#[test]
fn the_chart_has_our_version() {
    let chart = &objects(&read("deploy/chart/Chart.yaml"))[0];
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

/// Alerts and dashboard ask for metrics that are there, by labels that they have.
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

#[test]
fn metrics_that_are_asked_for_exist() {
    let code = [
        "crates/kausality-controller/src/metrics.rs",
        "crates/kausality-webhook/src/metrics.rs",
        "crates/kausality/src/webhook/health.rs",
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
    must(&plane, &["apply", "--server-side", "-f", "crates/kausality/tests/install/foreign.yaml"]);
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
