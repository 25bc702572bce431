//! Work that takes too long: it ends in an HTTP error, and keeps nobody else from an answer.

use std::thread::available_parallelism;

use tokio::task::JoinSet;

use crate::{
    client::{BOTH, request},
    stub::{Running, eventually, large, review, start},
};

const BYTES: usize = 1 << 20;

async fn post(server: &Running, path: &str, review: String) -> (u16, String) {
    let answer = server.client.send(BOTH[0], request("POST", path, review)).await;
    (answer.status, answer.text().to_owned())
}

/// Reviews whose decisions do not end occupy all processors that there are for large reviews. They are given up in time, the next ones are
/// put off, and small ones are answered beside them, as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_that_do_not_end_keep_nobody_else_from_an_answer() {
    for path in ["/admit", "/decisions", "/inputs"] {
        let server = start(|_| {}).await;
        let processors = available_parallelism().unwrap().get();
        let mut busy = JoinSet::new();
        for _ in 0..processors {
            let (client, path) = (server.client.clone(), format!("{path}?timeout=2s"));
            busy.spawn(async move {
                client.send(BOTH[0], request("POST", &path, large("busy", BYTES))).await.status
            });
        }
        server.wait_for_stuck(processors).await;
        assert_eq!(post(&server, path, review("a")).await.0, 200);
        let answer =
            server.client.send(BOTH[1], request("POST", &format!("{path}?timeout=500ms"), large("a", BYTES)));
        let answer = answer.await;
        let why = "kausality: other large reviews have kept all processors busy for 375ms; try again\n";
        assert_eq!((answer.status, answer.text()), (503, why));
        assert_eq!(answer.header("retry-after"), "1");
        while let Some(status) = busy.join_next().await {
            assert_eq!(status.unwrap(), 504, "given up, although it goes on");
        }
        assert_eq!(post(&server, path, review("a")).await.0, 200);
        assert_eq!(post(&server, &format!("{path}?timeout=500ms"), large("a", BYTES)).await.0, 503);
        assert_eq!(post(&server, "/validate?timeout=500ms", review("a")).await.0, 503, "may take long, too");

        *server.stub.done.0.lock().unwrap() = true;
        server.stub.done.1.notify_all();
        eventually("room again", async || post(&server, path, large("a", BYTES)).await.0 == 200).await;
    }
}

/// One that waits for something, as for the API server, needs no processor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_takes_no_turn() {
    let server = start(|_| {}).await;
    let mut waiting = JoinSet::new();
    let count = 2 * available_parallelism().unwrap().get() + 1;
    for _ in 0..count {
        let client = server.client.clone();
        waiting.spawn(async move { client.post(BOTH[0], large("stuck", BYTES)).await.status });
    }
    server.wait_for_stuck(count).await;
    assert_eq!(server.client.post(BOTH[0], large("a", BYTES)).await.status, 200);
    server.stub.release.add_permits(count);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
}

#[tokio::test]
async fn a_panic_over_a_large_review_is_an_error_of_one_request() {
    let server = start(|_| {}).await;
    assert_eq!(post(&server, "/admit", large("panic", BYTES)).await.0, 500);
    assert_eq!(post(&server, "/admit", large("a", BYTES)).await.0, 200);
    assert_eq!(server.metric("kausality_panics_total").await, Some(1.0));
}
