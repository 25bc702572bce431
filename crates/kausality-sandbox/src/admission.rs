//! Admission: who is asked before something is written, and what comes of the answers.
//!
//! In-process admissions and MutatingWebhookConfigurations are asked first, in this order, and may change the object;
//! those who want it are asked again if somebody changed it after them. ValidatingWebhookConfigurations see what will be
//! stored. All of them get the AdmissionReview that a real API server sends.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use hyper::body::Bytes;
use json_patch::PatchOperation;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::answer::Notes;
use crate::call::{Call, known};
use crate::kinds::Definition;
use crate::metadata;
use crate::sandbox::Sandbox;
use crate::status::Failure;
use crate::types::decode::Fill;

pub(crate) mod conditions;
mod review;
pub(crate) mod rules;
pub(crate) mod webhook;

use conditions::Review;
pub(crate) use review::{Attributes, Operation};
use rules::Configured;

/// Somebody in this process who is asked about every write.
pub trait Admission: Send + Sync + 'static {
    /// Its name, as a webhook has one: audit annotations and denials begin with it.
    fn name(&self) -> &str;

    /// Whether it wants to be asked. It is asked about everything unless it says otherwise.
    fn matches(&self, write: &Write<'_>) -> bool {
        let _ = write;
        true
    }

    /// Answers an AdmissionReview (`admission.k8s.io/v1`, JSON). An error counts as a webhook that fails with
    /// `failurePolicy: Fail`.
    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<Verdict, String>>;
}

/// A write, as far as it takes to know whether one wants to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'static str,
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The resource: `deployments`.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for none.
    pub namespace: &'a str,
    /// The user.
    pub user: &'a str,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Whether the write may happen.
    pub allowed: bool,
    /// If it may not: the HTTP code. Less than 400 means 400.
    pub code: u16,
    /// If it may not: the reason, for programs.
    pub reason: String,
    /// If it may not: why.
    pub message: String,
    /// A JSON patch of the object.
    pub patch: Option<Value>,
    /// What the client is told.
    pub warnings: Vec<String>,
    /// What the audit log is told, by keys without a slash.
    pub audit: BTreeMap<String, String>,
}

impl Verdict {
    /// It may happen.
    pub fn allow() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// It may not.
    pub fn deny(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }
}

/// Somebody to be asked.
enum Hook {
    InProcess(Arc<dyn Admission>),
    Webhook(Arc<Configured>),
}

impl Hook {
    fn name(&self) -> &str {
        match self {
            Self::InProcess(admission) => admission.name(),
            Self::Webhook(webhook) => &webhook.name,
        }
    }

    fn is_reinvoked(&self) -> bool {
        match self {
            Self::InProcess(_) => true,
            Self::Webhook(webhook) => webhook.reinvoked,
        }
    }
}

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

impl Sandbox {
    /// Asks those who may change the object, and returns it with their changes.
    pub(crate) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<Value>,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<Option<Value>, Failure> {
        let mut hooks: Vec<_> = self.admissions().into_iter().map(Hook::InProcess).collect();
        hooks.extend(self.webhooks(MUTATING).into_iter().map(Hook::Webhook));
        if hooks.is_empty() || is_exempt(attributes.call) {
            return Ok(object);
        }
        let mut object = object;
        let mut changes = 0_u32;
        let mut asked: Vec<Option<u32>> = vec![None; hooks.len()];
        for round in 0..2 {
            for (hook, asked) in hooks.iter().zip(&mut asked) {
                let again = round > 0;
                if again && (*asked == Some(changes) || asked.is_some() && !hook.is_reinvoked()) {
                    continue;
                }
                let Some(verdict) = self.ask(hook, attributes, object.as_ref(), old).await? else { continue };
                settle(hook.name(), &verdict, notes)?;
                if let (Some(patch), Some(object)) = (&verdict.patch, &mut object)
                    && patch_object(attributes, hook.name(), object, patch)?
                {
                    changes += 1;
                }
                *asked = Some(changes);
            }
            if changes == 0 {
                break;
            }
        }
        Ok(object)
    }

    /// Asks those who may only refuse.
    pub(crate) async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        let hooks = self.webhooks(VALIDATING);
        if hooks.is_empty() || is_exempt(attributes.call) {
            return Ok(());
        }
        for hook in hooks {
            let hook = Hook::Webhook(hook);
            if let Some(verdict) = self.ask(&hook, attributes, object, old).await? {
                settle(hook.name(), &verdict, notes)?;
            }
        }
        Ok(())
    }

    /// The webhooks of all configurations, in the order of their names.
    fn webhooks(&self, collection: &'static str) -> Vec<Arc<Configured>> {
        let configurations = self.state().store.list(collection, None);
        if configurations.is_empty() {
            return Vec::new();
        }
        self.inner.webhooks.of(collection, &configurations)
    }

    /// The answer of one who is asked; `None` if it does not want to be, or failed and may be ignored.
    async fn ask(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Option<Verdict>, Failure> {
        let failed = |name: &str, error: String| {
            Failure::internal(format!("failed calling webhook {name:?}: failed to call webhook: {error}"))
        };
        match hook {
            Hook::InProcess(admission) => {
                if !admission.matches(&attributes.write()) {
                    return Ok(None);
                }
                let uid = self.state().ids.uid();
                attributes.call.reviewed.note(&uid);
                let review = attributes.review(&uid, &attributes.call.definition, object, old)?;
                let verdict = admission.review(review).await;
                verdict.map(Some).map_err(|error| failed(admission.name(), error))
            }
            Hook::Webhook(webhook) => {
                let labels = self.namespace_labels(attributes, object.or(old));
                let Some(definition) = webhook.asks(attributes, object, old, labels.as_ref()) else {
                    return Ok(None);
                };
                let facts = Review::new(attributes, &definition, object, old);
                match webhook.conditions.hold(&facts) {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(error) if webhook.ignored => {
                        tracing::warn!(
                            webhook = webhook.name,
                            error,
                            "match conditions failed and are ignored"
                        );
                        return Ok(None);
                    }
                    Err(error) => {
                        return Err(Failure::forbidden(&definition.subject(&attributes.name), &error));
                    }
                }
                let uid = self.state().ids.uid();
                let review = attributes.review(&uid, &definition, object, old)?;
                match webhook::call(self, webhook, &uid, review).await {
                    Ok(verdict) => Ok(Some(verdict)),
                    Err(error) if webhook.ignored => {
                        tracing::warn!(webhook = webhook.name, error, "a webhook failed and is ignored");
                        Ok(None)
                    }
                    Err(error) => Err(failed(&webhook.name, error)),
                }
            }
        }
    }

    /// The labels of the namespace that a write is in.
    fn namespace_labels(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Option<Value> {
        let call = attributes.call;
        if call.definition.is("", "namespaces") {
            return Some(
                object.and_then(|object| object.pointer("/metadata/labels").cloned()).unwrap_or_default(),
            );
        }
        if call.namespace.is_empty() {
            return None;
        }
        let place = (String::new(), call.namespace.clone());
        let state = self.state();
        let namespace = state.store.get("/namespaces", &place)?;
        Some(namespace.pointer("/metadata/labels").cloned().unwrap_or_default())
    }
}

/// Nobody is asked about who is to be asked: a broken webhook could not be repaired otherwise.
fn is_exempt(call: &Call) -> bool {
    call.definition.group == "admissionregistration.k8s.io"
}

/// Notes what was said, and refuses what is to be refused.
fn settle(name: &str, verdict: &Verdict, notes: &mut Notes) -> Result<(), Failure> {
    for warning in &verdict.warnings {
        if !notes.warnings.contains(warning) {
            notes.warnings.push(warning.clone());
        }
    }
    for (key, value) in verdict.audit.iter().filter(|(key, _)| !key.contains('/')) {
        notes.annotations.insert(format!("{name}/{key}"), value.clone());
    }
    if verdict.allowed {
        return Ok(());
    }
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match (verdict.message.as_str(), verdict.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    Err(Failure::new(if verdict.code < 400 { 400 } else { verdict.code }, &verdict.reason, message))
}

/// Makes the changes of a hook, and reads the object as if a client had sent it. Says whether it is another one then.
fn patch_object(
    attributes: &Attributes<'_>,
    name: &str,
    object: &mut Value,
    patch: &Value,
) -> Result<bool, Failure> {
    let fault = |error: &dyn std::fmt::Display| Failure::internal(format!("webhook {name:?}: {error}"));
    let patch = json_patch::Patch::deserialize(patch).map_err(|error| fault(&error))?;
    // An object that has been read already is read again for nothing if all that it gets are annotations.
    let before = if annotates(&patch) {
        let before = metadata::member_of(object, "annotations").cloned();
        json_patch::patch(object, &patch).map_err(|error| fault(&error))?;
        let after = metadata::member_of(object, "annotations");
        let is_read = |annotations: &Map<String, Value>| {
            !annotations.is_empty() && annotations.values().all(Value::is_string)
        };
        if after.and_then(Value::as_object).is_some_and(is_read) {
            return Ok(before.as_ref() != after);
        }
        let mut whole = object.clone();
        metadata::set(metadata::of(&mut whole), "annotations", before);
        whole
    } else {
        let before = object.clone();
        json_patch::patch(object, &patch).map_err(|error| fault(&error))?;
        before
    };
    if !attributes.is_scale() {
        let definition: &Definition = &attributes.call.definition;
        *object = known(definition, object.take(), Fill::Zero)?.0;
    }
    Ok(*object != before)
}

/// Whether a patch changes annotations, and nothing else.
fn annotates(patch: &json_patch::Patch) -> bool {
    let is_annotation = |path: &str| {
        let below = path.strip_prefix("/metadata/annotations");
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    patch.0.iter().all(|operation| match operation {
        PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Replace(_) => {
            is_annotation(operation.path().as_str())
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
