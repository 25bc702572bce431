//! Against an API server that does as it is told.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Method, Request, Response};
use kube::{Client, client::Body};

use super::*;

const UNANSWERED: &str =
    r#"Internal error occurred: failed calling webhook "p.drift.kausality.io": failed to call webhook: EOF"#;

/// What answers a deletion of a PriorityClass, one after the other; the last one for ever. What was deleted.
fn objects(answers: &'static [(u16, &'static str)]) -> (Objects, Arc<Mutex<Vec<String>>>) {
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let seen = deleted.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (path, mut seen) = (request.uri().path().to_owned(), seen.lock().unwrap());
        let (code, body) = match *request.method() {
            Method::DELETE => {
                let tried = seen.iter().filter(|other| **other == path).count();
                seen.push(path.clone());
                match answers.get(tried.min(answers.len() - 1)) {
                    Some((code, message)) if path.contains("priorityclasses") => {
                        (*code, status(*code, message))
                    }
                    _ => (404, status(404, "not found")),
                }
            }
            _ => (200, discovery(&path)),
        };
        let answer = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        async move { Ok::<_, Infallible>(answer.unwrap()) }
    });
    (Objects::new(Client::new(service, "default")), deleted)
}

fn status(code: u16, message: &str) -> Value {
    let verdict = if code < 300 { "Success" } else { "Failure" };
    json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": verdict, "code": code, "message": message,
        "reason": if code == 404 { "NotFound" } else { "Testing" }})
}

fn discovery(path: &str) -> Value {
    let group = |name: &str, kinds: &[(&str, &str)]| {
        let resource = |(plural, kind): &(&str, &str)| {
            json!({"resource": plural, "scope": "Cluster", "verbs": ["get"], "singularResource": "",
                "responseKind": {"group": name, "version": "v1", "kind": kind}})
        };
        let resources: Vec<Value> = kinds.iter().map(resource).collect();
        json!({"metadata": {"name": name},
            "versions": [{"version": "v1", "freshness": "Current", "resources": resources}]})
    };
    let items = match path {
        "/apis" => json!([
            group("scheduling.k8s.io", &[("priorityclasses", "PriorityClass")]),
            group(
                "admissionregistration.k8s.io",
                &[
                    ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
                    ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
                ],
            ),
        ]),
        _ => json!([]),
    };
    json!({"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {}, "items": items})
}

fn priority_class() -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "kausality"}})
}

const LONG: Duration = Duration::from_secs(60);

/// An API server that still asks a webhook which is gone: it is tried again, and the registration is removed again.
#[tokio::test(start_paused = true)]
async fn what_still_waits_for_the_webhook_is_tried_again() {
    let (objects, deleted) = objects(&[(500, UNANSWERED), (500, UNANSWERED), (200, "")]);
    assert!(delete(&objects, &priority_class(), LONG).await.unwrap());
    let deleted = deleted.lock().unwrap();
    let count = |plural: &str| deleted.iter().filter(|path| path.contains(plural)).count();
    assert_eq!((count("priorityclasses"), count("mutatingwebhookconfigurations")), (3, 2), "{deleted:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_not_tried_for_ever_nor_for_webhooks_of_others() {
    let (objects_of_ours, _) = objects(&[(500, UNANSWERED)]);
    let error = delete(&objects_of_ours, &priority_class(), Duration::ZERO).await.unwrap_err();
    assert!(format!("{error:#}").contains("failed calling webhook"), "{error:#}");
    let (objects, deleted) = objects(&[(500, r#"failed calling webhook "policies.example.com": EOF"#)]);
    delete(&objects, &priority_class(), LONG).await.unwrap_err();
    assert_eq!(deleted.lock().unwrap().len(), 1);
}
