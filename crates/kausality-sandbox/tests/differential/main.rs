//! One program of requests on a real API server and on the sandbox: the answers must be the same.
//!
//! `program.jsonl` has a request a line. Both must answer with the same code and the same body, except for what is made up
//! (uids, times, addresses). Where a line says `"compare": "code"`, code and reason must be the same: the rest is in words
//! that only Go's libraries find, or written by a part that the sandbox does not have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{Component, MASTERS, eventually, start_or_skip};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const PROGRAM: &str = include_str!("program.jsonl");

/// What differs by nature.
const MADE_UP: [&str; 11] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_answers_as_a_real_api_server_does() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    // Nothing happens on its own.
    plane.pause(Component::ControllerManager).unwrap();
    let real = plane.client("dif", &[MASTERS]).unwrap();
    let sandbox = Sandbox::default();
    let ours = sandbox.client(&User::admin("dif"));

    let mut different = Vec::new();
    for line in PROGRAM.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let (expected, found) = (send(&real, &request).await, send(&ours, &request).await);
        if compared(&request, &expected) != compared(&request, &found) {
            different.push(format!("{}\n  real    {expected:?}\n  sandbox {found:?}", request["do"]));
        }
        if request["body"]["kind"] == "CustomResourceDefinition" && expected.0 == 201 {
            served(&real, &request["body"]["spec"]).await;
        }
    }
    // A process that is paused does not end when it is asked to.
    plane.resume(Component::ControllerManager).unwrap();
    let count = PROGRAM.lines().count();
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}

/// A custom resource is served a while after it is defined.
async fn served(client: &Client, spec: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for version in spec["versions"].as_array().unwrap() {
        let path = format!(
            "/apis/{}/{}/{}",
            text(&spec["group"]),
            text(&version["name"]),
            text(&spec["names"]["plural"])
        );
        let list = json!({"do": format!("GET {path}")});
        let probe = async || match send(client, &list).await {
            (200, _) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(Duration::from_secs(30), "the custom resource", probe).await.unwrap();
    }
}

async fn send(client: &Client, request: &Value) -> (u16, Value) {
    let (method, path) = request["do"].as_str().unwrap().split_once(' ').unwrap();
    let body = match &request["body"] {
        Value::Null => Vec::new(),
        // What is no JSON is in the program as text.
        Value::String(text) => text.clone().into_bytes(),
        body => body.to_string().into_bytes(),
    };
    let kind = request["type"].as_str().unwrap_or("application/json");
    let sent = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("user-agent", "dif/1");
    let response = client.send(sent.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}

fn compared(request: &Value, (code, body): &(u16, Value)) -> (u16, Value) {
    if request["compare"] == "code" {
        let reason = if *code < 300 { Value::Null } else { body["reason"].clone() };
        return (*code, reason);
    }
    let mut body = body.clone();
    normalise(&mut body, "");
    (*code, body)
}

fn normalise(value: &mut Value, key: &str) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| normalise(value, key)),
        Value::Array(items) => {
            items.iter_mut().for_each(|item| normalise(item, key));
            // Their order depends on the second in which they were written.
            if key == "managedFields" {
                items.sort_by_key(|entry| {
                    format!("{}{}{}", entry["operation"], entry["manager"], entry["subresource"])
                });
            }
        }
        value if MADE_UP.contains(&key) && !value.is_null() => *value = json!("made up"),
        Value::String(text) => *text = without_uids(text),
        _ => {}
    }
}

/// Uids in messages and in the keys of fields.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    words
        .map(|word| {
            if is_uid(word.trim_end_matches(|it: char| !it.is_ascii_alphanumeric())) { "<uid>" } else { word }
        })
        .collect()
}
