//! Writers, who notice when the webhook is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kausality_testbed::{MASTERS, eventually};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::say;
use super::stage::{PATIENCE, Stage};

/// Each writer has a Deployment of its own.
pub(super) const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// The time between two writes of one writer.
const PACE: Duration = Duration::from_millis(50);

/// How many writes come before and after what happens to the webhook.
const MARGIN: usize = 60;

/// A Deployment without Pods: what is written are Deployment, ReplicaSet and their status, which the webhook reviews.
pub(super) fn target(name: &str) -> Value {
    let labels = json!({ "app": name });
    let container = json!({ "name": "app", "image": super::APP });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// What became of writes.
#[derive(Debug)]
pub(super) struct Writes {
    /// When something began to happen to the webhook.
    begun: Instant,
    done: usize,
    slowest: Duration,
    failures: Vec<Failure>,
}

#[derive(Debug)]
struct Failure {
    at: Instant,
    text: String,
}

impl Writes {
    /// No write failed.
    #[track_caller]
    pub(super) fn all_passed(&self) {
        let texts = self.failures.iter().map(|failure| &*failure.text).collect::<Vec<_>>();
        assert!(texts.is_empty(), "{} writes failed: {texts:#?}", texts.len());
    }

    /// Writes failed because the webhook could not be called: it was really away.
    #[track_caller]
    pub(super) fn some_failed(&self) {
        let is_missed = |failure: &&Failure| failure.text.contains("failed calling webhook");
        assert!(self.failures.iter().any(|failure| is_missed(&failure)), "{self:#?}");
    }

    pub(super) fn failed(&self) -> usize {
        self.failures.len()
    }

    pub(super) fn all(&self) -> usize {
        self.done + self.failed()
    }

    /// How long after it began to happen the last write failed.
    pub(super) fn last_failure(&self) -> Option<Duration> {
        self.failures.iter().map(|failure| failure.at.saturating_duration_since(self.begun)).max()
    }

    /// Writes failed only because the webhook could not be called, for one of these reasons, and not for longer than this.
    #[track_caller]
    pub(super) fn failed_only_for(&self, reasons: &[&str], window: Duration) {
        for Failure { at, text } in &self.failures {
            let after = at.duration_since(self.begun);
            let expected =
                text.contains("failed calling webhook") && reasons.iter().any(|why| text.contains(why));
            assert!(expected, "after {after:.1?}: {text}");
            assert!(after < window, "a write failed as late as after {after:.1?}: {text}");
        }
    }
}

/// Does something while others write, and shows what became of their writes.
pub(super) async fn under_writers(stage: &Stage, what: &str, act: impl AsyncFnOnce()) -> Writes {
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for name in NAMES {
        let client = stage.node().client(&format!("writer-{name}"), &[MASTERS]).unwrap();
        writers.push(tokio::spawn(write(Api::default_namespaced(client), name, done.clone(), stop.clone())));
    }
    let some_more = async || {
        let enough = done.load(Ordering::Relaxed) + MARGIN;
        let look = async || (done.load(Ordering::Relaxed) >= enough).then_some(());
        eventually(PATIENCE, format_args!("{MARGIN} writes more"), look).await.unwrap();
    };
    some_more().await;
    let begun = Instant::now();
    act().await;
    let took = begun.elapsed();
    some_more().await;
    stop.store(true, Ordering::Relaxed);

    let mut sum = Writes { begun, done: 0, slowest: Duration::ZERO, failures: Vec::new() };
    for writer in writers {
        let Writes { done, slowest, failures, .. } = writer.await.unwrap();
        sum.done += done;
        sum.slowest = sum.slowest.max(slowest);
        sum.failures.extend(failures);
    }
    let (failed, all, slowest) = (sum.failed(), sum.all(), sum.slowest);
    let last = sum.last_failure().map(|last| format!(" (the last one after {last:.1?})")).unwrap_or_default();
    say(format_args!("{what}: {failed} of {all} writes failed{last}, slowest {slowest:.2?}, in {took:.1?}"));
    sum
}

/// Changes a Deployment again and again until told to stop. The controller hands each change on to the ReplicaSet. A write
/// that failed is repeated.
async fn write(api: Api<Deployment>, name: &str, done: Arc<AtomicUsize>, stop: Arc<AtomicBool>) -> Writes {
    let mut pace = tokio::time::interval(PACE);
    let mut writes = Writes { begun: Instant::now(), done: 0, slowest: Duration::ZERO, failures: Vec::new() };
    let mut seconds = 0;
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let patch = Patch::Merge(json!({ "spec": { "minReadySeconds": seconds % 60 + 1 } }));
        let begun = Instant::now();
        match api.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => {
                seconds += 1;
                writes.done += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => writes.failures.push(Failure { at: Instant::now(), text: error.to_string() }),
        }
        writes.slowest = writes.slowest.max(begun.elapsed());
    }
    writes
}
