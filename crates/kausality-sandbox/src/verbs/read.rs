//! Reading: one object, or many.

use std::sync::Arc;

use base64::Engine as _;
use http::Response;
use serde_json::{Value, json};

use crate::answer::{self, Body, Done};
use crate::call::Call;
use crate::kinds::Definition;
use crate::metadata;
use crate::request::Form;
use crate::sandbox::Sandbox;
use crate::status::{Cause, Failure};
use crate::store::selector::Selector;
use crate::store::{Compacted, Place};

/// What a list found.
pub(crate) struct Listed {
    pub(crate) objects: Vec<Arc<Value>>,
    pub(crate) metadata: Value,
}

/// Where a list goes on.
struct Continue {
    revision: u64,
    after: Place,
}

impl Sandbox {
    /// One object, or its scale.
    pub(crate) fn get(&self, call: &Call) -> Done {
        let object = self.find(call)?;
        match call.subresource.as_str() {
            "scale" => Ok((200, Arc::new(self.scale_of(call, &object)?))),
            "" | "status" => Ok((200, object)),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    /// The object that a call names, in its version.
    pub(crate) fn find(&self, call: &Call) -> Result<Arc<Value>, Failure> {
        let stored = self.state().store.get(&call.definition.collection, &call.place()).cloned();
        stored.map(|object| call.definition.serve(&object)).ok_or_else(|| Failure::not_found(&call.subject()))
    }

    pub(crate) fn list_or_watch(&self, call: &Call) -> Result<Response<Body>, Failure> {
        if call.query.flag("watch") {
            check_numbers(call)?;
            return self.watch(call);
        }
        let listed = self.list(call)?;
        let definition = &call.definition;
        Ok(match call.form {
            Form::Table => {
                let table = crate::table::of(definition, &listed.objects, listed.metadata, self.now(), call);
                answer::json(200, &table)
            }
            Form::Metadata => {
                let items: Vec<_> = listed.objects.iter().map(|object| metadata_of(object)).collect();
                answer::json(
                    200,
                    &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                        "metadata": listed.metadata, "items": items}),
                )
            }
            Form::Object => answer::json(200, &list_object(definition, &listed)),
        })
    }

    /// The objects that a call asks for.
    pub(crate) fn list(&self, call: &Call) -> Result<Listed, Failure> {
        let definition = &call.definition;
        let (labels, fields) = (call.query.get("labelSelector"), call.query.get("fieldSelector"));
        let selector = Selector::parse(definition, labels, fields)?;
        check(call)?;
        let namespace = (!call.namespace.is_empty()).then_some(call.namespace.as_str());
        let from = call.query.get("continue");
        let from = if from.is_empty() { None } else { Some(Continue::decode(from)?) };
        let wanted = call.query.get("resourceVersion");
        let exact = from.as_ref().map(|from| from.revision).or_else(|| {
            let revision = wanted.parse().ok().filter(|revision| *revision > 0);
            revision.filter(|_| call.query.get("resourceVersionMatch") == "Exact")
        });
        let state = self.state();
        let current = state.store.revision();
        if !wanted.is_empty() && wanted.parse::<u64>().is_err() {
            return Err(Failure::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {wanted:?}: strconv.ParseUint: parsing {wanted:?}: invalid syntax"
            )));
        }
        if let Some(future) = wanted.parse::<u64>().ok().filter(|wanted| *wanted > current) {
            let message = format!("Timeout: Too large resource version: {future}, current: {current}");
            let details = Some(json!({"causes": [{"reason": "ResourceVersionTooLarge",
                "message": "Too large resource version"}], "retryAfterSeconds": 1}));
            return Err(Failure { details, ..Failure::new(504, "Timeout", message) });
        }
        let (revision, all) = match exact {
            Some(revision) => {
                let then = state.store.list_at(&definition.collection, namespace, revision);
                (revision, then.map_err(|Compacted(_)| expired_continue())?)
            }
            None => (current, state.store.list(&definition.collection, namespace)),
        };
        drop(state);

        let after = from.map(|from| from.after);
        let matching = all
            .into_iter()
            .filter(|(place, _)| after.as_ref().is_none_or(|after| place > after))
            .filter(|(_, object)| selector.matches(object));
        let limit = call.query.number("limit").filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let mut matching: Vec<_> = matching.collect();
        let mut list = json!({"resourceVersion": revision.to_string()});
        // Lists of custom resources say so if there is no more.
        if definition.is_custom() {
            list["continue"] = "".into();
        }
        if matching.len() > limit {
            let left = matching.len() - limit;
            matching.truncate(limit);
            if let Some((place, _)) = matching.last() {
                list["continue"] = Continue { revision, after: place.clone() }.encode().into();
                if labels.is_empty() && fields.is_empty() {
                    list["remainingItemCount"] = left.into();
                }
            }
        }
        let objects = matching.into_iter().map(|(_, object)| definition.serve(&object)).collect();
        Ok(Listed { objects, metadata: list })
    }
}

/// Whether numbers are ones.
fn check_numbers(call: &Call) -> Result<(), Failure> {
    for key in ["limit", "timeoutSeconds"] {
        let said = call.query.get(key);
        if !said.is_empty() && said.parse::<i64>().is_err() {
            let message = format!("strconv.ParseInt: parsing {said:?}: invalid syntax");
            return Err(Failure::bad_request(message));
        }
    }
    Ok(())
}

/// Whether a list is asked for as lists are.
fn check(call: &Call) -> Result<(), Failure> {
    check_numbers(call)?;
    let (version, way) = (call.query.get("resourceVersion"), call.query.get("resourceVersionMatch"));
    let at = "resourceVersionMatch";
    let mut causes = Vec::new();
    if way.is_empty() {
        return Ok(());
    }
    if version.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        causes.push(Cause::forbidden(at, why));
    }
    if !call.query.get("continue").is_empty() {
        causes.push(Cause::forbidden(at, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if way == "Exact" && version == "0" {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(Cause::forbidden(at, why));
    }
    let ways = ["Exact", "NotOlderThan"];
    if !ways.contains(&way) {
        causes.push(Cause::unsupported(at, &json!(way), &ways.map(str::to_owned)));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(&crate::call::options_subject("ListOptions"), &causes))
}

/// A list as an object.
pub(crate) fn list_object(definition: &Definition, listed: &Listed) -> Value {
    json!({
        "kind": definition.list_kind, "apiVersion": definition.api_version(),
        "metadata": listed.metadata, "items": listed.objects.iter().map(|object| item(definition, object)).collect::<Vec<_>>(),
    })
}

/// Items of built-in kinds do not say what they are: the list does.
fn item(definition: &Definition, object: &Arc<Value>) -> Value {
    let mut object = Value::clone(object);
    if !definition.is_custom() {
        let fields = metadata::as_map(&mut object);
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object
}

/// An object's metadata alone.
pub(crate) fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn expired_continue() -> Failure {
    Failure::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter.",
    )
}

impl Continue {
    fn encode(&self) -> String {
        let text = json!([self.revision, self.after.0, self.after.1]).to_string();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    }

    fn decode(text: &str) -> Result<Self, Failure> {
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok();
        let parts = bytes.and_then(|bytes| serde_json::from_slice::<(u64, String, String)>(&bytes).ok());
        let Some((revision, namespace, name)) = parts else {
            return Err(Failure::bad_request("continue key is not valid: it was not made by this server"));
        };
        Ok(Self { revision, after: (namespace, name) })
    }
}
