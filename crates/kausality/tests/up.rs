//! `kausality up`, run as a person would.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

fn up(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
    command.args(["up", "--write-kubeconfig"]).arg(kubeconfig);
    command
}

#[test]
fn the_kubeconfig_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut running = up(&kubeconfig).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Talk to it")), "it runs");
    let own = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["own", "namespace/default", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let text = String::from_utf8([own.stdout, own.stderr].concat()).unwrap();
    assert!(text.contains("Namespace default"), "{text}");
    assert!(Command::new("kill").arg(running.id().to_string()).status().unwrap().success());
    assert!(running.wait().unwrap().success());
    assert!(!kubeconfig.exists());
}

#[test]
fn a_file_that_is_there_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("config");
    std::fs::write(&mine, "mine").unwrap();
    let output = up(&mine).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("exists already: remove it if it is an old one, or name another"), "{text}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
}
