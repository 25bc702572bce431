//! What operators meet: the documentation, probes and metrics.

use std::{path::Path, process::Command};

use kausality_testbed::{ControlPlane, MASTERS, eventually, free_port};

use crate::real::stage::*;

/// Probes and metrics without TLS.
#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_tell_how_it_is_doing() {
    let Some(plane) = stage().await else { return };
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let arguments = [
        "--bind-address",
        "127.0.0.1:0",
        "--health-address",
        &address,
        "--resources",
        "deployments.apps,configmaps",
    ];
    let _webhook = Webhook::spawn(&plane, "webhook.log", &arguments);
    let fetch = |path: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&address).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    eventually(PATIENCE, "readiness", async || {
        fetch("/readyz").filter(|text| text.starts_with("HTTP/1.1 200")).map(|_| ())
    })
    .await
    .unwrap();
    let metrics = fetch("/metrics").unwrap();
    for line in [
        r#"kausality_watch_synced{group="apps",kind="Deployment"} 1"#,
        r#"kausality_watch_outage_seconds{group="",kind="Namespace"} 0"#,
        "controller_runtime_webhook_requests_in_flight",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

/// The commands of a page, in the order in which a reader types them.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let mut inside = false;
    let mut commands = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        match line {
            "```console cluster" => inside = true,
            "```" => inside = false,
            line if inside => commands.push(line.strip_prefix("$ ").expect("a command").to_owned()),
            _ => {}
        }
    }
    commands
}

/// Every command in the documentation of the webhook works, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_of_the_webhook_can_be_followed() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    follow(&plane, "webhook.md", 11);
    assert!(get(&plane, &["mutatingwebhookconfiguration", "kausality"]).is_null());
}

/// So does every command in the documentation of fields.
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_of_fields_can_be_followed() {
    let Some(plane) = stage().await else { return };
    let printed = follow(&plane, "fields.md", 10);
    assert!(printed.contains("takeover  spec.replicas"), "{printed}");
}

/// And of the doctor, who finds nothing wrong.
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_of_the_doctor_can_be_followed() {
    let Some(plane) = stage().await else { return };
    let printed = follow(&plane, "doctor.md", 5);
    assert!(printed.contains("0 failed, ") && printed.contains("it answered a dry run"), "{printed}");
}

/// Types the commands of a page, at least so many, as somebody else than the webhook. What they print.
fn follow(plane: &ControlPlane, page: &str, at_least: usize) -> String {
    let commands = commands(page);
    assert!(commands.len() >= at_least, "only {} commands were found", commands.len());
    let bin = plane.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let kubectl = plane.kubectl("alice", &[MASTERS]);
    let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
    std::fs::write(bin.join("kubectl"), script).unwrap();
    let mut permissions = bin.join("kubectl").metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(bin.join("kubectl"), permissions).unwrap();
    let kausality = Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap();
    let path = format!("{}:{}:{}", bin.display(), kausality.display(), std::env::var("PATH").unwrap());
    let script =
        format!("set -ex -o pipefail\ntrap 'kill $(jobs -p) || true; wait' EXIT\n{}", commands.join("\n"));
    let mut reader = Command::new("timeout");
    let output = reader
        .args(["120", "bash", "-c", &script])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("PATH", path)
        .env("KUBECONFIG", plane.kubeconfig())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    String::from_utf8(output.stdout).unwrap()
}
