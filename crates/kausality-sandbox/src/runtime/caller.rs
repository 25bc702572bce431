//! How controllers read and write: as anybody else does, over the API.

use std::sync::Arc;

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::Road;
use crate::controllers::{Action, Delete, Key, Read, Refusal, Resource, Write};
use crate::identity::User;

/// Somebody who calls the API.
pub(super) struct Caller {
    pub(super) road: Arc<dyn Road>,
    pub(super) user: User,
    pub(super) agent: &'static str,
}

impl Caller {
    /// What is there. Only what the API says is not found is not; all else says nothing about it.
    pub(super) async fn read(&self, read: &Read) -> Result<Vec<Arc<Value>>, Refusal> {
        let url = match read {
            Read::Object(key) => object_url(key),
            Read::Collection { resource, namespace } => collection_url(resource, namespace),
        };
        let body = match self.call(Method::GET, &url, "application/json", &Value::Null).await {
            Err(Refusal::NotFound) => return Ok(Vec::new()),
            answer => answer?,
        };
        let mut found = parse(&body)?;
        let Read::Collection { resource, .. } = read else { return Ok(vec![Arc::new(found)]) };
        let Some(Value::Array(items)) = found.get_mut("items").map(Value::take) else {
            return Err(Refusal::Unknown(format!("{url} is no list")));
        };
        let named = |mut item: Value| {
            item["apiVersion"] = resource.api_version().into();
            item["kind"] = resource.kind.as_ref().into();
            Arc::new(item)
        };
        Ok(items.into_iter().map(named).collect())
    }

    pub(super) async fn write(&self, write: &Write) -> Result<(), Refusal> {
        let (key, json, merge) = (&write.key, "application/json", "application/merge-patch+json");
        let part = |name: &str| format!("{}/{name}", object_url(key));
        let options;
        let (method, url, content, body) = match &write.action {
            Action::Create(object) => {
                (Method::POST, collection_url(&key.resource, &key.namespace), json, object)
            }
            Action::Update(object) => (Method::PUT, object_url(key), json, object),
            Action::UpdateStatus(object) => (Method::PUT, part("status"), json, object),
            Action::Finalize(object) => (Method::PUT, part("finalize"), json, object),
            Action::Bind(binding) => (Method::POST, part("binding"), json, binding),
            Action::Patch(patch) => (Method::PATCH, object_url(key), merge, patch),
            Action::PatchStatus(patch) => (Method::PATCH, part("status"), merge, patch),
            Action::Delete(delete) => {
                options = delete_options(delete);
                (Method::DELETE, object_url(key), json, &options)
            }
        };
        self.call(method, &url, content, body).await.map(|_| ())
    }

    async fn call(&self, method: Method, url: &str, content: &str, body: &Value) -> Result<Bytes, Refusal> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(header::CONTENT_TYPE, content)
            .header(header::USER_AGENT, self.agent)
            .extension(self.user.clone())
            .body(body)
            .map_err(|error| unknown(&error))?;
        let answer = self.road.call(request).await.map_err(|error| unknown(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| unknown(&error))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        // What is not served at all is answered in plain text.
        let answer = serde_json::from_slice(&body)
            .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&body).trim()}));
        let says = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Err(match status {
            StatusCode::NOT_FOUND => Refusal::NotFound,
            StatusCode::CONFLICT if says("reason") == "AlreadyExists" => Refusal::AlreadyExists,
            StatusCode::CONFLICT => Refusal::Conflict,
            status if status.is_client_error() => Refusal::Denied(says("message")),
            _ => Refusal::Unknown(says("message")),
        })
    }
}

fn unknown(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::Unknown(error.to_string())
}

fn parse(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| unknown(&error))
}

fn collection_url(resource: &Resource, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let within = match namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}/{}{within}/{}", resource.api_version(), resource.plural)
}

fn object_url(key: &Key) -> String {
    format!("{}/{}", collection_url(&key.resource, &key.namespace), key.name)
}

fn delete_options(delete: &Delete) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let Some(propagation) = delete.propagation {
        options["propagationPolicy"] = propagation.as_str().into();
    }
    if let Some(seconds) = delete.grace_period_seconds {
        options["gracePeriodSeconds"] = seconds.into();
    }
    for (name, value) in [("uid", &delete.uid), ("resourceVersion", &delete.resource_version)] {
        if let Some(value) = value {
            options["preconditions"][name] = value.as_str().into();
        }
    }
    options
}
