//! What a manager declared against what is there, only in fields that are its business.
//!
//! A field that is declared, or that the manager owns, gets a verdict. A field that is neither, be it defaulted,
//! allocated, injected or somebody else's, is never drift and never reported.
//!
//! | declared | owned by the manager | owned by others | | verdict |
//! |---|---|---|---|---|
//! | yes | yes | | same value | none |
//! | yes | yes | yes | same value | [`Verdict::CoOwned`] |
//! | yes | yes | | other value, or gone | [`Verdict::OwnDrift`] |
//! | yes | yes | yes | other value | [`Verdict::OwnDrift`], or [`Verdict::Delegated`] |
//! | yes | no | yes | | [`Verdict::Takeover`], or [`Verdict::Delegated`] |
//! | yes | no | no | same value | [`Verdict::Unowned`] |
//! | yes | no | no | other value, or gone | [`Verdict::OwnDrift`] |
//! | no | yes | | | [`Verdict::Release`] |
//!
//! [`Verdict::Unknown`] stands in place of a guess where ownership cannot be told, and [`Verdict::Fight`] in place of
//! the others where managers take the field from each other.
//!
//! Values compare by their [meaning](crate::meaning). Null is as good as absent or, where parts have owners of their own,
//! as good as empty. What is declared as empty has nothing in it that others could take; what is declared as empty or
//! zero may be absent as long as the manager owns it: the API server leaves it out where the type allows. Values of a
//! Secret are digests, and its `stringData` is judged as the `data` that it is stored as.

use crate::attribution::{Claims, Owner};
use crate::delegation::Delegation;
use crate::fight::{Fight, Fights};
use crate::path::Path;
use crate::redact::Redaction;
use crate::set::FieldSet;
use crate::typed::{Fault, Type};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;

mod judge;
mod projection;
mod secret;

pub use projection::{Projection, project};

/// All that a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The manager that declares.
    pub manager: &'a str,
    /// What it declares.
    pub declared: &'a Value,
    /// What is there; null if nothing is.
    pub live: &'a Value,
    /// Who owns what of it.
    pub claims: &'a Claims,
    /// The type of both. Without it, what is in lists is [`Verdict::Unknown`].
    pub of: Option<Type<'a>>,
    /// How the status is written.
    pub status: Status,
    /// What the manager leaves to others.
    pub delegations: &'a [Delegation],
    /// Who took which field so far.
    pub fights: &'a Fights,
    /// How values of a Secret are made unreadable.
    pub redaction: &'a Redaction,
}

/// How the status of an object is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// By requests of its own: what an apply says of it counts for nothing.
    #[default]
    Apart,
    /// Like any other field.
    WithTheRest,
}

/// The verdicts on an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The verdicts, ordered by path. Every path is one that the manager declares or owns.
    pub findings: Vec<Finding>,
    /// What else is there and nobody owns: defaulted, allocated, injected. Never drift. Empty where ownership cannot
    /// be told.
    #[serde(skip)]
    pub unowned: FieldSet,
    /// What else is there and others own. Never drift.
    #[serde(skip)]
    pub foreign: FieldSet,
}

/// The verdict on one field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Where it is.
    pub path: Path,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What is declared; `None` if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<Value>,
    /// What is there; `None` if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// All who own it, in order.
    pub owners: Vec<Owner>,
}

/// What is to be said of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It has another value than declared, or is gone, and no one else owns it alone.
    OwnDrift,
    /// Others own it and the manager does not.
    Takeover {
        /// Whether it has the declared value all the same.
        equal: bool,
    },
    /// The manager owns it and does not declare it any more.
    Release {
        /// Whether its next apply removes it: it applied the field, or the item of a list that the field is in, and
        /// no one else owns that.
        removed: bool,
    },
    /// Others own it too, with the same value.
    CoOwned,
    /// It has the declared value, and nobody owns it: the manager has yet to apply it.
    Unowned,
    /// Others own it, and may.
    Delegated,
    /// Managers take it from each other, this one among them.
    Fight(Fight),
    /// There is no telling.
    Unknown {
        /// Why not.
        reason: Unknown,
        /// Whether it has the declared value all the same.
        equal: bool,
    },
}

/// Why there is no telling whose a field is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// The object has no managedFields: they were cleared, or never kept.
    Cleared,
    /// The owner was folded into the entry of ancient changes, in which all look alike.
    Ancient,
    /// An entry cannot be read, and why.
    Unreadable(String),
    /// An entry is of another version of the object, in which fields may have other names.
    OtherVersion(String),
    /// The object does not fit the type that is known of it, and why.
    Misfit(String),
    /// It is a list, and without a type its items cannot be told apart.
    NoType,
    /// The API server may have filled in what is more than declared, but could not be asked, and why.
    Unasked(String),
}

/// What verdicts come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing is to be done.
    Clean,
    /// There is no telling: neither clean nor drift.
    Unknown,
    /// What is there is not what the manager wants, or will not stay.
    Drift,
}

impl Subject<'_> {
    /// The verdicts. An error if what is declared does not fit the type, such as two items with one key.
    pub fn judge(&self) -> Result<Report, Fault> {
        judge::judge(self)
    }
}

impl Report {
    /// Whether any field has drifted.
    pub fn is_drift(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict.is_drift())
    }

    /// The worst that any field comes to.
    pub fn class(&self) -> Class {
        self.findings.iter().map(|finding| finding.verdict.class()).max().unwrap_or(Class::Clean)
    }
}

impl Verdict {
    /// What the verdict comes to.
    pub fn class(&self) -> Class {
        match self {
            Self::OwnDrift | Self::Takeover { .. } | Self::Release { removed: true } | Self::Fight(_) => {
                Class::Drift
            }
            Self::Release { removed: false } | Self::CoOwned | Self::Unowned | Self::Delegated => {
                Class::Clean
            }
            Self::Unknown { .. } => Class::Unknown,
        }
    }

    /// Whether it is drift.
    pub fn is_drift(&self) -> bool {
        self.class() == Class::Drift
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnDrift => "own-drift",
            Self::Takeover { .. } => "takeover",
            Self::Release { .. } => "release",
            Self::CoOwned => "co-owned",
            Self::Unowned => "unowned",
            Self::Delegated => "delegated",
            Self::Fight(_) => "fight",
            Self::Unknown { .. } => "unknown",
        })
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cleared => f.write_str("the object has no managedFields"),
            Self::Ancient => f.write_str("its owner may be among the ancient changes, which have no names"),
            Self::Unreadable(why) => write!(f, "an entry of managedFields cannot be read: {why}"),
            Self::OtherVersion(entry) => write!(f, "{entry} owns fields of another version of the object"),
            Self::Misfit(why) => write!(f, "the object does not fit the type that is known of it: {why}"),
            Self::Unasked(why) => {
                write!(f, "the API server may have filled it in, and a dry run of the apply failed: {why}")
            }
            Self::NoType => f.write_str("items of a list cannot be told apart without its type"),
        }
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
