//! `metadata.managedFields`: how the API server keeps who owns what.
//!
//! [`decode`] and [`encode`] are the form in an object. [`Server`] does to it what the API server does on an update or
//! an apply, with the time as an input.

use crate::set::FieldSet;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Value;
use std::fmt;

mod cap;
mod encode;
mod last_applied;
mod server;
mod state;

pub use encode::{Wire, encode, sort};
pub use server::{Request, Served, Server, ServerError};

/// One entry: what a manager owns by one kind of operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name that the manager gave itself.
    pub manager: String,
    /// How it came to own the fields.
    pub operation: Operation,
    /// The version that the fields are of.
    pub api_version: String,
    /// When the entry changed last, as the API server writes it (`2026-01-01T00:00:00Z`).
    pub time: Option<String>,
    /// The fields.
    pub fields: FieldSet,
    /// The part of the object that was written to, such as `status`; empty for the object itself.
    pub subresource: String,
}

/// How a manager comes to own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply: it owns what it asks for.
    Apply,
    /// By any other write: it owns what it changed.
    Update,
}

/// What makes two entries the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The name of the manager.
    pub manager: String,
    /// How it owns.
    pub operation: Operation,
    /// The version; `None` for an apply, which is the same in every version.
    pub api_version: Option<String>,
    /// The part of the object that was written to.
    pub subresource: String,
}

/// Why a list of entries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedError {
    /// Which entry, if only one is to blame.
    pub entry: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

/// Reads `metadata.managedFields` from JSON text.
pub fn decode(json: &str) -> Result<Vec<Entry>, ManagedError> {
    entries(serde_json::from_str(json))
}

/// Reads `metadata.managedFields` from JSON that was parsed already.
pub fn decode_value(value: &Value) -> Result<Vec<Entry>, ManagedError> {
    entries(Vec::deserialize(value))
}

impl Entry {
    /// What makes another entry the same as this one.
    pub fn identity(&self) -> Identity {
        Identity {
            manager: self.manager.clone(),
            operation: self.operation,
            api_version: (self.operation == Operation::Update).then(|| self.api_version.clone()),
            subresource: self.subresource.clone(),
        }
    }
}

impl Operation {
    /// The word for it in an entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

fn entries(raw: serde_json::Result<Vec<Raw>>) -> Result<Vec<Entry>, ManagedError> {
    let raw = raw.map_err(|error| ManagedError { entry: None, reason: error.to_string() })?;
    let checked =
        |(nth, raw): (usize, Raw)| raw.checked().map_err(|reason| ManagedError { entry: Some(nth), reason });
    raw.into_iter().enumerate().map(checked).collect()
}

/// An entry as it is written, before anything is asked of it.
#[derive(serde::Deserialize, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    manager: String,
    operation: String,
    api_version: String,
    time: Option<String>,
    fields_type: String,
    fields_v1: Option<FieldSet>,
    subresource: String,
}

impl Raw {
    fn checked(self) -> Result<Entry, String> {
        let operation = match self.operation.as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            other => return Err(format!("the operation must be Apply or Update, not {other:?}")),
        };
        if self.api_version.is_empty() {
            return Err("the apiVersion is missing".to_owned());
        }
        if self.fields_type != "FieldsV1" {
            return Err(format!("the fieldsType must be FieldsV1, not {:?}", self.fields_type));
        }
        Ok(Entry {
            manager: self.manager,
            operation,
            api_version: self.api_version,
            time: self.time,
            fields: self.fields_v1.unwrap_or_default(),
            subresource: self.subresource,
        })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer)?.checked().map_err(serde::de::Error::custom)
    }
}

/// With the same meaning as [`encode`], whose bytes are those of the API server.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_struct("Entry", 7)?;
        entry.serialize_field("manager", &self.manager)?;
        entry.serialize_field("operation", self.operation.as_str())?;
        entry.serialize_field("apiVersion", &self.api_version)?;
        if let Some(time) = &self.time {
            entry.serialize_field("time", time)?;
        }
        entry.serialize_field("fieldsType", "FieldsV1")?;
        entry.serialize_field("fieldsV1", &self.fields)?;
        if !self.subresource.is_empty() {
            entry.serialize_field("subresource", &self.subresource)?;
        }
        entry.end()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({}", self.manager, self.operation.as_str())?;
        if let Some(version) = &self.api_version {
            write!(f, ", {version}")?;
        }
        if !self.subresource.is_empty() {
            write!(f, ", {}", self.subresource)?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for ManagedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the managedFields cannot be read: ")?;
        if let Some(nth) = self.entry {
            write!(f, "entry {nth}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ManagedError {}

#[cfg(test)]
mod tests;
