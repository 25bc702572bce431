//! Names and labels.

use serde_json::{Value, json};

use crate::kinds::Definition;
use crate::metadata;
use crate::status::Cause;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(super) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation \
    is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Faults of the name and the labels of an object that is created.
pub(super) fn of(definition: &Definition, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = metadata::name(object);
    let at = "metadata.name";
    if name.is_empty() {
        causes.push(Cause::required(at, "name or generateName is required"));
    } else if definition.group == "rbac.authorization.k8s.io" {
        if name == "." || name == ".." || name.contains(['/', '%']) {
            causes.push(Cause::invalid(at, &json!(name), "may not contain '/' or '%'"));
        }
    } else if !definition.is_custom() && ["Namespace", "Service"].contains(&definition.kind.as_str()) {
        if name.len() > 63 {
            causes.push(Cause::invalid(at, &json!(name), "must be no more than 63 bytes"));
        } else if !is_label(name) {
            causes.push(Cause::invalid(at, &json!(name), LABEL));
        }
    } else if name.len() > 253 {
        causes.push(Cause::invalid(at, &json!(name), "must be no more than 253 bytes"));
    } else if !name.split('.').all(is_label_of_any_length) {
        causes.push(Cause::invalid(at, &json!(name), SUBDOMAIN));
    }
    causes.extend(labels(object));
    causes
}

/// Faults of labels.
pub(super) fn labels(object: &Value) -> Vec<Cause> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let wrong =
        labels.into_iter().flatten().filter(|(_, value)| !is_value(value.as_str().unwrap_or_default()));
    wrong.map(|(_, value)| Cause::invalid("metadata.labels", value, LABEL_VALUE)).collect()
}

/// Whether a name is a DNS label.
pub(super) fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_label_of_any_length(name)
}

fn is_label_of_any_length(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.starts_with(plain)
        && name.ends_with(plain)
        && name.chars().all(|letter| plain(letter) || letter == '-')
}

fn is_value(value: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric();
    value.is_empty()
        || value.len() <= 63
            && value.starts_with(plain)
            && value.ends_with(plain)
            && value.chars().all(|letter| plain(letter) || "-_.".contains(letter))
}
