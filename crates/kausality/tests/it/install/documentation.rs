//! docs/install.md, typed in from top to bottom.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};

use kausality_testbed::MASTERS;

use crate::install::stage::*;

/// The commands for a cluster, in the order in which a reader types them.
fn commands(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in read(page).lines() {
        match line {
            "```console cluster" => inside = true,
            "```" => inside = false,
            line if inside => commands.push(line.strip_prefix("$ ").expect("a command").to_owned()),
            _ => {}
        }
    }
    commands
}

/// Puts a program into a folder: the words that start it.
fn program(folder: &Path, name: &str, words: &[&str]) {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every command works, one after the other. Nobody runs the containers here, so policies do not become ready; the kinds of
/// cert-manager and of the Prometheus operator are ours.
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_of_the_installation_can_be_followed() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    must(&plane, &["apply", "--server-side", "-f", "crates/kausality/tests/it/install/foreign.yaml"]);
    must(&plane, &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    let commands = commands("docs/install.md");
    assert!(commands.len() >= 12, "only {} commands were found", commands.len());

    let bin = plane.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let kubectl = plane.kubectl("alice", &[MASTERS]);
    let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
    program(&bin, "kubectl", &words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>());
    program(&bin, "helm", &[plane.binaries().helm().unwrap().to_str().unwrap()]);
    let ours = Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap();
    let path = format!("{}:{}:{}", bin.display(), ours.display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["300", "bash", "-c", &format!("set -ex -o pipefail\n{}", commands.join("\n"))])
        .current_dir(root())
        .env("PATH", path)
        .env("HOME", plane.folder())
        .env("KUBECONFIG", plane.kubeconfig())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(get(&plane, &["crd", "kausalities.kausality.io"]).is_null());
}
