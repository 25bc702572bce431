//! Others write to the same parent at the same time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, future::BoxFuture};
use kausality_sandbox::{Admission, Sandbox, User, Verdict, Write};
use kausality_webhook::Bytes;
use serde_json::{Value, json};

use crate::cli::stage::*;

/// Writes to a garden whenever alice is about to, so that she comes too late.
struct Rival {
    sandbox: Sandbox,
    left: AtomicUsize,
    written: AtomicUsize,
}

impl Admission for Rival {
    fn name(&self) -> &str {
        "rival.garden.io"
    }

    fn matches(&self, write: &Write<'_>) -> bool {
        write.resource == "gardens" && write.operation == "UPDATE" && write.user == "alice"
    }

    fn review(&self, _: Bytes) -> BoxFuture<'_, Result<Verdict, String>> {
        async move {
            let spend = |left: usize| left.checked_sub(1);
            if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend).is_ok() {
                let nth = self.written.fetch_add(1, Ordering::SeqCst);
                let body = json!({"metadata": {"annotations": {"rival": nth.to_string()}}}).to_string();
                let request = http::Request::patch(format!("{GARDENS}/south"))
                    .header("content-type", "application/merge-patch+json")
                    .body(body.into_bytes());
                let client = self.sandbox.client(&User::admin("rival"));
                client.request::<Value>(request.unwrap()).await.map_err(|error| error.to_string())?;
            }
            Ok(Verdict::allow())
        }
        .boxed()
    }
}

async fn with_rival(writes: usize) -> (Stage, Arc<Rival>) {
    let sandbox = Sandbox::builder().rbac(true).build();
    let stage = Stage::on(&sandbox).await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    let rival = Arc::new(Rival {
        sandbox: sandbox.clone(),
        left: AtomicUsize::new(writes),
        written: AtomicUsize::default(),
    });
    sandbox.add_admission(rival.clone());
    (stage, rival)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_too_late_tries_again_with_what_is_there_then() {
    let (stage, rival) = with_rival(9).await;
    let said = stage.run(&["approve", "aaa1", "-n", "park"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(rival.written.load(Ordering::SeqCst), 9);
    let garden = stage.get(&format!("{GARDENS}/south")).await;
    assert_eq!(garden["metadata"]["annotations"]["rival"], "8", "nothing of theirs is lost");
    assert_eq!(stage.annotation("south", "approvals").await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_always_comes_too_late_gives_up_and_says_so() {
    let (stage, _rival) = with_rival(usize::MAX).await;
    stage.golden("conflicts", &["approve", "aaa1", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    stage.golden("conflicts-freeze", &["freeze", "garden/south", "-n", "park", "--reason", "storm"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobodys_decision_is_lost() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let plots: Vec<(String, String)> =
        (0..6).map(|nth| (format!("aaa{nth}000000000000"), format!("south-{nth}"))).collect();
    for (id, child) in &plots {
        stage.drift(&Plot::new(id, &south, child)).await;
    }
    let all = plots.iter().map(|(id, _)| stage.command(&["approve", id, "-n", "park"]).spawn().unwrap());
    for mut one in all.collect::<Vec<_>>() {
        assert!(one.wait().unwrap().success());
    }
    let approvals = stage.annotation("south", "approvals").await;
    let mut names: Vec<&str> =
        approvals.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, plots.iter().map(|(_, child)| child.as_str()).collect::<Vec<_>>());
}
