//! `kausality doctor`, where there is no cluster to examine.

use std::{net::TcpListener, process::Command};

use serde_json::json;

fn doctor(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
    let output = command.arg("doctor").args(arguments).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), text)
}

/// Scripts can tell a cluster that is ill from one that is not there.
#[test]
fn a_cluster_that_cannot_be_reached_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{closed}")}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    let (code, text) = doctor(&["--kubeconfig", file.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("error: the API server cannot be reached: is the cluster up"), "{text}");
}

#[test]
fn a_misuse_exits_with_2() {
    for arguments in [&["--namespace", "../x"][..], &["--output", "xml"], &["--kubeconfig", "no-such-file"]] {
        let (code, text) = doctor(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
    }
}
