use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// A Lease in memory, and how often it was written.
#[derive(Default)]
struct Fake {
    lease: Option<Value>,
    writes: u32,
}

fn client(fake: &Arc<Mutex<Fake>>) -> Client {
    let fake = fake.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let fake = fake.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let mut fake = fake.lock().unwrap();
            if head.method != Method::GET {
                fake.writes += 1;
                let mut lease: Value = serde_json::from_slice(&body).unwrap();
                lease["metadata"]["resourceVersion"] = fake.writes.to_string().into();
                fake.lease = Some(lease);
            }
            let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "none"});
            let (code, answer) = match &fake.lease {
                Some(lease) => (200, lease.clone()),
                None => (404, missing),
            };
            let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        }
    });
    Client::new(service, "default")
}

/// Whoever leads does its work as long as it leads: a renewed lease does not begin it anew.
#[tokio::test(start_paused = true)]
async fn who_leads_on_is_told_once() {
    let fake = Arc::new(Mutex::new(Fake::default()));
    let election = Election::new(client(&fake), "here", "lease", "me", Terms::default());
    let (leading, mut led) = watch::channel(false);
    let told = async {
        let mut told = Vec::new();
        while led.changed().await.is_ok() {
            told.push(*led.borrow_and_update());
        }
        told
    };
    let contend = async {
        election.run(&leading, sleep(Terms::default().pause * 10)).await;
        drop(leading);
    };
    let ((), told) = tokio::join!(contend, told);
    assert_eq!(told, [true, false]);
    let fake = fake.lock().unwrap();
    assert!(fake.writes > 5, "it was renewed, and given back: {}", fake.writes);
    assert_eq!(fake.lease.as_ref().unwrap()["spec"]["holderIdentity"], "");
}
