//! Entries as they stand, with their fields unread.

use super::Owner;
use crate::managed::{ManagedError, Operation};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An entry whose fields are still text. Nothing is asked of it yet.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(default)]
    time: Option<String>,
    #[serde(borrow, default)]
    fields_type: Cow<'a, str>,
    /// The set of fields as JSON.
    #[serde(borrow, default = "nothing", deserialize_with = "unread", rename = "fieldsV1")]
    pub(super) fields: &'a str,
}

/// The entries of a list.
pub(super) fn entries(list: Option<&str>) -> Result<Vec<Entry<'_>>, ManagedError> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_str(list)
        .map_err(|error| ManagedError { entry: None, reason: error.to_string() })?;
    Ok(entries.unwrap_or_default())
}

impl Entry<'_> {
    /// Whose the entry is. It is the one at this place of its list.
    pub(super) fn owner(&self, nth: usize) -> Result<Owner, ManagedError> {
        let refused = |reason| Err(ManagedError { entry: Some(nth), reason });
        let operation = match &*self.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            other => return refused(format!("the operation must be Apply or Update, not {other:?}")),
        };
        if self.fields_type != "FieldsV1" {
            return refused(format!("the fieldsType must be FieldsV1, not {:?}", self.fields_type));
        }
        Ok(Owner {
            manager: self.manager.to_string(),
            operation,
            subresource: self.subresource.to_string(),
            api_version: self.api_version.to_string(),
            time: self.time.clone(),
        })
    }
}

fn nothing() -> &'static str {
    "{}"
}

fn unread<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    Ok(Option::<&RawValue>::deserialize(deserializer)?.map_or(nothing(), RawValue::get))
}
