//! The memory of reviews: bounded, whatever comes in at once.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::{
    client::{BOTH, Protocol},
    stub::{self, Running, eventually, start},
};

const MIB: usize = 1 << 20;

/// A review of 4 MiB that is not decided until it is released.
fn large() -> String {
    stub::large("stuck", 4 * MIB)
}

/// Posts so many reviews at once, each on a connection of its own. What their answers are, once each is answered or stuck.
async fn burst(server: &Running, protocol: Protocol, count: usize) -> (JoinSet<u16>, usize) {
    let mut answers = JoinSet::new();
    for _ in 0..count {
        let client = server.client.clone();
        answers.spawn(async move {
            let answer = client.post(protocol, large()).await;
            assert!(answer.status != 503 || answer.header("retry-after") == "1", "{}", answer.text());
            answer.status
        });
    }
    let mut refused = 0;
    let before = *server.stub.stuck.borrow();
    while *server.stub.stuck.borrow() - before + refused < count {
        if let Ok(Some(answer)) = tokio::time::timeout(Duration::from_millis(10), answers.join_next()).await {
            assert_eq!(answer.unwrap(), 503);
            refused += 1;
        }
    }
    (answers, refused)
}

/// 64 reviews of 4 MiB, and room for 16 of them: no more are ever in memory, and a review takes its room until it is
/// decided, not only until it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_reviews_of_4_mib_those_that_fit_are_taken_and_the_others_put_off() {
    for protocol in BOTH {
        let server = start(|config| {
            config.body_budget = 64 * MIB;
            config.deadline = Duration::from_secs(3600);
        })
        .await;
        let (mut taken, refused) = burst(&server, protocol, 64).await;
        // More than 48 if some find that others, which are put off a moment later, have taken what they need.
        assert!((48..64).contains(&refused), "{protocol:?}: {refused} of 64 were put off");
        assert_eq!(taken.len() + refused, 64);

        // All are read, and none is decided: the room is still taken. What is left of it is enough for these, one by one.
        let mut late = Vec::new();
        for _ in taken.len()..16 {
            let (one, refused) = burst(&server, protocol, 1).await;
            assert_eq!(refused, 0, "{protocol:?}: there is room for 16");
            late.push(one);
        }
        let (_, refused) = burst(&server, protocol, 1).await;
        assert_eq!(refused, 1, "{protocol:?}: decisions under way hold their room");

        server.stub.release.add_permits(16);
        for mut answers in late.into_iter().chain([std::mem::take(&mut taken)]) {
            while let Some(answer) = answers.join_next().await {
                assert_eq!(answer.unwrap(), 200);
            }
        }
        // Decided, they have given it back.
        server.stub.release.add_permits(1);
        eventually("room again", async || server.client.post(protocol, large()).await.status == 200).await;
    }
}

/// What is cut off gives its room back, too.
#[tokio::test]
async fn a_client_that_goes_away_takes_its_review_with_it() {
    let server = start(|config| config.body_budget = 4 * MIB).await;
    let client = server.client.clone();
    let gone = tokio::spawn(async move { client.post(Protocol::Http2, large()).await });
    server.wait_for_stuck(1).await;
    assert_eq!(server.client.post(Protocol::Http2, large()).await.status, 503);
    gone.abort();
    const GONE: &str = r#"controller_runtime_webhook_requests_total{webhook="/admit",code="499"}"#;
    eventually("counted as gone", async || server.metric(GONE).await == Some(1.0)).await;
    server.stub.release.add_permits(1);
    assert_eq!(server.client.post(Protocol::Http2, large()).await.status, 200);
}

/// The default leaves a Pod with the memory limit of the chart its room.
#[test]
fn the_budget_suits_the_memory_limit_of_the_chart() {
    let values = include_str!("../../../../deploy/chart/values.yaml");
    let webhook = values.split("\nwebhook:").nth(1).unwrap().split("\ncontroller:").next().unwrap();
    let limit = webhook.split("limits: {memory: ").nth(1).unwrap().split("Mi}").next().unwrap();
    let limit: usize = limit.parse::<usize>().unwrap() * MIB;
    let certificates = kausality_webhook::Certificates::self_signed(&[], &[]).unwrap();
    let config = kausality_webhook::Config::new(([127, 0, 0, 1], 0).into(), certificates);
    // A review, and about three times as much to decide it; half of the memory is for what is watched.
    assert!(config.body_budget * 4 <= limit / 2, "{} of {limit}", config.body_budget);
    assert!(config.body_budget >= 4 * config.body_limit, "one large review must not keep all others out");
}
