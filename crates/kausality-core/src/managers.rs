//! What managed fields tell: who writes a parent's status, and who sends a request.

use jiff::Timestamp;
use kausality_fields::{
    Path,
    attribution::{Handover, attribute, handovers},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::review::{Metadata, Object, Request, Text};

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Text<'a>,
    #[serde(borrow, default)]
    time: Text<'a>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
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
    let attribution = attribute(text(request.old_object.as_ref()), text(request.object.as_ref())).ok()?;
    let mut written = attribution
        .written
        .iter()
        .map(|moved| &moved.owner)
        .filter(|owner| owner.subresource == *request.sub_resource)
        .map(|owner| owner.manager.as_str());
    let manager = written.next()?;
    // Several managers cannot have sent one request: no evidence.
    written.all(|other| other == manager).then(|| manager.to_owned())
}

/// Who owned each of these fields before a request, and who does after; nothing if managed fields make no sense.
#[must_use]
pub fn of_fields<'p>(request: &Request<'_>, paths: impl IntoIterator<Item = &'p Path>) -> Vec<Handover> {
    handovers(text(request.old_object.as_ref()), text(request.object.as_ref()), paths).unwrap_or_default()
}

/// The managed fields of an object, unread.
fn text<'a>(object: Option<&Object<'a>>) -> Option<&'a str> {
    object?.metadata.managed_fields.map(RawValue::get)
}

#[cfg(test)]
mod tests;
