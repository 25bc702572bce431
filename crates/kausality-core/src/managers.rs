//! What managed fields tell: who writes a parent's status, and who sends a request.

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::review::{Metadata, Request, Text};

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Text<'a>,
    #[serde(borrow, default)]
    operation: Text<'a>,
    #[serde(borrow, default)]
    subresource: Text<'a>,
    #[serde(borrow, default)]
    time: Text<'a>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl Entry<'_> {
    fn same(&self, other: &Entry<'_>) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && self.time == other.time
            && self.fields.map(RawValue::get) == other.fields.map(RawValue::get)
    }
}

fn entries<'a>(metadata: &Metadata<'a>) -> Vec<Entry<'a>> {
    let raw = metadata.managed_fields.map(|raw| serde_json::from_str(raw.get()));
    raw.and_then(Result::ok).unwrap_or_default()
}

/// The managers that own `observedGeneration` in an object's status, or on its conditions: its controllers.
#[must_use]
pub fn of_status(metadata: &Metadata<'_>) -> Vec<String> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, default, rename = "f:status")]
        status: Option<Status<'a>>,
    }
    #[derive(Deserialize)]
    struct Status<'a> {
        #[serde(default, rename = "f:observedGeneration")]
        observed_generation: Option<IgnoredAny>,
        #[serde(borrow, default, rename = "f:conditions")]
        conditions: Option<&'a RawValue>,
    }

    let mut managers: Vec<String> = Vec::new();
    for entry in entries(metadata) {
        let fields = entry.fields.and_then(|raw| serde_json::from_str::<Fields<'_>>(raw.get()).ok());
        let owns = fields.and_then(|fields| fields.status).is_some_and(|status| {
            status.observed_generation.is_some()
                || status.conditions.is_some_and(|raw| raw.get().contains("\"f:observedGeneration\""))
        });
        if owns && !managers.iter().any(|manager| *manager == *entry.manager) {
            managers.push(entry.manager.to_string());
        }
    }
    managers
}

/// When an object was last written, as far as its managed fields tell.
#[must_use]
pub fn last_write(metadata: &Metadata<'_>) -> Option<Timestamp> {
    entries(metadata).iter().filter_map(|entry| entry.time.parse().ok()).max()
}

/// The manager that sends a request: the one it names, else the one whose entry it changes.
#[must_use]
pub fn of_request(request: &Request<'_>) -> Option<String> {
    let named = request.options.as_ref().map(|options| &*options.field_manager).unwrap_or_default();
    if !named.is_empty() {
        return Some(named.to_owned());
    }
    let before = request.old_object.as_ref().map(|old| entries(&old.metadata)).unwrap_or_default();
    let after = entries(&request.object.as_ref()?.metadata);
    let mut changed = (after.iter())
        .filter(|entry| entry.subresource == *request.sub_resource)
        .filter(|entry| !before.iter().any(|old| old.same(entry)))
        .map(|entry| &*entry.manager);
    let manager = changed.next()?;
    // Several managers cannot have sent one request: no evidence.
    changed.all(|other| other == manager).then(|| manager.to_owned())
}

#[cfg(test)]
mod tests;
