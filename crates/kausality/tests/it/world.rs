//! The world that a replay rebuilds: what recordings show only indirectly.

use kausality::replay::engine::{Engine, Judged, Source};
use kausality_api::annotation::Suffix;
use kausality_core::{Settings, cause::Cause};
use serde_json::{Value, json};

const CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// A recording in the making.
struct Story {
    engine: Engine,
}

struct Request<'a> {
    operation: &'a str,
    subresource: &'a str,
    user: &'a str,
    old: Value,
    new: Value,
}

impl Story {
    fn new() -> Self {
        Self { engine: Engine::new(Settings::default()) }
    }

    fn send(&mut self, request: Request<'_>) -> Judged {
        let Request { operation, subresource, user, old, new } = request;
        let shown = if new.is_null() { &old } else { &new };
        let kind = shown["kind"].as_str().unwrap();
        let (group, resource) = match kind {
            "Deployment" => ("apps", "deployments"),
            "ReplicaSet" => ("apps", "replicasets"),
            "Scale" => ("apps", "deployments"),
            "Pod" => ("", "pods"),
            "Namespace" => ("", "namespaces"),
            other => panic!("{other}"),
        };
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": operation, "subResource": subresource, "userInfo": {"username": user},
            "kind": {"group": if kind == "Scale" { "autoscaling" } else { group }, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "name": shown["metadata"]["name"], "namespace": "default", "object": new, "oldObject": old,
        }});
        self.engine.review(review.to_string().as_bytes(), Source::Webhook).unwrap()
    }

    fn create(&mut self, user: &str, new: Value) -> Judged {
        self.send(Request { operation: "CREATE", subresource: "", user, old: Value::Null, new })
    }

    fn update(&mut self, user: &str, old: Value, new: Value) -> Judged {
        self.send(Request { operation: "UPDATE", subresource: "", user, old, new })
    }

    fn status(&mut self, user: &str, old: Value, new: Value) -> Judged {
        self.send(Request { operation: "UPDATE", subresource: "status", user, old, new })
    }

    fn scale(&mut self, user: &str, from: i64, to: i64) -> Judged {
        let scale = |replicas: i64| {
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "default"},
                "spec": {"replicas": replicas}})
        };
        self.send(Request {
            operation: "UPDATE",
            subresource: "scale",
            user,
            old: scale(from),
            new: scale(to),
        })
    }

    fn delete(&mut self, user: &str, old: Value) -> Judged {
        self.send(Request { operation: "DELETE", subresource: "", user, old, new: Value::Null })
    }

    /// A Deployment that has been created by alice and has settled, with one ReplicaSet.
    fn settled() -> Self {
        let mut story = Self::new();
        let mut fresh = deployment(1, 2);
        fresh["metadata"] = json!({"name": "web", "namespace": "default"});
        story.create("alice", fresh);
        let mut child = replica_set(2);
        child["metadata"].as_object_mut().unwrap().remove("uid");
        assert_eq!(story.create(CONTROLLER, child).cause(), Some(Cause::Initialization));
        story.status(CONTROLLER, deployment(1, 2), done(deployment(1, 2), 2));
        story
    }

    /// What the controller's change of the ReplicaSet is taken for.
    fn correction(&mut self, to: i64) -> Judged {
        self.update(CONTROLLER, replica_set(2), replica_set(to))
    }
}

fn deployment(generation: i64, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": generation, "resourceVersion": "7"},
        "spec": {"replicas": replicas}})
}

fn done(mut deployment: Value, replicas: i64) -> Value {
    deployment["status"] = json!({
        "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
        "availableReplicas": replicas, "readyReplicas": replicas,
        "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]});
    deployment
}

fn replica_set(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "default", "uid": "r", "generation": 1, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]},
        "spec": {"replicas": replicas}})
}

/// The Deployment after it has settled, at a version of its own, wanting so many replicas.
fn at(resource_version: &str, wanted: i64) -> Value {
    let mut deployment = done(deployment(1, wanted), 2);
    deployment["metadata"]["resourceVersion"] = json!(resource_version);
    deployment
}

fn users(judged: &Judged) -> Vec<String> {
    let trace = judged.decision().unwrap().trace.as_ref().unwrap();
    trace.hops().iter().map(|hop| hop.user.clone()).collect()
}

#[test]
fn an_unasked_correction_is_drift() {
    assert_eq!(Story::settled().correction(5).cause(), Some(Cause::Drift));
}

#[test]
fn scale_changes_what_is_wanted_and_is_the_origin() {
    let mut story = Story::settled();
    let scaled = story.scale("autoscaler", 2, 5);
    assert_eq!(scaled.cause(), Some(Cause::Origin));
    // It is about the object behind it.
    assert_eq!((scaled.api_version.as_str(), scaled.kind.as_str()), ("apps/v1", "Deployment"));
    let correction = story.correction(5);
    assert_eq!(correction.cause(), Some(Cause::Expected));
    assert_eq!(users(&correction), ["autoscaler", CONTROLLER]);
    let origin = &correction.decision().unwrap().trace.as_ref().unwrap().hops()[0];
    assert_eq!((origin.kind.as_str(), origin.generation), ("Deployment", Some(2)));
}

#[test]
fn a_write_that_conflicts_changes_nothing() {
    let mut story = Story::settled();
    let mut stale = deployment(1, 9);
    stale["metadata"]["resourceVersion"] = json!("6");
    story.update("alice", at("8", 2), stale);
    assert_eq!(story.correction(9).cause(), Some(Cause::Drift));
    story.update("alice", at("8", 2), at("8", 9));
    assert_eq!(story.correction(9).cause(), Some(Cause::Expected));
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut story = Story::settled();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "userInfo": {"username": "alice"}, "dryRun": true, "namespace": "default",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "name": "web",
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "object": at("8", 9), "oldObject": at("8", 2)}});
    story.engine.review(review.to_string().as_bytes(), Source::Webhook).unwrap();
    assert_eq!(story.correction(9).cause(), Some(Cause::Drift));
}

#[test]
fn a_write_that_did_not_happen_is_taken_back() {
    let mut story = Story::settled();
    // Based on an old copy: the API server sees the conflict only after admission, and reviews it anew.
    story.update("alice", at("8", 2), at("8", 9));
    let mut newer = at("8", 2);
    newer["metadata"]["resourceVersion"] = json!("9");
    let mut labelled = newer.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    story.update("bob", newer, labelled);
    assert_eq!(story.correction(9).cause(), Some(Cause::Drift));
}

#[test]
fn uids_are_learned_and_other_uids_are_other_objects() {
    let mut story = Story::settled();
    let mut orphan = replica_set(2);
    orphan["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    let mut changed = orphan.clone();
    changed["spec"]["replicas"] = json!(3);
    assert_eq!(story.update(CONTROLLER, orphan, changed).cause(), Some(Cause::Cleanup));
}

#[test]
fn children_of_what_was_deleted_are_cleaned_up() {
    let mut story = Story::settled();
    story.delete("alice", at("8", 2));
    assert_eq!(story.delete("gc", replica_set(2)).cause(), Some(Cause::Cleanup));
}

#[test]
fn finalizers_keep_an_object_alive() {
    let mut story = Story::settled();
    let mut kept = at("8", 2);
    kept["metadata"]["finalizers"] = json!(["example.com/wait"]);
    story.delete("alice", kept.clone());
    let cleanup = story.correction(0);
    assert_eq!(cleanup.decision().unwrap().phase.map(|phase| phase.as_str()), Some("Deleting"));
    kept["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut released = kept.clone();
    released["metadata"]["finalizers"] = json!([]);
    story.update("alice", kept, released);
    let gone = story.correction(0);
    assert_eq!((gone.cause(), gone.decision().unwrap().phase), (Some(Cause::Cleanup), None));
}

#[test]
fn generated_names_find_their_annotations_again() {
    let mut story = Story::settled();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-1-", "namespace": "default"},
        "spec": {"containers": []}});
    story.create("alice", pod.clone());
    let mut named = pod;
    named["metadata"]["name"] = json!("web-1-abcde");
    named["metadata"]["uid"] = json!("p");
    let mut labelled = named.clone();
    labelled["metadata"]["annotations"] = json!({Suffix::of_object(&named).key("kausality.io/trace"): "[]"});
    let judged = story.update("mallory", named, labelled);
    // The forged trace gives way to the one from the creation: there was one to restore.
    let patch = &judged.decision().unwrap().patch.annotations;
    assert!(!patch.contains_key("kausality.io/trace"), "{patch:?}");
}

#[test]
fn an_approval_is_used_once() {
    let mut story = Story::settled();
    let mut approved = at("8", 2);
    approved["metadata"]["annotations"] = json!({"kausality.io/approvals":
        r#"[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","generation":2}]"#});
    // A change of a Deployment's annotations bumps its generation.
    story.update("alice", at("8", 2), approved.clone());
    approved["metadata"]["generation"] = json!(2);
    approved["metadata"]["resourceVersion"] = json!("9");
    story.status(CONTROLLER, approved.clone(), done(approved.clone(), 2));
    let resolution = |judged: Judged| judged.decision().unwrap().resolution.as_str();
    assert_eq!(resolution(story.correction(5)), "approved");
    assert_eq!(resolution(story.correction(5)), "logged");
    // The recorded cluster goes on showing it.
    approved["metadata"]["resourceVersion"] = json!("10");
    story.status(CONTROLLER, approved.clone(), done(approved, 2));
    assert_eq!(resolution(story.correction(5)), "logged");
}

/// The recorded cluster let a controller write approvals; Kausality would have taken them back.
#[test]
fn a_controller_does_not_approve_itself() {
    let mut story = Story::settled();
    let mut forged = at("8", 2);
    forged["metadata"]["annotations"] = json!({"kausality.io/approvals":
        r#"[{"apiVersion":"*","kind":"*","name":"*","mode":"always"}]"#});
    story.update(CONTROLLER, at("8", 2), forged.clone());
    assert_eq!(story.correction(5).decision().unwrap().resolution.as_str(), "logged");
    // The recording goes on showing them.
    forged["metadata"]["resourceVersion"] = json!("9");
    story.status(CONTROLLER, forged.clone(), done(forged.clone(), 2));
    assert_eq!(story.correction(5).decision().unwrap().resolution.as_str(), "logged");
    // But what a person writes instead counts.
    forged["metadata"]["resourceVersion"] = json!("10");
    let mut approved = forged.clone();
    approved["metadata"]["annotations"] = json!({"kausality.io/approvals":
        r#"[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","mode":"always"}]"#});
    story.update("alice", forged, approved);
    assert_eq!(story.correction(5).decision().unwrap().resolution.as_str(), "approved");
}

#[test]
fn an_approval_is_carried_over_a_change_of_annotations() {
    let mut story = Story::settled();
    let mut approved = at("8", 2);
    approved["metadata"]["annotations"] = json!({"kausality.io/approvals":
        r#"[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","generation":1,"mode":"generation"}]"#});
    // Written for generation 1, which this write itself ends.
    story.update("alice", at("8", 2), approved);
    assert_eq!(story.correction(5).decision().unwrap().resolution.as_str(), "approved");
}

#[test]
fn namespaces_set_the_mode() {
    let mut story = Story::settled();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default",
        "annotations": {"kausality.io/mode": "enforce"}}});
    story.create("alice", namespace);
    assert_eq!(story.correction(5).verdict(), "deny");
}

#[test]
fn what_was_never_shown_cannot_be_judged() {
    let mut story = Story::new();
    let judged = story.correction(5);
    assert_eq!(judged.verdict(), "unjudged");
    assert!(judged.message().unwrap().contains("Deployment web is not in the recording"));
}
