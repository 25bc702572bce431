//! docs/cli.md, typed in from top to bottom.

use kausality::embedded::embed;
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::{Sandbox, User};
use kausality_testbed::MASTERS;
use serde_json::{Value, json};

use crate::cli::stage::*;

const CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";

/// A command of the page, with what the page shows of its output and how it exits.
struct Example {
    command: String,
    exits: i32,
    shown: Vec<String>,
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in std::fs::read_to_string(root().join("docs/cli.md")).unwrap().lines() {
        match (inside, line) {
            (false, "```console cluster") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => {
                    let (command, exits) = command.split_once(" # exits ").unwrap_or((command, "0"));
                    let exits = exits.parse().unwrap();
                    examples.push(Example { command: command.to_owned(), exits, shown: Vec::new() });
                }
                (None, Some(example)) => example.shown.push(line.to_owned()),
                (None, None) => panic!("a block without a command"),
            },
            _ => {}
        }
    }
    examples
}

/// Whether lines are as shown: a line `…` stands for any lines, and `…` in a line for any text.
fn is_as_shown(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|skipped| is_as_shown(rest, &lines[skipped..]))
        }
        Some((first, rest)) => {
            lines.first().is_some_and(|line| is_line(first, line)) && is_as_shown(rest, &lines[1..])
        }
    }
}

fn is_line(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut left) = parts.next().and_then(|start| line.strip_prefix(start)) else { return false };
    let rest: Vec<&str> = parts.collect();
    let Some((end, middle)) = rest.split_last() else { return left.is_empty() };
    for part in middle {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(end)
}

/// Two Deployments that alice made, what their controller made of them, and drifts of that.
async fn shop() -> Stage {
    let sandbox = Sandbox::builder().rbac(true).seed(7).build();
    let stage = Stage::on(&sandbox).await;
    embed(&sandbox, Mode::Enforce, QuietTime::NONE).await.unwrap();
    stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
    let controller = sandbox.client(&User::new(CONTROLLER, &[MASTERS]));
    for (name, id, hash) in
        [("web", "e675380dcb6f9bf1", "5d4f9c6b7"), ("api", "0b52c27cf2f0a9e4", "7c9d8f5b4")]
    {
        let template = json!({"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": name, "image": format!("{name}:1")}]}});
        let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template});
        let parent = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec,
            "metadata": {"name": name, "annotations": {"kausality.io/trace-ticket": "OPS-7"}}});
        let parent = stage.post(DEPLOYMENTS, &parent).await;
        let child_name = format!("{name}-{hash}");
        let child = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec, "metadata": {"name": child_name,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name,
                "uid": parent["metadata"]["uid"], "controller": true}]}});
        let path = "/apis/apps/v1/namespaces/shop/replicasets";
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(child.to_string().into_bytes()).unwrap();
        let child = controller.request::<Value>(request).await.unwrap();

        let minutes = if name == "web" { 5 } else { 8 };
        let plot =
            Plot { user: CONTROLLER, path: "spec.replicas", minutes, ..Plot::new(id, &parent, &child_name) };
        let mut drift = serde_json::to_value(plot.drift()).unwrap();
        let spec = &mut drift["spec"];
        spec["child"]["apiVersion"] = json!("apps/v1");
        spec["child"]["kind"] = json!("ReplicaSet");
        spec["child"]["uid"] = child["metadata"]["uid"].clone();
        spec["request"]["fieldManager"] = json!("kube-controller-manager");
        spec["parent"]["controllerManager"] = json!("kube-controller-manager");
        spec["changes"] = json!([{"path": "spec.replicas", "old": "5", "new": "3", "oldOwner": "kubectl-scale",
            "newOwner": "kube-controller-manager"}]);
        spec["summary"]["child"] = json!(format!("ReplicaSet/{child_name}"));
        spec["summary"]["change"] = json!("spec.replicas: 5 → 3");
        drift["status"]["explanation"] = json!([
            {"rule": "class", "finding": "update: a change of intent"},
            {"rule": "actor", "finding": "Controller", "evidence": ["user 1likq is the only one among the recorded controllers"]},
            {"rule": "cause", "finding": "Drift"},
            {"rule": "approval", "finding": "none on the parent"},
            {"rule": "policy", "finding": "none lets it pass"},
            {"rule": "mode", "finding": "enforce (from policy workloads)", "decided": true},
        ]);
        stage.post("/apis/kausality.io/v1alpha1/namespaces/shop/drifts", &drift).await;
    }
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": "workloads"},
        "spec": {"mode": "enforce", "resources": [{"apiGroups": ["apps"], "resources": ["*"]}]}});
    stage.post("/apis/kausality.io/v1alpha1/kausalities", &policy).await;
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_the_commands_can_be_followed() {
    let stage = shop().await;
    let home = tempfile::tempdir().unwrap();
    let program = stage.command(&[]);
    let (_, kubeconfig) = program.get_envs().find(|(key, _)| *key == "KUBECONFIG").unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let examples = examples();
    assert!(examples.len() >= 20, "only {} examples were found", examples.len());
    for Example { command, exits, shown } in &examples {
        let mut bash = std::process::Command::new("timeout");
        bash.args(["60", "bash", "-o", "pipefail", "-c", command])
            .env("PATH", &path)
            .env("HOME", home.path());
        bash.env("KUBECONFIG", kubeconfig.unwrap()).current_dir(root()).stdin(std::process::Stdio::null());
        let said = said(&mut bash, &[]);
        assert_eq!(said.code, *exits, "{command}: {said:?}");
        let text = format!("{}{}", said.out, said.err);
        let lines: Vec<&str> = text.lines().collect();
        assert!(is_as_shown(shown, &lines), "{command}\n--- printed\n{text}");
    }
    // Each command has its example.
    let help = said(std::process::Command::new(bin.join("kausality")).arg("--help"), &[]);
    let elsewhere = [
        "demo",
        "up",
        "replay",
        "own",
        "diff",
        "plan",
        "policy",
        "install",
        "uninstall",
        "webhook",
        "controller",
        "doctor",
        "tui",
        "backend",
        "help",
    ];
    let commands = help.out.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    // What is long goes on in further lines, indented more.
    let commands =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|it| !it.is_empty()));
    for name in commands {
        let shown = examples.iter().any(|it| it.command.contains(&format!("kausality {name}")));
        assert!(shown || elsewhere.contains(&name), "docs/cli.md has no example of {name}");
    }
}
