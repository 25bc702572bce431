//! Complaints about Secrets, without what is in them: the API server and webhooks quote what they do not like.

use std::collections::BTreeSet;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use kube::core::Status;
use serde_json::Value;

const MASKED: &str = "(masked)";

/// Shorter values are too likely to be part of another word. In quotes they are masked all the same.
const SHORTEST: usize = 3;

/// What must not be shown, and what may although it stands in quotes.
pub(super) struct Mask {
    values: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Mask {
    /// The mask for complaints about an object, of which these are versions; `None` if it is no Secret.
    pub(super) fn of(versions: &[&Value]) -> Option<Self> {
        let is_secret = |object: &&Value| object["kind"] == "Secret" && object["apiVersion"] == "v1";
        if !versions.iter().any(is_secret) {
            return None;
        }
        let mut mask = Self { values: BTreeSet::new(), names: BTreeSet::new() };
        for name in ["Secret", "v1", "secrets", "data", "stringData"] {
            mask.names.insert(name.to_owned());
        }
        for object in versions {
            for part in ["data", "stringData"] {
                mask.hide(&object[part]);
                mask.names.extend(object[part].as_object().into_iter().flatten().map(|(key, _)| key.clone()));
            }
            mask.hide(&object["metadata"]["annotations"]);
            for name in ["name", "namespace"] {
                mask.names.extend(object["metadata"][name].as_str().map(ToOwned::to_owned));
            }
            mask.names.extend(object["type"].as_str().map(ToOwned::to_owned));
        }
        Some(mask)
    }

    /// A refusal that is safe to show.
    pub(super) fn status(&self, mut status: Status) -> Status {
        status.message = self.text(&status.message);
        for cause in status.details.iter_mut().flat_map(|details| &mut details.causes) {
            cause.message = self.text(&cause.message);
        }
        status
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest first: one may be part of another.
        let mut values: Vec<&String> = self.values.iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values {
            text = text.replace(value.as_str(), MASKED);
        }
        self.quotes(&text)
    }

    /// Nothing in quotes is shown but names: it may be a part of a value, or a value in another form.
    fn quotes(&self, text: &str) -> String {
        let mut shown = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('"') {
            let end = closing(after).unwrap_or(after.len());
            let inner = &after[..end];
            let may = inner.is_empty() || self.names.contains(inner) || inner == MASKED || is_name(inner);
            shown.push_str(before);
            shown.push('"');
            shown.push_str(if may { inner } else { MASKED });
            shown.push('"');
            rest = after.get(end + 1..).unwrap_or_default();
        }
        shown.push_str(rest);
        shown
    }

    fn hide(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.forms(text);
                if let Some(plain) = decoded(text) {
                    self.forms(&plain);
                }
                self.forms(&encoded(text.as_bytes()));
            }
            Value::Object(fields) => fields.values().for_each(|value| self.hide(value)),
            Value::Array(items) => items.iter().for_each(|value| self.hide(value)),
            Value::Number(number) => self.forms(&number.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// A text as it is, line by line, and with what JSON and Go escape in it.
    fn forms(&mut self, text: &str) {
        let escaped = Value::from(text).to_string();
        let escaped = escaped.trim_matches('"');
        for form in text.lines().map(str::trim).chain([text, escaped]) {
            if form.chars().count() >= SHORTEST {
                self.values.insert(form.to_owned());
            }
        }
    }
}

/// Where a quoted text ends.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// Names of webhooks and users, which stand in quotes too, have a dot or a colon in them and nothing else that a
/// value could be told by.
fn is_name(text: &str) -> bool {
    let parts = text.split(['.', ':', '-']);
    text.contains(['.', ':'])
        && text.len() <= 63
        && parts.clone().count() > 1
        && parts.into_iter().all(|part| part.len() <= 24 && part.chars().all(|c| c.is_ascii_lowercase()))
}

/// Whoever writes a Secret by hand may forget the padding; it must not be shown all the same.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn decoded(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    String::from_utf8(LENIENT.decode(digits).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_masked_in_every_form() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"pem": "BEGIN\nabc\"def\nEND", "pin": "42", "port": 5432}});
        let mask = Mask::of(&[&secret]).unwrap();
        for (text, expected) in [
            ("no hunter2 here", "no (masked) here"),
            ("no aHVudGVyMg== here", "no (masked) here"),
            (r#"bad: "BEGIN\nabc\"def\nEND""#, r#"bad: "(masked)""#),
            ("lines abc\"def", "lines (masked)"),
            (r#"Invalid value: "42": too short"#, r#"Invalid value: "(masked)": too short"#),
            (r#"secrets "db" in "shop": data "password""#, r#"secrets "db" in "shop": data "password""#),
            (r#"webhook "deny.example.com" says "zzz""#, r#"webhook "deny.example.com" says "(masked)""#),
            ("got 5432", "got (masked)"),
            (r#"open "hunt"#, r#"open "(masked)""#),
        ] {
            assert_eq!(mask.text(text), expected);
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert!(Mask::of(&[&map]).is_none());
    }

    #[test]
    fn values_are_found_however_they_are_encoded() {
        for text in ["aHVudGVyMg==", "aHVudGVyMg", "aHVu\ndGVyMg==\n"] {
            assert_eq!(decoded(text).as_deref(), Some("hunter2"), "{text:?}");
        }
        assert_eq!(decoded("not base64!"), None);
    }
}
