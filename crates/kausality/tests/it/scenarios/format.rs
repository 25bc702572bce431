//! What a scenario may say. A key that is not here is an error.

use std::collections::BTreeMap;

use kausality_api::mode::Mode;
use serde::Deserialize;
use serde_json::Value;

use crate::scenarios::plane::PatchType;

/// A story: who does what, and what must come out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The name of the file, and of the namespace.
    pub name: String,
    /// The rule or the weakness that it shows, in one line.
    pub about: String,
    /// The mode of the namespace.
    pub mode: Option<Mode>,
    /// Steps in `scenarios/starts` that come first.
    pub start: Option<String>,
    /// Policies of `policies/` that hold in the namespace.
    #[serde(default)]
    pub policies: Vec<String>,
    /// What happens before Kausality is installed.
    #[serde(default)]
    pub before: Vec<Value>,
    /// What happens then: each a [`Step`] once its placeholders are filled.
    pub steps: Vec<Value>,
}

/// One thing that somebody does, or that must be seen.
///
/// Placeholders: `$name` is what a step `learn` learned, `$namespace` the namespace, `$hash(user)` a user's hash.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Step {
    /// Who acts.
    #[serde(rename = "as")]
    pub user: Option<String>,

    /// A manifest, laid over a base: see `scenarios/bases`.
    pub create: Option<Value>,
    /// A manifest, applied by the server.
    pub apply: Option<Value>,
    /// `Kind/name`, as in all that follow.
    pub patch: Option<String>,
    pub subresource: Option<String>,
    /// Keys without a slash are Kausality's, values that are no texts become JSON, and null removes.
    pub annotate: Option<String>,
    pub scale: Option<String>,
    pub status: Option<String>,
    pub delete: Option<String>,
    /// The body of a patch, annotations, the number of replicas, or a status.
    pub with: Option<Value>,
    #[serde(rename = "type")]
    pub patch_type: Option<PatchType>,
    pub propagation: Option<String>,
    #[serde(default)]
    pub dry_run: bool,
    /// Does it again until it comes out as expected: what was written before must first be known from a watch.
    #[serde(default)]
    pub until: bool,
    pub manager: Option<String>,
    /// So many calls at the same time.
    pub at_once: Option<usize>,
    /// Others who do the same at the same time, each `with` something else. What is expected is expected of all.
    #[serde(default)]
    pub also: BTreeMap<String, Value>,
    pub expect: Option<Expect>,

    /// Waits for one object that fits, and learns its name or another field.
    pub learn: Option<BTreeMap<String, Learn>>,
    /// Waits until an object is as described.
    pub wait: Option<String>,
    /// An object is as described, now.
    pub check: Option<String>,
    pub has: Option<Has>,
    /// Waits until there are so many objects that fit.
    pub count: Option<Count>,
    /// Waits until such a call is in the audit log.
    pub audited: Option<Calls>,
    /// No such call is in the audit log.
    pub never: Option<Calls>,
    /// Only calls that came after the last step in which somebody acted.
    #[serde(default)]
    pub since_last: bool,
    /// Texts that must not be in any answer, event, drift or audit entry of the scenario, nor in Kausality's log.
    pub nowhere: Option<Vec<String>>,
}

/// What comes out of an action: `allowed`, or more.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Expect(pub Outcome);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome {
    /// Of calls at the same time, so many are allowed. The others are denied as said here.
    pub allowed: Option<usize>,
    /// Allowed, if this is absent.
    pub denied: Option<Denied>,
    /// Texts, each of which is in some warning. None at all means: no warning of Kausality's.
    pub warnings: Option<Vec<String>>,
    /// What the audit log has from Kausality about this call: a value, `present`, or null for nothing.
    #[serde(default)]
    pub audit: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Denied {
    pub code: u16,
    /// Texts that are all in the message.
    pub text: Vec<String>,
}

impl TryFrom<Value> for Expect {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        if value == "allowed" {
            return Ok(Self::default());
        }
        serde_json::from_value(value).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Learn {
    /// Of one object: `Kind/name`.
    pub of: Option<String>,
    /// Of the one object of this kind that fits.
    pub kind: Option<String>,
    #[serde(default, rename = "where")]
    pub fields: BTreeMap<String, Value>,
    #[serde(default = "name")]
    pub field: String,
}

fn name() -> String {
    "metadata.name".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Count {
    pub kind: String,
    #[serde(default, rename = "where")]
    pub fields: BTreeMap<String, Value>,
    pub is: usize,
}

/// What an object is like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Has {
    pub exists: Option<bool>,
    /// Values by dotted path; elements of a list by number, `type` or `name`. Null means absent.
    #[serde(default)]
    pub fields: BTreeMap<String, Value>,
    /// `present`, `absent`, or a value: of JSON, if it is no text. Keys without a slash are Kausality's.
    #[serde(default)]
    pub annotations: BTreeMap<String, Value>,
    /// All hops, origin first.
    pub trace: Option<Vec<HopLike>>,
    /// Events of Kausality's on it. None at all means: no event.
    pub events: Option<Vec<EventLike>>,
}

/// A hop: its user, or more. What is not said of `drift` and `approval` is that there is none.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct HopLike(pub HopFields);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HopFields {
    pub user: String,
    pub kind: Option<String>,
    pub name: Option<String>,
    pub generation: Option<Value>,
    pub labels: Option<Value>,
    #[serde(default)]
    pub drift: bool,
    pub approval: Option<Value>,
}

impl TryFrom<Value> for HopLike {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let value = if value.is_string() { serde_json::json!({ "user": value }) } else { value };
        serde_json::from_value(value).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventLike {
    pub reason: String,
    #[serde(default)]
    pub text: Vec<String>,
    /// There is no such event.
    #[serde(default)]
    pub absent: bool,
}

/// Calls in the audit log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calls {
    pub user: Option<String>,
    pub verb: Option<String>,
    pub kind: Option<String>,
    pub name: Option<String>,
    /// The object itself, if empty.
    pub subresource: Option<String>,
    pub code: Option<u16>,
    /// What Kausality said.
    #[serde(default)]
    pub said: BTreeMap<String, Value>,
    /// At least so many of them.
    pub times: Option<usize>,
}

impl Scenario {
    /// What is wrong with it, although it could be read.
    pub(crate) fn fault(&self, file: &str) -> Option<String> {
        if format!("{}.yaml", self.name) != file {
            return Some(format!("its name is {:?}", self.name));
        }
        if self.about.is_empty() || self.about.contains('\n') {
            return Some("says what it is about in no line, or in more than one".to_owned());
        }
        let mut expectations = 0;
        let all = self.before.iter().map(|step| ("before", step));
        let all = all.chain(self.steps.iter().map(|step| ("step", step)));
        for (number, (part, step)) in all.enumerate() {
            let fault = |fault: &str| Some(format!("{part} {}: {fault}", number + 1));
            let step: Step = match serde_json::from_value(step.clone()) {
                Ok(step) => step,
                Err(error) => return fault(&error.to_string()),
            };
            match (step.actions(), step.observations()) {
                (1, 0) if step.user.is_none() => return fault("nobody acts: there is no `as`"),
                (1, 0) if step.expect.is_none() => return fault("expects nothing"),
                (1, 0) | (0, 1) => {}
                _ => return fault("is not one action, nor one observation"),
            }
            let audits = step.expect.as_ref().is_some_and(|expect| !expect.0.audit.is_empty());
            if !step.also.is_empty() && (step.with.is_none() || step.at_once.is_some() || audits) {
                return fault("`also` goes with `with`, and not with `atOnce` or `audit`");
            }
            let described = step.wait.is_some() || step.check.is_some();
            if described != step.has.is_some() {
                return fault("`wait` and `check` go with `has`");
            }
            expectations += usize::from(step.learn.is_none());
        }
        (expectations == 0).then(|| "expects nothing".to_owned())
    }
}

impl Step {
    fn actions(&self) -> usize {
        let manifests = [&self.create, &self.apply].into_iter().flatten().count();
        let targets = [&self.patch, &self.annotate, &self.scale, &self.status, &self.delete];
        manifests + targets.into_iter().flatten().count()
    }

    fn observations(&self) -> usize {
        let seen = [
            self.learn.is_some(),
            self.wait.is_some(),
            self.check.is_some(),
            self.count.is_some(),
            self.audited.is_some(),
            self.never.is_some(),
            self.nowhere.is_some(),
        ];
        seen.into_iter().filter(|seen| *seen).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault_of(steps: Value) -> String {
        let scenario = json!({ "name": "a", "about": "b", "steps": steps });
        serde_json::from_value::<Scenario>(scenario).unwrap().fault("a.yaml").unwrap_or_default()
    }

    #[test]
    fn what_could_not_fail_is_an_error() {
        let expected = json!({ "as": "alice", "delete": "Pod/a", "expect": "allowed" });
        for (steps, fault) in [
            (json!([expected]), ""),
            (json!([]), "expects nothing"),
            (json!([{ "learn": { "a": { "kind": "Pod" } } }]), "expects nothing"),
            (json!([expected, { "as": "alice", "delete": "Pod/a" }]), "step 2: expects nothing"),
            (json!([{ "delete": "Pod/a", "expect": "allowed" }]), "step 1: nobody acts"),
            (
                json!([{ "as": "alice", "delete": "Pod/a", "also": { "bob": 1 }, "expect": "allowed" }]),
                "`also` goes with `with`",
            ),
            (json!([{ "wait": "Pod/a" }]), "`wait` and `check` go with `has`"),
            (json!([{ "wait": "Pod/a", "has": {}, "never": {} }]), "not one action, nor one observation"),
            (json!([{ "as": "alice", "delete": "Pod/a", "expect": "denied" }]), "invalid type"),
            (json!([{ "wait": "Pod/a", "has": { "feilds": {} } }]), "unknown field `feilds`"),
            (json!([{ "as": "alice", "delete": "Pod/a", "expect": { "warning": [] } }]), "unknown field"),
        ] {
            let seen = fault_of(steps.clone());
            assert!(seen.contains(fault) && (seen.is_empty() == fault.is_empty()), "{steps}: {seen:?}");
        }
    }
}
