//! What `show`, `why` and `approve` say of drifts that rules of policies were about: what the engine saw, and what holds now.

use kausality::embedded::embed;
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{MASTERS, eventually};
use serde_json::{Value, json};

use crate::cli::{rights::allow, stage::*};

const BEDS: &str = "/apis/garden.io/v1/namespaces/park/beds";
const DRIFTS: &str = "/apis/kausality.io/v1alpha1/namespaces/park/drifts";
const POLICIES: &str = "/apis/kausality.io/v1alpha1/clusterapprovalpolicies";

/// A garden with a bed, which has settled, and its gardener.
struct Park {
    stage: Stage,
    gardener: kube::Client,
    _sandbox: Sandbox,
}

impl Park {
    /// One where these rules about beds hold.
    async fn with(rules: &[Value]) -> Self {
        let sandbox = Sandbox::builder().rbac(true).seed(7).build();
        let stage = Stage::on(&sandbox).await;
        embed(&sandbox, Mode::Enforce, QuietTime::NONE).await.unwrap();
        let gardener = sandbox.client(&User::new(GARDENER, &[MASTERS]));
        let park = Self { stage, gardener, _sandbox: sandbox };
        let south = park.stage.garden("south", &json!({})).await;
        let owner = json!({"apiVersion": "garden.io/v1", "kind": "Garden", "name": "south",
            "uid": south["metadata"]["uid"], "controller": true});
        let bed = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "spec": {"flowers": "roses"},
            "metadata": {"name": "south-1", "ownerReferences": [owner]}});
        park.act("POST", BEDS, &bed).await.unwrap();
        let ready = json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True",
            "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-25T11:00:00Z"}]}});
        park.act("PATCH", &format!("{GARDENS}/south/status"), &ready).await.unwrap();
        eventually(PATIENCE, "a garden that has settled", async || {
            let garden = park.stage.get(&format!("{GARDENS}/south")).await;
            settled(&garden)
        })
        .await
        .unwrap();
        park.rule(rules).await;
        park
    }

    /// Makes a policy of these rules, and waits until it is known.
    async fn rule(&self, rules: &[Value]) {
        let rules: Vec<Value> = (rules.iter())
            .map(|more| {
                let mut rule = json!({"apiVersion": "garden.io/v1", "kind": "Bed",
                    "subjects": [{"kind": "User", "name": "*"}]});
                json_patch::merge(&mut rule, more);
                rule
            })
            .collect();
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
            "metadata": {"name": "nights"}, "spec": {"rules": rules}});
        self.stage.post(POLICIES, &policy).await;
        eventually(PATIENCE, "a policy that is known", async || {
            let policy = self.stage.get(&format!("{POLICIES}/nights")).await;
            policy["status"]["conditions"].as_array().map(|_| ())
        })
        .await
        .unwrap();
    }

    async fn act(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        self.gardener.request(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    /// The gardener plants something else, and is not let. Gives the denial, and the id of the drift.
    async fn denied(&self) -> (String, String) {
        let change = json!({"spec": {"flowers": "thistles"}});
        let denial = self.act("PATCH", &format!("{BEDS}/south-1"), &change).await.unwrap_err().to_string();
        let drifts = self.stage.get(DRIFTS).await;
        let [drift] = drifts["items"].as_array().unwrap().as_slice() else { panic!("{drifts}") };
        (denial, drift["metadata"]["name"].as_str().unwrap().to_owned())
    }

    /// What the program says must be as it was, however long ago that is.
    fn golden(&self, name: &str, arguments: &[&str]) -> Said {
        let said = self.stage.run(arguments);
        let mut text = said.transcript();
        for seconds in (0..120).rev() {
            text = text.replace(&format!(" {seconds}s ago"), " <age> ago");
        }
        insta::assert_snapshot!(name, text);
        said
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_denies_is_named_wherever_a_drift_is_explained() {
    let rules = [
        json!({"action": "deny", "reason": "not at night", "match": {"fields": ["spec.flowers"]}}),
        json!({"match": {"cel": "object.spec.flowers == 'tulips'"}}),
    ];
    let park = Park::with(&rules).await;
    let (denial, id) = park.denied().await;
    let rule = "denied by ClusterApprovalPolicy/nights rules[0] (not at night)";
    assert!(denial.contains(rule), "{denial}");
    park.golden("denied-why", &["why", &id, "-n", "park"]);
    park.golden("denied-show", &["show", &id, "-n", "park"]);
    let why = park.stage.run(&["why", &id, "-n", "park", "-o", "json"]).json();
    let decided = |steps: &Value| {
        let step = steps.as_array().unwrap().iter().find(|step| step["decided"] == true).unwrap().clone();
        (step["rule"].clone(), step["finding"].clone())
    };
    assert_eq!(decided(&why["steps"]), (json!("policy"), json!(rule)));
    let shown = park.stage.run(&["show", &id, "-n", "park", "-o", "yaml"]).yaml();
    assert_eq!(decided(&shown["status"]["explanation"]), (json!("policy"), json!(rule)));
    assert_eq!(shown["now"], why["now"]);
    let policy = why["now"].as_array().unwrap().last().unwrap();
    assert_eq!(policy["finding"], "ClusterApprovalPolicy/nights rules[0] (not at night) denies it");

    // It is approved all the same, which changes nothing.
    park.golden("denied-approve", &["approve", &id, "-n", "park"]);
    assert_eq!(park.stage.annotation("south", "approvals").await[0]["by"], "alice");
    assert!(park.denied().await.0.contains(rule));
    let account = park.stage.run(&["approve", &id, "-n", "park", "-o", "json"]).json();
    let note = account["objects"][0]["drifts"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("ClusterApprovalPolicy/nights rules[0]"), "{account}");

    // What rules say now is another matter.
    park.stage.call("DELETE", &format!("{POLICIES}/nights"), &Value::Null).await.unwrap();
    let again = park.stage.run(&["approve", &id, "-n", "park"]);
    assert_eq!((again.code, again.err.as_str()), (0, ""), "the rule is gone");
    let why = park.stage.run(&["why", &id, "-n", "park", "-o", "json"]).json();
    assert_eq!(decided(&why["steps"]), (json!("policy"), json!(rule)));
    assert_eq!(why["now"].as_array().unwrap().last().unwrap()["finding"], "there are no rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_only_tried_are_told_of() {
    let rules = [
        json!({"action": "deny", "dryRun": true, "reason": "soon"}),
        json!({"dryRun": true, "operations": ["UPDATE"]}),
    ];
    let park = Park::with(&rules).await;
    let (denial, id) = park.denied().await;
    assert!(denial.contains("although nobody changed"), "{denial}");
    park.golden("tried-why", &["why", &id, "-n", "park"]);
    park.golden("tried-show", &["show", &id, "-n", "park"]);
    let approved = park.stage.run(&["approve", &id, "-n", "park"]);
    assert_eq!((approved.code, approved.err.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_policies_is_told_so() {
    let park = Park::with(&[json!({"action": "deny", "reason": "not at night"})]).await;
    let (_, id) = park.denied().await;
    allow(&park.stage, "bob", "kausality.io", "drifts", &["list"]).await;
    allow(&park.stage, "bob", "garden.io", "gardens", &["get"]).await;
    let now = || {
        let why = park.stage.run(&["why", &id, "-n", "park", "-o", "json", "--as", "bob"]).json();
        why["now"].as_array().unwrap().last().unwrap().clone()
    };
    let line =
        |what: &str| format!("you may not list {what}: ask for the verb \"list\" on them, of kausality.io");
    let none = now();
    assert_eq!(
        none["finding"],
        format!("cannot be told: {}", line("approvalpolicies and clusterapprovalpolicies"))
    );
    assert_eq!(none["evidence"], Value::Null);
    // Those beside the child are shown to whoever may see them.
    allow(&park.stage, "bob", "kausality.io", "approvalpolicies", &["list"]).await;
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy", "metadata": {"name": "days"},
        "spec": {"rules": [{"apiVersion": "garden.io/v1", "kind": "Bed", "subjects": [{"kind": "User", "name": "*"}]}]}});
    park.stage.post("/apis/kausality.io/v1alpha1/namespaces/park/approvalpolicies", &policy).await;
    let some = now();
    assert_eq!(some["finding"], "ApprovalPolicy/park/days rules[0] lets it pass");
    let unseen = line("approvalpolicies of other namespaces and clusterapprovalpolicies");
    assert_eq!(some["evidence"].as_array().unwrap().last().unwrap(), &json!(unseen));
}
