use kausality_api::annotation::{MODE, Suffix};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    authority::Authorization,
    decision::Verdict,
    facts::{Settings, questions},
};

const SOMEBODY: &str = "system:serviceaccount:shop:operator";

/// An annotation that is written onto a Box: what the answer is, and what the annotations become.
struct Write {
    operation: &'static str,
    part: &'static str,
    user: &'static str,
    stored: Value,
    sent: Value,
    owned: bool,
    /// Whether it gets its owner by this.
    adopted: bool,
}

impl Default for Write {
    fn default() -> Self {
        Self {
            operation: "UPDATE",
            part: "",
            user: SOMEBODY,
            stored: json!({}),
            sent: json!({}),
            owned: false,
            adopted: false,
        }
    }
}

impl Write {
    fn decide(&self, authorization: Authorization, authority: Authority) -> (Decision, Value) {
        let object = |annotations: &Value, value: i64, owned: bool| {
            let suffix = Suffix::of("example.com", "Box", "shop", "b");
            let annotations: Map<String, Value> = (annotations.as_object().unwrap().iter())
                .map(|(key, value)| (suffix.key(key), value.clone()))
                .collect();
            let owner = json!([{"apiVersion": "example.com/v1", "kind": "Shelf", "name": "s", "uid": "s-1",
                "controller": true}]);
            json!({"apiVersion": "example.com/v1", "kind": "Box", "spec": {"value": value},
                "metadata": {"name": "b", "namespace": "shop", "uid": "b-1", "generation": 1,
                    "annotations": annotations, "ownerReferences": if owned { owner } else { json!([]) }}})
        };
        let (created, deleted) = (self.operation == "CREATE", self.operation == "DELETE");
        let new = object(&self.sent, 2, self.owned || self.adopted);
        let old = object(&self.stored, 1, self.owned);
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": self.operation, "namespace": "shop", "name": "b", "subResource": self.part,
            "kind": {"group": "example.com", "version": "v1", "kind": "Box"},
            "resource": {"group": "example.com", "version": "v1", "resource": "boxes"},
            "userInfo": {"username": self.user},
            "object": if deleted { Value::Null } else { new }, "oldObject": if created { Value::Null } else { old }}})
        .to_string();
        let review = Review::parse(review.as_bytes()).unwrap();
        let own_users = ["kausality".to_owned()].into();
        let settings = Settings { authorization, own_users, ..Settings::default() };
        let asked = questions(&review.request, &settings).authority;
        let authority = if asked { authority } else { Authority::Unasked };
        let now = "2026-01-24T10:30:00Z".parse().unwrap();
        let decision = decisions(&review, &Facts { authority, ..Facts::new(now, &settings) });
        let mut annotations = self.sent.clone();
        // Who wrote what is looked at elsewhere.
        for (key, value) in decision.patch.annotations.iter().filter(|(key, _)| *key != WRITERS) {
            match value {
                Some(value) => annotations[key] = value.clone().into(),
                None => drop(annotations.as_object_mut().unwrap().remove(key)),
            }
        }
        (decision, annotations)
    }

    fn rbac(&self, authority: Authority) -> (Decision, Value) {
        self.decide(Authorization::Rbac, authority)
    }
}

fn approval(by: &str) -> Value {
    json!({"kausality.io/approvals":
        json!([{"apiVersion": "v1", "by": by, "kind": "*", "mode": "always", "name": "*"}]).to_string()})
}

fn code(decision: &Decision) -> u16 {
    match &decision.verdict {
        Verdict::Deny(denial) => denial.code,
        _ => 200,
    }
}

#[test]
fn one_who_may_not_decides_nothing() {
    let modes = [(json!({}), "log"), (json!({MODE: "enforce"}), " ")];
    for (stored, mode) in modes {
        let sent = json!({MODE: mode});
        assert_eq!(code(&Write { stored, sent, ..Write::default() }.rbac(Authority::Refused).0), 403);
    }
    for key in DECIDING.into_iter().filter(|key| *key != MODE) {
        let set = json!({key: "true"});
        for (stored, sent) in [(json!({}), set.clone()), (set, json!({}))] {
            let (decision, _) = Write { stored, sent, ..Write::default() }.rbac(Authority::Refused);
            assert_eq!((code(&decision), decision.explanation.deciding()), (403, Some(Rule::Authorization)));
        }
    }
    let created = Write { operation: "CREATE", sent: approval("dave"), ..Write::default() };
    assert_eq!(code(&created.rbac(Authority::Refused).0), 403);
    assert_eq!(code(&created.rbac(Authority::Unknown("no answer".to_owned())).0), 500);
}

#[test]
fn what_is_decided_carries_the_name_of_who_decides() {
    let write = Write { user: "dave", sent: approval("alice"), ..Write::default() };
    assert_eq!(write.rbac(Authority::Granted).1, approval("dave"));
    assert_eq!(write.decide(Authorization::None, Authority::Unasked).1, approval("dave"));
}

/// An object that is deleted takes what was decided with it: the children would be cleaned up after.
#[test]
fn what_was_decided_is_not_deleted_with_its_object() {
    let delete = |user: &'static str, stored: &Value| {
        let write = Write { operation: "DELETE", user, stored: stored.clone(), ..Write::default() };
        code(&write.decide(Authorization::None, Authority::Unasked).0)
    };
    let frozen = json!({"kausality.io/freeze": "true"});
    let rejects =
        json!({"kausality.io/rejections": r#"[{"apiVersion":"*","kind":"*","name":"*","reason":"no"}]"#});
    assert_eq!((delete("alice", &frozen), delete(SOMEBODY, &frozen)), (403, 403));
    assert_eq!((delete("alice", &rejects), delete(SOMEBODY, &rejects)), (200, 403));
    for user in ["generic-garbage-collector", "namespace-controller"] {
        let user = format!("system:serviceaccount:kube-system:{user}").leak();
        assert_eq!((delete(user, &frozen), delete(user, &rejects)), (200, 200));
    }
    assert_eq!(delete(SOMEBODY, &json!({"kausality.io/freeze": "false"})), 200);
    assert_eq!((delete(SOMEBODY, &approval("alice")), delete("kausality", &frozen)), (200, 200));
    // Nobody knows here whether it goes with its owner.
    let write = Write { operation: "DELETE", stored: rejects.clone(), owned: true, ..Write::default() };
    assert_eq!(code(&write.decide(Authorization::None, Authority::Unasked).0), 200);
    // For want of an owner it would be deleted, too.
    for (stored, expected) in [(frozen, 403), (json!({}), 200)] {
        let write = Write { user: "alice", sent: stored.clone(), stored, adopted: true, ..Write::default() };
        assert_eq!(code(&write.decide(Authorization::None, Authority::Unasked).0), expected);
    }
    let write = Write { operation: "DELETE", stored: rejects, ..Write::default() };
    assert_eq!(code(&write.rbac(Authority::Refused).0), 403);
    assert_eq!(code(&write.rbac(Authority::Granted).0), 200);
}

/// Nobody else looks at them here, also as the object is created.
#[test]
fn mistakes_are_told() {
    for operation in ["CREATE", "UPDATE"] {
        let sent = json!({"kausality.io/mode": "lgo", "kausality.io/frezee": "true"});
        let write = Write { operation, user: "bob", sent, ..Write::default() };
        let (decision, _) = write.decide(Authorization::None, Authority::Unasked);
        let [mode, name] = &decision.warnings[..] else { panic!("{operation}: {:?}", decision.warnings) };
        assert!(mode.contains("taken for enforce") && name.contains("frezee: unknown"), "{mode} {name}");
    }
}

/// The intent of the object is nobody's business, nor is any other annotation.
#[test]
fn nothing_else_is_looked_at() {
    let sent = json!({MODE: "enforce", "kausality.io/trace": "[]", "team": "a"});
    let (decision, annotations) = Write { sent: sent.clone(), ..Write::default() }.rbac(Authority::Refused);
    assert_eq!((&decision.verdict, annotations), (&Verdict::Allow, sent));
    assert!(decision.effects.is_empty() && decision.trace.is_none() && decision.cause.is_none());
    let own = Write { user: "kausality", sent: json!({SETTLED: "x"}), ..Write::default() };
    assert!(own.rbac(Authority::Refused).0.patch.is_empty());
}

/// What the controller of the object writes stays, since it means nothing; what may be a copy goes, and so does what is
/// written by way of the status.
#[test]
fn what_controllers_write_harms_nobody() {
    let known = json!({CONTROLLERS: UserHash::of(SOMEBODY, "").to_string()});
    let mut approved = approval("dave");
    approved[CONTROLLERS] = known[CONTROLLERS].clone();
    let recorded = Write { stored: known, sent: approved.clone(), ..Write::default() };
    let (decision, annotations) = recorded.rbac(Authority::Refused);
    assert_eq!((&decision.verdict, annotations), (&Verdict::Allow, approved));

    let owned = Write { owned: true, sent: approval("dave"), ..Write::default() };
    let created = Write { operation: "CREATE", owned: true, sent: approval("dave"), ..Write::default() };
    let status = Write { part: "status", sent: approval("dave"), ..Write::default() };
    for (write, left) in [(owned, json!({})), (created, json!({})), (status, json!({}))] {
        let (decision, annotations) = write.rbac(Authority::Refused);
        assert_eq!((&decision.verdict, annotations), (&Verdict::Warn, left));
        assert!(decision.warnings[0].contains("kausality.io/approvals"), "{:?}", decision.warnings);
    }
    let allowed = Write { owned: true, user: "dave", sent: approval("dave"), ..Write::default() };
    assert_eq!(allowed.rbac(Authority::Granted).1, approval("dave"));
}

/// Who says that another is the controller has no drift any more.
#[test]
fn what_is_decided_by_is_kausalitys_alone() {
    for key in GUARDED.into_iter().filter(|key| *key != WRITERS) {
        for (stored, sent) in [(json!({}), json!({key: "x"})), (json!({key: "y"}), json!({}))] {
            let write = Write { stored: stored.clone(), sent, ..Write::default() };
            assert_eq!(write.decide(Authorization::None, Authority::Unasked).1, stored, "{key}");
        }
    }
}
