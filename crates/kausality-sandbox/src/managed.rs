//! `metadata.managedFields` of what is written.

use std::collections::BTreeMap;

use kausality_fields::managed::{Request, Server, ServerError, sort};
use kausality_fields::ownership::{Filter, Force, OwnershipError, Rules};
use kausality_fields::typed::Invalid;
use kausality_fields::{FieldSet, Path, Scalar, Step};
use serde_json::{Value, json};

use crate::kinds::Definition;
use crate::status::Failure;

/// Who writes, what part of the object, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) time: &'a str,
}

/// The object with the entries that come of an update. If they cannot be had, those of the live object stay.
pub(crate) fn updated(
    definition: &Definition,
    live: Option<&Value>,
    mut new: Value,
    writer: Writer<'_>,
) -> Value {
    let version = definition.api_version();
    let empty = if live.is_none() { definition.empty.clone() } else { Value::Null };
    match server(definition, writer.subresource, empty).entries(live, &new, &writer.request(&version)) {
        Ok(mut entries) => {
            // What comes through `scale` has no time.
            if writer.subresource == "scale" {
                let own = entries.iter_mut().filter(|entry| entry.subresource == "scale");
                own.for_each(|entry| entry.time = None);
                sort(&mut entries);
            }
            let entries = (!entries.is_empty()).then(|| json!(entries));
            crate::metadata::set(crate::metadata::of(&mut new), "managedFields", entries);
        }
        Err(error) => {
            tracing::debug!(%error, kind = definition.kind, "managed fields cannot be computed");
            if let Some(live) = live {
                crate::metadata::take(&mut new, live, "managedFields");
            }
        }
    }
    new
}

/// The object and its entries after an apply.
pub(crate) fn applied(
    definition: &Definition,
    live: Option<&Value>,
    config: &Value,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, Failure> {
    let version = definition.api_version();
    let force = if force { Force::Yes } else { Force::No };
    let server = server(definition, writer.subresource, definition.empty.clone());
    let done = server.apply(live, config, &writer.request(&version), &force);
    done.map(|served| served.to_value()).map_err(|error| refused(definition, config, error))
}

impl<'a> Writer<'a> {
    fn request(&self, version: &'a str) -> Request<'a> {
        Request {
            manager: self.manager,
            api_version: version,
            subresource: self.subresource,
            time: self.time,
        }
    }
}

/// What an object is before it is created matters only where it may be.
fn server<'d>(definition: &'d Definition, subresource: &str, empty: Value) -> Server<'d> {
    let mut ignored = BTreeMap::new();
    let fields: Vec<&[&str]> = match subresource {
        "status" if definition.is_custom() => vec![&["apiVersion"], &["kind"], &["spec"]],
        "status" if definition.kind == "Deployment" => vec![&["spec"], &["metadata", "labels"]],
        "status" if definition.kind == "Pod" => {
            vec![&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        "status" => vec![&["spec"]],
        _ if definition.status => vec![&["status"]],
        _ => Vec::new(),
    };
    if !fields.is_empty() {
        let path =
            |names: &&[&str]| names.iter().map(|name| Step::Field((*name).to_owned())).collect::<Path>();
        let set: FieldSet = fields.iter().map(path).collect();
        ignored.insert(definition.api_version(), Filter::Except(set));
    }
    let rules = Rules { ignored, ..Rules::new() };
    Server { of: definition.typed(), rules, empty }
}

/// A path as Go writes it: `.spec.containers[name="app"].image`.
fn go_path(path: &Path) -> String {
    let scalar = |scalar: &Scalar| match scalar {
        Scalar::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Key(keys) => {
            let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={}", scalar(value))).collect();
            format!("[{}]", keys.join(","))
        }
        Step::Value(value) => format!("[={}]", scalar(value)),
        Step::Index(nth) => format!("[{nth}]"),
    };
    path.steps().iter().map(step).collect()
}

fn refused(definition: &Definition, config: &Value, error: ServerError) -> Failure {
    match error {
        ServerError::Ownership(OwnershipError::Conflicts(conflicts)) => {
            let mut causes = Vec::new();
            let mut owners: Vec<String> = Vec::new();
            for (owner, path) in conflicts.iter() {
                let mut who = format!("{:?}", owner.manager);
                if !owner.subresource.is_empty() {
                    who = format!("{who} with subresource {:?}", owner.subresource);
                }
                if let Some(version) = &owner.api_version {
                    who = format!("{who} using {version}");
                }
                if !owners.contains(&who) {
                    owners.push(who.clone());
                }
                causes.push((who, go_path(&path)));
            }
            let list = |who: &str| -> Vec<&str> {
                causes.iter().filter(|(owner, _)| owner == who).map(|(_, path)| path.as_str()).collect()
            };
            let message = match (causes.as_slice(), owners.as_slice()) {
                ([(who, path)], _) => format!("Apply failed with 1 conflict: conflict with {who}: {path}"),
                (many, [who]) => format!(
                    "Apply failed with {} conflicts: conflicts with {who}:\n- {}",
                    many.len(),
                    list(who).join("\n- ")
                ),
                (many, owners) => {
                    let each = owners
                        .iter()
                        .map(|who| format!("conflicts with {who}:\n- {}", list(who).join("\n- ")));
                    format!(
                        "Apply failed with {} conflicts: {}",
                        many.len(),
                        each.collect::<Vec<_>>().join("\n")
                    )
                }
            };
            let causes: Vec<_> = causes
                .iter()
                .map(|(who, path)| {
                    json!({"reason": "FieldManagerConflict", "message": format!("conflict with {who}"), "field": path})
                })
                .collect();
            Failure { details: Some(json!({"causes": causes})), ..Failure::new(409, "Conflict", message) }
        }
        ServerError::HasManagedFields => Failure::bad_request("metadata.managedFields must be nil"),
        ServerError::Ownership(OwnershipError::Invalid(fault)) => {
            let (namespace, name) =
                (crate::metadata::field(config, "namespace"), crate::metadata::name(config));
            let why = match fault.problem {
                Invalid::Undeclared => "field not declared in schema".to_owned(),
                problem => problem.to_string(),
            };
            let place = format!("{namespace}/{name}; {}, Kind={}", definition.api_version(), definition.kind);
            let message = format!("failed to create typed patch object ({place}): .{}: {why}", fault.path);
            Failure::new(500, "", message)
        }
        error => Failure::bad_request(error.to_string()),
    }
}
