//! A request for a resource.

use std::sync::Arc;

use http::Method;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use crate::answer::Notes;
use crate::audit::AuditEntry;
use crate::identity::User;
use crate::kinds::structural;
use crate::kinds::{Definition, Registry, Shape};
use crate::observer::Reviewed;
use crate::request::{Form, Query};
use crate::status::{Cause, Failure, Subject};
use crate::types::decode::{Fill, decode};
use crate::types::protobuf;

/// A request for a resource.
pub(crate) struct Call {
    pub(crate) user: User,
    pub(crate) agent: String,
    pub(crate) definition: Arc<Definition>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    pub(crate) reviewed: Reviewed,
}

/// What happens to fields that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The longest name of a manager of fields.
const MAX_MANAGER: usize = 128;

impl Call {
    /// Writes what is asked for into the audit log.
    pub(crate) fn enter(&self, entry: &mut AuditEntry, method: &Method) {
        let collection = self.name.is_empty();
        entry.verb = match method.as_str() {
            "GET" | "HEAD" if self.query.flag("watch") => "watch",
            "GET" | "HEAD" if collection => "list",
            "GET" | "HEAD" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if collection => "deletecollection",
            "DELETE" => "delete",
            _ => "",
        }
        .to_owned();
        entry.group.clone_from(&self.definition.group);
        entry.resource.clone_from(&self.definition.plural);
        entry.subresource.clone_from(&self.subresource);
        entry.namespace.clone_from(&self.namespace);
        entry.name.clone_from(&self.name);
    }

    /// The same call for another object.
    pub(crate) fn of(&self, namespace: &str, name: &str) -> Self {
        Self {
            user: self.user.clone(),
            agent: self.agent.clone(),
            definition: Arc::clone(&self.definition),
            registry: Arc::clone(&self.registry),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            query: self.query.clone(),
            form: self.form,
            content_type: self.content_type.clone(),
            body: self.body.clone(),
            reviewed: Reviewed::default(),
        }
    }

    pub(crate) fn place(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    pub(crate) fn subject(&self) -> Subject {
        self.definition.subject(&self.name)
    }

    /// Whether the parameters of a write are valid. `kind` is what they are called: `CreateOptions`.
    pub(crate) fn check_options(&self, kind: &str) -> Result<(), Failure> {
        let mut causes = Vec::new();
        let apply = self.content_type.starts_with("application/apply-patch");
        if kind == "PatchOptions" && apply && self.query.get("fieldManager").is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        if kind == "PatchOptions" && !apply && !self.query.get("force").is_empty() {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        if self.query.get("fieldManager").chars().count() > MAX_MANAGER {
            causes.push(Cause::too_long("fieldManager", MAX_MANAGER));
        }
        let dry = self.query.get("dryRun");
        if !["", "All"].contains(&dry) {
            causes.push(Cause::unsupported("dryRun", &json!([dry]), &["All".to_owned()]));
        }
        let known = ["", "Ignore", "Strict", "Warn"];
        let said = self.query.get("fieldValidation");
        if kind != "DeleteOptions" && !known.contains(&said) {
            causes.push(Cause::unsupported("fieldValidation", &json!(said), &known.map(str::to_owned)));
        }
        if causes.is_empty() { Ok(()) } else { Err(Failure::invalid(&options_subject(kind), &causes)) }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }

    fn field_validation(&self) -> FieldValidation {
        match self.query.get("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// Who owns what this call changes: as it says itself, else the name of its program.
    pub(crate) fn manager(&self) -> String {
        let said = self.query.get("fieldManager");
        if !said.is_empty() {
            return said.to_owned();
        }
        let program = self.agent.split('/').next().unwrap_or_default();
        let printable = program.chars().filter(|letter| !letter.is_control());
        printable.take(MAX_MANAGER).collect()
    }

    /// The options as admission reviews have them.
    pub(crate) fn options(&self, kind: &str) -> Value {
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        for key in ["fieldManager", "fieldValidation"] {
            if !self.query.get(key).is_empty() {
                options[key] = self.query.get(key).into();
            }
        }
        if !self.query.get("dryRun").is_empty() {
            options["dryRun"] = json!([self.query.get("dryRun")]);
        }
        options
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        let kind = self.content_type.split(';').next().unwrap_or_default().trim();
        match kind {
            "" | "application/json" => parse_json(&self.body),
            "application/yaml" | "text/yaml" => parse_yaml(&self.body),
            "application/vnd.kubernetes.protobuf"
                if !self.definition.is_custom() || is_protobuf(&self.body) =>
            {
                protobuf::decode(&self.body).map_err(Failure::bad_request)
            }
            _ => {
                let accepted = if self.definition.is_custom() {
                    "application/json, application/yaml"
                } else {
                    "application/json, application/yaml, application/vnd.kubernetes.protobuf"
                };
                Err(Failure::unsupported_media_type(accepted))
            }
        }
    }

    /// The object that is sent, as far as its kind knows it, with its defaults.
    pub(crate) fn object(&self, notes: &mut Notes) -> Result<Value, Failure> {
        let unrecognised = |why: &str| {
            let kind = &self.definition.kind;
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why}"
            ))
        };
        let mut value = self.json().map_err(|failure| match failure.message.strip_prefix(NOT_JSON) {
            Some(why) => unrecognised(why),
            None => failure,
        })?;
        if value.is_null() {
            value = json!({});
        }
        let Some(object) = value.as_object_mut() else { return Err(unrecognised("it is not an object")) };
        check_type(object, &self.definition)?;
        self.known(value, Fill::Zero, notes)
    }

    /// What is known of an object, with its defaults. What is not is dropped, warned of, or refused.
    pub(crate) fn known(&self, value: Value, fill: Fill, notes: &mut Notes) -> Result<Value, Failure> {
        let (value, unknown) = known(&self.definition, value, fill)?;
        if !unknown.is_empty() {
            let unknown: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
            match self.field_validation() {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => {
                    notes.warnings.extend(
                        unknown.into_iter().filter(|text| !notes.warnings.contains(text)).collect::<Vec<_>>(),
                    );
                }
                FieldValidation::Strict => {
                    return Err(Failure::bad_request(format!(
                        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {all}",
                        kind = self.definition.kind,
                        version = self.definition.version,
                        all = unknown.join(", ")
                    )));
                }
            }
        }
        Ok(value)
    }
}

/// What is known of an object, with its defaults if it is one; and the fields that are not known.
pub(crate) fn known(
    definition: &Definition,
    value: Value,
    fill: Fill,
) -> Result<(Value, Vec<String>), Failure> {
    match &definition.shape {
        Shape::BuiltIn(name) => {
            let decoded = decode(name, value, fill).map_err(|error| {
                Failure::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: {error}",
                    kind = definition.kind,
                    version = definition.version
                ))
            })?;
            let mut value = decoded.value;
            if fill == Fill::Zero {
                crate::defaults::apply(&definition.kind, &mut value);
            }
            Ok((value, decoded.unknown))
        }
        Shape::Custom(custom) => {
            let mut value = value;
            let mut unknown = crate::metadata::clean(&mut value, fill)?;
            if let Some(schema) = &custom.schema {
                unknown.extend(structural::prune(schema, &mut value));
                if fill == Fill::Zero {
                    structural::default(schema, &mut value);
                }
            }
            Ok((value, unknown))
        }
    }
}

/// The same, of an object that a patch has made. One of a built-in kind that has lost its version is read as nothing, and
/// so has no name.
pub(crate) fn check_patched(object: &mut Map<String, Value>, definition: &Definition) -> Result<(), Failure> {
    let lost = object.get("apiVersion").is_none_or(|version| version.is_null() || version == "");
    if definition.is_custom() {
        let said = object.insert("apiVersion".to_owned(), definition.api_version().into());
        check_type(object, definition)?;
        return match said {
            Some(Value::Null) => Err(Failure::bad_request("Object 'apiVersion' is null")),
            // What else it says is told when it is validated.
            Some(said) if !lost => {
                object.insert("apiVersion".to_owned(), said);
                Ok(())
            }
            _ => Err(Failure::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")),
        };
    }
    if lost {
        object.retain(|key, _| key == "kind");
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), "".into());
        object.insert("metadata".to_owned(), Value::Object(metadata));
    }
    check_type(object, definition)
}

/// Kind and version, which may be left out of built-in kinds.
pub(crate) fn check_type(object: &mut Map<String, Value>, definition: &Definition) -> Result<(), Failure> {
    let said = |object: &Map<String, Value>, key: &str| {
        object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let Definition { kind, version, group, .. } = definition;
    let api_version = definition.api_version();
    for key in ["kind", "apiVersion"] {
        if object.get(key).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return Err(Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
                 error: json: cannot unmarshal into Go struct field .{key} of type string"
            )));
        }
    }
    if definition.is_custom() {
        // What else than this kind it is, is told when it is validated.
        if said(object, "kind").is_none() {
            return Err(Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing"
            )));
        }
        let said = said(object, "apiVersion").unwrap_or_default();
        if said != api_version {
            return Err(Failure::bad_request(format!(
                "the API version in the data ({said}) does not match the expected API version ({api_version})"
            )));
        }
        return Ok(());
    }
    if let Some(said) = said(object, "kind").filter(|said| said != kind) {
        let group = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        return Err(Failure::bad_request(format!(
            "{said} in version {version:?} cannot be handled as a {kind}: converting ({version}.{said}) to ({group}.{kind}): \
             unknown conversion"
        )));
    }
    if let Some(said) = said(object, "apiVersion").filter(|said| *said != api_version) {
        return Err(Failure::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version {said:?} \
             in scheme \"pkg/runtime/scheme.go:111\"",
            said.rsplit('/').next().unwrap_or(&said)
        )));
    }
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.as_str().into());
    Ok(())
}

/// The options of a request, as messages name them.
pub(crate) fn options_subject(kind: &str) -> Subject {
    Subject { group: "meta.k8s.io".to_owned(), kind: kind.to_owned(), name: String::new() }
}

const NOT_JSON: &str = "not JSON: ";

/// Options of built-in types are sent so even where custom resources are not.
fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(b"k8s\0")
}

pub(crate) fn parse_json(text: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(text).map_err(|error| Failure::bad_request(format!("{NOT_JSON}{error}")))
}

pub(crate) fn parse_yaml(text: &[u8]) -> Result<Value, Failure> {
    // JSON is YAML, and most of what is sent as YAML is JSON.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let text = std::str::from_utf8(text).map_err(Failure::internal)?;
    serde_saphyr::from_str(text)
        .map_err(|error| Failure::bad_request(format!("error converting YAML to JSON: {error}")))
}
