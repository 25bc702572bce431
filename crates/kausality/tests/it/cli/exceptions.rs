//! `kausality except`.

use serde_json::{Value, json};

use crate::cli::stage::*;

pub(crate) const POLICIES: &str = "/apis/kausality.io/v1alpha1/namespaces/park/approvalpolicies";

/// Enters a drift with its objects: what grew in a bed, and what a controller wants there.
pub(crate) async fn grown(stage: &Stage, plot: &Plot<'_>, flowers: &str) {
    let mut drift = plot.drift();
    let bed = |flowers: &str| {
        Some(
            json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": plot.child, "namespace": "park"},
            "spec": {"flowers": flowers}}),
        )
    };
    (drift.spec.old_object, drift.spec.new_object) = (bed("roses"), bed(flowers));
    let path = "/apis/kausality.io/v1alpha1/namespaces/park/drifts";
    stage.post(path, &serde_json::to_value(drift).unwrap()).await;
}

/// Three drifts of two beds of one garden, one of a bed of another, and one whose objects the ledger does not hold.
async fn with_drifts() -> Stage {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let north = stage.garden("north", &json!({"about": "tulips"})).await;
    stage.patch(&format!("{GARDENS}/north"), &json!({"spec": {"flowers": "tulips"}})).await;
    grown(&stage, &Plot::new("aaa1000000000000", &south, "south-1"), "thistles").await;
    grown(&stage, &Plot::new("aaa2000000000000", &south, "south-1"), "nettles").await;
    grown(&stage, &Plot::new("aaa3000000000000", &south, "south-2"), "thistles").await;
    grown(&stage, &Plot::new("bbb1000000000000", &north, "north-1"), "thistles").await;
    stage.drift(&Plot::new("ccc1000000000000", &south, "south-1")).await;
    stage
}

async fn policies(stage: &Stage) -> usize {
    stage.get(POLICIES).await["items"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_shown_with_what_else_it_would_have_matched() {
    let stage = with_drifts().await;
    stage.golden("except", &["except", "aaa1", "-n", "park", "--reason", "in bloom", "--dry-run"]);
    assert_eq!(policies(&stage).await, 0);
    stage.golden("except-yes", &["except", "aaa1", "-n", "park", "--reason", "in bloom", "--yes"]);
    stage.golden("except-again", &["except", "aaa1", "-n", "park", "--yes"]);
    stage.golden("except-more", &["except", "aaa3", "-n", "park", "--any-name", "--yes"]);
    let rules = stage.get(&format!("{POLICIES}/exceptions")).await["spec"]["rules"].clone();
    let names: Vec<&Value> = rules.as_array().unwrap().iter().map(|rule| &rule["name"]).collect();
    assert_eq!(names, ["south-1", "*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_does_not_match_its_own_drift_is_refused() {
    let stage = with_drifts().await;
    let asks = |id, cel| ["except", id, "-n", "park", "--yes", "--cel", cel];
    stage.golden("except-missed", &asks("aaa1", "object.spec.flowers == 'tulips'"));
    stage.golden("except-missed-by-parent", &asks("bbb1", "parent.spec.flowers == 'roses'"));
    let one_of_two =
        ["except", "aaa1", "aaa2", "-n", "park", "--yes", "--cel", "object.spec.flowers == 'nettles'"];
    let said = stage.run(&one_of_two);
    assert!(
        said.code == 1 && said.err.contains("drift/aaa1") && !said.err.contains("drift/aaa2"),
        "{said:?}"
    );
    assert_eq!(policies(&stage).await, 0);
    // Where it cannot be told, that is said.
    stage.golden("except-unclear", &asks("ccc1", "object.spec.flowers == 'tulips'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_and_namespaces_are_asked_as_they_are_now() {
    let stage = with_drifts().await;
    stage.patch("/api/v1/namespaces/park", &json!({"metadata": {"labels": {"env": "dev"}}})).await;
    let cel = "parent.spec.flowers == 'roses' && namespaceObject.metadata.labels['env'] == 'dev'";
    let arguments = ["except", "aaa1", "-n", "park", "--any-name", "--dry-run", "--cel", cel];
    stage.golden("except-as-of-now", &arguments);
    stage.call("DELETE", &format!("{GARDENS}/north"), &Value::Null).await.unwrap();
    let said = stage.run(&arguments);
    assert!(said.err.contains("# Of 1 drift, it cannot be told: the parent is gone."), "{said:?}");
}

/// A rule that denies, for the gardener.
fn denial(reason: &str, more: &Value) -> Value {
    let mut rule = json!({"action": "deny", "apiVersion": "garden.io/v1", "kind": "Bed", "namespace": "*", "reason": reason,
        "subjects": [{"kind": "ServiceAccount", "name": "gardener", "namespace": "garden"}]});
    for (key, value) in more.as_object().unwrap() {
        rule[key] = value.clone();
    }
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_deny_are_named_wherever_they_are() {
    let stage = with_drifts().await;
    let policy = |kind: &str, rules: Value| json!({"apiVersion": "kausality.io/v1alpha1", "kind": kind, "metadata": {"name": "no-weeds"}, "spec": {"rules": rules}});
    let cluster = "/apis/kausality.io/v1alpha1/clusterapprovalpolicies";
    let other = denial("not this", &json!({"match": {"cel": "object.spec.flowers == 'ivy'"}}));
    let rules = json!([other, denial("weeds spread", &json!({}))]);
    stage.post(cluster, &policy("ClusterApprovalPolicy", rules)).await;
    // The gardener's own namespace may speak of it everywhere.
    stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "garden"}})).await;
    let home = "/apis/kausality.io/v1alpha1/namespaces/garden/approvalpolicies";
    stage.post(home, &policy("ApprovalPolicy", json!([denial("so say gardeners", &json!({}))]))).await;
    let arguments = ["except", "aaa1", "-n", "park", "--yes"];
    stage.golden("except-denied", &arguments);
    let said = stage.run(&[&arguments[..], &["-o", "name"]].concat());
    assert!(said.err.contains("note: CAUTION: ") && said.err.contains("rules[1] (weeds spread)"), "{said:?}");
    stage.call("DELETE", &format!("{cluster}/no-weeds"), &Value::Null).await.unwrap();
    let said = stage.run(&["except", "aaa3", "-n", "park", "--yes"]);
    assert!(!said.err.contains("ClusterApprovalPolicy/no-weeds"), "{said:?}");
    assert!(said.err.contains("ApprovalPolicy/garden/no-weeds rules[0]"), "{said:?}");
    stage.call("DELETE", &format!("{home}/no-weeds"), &Value::Null).await.unwrap();
    let said = stage.run(&["except", "bbb1", "-n", "park", "--yes"]);
    assert!(said.code == 0 && !said.err.contains("CAUTION"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_of_many_fields_makes_a_rule_that_the_server_takes() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let mut drift = Plot::new("aaa1000000000000", &south, "south-1").drift();
    let soil = |value: &str| {
        (0..33).map(|at| (format!("f{at:02}"), json!(value))).collect::<serde_json::Map<_, _>>()
    };
    let bed = |value: &str| {
        Some(
            json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": "south-1", "namespace": "park"},
            "spec": {"soil": soil(value)}}),
        )
    };
    (drift.spec.old_object, drift.spec.new_object) = (bed("dry"), bed("wet"));
    let one = drift.spec.changes[0].clone();
    drift.spec.changes = soil("wet")
        .keys()
        .map(|name| {
            let mut change = one.clone();
            change.path = format!("spec.soil.{name}");
            change
        })
        .collect();
    stage
        .post("/apis/kausality.io/v1alpha1/namespaces/park/drifts", &serde_json::to_value(drift).unwrap())
        .await;
    stage.golden("except-widened", &["except", "aaa1", "-n", "park", "--yes"]);
    let rule = stage.get(&format!("{POLICIES}/exceptions")).await["spec"]["rules"][0].clone();
    assert_eq!(rule["match"]["fields"], json!(["spec.soil"]));
}
