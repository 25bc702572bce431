//! The snooze: drift is judged as ever, but nobody is told until a given time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Until when, by whom and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snooze {
    /// Notifications resume at this time.
    pub expiry: Timestamp,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A snooze that cannot be understood. It silences nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither a timestamp like 2026-01-25T00:00:00Z nor JSON {{\"expiry\",\"user\",\"message\"}}: {0}")]
pub struct BadSnooze(String);

impl Snooze {
    /// Reads an annotation: JSON `{expiry,user,message}`, or a bare timestamp.
    ///
    /// # Errors
    /// If it is neither.
    pub fn decode(text: &str) -> Result<Self, BadSnooze> {
        let text = text.trim();
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| BadSnooze(error.to_string()));
        }
        let expiry = text.parse().map_err(|error: jiff::Error| BadSnooze(error.to_string()))?;
        Ok(Self { expiry, user: None, message: None })
    }

    /// Writes the annotation's value.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it still silences notifications.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        now < self.expiry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let json = r#"{"expiry":"2026-01-25T12:00:00Z","user":"ops","message":"hotfix"}"#;
        let snooze = Snooze::decode(json).unwrap();
        assert_eq!(snooze.encode(), json);
        assert_eq!(Snooze::decode("2026-01-25T12:00:00Z").unwrap().expiry, snooze.expiry);
        for text in ["", "tomorrow", "{}", "12", "[]"] {
            assert!(Snooze::decode(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn it_ends_at_its_expiry() {
        let snooze = Snooze::decode("2026-01-25T12:00:00Z").unwrap();
        assert!(snooze.is_active("2026-01-25T11:59:59Z".parse().unwrap()));
        assert!(!snooze.is_active("2026-01-25T12:00:00Z".parse().unwrap()));
    }
}
