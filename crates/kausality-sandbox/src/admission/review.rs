//! What a hook is asked: the AdmissionReview.

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::Write;
use crate::call::Call;
use crate::identity::User;
use crate::kinds::Definition;
use crate::status::Failure;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write that is about to happen.
pub(crate) struct Attributes<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: Operation,
    /// Empty if it is yet to be made up.
    pub(crate) name: String,
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Review<'a> {
    kind: &'a str,
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    request: Request<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: &'a str,
    kind: Kind<'a>,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Kind<'a>,
    request_resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'a str,
    user_info: &'a User,
    object: Option<&'a Value>,
    old_object: Option<&'a Value>,
    dry_run: bool,
    options: &'a Value,
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

impl Attributes<'_> {
    pub(crate) fn is_scale(&self) -> bool {
        self.call.subresource == "scale"
    }

    pub(super) fn write(&self) -> Write<'_> {
        let definition = &self.call.definition;
        Write {
            operation: self.operation.as_str(),
            group: &definition.group,
            version: &definition.version,
            resource: &definition.plural,
            subresource: &self.call.subresource,
            namespace: &self.call.namespace,
            user: &self.call.user.name,
        }
    }

    /// The review, in the version of a definition.
    pub(super) fn review(
        &self,
        uid: &str,
        definition: &Definition,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Bytes, Failure> {
        let call = self.call;
        let convert = |object: Option<&Value>| object.and_then(|object| self.converted(definition, object));
        let (converted, converted_old) = (convert(object), convert(old));
        let kind = |definition| self.kind(definition);
        let resource = |definition: &Definition| -> (String, String, String) {
            (definition.group.clone(), definition.version.clone(), definition.plural.clone())
        };
        let (group, version, plural) = resource(definition);
        let (own_group, own_version, own_plural) = resource(&call.definition);
        let review = Review {
            kind: "AdmissionReview",
            api_version: "admission.k8s.io/v1",
            request: Request {
                uid,
                kind: kind(definition),
                resource: Resource { group: &group, version: &version, resource: &plural },
                sub_resource: &call.subresource,
                request_kind: kind(&call.definition),
                request_resource: Resource {
                    group: &own_group,
                    version: &own_version,
                    resource: &own_plural,
                },
                request_sub_resource: &call.subresource,
                name: &self.name,
                namespace: self.namespace(),
                operation: self.operation.as_str(),
                user_info: &call.user,
                object: converted.as_ref().or(object),
                old_object: converted_old.as_ref().or(old),
                dry_run: self.dry_run,
                options: &self.options,
            },
        };
        serde_json::to_vec(&review).map(Bytes::from).map_err(Failure::internal)
    }

    /// What expressions know as `request`, in the version of a definition.
    pub(super) fn facts(&self, definition: &Definition) -> Value {
        let resource = |definition: &Definition| json!({"group": definition.group, "version": definition.version, "resource": definition.plural});
        let mut facts = json!({
            "kind": self.kind(definition), "resource": resource(definition),
            "requestKind": self.kind(&self.call.definition), "requestResource": resource(&self.call.definition),
            "operation": self.operation.as_str(), "userInfo": self.call.user,
            "dryRun": self.dry_run, "options": self.options,
        });
        let subresource = self.call.subresource.as_str();
        let texts = [
            ("subResource", subresource),
            ("requestSubResource", subresource),
            ("name", &self.name),
            ("namespace", self.namespace()),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            facts[key] = text.into();
        }
        facts
    }

    /// An object in the version of a definition, if it is another.
    pub(super) fn converted(&self, definition: &Definition, object: &Value) -> Option<Value> {
        let own = &self.call.definition;
        if definition.version == own.version && definition.group == own.group || self.is_scale() {
            return None;
        }
        let mut object = object.clone();
        object["apiVersion"] = definition.api_version().into();
        Some(object)
    }

    /// A namespace is in itself.
    fn namespace(&self) -> &str {
        if self.call.definition.is("", "namespaces") { &self.name } else { &self.call.namespace }
    }

    fn kind<'d>(&self, definition: &'d Definition) -> Kind<'d> {
        if self.is_scale() {
            return Kind { group: "autoscaling", version: "v1", kind: "Scale" };
        }
        Kind { group: &definition.group, version: &definition.version, kind: &definition.kind }
    }
}
