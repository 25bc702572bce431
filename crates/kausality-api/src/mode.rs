//! Log or enforce.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What happens to a drift that no gate lets pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is allowed, with a warning.
    #[default]
    Log,
    /// It is denied.
    Enforce,
}

impl Mode {
    /// The word used in annotations, policies and flags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Enforce => "enforce",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode that is neither `log` nor `enforce`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mode {0:?} is neither \"log\" nor \"enforce\"")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Log, Self::Enforce]
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(text.trim()))
            .ok_or_else(|| UnknownMode(crate::text::shorten(text, 40)))
    }
}
