//! Shutting down under load.

use std::time::Duration;

use kausality_webhook::ServerError;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::{
    client::{BOTH, Client, Failed, PATIENCE, Protocol, request},
    stub::{eventually, review, start},
};

/// Sends requests one after another until no connection can be had. Fails on any request that is lost.
fn hammer(client: Client, protocol: Protocol, answered: watch::Sender<u64>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok(mut connection) = client.connect(protocol).await {
            loop {
                match connection.send(request("POST", "/admit", review("a"))).await {
                    Ok(answer) => {
                        assert_eq!(answer.status, 200, "{}", answer.text());
                        answered.send_modify(|answered| *answered += 1);
                        if answer.header("connection") == "close" {
                            break;
                        }
                    }
                    Err(Failed::Unsent) => break,
                    Err(Failed::Lost(error)) => panic!("lost: {error}"),
                }
            }
        }
    })
}

async fn loses_no_request(protocol: Protocol) {
    let mut server = start(|config| config.drain_delay = Duration::from_secs(1)).await;
    let answered = watch::Sender::new(0);
    let workers: Vec<_> = (0..4).map(|_| hammer(server.client.clone(), protocol, answered.clone())).collect();
    let mut seen = answered.subscribe();
    let mut reaches = async |number| {
        timeout(PATIENCE, seen.wait_for(|seen| *seen >= number)).await.unwrap().unwrap();
    };
    reaches(100).await;

    server.shut_down();
    eventually("not ready", async || server.client.get("/readyz").await.status == 503).await;
    let before = *answered.borrow();
    reaches(before + 20).await;

    for worker in workers {
        timeout(PATIENCE, worker).await.unwrap().unwrap();
    }
    server.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_request_on_http_1() {
    loses_no_request(Protocol::Http1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_request_on_http_2() {
    loses_no_request(Protocol::Http2).await;
}

#[tokio::test]
async fn waits_for_requests_that_are_under_way() {
    let mut server = start(|config| config.drain_delay = Duration::ZERO).await;
    let mut requests = Vec::new();
    for protocol in BOTH {
        let client = server.client.clone();
        requests.push(tokio::spawn(async move { client.post(protocol, review("stuck")).await }));
    }
    server.wait_for_stuck(2).await;
    server.shut_down();
    eventually("refuses connections", async || server.client.connect(Protocol::Http1).await.is_err()).await;

    server.stub.release.add_permits(2);
    for request in requests {
        assert_eq!(request.await.unwrap().status, 200);
    }
    server.ended().await;
}

#[tokio::test]
async fn serves_who_has_connected_before_it_closed() {
    let mut server = start(|config| config.drain_delay = Duration::ZERO).await;
    let mut connection = server.client.connect(Protocol::Http1).await.unwrap();
    server.shut_down();
    eventually("refuses connections", async || server.client.connect(Protocol::Http1).await.is_err()).await;
    let answer = connection.send(request("POST", "/admit", review("a"))).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, "close"));
    server.ended().await;
}

#[tokio::test]
async fn idle_connections_do_not_hold_it_up() {
    let mut server = start(|config| {
        config.drain_delay = Duration::ZERO;
        config.drain_deadline = Duration::from_secs(3600);
    })
    .await;
    let mut idle = Vec::new();
    for protocol in BOTH {
        let mut connection = server.client.connect(protocol).await.unwrap();
        connection.send(request("GET", "/healthz", "")).await.unwrap();
        idle.push(connection);
    }
    server.shut_down();
    server.ended().await;
}

#[tokio::test]
async fn does_not_wait_for_ever() {
    let mut server = start(|config| {
        config.drain_delay = Duration::ZERO;
        config.drain_deadline = Duration::from_millis(50);
        config.deadline = Duration::from_secs(3600);
    })
    .await;
    let client = server.client.clone();
    let request = tokio::spawn(async move {
        let mut connection = client.connect(Protocol::Http2).await.unwrap();
        connection.send(request("POST", "/admit", review("stuck"))).await
    });
    server.wait_for_stuck(1).await;
    server.shut_down();
    server.ended().await;
    assert!(matches!(request.await.unwrap(), Err(Failed::Lost(_) | Failed::Unsent)));
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let certificates = kausality_webhook::Certificates::self_signed(&[], &[]).unwrap();
    let config = kausality_webhook::Config::new(address, certificates);
    let server = kausality_webhook::Server::new(
        config,
        std::sync::Arc::new(crate::stub::Stub::default()),
        kausality_webhook::Metrics::default(),
    );
    let error = server.run(std::future::pending()).await.unwrap_err();
    assert!(matches!(error, ServerError::Listen { .. }));
    assert!(error.to_string().starts_with(&format!("cannot listen on {address}: ")), "{error}");
}
