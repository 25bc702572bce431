//! Entries as text.

use super::{Entry, Identity};
use crate::fieldsv1::{Form, write};
use crate::gojson::{self, Escape};

/// How the API server holds the object that it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// As a type it was built with.
    BuiltIn,
    /// As plain JSON, like every custom resource: all keys are sorted as text.
    Custom,
}

/// Writes `metadata.managedFields`, byte by byte as the API server serves it. The order is that of [`sort`].
pub fn encode(entries: &[Entry], wire: Wire) -> String {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut out = String::from("[");
    for (nth, entry) in entries.into_iter().enumerate() {
        out.push_str(if nth == 0 { "" } else { "," });
        self::entry(&mut out, entry, wire);
    }
    out.push(']');
    out
}

/// Puts entries in the order of the API server: by operation, time, manager, version, subresource.
pub fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn key(entry: &Entry) -> impl Ord {
    let Entry { manager, operation, api_version, time, subresource, .. } = entry;
    (*operation, time, manager, api_version, subresource)
}

fn entry(out: &mut String, entry: &Entry, wire: Wire) {
    let fields = write::text(
        &entry.fields,
        match wire {
            Wire::BuiltIn => Form::Served,
            Wire::Custom => Form::ServedCustom,
        },
    );
    let text = |text: &str| {
        let mut quoted = String::new();
        gojson::string(&mut quoted, text, Escape::Html);
        (!text.is_empty()).then_some(quoted)
    };
    let mut parts = [
        ("manager", text(&entry.manager)),
        ("operation", text(entry.operation.as_str())),
        ("apiVersion", text(&entry.api_version)),
        ("time", entry.time.as_deref().and_then(text)),
        ("fieldsType", text("FieldsV1")),
        ("fieldsV1", Some(fields)),
        ("subresource", text(&entry.subresource)),
    ];
    if wire == Wire::Custom {
        parts.sort_unstable_by_key(|(name, _)| *name);
    }
    object(out, parts);
}

fn object<'a>(out: &mut String, parts: impl IntoIterator<Item = (&'a str, Option<String>)>) {
    let mut next = '{';
    for (name, part) in parts {
        if let Some(part) = part {
            out.push(next);
            gojson::string(out, name, Escape::Html);
            out.push(':');
            out.push_str(&part);
            next = ',';
        }
    }
    out.push('}');
}

impl Identity {
    /// The text by which the API server knows an entry. Where nothing else decides, its order does.
    pub(super) fn text(&self) -> String {
        let text = |text: &str| {
            let mut quoted = String::new();
            gojson::string(&mut quoted, text, Escape::Html);
            (!text.is_empty()).then_some(quoted)
        };
        let mut out = String::new();
        object(
            &mut out,
            [
                ("manager", text(&self.manager)),
                ("operation", text(self.operation.as_str())),
                ("apiVersion", self.api_version.as_deref().and_then(text)),
                ("subresource", text(&self.subresource)),
            ],
        );
        out
    }
}
