//! Questions that are answered and not stored, and the subresources of Pods that act.

use serde_json::{Value, json};

use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::metadata;
use crate::sandbox::Sandbox;
use crate::status::Failure;

impl Sandbox {
    /// Answers a question about users and what they may do. There is no RBAC: everybody may do all.
    pub(crate) fn review(&self, call: &Call) -> Result<Value, Failure> {
        let mut review = call.object(&mut Notes::default())?;
        metadata::of(&mut review);
        let status = match call.definition.kind.as_str() {
            "SelfSubjectReview" => {
                metadata::of(&mut review).insert("creationTimestamp".to_owned(), self.now().rfc3339().into());
                json!({"userInfo": call.user})
            }
            "SelfSubjectRulesReview" => json!({
                "incomplete": false,
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }),
            _ => json!({"allowed": true}),
        };
        review["status"] = status;
        Ok(review)
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
