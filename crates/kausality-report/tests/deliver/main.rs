//! Delivery on a cluster in memory, to endpoints on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    drift::Delivery,
    report::ReportPhase::{self, Detected, Resolved},
};
use kausality_report::{
    Metrics, deliver,
    endpoint::{Entry, check},
    history::{self, History, Limits},
    receive::Guard,
    sender::Sender,
};
use kausality_testbed::eventually;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

mod receiver;
mod stage;

use receiver::{Manners, Receiver};
use stage::{PATIENCE, Stage};

/// A leader, until it is dropped.
struct Leader {
    task: JoinHandle<()>,
    metrics: Metrics,
}

impl Leader {
    fn new(stage: &Stage, senders: Vec<Sender>) -> Self {
        let metrics = Metrics::default();
        let (client, counts) = (stage.leader.clone(), metrics.clone());
        let task = tokio::spawn(async move { deliver::run(client, &senders, &counts).await });
        Self { task, metrics }
    }

    /// Stops it wherever it is, and waits until it has.
    async fn stop(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// The line of a metric.
    fn metric(&self, start: &str) -> Option<String> {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text.lines().find(|line| line.starts_with(start)).map(ToOwned::to_owned)
    }

    /// Waits until an endpoint has nothing more to hear.
    async fn until_idle(&self, endpoint: &str) {
        let expected = format!("kausality_report_pending{{endpoint=\"{endpoint}\"}} 0");
        let look = async || {
            let line = self.metric(&format!("kausality_report_pending{{endpoint=\"{endpoint}\"}}"));
            if line.as_ref() == Some(&expected) { Ok(()) } else { Err(format!("{line:?}")) }
        };
        eventually(PATIENCE, format!("{endpoint} has heard all"), look).await.unwrap();
    }
}

fn detected(delivery: &Delivery) -> bool {
    delivery.detected.is_some()
}

fn resolved(delivery: &Delivery) -> bool {
    delivery.resolved.is_some()
}

/// A drift in a namespace, and one without.
const PLACES: [&str; 2] = ["default", ""];

#[tokio::test(flavor = "multi_thread")]
async fn each_endpoint_hears_everything_once_and_in_order() {
    let stage = Stage::new().await;
    let (a, b) = (Receiver::new("a", Manners::Polite).await, Receiver::new("b", Manners::Polite).await);
    let leader = Leader::new(&stage, vec![a.sender(), b.sender()]);
    let ids: Vec<(&str, String)> =
        (0..40).map(|number| (PLACES[number % 2], format!("d{number:02}"))).collect();
    for (namespace, id) in &ids {
        stage.drift(namespace, id, &[]).await;
        // Somebody else counts meanwhile.
        stage.patch(namespace, id, json!({"count": 2})).await;
    }
    for (namespace, id) in &ids {
        for endpoint in ["a", "b"] {
            let delivery = stage.until(namespace, id, endpoint, detected).await;
            assert!(delivery.resolved.is_none());
        }
        stage.resolve(namespace, id).await;
    }
    for (namespace, id) in &ids {
        for endpoint in ["a", "b"] {
            stage.until(namespace, id, endpoint, resolved).await;
        }
        assert_eq!(stage.read(namespace, id).await.status.count, 2, "what others write stays");
    }
    for receiver in [&a, &b] {
        for (_, id) in &ids {
            assert_eq!(receiver.heard_of(id), [Detected, Resolved], "{id}");
        }
    }
    leader.until_idle("a").await;
    for phase in ["Detected", "Resolved"] {
        let start =
            format!("kausality_report_deliveries_total{{endpoint=\"a\",phase=\"{phase}\",outcome=\"ok\"}} ");
        assert_eq!(leader.metric(&start), Some(format!("{start}40")));
    }
    assert_eq!(
        leader.metric(
            "kausality_report_deliveries_total{endpoint=\"a\",phase=\"Detected\",outcome=\"failed\"}"
        ),
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_resolved_unheard_of_is_told_both() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Polite).await;
    let gone =
        Delivery { endpoint: "gone".to_owned(), detected: Some(Timestamp::now()), ..Delivery::default() };
    stage.drift("default", "d", std::slice::from_ref(&gone)).await;
    stage.resolve("default", "d").await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.until("default", "d", "a", resolved).await;
    assert_eq!(a.heard_of("d"), [Detected, Resolved]);
    assert_eq!(stage.delivery("default", "d", "gone").await, Delivery::default(), "it is forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_seen_again_is_told_again() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Polite).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.drift("", "d", &[]).await;
    for round in 1..=2 {
        stage.until("", "d", "a", detected).await;
        stage.resolve("", "d").await;
        stage.until("", "d", "a", resolved).await;
        assert_eq!(a.heard_of("d").len(), 2 * round);
        stage.reopen("", "d").await;
    }
    assert_eq!(a.heard_of("d")[..4], [Detected, Resolved, Detected, Resolved]);

    // Seen again just while its end is being told: the end is not recorded over the new beginning.
    stage.until("", "d", "a", detected).await;
    a.behave(Manners::Slow);
    stage.resolve("", "d").await;
    let look = async || if a.heard_of("d").last() == Some(&Resolved) { Some(()) } else { None };
    eventually(PATIENCE, "the end is being told", look).await.unwrap();
    stage.reopen("", "d").await;
    a.behave(Manners::Polite);
    stage.until("", "d", "a", detected).await;
    assert_eq!(a.heard_of("d")[4..], [Detected, Resolved, Detected]);
    assert!(!resolved(&stage.delivery("", "d", "a").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_delays_nobody_else() {
    let stage = Stage::new().await;
    let (stuck, well) =
        (Receiver::new("stuck", Manners::Hangs).await, Receiver::new("well", Manners::Polite).await);
    let leader = Leader::new(&stage, vec![stuck.sender(), well.sender()]);
    let ids: Vec<String> = (0..30).map(|number| format!("d{number:02}")).collect();
    for id in &ids {
        stage.drift("default", id, &[]).await;
    }
    for id in &ids {
        stage.until("default", id, "well", detected).await;
    }
    assert_eq!(well.heard().len(), 30);
    assert!((1..=8).contains(&stuck.most_at_once()), "{}", stuck.most_at_once());
    let complaints = async || {
        for id in &ids {
            if let Some(error) = stage.delivery("default", id, "stuck").await.error {
                return Some(error);
            }
        }
        None
    };
    let error = eventually(PATIENCE, "the ledger says what is wrong", complaints).await.unwrap();
    assert_eq!(error, "no answer within 1s");
    assert!(leader.metric("kausality_report_pending{endpoint=\"stuck\"} 30").is_some());
    stuck.behave(Manners::Polite);
    for id in &ids {
        let delivery = stage.until("default", id, "stuck", detected).await;
        assert_eq!(delivery.error, None, "it is history");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_with_something_else_is_not_delivered() {
    for (manners, why) in [
        (
            Manners::Babbles,
            "the endpoint answered something else (18 bytes that are no DriftReportResponse): is it the right URL?",
        ),
        (Manners::Fails, "the endpoint answered 500 Internal Server Error"),
    ] {
        let stage = Stage::new().await;
        let a = Receiver::new("a", manners).await;
        let _leader = Leader::new(&stage, vec![a.sender()]);
        stage.drift("", "d", &[]).await;
        let delivery = stage.until("", "d", "a", |delivery| delivery.error.is_some()).await;
        assert_eq!(
            delivery,
            Delivery { endpoint: "a".to_owned(), error: Some(why.to_owned()), ..Delivery::default() }
        );
        let again = async || if a.heard_of("d").len() >= 3 { Some(()) } else { None };
        eventually(PATIENCE, "it is tried again", again).await.unwrap();
        assert_eq!(stage.calls("patch", "clusterdrifts"), 1, "one complaint will do");
        a.behave(Manners::Polite);
        let delivery = stage.until("", "d", "a", detected).await;
        assert_eq!(delivery.error, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_was_down_hears_all_when_it_is_back() {
    let stage = Stage::new().await;
    let mut a = Receiver::new("a", Manners::Polite).await;
    let sender = a.sender();
    a.go_down().await;
    let _leader = Leader::new(&stage, vec![sender]);
    let ids: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    for id in &ids {
        stage.drift("default", id, &[]).await;
    }
    let failed = async || {
        for id in &ids {
            if let Some(error) = stage.delivery("default", id, "a").await.error {
                return Some(error);
            }
        }
        None
    };
    let error = eventually(PATIENCE, "it is tried", failed).await.unwrap();
    assert!(error.starts_with("cannot connect: "), "{error}");
    stage.resolve("default", "d3").await;
    a.come_back().await;
    for id in &ids {
        stage.until("default", id, "a", detected).await;
    }
    stage.until("default", "d3", "a", resolved).await;
    assert_eq!(a.heard_of("d3"), [Detected, Resolved]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_over_but_not_recorded_is_told_again() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Slow).await;
    let first = Leader::new(&stage, vec![a.sender()]);
    stage.drift("", "d", &[]).await;
    let heard = async || if a.heard().is_empty() { None } else { Some(()) };
    eventually(PATIENCE, "it has heard", heard).await.unwrap();
    first.stop().await;
    a.behave(Manners::Polite);
    assert!(!detected(&stage.delivery("", "d", "a").await));
    let _second = Leader::new(&stage, vec![a.sender()]);
    stage.until("", "d", "a", detected).await;
    assert_eq!(a.heard_of("d"), [Detected, Detected], "under the same id");
}

/// Leaders come and go at any time, and endpoints fail at any time.
#[tokio::test(flavor = "multi_thread")]
async fn leaders_that_are_killed_lose_nothing() {
    let stage = Stage::new().await;
    let (a, b) = (Receiver::new("a", Manners::Polite).await, Receiver::new("b", Manners::Fails).await);
    let ids: Vec<(&str, String)> =
        (0..60).map(|number| (PLACES[number % 2], format!("d{number:02}"))).collect();
    let life = async {
        for (namespace, id) in &ids {
            stage.drift(namespace, id, &[]).await;
            tokio::task::yield_now().await;
        }
        for (namespace, id) in &ids {
            stage.resolve(namespace, id).await;
            tokio::task::yield_now().await;
        }
    };
    let leaders = async {
        for round in 0_u64..40 {
            let leader = Leader::new(&stage, vec![a.sender(), b.sender()]);
            // How long it leads is the point of the test, not what it waits for.
            tokio::time::sleep(Duration::from_millis(round * 7 % 50)).await;
            leader.stop().await;
            b.behave(if round % 3 == 0 { Manners::Fails } else { Manners::Polite });
        }
    };
    tokio::join!(life, leaders);
    b.behave(Manners::Polite);
    let last = Leader::new(&stage, vec![a.sender(), b.sender()]);
    for (namespace, id) in &ids {
        for endpoint in ["a", "b"] {
            stage.until(namespace, id, endpoint, resolved).await;
        }
    }
    last.until_idle("a").await;
    for receiver in [&a, &b] {
        let heard = receiver.heard();
        assert!(heard.iter().all(|(heard, _)| ids.iter().any(|(_, id)| id == heard)), "nothing is made up");
        for (_, id) in &ids {
            let heard: Vec<ReportPhase> = receiver.heard_of(id);
            let end = heard.iter().position(|phase| *phase == Resolved).expect("its end was told");
            assert!(end > 0 && heard[..end].iter().all(|phase| *phase == Detected), "{id}: {heard:?}");
            assert!(heard[end..].iter().all(|phase| *phase == Resolved), "{id}: {heard:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_what_comes_and_goes_while_the_parent_is_snoozed() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Polite).await;
    let leader = Leader::new(&stage, vec![a.sender()]);
    stage.drift("default", "known", &[]).await;
    stage.until("default", "known", "a", detected).await;

    stage.snooze(Some(SignedDuration::from_hours(1))).await;
    stage.drift("default", "quiet", &[]).await;
    stage.resolve("default", "quiet").await;
    stage.resolve("default", "known").await;
    let quiet = stage.until("default", "quiet", "a", resolved).await;
    assert_eq!(quiet.detected, None);
    stage.until("default", "known", "a", resolved).await;
    assert!(a.heard_of("quiet").is_empty());
    assert_eq!(a.heard_of("known"), [Detected, Resolved], "who has heard of it hears the end");

    // One that waits is not pending, and is told when the snooze is over.
    let soon = SignedDuration::from_millis(1500);
    let over = Timestamp::now() + soon;
    stage.snooze(Some(soon)).await;
    stage.drift("default", "later", &[]).await;
    leader.until_idle("a").await;
    let later = stage.until("default", "later", "a", detected).await;
    assert!(later.detected.unwrap() >= over, "{later:?} {over}");

    // Silence lasts after the snooze is lifted, whoever leads.
    leader.stop().await;
    stage.snooze(None).await;
    let next = Leader::new(&stage, vec![a.sender()]);
    stage.drift("default", "last", &[]).await;
    stage.until("default", "last", "a", detected).await;
    next.until_idle("a").await;
    assert!(a.heard_of("quiet").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_gone_is_not_snoozed() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Polite).await;
    stage.lose_parent().await;
    stage.drift("default", "d", &[]).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.until("default", "d", "a", detected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_and_goes_with_a_snoozed_parent_is_not_told() {
    let stage = Stage::new().await;
    let a = Receiver::new("a", Manners::Polite).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.snooze(Some(SignedDuration::from_hours(1))).await;
    stage.drift("default", "d", &[]).await;
    let looked = async || if stage.calls("get", "configmaps") > 0 { Some(()) } else { None };
    eventually(PATIENCE, "the leader knows of the snooze", looked).await.unwrap();
    stage.lose_parent().await;
    stage.resolve("default", "d").await;
    stage.until("default", "d", "a", resolved).await;
    assert!(a.heard().is_empty());
}

/// What a leader needs, as rules.
fn rules(of_drifts: &[&str], of_parents: &[&str]) -> serde_json::Value {
    json!([
        {"apiGroups": ["kausality.io"], "resources": ["drifts", "clusterdrifts"], "verbs": of_drifts},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": of_parents},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_that_are_documented_suffice() {
    let stage = Stage::restricted(rules(&["get", "list", "watch", "patch"], &["get"])).await;
    let a = Receiver::new("a", Manners::Polite).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    for namespace in PLACES {
        stage.drift(namespace, "d", &[]).await;
        stage.until(namespace, "d", "a", detected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_may_not_be_read_is_not_snoozed() {
    let stage = Stage::restricted(rules(&["get", "list", "watch", "patch"], &["list"])).await;
    let a = Receiver::new("a", Manners::Polite).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.drift("default", "d", &[]).await;
    stage.until("default", "d", "a", detected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_recorded_is_not_told_again() {
    let stage = Stage::restricted(rules(&["get", "list", "watch"], &["get"])).await;
    let a = Receiver::new("a", Manners::Polite).await;
    let _leader = Leader::new(&stage, vec![a.sender()]);
    stage.drift("default", "d", &[]).await;
    let tried = async || if stage.calls("get", "drifts") >= 3 { Some(()) } else { None };
    eventually(PATIENCE, "recording is tried again", tried).await.unwrap();
    stage.permit(rules(&["get", "list", "watch", "patch"], &["get"])).await;
    stage.until("default", "d", "a", detected).await;
    assert_eq!(a.heard_of("d"), [Detected]);
}

/// A backend with history.
async fn backend(name: &str, guard: Guard, folder: &tempfile::TempDir, entry: Entry) -> (History, Sender) {
    let history = History::open(&folder.path().join(format!("{name}.db")), Limits::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let router = history::router(&history, &Arc::new(guard));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let entry = Entry { name: name.to_owned(), url, ..entry };
    (history, Sender::new(check(vec![entry]).unwrap().remove(0)).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_know_who_tells_them() {
    let stage = Stage::new().await;
    let folder = tempfile::tempdir().unwrap();
    let secret = |name: &str, text: &str| -> Option<PathBuf> {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let (token, wrong) = (secret("token", "s3cr3t"), secret("wrong", "other"));
    let key = secret("key", "0123456789abcdef");
    let by_token = || Guard::Locked { token: token.clone(), key: None };
    let by_key = Guard::Locked { token: None, key: key.clone() };
    let entry = Entry { token_file: token.clone(), ..Entry::default() };
    let (trusting, with_token) = backend("token", by_token(), &folder, entry).await;
    let entry = Entry { hmac_key_file: key, ..Entry::default() };
    let (signed, with_key) = backend("key", by_key, &folder, entry).await;
    let entry = Entry { token_file: wrong.clone(), ..Entry::default() };
    let (strict, with_wrong) = backend("strict", by_token(), &folder, entry).await;
    let _leader = Leader::new(&stage, vec![with_token, with_key, with_wrong]);

    stage.drift("default", "d", &[]).await;
    for endpoint in ["token", "key"] {
        stage.until("default", "d", endpoint, detected).await;
    }
    stage.resolve("default", "d").await;
    for endpoint in ["token", "key"] {
        stage.until("default", "d", endpoint, resolved).await;
    }
    for history in [&trusting, &signed] {
        let reports = history.of_drift("d".to_owned()).await.unwrap();
        let phases: Vec<serde_json::Value> = reports
            .iter()
            .map(|stored| {
                serde_json::from_str::<serde_json::Value>(&stored.report).unwrap()["spec"]["phase"].clone()
            })
            .collect();
        assert_eq!(phases, ["Detected", "Resolved"]);
    }
    let refused = stage.until("default", "d", "strict", |delivery| delivery.error.is_some()).await;
    assert_eq!(refused.error.as_deref(), Some("the endpoint answered 401 Unauthorized: the token is wrong"));
    assert_eq!(strict.count(), 0);
}
