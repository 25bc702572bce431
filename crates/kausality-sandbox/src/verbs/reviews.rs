//! Questions that are answered and not stored, and the subresources of Pods that act.

use serde_json::{Value, json};

use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::identity::User;
use crate::metadata;
use crate::rbac::{Access, Answer};
use crate::sandbox::Sandbox;
use crate::status::{Cause, Failure};

impl Sandbox {
    /// Answers a question about users and what they may do.
    pub(crate) fn review(&self, call: &Call) -> Result<Value, Failure> {
        let mut review = call.object(&mut Notes::default())?;
        metadata::of(&mut review);
        let status = match call.definition.kind.as_str() {
            "SelfSubjectReview" => {
                metadata::of(&mut review).insert("creationTimestamp".to_owned(), self.now().rfc3339().into());
                json!({"userInfo": call.user})
            }
            "SelfSubjectRulesReview" => {
                let namespace = metadata::text(&review, "/spec/namespace");
                if namespace.is_empty() {
                    return Err(Failure::bad_request("no namespace on request"));
                }
                self.rules(&call.user, namespace)
            }
            kind => {
                let causes = faults(kind, &call.namespace, &review["spec"]);
                if !causes.is_empty() {
                    return Err(Failure::invalid(&call.definition.kind_subject(""), &causes));
                }
                let access = Access::of_review(&review["spec"]);
                let other = (kind != "SelfSubjectAccessReview").then(|| subject(&review["spec"]));
                self.access(other.as_ref().unwrap_or(&call.user), &access)
            }
        };
        review["status"] = status;
        Ok(review)
    }

    fn access(&self, user: &User, access: &Access<'_>) -> Value {
        let Answer { allowed, reason } = self.allows(user, access);
        let mut status = json!({"allowed": allowed});
        if !reason.is_empty() {
            status["reason"] = reason.into();
        }
        status
    }

    /// Evicts a Pod. There are no disruption budgets to mind.
    pub(crate) async fn evict(&self, call: &Call, notes: &mut Notes) -> Done {
        let eviction = call.json()?;
        let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        let mut delete = call.of(&call.namespace, &call.name);
        delete.body = serde_json::to_vec(&options).unwrap_or_default().into();
        delete.content_type = "application/json".to_owned();
        self.delete(&delete, notes).await?;
        Ok((
            201,
            std::sync::Arc::new(
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
            ),
        ))
    }

    /// Binds a Pod to a node.
    pub(crate) async fn bind(&self, call: &Call, notes: &mut Notes) -> Done {
        let binding = call.json()?;
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let live = self.find(call)?;
        if !metadata::text(&live, "/spec/nodeName").is_empty() {
            return Err(Failure::conflict(&call.subject(), "pod is already assigned to a node"));
        }
        let mut new = Value::clone(&live);
        new["spec"]["nodeName"] = node.into();
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": self.now().rfc3339()});
        let conditions =
            metadata::member(&mut new, "status").entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(scheduled);
        }
        let _ = notes;
        match self.commit(call, &live, new, call.is_dry_run()) {
            Some(_) => Ok((
                201,
                std::sync::Arc::new(
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
                ),
            )),
            None => Err(Failure::modified(&call.subject())),
        }
    }
}

/// Whom a review asks about, with no more groups than it says.
fn subject(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten();
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
        ..User::default()
    }
}

/// What is wrong with a question whether somebody may do something.
fn faults(kind: &str, namespace: &str, spec: &Value) -> Vec<Cause> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut causes = Vec::new();
    match (resource.is_object(), path.is_object()) {
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            causes.push(Cause::invalid("spec.nonResourceAttributes", path, why));
        }
        (false, false) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, why));
        }
        _ => {}
    }
    let nobody = subject(spec);
    if kind != "SelfSubjectAccessReview" && nobody.name.is_empty() && nobody.groups.is_empty() {
        let why = "at least one of user or group must be specified";
        causes.push(Cause::invalid("spec.user", &json!(""), why));
    }
    if kind == "LocalSubjectAccessReview" {
        let asked = resource["namespace"].as_str().unwrap_or_default();
        if resource.is_object() && asked != namespace {
            let at = "spec.resourceAttributes.namespace";
            causes.push(Cause::invalid(at, &json!(asked), "must match metadata.namespace"));
        }
        if path.is_object() {
            let why = "disallowed on this kind of request";
            causes.push(Cause::invalid("spec.nonResourceAttributes", path, why));
        }
    }
    causes
}
