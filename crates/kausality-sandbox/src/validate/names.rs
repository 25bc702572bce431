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
const HOST: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
pub(crate) const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

pub(crate) const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// The most that the annotations of an object may be, keys and values together, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Faults of the metadata of an object that is created.
pub(super) fn of(definition: &Definition, object: &Value) -> Vec<Cause> {
    let mut causes = name(definition, object);
    causes.extend(metadata(object));
    causes
}

/// Faults of a name, and of what it begins with.
pub(super) fn name(definition: &Definition, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = metadata::name(object);
    let prefix = metadata::field(object, "generateName");
    if !prefix.is_empty() {
        // Something follows a last dash.
        let prefix = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |start| format!("{start}a"));
        causes.extend(
            fault(definition, &prefix).map(|why| {
                Cause::invalid("metadata.generateName", &object["metadata"]["generateName"], &why)
            }),
        );
    }
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        causes.extend(fault(definition, name).map(|why| Cause::invalid("metadata.name", &json!(name), &why)));
    }
    causes
}

/// What is wrong with a name.
fn fault(definition: &Definition, name: &str) -> Option<String> {
    if definition.group == "rbac.authorization.k8s.io" {
        let wrong = name == "." || name == ".." || name.contains(['/', '%']);
        return wrong.then(|| "may not contain '/' or '%'".to_owned());
    }
    let fault = match definition.kind.as_str() {
        // Services are names of hosts, and those of old began with a letter.
        "Service" if !definition.is_custom() => host_fault(name),
        "Namespace" if !definition.is_custom() && name.len() > 63 => Some("must be no more than 63 bytes"),
        "Namespace" if !definition.is_custom() => (!is_label(name)).then_some(LABEL),
        _ => subdomain_fault(name),
    };
    fault.map(str::to_owned)
}

/// Faults of labels, annotations and finalizers.
pub(super) fn metadata(object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = labels(&metadata["labels"], "metadata.labels");
    for key in metadata["annotations"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !is_qualified(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &json!(key), QUALIFIED));
        }
    }
    if annotations_size(&metadata["annotations"]) > MAX_ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
    for finalizer in metadata::finalizers(object) {
        if !is_qualified(&finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &json!(finalizer), QUALIFIED));
        }
    }
    causes
}

/// The bytes of keys and values of annotations.
fn annotations_size(annotations: &Value) -> usize {
    let annotations = annotations.as_object().into_iter().flatten();
    annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Faults of labels.
pub(super) fn labels(labels: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        if !is_qualified(key) {
            causes.push(Cause::invalid(at, &json!(key), QUALIFIED));
        }
        if !is_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(at, value, LABEL_VALUE));
        }
    }
    causes
}

/// Finalizers of built-in kinds are known, or have a domain.
pub(super) fn finalizers(object: &Value) -> Vec<Cause> {
    let finalizers = metadata::finalizers(object).into_iter().enumerate();
    let unknown = finalizers.filter(|(_, name)| {
        !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name.as_str())
    });
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    unknown
        .map(|(nth, name)| Cause::invalid(format!("metadata.finalizers[{nth}]"), &json!(name), why))
        .collect()
}

/// What is wrong with a name that is to be a DNS subdomain.
pub(super) fn subdomain_fault(name: &str) -> Option<&'static str> {
    if name.len() > 253 {
        return Some("must be no more than 253 bytes");
    }
    (!is_subdomain(name)).then_some(SUBDOMAIN)
}

/// What is wrong with a name that is to be one of a host: a label that begins with a letter.
pub(super) fn host_fault(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    let host = is_label(name) && !name.starts_with(|first: char| first.is_ascii_digit());
    (!host).then_some(HOST)
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label_of_any_length)
}

/// A name, maybe with a domain before it: `example.com/name`.
pub(crate) fn is_qualified(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_value(name)
}

/// Whether a name may be that of a port.
pub(super) fn is_port(name: &str) -> bool {
    name.len() <= 15
        && is_label_of_any_length(name)
        && name.contains(|letter: char| letter.is_ascii_lowercase())
        && !name.contains("--")
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

/// Whether a text may be the value of a label.
pub(crate) fn is_value(value: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric();
    value.is_empty()
        || value.len() <= 63
            && value.starts_with(plain)
            && value.ends_with(plain)
            && value.chars().all(|letter| plain(letter) || "-_.".contains(letter))
}
