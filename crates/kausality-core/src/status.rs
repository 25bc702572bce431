//! What a status says: whether its object has got where its intent wants it.
//!
//! Built-in kinds are read by their counters, all others by the conditions or the phase that many share, or as a policy
//! says for the kind ([`Rules`]). Whether the status is about the present intent (`observedGeneration`) is a question of its own: see [`crate::settle`].

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::review::Object;

mod builtin;
mod conditions;
mod counters;
mod phases;
mod rules;
mod schedules;

pub use conditions::{Condition, Conditions};
pub use rules::{Rule, Rules, fault};
pub(crate) use schedules::due_of_child;

/// Whether an object has got where it is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there.
    Done,
    /// It is not, or cannot be told to be; with what is missing.
    Busy(&'static str),
    /// It never is: it acts on a schedule.
    Never(&'static str),
    /// The status says nothing about it, unless observedGeneration does.
    Silent,
    /// None of its conditions is one that is known to say so; one that does may be still to come.
    Unclear,
}

/// A status, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The generation that the status is about, as the status itself says.
    pub observed_generation: Option<i64>,
    /// Whether the object has got where it is meant to be.
    pub standing: Standing,
    /// Whether a condition `Initialized` or `Ready` is true, or what a policy asks for instead.
    pub ready: bool,
    /// When the controller acts again without being asked, as the status says.
    pub due: Option<Timestamp>,
}

impl Reading {
    /// Whether the status tells how far its controller has got. `observedGeneration` alone does, where there is nothing else.
    #[must_use]
    pub fn has_evidence(&self) -> bool {
        match self.standing {
            Standing::Done | Standing::Busy(_) | Standing::Never(_) => true,
            Standing::Silent => self.observed_generation.is_some(),
            Standing::Unclear => false,
        }
    }
}

/// What keeps an object busy whose status is read by a rule.
const RULE_DOES_NOT_HOLD: &str = "its status does not show what the policy asks for (spec.status.settled)";

/// Reads the status of an object: its own, or one that is being written to it.
#[must_use]
pub fn read(object: &Object<'_>, status: Option<&RawValue>, rules: &Rules) -> Reading {
    let common: Common = status.map(parse).unwrap_or_default();
    let usual = builtin::standing(object, status, &common.conditions).unwrap_or_else(|| {
        let conditions = common.conditions.standing();
        let others = || phases::standing(&common).or_else(|| counters::standing(object, status));
        match conditions {
            Standing::Silent => others().unwrap_or(Standing::Silent),
            // Cluster API begins every status by telling that an object is not paused.
            Standing::Unclear if !common.conditions.tell_of_pause_alone() => {
                phases::standing(&common).unwrap_or(Standing::Unclear)
            }
            standing => standing,
        }
    });
    let shown = rules::Shown::new(object, status, &common);
    let standing = match (&rules.settled, usual) {
        // A status cannot tell when the schedule comes next.
        (None, usual) | (_, usual @ Standing::Never(_)) => usual,
        (Some(rule), _) => match rule.holds(&shown) {
            rules::Answer::Yes => Standing::Done,
            rules::Answer::No => Standing::Busy(RULE_DOES_NOT_HOLD),
            rules::Answer::Unclear => Standing::Unclear,
        },
    };
    let ready = match &rules.initialized {
        None => common.conditions.is_true("Initialized") || common.conditions.is_true("Ready"),
        Some(rule) => rule.holds(&shown) == rules::Answer::Yes,
    };
    let native = common.observed_generation.or_else(|| builtin::counts_generations(object).then_some(0));
    Reading {
        observed_generation: native
            .or_else(|| common.conditions.observed_generation(rules.settled.as_deref())),
        standing,
        ready,
        due: schedules::due(object, &common),
    }
}

/// How two statuses differ in what tells how far their controller has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Not at all.
    None,
    /// In times, messages and other details of conditions: a heartbeat.
    Details,
    /// In what they tell.
    Meaning,
}

/// Compares what two statuses tell of how far their controller has got.
#[must_use]
pub fn difference(one: Option<&RawValue>, other: Option<&RawValue>) -> Difference {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Told<'a> {
        #[serde(borrow, default)]
        observed_generation: Option<&'a RawValue>,
        #[serde(borrow, default)]
        conditions: Option<&'a RawValue>,
        #[serde(borrow, default)]
        phase: Option<&'a RawValue>,
        #[serde(borrow, default)]
        state: Option<&'a RawValue>,
        #[serde(borrow, default)]
        health: Option<&'a RawValue>,
    }
    impl Told<'_> {
        fn fields(&self) -> [Option<&str>; 4] {
            [self.observed_generation, self.phase, self.state, self.health]
                .map(|field| field.map(RawValue::get))
        }
    }
    fn told(status: Option<&RawValue>) -> Told<'_> {
        status.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
    let (one, other) = (told(one), told(other));
    let conditions = |told: &Told<'_>| told.conditions.map(parse::<Conditions>).unwrap_or_default();
    if one.fields() != other.fields() {
        Difference::Meaning
    } else if one.conditions.map(RawValue::get) == other.conditions.map(RawValue::get) {
        Difference::None
    } else if conditions(&one).say_the_same(conditions(&other)) {
        Difference::Details
    } else {
        Difference::Meaning
    }
}

/// What statuses have in common.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    #[serde(default, deserialize_with = "number")]
    observed_generation: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    conditions: Conditions,
    #[serde(default, deserialize_with = "lenient")]
    phase: String,
    #[serde(default, deserialize_with = "lenient")]
    state: String,
    #[serde(default, deserialize_with = "lenient")]
    health: String,
    #[serde(default, deserialize_with = "lenient")]
    renewal_time: String,
    #[serde(default, deserialize_with = "lenient")]
    refresh_time: String,
}

/// A generation: a number, or a text that is one (Argo Rollouts).
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(raw.get().trim_matches('"').parse().ok())
}

fn parse<T: DeserializeOwned + Default>(raw: &RawValue) -> T {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Reads a field as absent if it is of another type than the convention has it: custom resources are free
/// to use the names for something else.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
