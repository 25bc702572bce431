//! Requests, good and bad.

use std::{convert::Infallible, sync::atomic::Ordering, time::Duration};

use axum::body::Body;
use futures::stream;
use hyper::Version;
use kausality_webhook::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    client::{BOTH, PATIENCE, Protocol, request},
    log,
    stub::{eventually, review, start},
};

#[tokio::test]
async fn reviews_are_answered_on_both_versions_of_http() {
    let server = start(|_| {}).await;
    for protocol in BOTH {
        for path in ["/admit", "/", "/admit?timeout=10s"] {
            let answer = server.client.send(protocol, request("POST", path, review("a"))).await;
            let expected = if protocol == Protocol::Http1 { Version::HTTP_11 } else { Version::HTTP_2 };
            assert_eq!((answer.status, answer.version), (200, expected), "{path}");
            assert_eq!(answer.header("content-type"), "application/json");
            let response = &answer.json()["response"];
            assert_eq!((&response["uid"], &response["allowed"]), (&"uid-of-a".into(), &true.into()));
            assert_eq!(response["patchType"], "JSONPatch");
        }
    }
}

#[tokio::test]
async fn a_denial_is_an_answer_and_no_http_error() {
    let server = start(|_| {}).await;
    let answer = server.client.post(Protocol::Http2, review("denied")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["response"]["status"]["code"], 403);
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let server = start(|_| {}).await;
    assert_eq!(server.client.get("/admit").await.status, 405);
    assert_eq!(server.client.get("/nowhere").await.status, 404);
}

#[tokio::test]
async fn a_review_of_8_mib_is_read_and_one_byte_more_is_not() {
    let server = start(|_| {}).await;
    for protocol in BOTH {
        let padded = |size: usize| review("a") + &" ".repeat(size - review("a").len());
        assert_eq!(server.client.post(protocol, padded(8 << 20)).await.status, 200);

        let answer = server.client.post(protocol, padded((8 << 20) + 1)).await;
        assert_eq!(answer.status, 413);
        assert_eq!(
            answer.text(),
            "kausality: the review is larger than 8388608 bytes, the most that is read\n"
        );
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_bounded_too() {
    let server = start(|config| config.body_limit = 64 << 10).await;
    for protocol in BOTH {
        let chunk = Ok::<_, Infallible>(Bytes::from(vec![b' '; 10 << 10]));
        let body = Body::from_stream(stream::iter(vec![chunk; 15]));
        assert_eq!(server.client.post(protocol, body).await.status, 413);
    }
}

#[tokio::test]
async fn more_reviews_than_fit_into_memory_are_put_off() {
    let server = start(|config| config.body_budget = 2 * review("stuck").len()).await;
    let client = server.client.clone();
    let stuck = tokio::spawn(async move { client.post(Protocol::Http1, review("stuck")).await });
    server.wait_for_stuck(1).await;

    let large = review("a") + &" ".repeat(1000);
    let answer = server.client.post(Protocol::Http1, large).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));

    server.stub.release.add_permits(1);
    assert_eq!(stuck.await.unwrap().status, 200);
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request_with_a_reason() {
    let server = start(|_| {}).await;
    for (body, reason) in [
        ("{", "not an AdmissionReview: EOF"),
        ("", "not an AdmissionReview: EOF"),
        ("{}", "not an AdmissionReview but"),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "without a request"),
        (&"[".repeat(1 << 20), "not an AdmissionReview"),
    ] {
        let answer = server.client.post(Protocol::Http2, body.to_owned()).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(reason) && answer.body.len() < 1000, "{}", answer.text());
    }
    assert_eq!(server.metric("kausality_bad_reviews_total").await, Some(5.0));
}

#[tokio::test]
async fn other_encodings_are_refused() {
    let server = start(|_| {}).await;
    let mut request = request("POST", "/admit", review("a"));
    request.headers_mut().insert("content-type", "application/vnd.kubernetes.protobuf".parse().unwrap());
    assert_eq!(server.client.send(Protocol::Http1, request).await.status, 415);
}

#[tokio::test]
async fn a_decision_that_comes_too_late_is_an_error() {
    let server = start(|_| {}).await;
    let late = request("POST", "/admit?timeout=100ms", review("stuck"));
    let answer = server.client.send(Protocol::Http2, late).await;
    assert_eq!((answer.status, answer.text()), (504, "kausality: no decision within 75ms\n"));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = start(|config| config.deadline = Duration::from_millis(50)).await;
    let body = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    assert_eq!(server.client.post(Protocol::Http1, body).await.status, 504);
}

#[tokio::test]
async fn a_panic_is_an_error_of_one_request() {
    let server = start(|_| {}).await;
    for protocol in BOTH {
        let mut connection = server.client.connect(protocol).await.unwrap();
        let answer = connection.send(request("POST", "/admit", review("panic"))).await.unwrap();
        assert_eq!(answer.status, 500);
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        let answer = connection.send(request("POST", "/admit", review("a"))).await.unwrap();
        assert_eq!(answer.status, 200, "on the same connection");
    }
    assert_eq!(server.metric("kausality_panics_total").await, Some(2.0));
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    const IN_FLIGHT: &str = r#"controller_runtime_webhook_requests_in_flight{webhook="/admit"}"#;
    const GONE: &str = r#"controller_runtime_webhook_requests_total{webhook="/admit",code="499"}"#;
    let server = start(|_| {}).await;
    let client = server.client.clone();
    let request = tokio::spawn(async move { client.post(Protocol::Http2, review("stuck")).await });
    server.wait_for_stuck(1).await;
    assert_eq!(server.metric(IN_FLIGHT).await, Some(1.0));
    request.abort();
    eventually("counted as gone", async || server.metric(GONE).await == Some(1.0)).await;
    assert_eq!(server.metric(IN_FLIGHT).await, Some(0.0));
}

#[tokio::test]
async fn readiness_follows_the_admission() {
    let server = start(|_| {}).await;
    server.stub.ready.store(false, Ordering::Relaxed);
    assert_eq!(server.client.get("/readyz").await.status, 503);
    assert_eq!(server.client.get("/healthz").await.status, 200);
    server.stub.ready.store(true, Ordering::Relaxed);
    assert_eq!(server.client.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn probes_can_be_had_without_tls_but_admission_cannot() {
    let server = start(|config| config.health_address = Some(([127, 0, 0, 1], 0).into())).await;
    let plain = async |head: &str| {
        let mut stream = TcpStream::connect(server.health.unwrap()).await.unwrap();
        let request = format!("{head} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    assert!(plain("GET /readyz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(plain("GET /metrics").await.ends_with("# EOF\n"));
    assert!(plain("POST /admit").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn metrics_are_openmetrics_and_name_nobody() {
    let server = start(|_| {}).await;
    for name in ["name-of-an-object", "denied"] {
        server.client.post(Protocol::Http2, review(name)).await;
    }
    let answer = server.client.get("/metrics").await;
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.text();
    for secret in ["alice", "name-of-an-object", "shop", "uid-of"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // Times differ from run to run, and so does the order of labels.
    let mut shown = text
        .lines()
        .filter(|line| !line.contains("_bucket{") && !line.contains("_sum{"))
        .filter(|line| !line.starts_with("process_start_time_seconds"))
        .collect::<Vec<_>>();
    shown.sort_unstable();
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn logs_name_the_request_and_nothing_in_the_object() {
    let server = start(|_| {}).await;
    for name in ["a", "denied", "panic"] {
        server.client.post(Protocol::Http2, review(name)).await;
    }
    let wrong_type =
        review("a").replace(r#"{"password":"hunter2"}"#, "0").replace(r#""alice""#, r#"["hunter2"]"#);
    assert_eq!(server.client.post(Protocol::Http2, wrong_type).await.status, 400);

    let text = log::of_this_thread();
    assert!(!text.contains("hunter2"), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut lines: Vec<_> = lines.filter(|line| line["target"] == "kausality_webhook::admit").collect();
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        line.remove("timestamp").unwrap();
        let fields = line["fields"].as_object_mut().unwrap();
        if let Some(latency) = fields.remove("latency_us") {
            assert!(latency.is_u64(), "{latency}");
        }
    }
    insta::assert_json_snapshot!(lines);
}
