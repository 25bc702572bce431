//! The subresource `scale`: how many replicas there are to be.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{Attributes, Operation};
use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::managed::{self, Writer};
use crate::metadata;
use crate::patch::Change;
use crate::sandbox::Sandbox;
use crate::status::{Cause, Failure, Subject};
use crate::types::decode::{Fill, decode};
use crate::verbs::update::ATTEMPTS;
use crate::{prepare, validate};

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

impl Sandbox {
    /// The scale of an object.
    pub(crate) fn scale_of(&self, call: &Call, object: &Value) -> Result<Value, Failure> {
        let paths = call.definition.scale.as_ref().ok_or_else(Failure::no_resource)?;
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let selector = match paths.selector.as_ref().and_then(|pointer| object.pointer(pointer)) {
            Some(Value::String(text)) => text.clone(),
            Some(selector) => text_of(selector),
            None => String::new(),
        };
        let mut scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {},
            "spec": {}, "status": {"replicas": number(&paths.status)},
        });
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            metadata::take(&mut scale, object, key);
        }
        if number(&paths.spec) != 0 {
            scale["spec"]["replicas"] = number(&paths.spec).into();
        }
        if !selector.is_empty() {
            scale["status"]["selector"] = selector.into();
        }
        Ok(scale)
    }

    /// Changes how many replicas there are to be.
    pub(crate) async fn write_scale(&self, call: &Call, change: &Change, notes: &mut Notes) -> Done {
        if let Change::Replace(scale) = change {
            read(scale.clone(), change)?;
        }
        for _ in 0..ATTEMPTS {
            if let Some(object) = self.try_scale(call, change, notes).await? {
                return Ok((200, Arc::new(self.scale_of(call, &object)?)));
            }
            if matches!(change, Change::Replace(scale) if !metadata::version(scale).is_empty()) {
                break;
            }
        }
        Err(Failure::modified(&call.subject()))
    }

    async fn try_scale(
        &self,
        call: &Call,
        change: &Change,
        notes: &mut Notes,
    ) -> Result<Option<Arc<Value>>, Failure> {
        let definition = &call.definition;
        let paths = definition.scale.as_ref().ok_or_else(Failure::no_resource)?;
        let dry_run = call.is_dry_run();
        let live = self.find(call)?;
        let old = self.scale_of(call, &live)?;
        let scale = change.apply_to_scale(&old)?;
        let mut scale = read(scale, change)?;
        scale["kind"] = "Scale".into();
        scale["apiVersion"] = "autoscaling/v1".into();
        let attributes = Attributes {
            call,
            operation: Operation::Update,
            name: call.name.clone(),
            options: call.options("UpdateOptions"),
            dry_run,
        };
        let scale = self.mutate(&attributes, Some(scale), Some(&old), notes).await?.unwrap_or_default();
        let said = metadata::version(&scale);
        if !said.is_empty() && said != metadata::version(&live) {
            return Err(Failure::modified(&call.subject()));
        }
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let subject = Subject {
                group: "autoscaling".to_owned(),
                kind: "Scale".to_owned(),
                name: call.name.clone(),
            };
            let why = "must be greater than or equal to 0";
            // Custom resources say where it is stored.
            let field = if definition.is_custom() {
                paths.spec.replace('/', ".")
            } else {
                "spec.replicas".to_owned()
            };
            return Err(Failure::invalid(&subject, &[Cause::invalid(field, &json!(replicas), why)]));
        }
        self.validate(&attributes, Some(&scale), Some(&old), notes).await?;

        let mut new = Value::clone(&live);
        set(&mut new, &paths.spec, replicas.into());
        let time = self.now().rfc3339();
        let manager = call.manager();
        let writer = Writer { manager: &manager, subresource: "scale", time: &time };
        let mut new = managed::updated(definition, Some(&live), new, writer);
        let before = live.pointer(&paths.spec).and_then(Value::as_i64).unwrap_or(0);
        if replicas == before {
            set_apart(&mut new, &paths.spec);
        } else if replicas == 0
            && let Some(Value::Array(entries)) = metadata::of(&mut new).get_mut("managedFields")
        {
            // A scale of none says nothing of replicas, so that nobody owns them.
            entries.retain(|entry| entry["subresource"] != "scale");
        }
        prepare::update(definition, "", &live, &mut new, &time);
        validate::update(definition, "", &live, &new)?;
        Ok(self.commit(call, &live, new, dry_run))
    }
}

/// Who updated the replicas that a scale leaves as they are owns them in an entry of its own, which has no time: a scale
/// knows owners, and not since when.
fn set_apart(object: &mut Value, pointer: &str) {
    let path: Vec<String> = pointer.split('/').skip(1).map(|name| format!("f:{name}")).collect();
    let place: String = path.iter().map(|name| format!("/{name}")).collect();
    let Some(Value::Array(entries)) = metadata::of(object).get_mut("managedFields") else { return };
    let mut apart = Vec::new();
    entries.retain_mut(|entry| {
        let owns = entry["fieldsV1"].pointer(&place).is_some();
        if entry["operation"] != "Update" || entry.get("time").is_none() || !owns {
            return true;
        }
        let mut own = entry.clone();
        metadata::as_map(&mut own).remove("time");
        own["fieldsV1"] = path.iter().rev().fold(json!({}), |below, name| json!({name: below}));
        apart.push(own);
        without(&mut entry["fieldsV1"], &path);
        entry["fieldsV1"] != json!({})
    });
    entries.splice(0..0, apart);
}

/// Removes a field, and what held nothing else.
fn without(fields: &mut Value, path: &[String]) {
    let (Some((first, rest)), Value::Object(map)) = (path.split_first(), fields) else { return };
    if let Some(below) = map.get_mut(first) {
        without(below, rest);
        if rest.is_empty() || *below == json!({}) {
            map.remove(first);
        }
    }
}

/// A scale, if it is one.
fn read(scale: Value, change: &Change) -> Result<Value, Failure> {
    let read = decode(SCALE, scale.clone(), Fill::Zero).map_err(|error| {
        let message = format!("Scale in version \"v1\" cannot be handled as a Scale: {error}");
        change.blame(Failure::bad_request(message), || scale)
    })?;
    Ok(read.value)
}

/// Sets what a pointer points to, and makes the way there.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for part in pointer.split('/').skip(1) {
        at = metadata::as_map(at).entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// A selector as text: `a=b,c in (d,e)`.
fn text_of(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut parts: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(",");
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.join(",")
}
