//! What an object said at one time, read without the help of what is under test.

use kausality_api::{
    annotation::{APPROVALS, CONTROLLERS, FREEZE, OBSERVED_GENERATION, REJECTIONS, SETTLED, Suffix},
    approval::{Approval, ApprovalMode, Entry as _, Rejection},
    identity::UserHash,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Whether a status says that all is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Steady {
    No,
    /// By some readings.
    Perhaps,
    /// By all.
    Surely,
}

/// When and by whom a version was stored.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// Which of all writes it was.
    pub(crate) at: u64,
    /// The time since the simulation began.
    pub(crate) time: Duration,
    /// Whether a controller wrote it.
    pub(crate) by_controller: bool,
}

/// One stored version of an object.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Which of all writes it was.
    pub(crate) at: u64,
    pub(crate) resource_version: String,
    pub(crate) kind: String,
    /// The uid of its controller's object.
    pub(crate) owner: Option<String>,
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) intent: Value,
    /// What people ask for: the intent without what its operator writes into it.
    asked: Value,
    /// When they last asked for something else.
    pub(crate) asked_at: Duration,
    /// Since when it has carried its mark, or this status.
    pub(crate) settled_at: Duration,
    pub(crate) steady: Steady,
    /// Whether it may have been steady, now or since this intent was written.
    pub(crate) arrived: bool,
    /// Whether it surely was, and whoever wrote that status had to tell.
    remembered: bool,
    /// The generation that its controller has seen: whoever writes a status has read the object before, since it could
    /// not be stored otherwise.
    observed: Option<i64>,
    /// Whether it says so itself.
    native: bool,
    pub(crate) system: BTreeMap<String, String>,
    /// A `scale` led back to an intent that an older mark speaks of: until the mark is taken off, a moment later, or for
    /// longer where whoever should do it dies, nobody can tell that it is old.
    pub(crate) returned: bool,
    approvals: Vec<Approval>,
    rejections: Vec<Rejection>,
    pub(crate) frozen: bool,
    /// Annotations that belong to people.
    people: BTreeMap<&'static str, String>,
    /// Those of them that a controller has copied here, which mean nothing.
    copied: BTreeMap<&'static str, String>,
}

impl Version {
    /// An object as it was stored by a write to this subresource, after what was stored before.
    pub(crate) fn of(moment: Moment, object: &Value, subresource: &str, before: Option<&Self>) -> Self {
        let metadata = &object["metadata"];
        let generation = metadata["generation"].as_i64().unwrap_or_default();
        let intent = intent(object);
        let native = object["status"]["observedGeneration"].as_i64();
        let observed = native.or_else(|| match subresource {
            "status" => Some(generation),
            _ => before.and_then(|before| before.observed),
        });
        let steady = if observed == Some(generation) { steady(object) } else { Steady::No };
        let asked = asked(object);
        let same = before.filter(|before| before.asked == asked);
        let arrived_before = same.is_some_and(|before| before.arrived);
        // A status keeps what it is patched with on built-in kinds only; and what follows from a scale comes later.
        let remembers = object["kind"] == json!("Deployment") && subresource != "scale";
        let remembered = same.is_some_and(|before| before.remembered)
            || remembers && subresource == "status" && steady == Steady::Surely;
        let copied = copied(moment, metadata, before);
        let annotation =
            |key: &str| metadata["annotations"][key].as_str().filter(|_| !copied.contains_key(key));
        let approvals = annotation(APPROVALS).and_then(|text| serde_json::from_str(text).ok());
        let rejections = annotation(REJECTIONS).and_then(|text| serde_json::from_str(text).ok());
        let same_returned = same.map(|before| before.returned);
        let status_before =
            before.filter(|before| before.steady == steady && before.generation == generation);
        let mut version = Self {
            at: moment.at,
            asked_at: same.map_or(moment.time, |before| before.asked_at),
            settled_at: status_before.map_or(moment.time, |before| before.settled_at),
            asked,
            resource_version: text(&metadata["resourceVersion"]),
            kind: text(&object["kind"]),
            owner: metadata["ownerReferences"][0]["uid"].as_str().map(ToOwned::to_owned),
            generation,
            deleting: !metadata["deletionTimestamp"].is_null(),
            steady,
            arrived: arrived_before || steady > Steady::No,
            remembered,
            observed,
            native: native.is_some(),
            intent,
            system: system(object),
            approvals: approvals.unwrap_or_default(),
            returned: false,
            rejections: rejections.unwrap_or_default(),
            frozen: annotation(FREEZE).is_some(),
            people: people(metadata),
            copied,
        };
        if let Some(before) = before.filter(|before| before.is_marked() && version.is_marked())
            && before.system.get(SETTLED) == version.system.get(SETTLED)
        {
            version.settled_at = before.settled_at;
        }
        version.returned = version.is_marked() && same_returned.unwrap_or(subresource == "scale");
        version
    }

    /// Whether it carries the mark of having been steady at the intent that it has.
    pub(crate) fn is_marked(&self) -> bool {
        self.system.get(SETTLED).is_some_and(|mark| mark.split('@').next() == Some(&*mark_of(&self.intent)))
    }

    /// Whether anybody who reads it must take it for settled.
    pub(crate) fn is_settled(&self) -> bool {
        let says = |generation: i64| self.system.get(OBSERVED_GENERATION) == Some(&generation.to_string());
        let observed = self.native || self.observed.is_some_and(says);
        self.is_marked() || self.remembered || self.steady == Steady::Surely && observed
    }

    /// Whether nothing says that its controller has seen it as it is, and nothing ever may.
    pub(crate) fn is_mute(&self) -> bool {
        !self.native && self.observed.is_some_and(|observed| observed != self.generation)
    }

    /// Whether a rejection on it holds for a child.
    pub(crate) fn rejects(&self, api_version: &str, kind: &str, name: &str) -> bool {
        self.rejections.iter().any(|rejection| rejection.matches(api_version, kind, "", name))
    }

    /// Whether it says that a user is its controller.
    pub(crate) fn is_controlled_by(&self, user: &str) -> bool {
        let user = UserHash::of(user, "").to_string();
        self.system.get(CONTROLLERS).is_some_and(|all| all.split(',').any(|one| one == user))
    }

    /// Whether it carries this very approval, for this child.
    pub(crate) fn gives(&self, approval: &Approval, kind: &str, name: &str) -> bool {
        approval.matches("*", kind, "", name)
            && self.approvals.iter().any(|given| given.reason == approval.reason)
    }

    /// Whether an approval that it carries is meant for it as it is.
    pub(crate) fn stands(&self, approval: &Approval) -> bool {
        let this = self.approvals.iter().filter(|given| given.reason == approval.reason);
        this.into_iter()
            .any(|given| given.mode == ApprovalMode::Always || given.generation == Some(self.generation))
    }

    /// Whether an approval on it holds for a child.
    pub(crate) fn approves(&self, api_version: &str, kind: &str, name: &str) -> bool {
        self.approvals.iter().any(|approval| {
            approval.matches(api_version, kind, "", name)
                && (approval.mode == ApprovalMode::Always || approval.generation == Some(self.generation))
        })
    }
}

/// The copies on an object: annotations of people's whose present value a controller wrote.
fn copied(moment: Moment, metadata: &Value, before: Option<&Version>) -> BTreeMap<&'static str, String> {
    let mut copied = people(metadata);
    copied.retain(|key, value| {
        let same = before.filter(|before| before.people.get(key) == Some(value));
        same.map_or(moment.by_controller, |before| before.copied.contains_key(key))
    });
    copied
}

/// The annotations of people's on an object. Generations of approvals are left out: Kausality stamps them anew.
fn people(metadata: &Value) -> BTreeMap<&'static str, String> {
    let value = |key| {
        let text = metadata["annotations"][key].as_str()?;
        let mut entries: Value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        for entry in entries.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.remove("generation");
        }
        Some((key, entries.to_string()))
    };
    [APPROVALS, REJECTIONS, FREEZE].into_iter().filter_map(value).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What people ask for by an object: its intent, without the version that an operator writes into a Stack.
fn asked(object: &Value) -> Value {
    let mut intent = intent(object);
    if object["kind"] == "Stack"
        && let Some(spec) = intent["spec"].as_object_mut()
    {
        spec.remove("version");
    }
    intent
}

/// All but what names it and what it has come to.
pub(crate) fn intent(object: &Value) -> Value {
    let fields = object.as_object().cloned().unwrap_or_default();
    let left_out = ["apiVersion", "kind", "metadata", "status"];
    fields.into_iter().filter(|(key, _)| !left_out.contains(&key.as_str())).collect::<Map<_, _>>().into()
}

/// The mark that the core gives to an intent: what it must be is the core's own test, that it is of this intent is ours.
fn mark_of(intent: &Value) -> String {
    use kausality_core::{Summary, review::Object};
    let text = intent.to_string();
    Object::parse(&text).map(|object| Summary::of(&object).intent.to_string()).unwrap_or_default()
}

/// The annotations that are Kausality's.
pub(crate) fn system(object: &Value) -> BTreeMap<String, String> {
    let suffix = Suffix::of_object(object);
    let annotations = object["metadata"]["annotations"].as_object();
    let facts = annotations.into_iter().flatten().filter_map(|(key, value)| Some((suffix.fact(key)?, value)));
    facts.map(|(fact, value)| (fact.to_owned(), text(value))).collect()
}

/// What a status says whose writer has seen the object as it is.
fn steady(object: &Value) -> Steady {
    let status = &object["status"];
    let condition = |kind: &str| {
        let all = status["conditions"].as_array();
        all.and_then(|all| all.iter().find(|one| one["type"] == json!(kind))).cloned().unwrap_or_default()
    };
    let counters = |names: &[&str]| {
        let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
        names.iter().all(|name| status[*name].as_i64().unwrap_or_default() == wanted)
    };
    match object["kind"].as_str() {
        Some("Deployment") => {
            if !counters(&["replicas", "updatedReplicas", "availableReplicas"]) {
                return Steady::No;
            }
            let done = condition("Progressing")["reason"] == json!("NewReplicaSetAvailable")
                && condition("Available")["status"] == json!("True")
                && condition("ReplicaFailure")["status"] != json!("True");
            if done { Steady::Surely } else { Steady::Perhaps }
        }
        Some("ReplicaSet") => {
            let done = counters(&["replicas", "availableReplicas", "readyReplicas"]);
            if done { Steady::Perhaps } else { Steady::No }
        }
        _ => match condition("Ready")["status"].as_str() {
            Some("True") => Steady::Surely,
            Some("False") => Steady::No,
            _ => Steady::Perhaps,
        },
    }
}
