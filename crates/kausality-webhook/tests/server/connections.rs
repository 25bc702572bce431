//! More connections than there is room for.

use tokio::{io::AsyncReadExt, time::timeout};

use crate::{
    client::{BOTH, PATIENCE, Protocol, request},
    stub::{Running, eventually, review, start},
};

async fn closed(server: &Running, reason: &str) -> f64 {
    let name = format!("kausality_connections_closed_total{{reason=\"{reason}\"}}");
    server.metric(&name).await.unwrap_or_default()
}

/// Whoever opens connections and says nothing keeps nobody out, and not even those that are open and idle for long.
#[tokio::test]
async fn idle_strangers_make_room_and_those_who_post_reviews_stay() {
    let server = start(|config| config.max_connections = 4).await;
    for protocol in BOTH {
        let mut known = server.client.connect(protocol).await.unwrap();
        assert_eq!(known.send(request("POST", "/admit", review("a"))).await.unwrap().status, 200);
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(server.client.dial().await);
        }
        let answer = server.client.post(protocol, review("a")).await;
        assert_eq!(answer.status, 200, "somebody new");
        assert_eq!(known.send(request("POST", "/admit", review("a"))).await.unwrap().status, 200);
        // The first ones of the strangers were closed.
        let mut end = [0];
        let first = timeout(PATIENCE, silent[0].read(&mut end)).await.expect("it is still open");
        assert!(matches!(first, Ok(0) | Err(_)), "{first:?}");
    }
    assert!(closed(&server, "idle").await >= 12.0);
    assert_eq!(closed(&server, "full").await, 0.0);
}

/// Where all are in use, whoever comes is told at once, and nothing that is under way is lost.
#[tokio::test]
async fn connections_in_use_are_kept_and_others_closed_at_once() {
    let mut server = start(|config| {
        config.max_connections = 2;
        config.health_address = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let mut busy = Vec::new();
    for protocol in BOTH {
        let client = server.client.clone();
        busy.push(tokio::spawn(async move { client.post(protocol, review("stuck")).await }));
    }
    server.wait_for_stuck(2).await;
    let refused = timeout(PATIENCE, server.client.connect(Protocol::Http1)).await.expect("it waits");
    assert!(refused.is_err());
    let metrics = crate::stub::fetch(server.health.unwrap(), "/metrics").await;
    assert!(metrics.contains(r#"kausality_connections_closed_total{reason="full"} 1"#), "{metrics}");

    server.stub.release.add_permits(2);
    for answer in busy {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    eventually("room again", async || match server.client.connect(Protocol::Http1).await {
        Ok(mut connection) => connection
            .send(request("POST", "/admit", review("a")))
            .await
            .is_ok_and(|answer| answer.status == 200),
        Err(_) => false,
    })
    .await;
    server.shut_down();
    server.ended().await;
}
