//! The backends as processes: what they print, what they keep, whom they let in, and that nothing is lost on the way to
//! them.

use std::{
    io::{BufRead as _, Read as _},
    path::Path,
};

use kausality_report::{
    endpoint::{Entry, check},
    sender::Sender,
};
use serde_json::{Value, json};

mod failover;
mod garden;
mod machinery;
mod process;
mod secrets;

use process::{Backend, command};

fn report(id: &str, phase: &str) -> Value {
    json!({"apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
        "id": id, "phase": phase,
        "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "generation": 2, "lifecyclePhase": "Initialized"},
        "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": "web-1"},
        "newObject": {"spec": {"replicas": 3, "note": "a: b # c"}},
        "request": {"user": "dc", "uid": "u1", "operation": "UPDATE"},
    }})
}

#[test]
fn reports_are_printed_as_yaml() {
    let mut backend = Backend::start(&["log"]);
    assert_eq!(backend.post(&report("a1", "Detected")).1["acknowledged"], true);
    assert_eq!(backend.post(&json!({"kind": "Status"})).0, 400);
    assert_eq!(backend.post(&report("a1", "Resolved")).1["acknowledged"], true);
    assert_eq!(backend.ask("GET", "/healthz", "", "").1["status"], "ok");
    backend.kill();
    let mut printed = String::new();
    backend.stdout.read_to_string(&mut printed).unwrap();
    insta::assert_snapshot!("backend-log-yaml", printed);
}

#[test]
fn reports_are_printed_as_lines_of_json_as_they_come() {
    let mut backend = Backend::start(&["log", "-o", "json"]);
    for phase in ["Detected", "Resolved"] {
        backend.post(&report("a1", phase));
        let mut line = String::new();
        backend.stdout.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), report("a1", phase));
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("reports.db");
    let database = database.to_str().unwrap();
    let mut all = Vec::new();
    for round in 0..5 {
        let mut backend = Backend::start(&["serve", "--database", database]);
        let (_, health) = backend.ask("GET", "/healthz", "", "");
        assert_eq!(health["driftCount"], all.len());
        for number in 0..10 {
            let id = format!("d{round}-{number}");
            assert_eq!(backend.post(&report(&id, "Detected")).0, 200);
            all.push(id);
        }
        backend.kill();
    }
    let backend = Backend::start(&["serve", "--database", database]);
    let (status, answer) = backend.ask("GET", "/api/v1/drifts?limit=1000&namespace=shop", "", "");
    let kept: Vec<&str> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["report"]["spec"]["id"].as_str().unwrap())
        .collect();
    all.reverse();
    assert_eq!((status, kept), (200, all.iter().map(String::as_str).collect()));
    assert_eq!(backend.ask("GET", "/readyz", "", "").0, 200);
}

#[test]
fn a_token_is_asked_for_and_never_logged() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cr3t").unwrap();
    let database = folder.path().join("reports.db");
    let arguments =
        ["serve", "--database", database.to_str().unwrap(), "--token-file", token.to_str().unwrap()];
    let backend = Backend::start(&arguments);
    let body = report("a1", "Detected").to_string();
    for (headers, status) in
        [("", 401), ("Authorization: Bearer wrong\r\n", 401), ("Authorization: Bearer s3cr3t\r\n", 200)]
    {
        assert_eq!(backend.ask("POST", "/webhook", headers, &body).0, status, "{headers}");
        assert_eq!(backend.ask("GET", "/api/v1/drifts/a1", headers, "").0, status, "{headers}");
    }
}

#[tokio::test]
async fn tls_and_signatures_fit_those_of_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (file("cert", &made.cert.pem()), file("key", &made.signing_key.serialize_pem()));
    let (hmac, other) = (file("hmac", "0123456789abcdef"), file("other", "fedcba9876543210"));
    let flags = ["log", "-o", "json", "--tls-cert-file", &certificate, "--tls-private-key-file", &key];
    let mut backend = Backend::start(&[&flags[..], &["--hmac-key-file", &hmac]].concat());
    let url = format!("https://localhost:{}/webhook", backend.port());
    let send = async |key: &str| {
        let entry = Entry {
            name: "e".to_owned(),
            url: url.clone(),
            ca_file: Some(certificate.clone().into()),
            hmac_key_file: Some(key.into()),
            ..Entry::default()
        };
        let sender = Sender::new(check(vec![entry]).unwrap().remove(0)).unwrap();
        let report = serde_json::from_value(report("a1", "Detected")).unwrap();
        sender.send(&report, jiff::Timestamp::now()).await
    };
    send(&hmac).await.unwrap();
    let mut line = String::new();
    backend.stdout.read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["spec"]["id"], "a1");
    let refused = send(&other).await.unwrap_err().to_string();
    assert!(refused.contains("401 Unauthorized: the signature does not fit"), "{refused}");
}

#[test]
fn faults_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (database, text, missing) = (at("reports.db"), at("text"), at("missing"));
    std::fs::write(&text, "x".repeat(5000)).unwrap();
    for (arguments, expected) in [
        (
            vec!["log", "--bind-address", "0.0.0.0:0"],
            "give --token-file or --hmac-key-file, listen on 127.0.0.1",
        ),
        (vec!["log", "--token-file", &missing], "cannot read"),
        (vec!["log", "--hmac-key-file", &missing], "cannot read"),
        (vec!["serve", "--database", &text], "file is not a database"),
        (vec!["serve", "--database", &database, "--retention=-1h"], "--retention must not be negative"),
        (vec!["serve", "--database", &database, "--max-size", "1MiB"], "--max-size must be at least 8 MiB"),
        (vec!["serve", "--database", &database, "--max-size", "much"], "not a size like 500MiB"),
    ] {
        let output = command(&arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty());
    }
    assert!(!Path::new(&missing).exists());
}
