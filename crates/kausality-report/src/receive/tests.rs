use std::{path::PathBuf, sync::Mutex};

use axum::http::{Method, Request as Req};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::signature::{Key, SIGNATURE, TIMESTAMP};

#[derive(Default)]
struct Shelf {
    kept: Mutex<Vec<Received>>,
    full: Option<&'static str>,
}

impl Keep for Shelf {
    async fn keep(&self, report: Received) -> Result<(), Unkept> {
        if let Some(why) = self.full {
            return Err(Unkept(why.to_owned()));
        }
        self.kept.lock().unwrap().push(report);
        Ok(())
    }
}

fn report() -> Value {
    json!({"apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
        "id": "a1", "phase": "Detected",
        "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
        "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": "web-1"},
        "newObject": {}, "request": {"user": "dc", "uid": "u1", "operation": "UPDATE"},
    }})
}

fn post_of() -> axum::http::request::Builder {
    Req::builder().method(Method::POST).uri("/webhook").header("content-type", "application/json")
}

async fn ask(keep: Shelf, guard: Guard, request: Req<Body>) -> (u16, Value, Vec<Received>) {
    let keep = Arc::new(keep);
    let response = router(Arc::clone(&keep), Arc::new(guard)).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let kept = keep.kept.lock().unwrap().clone();
    (status, serde_json::from_slice(&body).unwrap_or_default(), kept)
}

fn request(body: impl Into<Body>) -> Req<Body> {
    post_of().body(body.into()).unwrap()
}

#[tokio::test]
async fn a_report_is_kept_and_acknowledged() {
    for path in ["/", "/webhook"] {
        let mut request = request(report().to_string());
        *request.uri_mut() = path.parse().unwrap();
        let (status, answer, kept) = ask(Shelf::default(), Guard::Open, request).await;
        assert_eq!(
            (status, &answer["acknowledged"], &answer["kind"]),
            (200, &json!(true), &json!("DriftReportResponse"))
        );
        let [kept] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!((kept.id.as_str(), kept.request.as_str(), kept.user.as_str()), ("a1", "u1", "dc"));
        assert_eq!((kept.parent.name.as_str(), kept.child.kind.as_str()), ("web", "ReplicaSet"));
        assert_eq!(serde_json::from_str::<Value>(&kept.text).unwrap(), report());
    }
}

#[tokio::test]
async fn what_is_no_report_is_refused_with_a_reason() {
    let without = |pointer: &str, field: &str| {
        let mut report = report();
        report.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
        report.to_string()
    };
    let with = |pointer: &str, value: Value| {
        let mut report = report();
        *report.pointer_mut(pointer).unwrap() = value;
        report.to_string()
    };
    let large = with("/spec/newObject", json!("x".repeat(LARGEST)));
    for (body, status, why) in [
        (String::new(), 400, "EOF"),
        ("[]".to_owned(), 400, "this is no DriftReport"),
        (without("/spec", "id"), 400, "missing field `id`"),
        (without("/spec/request", "uid"), 400, "missing field `uid`"),
        (with("/spec/id", json!("")), 400, "spec.id"),
        (with("/spec/id", json!("x".repeat(300))), 400, "spec.id"),
        (with("/spec/phase", json!("Over")), 400, "unknown variant `Over`"),
        (
            with("/kind", json!("Drift")),
            400,
            "this is no DriftReport of kausality.io/v1alpha1, but \"Drift\"",
        ),
        (large, 413, "larger than 1048576 bytes"),
    ] {
        let (seen, answer, kept) = ask(Shelf::default(), Guard::Open, request(body)).await;
        assert_eq!((seen, &answer["acknowledged"]), (status, &json!(false)), "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(why), "{answer} should say {why}");
        assert!(kept.is_empty());
    }
    let mut other = request(report().to_string());
    other.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(ask(Shelf::default(), Guard::Open, other).await.0, 415);
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_acknowledged() {
    let full = Shelf { full: Some("no room left"), ..Shelf::default() };
    let (status, answer, _) = ask(full, Guard::Open, request(report().to_string())).await;
    assert_eq!(
        (status, &answer["acknowledged"], &answer["error"]),
        (503, &json!(false), &json!("no room left"))
    );
}

fn secrets() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (token, key) = (folder.path().join("token"), folder.path().join("key"));
    std::fs::write(&token, "s3cr3t\n").unwrap();
    std::fs::write(&key, "0123456789abcdef\n").unwrap();
    (folder, token, key)
}

#[tokio::test]
async fn nobody_comes_in_without_the_token_or_a_signature() {
    let (_folder, token, key) = secrets();
    let text = report().to_string();
    let signed = |secret: &[u8], at: Timestamp, body: &str| {
        let signed = Key::new(secret).unwrap().sign(at, body.as_bytes());
        vec![(TIMESTAMP, signed.timestamp), (SIGNATURE, signed.signature)]
    };
    let bearer = |token: &str| vec![("authorization", format!("Bearer {token}"))];
    let now = Timestamp::now();
    let old = now - jiff::SignedDuration::from_secs(600);
    let right = signed(b"0123456789abcdef", now, &text);
    for (token, key, headers, status, why) in [
        (Some(&token), None, bearer("s3cr3t"), 200, ""),
        (Some(&token), None, bearer("secret"), 401, "the token is wrong"),
        (Some(&token), None, vec![], 401, "a bearer token is required"),
        (Some(&token), None, right.clone(), 401, "a bearer token is required"),
        (None, Some(&key), right.clone(), 200, ""),
        (None, Some(&key), signed(b"0123456789abcdef", now, "other"), 401, "does not fit"),
        (None, Some(&key), signed(b"another key altogether", now, &text), 401, "does not fit"),
        (None, Some(&key), signed(b"0123456789abcdef", old, &text), 401, "clocks"),
        (None, Some(&key), bearer("s3cr3t"), 401, "are required"),
        (None, Some(&key), right[..1].to_vec(), 401, "are required"),
        (Some(&token), Some(&key), bearer("s3cr3t"), 200, ""),
        (Some(&token), Some(&key), right.clone(), 200, ""),
        (Some(&token), Some(&key), vec![], 401, "a bearer token or a signature is required"),
    ] {
        let guard = Guard::Locked { token: token.cloned(), key: key.cloned() };
        let mut request = post_of();
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(text.clone())).unwrap();
        let (seen, answer, kept) = ask(Shelf::default(), guard, request).await;
        assert_eq!((seen, kept.len()), (status, usize::from(status == 200)), "{headers:?} {answer}");
        assert!(answer["error"].as_str().unwrap_or_default().contains(why), "{answer}");
        assert!(!answer.to_string().contains("s3cr3t"));
    }
}

#[tokio::test]
async fn tokens_rotate_and_one_that_is_lost_lets_nobody_in() {
    let (_folder, token, _) = secrets();
    let guard = || Guard::Locked { token: Some(token.clone()), key: None };
    let request = || {
        let request = post_of().header("authorization", "Bearer other");
        request.body(Body::from(report().to_string())).unwrap()
    };
    assert_eq!(ask(Shelf::default(), guard(), request()).await.0, 401);
    std::fs::write(&token, "other").unwrap();
    assert_eq!(ask(Shelf::default(), guard(), request()).await.0, 200);
    std::fs::remove_file(&token).unwrap();
    assert_eq!(ask(Shelf::default(), guard(), request()).await.0, 503);
}

#[tokio::test]
async fn without_authentication_only_this_machine_is_served() {
    for (host, status) in [
        ("127.0.0.1:8080", 200),
        ("localhost", 200),
        ("[::1]:8080", 200),
        ("evil.example.com:8080", 403),
        ("127.0.0.1.evil.example.com", 403),
    ] {
        let mut request = request(report().to_string());
        request.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(ask(Shelf::default(), Guard::Loopback, request).await.0, status, "{host}");
    }
}

#[test]
fn a_guard_is_needed_where_others_can_come() {
    let (_folder, token, key) = secrets();
    let (here, everywhere) = (([127, 0, 0, 1], 1).into(), ([0, 0, 0, 0], 1).into());
    assert!(matches!(Guard::new(here, None, None, false), Ok(Guard::Loopback)));
    assert!(matches!(Guard::new(everywhere, None, None, true), Ok(Guard::Open)));
    assert!(matches!(Guard::new(here, Some(token.clone()), None, false), Ok(Guard::Locked { .. })));
    assert!(matches!(Guard::new(everywhere, None, Some(key), false), Ok(Guard::Locked { .. })));
    assert!(matches!(Guard::new(everywhere, None, None, false), Err(Unprotected::Reachable(_))));
    std::fs::write(&token, "").unwrap();
    assert!(matches!(Guard::new(here, Some(token), None, false), Err(Unprotected::BadSecret(_))));
}

#[test]
fn reports_are_printed() {
    let mut full = report();
    full["spec"]["parent"]["lifecyclePhase"] = json!("Initialized");
    let pretty = serde_json::to_string_pretty(&full).unwrap();
    let received = Received::read(pretty.as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
    assert!(!received.json().contains('\n'));
    assert_eq!(serde_json::from_str::<Value>(&received.json()).unwrap(), full);
    let yaml = received.yaml().unwrap();
    assert!(yaml.starts_with("apiVersion: kausality.io/v1alpha1\nkind: DriftReport\nspec:\n"), "{yaml}");
    // What another sender leaves out does not matter.
    let received = Received::read(report().to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&received.yaml().unwrap()).unwrap(), report());
}
