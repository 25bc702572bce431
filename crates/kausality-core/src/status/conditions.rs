use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Standing, lenient, parse};

/// A condition, as far as it matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub name: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "lenient")]
    pub status: String,
    /// Why, in one word.
    #[serde(default, deserialize_with = "lenient")]
    pub reason: String,
    /// The generation it is about.
    #[serde(default, deserialize_with = "lenient")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether it is true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// The conditions of a status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Conditions(#[serde(deserialize_with = "each")] Vec<Condition>);

/// Reads conditions one by one: what is none says nothing, and hides none of the others.
fn each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let raw = Vec::<&'de RawValue>::deserialize(deserializer)?;
    Ok(raw.into_iter().map(parse).collect())
}

/// Conditions that are true when an object is done, with what their absence of truth means.
const DONE_WHEN_TRUE: [(&str, &str); 3] = [
    ("Ready", "condition Ready is not True"),
    ("Available", "condition Available is not True"),
    ("Synced", "condition Synced is not True"),
];

/// Conditions that are true while an object is not done.
const BUSY_WHILE_TRUE: [(&str, &str); 3] = [
    ("Reconciling", "condition Reconciling is True"),
    ("Progressing", "condition Progressing is True"),
    ("Stalled", "condition Stalled is True"),
];

/// A Deployment, and what is modelled on it, keeps `Progressing` true for ever and tells by this reason
/// that it has arrived.
pub(super) const ROLLED_OUT: &str = "NewReplicaSetAvailable";

impl Conditions {
    /// The condition of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.name == name)
    }

    /// Whether the condition of this name is there and true.
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(Condition::is_true)
    }

    /// Where the object stands, by the conditions that kinds share. Those that are not there say nothing.
    pub(super) fn standing(&self) -> Standing {
        for (name, missing) in DONE_WHEN_TRUE {
            if self.get(name).is_some_and(|condition| !condition.is_true()) {
                return Standing::Busy(missing);
            }
        }
        for (name, missing) in BUSY_WHILE_TRUE {
            let busy = |condition: &Condition| condition.is_true() && condition.reason != ROLLED_OUT;
            if self.get(name).is_some_and(busy) {
                return Standing::Busy(missing);
            }
        }
        Standing::Done
    }

    /// The generation that all of the conditions above are about; without them, any condition.
    pub(super) fn observed_generation(&self) -> Option<i64> {
        let known = |condition: &&Condition| {
            DONE_WHEN_TRUE.iter().chain(&BUSY_WHILE_TRUE).any(|(name, _)| condition.name == *name)
        };
        let of = |condition: &Condition| condition.observed_generation;
        let oldest = self.0.iter().filter(known).filter_map(of).min();
        oldest.or_else(|| self.0.iter().filter_map(of).max())
    }
}
