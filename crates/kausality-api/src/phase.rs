//! The lifecycle phase of a parent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a parent has got in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Its children are being built for the first time.
    Initializing,
    /// It has been ready at least once.
    Initialized,
    /// It is on its way out.
    Deleting,
}

impl Phase {
    /// The phase's name, as reports show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "Initializing",
            Self::Initialized => "Initialized",
            Self::Deleting => "Deleting",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the phase annotation holds once a parent is initialized. Nothing else is ever written there:
/// initializing is the absence of the mark, and deleting is told by `deletionTimestamp`.
pub const INITIALIZED: &str = "initialized";

/// Whether the value of the phase annotation says "initialized", in any case of letters.
#[must_use]
pub fn says_initialized(value: &str) -> bool {
    value.eq_ignore_ascii_case(INITIALIZED)
}
