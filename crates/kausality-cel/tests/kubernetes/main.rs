//! The same expressions on a real API server and here: what comes of them on recorded objects, and what is wrong with those
//! that do not compile.
//!
//! Each expression is the condition of a webhook of its own, which is asked about objects that carry its number as a
//! label. Objects are of a kind without a schema that hold recorded reviews, so that what is sent is what is evaluated.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use kausality_cel::{Environment, Expression, Facts, Object};
use kausality_testbed::{MASTERS, eventually, start_or_skip};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const GROUP: &str = "test.kausality.io";
const RECORDINGS: &str = "/apis/test.kausality.io/v1/namespaces/default/recordings?dryRun=All";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATIENCE: Duration = Duration::from_secs(30);
/// How many requests are under way at once.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Holds,
    Fails,
    Error,
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_have_the_same_results_as_on_a_real_api_server() {
    let expressions = lines(include_str!("expressions.txt"));
    assert!(expressions.len() >= 200, "{}", expressions.len());
    let compiled = expressions.iter().map(|it| Expression::compile(it, Environment::conditions()));
    let (compiled, faults): (Vec<_>, Vec<_>) = compiled.partition(Result::is_ok);
    let faults: Vec<_> = faults.into_iter().filter_map(Result::err).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let compiled: Vec<_> = compiled.into_iter().filter_map(Result::ok).collect();
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let client = plane.client("conny", &[MASTERS]).unwrap();
    assert_eq!(send(&client, "POST", DEFINITIONS, &definition()).await.0, 201);
    eventually(PATIENCE, "the kind", async || {
        (send(&client, "POST", RECORDINGS, &recording("none", &Value::Null)).await.0 == 201).then_some(())
    })
    .await
    .unwrap();
    let (code, answer) = send(&client, "POST", CONFIGURATIONS, &webhooks(&expressions)).await;
    assert_eq!(code, 201, "{}", serde_json::to_string_pretty(&answer["details"]["causes"]).unwrap());
    // The last one holds for everything.
    let probe = format!("e{}", expressions.len());
    eventually(PATIENCE, "the webhooks", async || {
        (send(&client, "POST", RECORDINGS, &recording(&probe, &Value::Null)).await.0 == 500).then_some(())
    })
    .await
    .unwrap();

    let recorded = recorded();
    assert!(recorded.len() >= 5, "{}", recorded.len());
    let cases = compiled.iter().zip(&expressions).enumerate();
    let cases: Vec<_> = cases
        .flat_map(|(nth, (compiled, source))| {
            recorded
                .iter()
                .map(move |(name, review)| (compiled, source, name, recording(&format!("e{nth}"), review)))
        })
        .collect();
    let (client, count) = (&client, cases.len());
    let results: Vec<_> = futures::stream::iter(cases)
        .map(async |(compiled, source, name, body)| {
            let (code, answer) = send(client, "POST", RECORDINGS, &body).await;
            let theirs = match code {
                500 => Outcome::Holds,
                201 => Outcome::Fails,
                403 => Outcome::Error,
                other => panic!("{source} on {name}: {other} {answer}"),
            };
            let held = compiled.holds(&Known::new(body));
            let ours = match &held {
                Ok(true) => Outcome::Holds,
                Ok(false) => Outcome::Fails,
                Err(_) => Outcome::Error,
            };
            let different = (theirs != ours).then(|| {
                format!("{source}\n  on {name}: real {theirs:?} {}, ours {held:?}", answer["message"])
            });
            (theirs, different)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let different: Vec<_> = results.iter().filter_map(|(_, different)| different.clone()).collect();
    let mut counts = BTreeMap::new();
    for (outcome, _) in &results {
        *counts.entry(*outcome).or_insert(0) += 1;
    }
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
    assert!(counts.len() == 3 && counts.values().all(|it| *it > 50), "{counts:?}");
}

/// An API server says `ERROR: <input>:1:2: message` for each fault. The first is compared.
#[tokio::test(flavor = "multi_thread")]
async fn faults_are_told_as_by_a_real_api_server() {
    let lines = lines(include_str!("faults.txt"));
    let words: Vec<bool> = lines.iter().map(|line| !line.starts_with("~ ")).collect();
    let sources: Vec<String> = lines.iter().map(|line| line.trim_start_matches("~ ").to_owned()).collect();
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let client = plane.client("conny", &[MASTERS]).unwrap();
    let (code, answer) = send(&client, "POST", CONFIGURATIONS, &webhooks(&sources)).await;
    assert_eq!(code, 422, "{answer}");
    let causes = answer["details"]["causes"].as_array().unwrap();
    let mut different = Vec::new();
    for (nth, (source, words)) in sources.iter().zip(words).enumerate() {
        let field = format!("webhooks[{nth}].matchConditions[0].expression");
        let theirs = causes.iter().find(|it| it["field"] == field.as_str());
        let theirs = theirs.map(|it| told(it["message"].as_str().unwrap()));
        let ours = Expression::compile(source, Environment::conditions()).err();
        let same = theirs.as_ref().zip(ours.as_ref()).is_some_and(|(theirs, ours)| {
            let place = format!("{}:{}: ", ours.line, ours.column);
            match theirs.strip_prefix(&place) {
                Some(message) => message == ours.message || !words,
                // It does not say where the whole is of another type.
                None => theirs.ends_with(&ours.message) && ours.message.starts_with("must evaluate to bool"),
            }
        });
        if !same {
            different.push(format!("{source}\n  real {theirs:?}\n  ours {ours:?}"));
        }
    }
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        sources.len(),
        different.join("\n")
    );
}

/// The first fault of a message.
fn told(message: &str) -> String {
    let rest = message.split_once("<input>:").map_or(message, |(_, rest)| rest);
    rest.lines().next().unwrap_or_default().to_owned()
}

fn lines(file: &str) -> Vec<String> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response =
        client.send(request.body(Body::from(body.to_string().into_bytes())).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// The first recorded review of each kind and operation.
fn recorded() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/admission-reviews");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = BTreeMap::new();
    for file in files {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let review: Value = serde_json::from_str(line).unwrap();
            let request = &review["request"];
            let name = format!(
                "{} {}",
                request["operation"].as_str().unwrap(),
                request["kind"]["kind"].as_str().unwrap()
            );
            found.entry(name).or_insert_with(|| {
                json!({"now": request["object"], "before": request["oldObject"], "who": request["userInfo"]})
            });
        }
    }
    found
}

fn recording(case: &str, review: &Value) -> Value {
    let mut recording = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Recording",
        "metadata": {"name": "recorded", "namespace": "default", "labels": {"case": case}}});
    for (name, value) in review.as_object().into_iter().flatten() {
        recording[name] = value.clone();
    }
    recording
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("recordings.{GROUP}")}, "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "recordings", "kind": "Recording"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn webhooks(expressions: &[String]) -> Value {
    let webhook = |(nth, source): (usize, &str)| {
        json!({"name": format!("e{nth}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail",
            "objectSelector": {"matchLabels": {"case": format!("e{nth}")}},
            "rules": [{"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["recordings"], "operations": ["*"]}],
            "matchConditions": [{"name": "expression", "expression": source}]})
    };
    let all = expressions.iter().map(String::as_str).chain(["true"]).enumerate();
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "expressions"}, "webhooks": all.map(webhook).collect::<Vec<_>>()})
}

/// What the API server would tell of a request.
struct Known {
    body: Value,
    object: OnceCell<Object>,
    request: OnceCell<Object>,
    none: Object,
}

impl Known {
    fn new(body: Value) -> Self {
        Self { body, object: OnceCell::new(), request: OnceCell::new(), none: Object::null() }
    }
}

impl Facts for Known {
    fn get(&self, name: &str) -> &Object {
        match name {
            "object" => self.object.get_or_init(|| Object::of(&self.body)),
            "request" => self.request.get_or_init(|| {
                let kind = json!({"group": GROUP, "version": "v1", "kind": "Recording"});
                let resource = json!({"group": GROUP, "version": "v1", "resource": "recordings"});
                Object::of(&json!({"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
                    "name": "recorded", "namespace": "default", "operation": "CREATE", "dryRun": true,
                    "userInfo": {"username": "conny", "groups": [MASTERS, "system:authenticated"]},
                    "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}}))
            }),
            _ => &self.none,
        }
    }
}
