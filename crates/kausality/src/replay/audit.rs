//! Events of a Kubernetes audit log, read as the admission reviews that they imply.
//!
//! An event of level `RequestResponse` shows the object as it was stored; what it was before is what the
//! recording last showed of it. Lower levels show no object, and nothing can be judged from them.

use kausality_core::{
    review::{BadReview, Object, Operation},
    summary,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    around::Around,
    engine::{Engine, Judged, Outcome, Source},
    world::{Key, Stored},
};

/// The version of the audit API that is read.
pub const API_VERSION: &str = "audit.k8s.io/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default)]
    level: String,
    #[serde(default)]
    stage: String,
    #[serde(default)]
    verb: String,
    #[serde(default, rename = "auditID")]
    audit_id: String,
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    impersonated_user: Option<User>,
    #[serde(default)]
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Option<Value>,
    #[serde(borrow, default)]
    response_object: Option<&'a RawValue>,
    #[serde(default)]
    request_received_timestamp: Option<String>,
}

#[derive(Default, Deserialize, Serialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    api_group: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    subresource: String,
}

/// Why a text is no audit event.
#[derive(Debug, thiserror::Error)]
pub enum BadEvent {
    /// It has not the fields of one.
    #[error("not an audit event: {0}")]
    NotJson(#[from] serde_json::Error),
    /// Its objects are none.
    #[error("not an audit event with Kubernetes objects: {0}")]
    BadObjects(#[from] BadReview),
}

/// What an event tells.
#[derive(Debug)]
pub enum Told {
    /// A request, judged or not.
    Request(Box<Judged>),
    /// Nothing that matters: a read, an early stage, a request that failed.
    Nothing,
}

/// Reads an event and lets the engine judge what it tells.
///
/// # Errors
/// If it is no event.
pub fn event(engine: &mut Engine, text: &str) -> Result<Told, BadEvent> {
    let event: Event<'_> = serde_json::from_str(text)?;
    let failed = event.code().is_some_and(|code| code >= 400);
    let Some(operation) = event.operation() else { return Ok(Told::Nothing) };
    let Some(target) = event.object_ref.as_ref().filter(|_| event.stage == "ResponseComplete" && !failed)
    else {
        return Ok(Told::Nothing);
    };
    Teller { engine, event: &event, target, operation }.tell()
}

impl Event<'_> {
    fn code(&self) -> Option<u64> {
        self.response_status.as_ref()?.get("code")?.as_u64()
    }

    /// The field manager that the client named.
    fn field_manager(&self) -> &str {
        let (_, query) = self.request_uri.split_once('?').unwrap_or_default();
        query.split('&').find_map(|part| part.strip_prefix("fieldManager=")).unwrap_or_default()
    }

    fn operation(&self) -> Option<Operation> {
        let created = self.code() == Some(201);
        match self.verb.as_str() {
            "create" => Some(Operation::Create),
            // A server-side apply may create.
            "update" | "patch" if created => Some(Operation::Create),
            "update" | "patch" => Some(Operation::Update),
            "delete" | "deletecollection" => Some(Operation::Delete),
            _ => None,
        }
    }

    fn user(&self) -> &User {
        self.impersonated_user.as_ref().unwrap_or(&self.user)
    }
}

struct Teller<'a> {
    engine: &'a mut Engine,
    event: &'a Event<'a>,
    target: &'a ObjectRef,
    operation: Operation,
}

impl Teller<'_> {
    fn tell(mut self) -> Result<Told, BadEvent> {
        if !matches!(&*self.target.subresource, "" | "status" | "scale") {
            if self.target.subresource == "eviction" {
                self.forget();
            }
            return Ok(Told::Nothing);
        }
        if self.event.level != "RequestResponse" {
            self.forget();
            if self.target.subresource == "status" {
                return Ok(Told::Nothing);
            }
            let why = format!(
                "level {} shows no objects: record {} at level RequestResponse",
                self.event.level, self.target.resource
            );
            return Ok(self.unjudged(why));
        }
        if self.event.verb == "deletecollection" {
            self.forget();
            return Ok(self.unjudged("deletecollection does not show which objects it deleted".to_owned()));
        }
        let Some(response) = self.event.response_object else {
            self.forget();
            return Ok(self.unjudged("the event holds no responseObject".to_owned()));
        };
        match (self.operation, &*self.target.subresource) {
            // What has no uid is not stored: a question put to the API server, as a TokenReview.
            (Operation::Create, "") if Object::parse(response.get())?.metadata.uid.is_empty() => {
                Ok(Told::Nothing)
            }
            (Operation::Create, "") => self.review(None, Some(response)),
            (Operation::Delete, _) => self.delete(response),
            (_, "scale") => self.scale(response),
            _ => self.update(response),
        }
    }

    fn update(&mut self, response: &RawValue) -> Result<Told, BadEvent> {
        let object = Object::parse(response.get())?;
        match self.engine.stored_text(&Key::of(&object)) {
            // The log has the order of the answers. One that comes late has changed nothing: it shows an older object.
            Some(before) if is_older(&object, &Object::parse(&before)?) => Ok(self.unjudged(LATE.to_owned())),
            Some(before) => self.review(Some(&before), Some(response)),
            None => {
                self.engine.sight(response.get())?;
                Ok(self.unjudged(UNKNOWN_BEFORE.to_owned()))
            }
        }
    }

    fn delete(&mut self, response: &RawValue) -> Result<Told, BadEvent> {
        let object = Object::parse(response.get())?;
        let shows_object = object.kind != "Status";
        let remains = shows_object && is_dying(&object, response);
        let key = if shows_object { Some(Key::of(&object)) } else { self.key() };
        // Of two deletions at a time, the one that is answered last shows the object as the other left it.
        let is_second = shows_object && self.engine.world().is_departed(&object.metadata.uid);
        let shown = || is_second.then(|| response.get().to_owned());
        let known = key.and_then(|key| self.engine.stored_text(&key).or_else(shown).map(|text| (key, text)));
        let Some((key, before)) = known else {
            // Shown as it was, if it went at once.
            if remains {
                self.engine.sight(response.get())?;
            }
            return Ok(self.unjudged(UNKNOWN_BEFORE.to_owned()));
        };
        let told = self.review(Some(&before), None)?;
        if remains {
            self.engine.sight(response.get())?;
        } else {
            self.engine.remove(&key);
        }
        Ok(told)
    }

    fn scale(&mut self, response: &RawValue) -> Result<Told, BadEvent> {
        let replicas = |text: &str| -> Option<i64> {
            serde_json::from_str::<Value>(text).ok()?.pointer("/spec/replicas")?.as_i64()
        };
        let before = self.key().and_then(|key| self.engine.stored_text(&key));
        let Some(before) = before.as_deref().and_then(replicas) else {
            return Ok(self.unjudged(UNKNOWN_BEFORE.to_owned()));
        };
        let old = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": self.target.name, "namespace": self.target.namespace},
            "spec": {"replicas": before},
        });
        self.review(Some(&old.to_string()), Some(response))
    }

    /// Judges the review that the event implies.
    fn review(&mut self, old: Option<&str>, new: Option<&RawValue>) -> Result<Told, BadEvent> {
        let old: Option<Box<RawValue>> = old.map(serde_json::from_str).transpose()?;
        let shown = Object::parse(new.or(old.as_deref()).map_or("{}", RawValue::get))?;
        let version = shown.api_version.rsplit('/').next().unwrap_or_default();
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": self.event.audit_id,
                "kind": {
                    "group": summary::group(&shown.api_version), "version": version, "kind": &*shown.kind
                },
                "resource": {
                    "group": self.target.api_group, "version": self.target.api_version,
                    "resource": self.target.resource
                },
                "subResource": self.target.subresource,
                "name": self.target.name,
                "namespace": self.target.namespace,
                "operation": self.operation.as_str(),
                "userInfo": self.event.user(),
                "object": new, "oldObject": old,
                "options": {"fieldManager": self.event.field_manager()},
                "dryRun": self.event.request_uri.contains("dryRun=All"),
            },
        });
        let at = self.event.request_received_timestamp.as_deref().and_then(|at| at.parse().ok());
        let source = Source::Audit(at);
        let judged = self.engine.review(review.to_string().as_bytes(), source)?;
        Ok(Told::Request(Box::new(judged)))
    }

    fn key(&self) -> Option<Key> {
        Some(Key {
            group: self.target.api_group.clone(),
            kind: self.engine.kind_of(&self.target.api_group, &self.target.resource)?,
            namespace: self.target.namespace.clone(),
            name: self.target.name.clone(),
        })
    }

    /// Whatever the object was, it may be something else now.
    fn forget(&mut self) {
        if let Some(key) = self.key() {
            self.engine.forget(&key);
        }
    }

    fn unjudged(&self, why: String) -> Told {
        let target = self.target;
        let kind = self.engine.kind_of(&target.api_group, &target.resource);
        let api_version = match target.api_group.as_str() {
            "" => target.api_version.clone(),
            group => format!("{group}/{}", target.api_version),
        };
        Told::Request(Box::new(Judged {
            around: Around::default(),
            uid: self.event.audit_id.clone(),
            operation: self.operation,
            api_version,
            kind: kind.unwrap_or_else(|| target.resource.clone()),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            subresource: target.subresource.clone(),
            generate_name: String::new(),
            user: self.event.user().username.clone(),
            at: None,
            parent: None,
            fields: Vec::new(),
            outcome: Outcome::Unjudged(why),
        }))
    }
}

/// Whether a DELETE that answers with the object leaves it in place for now: for finalizers, or for a grace period.
/// Some kinds answer so although it is gone.
fn is_dying(object: &Object<'_>, text: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Shown {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        deletion_grace_period_seconds: Option<i64>,
    }
    let grace = serde_json::from_str::<Shown>(text.get())
        .map_or(0, |shown| shown.metadata.deletion_grace_period_seconds.unwrap_or_default());
    object.metadata.is_deleting() && (!object.metadata.finalizers.is_empty() || grace > 0)
}

/// Whether an object is an earlier version of another. Events stand in the order of answers, so that what was written, or
/// found to be as asked for, may follow a later write.
fn is_older(object: &Object<'_>, than: &Object<'_>) -> bool {
    let version = |object: &Object<'_>| object.metadata.resource_version.parse::<u64>().ok();
    object.metadata.uid == than.metadata.uid
        && version(object).zip(version(than)).is_some_and(|(object, than)| object < than)
}

const LATE: &str = "a later write of the object stands before it in the recording";

const UNKNOWN_BEFORE: &str = "what the object was before is not in the recording";

impl Engine {
    fn stored_text(&self, key: &Key) -> Option<String> {
        self.world().get(key).map(Stored::text).map(ToOwned::to_owned)
    }

    fn kind_of(&self, group: &str, resource: &str) -> Option<String> {
        self.world().kind_of(group, resource).map(ToOwned::to_owned)
    }

    fn sight(&mut self, text: &str) -> Result<(), BadEvent> {
        let mut object = Object::parse(text)?;
        self.world_mut().sight(text, &mut object);
        Ok(())
    }

    fn remove(&mut self, key: &Key) {
        self.world_mut().remove(key);
    }

    fn forget(&mut self, key: &Key) {
        match key.name.as_str() {
            "" => self.world_mut().forget_all(&key.group, &key.kind, &key.namespace),
            _ => self.world_mut().forget(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use kausality_core::Settings;

    use super::*;

    #[test]
    fn a_write_without_effect_that_was_answered_late_is_no_revert() {
        let mut engine = Engine::new(Settings::default());
        let mut is_judged = |verb: &str, code: u16, version: &str, size: u8| {
            let text = json!({
                "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb,
                "user": { "username": "alice" }, "responseStatus": { "code": code },
                "objectRef": { "resource": "pools", "apiGroup": "example.com", "apiVersion": "v1", "name": "a" },
                "responseObject": {
                    "apiVersion": "example.com/v1", "kind": "Pool", "spec": { "size": size },
                    "metadata": { "name": "a", "uid": "1", "resourceVersion": version },
                },
            });
            let Told::Request(judged) = event(&mut engine, &text.to_string()).unwrap() else { return false };
            matches!(judged.outcome, Outcome::Decided(_))
        };
        assert!(is_judged("create", 201, "9", 1));
        assert!(is_judged("patch", 200, "10", 2));
        assert!(!is_judged("patch", 200, "9", 1), "it shows the object as it was created");
        assert!(is_judged("patch", 200, "11", 3));
    }
}
