//! What a status says: whether its object has got where its intent wants it.
//!
//! Built-in kinds are read by their counters, all others by the conditions that they share. Whether the
//! status is about the present intent (`observedGeneration`) is a question of its own: see [`crate::settle`].

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::review::Object;

mod builtin;
mod conditions;

pub use conditions::{Condition, Conditions};

/// Whether an object has got where it is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there.
    Done,
    /// It is not, or cannot be told to be; with what is missing.
    Busy(&'static str),
    /// It never is: it acts on a schedule.
    Never(&'static str),
}

/// A status, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The generation that the status is about, as the status itself says.
    pub observed_generation: Option<i64>,
    /// Whether the object has got where it is meant to be.
    pub standing: Standing,
    /// Whether a condition `Initialized` or `Ready` is true.
    pub ready: bool,
}

/// Reads the status of an object: its own, or one that is being written to it.
#[must_use]
pub fn read(object: &Object<'_>, status: Option<&RawValue>) -> Reading {
    let common: Common = status.map(parse).unwrap_or_default();
    let standing =
        builtin::standing(object, status, &common.conditions).unwrap_or_else(|| common.conditions.standing());
    let native = common.observed_generation.or_else(|| builtin::counts_generations(object).then_some(0));
    Reading {
        observed_generation: native.or_else(|| common.conditions.observed_generation()),
        standing,
        ready: common.conditions.is_true("Initialized") || common.conditions.is_true("Ready"),
    }
}

/// What statuses have in common.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    #[serde(default, deserialize_with = "lenient")]
    observed_generation: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    conditions: Conditions,
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
