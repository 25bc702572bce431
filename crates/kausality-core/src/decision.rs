//! What a decision consists of.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::Suffix,
    approval::Approval,
    mode::Mode,
    phase::Phase,
    text::{plain, shorten},
    trace::Trace,
};

use crate::{
    actor::Actor, cause::Cause, change::Drift, class::Class, exceptions::Ruled, explain::Explanation,
    gate::Resolution, patch::Patch, settle::Settled, status::Reading, summary::ObjectId,
};

/// A decision, with everything that follows from it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What sort of request it was.
    pub class: Class,
    /// Who acted, where there is a parent.
    pub actor: Option<Actor>,
    /// The parent's phase, where there is one.
    pub phase: Option<Phase>,
    /// Whether the parent was settled, where there is one.
    pub settled: Option<Settled>,
    /// What caused the change.
    pub cause: Option<Cause>,
    /// Whether the parent's controller carries out the parent's intent by it.
    pub carries_out: bool,
    /// Whether a controller changes a child of a parent that cannot be judged: nothing shows when the controller is done, and
    /// the change may be a drift.
    pub unjudged: bool,
    /// Log or enforce.
    pub mode: Option<Mode>,
    /// How the gates resolved it.
    pub resolution: Resolution,
    /// Rules of policies that matched, and are only tried.
    pub tried: Vec<Ruled>,
    /// The answer.
    pub verdict: Verdict,
    /// Changes of annotations.
    pub patch: Patch,
    /// What the client is told beside the answer.
    pub warnings: Vec<String>,
    /// Entries for the API server's audit log.
    pub audit: BTreeMap<&'static str, String>,
    /// Writes that must follow.
    pub effects: Vec<Effect>,
    /// The trace that the object will carry.
    pub trace: Option<Trace>,
    /// The rules that were looked at, and what they saw.
    pub explanation: Explanation,
}

impl Decision {
    /// Whether it may be another with the last change of an input: what is drift without it, and what is carried out on a
    /// parent that was done with its own intent.
    #[must_use]
    pub fn may_follow_input(&self) -> bool {
        match self.cause {
            Some(Cause::Drift) => true,
            Some(Cause::Expected) => self.carries_out && matches!(self.settled, Some(Settled::Restless(_))),
            _ => false,
        }
    }

    /// The decision that allows a request of this sort and says nothing about it.
    #[must_use]
    pub fn allow(class: Class) -> Self {
        Self {
            class,
            actor: None,
            phase: None,
            settled: None,
            cause: None,
            carries_out: false,
            unjudged: false,
            mode: None,
            resolution: Resolution::Passed,
            tried: Vec::new(),
            verdict: Verdict::Allow,
            patch: Patch::default(),
            warnings: Vec::new(),
            audit: BTreeMap::new(),
            effects: Vec::new(),
            trace: None,
            explanation: Explanation::default(),
        }
    }

    /// The rules of policies that matched: the one that it was decided by, and those that are only tried.
    pub fn matched(&self) -> impl Iterator<Item = &Ruled> {
        let decided = match &self.resolution {
            Resolution::Ruled(ruled) | Resolution::Denied(ruled) => Some(ruled),
            _ => None,
        };
        decided.into_iter().chain(&self.tried)
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// It may happen, but somebody should know.
    Warn,
    /// It must not happen.
    Deny(Denial),
}

impl Verdict {
    /// The word for it in outputs and audit entries.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny(_) => "deny",
        }
    }

    /// Whether it may happen.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        !matches!(self, Self::Deny(_))
    }
}

/// The longest denial in characters: less than 8 KiB, whatever the characters.
const MAX_MESSAGE: usize = 2000;

/// Why something must not happen, as the API server passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub code: u16,
    /// The status's reason, as Kubernetes names it.
    pub reason: &'static str,
    /// What a person should know and can do.
    pub message: String,
}

impl Denial {
    pub(crate) fn forbidden(message: String) -> Self {
        Self::new(403, "Forbidden", &message)
    }

    pub(crate) fn invalid(message: String) -> Self {
        Self::new(422, "Invalid", &message)
    }

    pub(crate) fn internal(message: String) -> Self {
        Self::new(500, "InternalError", &message)
    }

    /// Messages quote what others wrote, so the whole is bounded although its parts are.
    fn new(code: u16, reason: &'static str, message: &str) -> Self {
        Self { code, reason, message: shorten(&plain(message), MAX_MESSAGE) }
    }
}

/// A write that must follow a decision. None follows a dry run, nor a request that is bound to fail.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Takes a `once` approval off the parent, BEFORE the request is allowed, by compare-and-swap: if the
    /// parent is no longer at `resource_version`, read it again and decide again.
    ConsumeOnce {
        /// The parent.
        parent: ObjectId,
        /// Its uid.
        uid: String,
        /// The suffix of its facts.
        suffix: Suffix,
        /// The version that the decision rests on.
        resource_version: String,
        /// The approval that is used up.
        approval: Box<Approval>,
        /// What the parent's annotations must become.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// Enters a drift into the ledger, before the answer goes out.
    Report(Box<Drift>),
    /// Writes what a status update showed, AFTER the answer, to kinds that do not keep the patch of one.
    RecordStatus {
        /// The object.
        object: ObjectId,
        /// Its uid.
        uid: String,
        /// Its generation. At another one it must not be taken for settled any more.
        generation: Option<i64>,
        /// The status that will show that the update has been stored.
        status: Reading,
        /// What it must carry.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// Writes what a `scale` did to the object behind it, AFTER the answer: its patch cannot reach there.
    RecordScale {
        /// The object.
        object: ObjectId,
        /// Its uid.
        uid: String,
        /// Its generation before. Until that changes the `scale` has not happened, and a write in between would make
        /// it fail.
        generation: Option<i64>,
        /// What it must carry. A mark that is among it goes along with the intent: see [`crate::settle::carried`].
        annotations: BTreeMap<String, Option<String>>,
    },
}
