//! Questions that are answered and not stored, and the subresources of Pods that act.

use serde_json::{Value, json};

use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::identity::User;
use crate::metadata;
use crate::rbac::{Access, Answer};
use crate::sandbox::Sandbox;
use crate::status::Failure;

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
            "SelfSubjectAccessReview" => self.access(&call.user, &Access::of_review(&review["spec"])?),
            kind => {
                let access = Access::of_review(&review["spec"])?;
                let asked = metadata::text(&review, "/spec/resourceAttributes/namespace");
                if kind == "LocalSubjectAccessReview" && asked != call.namespace {
                    return Err(Failure::bad_request(
                        "spec.resourceAttributes.namespace must match namespace",
                    ));
                }
                self.access(&subject(&review["spec"]), &access)
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
        match self.commit(call, &live, new, call.is_dry_run()?) {
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
