//! What a hook is asked: the AdmissionReview.

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::Value;

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
        let same = definition.version == call.definition.version && definition.group == call.definition.group;
        let version = definition.api_version();
        let convert = |object: Option<&Value>| {
            if same || self.is_scale() {
                return None;
            }
            let mut object = object?.clone();
            object["apiVersion"] = version.as_str().into();
            Some(object)
        };
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
                namespace: if call.definition.is("", "namespaces") { &self.name } else { &call.namespace },
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

    fn kind<'d>(&self, definition: &'d Definition) -> Kind<'d> {
        if self.is_scale() {
            return Kind { group: "autoscaling", version: "v1", kind: "Scale" };
        }
        Kind { group: &definition.group, version: &definition.version, kind: &definition.kind }
    }
}
