//! What is decided is what happens: with Kausality at work, and a controller that drifts.

use kausality::embedded::{Embedded, Setup};
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::User;
use kausality_testbed::{MASTERS, eventually};
use serde_json::{Value, json};

use crate::cli::stage::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/park/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/park/replicasets";
const CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// A shop of three replicas that has been rolled out, whose ReplicaSet somebody has scaled to five; the name of that
/// ReplicaSet, and the id of the drift that its controller was kept from.
pub(crate) async fn drifted(embedded: &Embedded) -> (Stage, String, String) {
    let stage = Stage::on(&embedded.sandbox).await;
    let shop = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [{"name": "shop", "image": "shop:1"}]}}}});
    stage.post(DEPLOYMENTS, &shop).await;
    eventually(PATIENCE, "the roll-out", async || {
        let shop = stage.get(&format!("{DEPLOYMENTS}/shop")).await;
        let settled = settled(&shop).is_some();
        (settled && shop["status"]["availableReplicas"] == 3).then_some(())
    })
    .await
    .unwrap();
    let set = stage.get(SETS).await["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    stage.patch(&format!("{SETS}/{set}"), &json!({"spec": {"replicas": 5}})).await;
    let id = eventually(PATIENCE, "the drift", async || {
        let drifts = stage.get("/apis/kausality.io/v1alpha1/namespaces/park/drifts").await;
        drifts["items"][0]["metadata"]["name"].as_str().map(str::to_owned)
    })
    .await
    .unwrap();
    (stage, set, id)
}

async fn replicas(stage: &Stage, set: &str) -> Value {
    stage.get(&format!("{SETS}/{set}")).await["spec"]["replicas"].clone()
}

async fn embedded() -> Embedded {
    Embedded::set_up(Setup { default_mode: Mode::Enforce, quiet_time: QuietTime::NONE, ..Setup::default() })
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_excepted_passes_again_and_again() {
    let embedded = embedded().await;
    let (stage, set, id) = drifted(&embedded).await;
    let id = id.as_str();
    let said = stage.run(&["except", id, "-n", "park", "--reason", "known"]);
    assert!(said.code == 1 && said.err.contains("there is nobody to ask: say --yes"), "{said:?}");
    assert!(
        said.err.contains("kind: ApprovalPolicy") && said.err.contains("# There is no other drift"),
        "{said:?}"
    );
    let said = stage.run(&["except", id, "-n", "park", "--cel", "object.spec.replica <", "--yes"]);
    assert!(said.code == 1 && said.err.contains("spec.rules[0].match.cel: 1:"), "{said:?}");

    let said = stage.run(&["except", id, "-n", "park", "--reason", "known", "--yes"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "approvalpolicy.kausality.io/exceptions created, with 1 rule\n")
    );
    let correction = async || {
        eventually(PATIENCE, "the correction", async || (replicas(&stage, &set).await == 3).then_some(()))
            .await
            .unwrap();
    };
    correction().await;
    stage.patch(&format!("{SETS}/{set}"), &json!({"spec": {"replicas": 7}})).await;
    correction().await;
    let said = stage.run(&["trace", &format!("rs/{set}"), "-n", "park"]);
    assert!(said.out.contains("ApprovalPolicy/park/exceptions") && said.out.contains("known"), "{said:?}");

    let said = stage.run(&["except", id, "-n", "park", "--yes"]);
    assert_eq!(said.out, "approvalpolicy.kausality.io/exceptions has such a rule already\n", "{said:?}");
    let said = stage.run(&["except", id, "-n", "park", "--any-name", "--dry-run", "-o", "json"]);
    let policy: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&policy["spec"]["rules"][1]["name"], said.code), (&json!("*"), 0));
    let stored = stage.get("/apis/kausality.io/v1alpha1/namespaces/park/approvalpolicies/exceptions").await;
    assert_eq!(stored["spec"]["rules"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_approved_passes_and_the_trace_says_who_did_it() {
    let embedded = embedded().await;
    let (stage, set, id) = drifted(&embedded).await;
    let id = id.as_str();
    // A controller cannot approve its own drift, whatever it may write.
    let own = ["approve", id, "-n", "park", "--as", CONTROLLER, "--as-group", "system:masters"];
    let said = stage.run(&own);
    let itself = format!("it was given by {CONTROLLER} itself");
    assert!(said.code == 1 && said.err.contains(&itself), "{said:?}");
    let stop = ["freeze", "deploy/shop", "-n", "park", "--reason", "stop", "--as", CONTROLLER, "--as-group"];
    let said = stage.run(&[&stop[..], &["system:masters"]].concat());
    assert!(said.code == 1 && said.err.contains("the cluster did not keep the annotations"), "{said:?}");
    assert_eq!(replicas(&stage, &set).await, 5);

    let said = stage.run(&["approve", id, "-n", "park", "--reason", "known"]);
    assert_eq!(said.code, 0, "{said:?}");
    eventually(PATIENCE, "the correction", async || (replicas(&stage, &set).await == 3).then_some(()))
        .await
        .unwrap();
    eventually(PATIENCE, "the end of the drift", async || {
        let said = stage.run(&["drifts", id, "-n", "park"]);
        if said.out.contains("Resolved") { Ok(()) } else { Err(said.out) }
    })
    .await
    .unwrap();
    let said = stage.run(&["trace", &format!("rs/{set}"), "-n", "park"]);
    assert!(said.out.contains("[approved (once) by alice: known]"), "{said:?}");
    let shop = stage.get(&format!("{DEPLOYMENTS}/shop")).await;
    assert_eq!(shop["metadata"]["annotations"].get("kausality.io/approvals"), None, "it is used up");
    let said = stage.run(&["trace", "deploy/shop", "-n", "park", "--children"]);
    assert!(said.out.contains(&format!("└─ ReplicaSet {set}, ")), "{said:?}");
    assert!(said.out.contains("   ├─ Pod shop-"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rejected_or_frozen_does_not_pass() {
    let embedded = embedded().await;
    let (stage, set, id) = drifted(&embedded).await;
    let id = id.as_str();
    assert_eq!(stage.run(&["reject", id, "-n", "park", "--reason", "not now"]).code, 0);
    assert_eq!(stage.run(&["approve", id, "-n", "park"]).code, 1);
    // The controller tries again later and later: what it would hear is asked for here.
    let controller = embedded.sandbox.client(&User::new(CONTROLLER, &[MASTERS]));
    let denied = async |why: &str| {
        let body = json!({"spec": {"replicas": 3}}).to_string().into_bytes();
        let request = http::Request::patch(format!("{SETS}/{set}"))
            .header("content-type", "application/merge-patch+json")
            .body(body);
        let error = controller.request::<Value>(request.unwrap()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    denied("rejected by alice: not now").await;
    assert_eq!(replicas(&stage, &set).await, 5);
    assert_eq!(stage.run(&["unapprove", id, "-n", "park"]).code, 0);

    assert_eq!(stage.run(&["freeze", "deploy/shop", "-n", "park", "--reason", "incident 7"]).code, 0);
    let frozen = stage.run(&["approve", id, "-n", "park"]);
    assert!(frozen.code == 0 && frozen.err.contains("is frozen by alice"), "{frozen:?}");
    denied("incident 7").await;
    assert_eq!(replicas(&stage, &set).await, 5);
    assert_eq!(stage.run(&["unfreeze", "deploy/shop", "-n", "park"]).code, 0);
    eventually(PATIENCE, "the correction", async || (replicas(&stage, &set).await == 3).then_some(()))
        .await
        .unwrap();
}
