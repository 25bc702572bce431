//! The freeze: nothing below this parent changes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::text::{MAX_FAULT, shorten};

/// Who froze a parent, why and since when; each as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// What a freeze annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// `"false"`: it is not frozen.
    No,
    /// It is frozen.
    Yes(Freeze),
    /// It cannot be understood, and why. It is frozen all the same.
    Unclear(String),
}

impl Frozen {
    /// Reads an annotation: JSON `{user,message,at}`, or `"true"`.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("false") {
            return Self::No;
        }
        if trimmed.eq_ignore_ascii_case("true") {
            return Self::Yes(Freeze::default());
        }
        match serde_json::from_str(trimmed) {
            Ok(freeze) => Self::Yes(freeze),
            Err(error) => {
                let error = shorten(&error.to_string(), MAX_FAULT);
                Self::Unclear(format!("neither \"true\" nor JSON {{\"user\",\"message\",\"at\"}}: {error}"))
            }
        }
    }
}

impl Freeze {
    /// Writes the annotation's value.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `by alice since 2026-01-25T10:00:00Z: investigating`, as far as known.
impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}", shorten(self.user.as_deref().unwrap_or("an unnamed user"), 100))?;
        if let Some(at) = self.at {
            write!(f, " since {at}")?;
        }
        match self.message.as_deref() {
            Some(message) if !message.is_empty() => write!(f, ": {}", shorten(message, 400)),
            _ => f.write_str(" (no reason given)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_false_thaws() {
        let full = r#"{"user":"alice","message":"incident 123","at":"2026-01-25T10:00:00Z"}"#;
        for (text, expected) in [
            ("false", "No"),
            ("true", "by an unnamed user (no reason given)"),
            (" TRUE ", "by an unnamed user (no reason given)"),
            (full, "by alice since 2026-01-25T10:00:00Z: incident 123"),
            ("{}", "by an unnamed user (no reason given)"),
            ("", "unclear"),
            ("yes", "unclear"),
            (r#"{"at":"yesterday"}"#, "unclear"),
            ("[1]", "unclear"),
        ] {
            let shown = match Frozen::decode(text) {
                Frozen::No => "No".to_owned(),
                Frozen::Yes(freeze) => freeze.to_string(),
                Frozen::Unclear(_) => "unclear".to_owned(),
            };
            assert_eq!(shown, expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let freeze = Freeze {
            user: Some("alice".into()),
            message: Some("incident".into()),
            at: Some("2026-01-25T10:00:00Z".parse().unwrap()),
        };
        insta::assert_snapshot!(freeze.encode(), @r#"{"user":"alice","message":"incident","at":"2026-01-25T10:00:00Z"}"#);
        assert_eq!(Frozen::decode(&freeze.encode()), Frozen::Yes(freeze));
    }
}
