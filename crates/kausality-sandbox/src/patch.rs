//! The ways in which an object is changed.

use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::{Map, Value, json};

use crate::call::{Call, parse_yaml};
use crate::kinds::{Definition, Shape};
use crate::status::{Cause, Failure, Subject};

mod strategic;

/// A change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// This object, in place of the other.
    Replace(Value),
    /// A JSON patch (RFC 6902).
    Json(Patch),
    /// A merge patch (RFC 7386).
    Merge(Value),
    /// A merge patch that knows which lists are merged item by item.
    Strategic(Value),
    /// What somebody wants of the object, and owns.
    Apply(Value),
}

impl Change {
    /// Whether the kind can be patched so.
    pub(crate) fn check_type(call: &Call) -> Result<(), Failure> {
        match kind(call) {
            JSON | MERGE | APPLY => Ok(()),
            STRATEGIC if !call.definition.is_custom() => Ok(()),
            STRATEGIC => Err(Failure::unsupported_media_type(&format!("{JSON}, {MERGE}, {APPLY}"))),
            _ => {
                let failure = Failure::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
                Err(Failure { details: Some(json!({})), ..failure })
            }
        }
    }

    /// The patch in the body of a call.
    pub(crate) fn read(call: &Call) -> Result<Self, Failure> {
        Ok(match kind(call) {
            JSON => Self::Json(parse_operations(&call.body)?),
            STRATEGIC => Self::Strategic(parse_object(&call.body)?),
            APPLY => Self::Apply(parse_yaml(&call.body)?),
            _ => Self::Merge(parse_object(&call.body)?),
        })
    }

    /// The object after the change.
    pub(crate) fn apply(&self, live: &Value, definition: &Definition) -> Result<Value, Failure> {
        if let Self::Replace(new) = self {
            return Ok(new.clone());
        }
        let mut object = live.clone();
        match self {
            Self::Json(patch) => operate(&mut object, patch)?,
            Self::Merge(patch) => {
                let mut patch = patch.clone();
                without_nulls_in_lists(&mut patch, false);
                json_patch::merge(&mut object, &patch);
            }
            Self::Strategic(patch) => {
                let name = match &definition.shape {
                    Shape::BuiltIn(name) => name.as_str(),
                    Shape::Custom(_) => "",
                };
                strategic::merge(&mut object, patch, name).map_err(|why| Failure::new(500, "", why))?;
            }
            Self::Replace(_) | Self::Apply(_) => {}
        }
        Ok(object)
    }

    /// What is wrong with an object that a patch made is wrong with the patch, unless the server is to blame.
    pub(crate) fn blame(&self, failure: Failure, made: impl FnOnce() -> Value) -> Failure {
        let text = match self {
            Self::Replace(_) | Self::Apply(_) => return failure,
            _ if failure.code >= 500 => return failure,
            Self::Strategic(patch) => printed(patch),
            Self::Json(_) | Self::Merge(_) => made().to_string(),
        };
        let why = failure
            .message
            .split_once(" cannot be handled as a ")
            .and_then(|(_, rest)| rest.split_once(": "));
        let why = why.map_or(failure.message.as_str(), |(_, why)| why);
        Failure::invalid(&Subject::default(), &[Cause::invalid("patch", &json!(text), why)])
    }

    /// The scale after the change. Scales have no lists, so that all kinds of merging are the same.
    pub(crate) fn apply_to_scale(&self, live: &Value) -> Result<Value, Failure> {
        let mut scale = live.clone();
        match self {
            Self::Replace(new) => scale = new.clone(),
            Self::Json(patch) => {
                operate(&mut scale, patch)?;
            }
            Self::Merge(patch) | Self::Strategic(patch) | Self::Apply(patch) => {
                json_patch::merge(&mut scale, patch);
            }
        }
        Ok(scale)
    }
}

/// A strategic patch as Go prints it after it was merged: directives are taken out, and lists that have an order.
fn printed(patch: &Value) -> String {
    match patch {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let stays =
                |key: &str| !key.starts_with('$') && !fields.contains_key(&format!("$setElementOrder/{key}"));
            let fields = fields.iter().filter(|(key, _)| stays(key));
            let fields: Vec<_> = fields.map(|(key, value)| format!("{key}:{}", printed(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn kind(call: &Call) -> &str {
    call.content_type.split(';').next().unwrap_or_default().trim()
}

/// Objects in the lists of a merge patch lose their nulls, too.
fn without_nulls_in_lists(value: &mut Value, inside: bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !inside || !value.is_null());
            fields.values_mut().for_each(|value| without_nulls_in_lists(value, inside));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_nulls_in_lists(item, true)),
        _ => {}
    }
}

/// A JSON patch that does not fit the object.
fn inapplicable() -> Failure {
    let message = "the server rejected our request due to an error in our request";
    Failure { details: Some(json!({})), ..Failure::new(422, "Invalid", message) }
}

/// Does what a JSON patch says. The library of the API server is kinder than the standard: to replace a field that is not
/// there adds it, and to copy one copies nothing.
fn operate(object: &mut Value, patch: &Patch) -> Result<(), Failure> {
    for operation in &patch.0 {
        let free = |path: &str| {
            let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
            object.pointer(path).is_none() && parent.is_some_and(Value::is_object)
        };
        let add = |path: &_, value| PatchOperation::Add(AddOperation { path: Clone::clone(path), value });
        let operation = match operation {
            PatchOperation::Replace(replace) if free(replace.path.as_str()) => {
                add(&replace.path, replace.value.clone())
            }
            PatchOperation::Copy(copy) if free(copy.from.as_str()) => add(&copy.path, Value::Null),
            other => other.clone(),
        };
        json_patch::patch(object, &[operation]).map_err(|_| inapplicable())?;
    }
    Ok(())
}

/// What is no list of objects is no patch; what these say is looked at when they are applied.
fn parse_operations(text: &[u8]) -> Result<Patch, Failure> {
    let operations: Option<Vec<Map<String, Value>>> = serde_json::from_slice(text)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    serde_json::from_value(json!(operations.unwrap_or_default())).map_err(|_| inapplicable())
}

fn parse_object(text: &[u8]) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::bad_request("error decoding patch: it is not an object"))
    }
}
