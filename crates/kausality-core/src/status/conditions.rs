use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Rule, Standing, lenient, parse};

/// A condition, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
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
const DONE_WHEN_TRUE: [(&str, &str); 13] = [
    ("Ready", "condition Ready is not True"),
    ("Available", "condition Available is not True"),
    ("Synced", "condition Synced is not True"),
    ("Healthy", "condition Healthy is not True"),
    ("Completed", "condition Completed is not True"),
    ("Complete", "condition Complete is not True"),
    ("Succeeded", "condition Succeeded is not True"),
    ("Reconciled", "condition Reconciled is not True"),
    ("TopologyReconciled", "condition TopologyReconciled is not True"),
    ("Programmed", "condition Programmed is not True"),
    ("Installed", "condition Installed is not True"),
    ("Promoted", "condition Promoted is not True"),
    ("ResourcesUpToDate", "condition ResourcesUpToDate is not True"),
];

/// Conditions that are false when an object is done. `Unknown` is not done either.
const BUSY_UNLESS_FALSE: [(&str, &str); 10] = [
    ("Reconciling", "condition Reconciling is not False"),
    ("Progressing", "condition Progressing is not False"),
    ("Stalled", "condition Stalled is not False"),
    ("Issuing", "condition Issuing is not False"),
    ("RollingOut", "condition RollingOut is not False"),
    ("ScalingUp", "condition ScalingUp is not False"),
    ("ScalingDown", "condition ScalingDown is not False"),
    ("Remediating", "condition Remediating is not False"),
    ("Updating", "condition Updating is not False"),
    ("Deleting", "condition Deleting is not False"),
];

/// Those of them that say by being false that an object is done: `Reconciling` as kstatus has it, and those that tell
/// whether children are being made or deleted. The others are there only now and then, or false when all has failed.
const COUNTERPARTS_OF_READY: [&str; 4] = ["Reconciling", "RollingOut", "ScalingUp", "ScalingDown"];

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

    /// Where the object stands, by the conditions that kinds share. Those that are not there say nothing; that it is done
    /// takes one of the first sort.
    pub(super) fn standing(&self) -> Standing {
        let mut standing = Standing::Silent;
        for (name, missing) in DONE_WHEN_TRUE {
            match self.get(name) {
                Some(condition) if !condition.is_true() => return Standing::Busy(missing),
                Some(_) => standing = Standing::Done,
                None => {}
            }
        }
        for (name, missing) in BUSY_UNLESS_FALSE {
            match self.get(name) {
                Some(condition) if condition.is_true() && condition.reason == ROLLED_OUT => {
                    standing = Standing::Done;
                }
                Some(condition) if condition.status != "False" => return Standing::Busy(missing),
                Some(_) if COUNTERPARTS_OF_READY.contains(&name) => standing = Standing::Done,
                _ => {}
            }
        }
        match standing {
            Standing::Silent if !self.0.is_empty() => Standing::Unclear,
            standing => standing,
        }
    }

    /// Whether both hold the same conditions, in whichever order. Times and messages are not among what matters of them.
    pub(super) fn say_the_same(self, other: Self) -> bool {
        let [mut one, mut other] = [self.0, other.0];
        one.sort_unstable();
        other.sort_unstable();
        one == other
    }

    /// Whether nothing is told but whether the object is paused.
    pub(super) fn tell_of_pause_alone(&self) -> bool {
        self.0.iter().all(|condition| condition.name == "Paused")
    }

    /// The generation that all of the conditions are about that a rule names, else those above; without them, any condition.
    pub(super) fn observed_generation(&self, rule: Option<&Rule>) -> Option<i64> {
        let rule = rule.filter(|rule| rule.has_conditions());
        let known = |condition: &&Condition| match rule {
            Some(rule) => rule.names(condition),
            None => DONE_WHEN_TRUE.iter().chain(&BUSY_UNLESS_FALSE).any(|(name, _)| condition.name == *name),
        };
        let of = |condition: &Condition| condition.observed_generation;
        let oldest = self.0.iter().filter(known).filter_map(of).min();
        oldest.or_else(|| self.0.iter().filter_map(of).max())
    }
}
