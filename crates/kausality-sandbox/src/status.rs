//! How the API refuses: `Status` objects with the codes, reasons and words of Kubernetes.

use serde_json::{Map, Value, json};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP code.
    pub code: u16,
    /// The reason, for programs: `NotFound`.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Value>,
}

/// What a request is about, as messages name it: `deployments.apps "web"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The group; empty for the core group.
    pub group: String,
    /// The plural of the resource, or the kind where a message names that.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// One fault of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid` and the like.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub field: String,
}

impl Subject {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    fn details(&self) -> Map<String, Value> {
        let parts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind)];
        let set = parts.into_iter().filter(|(_, text)| !text.is_empty());
        set.map(|(key, text)| (key.to_owned(), text.as_str().into())).collect()
    }
}

impl Cause {
    /// A value that cannot be.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    /// A value that is missing.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A value that may not be set.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// A value that is none of those that there are.
    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[String]) -> Self {
        let supported: Vec<_> = supported.iter().map(|text| format!("{text:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    /// A value of too many bytes.
    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.into() }
    }

    /// A list of too many items.
    pub(crate) fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {most} items");
        Self { reason: "FieldValueTooMany", message, field: field.into() }
    }

    /// A value that names what is not there.
    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Not found: {value}");
        Self { reason: "FieldValueNotFound", message, field: field.into() }
    }

    /// A value that is there twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {value}");
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }
}

impl Failure {
    /// A refusal without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: None }
    }

    fn with(mut self, details: Map<String, Value>) -> Self {
        self.details = Some(Value::Object(details));
        self
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Nobody knows who asks.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// It may not be.
    pub fn forbidden(subject: &Subject, why: &str) -> Self {
        let name = if subject.name.is_empty() { String::new() } else { format!(" {:?}", subject.name) };
        let message = format!("{}{name} is forbidden: {why}", subject.qualified());
        Self::new(403, "Forbidden", message).with(subject.details())
    }

    /// There is no such object.
    pub fn not_found(subject: &Subject) -> Self {
        let message = format!("{} {:?} not found", subject.qualified(), subject.name);
        Self::new(404, "NotFound", message).with(subject.details())
    }

    /// There is no such resource.
    pub fn no_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with(Map::new())
    }

    /// The resource knows no such verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(Map::new())
    }

    /// Pods are only said to run.
    pub fn not_running(pod: &str, part: &str) -> Self {
        let message = format!("Pods do not run in the sandbox: the Pod {pod:?} has no {part:?}");
        Self::new(501, "NotImplemented", message)
    }

    /// There is an object of this name.
    pub fn already_exists(subject: &Subject) -> Self {
        let message = format!("{} {:?} already exists", subject.qualified(), subject.name);
        Self::new(409, "AlreadyExists", message).with(subject.details())
    }

    /// The object has changed.
    pub fn conflict(subject: &Subject, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", subject.qualified(), subject.name);
        Self::new(409, "Conflict", message).with(subject.details())
    }

    /// The object has changed since it was read.
    pub fn modified(subject: &Subject) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, why)
    }

    /// The history that is asked for is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The body is in a form that nobody reads.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The object is not valid. `subject.kind` is the kind here, not the resource.
    pub fn invalid(subject: &Subject, causes: &[Cause]) -> Self {
        let all: Vec<_> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let all = match all.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", all.join(", ")),
        };
        let message = format!("{} {:?} is invalid: {all}", subject.qualified(), subject.name);
        let causes: Vec<_> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        let mut details = subject.details();
        details.insert("causes".to_owned(), causes.into());
        Self::new(422, "Invalid", message).with(details)
    }

    /// Something went wrong that is nobody's fault outside.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        let causes =
            json!({"causes": [{"message": message.trim_start_matches("Internal error occurred: ")}]});
        Self { details: Some(causes), ..Self::new(500, "InternalError", message) }
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Some(object) = status.as_object_mut() {
            if !self.reason.is_empty() {
                object.insert("reason".to_owned(), self.reason.as_str().into());
            }
            if let Some(details) = &self.details {
                object.insert("details".to_owned(), details.clone());
            }
        }
        status
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for Failure {}
